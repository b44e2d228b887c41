//! The file server next to the recorder on a simulated device, and a client that downloads over a simulated network.

use cardiograph_recorder::{Config as RecorderConfig, ReadDesk, ReadTally, StreamSummary};
use cardiograph_server::{Buffers, CardRecorder, CardStorage, Config, LiveStream, Server, Timer};
use cardiograph_sim_card::{Card, Seed};
use cardiograph_sim_device::{Device, Outcome, StreamSetup};
use cardiograph_sim_net::{Config as NetConfig, Listener, Socket, connect_hosts};
use cardiograph_sim_world::{Handle, Link};
use embedded_io_async::{Read, Write};
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Port of the server for the client that downloads.
const PORT: u16 = 80;

/// A device that records and serves.
pub struct ServedSetup<'a, const N: usize> {
    /// The card, formatted.
    pub card: Card,
    /// Clock of the SPI bus in Hz.
    pub clock_hz: u32,
    /// Settings of the recorder.
    pub config: RecorderConfig,
    /// Settings of the streams to record.
    pub streams: [StreamSetup<'a>; N],
    /// Number of read buffers, 8 KiB each.
    pub read_buffers: usize,
    /// The network between server and client.
    pub link: Link,
    /// Sizes of the socket buffers, and the addresses.
    pub network: NetConfig,
    /// Requests that the client sends first, each over its own connection.
    pub requests: Vec<Vec<u8>>,
    /// Path that the client then downloads repeatedly.
    pub path: Option<String>,
    /// The newest samples of the streams.
    pub live: &'static [LiveStream<'static>],
    /// Other clients.
    pub watchers: Vec<Watcher>,
    /// Seed of the device.
    pub seed: Seed,
}

/// A client that requests one path, and receives until the recording ends.
#[derive(Clone, Copy, Debug)]
pub struct Watcher {
    /// Path to request.
    pub path: &'static str,
    /// Time of the request, in ns from the moment when the device is ready.
    pub after_ns: u64,
}

/// Downloads of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes received in response bodies.
    pub bytes: u64,
    /// Completed downloads.
    pub count: u32,
    /// Time from the first request to the end of the last download, in ns.
    pub ns: u64,
    /// Longest time from a request to the first byte of the response, in ns.
    pub first_byte_ns_max: u64,
    /// Failed downloads, each with the reason.
    pub failures: Vec<String>,
}

impl Downloaded {
    /// Returns the throughput in bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns.max(1) as f64
    }
}

/// Result of a run.
pub struct Served<const N: usize> {
    /// Statistics of the streams.
    pub streams: [StreamSummary; N],
    /// Samples pushed by each stream.
    pub pushed: [u64; N],
    /// Responses to the client's requests, including their headers.
    pub responses: Vec<Vec<u8>>,
    /// Downloads of the client.
    pub downloaded: Downloaded,
    /// Pieces that each of the other clients received, each with the time of its arrival in ns.
    pub watched: Vec<Vec<(u64, Vec<u8>)>>,
    /// Time of the first sample, in ns.
    pub started_ns: u64,
    /// Statistics of the reads from the card.
    pub reads: ReadTally,
    /// Duration of the recording, in ns.
    pub ns: u64,
    /// The card after the run.
    pub card: Box<Card>,
}

struct WorldTimer(Handle);

impl Timer for WorldTimer {
    fn now_ms(&self) -> u64 {
        self.0.now_ns() / 1_000_000
    }

    fn now_us(&self) -> Option<u64> {
        Some(self.0.now_ns() / 1_000)
    }

    async fn sleep_ms(&self, ms: u32) {
        self.0.sleep_ns(u64::from(ms) * 1_000_000).await;
    }
}

