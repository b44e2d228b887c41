//! Beginning and end of connections.

use cardiograph_sim_net::{Config, ConnectError, Error, Host, ListenError, Socket, connect_hosts};
use cardiograph_sim_world::link::End;
use cardiograph_sim_world::{Handle, Link, Seed, World};
use embedded_io_async::{Error as _, ErrorKind, Read, Write};

const SECOND_NS: u64 = 1_000_000_000;

fn world() -> (World, Handle, Host, Host) {
    let world = World::new(Seed::new(1));
    let handle = world.handle();
    let (client, server) =
        connect_hosts(&handle, "link", Link::default(), Config::default()).unwrap();
    (world, handle, client, server)
}

/// Returns both ends of a connection.
async fn pair(client: &Host, server: &Host) -> (Socket, Socket) {
    let mut listener = server.listen(80, 1).unwrap();
    let connected = client.connect(server.endpoint(80)).await.unwrap();
    (connected, listener.accept().await)
}

#[test]
fn nobody_listens() {
    let (mut world, _, client, server) = world();
    let refused = world.block_on(client.connect(server.endpoint(80))).unwrap();
    assert_eq!(refused.err(), Some(ConnectError::Refused));
    let unaddressable = world.block_on(client.connect(server.endpoint(0))).unwrap();
    assert_eq!(unaddressable.err(), Some(ConnectError::Unaddressable));
    drop((client, server));
    world.run_until_idle().unwrap();
}

#[test]
fn a_port_has_one_listener() {
    let (mut world, _, client, server) = world();
    assert_eq!(server.listen(0, 1).err(), Some(ListenError::InvalidPort));
    let listener = server.listen(80, 1).unwrap();
    assert_eq!(server.listen(80, 1).err(), Some(ListenError::PortInUse));
    assert!(server.listen(81, 1).is_ok());
    drop(listener);
    let again = server.listen(80, 1);
    assert!(again.is_ok());
    drop((again, client, server));
    world.run_until_idle().unwrap();
}

#[test]
fn connections_wait_in_the_backlog_and_further_ones_are_refused() {
    let (mut world, handle, client, server) = world();
    let mut listener = server.listen(80, 2).unwrap();
    world
        .block_on(async {
            let remote = server.endpoint(80);
            let mut first = client.connect(remote).await.unwrap();
            let mut second = client.connect(remote).await.unwrap();
            let third = client.connect(remote).await;
            assert_eq!(third.err(), Some(ConnectError::Refused));
            first.write_all(b"1").await.unwrap();
            second.write_all(b"2").await.unwrap();
            handle.sleep_ns(SECOND_NS).await;
            for expected in [b"1", b"2"] {
                let mut socket = listener.accept().await;
                assert!(
                    socket
                        .remote()
                        .is_some_and(|remote| remote.port() >= 49_152)
                );
                let mut byte = [0];
                socket.read_exact(&mut byte).await.unwrap();
                assert_eq!(&byte, expected);
            }
            // The backlog has room again.
            client.connect(remote).await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_client_that_leaves_before_it_is_accepted_frees_its_place() {
    let (mut world, handle, client, server) = world();
    let mut listener = server.listen(80, 1).unwrap();
    world
        .block_on(async {
            let remote = server.endpoint(80);
            client.connect(remote).await.unwrap().abort();
            handle.sleep_ns(SECOND_NS).await;
            // The listener frees the backlog only when `accept` is polled.
            let accepted = handle.with_timeout(SECOND_NS, listener.accept()).await;
            assert!(accepted.is_err());
            let mut socket = client.connect(remote).await.unwrap();
            socket.write_all(b"x").await.unwrap();
            listener.accept().await.read_exact(&mut [0]).await.unwrap();
        })
        .unwrap();
}

#[test]
fn each_direction_ends_on_its_own() {
    let (mut world, _, client, server) = world();
    world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            first.write_all(b"request").await.unwrap();
            first.close();
            assert_eq!(first.write(b"more").await, Err(Error::Closed));
            let mut request = [0; 7];
            second.read_exact(&mut request).await.unwrap();
            assert_eq!(second.read(&mut request).await, Ok(0));
            second.write_all(b"answer").await.unwrap();
            second.flush().await.unwrap();
            drop(second);
            let mut answer = [0; 6];
            first.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"answer");
            assert_eq!(first.read(&mut answer).await, Ok(0));
        })
        .unwrap();
    drop((client, server));
    world.run_until_idle().unwrap();
}

#[test]
fn halves_read_and_write_at_the_same_time() {
    let (mut world, _, client, server) = world();
    let mut listener = server.listen(80, 1).unwrap();
    world.spawn("echo", async move {
        let mut socket = listener.accept().await;
        let mut buffer = [0; 1000];
        loop {
            match socket.read(&mut buffer).await.unwrap() {
                0 => return,
                read => socket.write_all(&buffer[..read]).await.unwrap(),
            }
        }
    });
    // More than all buffers on the path hold: the echo would stall if only one half worked at a time.
    const BYTES: usize = 200_000;
    let mut echoed = 0;
    world
        .block_on(async {
            let mut socket = client.connect(server.endpoint(80)).await.unwrap();
            let (mut reader, mut writer) = socket.split();
            let write = async { writer.write_all(&vec![7; BYTES]).await.unwrap() };
            let read = async {
                let mut buffer = [0; 1000];
                while echoed < BYTES {
                    echoed += reader.read(&mut buffer).await.unwrap();
                }
            };
            join(write, read).await;
        })
        .unwrap();
    assert_eq!(echoed, BYTES);
}

