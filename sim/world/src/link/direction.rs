//! One direction of a link.
//!
//! Nothing runs in the background: sending a packet determines everything that happens to it, and every
//! call first applies the events up to the current time, in order.

use super::{Link, SendError, Statistics};
use crate::Random;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::Waker;

pub(super) struct Direction {
    link: Link,
    random: Random,
    /// Departure time of each packet in the queue, in ns.
    departures_ns: VecDeque<u64>,
    /// Packets on the path, ordered by arrival in ns, then by sending.
    path: BTreeMap<(u64, u64), Vec<u8>>,
    /// Number of packets and copies put on the path so far; the next one gets this number.
    next_number: u64,
    /// Latest arrival time, in ns, of all packets that are not held back.
    last_arrival_ns: u64,
    inbox: VecDeque<Vec<u8>>,
    receiver: Option<Waker>,
    counts: Statistics,
}

/// Random outcome for a packet on the path.
struct Outcome {
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
            next_number: 0,
            last_arrival_ns: 0,
            inbox: VecDeque::new(),
            receiver: None,
            counts: Statistics::default(),
        }))
    }

    /// Queues a packet; returns the waker of the receiver if it must be woken.
    pub(super) fn send(&mut self, now_ns: u64, packet: &[u8]) -> Result<Option<Waker>, SendError> {
        let mtu_bytes = self.link.mtu_bytes;
        if packet.len() > mtu_bytes {
            return Err(SendError::TooLong { mtu_bytes });
        }
        if let Some(until_ns) = self.full_until_ns(now_ns) {
            return Err(SendError::Full { until_ns });
        }
        let starts_ns = self.departures_ns.back().copied().unwrap_or(now_ns);
        let departure_ns = starts_ns.saturating_add(self.transmission_ns(packet.len()));
        self.departures_ns.push_back(departure_ns);
        self.counts.sent += 1;
        self.counts.sent_bytes += packet.len() as u64;

        let first = self.path.keys().next().copied();
        self.dispatch(departure_ns, packet);
        // If a new packet is the next to arrive, the time that the receiver waits for changes.
        let changed = self.path.keys().next().copied() != first;
        Ok(if changed { self.receiver.take() } else { None })
    }

    pub(super) fn mtu_bytes(&self) -> usize {
        self.link.mtu_bytes
    }

    /// Returns the time at which a full queue has room again, in ns; `None` if the queue has room.
    pub(super) fn full_until_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.apply_events(now_ns);
        let is_full = self.departures_ns.len() >= self.link.queue_packets;
        is_full.then(|| self.departures_ns.front().copied())?
    }

    /// Returns the next packet that has arrived, or else the time at which the next packet arrives, in ns.
    pub(super) fn receive(&mut self, now_ns: u64) -> Result<Vec<u8>, Option<u64>> {
        self.apply_events(now_ns);
        match self.inbox.pop_front() {
            Some(packet) => {
                self.counts.received += 1;
                self.counts.received_bytes += packet.len() as u64;
                Ok(packet)
            }
            None => Err(self.path.keys().next().map(|key| key.0)),
        }
    }

    /// Registers the waker for changes of the next arrival.
    pub(super) fn set_waker(&mut self, waker: &Waker) {
        self.receiver = Some(waker.clone());
    }

    pub(super) fn statistics(&mut self, now_ns: u64) -> Statistics {
        self.apply_events(now_ns);
        Statistics {
            on_the_way: (self.path.len() + self.inbox.len()) as u64,
            ..self.counts
        }
    }

    /// Applies all events up to `now_ns`.
    fn apply_events(&mut self, now_ns: u64) {
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
        // A packet has at most 65,535 bytes, and the product, 5.3e14, fits in 64 bits.
        (bytes as u64 * 8_000_000_000).div_ceil(self.link.bandwidth_bps)
    }

    fn dispatch(&mut self, departure_ns: u64, packet: &[u8]) {
        let outcome = self.draw_outcome();
        if outcome.lost {
            self.counts.lost += 1;
            return;
        }
        let soonest_ns = departure_ns.saturating_add(self.link.delay_ns);
        let in_turn_ns = self.in_turn_ns(soonest_ns, outcome.jitter_ns);
        match outcome.held_back_ns {
            Some(held_back_ns) => {
                self.counts.held_back += 1;
                self.put_on_path(in_turn_ns.saturating_add(held_back_ns), packet);
            }
            None => {
                self.last_arrival_ns = in_turn_ns;
                self.put_on_path(in_turn_ns, packet);
            }
        }
        if let Some(jitter_ns) = outcome.copy_jitter_ns {
            self.counts.copied += 1;
            self.last_arrival_ns = self.in_turn_ns(soonest_ns, jitter_ns);
            self.put_on_path(self.last_arrival_ns, packet);
        }
    }

    /// Returns the arrival time of a packet that must not overtake the previous one, in ns.
    fn in_turn_ns(&self, soonest_ns: u64, jitter_ns: u64) -> u64 {
        let arrival_ns = soonest_ns.saturating_add(jitter_ns);
        arrival_ns.max(self.last_arrival_ns)
    }

    fn put_on_path(&mut self, arrival_ns: u64, packet: &[u8]) {
        let key = (arrival_ns, self.next_number);
        self.path.insert(key, packet.to_vec());
        self.next_number += 1;
    }

    /// Draws the random outcome for a packet; always takes six draws.
    fn draw_outcome(&mut self) -> Outcome {
        let (link, random) = (&self.link, &mut self.random);
        let lost = random.chance_ppm(link.loss_ppm);
        let jitter_ns = random.below(link.jitter_ns + 1);
        let held_back = random.chance_ppm(link.reorder_ppm);
        let held_back_ns = 1 + random.below(link.reorder_ns);
        let copied = random.chance_ppm(link.duplicate_ppm);
        let copy_jitter_ns = random.below(link.jitter_ns + 1);
        Outcome {
            lost,
            jitter_ns,
            held_back_ns: held_back.then_some(held_back_ns),
            copy_jitter_ns: copied.then_some(copy_jitter_ns),
        }
    }
}
