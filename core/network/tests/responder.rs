//! Queries written byte by byte (RFC 1035), and the answers to them.

use cardiograph_network::{MDNS_PORT, Responder, Target};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 4, 1);
const A: u8 = 1;
const PTR: u8 = 12;

fn responder() -> Responder<'static> {
    Responder::new("barn", ADDRESS)
}

/// A query with one question.
fn query(labels: &[&str], kind: u8) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, kind, 0, 1]);
    bytes
}

fn answer(query: &[u8], port: u16) -> Option<(Vec<u8>, Target)> {
    let mut memory = [0; 512];
    let (bytes, target) = responder().handle(query, port, &mut memory)?;
    Some((memory[..bytes].to_vec(), target))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

#[test]
fn the_name_has_the_address() {
    for labels in [["barn", "local"], ["BARN", "Local"]] {
        let (bytes, target) = answer(&query(&labels, A), MDNS_PORT).unwrap();
        assert_eq!(target, Target::All);
        // Response, authoritative; one answer.
        assert_eq!(bytes[2..4], [0x84, 0]);
        assert_eq!(bytes[6..8], [0, 1]);
        // Type A, class IN, 120 s, four bytes.
        let record = [0, A, 0, 1, 0, 0, 0, 120, 0, 4, 192, 168, 4, 1];
        assert!(contains(&bytes, &record), "{bytes:?}");
    }
}

#[test]
fn a_simple_resolver_gets_the_answer_itself() {
    let (bytes, target) = answer(&query(&["barn", "local"], A), 40_000).unwrap();
    assert_eq!(target, Target::Sender);
    assert_eq!(bytes[..2], [0x12, 0x34], "number of the query");
    assert!(contains(&bytes, &ADDRESS.octets()));
}

#[test]
fn the_server_is_found_as_a_service() {
    let (bytes, _) = answer(&query(&["_http", "_tcp", "local"], PTR), MDNS_PORT).unwrap();
    assert!(contains(&bytes, b"\x04barn"));
    let mut memory = [0; 512];
    let length = responder().announce(&mut memory).unwrap();
    assert!(contains(&memory[..length], b"\x05_http\x04_tcp\x05local"));
}

#[test]
fn other_names_and_responses_are_not_answered() {
    assert_eq!(answer(&query(&["barn2", "local"], A), MDNS_PORT), None);
    assert_eq!(answer(&query(&["barn", "example"], A), MDNS_PORT), None);
    let mut response = query(&["barn", "local"], A);
    response[2] = 0x84;
    assert_eq!(answer(&response, MDNS_PORT), None);
}

#[test]
fn the_longest_name_fits() {
    let name = "a".repeat(cardiograph_network::NAME_BYTES_MAX);
    let responder = Responder::new(&name, ADDRESS);
    let mut memory = [0; 512];
    assert!(responder.announce(&mut memory).is_some());
    let query = query(&["_http", "_tcp", "local"], PTR);
    assert!(responder.handle(&query, MDNS_PORT, &mut memory).is_some());
}

proptest! {
    #[test]
    fn any_packet_is_answered_or_ignored(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        port: u16,
        questions in 0..40_u16,
        is_query: bool,
    ) {
        let mut bytes = bytes;
        if is_query {
            bytes.splice(0..bytes.len().min(12), query(&["barn", "local"], 255));
            bytes[4..6].copy_from_slice(&questions.to_be_bytes());
        }
        if let Some((answer, _)) = answer(&bytes, port) {
            prop_assert!(answer.len() >= 12);
        }
    }
}
