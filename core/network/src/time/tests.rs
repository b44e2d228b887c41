use super::*;
use proptest::prelude::*;

/// 2026-11-24 00:00:00 UTC, in seconds since 1970.
const NOW_S: u64 = 1_795_478_400;

fn ntp(unix_ms: u64) -> [u8; 8] {
    let seconds = (unix_ms / 1000 + UNIX_EPOCH_S) as u32;
    let fraction = ((unix_ms % 1000) << 32).div_ceil(1000) as u32;
    ((u64::from(seconds)) << 32 | u64::from(fraction)).to_be_bytes()
}

/// The reply of a server that takes 10 ms.
fn reply(request: &[u8; SNTP_BYTES], unix_ms: u64) -> [u8; SNTP_BYTES] {
    let mut reply = [0; SNTP_BYTES];
    reply[0] = VERSION << 3 | SERVER;
    reply[1] = 2;
    reply[ORIGINATE..RECEIVE].copy_from_slice(&request[TRANSMIT..]);
    reply[RECEIVE..TRANSMIT].copy_from_slice(&ntp(unix_ms));
    reply[TRANSMIT..].copy_from_slice(&ntp(unix_ms + 10));
    reply
}

fn request() -> TimeRequest {
    TimeRequest::new(0x0123_4567_89AB_CDEF, 5000)
}

/// Returns the result for a reply that was changed.
fn changed(change: impl Fn(&mut [u8; SNTP_BYTES])) -> Result<u64, TimeError> {
    let mut packet = reply(&request().packet(), NOW_S * 1000);
    change(&mut packet);
    request().unix_ms(&packet, 5050)
}

#[test]
fn half_of_the_way_is_added() {
    // 50 ms, of which the server takes 10: the reply is 20 ms old.
    assert_eq!(changed(|_| ()), Ok(NOW_S * 1000 + 10 + 20));
}

#[test]
fn the_count_wraps_in_2036() {
    // 2036-02-07 06:28:16 UTC is the first second of era 1 (RFC 5905, figure 4).
    let wrap_s = ERA_S - UNIX_EPOCH_S;
    assert_eq!(wrap_s, 2_085_978_496);
    for unix_s in [
        EARLIEST_S,
        NOW_S,
        wrap_s - 1,
        wrap_s,
        wrap_s + 1,
        LATEST_S - 1,
    ] {
        let packet = reply(&request().packet(), unix_s * 1000);
        assert_eq!(
            request().unix_ms(&packet, 5010),
            Ok(unix_s * 1000 + 10),
            "{unix_s}"
        );
    }
    for unix_s in [EARLIEST_S - 1, LATEST_S, 0, 946_684_800] {
        let packet = reply(&request().packet(), unix_s * 1000);
        assert_eq!(
            request().unix_ms(&packet, 5010),
            Err(TimeError::Implausible),
            "{unix_s}"
        );
    }
}

#[test]
fn replies_that_are_not_used() {
    assert_eq!(
        changed(|packet| packet[0] = VERSION << 3 | CLIENT),
        Err(TimeError::NoReply)
    );
    assert_eq!(
        changed(|packet| packet[0] = 7 << 3 | SERVER),
        Err(TimeError::NoReply)
    );
    assert_eq!(
        changed(|packet| packet[ORIGINATE] ^= 1),
        Err(TimeError::OtherRequest)
    );
    assert_eq!(
        changed(|packet| packet[0] |= 0xC0),
        Err(TimeError::Unsynchronised)
    );
    assert_eq!(
        changed(|packet| packet[1] = 16),
        Err(TimeError::Unsynchronised)
    );
    let refused = changed(|packet| {
        packet[1] = 0;
        packet[REFERENCE_ID..REFERENCE_ID + 4].copy_from_slice(b"RATE");
    });
    assert_eq!(refused, Err(TimeError::Refused(*b"RATE")));
    assert_eq!(
        changed(|packet| packet[TRANSMIT..].fill(0)),
        Err(TimeError::Implausible)
    );
    // Sent before it was received.
    let backwards = changed(|packet| packet[TRANSMIT..].copy_from_slice(&ntp(NOW_S * 1000 - 1)));
    assert_eq!(backwards, Err(TimeError::Implausible));
    let packet = reply(&request().packet(), NOW_S * 1000);
    assert_eq!(
        request().unix_ms(&packet[..47], 5050),
        Err(TimeError::NoReply)
    );
    assert_eq!(request().unix_ms(&packet, 7001), Err(TimeError::TooSlow));
    assert_eq!(request().unix_ms(&packet, 4999), Err(TimeError::TooSlow));
}

#[test]
fn leap_seconds_are_announced_without_effect() {
    for leap in [1, 2] {
        assert_eq!(changed(|packet| packet[0] |= leap << 6), changed(|_| ()));
    }
}

proptest! {
    #[test]
    fn any_packet_gives_a_plausible_time_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        now_ms: u64,
        is_ours: bool,
    ) {
        let request = request();
        let mut bytes = bytes;
        if let (true, Some(packet)) = (is_ours, bytes.first_chunk_mut::<SNTP_BYTES>()) {
            packet[0] = packet[0] & 0xC0 | VERSION << 3 | SERVER;
            packet[ORIGINATE..RECEIVE].copy_from_slice(&request.nonce);
        }
        if let Ok(unix_ms) = request.unix_ms(&bytes, now_ms) {
            prop_assert!(is_ours);
            prop_assert!((EARLIEST_S * 1000..LATEST_S * 1000 + ROUND_TRIP_MS_MAX).contains(&unix_ms));
        }
    }

    #[test]
    fn the_error_is_at_most_half_of_the_round_trip(
        unix_ms in EARLIEST_S * 1000..(LATEST_S - 10) * 1000,
        there_ms in 0..900_u64,
        back_ms in 0..900_u64,
    ) {
        let request = request();
        let packet = reply(&request.packet(), unix_ms + there_ms);
        let took_ms = there_ms + 10 + back_ms;
        let found = request.unix_ms(&packet, 5000 + took_ms).unwrap();
        prop_assert!(found.abs_diff(unix_ms + took_ms) <= there_ms.max(back_ms) / 2 + 1);
    }
}
