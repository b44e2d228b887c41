//! Sockets that share the thread of the server.

#[cfg(target_os = "linux")]
use crate::directory::OpenFile;
use cardiograph_server::{Direct, Sent};
use embedded_io_async::{ErrorType, Read, Write};
use socket2::SockRef;
use std::any::Any;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Bytes that a connection may transfer before it yields to the others.
const TURN_BYTES: usize = 64 << 10;
/// Cost of a call, in bytes.
const CALL_BYTES: usize = 2 << 10;
/// Interval at which a blocked write is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// A socket to which the system can send files.
pub struct Stream(pub TcpStream);

impl Direct for Stream {
    #[cfg(target_os = "linux")]
    fn send_file(&self, file: &dyn Any, offset: u64, bytes: u64) -> Sent {
        let Some(file) = file.downcast_ref::<OpenFile>() else {
            return Sent::Unsupported;
        };
        let send = || -> io::Result<usize> { Ok(file.send_cached(&self.0, offset, bytes)?) };
        let sent = match self.0.try_io(tokio::io::Interest::WRITABLE, send) {
            // The system may not have reported the room yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => send(),
            sent => sent,
        };
        match sent {
            Ok(sent) => Sent::Bytes(sent as u64),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sent::Blocked,
            // Reading the file or writing to the socket reports the error.
            Err(_) => Sent::Unsupported,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send_file(&self, _: &dyn Any, _: u64, _: u64) -> Sent {
        Sent::Unsupported
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_write_ready(context).map(drop)
    }
}

/// A socket that yields to other connections, even if it is always ready.
pub struct Socket<'s> {
    stream: &'s TcpStream,
    /// Bytes transferred in the current turn, plus the cost of its calls.
    used: usize,
}

impl Socket<'_> {
    pub fn new(stream: &TcpStream) -> Socket<'_> {
        Socket { stream, used: 0 }
    }

    /// Yields if the turn is used up. Runs before a transfer, so that a call dropped while it yields has
    /// transferred nothing.
    async fn turn(&mut self) {
        if self.used >= TURN_BYTES {
            self.used = 0;
            yield_now().await;
        }
    }
}

impl ErrorType for Socket<'_> {
    type Error = io::Error;
}

impl Read for Socket<'_> {
    async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.turn().await;
        let read = loop {
            match self.stream.try_read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.readable().await?;
                }
                read => break read?,
            }
        };
        self.used += read + CALL_BYTES;
        Ok(read)
    }
}

impl Write for Socket<'_> {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.turn().await;
        let written = loop {
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                written => break written?,
            }
            // The system reports a full buffer as writable only after a third of it, up to 1.3 MB, has drained. Until then, a
            // slow reader would look like one that has stopped.
            if let Ok(ready) = timeout(RETRY, self.stream.writable()).await {
                ready?;
                continue;
            }
            match send_now(self.stream, bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                sent => break sent?,
            }
        };
        self.used += written + CALL_BYTES;
        Ok(written)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends what fits into the system's buffer, even if the system does not report the socket as writable.
fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(stream).send(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::Read as _;
    use std::pin::pin;
    use tokio::net::TcpListener;

    /// The reader receives nothing, so that the socket is full in the end.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_sends_files_that_are_as_they_were_found() {
        use crate::beneath::Root;
        use cardiograph_record::LiveFiles;
        let own = tempfile::tempdir().unwrap();
        let path = own.path().join("file");
        let contents = Vec::from_iter((0..100_000_u32).flat_map(u32::to_le_bytes));
        std::fs::write(&path, &contents).unwrap();
        let root = Root::open(own.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let live = LiveFiles::default();
        let file = runtime.block_on(OpenFile::open(&root, &live, "/file"));
        let file = file.unwrap();
        let mut byte = [0];
        let mut slices = [io::IoSliceMut::new(&mut byte)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        if rustix::io::preadv2(file.file(), &mut slices, 0, flags).is_err() {
            // The file system cannot say whether a read would block.
            return;
        }
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
            let stream = Stream(stream.unwrap());
            let (mut reader, _) = listener.accept().unwrap();
            let Sent::Bytes(sent) = stream.send_file(&file, 1000, 50_000) else {
                panic!("the file was not sent");
            };
            let mut received = vec![0; sent as usize];
            reader.read_exact(&mut received).unwrap();
            assert_eq!(received, contents[1000..][..received.len()]);
            assert!((1..=50_000).contains(&sent), "{sent}");
            assert_eq!(stream.send_file(&"text", 0, 1), Sent::Unsupported);
            while let Sent::Bytes(_) = stream.send_file(&file, 0, 400_000) {}
            assert_eq!(stream.send_file(&file, 0, 1), Sent::Blocked);
            std::fs::write(&path, b"new").unwrap();
            assert_eq!(stream.send_file(&file, 0, 1), Sent::Unsupported);
        });
    }

    /// All bytes fit in the system's socket buffers, so no write has to wait.
    #[test]
    fn a_socket_that_is_always_ready_leaves_turns_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let _peer = listener.accept().await.unwrap();
            let mut socket = Socket::new(&stream);
            let mut send = pin!(async {
                for _ in 0..100 {
                    assert_eq!(socket.write(b"x").await.unwrap(), 1);
                }
            });
            let mut turns = 0;
            poll_fn(|context| {
                turns += 1;
                send.as_mut().poll(context)
            })
            .await;
            // The first write may wait for the system once.
            assert!((4..=5).contains(&turns), "{turns}");
        });
    }

    /// Receive buffer of the reader, in bytes: with a small one, the sender notices what was read at once.
    const READER_BYTES: usize = 16 << 10;
    /// Limit for a wait that ends at once if the socket is right.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A reader takes a small part of what the system has buffered, and then nothing: the next write sends as much, the
    /// one after it blocks.
    #[test]
    fn what_a_slow_reader_takes_is_noticed_before_the_buffer_has_drained() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let setting = SockRef::from(&listener);
            setting.set_recv_buffer_size(READER_BYTES).unwrap();
            let address = listener.local_addr().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let setting = SockRef::from(&stream);
            setting.set_send_buffer_size(1 << 20).unwrap();
            let (mut reader, _) = listener.accept().unwrap();
            let mut socket = Socket::new(&stream);
            let bytes = [b'x'; 1 << 16];
            let mut sent = 0;
            while let Ok(more) = timeout(4 * RETRY, socket.write(&bytes)).await {
                sent += more.unwrap();
            }
            let mut taken = vec![0; sent / 8];
            assert!(taken.len() > 2 * READER_BYTES, "{sent} B are buffered");
            reader.read_exact(&mut taken).unwrap();
            let written = timeout(PATIENCE, socket.write(&bytes)).await;
            assert!(written.expect("the write still blocks").unwrap() > 0);
            let mut more = 0;
            while let Ok(written) = timeout(4 * RETRY, socket.write(&bytes)).await {
                more += written.unwrap();
            }
            assert!(more <= 2 * taken.len(), "{more} B after {} B", taken.len());
        });
    }
}