/// Polls two futures until both are complete.
async fn join(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut first_done, mut second_done) = (false, false);
    std::future::poll_fn(|context| {
        first_done = first_done || first.as_mut().poll(context).is_ready();
        second_done = second_done || second.as_mut().poll(context).is_ready();
        if first_done && second_done {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[test]
fn a_reset_reaches_the_other_end() {
    let (mut world, handle, client, server) = world();
    world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            first.abort();
            handle.sleep_ns(SECOND_NS).await;
            let error = second.read(&mut [0]).await.unwrap_err();
            assert_eq!(
                (error, error.kind()),
                (Error::Reset, ErrorKind::ConnectionReset)
            );
            assert_eq!(second.write(b"x").await, Err(Error::Reset));
            assert_eq!(second.remote(), None);
        })
        .unwrap();
}

/// Dropping a socket with unread data resets the connection, as in lwIP and Linux.
#[test]
fn unread_data_resets_a_dropped_connection() {
    let (mut world, handle, client, server) = world();
    world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            first.write_all(b"a long request").await.unwrap();
            handle.sleep_ns(SECOND_NS).await;
            second.read_exact(&mut [0; 6]).await.unwrap();
            drop(second);
            handle.sleep_ns(SECOND_NS).await;
            assert_eq!(first.read(&mut [0]).await, Err(Error::Reset));
        })
        .unwrap();
    drop((client, server));
    world.run_until_idle().unwrap();
}

#[test]
fn data_written_before_the_drop_arrives() {
    let (mut world, _, client, server) = world();
    let mut received = Vec::new();
    world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            first.write_all(&[5; 10_000]).await.unwrap();
            drop(first);
            let mut buffer = [0; 512];
            loop {
                match second.read(&mut buffer).await.unwrap() {
                    0 => return,
                    read => received.extend_from_slice(&buffer[..read]),
                }
            }
        })
        .unwrap();
    assert_eq!(received, [5; 10_000]);
    drop((client, server));
    world.run_until_idle().unwrap();
}

/// A dropped socket gives up on a client that has silently disappeared, for example because its radio is off. It does
/// not keep its host busy forever.
#[test]
fn a_dropped_socket_gives_up_on_a_silent_client() {
    let mut world = World::new(Seed::new(1));
    let handle = world.handle();
    let (client_end, server_end) = Link::default().connect(&handle, "link").unwrap();
    let server = Host::new(&handle, "server", server_end, Config::default());
    let mut listener = server.listen(80, 1).unwrap();
    let remote = server.endpoint(80);
    drop(server);
    // Forwards the packets of the first 500 ms.
    let (inner, client_near) = Link::default().connect(&handle, "near").unwrap();
    let End {
        sender,
        mut receiver,
    } = client_end;
    let End {
        sender: back,
        receiver: mut requests,
    } = inner;
    let until = handle.clone();
    world.spawn("radio, up", async move {
        let forward = async {
            loop {
                sender.send(&requests.recv().await).await.unwrap();
            }
        };
        let backward = async {
            loop {
                back.send(&receiver.recv().await).await.unwrap();
            }
        };
        let _ = until
            .with_timeout(SECOND_NS / 2, join(forward, backward))
            .await;
    });
    let client = Host::new(
        &handle,
        "client",
        client_near,
        Config {
            address: [10, 0, 0, 9].into(),
            ..Config::default()
        },
    );
    let connected = world.block_on(client.connect(remote)).unwrap().unwrap();
    let until = handle.clone();
    world.spawn("application", async move {
        let mut socket = listener.accept().await;
        until.sleep_until_ns(SECOND_NS).await;
        socket.write_all(b"never acknowledged").await.unwrap();
    });
    world.run_until(200 * SECOND_NS).unwrap();
    drop((connected, client));
    world.run_until_idle().unwrap();
}

#[test]
fn an_empty_buffer_reads_and_writes_nothing() {
    let (mut world, _, client, server) = world();
    world
        .block_on(async {
            let (mut first, _second) = pair(&client, &server).await;
            assert_eq!(first.read(&mut []).await, Ok(0));
            assert_eq!(first.write(&[]).await, Ok(0));
        })
        .unwrap();
}

/// A read that is given up loses no data.
#[test]
fn a_dropped_read_loses_nothing() {
    let (mut world, handle, client, server) = world();
    world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            let mut buffer = [0; 8];
            let given_up = handle.with_timeout(SECOND_NS, second.read(&mut buffer));
            assert!(given_up.await.is_err());
            first.write_all(b"late").await.unwrap();
            assert_eq!(second.read(&mut buffer).await, Ok(4));
            assert_eq!(&buffer[..4], b"late");
        })
        .unwrap();
}

/// A small receive window holds the sender back.
#[test]
fn a_reader_that_does_not_read_stops_the_writer() {
    let (mut world, handle, client, server) = world();
    let written = world
        .block_on(async {
            let (mut first, mut second) = pair(&client, &server).await;
            let mut written = 0;
            while let Ok(Ok(bytes)) = handle
                .with_timeout(SECOND_NS, first.write(&[1; 1000]))
                .await
            {
                written += bytes;
            }
            let mut read = 0;
            let mut buffer = [0; 4096];
            while read < written {
                read += second.read(&mut buffer).await.unwrap();
            }
            written
        })
        .unwrap();
    // The send buffer of one end and the receive buffer of the other.
    assert_eq!(written, 2 * 16_384);
}
