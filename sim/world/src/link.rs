//! A packet link between two ends, in virtual time.
//!
//! # Fault model
//!
//! Both directions have the same parameters and independent random streams. A packet passes, in this order:
//!
//! ```text
//!   send ──> queue ──> transmitter ──> path ──────────────────────────> inbox ──> recv
//!            bounded:  one packet at   lost | copied | held back,       bounded:
//!            send      a time, at the  then delay and jitter            packets are
//!            waits     bandwidth                                        dropped if full
//! ```
//!
//! - **Length.** A packet longer than the MTU is rejected; there is no fragmentation.
//! - **Queue.** Holds `queue_packets`, including the one in the transmitter. If it is full,
//!   [`Sender::try_send`] returns an error and [`Sender::send`] waits.
//! - **Transmitter.** A packet takes `bytes * 8 / bandwidth`, rounded up to a whole ns, and leaves after
//!   its last bit.
//! - **Delay.** `delay_ns` plus a uniform 0 to `jitter_ns`. Jitter alone does not reorder packets: each
//!   packet waits for the previous one, as in a router's queue.
//! - **Loss.** A packet is lost with probability `loss_ppm`, independently of all others, but still occupies
//!   the transmitter. Bit errors count as losses, because the checksum of a link drops such packets.
//! - **Copies.** With probability `duplicate_ppm`, a packet that is not lost arrives a second time, in order
//!   and with its own jitter.
//! - **Reordering.** With probability `reorder_ppm`, a packet arrives a uniform 1 to `reorder_ns` later than
//!   it would otherwise, and later packets may overtake it.
//! - **Inbox.** Holds `queue_packets` that have not been received; packets that arrive when it is full are
//!   dropped.
//!
//! Every packet takes the same number of draws from the random stream of its direction, whatever happens to
//! it: whether packet k is lost depends on the seed, but not on the jitter.
//!
//! Not modelled: burst losses, collisions between the directions, a link that goes down.

mod direction;

use crate::Handle;
use direction::Direction;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Parameters of a link, the same in both directions.
///
/// [`Link::default`] is a cable: 100 Mbit/s, 100 µs, an MTU of 1500 bytes, 64 packets, no faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bandwidth in bits per second.
    pub bandwidth_bps: u64,
    /// Time from the departure of a packet's last bit to its arrival, in ns.
    pub delay_ns: u64,
    /// Maximum additional delay of a packet, uniformly distributed, in ns.
    pub jitter_ns: u64,
    /// Number of lost packets per million.
    pub loss_ppm: u32,
    /// Number of duplicated packets per million.
    pub duplicate_ppm: u32,
    /// Number of packets per million that are held back.
    pub reorder_ppm: u32,
    /// Maximum time for which packets are held back, uniformly distributed; at least 1 ns.
    pub reorder_ns: u64,
    /// Maximum length of a packet, in bytes.
    pub mtu_bytes: usize,
    /// Capacity of each direction's queue and of its inbox, in packets.
    pub queue_packets: usize,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            bandwidth_bps: 100_000_000,
            delay_ns: 100_000,
            jitter_ns: 0,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            reorder_ns: 0,
            mtu_bytes: 1500,
            queue_packets: 64,
        }
    }
}

/// Maximum delay, one hour: longer delays are mistaken units.
const DELAY_NS_MAX: u64 = 3_600_000_000_000;

impl Link {
    /// Creates the two ends of a link. The random streams depend on the world's seed and on `name`, so
    /// each link of a world needs its own name.
    ///
    /// # Errors
    /// [`InvalidLink`] if a parameter is out of range.
    pub fn connect(self, handle: &Handle, name: &str) -> Result<(End, End), InvalidLink> {
        self.check()?;
        let seed = handle.seed().child("link").child(name);
        let there = Direction::shared(self.clone(), seed.stream("there"));
        let back = Direction::shared(self, seed.stream("back"));
        Ok((
            End::new(handle, &there, &back),
            End::new(handle, &back, &there),
        ))
    }

