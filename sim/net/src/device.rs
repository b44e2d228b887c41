//! A link as a network device of smoltcp.

use cardiograph_sim_world::link::Sender;
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// Packets between a stack and its end of a link.
pub(crate) struct Device {
    sender: Sender,
    /// Packets that have arrived and are not processed yet.
    inbox: VecDeque<Vec<u8>>,
    /// Answers to received packets that found the link's queue full. At most one per received packet.
    outbox: VecDeque<Vec<u8>>,
}

impl Device {
    pub(crate) fn new(sender: Sender) -> Device {
        Device {
            sender,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
        }
    }

    /// Accepts a packet from the link.
    pub(crate) fn receive_packet(&mut self, packet: Vec<u8>) {
        self.inbox.push_back(packet);
    }

    /// Sends waiting answers while the link has room.
    pub(crate) fn flush(&mut self) {
        while let Some(packet) = self.outbox.front()
            && self.sender.try_send(packet).is_ok()
        {
            self.outbox.pop_front();
        }
    }

    /// Returns the time at which the link has room again, in ns; `None` if it has room.
    pub(crate) fn full_until_ns(&self) -> Option<u64> {
        self.sender.full_until_ns()
    }

    fn send(&mut self, packet: Vec<u8>) {
        if !self.outbox.is_empty() || self.sender.try_send(&packet).is_err() {
            self.outbox.push_back(packet);
        }
    }
}

/// A received packet.
pub(crate) struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, process: F) -> R {
        process(&self.0)
    }
}

/// Permission to send one packet.
pub(crate) struct Permit<'a>(&'a mut Device);

impl phy::TxToken for Permit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length_bytes: usize, fill: F) -> R {
        let mut packet = vec![0; length_bytes];
        let result = fill(&mut packet);
        self.0.send(packet);
        result
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Received;
    type TxToken<'a> = Permit<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Permit<'_>)> {
        let packet = self.inbox.pop_front()?;
        Some((Received(packet), Permit(self)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Permit<'_>> {
        let has_room = self.outbox.is_empty() && self.full_until_ns().is_none();
        has_room.then_some(Permit(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.sender.mtu_bytes();
        // A link loses packets but never flips bits in them.
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}
