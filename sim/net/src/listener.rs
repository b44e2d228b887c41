//! Listeners: connections from other hosts.

use crate::Socket;
use crate::stack::Stack;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Duration;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Time for which a handshake may stay incomplete, or a connection may wait to be accepted without a packet
/// from its client.
const WAITING_TIMEOUT: Duration = Duration::from_secs(60);

/// Accepts connections to one port of a host.
///
/// Each waiting connection has a socket of its own, because a smoltcp socket that listens becomes the
/// connection.
pub struct Listener {
    stack: Rc<Stack>,
    port: u16,
    waiting: Vec<SocketHandle>,
}

impl Listener {
    pub(crate) fn new(stack: &Rc<Stack>, port: u16, backlog: usize) -> Listener {
        let mut listener = Listener {
            stack: Rc::clone(stack),
            port,
            waiting: Vec::new(),
        };
        (0..backlog.max(1)).for_each(|_| listener.add_socket());
        listener
    }

    /// Waits for a connection. Dropping the future loses no connection.
    pub async fn accept(&mut self) -> Socket {
        poll_fn(|context| self.poll_accept(context)).await
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Socket> {
        for at in 0..self.waiting.len() {
            let id = self.waiting[at];
            let state = self.stack.look(id, |socket| {
                socket.register_recv_waker(context.waker());
                socket.state()
            });
            match state {
                State::Listen | State::SynReceived => {}
                State::Closed => self.listen(id),
                _ => {
                    self.waiting.remove(at);
                    self.add_socket();
                    self.stack.look(id, |socket| socket.set_timeout(None));
                    return Poll::Ready(Socket::new(&self.stack, id));
                }
            }
        }
        Poll::Pending
    }

    fn add_socket(&mut self) {
        let id = self.stack.add();
        self.listen(id);
        self.waiting.push(id);
    }

    /// Makes a closed socket listen: a new one, or one whose client is gone.
    fn listen(&self, id: SocketHandle) {
        self.stack.look(id, |socket: &mut tcp::Socket| {
            socket.set_timeout(Some(WAITING_TIMEOUT));
            // Fails only for port 0 and open sockets.
            let _ = socket.listen(self.port);
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for id in self.waiting.drain(..) {
            self.stack.abort(id);
        }
    }
}
