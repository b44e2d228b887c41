use super::*;
use proptest::prelude::*;
use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress};
use std::collections::BTreeMap;
use std::vec::Vec;

const TRANSACTION: u32 = 0x1234_5678;

fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// A message of smoltcp's client.
fn message(kind: DhcpMessageType, number: u8) -> DhcpRepr<'static> {
    DhcpRepr {
        message_type: kind,
        transaction_id: TRANSACTION,
        secs: 0,
        client_hardware_address: EthernetAddress(mac(number)),
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: Ipv4Addr::UNSPECIFIED,
        server_ip: Ipv4Addr::UNSPECIFIED,
        router: None,
        subnet_mask: None,
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: Some(EthernetAddress(mac(number))),
        server_identifier: None,
        parameter_request_list: Some(&[1, 3, 6]),
        dns_servers: None,
        max_size: Some(1432),
        lease_duration: None,
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    }
}

fn bytes_of(message: &DhcpRepr) -> Vec<u8> {
    let mut bytes = std::vec![0; message.buffer_len()];
    let mut packet = DhcpPacket::new_unchecked(&mut bytes);
    message.emit(&mut packet).unwrap();
    bytes
}

/// Sends a message; returns kind, address and destination of the reply, as smoltcp reads it.
fn send(
    server: &mut AddressServer,
    message: &DhcpRepr,
    now_s: u64,
) -> Option<(DhcpMessageType, Ipv4Addr, Ipv4Addr)> {
    let mut reply = [0xAA; REPLY_BYTES];
    let Reply { bytes, to } = server.handle(&bytes_of(message), &mut reply, now_s)?;
    let packet = DhcpPacket::new_checked(&reply[..bytes]).unwrap();
    let read = DhcpRepr::parse(&packet).unwrap();
    assert_eq!(read.transaction_id, TRANSACTION);
    assert_eq!(read.broadcast, message.broadcast);
    assert_eq!(
        read.client_hardware_address,
        message.client_hardware_address
    );
    assert_eq!(read.server_identifier, Some(ADDRESS));
    if read.message_type != DhcpMessageType::Nak {
        assert_eq!(read.lease_duration, Some(LEASE_S));
        assert_eq!(read.subnet_mask, Some(Ipv4Addr::new(255, 255, 255, 0)));
        assert_eq!(read.router, Some(ADDRESS));
    }
    Some((read.message_type, read.your_ip, to))
}

fn discover(server: &mut AddressServer, number: u8, now_s: u64) -> Option<Ipv4Addr> {
    let (kind, address, to) = send(server, &message(DhcpMessageType::Discover, number), now_s)?;
    assert_eq!((kind, to), (DhcpMessageType::Offer, Ipv4Addr::BROADCAST));
    Some(address)
}

fn request(number: u8, address: Ipv4Addr) -> DhcpRepr<'static> {
    DhcpRepr {
        requested_ip: Some(address),
        server_identifier: Some(ADDRESS),
        ..message(DhcpMessageType::Request, number)
    }
}

/// Gets an address, or fails.
fn join(server: &mut AddressServer, number: u8, now_s: u64) -> Option<Ipv4Addr> {
    let address = discover(server, number, now_s)?;
    let (kind, leased, _) = send(server, &request(number, address), now_s)?;
    assert_eq!((kind, leased), (DhcpMessageType::Ack, address));
    Some(address)
}

#[test]
fn clients_get_different_addresses_and_keep_them() {
    let mut server = AddressServer::new();
    let addresses: Vec<_> = (1..=16)
        .map(|number| join(&mut server, number, 5).unwrap())
        .collect();
    for (at, address) in addresses.iter().enumerate() {
        assert!(!addresses[..at].contains(address));
        assert_eq!(address.octets()[..3], ADDRESS.octets()[..3]);
        assert_eq!(join(&mut server, at as u8 + 1, 300), Some(*address));
    }
    // All are in use.
    assert_eq!(discover(&mut server, 17, 899), None);
    // Client 1 renews in time; the others expire.
    let renewal = DhcpRepr {
        client_ip: addresses[0],
        ..message(DhcpMessageType::Request, 1)
    };
    let renewed = (DhcpMessageType::Ack, addresses[0], addresses[0]);
    assert_eq!(send(&mut server, &renewal, 899), Some(renewed));
    let new: Vec<_> = (17..=31)
        .map(|number| join(&mut server, number, 901).unwrap())
        .collect();
    assert!(!new.contains(&addresses[0]));
    assert_eq!(discover(&mut server, 32, 901), None);
}

#[test]
fn phones_with_random_addresses_do_not_fill_the_table() {
    let mut server = AddressServer::new();
    for visit in 0..1000_u64 {
        let number = (visit % 251) as u8;
        assert!(join(&mut server, number, visit * 60).is_some(), "{visit}");
    }
}

#[test]
fn an_address_of_another_client_or_network_is_refused() {
    let mut server = AddressServer::new();
    let address = join(&mut server, 1, 0).unwrap();
    let refused = (
        DhcpMessageType::Nak,
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::BROADCAST,
    );
    assert_eq!(send(&mut server, &request(2, address), 0), Some(refused));
    for address in [
        ADDRESS,
        Ipv4Addr::new(192, 168, 1, 7),
        Ipv4Addr::new(192, 168, 4, 18),
    ] {
        let known = DhcpRepr {
            server_identifier: None,
            ..request(2, address)
        };
        assert_eq!(send(&mut server, &known, 0), Some(refused), "{address}");
    }
}

