//! Tuning constants and timeouts, with the reason for each value.

/// Clock during initialisation (6.4.1.1, 7.2.1): 100 to 400 kHz.
pub const ACQUIRE_CLOCK_HZ: u32 = 400_000;
/// Highest clock at default speed (4.3.10, 7.5): the recommended clock for [`Card`](crate::Card).
pub const CLOCK_HZ: u32 = 25_000_000;
/// Bytes clocked with chip select high after power-on: at least 74 clocks (6.4.1.1).
pub(crate) const POWER_UP_BYTES: usize = 10;
const _: () = assert!(8 * POWER_UP_BYTES >= 74);

/// Maximum number of filler bytes before a response (NCR of 7.5.4).
pub(crate) const NCR_BYTES_MAX: u32 = 8;

/// Longest busy time tolerated, in ns. The specification allows 250 ms, and 500 ms for some cards
/// (4.6.2.2); real cards exceed it. The time is the sum of the requested delays: late timers add to it.
pub const BUSY_NS_MAX: u32 = 3_000_000_000;
const _: () = assert!(BUSY_NS_MAX >= 4 * 500_000_000);
/// Longest wait for data, in ns: 100 ms by the specification (4.6.2.1).
pub const READ_NS_MAX: u32 = 1_000_000_000;
/// Longest initialisation, in ms: 1 s by the specification (4.2.3).
pub(crate) const ACQUIRE_MS_MAX: u32 = 2_000;
/// Pause between two ACMD41, in ms.
pub(crate) const ACQUIRE_STEP_MS: u32 = 1;

/// Retries of an operation, or of a block within a multi-block operation.
pub(crate) const RETRIES: u32 = 3;
/// Attempts to stop the card's current transfer and read its status before the card counts as removed.
pub(crate) const RECOVERY_ATTEMPTS: u32 = 4;

/// Bytes after which an interrupted card has received the rest of a block: data, checksum, and the data
/// response.
pub(crate) const DRAIN_BYTES: usize = 512 + 2 + 1;

/// Bytes on the bus per block of a stream: NWR, token, data, checksum, data response.
pub(crate) const STREAM_BLOCK_BYTES: u32 = 1 + 1 + 512 + 2 + 1;
/// Shortest pause between two polls of a busy card, in byte times.
pub(crate) const PAUSE_BYTES_MIN: u32 = 3;
/// Amount by which each block of a stream increases the budget for overshooting the end of busy, in byte
/// times.
pub(crate) const BUDGET_BYTES_PER_BLOCK: u32 = 6;
/// Divisor for pauses while the overshoot budget lasts: a pause is the busy time so far divided by this
/// value.
pub(crate) const PAUSE_DIVISOR: u32 = 8;
/// Divisor for pauses once the overshoot budget is used up: a pause may still be the busy time so far
/// divided by this value, which overshoots by less than half a percent and leaves the processor to other
/// tasks.
pub(crate) const LONG_WAIT_DIVISOR: u32 = 256;
/// Waits longer than this, in ns, are stalls. Stalls are rare, so past this point the pauses may be a
/// larger fraction of the wait.
pub(crate) const STALL_NS: u32 = 10_000_000;
/// Divisor for pauses in a stall: a pause may be the time beyond `STALL_NS` divided by this value.
pub(crate) const STALL_DIVISOR: u32 = 32;
/// Longest pause, in ns: negligible against the long busy times in which it occurs.
pub(crate) const PAUSE_NS_MAX: u32 = 1_000_000;

// Each block loses at most a pause, a poll and its budget increment, so 98 % of the bus time remains.
const _: () = assert!(
    100 * STREAM_BLOCK_BYTES
        >= 98 * (STREAM_BLOCK_BYTES + PAUSE_BYTES_MIN + 1 + BUDGET_BYTES_PER_BLOCK)
);
const _: () = assert!(BUSY_NS_MAX <= u32::MAX - PAUSE_NS_MAX);
