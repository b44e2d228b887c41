//! A connection in memory, and virtual time.

use cardiograph_server::Timer;
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Virtual time: it advances to the next deadline when nothing else can happen.
#[derive(Default)]
pub struct Clock {
    now_ms: Cell<u64>,
    next_ms: Cell<Option<u64>>,
    /// Patience with slow readers; `None` for the default.
    pub patience_ms: Cell<Option<u32>>,
}

impl Timer for Clock {
    fn patience_ms(&self) -> u32 {
        self.patience_ms.get().unwrap_or(10_000)
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    fn now_us(&self) -> Option<u64> {
        Some(self.now_ms.get() * 1000)
    }

    async fn sleep_ms(&self, ms: u32) {
        let deadline_ms = self.now_ms.get() + u64::from(ms);
        poll_fn(|_| {
            if self.now_ms.get() >= deadline_ms {
                return Poll::Ready(());
            }
            let next_ms = self
                .next_ms
                .get()
                .map_or(deadline_ms, |next| next.min(deadline_ms));
            self.next_ms.set(Some(next_ms));
            Poll::Pending
        })
        .await;
    }
}

/// Notes that a future wants to be polled again at once.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clock {
    /// Runs a future to its end.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        loop {
            self.next_ms.set(None);
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            if woken.0.swap(false, Ordering::Relaxed) {
                continue;
            }
            match self.next_ms.get() {
                Some(next_ms) => self.now_ms.set(next_ms.max(self.now_ms.get())),
                None => panic!("nothing will wake the future"),
            }
        }
    }
}

/// Runs two futures at the same time.
pub async fn both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut has_one, mut has_other) = (false, false);
    poll_fn(|context| {
        has_one = has_one || one.as_mut().poll(context).is_ready();
        has_other = has_other || other.as_mut().poll(context).is_ready();
        match has_one && has_other {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Behaviour of the client after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It closes its side.
    Close,
    /// It sends nothing more.
    Silence,
}

/// The server's end of a connection.
pub struct Socket<'a> {
    clock: &'a Clock,
    segments: VecDeque<Vec<u8>>,
    end: End,
    /// Time between two segments.
    pub gap_ms: u64,
    next_ms: u64,
    /// Maximum number of bytes that one write accepts.
    pub write_bytes_max: usize,
    /// Duration of each write, in ms; 0 for none.
    pub write_ms: u64,
    /// Duration of a flush, in ms.
    pub flush_ms: u64,
    /// Bytes after which the client receives nothing more.
    pub taken_bytes_max: usize,
    /// Bytes after which the client disappears.
    pub sent_bytes_max: usize,
    pub sent: Rc<RefCell<Vec<u8>>>,
}

impl<'a> Socket<'a> {
    pub fn new(clock: &'a Clock, segments: impl IntoIterator<Item = Vec<u8>>, end: End) -> Self {
        Socket {
            clock,
            segments: segments.into_iter().collect(),
            end,
            gap_ms: 0,
            next_ms: 0,
            write_bytes_max: usize::MAX,
            write_ms: 0,
            flush_ms: 0,
            taken_bytes_max: usize::MAX,
            sent_bytes_max: usize::MAX,
            sent: Rc::default(),
        }
    }
}

#[derive(Debug)]
pub struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the connection is gone")
    }
}

impl std::error::Error for Gone {}

impl embedded_io_async::Error for Gone {
    fn kind(&self) -> ErrorKind {
        ErrorKind::ConnectionReset
    }
}

impl ErrorType for Socket<'_> {
    type Error = Gone;
}

impl Read for Socket<'_> {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Gone> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let left_ms = self.next_ms.saturating_sub(self.clock.now_ms());
        if left_ms > 0 {
            self.clock.sleep_ms(left_ms as u32).await;
        }
        let Some(segment) = self.segments.front_mut() else {
            return match self.end {
                End::Close => Ok(0),
                End::Silence => std::future::pending().await,
            };
        };
        let count = segment.len().min(bytes.len());
        bytes[..count].copy_from_slice(&segment[..count]);
        segment.drain(..count);
        if segment.is_empty() {
            self.segments.pop_front();
            self.next_ms = self.clock.now_ms() + self.gap_ms;
        }
        Ok(count)
    }
}

impl Write for Socket<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        if self.write_ms > 0 {
            self.clock.sleep_ms(self.write_ms as u32).await;
        }
        let room = self.taken_bytes_max - self.sent.borrow().len();
        if room == 0 {
            return std::future::pending().await;
        }
        let mut sent = self.sent.borrow_mut();
        let count = bytes.len().min(self.write_bytes_max).min(room);
        if sent.len() + count > self.sent_bytes_max {
            return Err(Gone);
        }
        sent.extend(&bytes[..count]);
        Ok(count)
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        if self.flush_ms > 0 {
            self.clock.sleep_ms(self.flush_ms as u32).await;
        }
        Ok(())
    }
}
