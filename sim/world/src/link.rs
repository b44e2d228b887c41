//! A packet link between two ends, in virtual time.
//!
//! # Fault model
//!
//! Both directions have the same figures and chances of their own. A packet meets, in this order:
//!
//! ```text
//!   send ──> queue ──> transmitter ──> path ──────────────────────────> inbox ──> recv
//!            bounded:  one packet at   lost | copied | held back,       bounded:
//!            full is   a time, at the  always the delay and the jitter  full drops
//!            told      bandwidth
//! ```
//!
//! - **Length.** A packet longer than the MTU is refused; nothing is split up.
//! - **Queue.** It holds `queue_packets`, the one in the transmitter included. [`Sender::try_send`]
//!   says when it is full, [`Sender::send`] waits.
//! - **Transmitter.** A packet takes `bytes * 8 / bandwidth`, rounded up to a whole ns. It leaves when
//!   its last bit has.
//! - **Delay.** `delay_ns`, and evenly 0 to `jitter_ns` more. Jitter alone changes no order: a packet
//!   waits for the one before it, as in a router's queue.
//! - **Loss.** Each packet with `loss_ppm`, independent of all others. A lost packet has used the
//!   transmitter. Bit errors are losses: a link's checksum drops such packets.
//! - **Copies.** With `duplicate_ppm` a packet that is not lost arrives a second time, with a jitter
//!   of its own, in its turn.
//! - **Reordering.** With `reorder_ppm` a packet comes evenly 1 to `reorder_ns` later than it would,
//!   and nobody waits for it: those behind may overtake it.
//! - **Inbox.** It holds `queue_packets` that nobody has received; what comes then is dropped.
//!
//! Every packet takes the same number of draws from its direction's stream, whatever befalls it: packet
//! k is lost with a seed or it is not, whether there is jitter or not.
//!
//! Not modelled: losses in bursts, collisions between the directions, a link that goes down.

mod direction;

use crate::Handle;
use direction::Direction;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// What a link is like, the same in both directions.
///
/// [`Link::default`] is a cable: 100 Mbit/s, 100 µs, an MTU of 1500 bytes, 64 packets, no faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bits a second.
    pub bandwidth_bps: u64,
    /// Time from the last bit's leaving to its arrival.
    pub delay_ns: u64,
    /// At most so much more, evenly spread.
    pub jitter_ns: u64,
    /// Packets in a million that are lost.
    pub loss_ppm: u32,
    /// Packets in a million that arrive twice.
    pub duplicate_ppm: u32,
    /// Packets in a million that are held back.
    pub reorder_ppm: u32,
    /// At most so long are they held back, evenly spread; at least 1 ns.
    pub reorder_ns: u64,
    /// Longest packet.
    pub mtu_bytes: usize,
    /// Packets that a direction's queue holds, and its inbox.
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

/// An hour: longer delays are slips of the unit.
const DELAY_NS_MAX: u64 = 3_600_000_000_000;

impl Link {
    /// Two ends joined by this link. Chance comes from the world's seed and `name`, so every link of
    /// a world has its own.
    ///
    /// # Errors
    /// [`Impossible`] if a figure is out of its range.
    pub fn connect(self, handle: &Handle, name: &str) -> Result<(End, End), Impossible> {
        self.check()?;
        let seed = handle.seed().child("link").child(name);
        let there = Direction::shared(self.clone(), seed.stream("there"));
        let back = Direction::shared(self, seed.stream("back"));
        Ok((
            End::new(handle, &there, &back),
            End::new(handle, &back, &there),
        ))
    }

    fn check(&self) -> Result<(), Impossible> {
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
                return Err(Impossible {
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

/// A figure of a [`Link`] that no link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Impossible {
            field,
            value,
            min,
            max,
        } = self;
        write!(f, "`{field}` is {value}; it must be {min} to {max}")
    }
}

impl std::error::Error for Impossible {}

/// One end of a link.
pub struct End {
    /// Towards the other end.
    pub sender: Sender,
    /// From the other end.
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
    /// [`SendError`]; the packet is not sent then.
    pub fn try_send(&self, packet: &[u8]) -> Result<(), SendError> {
        let now_ns = self.handle.now_ns();
        let receiver = self.direction.borrow_mut().send(now_ns, packet)?;
        if let Some(waker) = receiver {
            waker.wake();
        }
        Ok(())
    }

    /// Queues a packet, when there is room.
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

    /// What became of the packets sent from this end.
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
    /// The next packet, as soon as there is one. Dropping the future loses none.
    pub async fn recv(&mut self) -> Vec<u8> {
        let mut arrival = None;
        poll_fn(|context| {
            let received = self.direction.borrow_mut().receive(self.handle.now_ns());
            let next_ns = match received {
                Ok(packet) => return Poll::Ready(packet),
                Err(next_ns) => next_ns,
            };
            // Asked for anew each time: another packet may have become the first. A sleep is never
            // done when first polled.
            let sleep = next_ns.map(|ns| self.handle.sleep_until_ns(ns));
            let sleep = arrival.insert(sleep).as_mut();
            let _ = sleep.map(|sleep| Pin::new(sleep).poll(context));
            self.direction.borrow_mut().wait(context.waker());
            Poll::Pending
        })
        .await
    }
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Longer than the MTU.
    TooLong {
        /// Longest packet.
        mtu_bytes: usize,
    },
    /// The queue is full.
    Full {
        /// When the next packet leaves it.
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

/// What became of the packets of one direction.
///
/// `sent + copied = lost + overflowed + received + on_the_way`, at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets taken into the queue.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Lost on the path.
    pub lost: u64,
    /// Second copies made by the path.
    pub copied: u64,
    /// Held back by the path.
    pub held_back: u64,
    /// Dropped at a full inbox.
    pub overflowed: u64,
    /// Handed out by [`Receiver::recv`].
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Not lost and not received yet: in the queue, on the path or in the inbox.
    pub on_the_way: u64,
}
