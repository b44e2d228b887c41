//! Every number that is chosen, and why.

/// Clock for finding out what card it is (6.4.1.1, 7.2.1): 100 to 400 kHz.
pub const ACQUIRE_CLOCK_HZ: u32 = 400_000;
/// Clock of a card at default speed (4.3.10, 7.5): what [`Card`](crate::Card) is best given.
pub const CLOCK_HZ: u32 = 25_000_000;
/// Bytes with chip select high after power came: at least 74 clocks (6.4.1.1).
pub(crate) const POWER_UP_BYTES: usize = 10;
const _: () = assert!(8 * POWER_UP_BYTES >= 74);

/// Bytes of silence before an answer, at most (NCR of 7.5.4).
pub(crate) const NCR_BYTES_MAX: u32 = 8;

/// Longest busy that is waited for, in ns. The specification allows 250 ms, and 500 ms to some cards
/// (4.6.2.2); real cards exceed it. What waits has asked for that long: timers may add to it.
pub const BUSY_NS_MAX: u32 = 3_000_000_000;
const _: () = assert!(BUSY_NS_MAX >= 4 * 500_000_000);
/// Longest wait for data, in ns: 100 ms by the specification (4.6.2.1).
pub const READ_NS_MAX: u32 = 1_000_000_000;
/// Longest initialisation, in ms: 1 s by the specification (4.2.3).
pub(crate) const ACQUIRE_MS_MAX: u32 = 2_000;
/// Between two looks at whether initialisation is over, in ms.
pub(crate) const ACQUIRE_STEP_MS: u32 = 1;

/// So often an operation, or a block of many, is tried again.
pub(crate) const RETRIES: u32 = 3;
/// So often a card is asked to stop and tell its status, before it counts as gone.
pub(crate) const RECOVERIES: u32 = 4;

/// Bytes after which a card that was cut off while it took a block has the whole of it: data, checksum,
/// and its answer.
pub(crate) const DRAIN_BYTES: usize = 512 + 2 + 1;

/// Bytes that a block of a stream takes: NWR, token, data, checksum, answer.
pub(crate) const STREAM_BLOCK_BYTES: u32 = 1 + 1 + 512 + 2 + 1;
/// Shortest pause between two looks at a busy card, in times of a byte.
pub(crate) const LOOK_BYTES: u32 = 3;
/// What each block of a stream adds to the time that may be lost before the end of some busy is
/// noticed, in times of a byte.
pub(crate) const SPARE_BYTES: u32 = 6;
/// A pause is this part of the busy time so far, while there is time to spare.
pub(crate) const PAUSE_PART: u32 = 8;
/// Without time to spare a pause may still be this part of the wait so far: what it loses of the time is
/// less than half a percent, and the processor gets the rest.
pub(crate) const LONG_WAIT_PART: u32 = 256;
/// A wait longer than this, in ns, is a stall: one of few, so that a larger part of what is above
/// may be lost.
pub(crate) const STALL_NS: u32 = 10_000_000;
/// That part.
pub(crate) const STALL_PART: u32 = 32;
/// Longest pause, in ns: as good as none against the long busy in which it occurs.
pub(crate) const PAUSE_NS_MAX: u32 = 1_000_000;

// Each block loses at most a pause, a look and what it adds: 98 % of the wire are left.
const _: () =
    assert!(100 * STREAM_BLOCK_BYTES >= 98 * (STREAM_BLOCK_BYTES + LOOK_BYTES + 1 + SPARE_BYTES));
const _: () = assert!(BUSY_NS_MAX <= u32::MAX - PAUSE_NS_MAX);
