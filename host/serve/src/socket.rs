//! Sockets that share the thread of the server.

use embedded_io_adapters::tokio_1::FromTokio;
use embedded_io_async::{ErrorType, Read, Write};
use std::io;
use tokio::net::TcpStream;
use tokio::task::yield_now;

/// Bytes that a connection may transfer before it yields to the others.
const TURN_BYTES: usize = 64 << 10;
/// Cost of a call, in bytes.
const CALL_BYTES: usize = 2 << 10;

/// A socket that yields to other connections, even if it is always ready.
pub struct Socket {
    socket: FromTokio<TcpStream>,
    /// Bytes transferred in the current turn, plus the cost of its calls.
    used: usize,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Socket {
        Socket {
            socket: FromTokio::new(stream),
            used: 0,
        }
    }

    pub fn into_inner(self) -> TcpStream {
        self.socket.into_inner()
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

impl ErrorType for Socket {
    type Error = io::Error;
}

impl Read for Socket {
    async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.turn().await;
        let read = self.socket.read(bytes).await?;
        self.used += read + CALL_BYTES;
        Ok(read)
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.turn().await;
        let written = self.socket.write(bytes).await?;
        self.used += written + CALL_BYTES;
        Ok(written)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use tokio::net::TcpListener;

    /// All bytes fit in the system's socket buffers, so no write has to wait.
    #[test]
    fn a_socket_that_is_always_ready_leaves_turns_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let _peer = listener.accept().await.unwrap();
            let mut socket = Socket::new(stream);
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
}
