//! Addresses for the clients of the access point: a DHCP server (RFC 2131) with a fixed number of leases.
//!
//! edge-dhcp 0.7, the DHCP server for `no_std`, is not used: it reads the broadcast flag from the wrong byte, and
//! ignores clients whose host name is not UTF-8 or whose options are padded.

mod message;

use core::net::Ipv4Addr;
use message::{Kind, Offered, Request};

/// Address of the logger in its access point. The network has 24 bits.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 4, 1);
/// Port on which the server receives.
pub const DHCP_SERVER_PORT: u16 = 67;
/// Port to which the server sends.
pub const DHCP_CLIENT_PORT: u16 = 68;
/// Number of addresses for clients, more than the radio accepts clients. They follow [`ADDRESS`].
pub const LEASES: usize = 16;
/// Memory that a reply takes at most. Every client accepts this length (RFC 951).
pub const REPLY_BYTES: usize = 300;

/// Duration of a lease, in s. Clients renew it after half of this time.
const LEASE_S: u32 = 600;
/// Time for which an offered address is kept for a client, in s.
const OFFER_S: u64 = 10;
/// Hardware address of a lease without a client.
const NOBODY: [u8; 6] = [0; 6];

/// A DHCP server.
#[derive(Debug)]
pub struct AddressServer {
    leases: [Lease; LEASES],
}

/// Use of an address. It stays with its client after it has expired, until another client needs it.
#[derive(Clone, Copy, Debug)]
struct Lease {
    mac: [u8; 6],
    until_s: u64,
}

/// A reply, in the memory that the caller passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of bytes.
    pub bytes: usize,
    /// Destination; its port is [`DHCP_CLIENT_PORT`].
    pub to: Ipv4Addr,
}

impl Default for AddressServer {
    fn default() -> Self {
        AddressServer::new()
    }
}

impl AddressServer {
    /// Creates a server without leases.
    pub const fn new() -> AddressServer {
        let free = Lease {
            mac: NOBODY,
            until_s: 0,
        };
        AddressServer {
            leases: [free; LEASES],
        }
    }

    /// Handles a received packet; returns the reply, if the packet is a request that needs one. `now_s` belongs to a
    /// clock that never goes back.
    pub fn handle(
        &mut self,
        packet: &[u8],
        reply: &mut [u8; REPLY_BYTES],
        now_s: u64,
    ) -> Option<Reply> {
        let request = Request::parse(packet)?;
        if request.server.is_some_and(|server| server != ADDRESS) {
            // The client has chosen another server.
            self.release(request.mac, now_s);
            return None;
        }
        let (kind, address) = match request.kind {
            Kind::Discover => (Offered::Offer, self.offer(&request, now_s)?),
            Kind::Request => match self.lease(&request, now_s) {
                Some(address) => (Offered::Acknowledgement, address),
                None => (Offered::Refusal, Ipv4Addr::UNSPECIFIED),
            },
            Kind::Release => {
                self.release(request.mac, now_s);
                return None;
            }
            Kind::Decline => {
                self.decline(&request, now_s);
                return None;
            }
        };
        let to = match (kind, request.client_address) {
            (Offered::Acknowledgement, Some(address)) => address,
            // The client has no address yet.
            _ => Ipv4Addr::BROADCAST,
        };
        let bytes = message::write(reply, &request, kind, address, LEASE_S);
        Some(Reply { bytes, to })
    }

    /// Chooses an address, and keeps it for a moment.
    fn offer(&mut self, request: &Request, now_s: u64) -> Option<Ipv4Addr> {
        let wanted = request.requested.and_then(index_of);
        let index = self
            .index_of_client(request.mac)
            .or_else(|| wanted.filter(|index| self.leases[*index].until_s <= now_s))
            .or_else(|| self.oldest(now_s))?;
        let until_s = self.leases[index].until_s.max(now_s + OFFER_S);
        self.leases[index] = Lease {
            mac: request.mac,
            until_s,
        };
        Some(address_of(index))
    }

    /// Leases the address that a client asks for, unless another one has it.
    fn lease(&mut self, request: &Request, now_s: u64) -> Option<Ipv4Addr> {
        let index = request.requested.or(request.client_address);
        let index = index.and_then(index_of)?;
        let Lease { mac, until_s } = self.leases[index];
        if mac != request.mac && until_s > now_s {
            return None;
        }
        self.release(request.mac, now_s);
        self.leases[index] = Lease {
            mac: request.mac,
            until_s: now_s + u64::from(LEASE_S),
        };
        Some(address_of(index))
    }

    /// Ends the lease of a client.
    fn release(&mut self, mac: [u8; 6], now_s: u64) {
        if let Some(index) = self.index_of_client(mac) {
            let lease = &mut self.leases[index];
            lease.until_s = lease.until_s.min(now_s);
        }
    }

    /// Takes an address out of use for a while, because a client found that another device has it.
    fn decline(&mut self, request: &Request, now_s: u64) {
        let index = request.requested.and_then(index_of);
        if let Some(index) = index.filter(|index| self.leases[*index].mac == request.mac) {
            self.leases[index] = Lease {
                mac: NOBODY,
                until_s: now_s + u64::from(LEASE_S),
            };
        }
    }

    fn index_of_client(&self, mac: [u8; 6]) -> Option<usize> {
        let of_client = self.leases.iter().enumerate();
        let of_client = of_client.filter(|(_, lease)| lease.mac == mac);
        let last = of_client.max_by_key(|(_, lease)| lease.until_s);
        last.map(|(index, _)| index)
    }

    /// Returns the address that has been free for the longest time.
    fn oldest(&self, now_s: u64) -> Option<usize> {
        let free = self.leases.iter().enumerate();
        let free = free.filter(|(_, lease)| lease.until_s <= now_s);
        free.min_by_key(|(_, lease)| lease.until_s)
            .map(|(index, _)| index)
    }
}

/// Returns the address of a lease.
fn address_of(index: usize) -> Ipv4Addr {
    let first = u32::from(ADDRESS) + 1;
    Ipv4Addr::from(first + index as u32)
}

/// Returns the lease of an address.
fn index_of(address: Ipv4Addr) -> Option<usize> {
    let index = u32::from(address).checked_sub(u32::from(ADDRESS) + 1)?;
    (index < LEASES as u32).then_some(index as usize)
}

#[cfg(test)]
mod tests;