    fn check(&self) -> Result<(), InvalidLink> {
        let ppm = |field, value: u32| (field, value.into(), 0, 1_000_000);
        let count = |field, value: usize, max| (field, value as u64, 1, max);
        let figures = [
            ("bandwidth_bps", self.bandwidth_bps, 1, 1_000_000_000_000),
            ("delay_ns", self.delay_ns, 0, DELAY_NS_MAX),
            ("jitter_ns", self.jitter_ns, 0, DELAY_NS_MAX),
            ppm("loss_ppm", self.loss_ppm),
            ppm("duplicate_ppm", self.duplicate_ppm),
            ppm("reorder_ppm", self.reorder_ppm),
            ("reorder_ns", self.reorder_ns, 0, DELAY_NS_MAX),
            count("mtu_bytes", self.mtu_bytes, 65_535),
            count("queue_packets", self.queue_packets, 1_000_000),
        ];
        for (field, value, min, max) in figures {
            if !(min..=max).contains(&value) {
                return Err(InvalidLink {
                    field,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }
}

/// A parameter of a [`Link`] out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLink {
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
}

impl fmt::Display for InvalidLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidLink {
            field,
            value,
            min,
            max,
        } = self;
        write!(f, "`{field}` is {value}; it must be {min} to {max}")
    }
}

impl std::error::Error for InvalidLink {}

/// One end of a link.
pub struct End {
    /// Sends packets to the other end.
    pub sender: Sender,
    /// Receives packets from the other end.
    pub receiver: Receiver,
}

impl End {
    fn new(handle: &Handle, out: &Rc<RefCell<Direction>>, back: &Rc<RefCell<Direction>>) -> End {
        let handle = handle.clone();
        End {
            sender: Sender {
                handle: handle.clone(),
                direction: Rc::clone(out),
            },
            receiver: Receiver {
                handle,
                direction: Rc::clone(back),
            },
        }
    }
}

/// Sends packets; clones share the queue.
#[derive(Clone)]
pub struct Sender {
    handle: Handle,
    direction: Rc<RefCell<Direction>>,
}

impl Sender {
    /// Queues a packet.
    ///
    /// # Errors
    /// [`SendError`]; the packet is not sent.
    pub fn try_send(&self, packet: &[u8]) -> Result<(), SendError> {
        let now_ns = self.handle.now_ns();
        let receiver = self.direction.borrow_mut().send(now_ns, packet)?;
        if let Some(waker) = receiver {
            waker.wake();
        }
        Ok(())
    }

    /// Queues a packet; waits until there is room.
    ///
    /// # Errors
    /// [`SendError::TooLong`].
    pub async fn send(&self, packet: &[u8]) -> Result<(), SendError> {
        loop {
            match self.try_send(packet) {
                Err(SendError::Full { until_ns }) => self.handle.sleep_until_ns(until_ns).await,
                done => return done,
            }
        }
    }

    /// Returns the time at which the next packet leaves a full queue, in ns; `None` if the queue has room.
    pub fn full_until_ns(&self) -> Option<u64> {
        let now_ns = self.handle.now_ns();
        self.direction.borrow_mut().full_until_ns(now_ns)
    }

    /// Returns the maximum length of a packet.
    pub fn mtu_bytes(&self) -> usize {
        self.direction.borrow().mtu_bytes()
    }

    /// Returns the statistics of packets sent from this end.
    pub fn statistics(&self) -> Statistics {
        self.direction.borrow_mut().statistics(self.handle.now_ns())
    }
}

/// Receives packets.
pub struct Receiver {
    handle: Handle,
    direction: Rc<RefCell<Direction>>,
}

impl Receiver {
    /// Waits for the next packet. Dropping the future loses no packet.
    pub async fn recv(&mut self) -> Vec<u8> {
        let mut arrival = None;
        poll_fn(|context| {
            let received = self.direction.borrow_mut().receive(self.handle.now_ns());
            let next_ns = match received {
                Ok(packet) => return Poll::Ready(packet),
                Err(next_ns) => next_ns,
            };
            // The sleep is set again on each poll, because another packet may be the next to arrive now. A
            // sleep is never ready at its first poll.
            let sleep = next_ns.map(|ns| self.handle.sleep_until_ns(ns));
            let sleep = arrival.insert(sleep).as_mut();
            let _ = sleep.map(|sleep| Pin::new(sleep).poll(context));
            self.direction.borrow_mut().set_waker(context.waker());
            Poll::Pending
        })
        .await
    }
}

/// Error of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The packet is longer than the MTU.
    TooLong {
        /// Maximum length of a packet, in bytes.
        mtu_bytes: usize,
    },
    /// The queue is full.
    Full {
        /// Time at which the next packet leaves the queue, in ns.
        until_ns: u64,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::TooLong { mtu_bytes } => {
                write!(
                    f,
                    "the packet is longer than the {mtu_bytes} bytes of the link's MTU"
                )
            }
            SendError::Full { until_ns } => {
                write!(f, "the link's queue is full until {until_ns} ns")
            }
        }
    }
}

impl std::error::Error for SendError {}

/// Packet statistics of one direction.
///
/// `sent + copied = lost + overflowed + received + on_the_way`, at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of packets accepted into the queue.
    pub sent: u64,
    /// Total length of the sent packets, in bytes.
    pub sent_bytes: u64,
    /// Number of packets lost on the path.
    pub lost: u64,
    /// Number of copies made on the path.
    pub copied: u64,
    /// Number of packets held back on the path.
    pub held_back: u64,
    /// Number of packets dropped because the inbox was full.
    pub overflowed: u64,
    /// Number of packets returned by [`Receiver::recv`].
    pub received: u64,
    /// Total length of the received packets, in bytes.
    pub received_bytes: u64,
    /// Number of packets that are neither lost nor received yet: in the queue, on the path or in the inbox.
    pub on_the_way: u64,
}
