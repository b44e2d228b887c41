//! Arbitrary bytes as settings of the network, and as packets of DHCP, SNTP and multicast DNS: all of them terminate
//! without a panic, and accept only what their formats allow. The first byte selects one.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_network::{
    ADDRESS, AddressServer, LEASES, REPLY_BYTES, Responder, Settings, TimeRequest,
};
use std::net::Ipv4Addr;

const NONCE: u64 = u64::from_be_bytes(*b"nonce678");
/// 2024 to 2099, and the round trip, in ms since 1970.
const UNIX_MS: std::ops::Range<u64> = 1_704_067_200_000..4_102_444_802_000;

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => settings(bytes),
        1 => addresses(bytes),
        2 => time(bytes),
        _ => name(bytes),
    }
});

fn settings(file: &[u8]) {
    let lines = file.split(|byte| *byte == b'\n').count();
    match Settings::parse(file) {
        Ok(settings) => {
            assert!((1..=24).contains(&settings.name.len()));
            if let Some(router) = settings.router {
                assert!((1..=32).contains(&router.ssid.len()));
                if let Some(password) = router.password {
                    let password = password.as_str();
                    assert!((8..=63).contains(&password.len()));
                    assert!(password.bytes().all(|byte| (0x20..0x7F).contains(&byte)));
                }
            }
        }
        Err(error) => {
            assert!(usize::from(error.line) <= lines);
            assert!(error.to_string().contains(';'), "no remedy: {error}");
        }
    }
}

/// An input holds several packets of 260 bytes.
fn addresses(bytes: &[u8]) {
    let mut server = AddressServer::new();
    let mut reply = [0; REPLY_BYTES];
    for (second, packet) in bytes.chunks(260).enumerate() {
        let Some(found) = server.handle(packet, &mut reply, second as u64) else {
            continue;
        };
        assert_eq!((found.bytes, reply[0]), (REPLY_BYTES, 2));
        assert_eq!(reply[4..8], packet[4..8]);
        let address = Ipv4Addr::new(reply[16], reply[17], reply[18], reply[19]);
        let index = u32::from(address).wrapping_sub(u32::from(ADDRESS) + 1);
        // Kind 6 is a refusal, without an address.
        assert!(address.is_unspecified() == (reply[242] == 6));
        assert!(address.is_unspecified() || index < LEASES as u32);
    }
}

fn time(packet: &[u8]) {
    let request = TimeRequest::new(NONCE, 1000);
    if let Ok(unix_ms) = request.unix_ms(packet, 1500) {
        assert_eq!(packet[24..32], NONCE.to_be_bytes());
        assert!(UNIX_MS.contains(&unix_ms));
    }
}

fn name(packet: &[u8]) {
    let responder = Responder::new("barn", ADDRESS);
    let mut answer = [0; 512];
    for port in [5353, 40_000] {
        if let Some((bytes, _)) = responder.handle(packet, port, &mut answer) {
            assert!((12..=512).contains(&bytes));
        }
    }
}
