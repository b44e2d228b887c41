//! Messages of DHCP: a header of 240 bytes and options.

use super::{ADDRESS, REPLY_BYTES};
use core::net::Ipv4Addr;

const FROM_CLIENT: u8 = 1;
const FROM_SERVER: u8 = 2;
/// Ethernet, whose addresses have 6 bytes.
const HARDWARE: [u8; 2] = [1, 6];
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Positions in the header.
const TRANSACTION: usize = 4;
const FLAGS: usize = 10;
const CLIENT_ADDRESS: usize = 12;
const YOUR_ADDRESS: usize = 16;
const RELAY: usize = 24;
const MAC: usize = 28;
const COOKIE_AT: usize = 236;
const OPTIONS: usize = 240;

/// Codes of options (RFC 2132).
const PADDING: u8 = 0;
const SUBNET: u8 = 1;
const ROUTER: u8 = 3;
const NAME_SERVER: u8 = 6;
const REQUESTED: u8 = 50;
const LEASE_TIME: u8 = 51;
const KIND: u8 = 53;
const SERVER: u8 = 54;
const END: u8 = 255;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Discover,
    Request,
    Decline,
    Release,
}

/// Kind of a reply, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    Offer = 2,
    Acknowledgement = 5,
    Refusal = 6,
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) mac: [u8; 6],
    /// Address that the client uses already.
    pub(super) client_address: Option<Ipv4Addr>,
    /// Address that it wants.
    pub(super) requested: Option<Ipv4Addr>,
    /// Server that it has chosen.
    pub(super) server: Option<Ipv4Addr>,
    transaction: [u8; 4],
    flags: [u8; 2],
}

impl Request {
    /// Parses a packet; `None` if it is no request, or damaged.
    pub(super) fn parse(packet: &[u8]) -> Option<Request> {
        let (header, options) = packet.split_first_chunk::<OPTIONS>()?;
        let mac = part(header, MAC);
        let is_request = header[0] == FROM_CLIENT
            && header[1..3] == HARDWARE
            && header[COOKIE_AT..] == COOKIE
            // There are no relays in the network of the access point.
            && part(header, RELAY) == [0; 4]
            && mac != super::NOBODY;
        if !is_request {
            return None;
        }
        let address = Ipv4Addr::from(part(header, CLIENT_ADDRESS));
        let mut request = Request {
            kind: Kind::Discover,
            mac,
            client_address: Some(address).filter(|address| !address.is_unspecified()),
            requested: None,
            server: None,
            transaction: part(header, TRANSACTION),
            flags: part(header, FLAGS),
        };
        let mut kind = None;
        let mut rest = options;
        while let Some((code, value)) = next(&mut rest)? {
            let address = || value.try_into().ok().map(|it: [u8; 4]| Ipv4Addr::from(it));
            match code {
                KIND => kind = Some(kind_of(value)?),
                REQUESTED => request.requested = Some(address()?),
                SERVER => request.server = Some(address()?),
                _ => (),
            }
        }
        request.kind = kind?;
        Some(request)
    }
}

fn kind_of(value: &[u8]) -> Option<Kind> {
    match value {
        [1] => Some(Kind::Discover),
        [3] => Some(Kind::Request),
        [4] => Some(Kind::Decline),
        [7] => Some(Kind::Release),
        _ => None,
    }
}

/// Returns code and value of the next option, or `Some(None)` after the last one; `None` if it is truncated.
fn next<'a>(rest: &mut &'a [u8]) -> Option<Option<(u8, &'a [u8])>> {
    loop {
        let Some((code, after)) = rest.split_first() else {
            return Some(None);
        };
        match *code {
            PADDING => *rest = after,
            END => return Some(None),
            code => {
                let (length, after) = after.split_first()?;
                let (value, after) = after.split_at_checked(usize::from(*length))?;
                *rest = after;
                return Some(Some((code, value)));
            }
        }
    }
}

/// Writes a reply; returns its length.
pub(super) fn write(
    reply: &mut [u8; REPLY_BYTES],
    request: &Request,
    kind: Offered,
    address: Ipv4Addr,
    lease_s: u32,
) -> usize {
    reply.fill(0);
    reply[0] = FROM_SERVER;
    reply[1..3].copy_from_slice(&HARDWARE);
    put(reply, TRANSACTION, &request.transaction);
    put(reply, FLAGS, &request.flags);
    put(reply, YOUR_ADDRESS, &address.octets());
    put(reply, MAC, &request.mac);
    put(reply, COOKIE_AT, &COOKIE);
    if let (Offered::Acknowledgement, Some(address)) = (kind, request.client_address) {
        put(reply, CLIENT_ADDRESS, &address.octets());
    }
    let mut at = OPTIONS;
    let mut option = |code, value: &[u8]| {
        put(reply, at, &[code, value.len() as u8]);
        put(reply, at + 2, value);
        at += 2 + value.len();
    };
    option(KIND, &[kind as u8]);
    option(SERVER, &ADDRESS.octets());
    if kind != Offered::Refusal {
        option(LEASE_TIME, &lease_s.to_be_bytes());
        option(SUBNET, &[255, 255, 255, 0]);
        // Android uses no network without a router and a name server, even if they lead nowhere.
        option(ROUTER, &ADDRESS.octets());
        option(NAME_SERVER, &ADDRESS.octets());
    }
    put(reply, at, &[END]);
    REPLY_BYTES
}

fn put(packet: &mut [u8; REPLY_BYTES], at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

fn part<const N: usize>(header: &[u8; OPTIONS], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&header[at..at + N]);
    part
}
