//! The time from a server: SNTP (RFC 4330), one request and one reply of 48 bytes.
//!
//! The request carries a random number in place of the device's time, which the server returns: a reply to another
//! request, or from somebody who has not seen the request, does not fit. The time is that of the reply plus half of the
//! round trip.
//!
//! # Eras
//!
//! NTP counts seconds in 32 bits, from 1900; the count wraps in 2036. No device is used before 2024, so smaller values
//! belong to the next era. Times from 2100 on are refused: a server that believes that it is 1970 seems to say 2106.
//!
//! # Leap seconds
//!
//! The announcement of a leap second is ignored: Unix time, in which the recorder counts, repeats the second, and the
//! next request corrects the clock. A server that says that it is not synchronised is refused.

use core::fmt;

/// Port of the server.
pub const SNTP_PORT: u16 = 123;
/// Length of request and reply.
pub const SNTP_BYTES: usize = 48;

/// Seconds from 1900-01-01 to 1970-01-01.
const UNIX_EPOCH_S: u64 = 2_208_988_800;
/// Length of an era, in seconds.
const ERA_S: u64 = 1 << 32;
/// 2024-01-01, before the first use of any device, in seconds since 1970.
const EARLIEST_S: u64 = 1_704_067_200;
/// 2100-01-01, in seconds since 1970.
const LATEST_S: u64 = 4_102_444_800;
/// Longest round trip, in ms: the error of the time is at most half of it.
const ROUND_TRIP_MS_MAX: u64 = 2000;

const VERSION: u8 = 4;
const CLIENT: u8 = 3;
const SERVER: u8 = 4;
/// Leap indicator of a server that is not synchronised.
const UNSYNCHRONISED: u8 = 3;
/// Highest stratum of a synchronised server.
const STRATUM_MAX: u8 = 15;

/// Positions in the packet.
const REFERENCE_ID: usize = 12;
const ORIGINATE: usize = 24;
const RECEIVE: usize = 32;
const TRANSMIT: usize = 40;

/// A request, whose reply is awaited.
#[derive(Clone, Debug)]
pub struct TimeRequest {
    nonce: [u8; 8],
    sent_ms: u64,
}

/// Reason why a reply is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// It is too short, or no reply of a server.
    NoReply,
    /// It answers another request.
    OtherRequest,
    /// The server refuses, with a code such as `RATE`: it must not be asked again soon.
    Refused([u8; 4]),
    /// The server is not synchronised.
    Unsynchronised,
    /// The round trip took longer than 2 s.
    TooSlow,
    /// The time is not between 2024 and 2099.
    Implausible,
}

impl TimeRequest {
    /// Creates a request at `now_ms` of a clock that never goes back. `nonce` is random.
    pub fn new(nonce: u64, now_ms: u64) -> TimeRequest {
        TimeRequest {
            // All zeros would mean "no time".
            nonce: nonce.max(1).to_be_bytes(),
            sent_ms: now_ms,
        }
    }

    /// Returns the packet.
    pub fn packet(&self) -> [u8; SNTP_BYTES] {
        let mut packet = [0; SNTP_BYTES];
        packet[0] = VERSION << 3 | CLIENT;
        packet[TRANSMIT..].copy_from_slice(&self.nonce);
        packet
    }

    /// Returns the time at `now_ms`, in ms since 1970, from a received packet.
    ///
    /// # Errors
    /// A [`TimeError`]. After [`TimeError::NoReply`] and [`TimeError::OtherRequest`], the reply may still arrive.
    pub fn unix_ms(&self, reply: &[u8], now_ms: u64) -> Result<u64, TimeError> {
        // Extensions may follow.
        let reply: &[u8; SNTP_BYTES] = reply.first_chunk().ok_or(TimeError::NoReply)?;
        let (leap, version, mode) = (reply[0] >> 6, reply[0] >> 3 & 7, reply[0] & 7);
        if mode != SERVER || !(3..=VERSION).contains(&version) {
            return Err(TimeError::NoReply);
        }
        if reply[ORIGINATE..RECEIVE] != self.nonce {
            return Err(TimeError::OtherRequest);
        }
        match reply[1] {
            0 => return Err(TimeError::Refused(four(reply, REFERENCE_ID))),
            1..=STRATUM_MAX if leap != UNSYNCHRONISED => (),
            _ => return Err(TimeError::Unsynchronised),
        }
        let took_ms = now_ms.checked_sub(self.sent_ms);
        let took_ms = took_ms.filter(|took_ms| *took_ms <= ROUND_TRIP_MS_MAX);
        let took_ms = took_ms.ok_or(TimeError::TooSlow)?;
        if reply[TRANSMIT..] == [0; 8] {
            return Err(TimeError::Implausible);
        }
        let received = unix_ms(four(reply, RECEIVE), four(reply, RECEIVE + 4));
        let sent = unix_ms(four(reply, TRANSMIT), four(reply, TRANSMIT + 4));
        let (Some(received), Some(sent)) = (received, sent) else {
            return Err(TimeError::Implausible);
        };
        let served_ms = sent.checked_sub(received).ok_or(TimeError::Implausible)?;
        // A server cannot have taken longer than the whole round trip.
        let way_ms = took_ms.saturating_sub(served_ms) / 2;
        Ok(sent + way_ms)
    }
}

/// Converts a time of NTP; `None` if it is implausible.
fn unix_ms(seconds: [u8; 4], fraction: [u8; 4]) -> Option<u64> {
    let seconds = u64::from(u32::from_be_bytes(seconds));
    let fraction = u64::from(u32::from_be_bytes(fraction));
    let era_s = match seconds < UNIX_EPOCH_S + EARLIEST_S {
        true => ERA_S,
        false => 0,
    };
    let unix_s = seconds + era_s - UNIX_EPOCH_S;
    (EARLIEST_S..LATEST_S)
        .contains(&unix_s)
        .then_some(unix_s * 1000 + ((fraction * 1000) >> 32))
}

fn four(packet: &[u8; SNTP_BYTES], at: usize) -> [u8; 4] {
    [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            TimeError::NoReply => "the packet is no reply of a time server",
            TimeError::OtherRequest => "the reply belongs to another request",
            TimeError::Refused(_) => {
                "the time server refuses requests; ask it more rarely, or choose another one"
            }
            TimeError::Unsynchronised => {
                "the time server does not know the time; try again later, or choose another one"
            }
            TimeError::TooSlow => {
                "the reply took longer than 2 s; try again, or choose a server nearby"
            }
            TimeError::Implausible => {
                "the time of the server is not between 2024 and 2099; choose another one"
            }
        })
    }
}

impl core::error::Error for TimeError {}

#[cfg(test)]
mod tests;
