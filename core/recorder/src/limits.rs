//! Every number that is chosen, and why.

use crate::session::{SESSION_NAME_BYTES_MAX, SETTINGS_BYTES_MAX};
use cardiograph_card::BLOCK_BYTES;

/// A text file has a mark at the end of every so many blocks: its true end is found by single reads of
/// those. A mark costs about half a line: less than half a percent of so many blocks.
///
/// Checkpoints are made there too, if samples come so quickly: a card that is stopped within one of its
/// pages has to put the beginning of the page elsewhere, and to clean up for it one day.
pub(crate) const MARK_BLOCKS: u32 = 64;
const _: () = assert!(MARK_BLOCKS.is_power_of_two());
/// A checkpoint may wait for the end of a page for this part of its window.
pub(crate) const STEP_PART: u64 = 4;

/// Bytes of a mark's fields, line end included: `@epoch index durable samples gaps lost age_ms crc`.
pub(crate) const MARK_TAIL_BYTES: usize = 1 + 8 * 8 + 7 + 2;
/// Most columns of a schema: an empty row of them comes before a mark or a gap.
pub const COLUMNS_MAX: usize = 32;
/// Least bytes of a line that holds a mark: an empty row, `#` and the fields.
pub(crate) const MARK_LINE_BYTES: usize = COLUMNS_MAX + 1 + MARK_TAIL_BYTES;
/// Longest line of a text file, its end included: one that goes on in a block with a mark leaves room for
/// it.
pub const LINE_BYTES_MAX: usize = BLOCK_BYTES - MARK_LINE_BYTES;
/// Longest line that tells of a gap.
pub(crate) const GAP_LINE_BYTES: usize = COLUMNS_MAX + 141;
const _: () = assert!(GAP_LINE_BYTES <= LINE_BYTES_MAX);
/// Longest line that tells about a file.
pub(crate) const FILE_LINE_BYTES: usize =
    COLUMNS_MAX + 102 + SESSION_NAME_BYTES_MAX + SETTINGS_BYTES_MAX;
const _: () = assert!(FILE_LINE_BYTES <= LINE_BYTES_MAX);

/// Most schemas of a format.
pub const SCHEMAS_MAX: usize = 8;

/// In a binary file each stream repeats its header after so many blocks: recovery finds the headers of all
/// streams by reading back no further than twice that. Four streams spend 0.8 % of the file on it at most.
pub(crate) const HEADER_BLOCKS: u32 = 1024;
/// Longest sample of a schema, in bytes.
pub const SAMPLE_BYTES_MAX: usize = 256;

/// Streams of one recorder, at most: each needs two unfinished files, one written and one prepared or
/// being closed.
pub const STREAMS_MAX: usize = crate::RESERVED_MAX / 2;

/// Files of a stream besides the one that is written, at most.
pub(crate) const AHEAD_MAX: usize = crate::RESERVED_MAX;

/// Least memory of a ring: a block that fills while the one before is written.
pub const RING_BYTES_MIN: usize = 2 * BLOCK_BYTES;

/// Least blocks of a file: a mark, and some data behind it.
pub(crate) const FILE_BLOCKS_MIN: u32 = 2 * MARK_BLOCKS;

/// Limits that the state-space search and its replay make small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Least blocks of a file.
    pub(crate) file_blocks_min: u32,
    /// Unfinished files of all tracks, at most.
    pub(crate) files_max: u8,
}

impl Limits {
    /// The limits of every recorder outside the tests.
    pub(crate) const PRODUCT: Limits = Limits {
        file_blocks_min: FILE_BLOCKS_MIN,
        files_max: crate::RESERVED_MAX as u8,
    };

    /// Returns true if a track of `tracks` may prepare another file next to the one that it writes, to those
    /// prepared, and to complete ones that are not closed yet.
    pub(crate) fn may_reserve(&self, ahead: u8, closing: u8, tracks: u8) -> bool {
        ahead + closing + 1 < self.files_max / tracks.max(1)
    }
}

/// Longest sleep when there is nothing to do, in us.
pub(crate) const SLEEP_US_MAX: u32 = 2_000;
/// Shortest sleep.
pub(crate) const SLEEP_US_MIN: u32 = 20;

/// Between two attempts to bring a card back, in us.
pub(crate) const RETRY_US: u64 = 100_000;

/// So often a card is tried when the recording is to end: for some two seconds.
pub(crate) const ENDING_ATTEMPTS: u32 = 20;

/// Bytes that another stream may have waiting before the card is taken from the one it writes.
pub(crate) const TURN_BYTES: usize = 16 * 1024;

/// What an operation is taken to cost before the card has shown it, in us.
pub(crate) const COST_US_FIRST: u32 = 20_000;
/// From so little a cost may rise to twice as much, in us.
pub(crate) const COST_US_MIN: u32 = 1_000;
/// Least time over which a rate is taken, in us.
pub(crate) const RATE_US: u64 = 20_000;
/// Blocks that a card is told to expect at once: 4 MiB, which is an allocation unit.
pub(crate) const HINT_BLOCKS: u32 = 8192;
/// A checkpoint that waits because of its cost is taken to cost less after this part of its window, and again
/// after each such time.
pub(crate) const OVERDUE_PART: u64 = 16;
/// But no sooner than after this, in us.
pub(crate) const OVERDUE_US_MIN: u64 = 1_000;
/// Longest busy that the specification allows a card, in us (4.6.2.2).
pub(crate) const BUSY_US_MAX: u32 = 250_000;
/// A ring that does not last as long gets steps of the file system while at most this part of it is filled.
pub(crate) const STEP_PART_OF_RING: u64 = 16;
/// Stall that a step may cause on a card that has not stalled yet, in us.
pub(crate) const STEP_STALL_US: u32 = 40_000;
/// Files are prepared at any cost when the room in files lasts no longer than this. To reserve 64 MiB takes
/// some 50 steps, each of which may wait [`PATIENCE_US`] for the rings.
pub(crate) const URGENT_US: u64 = 5_000_000;
const _: () = assert!(URGENT_US > 4 * 50 * PATIENCE_US);
/// The same where a recording may have to be removed first, which takes some 200 steps more.
pub(crate) const URGENT_REMOVAL_US: u64 = 30_000_000;
const _: () = assert!(URGENT_REMOVAL_US > 4 * 250 * PATIENCE_US);
/// An urgent step of the file system waits no longer than this for the rings, in us.
pub(crate) const PATIENCE_US: u64 = 20_000;
/// Between two attempts to prepare a file on a full card, in us.
pub(crate) const FULL_RETRY_US: u64 = 1_000_000;
/// Where stalls fill a ring in any case, this part of it is for everything else.
pub(crate) const ROOM_PART: u64 = 16;