#[test]
fn a_client_that_leaves_frees_its_address() {
    let mut server = AddressServer::new();
    for number in 1..=16 {
        join(&mut server, number, 0).unwrap();
    }
    let release = DhcpRepr {
        server_identifier: Some(ADDRESS),
        ..message(DhcpMessageType::Release, 7)
    };
    assert_eq!(send(&mut server, &release, 1), None);
    assert_eq!(discover(&mut server, 17, 1), Some(address_of(6)));
    // An offer that is not accepted, too.
    let elsewhere = DhcpRepr {
        server_identifier: Some(Ipv4Addr::new(192, 168, 4, 99)),
        ..message(DhcpMessageType::Request, 17)
    };
    assert_eq!(send(&mut server, &elsewhere, 1), None);
    assert_eq!(discover(&mut server, 18, 1), Some(address_of(6)));
    assert_eq!(discover(&mut server, 19, 10), None);
    assert_eq!(discover(&mut server, 19, 11), Some(address_of(6)));
}

#[test]
fn one_client_holds_one_address() {
    let mut server = AddressServer::new();
    for index in 0..LEASES {
        let address = address_of(index);
        let leased = send(&mut server, &request(1, address), 0);
        assert_eq!(leased.map(|(_, address, _)| address), Some(address));
    }
    for number in 2..=16 {
        assert!(join(&mut server, number, 0).is_some(), "{number}");
    }
}

#[test]
fn a_declined_address_is_not_offered_again_soon() {
    let mut server = AddressServer::new();
    let address = join(&mut server, 1, 0).unwrap();
    let decline = DhcpRepr {
        requested_ip: Some(address),
        server_identifier: Some(ADDRESS),
        ..message(DhcpMessageType::Decline, 1)
    };
    assert_eq!(send(&mut server, &decline, 0), None);
    assert_ne!(discover(&mut server, 1, 0), Some(address));
}

/// edge-dhcp 0.7 ignores these.
#[test]
fn padding_and_host_names_in_other_encodings_are_accepted() {
    let mut packet = bytes_of(&message(DhcpMessageType::Discover, 1));
    packet.truncate(240);
    packet[10] = 0x80;
    packet.extend([0, 0, 53, 1, 1, 12, 4, b'c', b'a', b'f', 0xE9, 0, 255]);
    let mut reply = [0; REPLY_BYTES];
    assert!(
        AddressServer::new()
            .handle(&packet, &mut reply, 0)
            .is_some()
    );
    assert_eq!(reply[10..12], [0x80, 0], "flags");
}

#[test]
fn other_packets_are_ignored() {
    let good = bytes_of(&message(DhcpMessageType::Discover, 1));
    let mut reply = [0; REPLY_BYTES];
    let mut handle = |packet: &[u8]| AddressServer::new().handle(packet, &mut reply, 0);
    assert!(handle(&good).is_some());
    for (at, value) in [(0, 2), (1, 6), (2, 16), (24, 1), (236, 0)] {
        let mut packet = good.clone();
        packet[at] = value;
        assert_eq!(handle(&packet), None, "byte {at}");
    }
    for length in 0..243 {
        assert_eq!(handle(&good[..length]), None, "{length} bytes");
    }
    assert_eq!(handle(&bytes_of(&message(DhcpMessageType::Offer, 1))), None);
}

proptest! {
    #[test]
    fn any_options_are_handled(
        options in proptest::collection::vec(any::<u8>(), 0..100),
        kind in 0..9_u8,
    ) {
        let mut packet = bytes_of(&message(DhcpMessageType::Discover, 1));
        packet.truncate(240);
        packet.extend([53, 1, kind]);
        packet.extend(options);
        let mut reply = [0; REPLY_BYTES];
        AddressServer::new().handle(&packet, &mut reply, 0);
    }

    /// In any order of requests, no two clients have the same address at the same time.
    #[test]
    fn no_address_is_leased_twice(
        steps in proptest::collection::vec((0..4_u8, 0..24_u8, 0..20_u8, 0..100_u64), 1..300),
    ) {
        let mut server = AddressServer::new();
        let mut leased = BTreeMap::new();
        let mut now_s = 0;
        for (kind, number, wanted, pause_s) in steps {
            now_s += pause_s;
            leased.retain(|_, (_, until_s)| *until_s > now_s);
            let wanted = Ipv4Addr::from(u32::from(ADDRESS) + u32::from(wanted));
            let kind = [
                DhcpMessageType::Discover,
                DhcpMessageType::Request,
                DhcpMessageType::Release,
                DhcpMessageType::Decline,
            ][usize::from(kind)];
            let sent = DhcpRepr { requested_ip: Some(wanted), ..message(kind, number) };
            match (kind, send(&mut server, &sent, now_s)) {
                (_, Some((DhcpMessageType::Ack, address, _))) => {
                    prop_assert_eq!(address, wanted);
                    leased.retain(|_, (owner, _)| *owner != number);
                    let (owner, _) = leased.insert(address, (number, now_s + 600)).unwrap_or((number, 0));
                    prop_assert_eq!(owner, number);
                }
                (_, Some((DhcpMessageType::Offer, address, _))) => {
                    let owner = leased.get(&address).map_or(number, |(owner, _)| *owner);
                    prop_assert_eq!(owner, number);
                }
                (DhcpMessageType::Release, _) => leased.retain(|_, (owner, _)| *owner != number),
                (DhcpMessageType::Decline, _) => {
                    leased.retain(|address, (owner, _)| *owner != number || *address != wanted);
                }
                _ => (),
            }
        }
    }
}
