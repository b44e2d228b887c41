//! Sockets: one end of a connection.

use crate::stack::Stack;
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{self, RecvError, State};
use smoltcp::wire::IpAddress;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddrV4;
use std::rc::Rc;
use std::task::{Context, Poll};

/// One end of a connection.
///
/// Reads and writes that are dropped before they complete have no effect. A dropped socket ends its
/// connection in the background, and data written earlier still arrives. If received data has not been read,
/// the connection is reset instead, as by lwIP and Linux; a server therefore reads the rest of a request before
/// it drops the socket.
pub struct Socket {
    stack: Rc<Stack>,
    id: SocketHandle,
}

/// Reading half of a [`Socket`].
pub struct ReadHalf<'a>(&'a Socket);

/// Writing half of a [`Socket`].
pub struct WriteHalf<'a>(&'a Socket);

impl Socket {
    pub(crate) fn new(stack: &Rc<Stack>, id: SocketHandle) -> Socket {
        Socket {
            stack: Rc::clone(stack),
            id,
        }
    }

    pub(crate) fn id(&self) -> SocketHandle {
        self.id
    }

    /// Returns the other end; `None` if the connection has ended.
    pub fn remote(&self) -> Option<SocketAddrV4> {
        let remote = self
            .stack
            .look(self.id, |socket| socket.remote_endpoint())?;
        let IpAddress::Ipv4(address) = remote.addr;
        Some(SocketAddrV4::new(address, remote.port))
    }

    /// Returns two halves, for reading and writing at the same time.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Ends the writing direction: the other end reads the data written so far, and then the end of the stream. Reading
    /// is still possible, but if the other end closes too, smoltcp discards unread data 10 s later.
    pub fn close(&mut self) {
        self.stack.with(self.id, tcp::Socket::close);
    }

    /// Resets the connection; data that has not arrived is lost.
    pub fn abort(&mut self) {
        self.stack.with(self.id, tcp::Socket::abort);
    }

    fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let received = self.stack.look(self.id, |socket| {
            socket.register_recv_waker(context.waker());
            socket.recv_slice(buffer)
        });
        match received {
            Ok(0) => Poll::Pending,
            Ok(bytes) => {
                // The window has grown, and the host's task advertises it.
                self.stack.doorbell().ring();
                Poll::Ready(Ok(bytes))
            }
            Err(RecvError::Finished) => Poll::Ready(Ok(0)),
            Err(RecvError::InvalidState) => Poll::Ready(Err(Error::Reset)),
        }
    }

    fn poll_write(&self, context: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, Error>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let sent = self.stack.look(self.id, |socket| {
            socket.register_send_waker(context.waker());
            socket
                .send_slice(data)
                .map_err(|_| Error::of_state(socket.state()))
        });
        match sent {
            Ok(0) => Poll::Pending,
            Ok(bytes) => {
                self.stack.doorbell().ring();
                Poll::Ready(Ok(bytes))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn poll_flush(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stack.look(self.id, |socket| {
            socket.register_send_waker(context.waker());
            match (socket.send_queue(), socket.state()) {
                (0, _) => Poll::Ready(Ok(())),
                (_, State::Closed) => Poll::Ready(Err(Error::Reset)),
                _ => Poll::Pending,
            }
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.stack.release(self.id);
    }
}

/// Error of a read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The connection was reset, or timed out because the other end did not answer.
    Reset,
    /// This end has closed its writing direction.
    Closed,
}

impl Error {
    /// Returns the error of a write to a socket in this state.
    fn of_state(state: State) -> Error {
        match state {
            State::Closed => Error::Reset,
            _ => Error::Closed,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Reset => "the connection was reset",
            Error::Closed => "this end closed the connection",
        })
    }
}

impl std::error::Error for Error {}

impl embedded_io_async::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Error::Reset => ErrorKind::ConnectionReset,
            Error::Closed => ErrorKind::BrokenPipe,
        }
    }
}

impl ErrorType for Socket {
    type Error = Error;
}

impl ErrorType for ReadHalf<'_> {
    type Error = Error;
}

impl ErrorType for WriteHalf<'_> {
    type Error = Error;
}

impl Read for Socket {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        ReadHalf(self).read(buffer).await
    }
}

impl Write for Socket {
    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        WriteHalf(self).write(data).await
    }

    /// Waits until the other end has acknowledged everything.
    async fn flush(&mut self) -> Result<(), Error> {
        WriteHalf(self).flush().await
    }
}

impl Read for ReadHalf<'_> {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.0.poll_read(context, buffer)).await
    }
}

impl Write for WriteHalf<'_> {
    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        poll_fn(|context| self.0.poll_write(context, data)).await
    }

    /// Waits until the other end has acknowledged everything.
    async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|context| self.0.poll_flush(context)).await
    }
}
