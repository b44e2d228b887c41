//! One direction of a link.
//!
//! Nothing runs here on its own: when a packet is sent, all that will befall it is decided, and what
//! has happened since is made up for at every call, in the order of time.

use super::{Link, SendError, Statistics};
use crate::Random;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::Waker;

pub(super) struct Direction {
    link: Link,
    random: Random,
    /// When each packet in the queue will have left it, in ns.
    departures_ns: VecDeque<u64>,
    /// Packets on the path by arrival in ns; the same arrival in the order they were sent.
    path: BTreeMap<(u64, u64), Vec<u8>>,
    /// Packets and copies so far.
    numbered: u64,
    /// The latest arrival of all that keep their order, in ns.
    last_arrival_ns: u64,
    inbox: VecDeque<Vec<u8>>,
    receiver: Option<Waker>,
    counts: Statistics,
}

/// What the path does to a packet.
struct Fate {
    lost: bool,
    jitter_ns: u64,
    held_back_ns: Option<u64>,
    copy_jitter_ns: Option<u64>,
}

impl Direction {
    pub(super) fn shared(link: Link, random: Random) -> Rc<RefCell<Direction>> {
        Rc::new(RefCell::new(Direction {
            link,
            random,
            departures_ns: VecDeque::new(),
            path: BTreeMap::new(),
            numbered: 0,
            last_arrival_ns: 0,
            inbox: VecDeque::new(),
            receiver: None,
            counts: Statistics::default(),
        }))
    }

    /// Queues a packet; returns the receiver if it must be told.
    pub(super) fn send(&mut self, now_ns: u64, packet: &[u8]) -> Result<Option<Waker>, SendError> {
        self.settle(now_ns);
        let mtu_bytes = self.link.mtu_bytes;
        if packet.len() > mtu_bytes {
            return Err(SendError::TooLong { mtu_bytes });
        }
        if self.departures_ns.len() >= self.link.queue_packets
            && let Some(&until_ns) = self.departures_ns.front()
        {
            return Err(SendError::Full { until_ns });
        }
        let starts_ns = self.departures_ns.back().copied().unwrap_or(now_ns);
        let departure_ns = starts_ns.saturating_add(self.transmission_ns(packet.len()));
        self.departures_ns.push_back(departure_ns);
        self.counts.sent += 1;
        self.counts.sent_bytes += packet.len() as u64;

        let first = self.path.keys().next().copied();
        self.dispatch(departure_ns, packet);
        // An arrival that became the first changes what the receiver waits for.
        let changed = self.path.keys().next().copied() != first;
        Ok(if changed { self.receiver.take() } else { None })
    }

    /// The next packet that has arrived, or when one will, in ns.
    pub(super) fn receive(&mut self, now_ns: u64) -> Result<Vec<u8>, Option<u64>> {
        self.settle(now_ns);
        match self.inbox.pop_front() {
            Some(packet) => {
                self.counts.received += 1;
                self.counts.received_bytes += packet.len() as u64;
                Ok(packet)
            }
            None => Err(self.path.keys().next().map(|key| key.0)),
        }
    }

    /// Whom to tell when another packet will be the next.
    pub(super) fn wait(&mut self, waker: &Waker) {
        self.receiver = Some(waker.clone());
    }

    pub(super) fn statistics(&mut self, now_ns: u64) -> Statistics {
        self.settle(now_ns);
        Statistics {
            on_the_way: (self.path.len() + self.inbox.len()) as u64,
            ..self.counts
        }
    }

    /// Makes up for all that happened until now.
    fn settle(&mut self, now_ns: u64) {
        while self.departures_ns.front().is_some_and(|&ns| ns <= now_ns) {
            self.departures_ns.pop_front();
        }
        while let Some(arrival) = self.path.first_entry()
            && arrival.key().0 <= now_ns
        {
            let packet = arrival.remove();
            if self.inbox.len() < self.link.queue_packets {
                self.inbox.push_back(packet);
            } else {
                self.counts.overflowed += 1;
            }
        }
    }

    fn transmission_ns(&self, bytes: usize) -> u64 {
        // At most 65,535 bytes: 5.3e14 fits.
        (bytes as u64 * 8_000_000_000).div_ceil(self.link.bandwidth_bps)
    }

    fn dispatch(&mut self, departure_ns: u64, packet: &[u8]) {
        let fate = self.fate();
        if fate.lost {
            self.counts.lost += 1;
            return;
        }
        let soonest_ns = departure_ns.saturating_add(self.link.delay_ns);
        let in_turn_ns = self.in_turn_ns(soonest_ns, fate.jitter_ns);
        match fate.held_back_ns {
            Some(held_back_ns) => {
                self.counts.held_back += 1;
                self.put_on_path(in_turn_ns.saturating_add(held_back_ns), packet);
            }
            None => {
                self.last_arrival_ns = in_turn_ns;
                self.put_on_path(in_turn_ns, packet);
            }
        }
        if let Some(jitter_ns) = fate.copy_jitter_ns {
            self.counts.copied += 1;
            self.last_arrival_ns = self.in_turn_ns(soonest_ns, jitter_ns);
            self.put_on_path(self.last_arrival_ns, packet);
        }
    }

    /// No earlier than the packet before it.
    fn in_turn_ns(&self, soonest_ns: u64, jitter_ns: u64) -> u64 {
        let arrival_ns = soonest_ns.saturating_add(jitter_ns);
        arrival_ns.max(self.last_arrival_ns)
    }

    fn put_on_path(&mut self, arrival_ns: u64, packet: &[u8]) {
        let key = (arrival_ns, self.numbered);
        self.path.insert(key, packet.to_vec());
        self.numbered += 1;
    }

    /// Six draws, needed or not.
    fn fate(&mut self) -> Fate {
        let (link, random) = (&self.link, &mut self.random);
        let lost = random.chance_ppm(link.loss_ppm);
        let jitter_ns = random.below(link.jitter_ns + 1);
        let held_back = random.chance_ppm(link.reorder_ppm);
        let held_back_ns = 1 + random.below(link.reorder_ns);
        let copied = random.chance_ppm(link.duplicate_ppm);
        let copy_jitter_ns = random.below(link.jitter_ns + 1);
        Fate {
            lost,
            jitter_ns,
            held_back_ns: held_back.then_some(held_back_ns),
            copy_jitter_ns: copied.then_some(copy_jitter_ns),
        }
    }
}