/// Records all streams to their ends, while a client downloads without pause.
///
/// # Errors
/// A sentence, if the network or the recorder could not start, or the recorder did not end.
pub fn serve_while_recording<const N: usize>(
    setup: ServedSetup<'_, N>,
) -> Result<Served<N>, String> {
    let mut device = Device::new(setup.card, 1, setup.clock_hz, setup.seed);
    device.config = setup.config;
    device.read_buffers = setup.read_buffers;
    device.shown = setup.live.iter().map(|live| live.newest).collect();
    let downloaded = Rc::new(RefCell::new(Downloaded::default()));
    let reads = Rc::new(Cell::new(ReadTally::default()));
    let responses = Rc::new(RefCell::new(Vec::new()));
    let (link, network, path) = (setup.link, setup.network, setup.path);
    let waits_for_room = setup.config.waits_for_room;
    let (seen, tally, answered) = (downloaded.clone(), reads.clone(), responses.clone());
    let (requests, live) = (setup.requests, setup.live);
    let watchers = setup.watchers;
    let watched = Rc::new(RefCell::new(vec![Vec::new(); watchers.len()]));
    let arrived = watched.clone();
    let logged = device.log(
        setup.streams,
        |_, _| (),
        move |control, desk, world| {
            Some(Box::pin(async move {
                // Otherwise, a client may have to make room for the recording.
                while !control.is_ready() && !waits_for_room {
                    world.sleep_ns(1_000_000).await;
                }
                let Ok((client, server)) = connect_hosts(&world, "network", link, network) else {
                    seen.borrow_mut()
                        .failures
                        .push("the link is invalid".into());
                    return;
                };
                // A port for each client, because a task serves one connection at a time.
                let ports = (0..=watchers.len() as u16).map(|client| PORT + client);
                let listeners = ports.map(|port| server.listen(port, 2));
                let Ok(listeners) = listeners.collect::<Result<Vec<_>, _>>() else {
                    return;
                };
                let storage = CardStorage::new(desk);
                let timer = WorldTimer(world.clone());
                let config = Config {
                    names: &[],
                    is_read_only: false,
                    basic_auth: None,
                    secret: 0,
                    event_streams_max: watchers.len() as u8,
                };
                let recorder = CardRecorder::new(desk, control, live, &());
                let http = Server::new(&storage, &recorder, &timer, config);
                let (http, tally) = (&http, &tally);
                let serve = |mut listener: Listener| async move {
                    let mut buffers = Buffers::new();
                    loop {
                        let mut socket = listener.accept().await;
                        http.serve(&mut socket, &mut buffers).await;
                        tally.set(desk.tally());
                    }
                };
                let (client, server, arrived, world) = (&client, &server, &arrived, &world);
                let watch = |(at, watcher): (usize, Watcher)| async move {
                    let Watcher { path, after_ns } = watcher;
                    world.sleep_ns(after_ns).await;
                    let port = PORT + 1 + at as u16;
                    let Ok(mut socket) = client.connect(server.endpoint(port)).await else {
                        return;
                    };
                    let request = format!("GET {path} HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n");
                    let _ = socket.write_all(request.as_bytes()).await;
                    let mut piece = vec![0; 16_384];
                    while let Ok(bytes @ 1..) = socket.read(&mut piece).await {
                        let arrival = (world.now_ns(), piece[..bytes].to_vec());
                        arrived.borrow_mut()[at].push(arrival);
                    }
                };
                let client_task = async {
                    for request in requests {
                        let response = match client.connect(server.endpoint(PORT)).await {
                            Ok(mut socket) => answer_to(&mut socket, &request).await,
                            Err(error) => format!("{error:?}").into_bytes(),
                        };
                        answered.borrow_mut().push(response);
                    }
                    let Some(path) = path else {
                        return std::future::pending().await;
                    };
                    loop {
                        let Ok(mut socket) = client.connect(server.endpoint(PORT)).await else {
                            seen.borrow_mut().failures.push("cannot connect".into());
                            world.sleep_ns(100_000_000).await;
                            continue;
                        };
                        let error = download(&mut socket, &path, world, &seen, desk, tally).await;
                        if let Err(error) = error {
                            seen.borrow_mut().failures.push(error);
                            world.sleep_ns(100_000_000).await;
                        }
                    }
                };
                let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
                for listener in listeners {
                    tasks.push(Box::pin(serve(listener)));
                }
                for watcher in watchers.into_iter().enumerate() {
                    tasks.push(Box::pin(watch(watcher)));
                }
                tasks.push(Box::pin(client_task));
                all(tasks).await;
            }))
        },
    );
    let Outcome::Done(streams) = logged.outcome else {
        return Err(format!("{:?}", logged.outcome));
    };
    Ok(Served {
        streams,
        pushed: logged.pushed,
        responses: responses.take(),
        downloaded: downloaded.take(),
        watched: watched.take(),
        started_ns: logged.started_ns.unwrap_or(0),
        reads: reads.get(),
        ns: logged.ended_ns - logged.started_ns.unwrap_or(0),
        card: Box::new(device.into_card()),
    })
}

/// Polls all tasks, some of which never end.
async fn all(mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    std::future::poll_fn(|context| {
        tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
        match tasks.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Sends a request and returns everything that the server sends until it closes the connection.
async fn answer_to(socket: &mut Socket, request: &[u8]) -> Vec<u8> {
    if let Err(error) = socket.write_all(request).await {
        return format!("{error:?}").into_bytes();
    }
    let (mut response, mut piece) = (Vec::new(), vec![0; 16_384]);
    while let Ok(bytes @ 1..) = socket.read(&mut piece).await {
        response.extend_from_slice(&piece[..bytes]);
    }
    response
}

/// Downloads a path repeatedly over one connection, until the connection ends.
async fn download(
    socket: &mut Socket,
    path: &str,
    world: &Handle,
    seen: &RefCell<Downloaded>,
    desk: &ReadDesk<'_>,
    tally: &Cell<ReadTally>,
) -> Result<(), String> {
    let begun_ns = world.now_ns();
    let before_ns = seen.borrow().ns;
    let mut buffer = vec![0; 65_536];
    loop {
        let asked_ns = world.now_ns();
        let request = format!("GET {path} HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n");
        let sent = socket.write_all(request.as_bytes()).await;
        sent.map_err(|error| format!("request: {error:?}"))?;
        let mut head = Vec::new();
        let end = loop {
            let bytes = socket.read(&mut buffer).await;
            let bytes = bytes.map_err(|error| format!("head: {error:?}"))?;
            if bytes == 0 {
                return Err("the server closed the connection".into());
            }
            head.extend_from_slice(&buffer[..bytes]);
            if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let first_ns = world.now_ns() - asked_ns;
        let text = String::from_utf8_lossy(&head[..end]).to_lowercase();
        if !text.starts_with("http/1.1 200") {
            return Err(text.lines().next().unwrap_or_default().into());
        }
        let length = text.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse::<u64>().ok());
        let mut left = length.ok_or("no length")? - (head.len() - end) as u64;
        {
            let mut seen = seen.borrow_mut();
            seen.bytes += (head.len() - end) as u64;
            seen.first_byte_ns_max = seen.first_byte_ns_max.max(first_ns);
        }
        while left > 0 {
            let wanted = buffer.len().min(left as usize);
            let bytes = socket.read(&mut buffer[..wanted]).await;
            let bytes = bytes.map_err(|error| format!("body: {error:?}"))?;
            if bytes == 0 {
                return Err("the server closed the connection within a body".into());
            }
            left -= bytes as u64;
            let mut seen = seen.borrow_mut();
            seen.bytes += bytes as u64;
            seen.ns = before_ns + world.now_ns() - begun_ns;
            tally.set(desk.tally());
        }
        seen.borrow_mut().count += 1;
    }
}
