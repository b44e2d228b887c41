//! The name of the logger in the network, by multicast DNS (RFC 6762): `NAME.local`, and the service `_http._tcp`.
//!
//! The crate edge-mdns parses queries and builds answers. Probing for other devices of this name is left out: choose a
//! name of its own for each logger.

use core::net::{Ipv4Addr, Ipv6Addr};
use edge_mdns::domain::base::Ttl;
use edge_mdns::host::{Host, Service, ServiceAnswers};
use edge_mdns::{HostAnswersMdnsHandler, MdnsHandler, MdnsRequest, MdnsResponse};

/// Address to which queries and answers are sent.
pub const MDNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
/// Port of queries and answers.
pub const MDNS_PORT: u16 = 5353;

/// Time for which others may use an answer, in s (RFC 6762, section 10).
const TTL_S: u32 = 120;
const HTTP_PORT: u16 = 80;

/// Answers queries for the logger's name.
#[derive(Clone, Debug)]
pub struct Responder<'a> {
    name: &'a str,
    address: Ipv4Addr,
}

/// Destination of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everybody: [`MDNS_ADDRESS`] and [`MDNS_PORT`].
    All,
    /// The sender of the query, which does not take part in multicast DNS itself.
    Sender,
}

impl<'a> Responder<'a> {
    /// Creates a responder for a name of the settings.
    pub fn new(name: &'a str, address: Ipv4Addr) -> Responder<'a> {
        Responder { name, address }
    }

    /// Writes an announcement of the name; returns its length. The memory must have 512 bytes.
    pub fn announce(&self, answer: &mut [u8]) -> Option<usize> {
        self.answer(MdnsRequest::None, answer)
    }

    /// Handles a received packet from a port; returns length and destination of the answer, if the packet is a query
    /// that needs one. The memory must have 512 bytes.
    pub fn handle(&self, packet: &[u8], port: u16, answer: &mut [u8]) -> Option<(usize, Target)> {
        let target = match port {
            MDNS_PORT => Target::All,
            _ => Target::Sender,
        };
        let query = MdnsRequest::Request {
            legacy: target == Target::Sender,
            multicast: true,
            data: packet,
        };
        let bytes = self.answer(query, answer)?;
        Some((bytes, target))
    }

    fn answer(&self, request: MdnsRequest, answer: &mut [u8]) -> Option<usize> {
        let host = Host {
            hostname: self.name,
            ipv4: self.address,
            ipv6: Ipv6Addr::UNSPECIFIED,
            ttl: Ttl::from_secs(TTL_S),
        };
        let service = Service {
            name: self.name,
            priority: 0,
            weight: 0,
            service: "_http",
            protocol: "_tcp",
            port: HTTP_PORT,
            service_subtypes: &[],
            txt_kvs: &[],
        };
        let mut handler = HostAnswersMdnsHandler::new(ServiceAnswers::new(&host, &service));
        match handler.handle(request, answer) {
            Ok(MdnsResponse::Reply { data, .. }) => Some(data.len()),
            // Damaged, or too many questions for the memory.
            Ok(MdnsResponse::None) | Err(_) => None,
        }
    }
}
