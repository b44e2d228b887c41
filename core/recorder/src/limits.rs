//! All tuning constants and limits, with the reason for each value.

use crate::session::{SESSION_NAME_BYTES_MAX, SETTINGS_BYTES_MAX};
use cardiograph_card::BLOCK_BYTES;

/// Interval in blocks between a text file's mandatory marks, which end block 0 and the last block of each
/// interval: recovery finds the actual end with single reads of those blocks. A mark costs about half a line,
/// which is less than half a percent of the interval.
///
/// Checkpoints also end there if samples arrive fast enough: a card whose write stops within a flash page has
/// to copy the beginning of that page elsewhere and collect the garbage later.
pub(crate) const MARK_BLOCKS: u32 = 64;
const _: () = assert!(MARK_BLOCKS.is_power_of_two());
/// Length of a flash page, in blocks: a write that stops within one costs the card a copy.
const PAGE_BLOCKS: u32 = 64;
/// Fraction of the durability window (1/n) that a checkpoint may wait for the end of a page.
pub(crate) const STEP_PART: u64 = 4;

/// Length of a mark's fields, newline included: `@epoch index durable samples gaps lost age_ms crc`.
pub(crate) const MARK_TAIL_BYTES: usize = 1 + 8 * 8 + 7 + 2;
/// Maximum number of columns of a schema: an empty row of them precedes a mark or a gap.
pub const COLUMNS_MAX: usize = 32;
/// Minimum length of a line with a mark: an empty row, `#` and the fields.
pub(crate) const MARK_LINE_BYTES: usize = COLUMNS_MAX + 1 + MARK_TAIL_BYTES;
/// Maximum length of a line in a text file, newline included: a line that continues in a block with a mark
/// leaves room for the mark.
pub const LINE_BYTES_MAX: usize = BLOCK_BYTES - MARK_LINE_BYTES;
/// Maximum length of a line that reports a gap.
pub(crate) const GAP_LINE_BYTES: usize = COLUMNS_MAX + 141;
const _: () = assert!(GAP_LINE_BYTES <= LINE_BYTES_MAX);
/// Maximum length of a line that describes a file.
pub(crate) const FILE_LINE_BYTES: usize =
    COLUMNS_MAX + 102 + SESSION_NAME_BYTES_MAX + SETTINGS_BYTES_MAX;
const _: () = assert!(FILE_LINE_BYTES <= LINE_BYTES_MAX);

/// Maximum number of schemas of a format.
pub const SCHEMAS_MAX: usize = 8;

/// Interval in blocks at which each stream repeats its header in a binary file: recovery finds the headers of
/// all streams by reading back at most twice this distance. With four streams, headers take at most 0.8 % of
/// the file.
pub(crate) const HEADER_BLOCKS: u32 = 1024;
/// Maximum size of a sample with a schema, in bytes.
pub const SAMPLE_BYTES_MAX: usize = 256;

/// Maximum number of streams of one recorder: each needs two unfinished files, one being written and one
/// prepared or being closed.
pub const STREAMS_MAX: usize = crate::RESERVED_MAX / 2;

/// Maximum number of files of a stream in addition to the one being written.
pub(crate) const AHEAD_MAX: usize = crate::RESERVED_MAX;

/// Minimum size of a ring: one block fills while the previous one is written.
pub const RING_BYTES_MIN: usize = 2 * BLOCK_BYTES;

/// Shortest durability window, in us: cards need about this time to write a block, so that a shorter window would always be
/// exceeded.
pub const WINDOW_US_MIN: u64 = 1_000;

/// Minimum number of blocks of a file: a mark, and some data after it.
pub(crate) const FILE_BLOCKS_MIN: u32 = 2 * MARK_BLOCKS;

/// Limits that the state-space search and its replay reduce.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Minimum number of blocks of a file.
    pub(crate) file_blocks_min: u32,
    /// Maximum number of unfinished files of all tracks.
    pub(crate) files_max: u8,
    /// Length of a flash page in blocks, aligned to the card's block 0.
    pub(crate) page_blocks: u32,
}

impl Limits {
    /// Limits of every recorder outside the tests.
    pub(crate) const PRODUCT: Limits = Limits {
        file_blocks_min: FILE_BLOCKS_MIN,
        files_max: crate::RESERVED_MAX as u8,
        page_blocks: PAGE_BLOCKS,
    };

    /// Returns true if one of `tracks` tracks may prepare another file in addition to the one being written, its
    /// `ahead` prepared files, and its `closing` complete files that are not closed yet.
    pub(crate) fn may_reserve(&self, ahead: u8, closing: u8, tracks: u8) -> bool {
        ahead + closing + 1 < self.files_max / tracks.max(1)
    }
}

/// Longest sleep while there is nothing to do, in us.
pub(crate) const SLEEP_US_MAX: u32 = 2_000;
/// Shortest sleep, in us.
pub(crate) const SLEEP_US_MIN: u32 = 20;

/// While writes wait for readers, the recorder checks the rings at least each time this fraction (1/n) of their
/// free space has filled.
pub(crate) const SLEEP_PART_OF_RING: usize = 16;

/// Interval between two attempts to bring a card back, in us.
pub(crate) const RETRY_US: u64 = 100_000;

/// Time after which a step begins no further read, in us. The search for room on a full card reads the whole FAT: with one
/// read per step, it would interrupt the writes of samples a thousand times.
pub(crate) const READS_US_MAX: u32 = 4_000;

/// Number of attempts to bring a card back when the recording is to end: about two seconds' worth.
pub(crate) const ENDING_ATTEMPTS: u32 = 20;

/// Buffered bytes at which a stream may take the card from the track being written.
pub(crate) const TURN_BYTES: usize = 16 * 1024;

/// Assumed cost of an operation before the first measurement on the card, in us.
pub(crate) const COST_US_FIRST: u32 = 20_000;
/// Cost, in us, to which a single measurement may raise the assumed cost even if that more than doubles it.
pub(crate) const COST_US_MIN: u32 = 1_000;
/// Minimum interval for measuring a rate, in us.
pub(crate) const RATE_US: u64 = 20_000;
/// Largest unit of flash with which files begin and end, in blocks: 4 MiB, the allocation unit of cards up to 32 GB.
pub(crate) const UNIT_BLOCKS_MAX: u32 = 8192;
/// Part (1/n) of a card that such a unit takes at most: about as the SD specification limits allocation units (AU_SIZE), from
/// 512 KiB on cards of 64 MB to 4 MiB on those of 1 GB and more.
pub(crate) const UNIT_OF_CARD_PART: u32 = 128;
/// Files give up at most this part (1/n) of their length to end with a unit, or to begin with one.
pub(crate) const UNUSED_PART: u32 = 8;
/// Blocks announced to a card at the start of a write.
pub(crate) const HINT_BLOCKS: u32 = UNIT_BLOCKS_MAX;
/// A checkpoint postponed because of its cost is assumed to cost half as much after this fraction (1/n) of
/// its window, and again after each further one.
pub(crate) const OVERDUE_PART: u64 = 16;
/// Minimum time between two such reductions, in us.
pub(crate) const OVERDUE_US_MIN: u64 = 1_000;
/// Longest busy time that the specification allows a card, in us (4.6.2.2).
pub(crate) const BUSY_US_MAX: u32 = 250_000;
/// Part (1/n) of a window that a checkpoint leaves at most for a stall longer than those observed. All of its lead is at most
/// half of the window.
pub(crate) const STALL_PART: u64 = 4;
const _: () = assert!(STALL_PART > 2);
/// Fill level (1/n of the ring) below which a ring that cannot absorb [`BUSY_US_MAX`] admits file-system steps.
pub(crate) const STEP_PART_OF_RING: u64 = 16;
/// Fill level (1/n of the ring) up to which a checkpoint that is late begins although a stall would fill the ring.
pub(crate) const LATE_PART_OF_RING: u64 = 4;
const _: () = assert!(LATE_PART_OF_RING < ROOM_PART);
/// Last part (1/n) of the window in which a checkpoint already counts as late.
pub(crate) const LATE_PART: u64 = 16;
/// Age of the data at risk, in windows, from which a checkpoint begins however full the rings are.
pub(crate) const LATE_WINDOWS: u64 = 4;
/// Stall assumed for a step on a card that has not stalled yet, in us.
pub(crate) const STEP_STALL_US: u32 = 40_000;
/// Files are prepared at any cost when the remaining space in the open and prepared files lasts no longer than this.
/// Reserving 64 MiB, more than the default, takes about 50 steps, each of which may wait [`PAGE_PATIENCE_US`].
pub(crate) const URGENT_US: u64 = 5_000_000;
const _: () = assert!(URGENT_US > 2 * 50 * PAGE_PATIENCE_US);
/// The same if a recording may have to be removed first, which takes about 100 more steps.
pub(crate) const URGENT_REMOVAL_US: u64 = 10_000_000;
const _: () = assert!(URGENT_REMOVAL_US > 150 * PAGE_PATIENCE_US);
/// The same if no step is made before it is urgent, because the rings are too small. The search for room may then take 500
/// steps.
pub(crate) const URGENT_REMOVAL_US_MAX: u64 = 30_000_000;
const _: () = assert!(URGENT_REMOVAL_US_MAX > 650 * PAGE_PATIENCE_US);
/// Number of files of the least length that each track could have on the card. Recordings are removed for a file of that
/// length.
pub(crate) const CARD_LENGTHS: u32 = 8;
/// Least length of the next file that may be removed per track before half of it is enough, as a multiple.
pub(crate) const VAIN_LENGTHS: u32 = 2;
/// Number of times that the least length is halved at most: from 4 GiB to less than [`FILE_BLOCKS_MIN`].
pub(crate) const HALVINGS_MAX: u8 = 17;
const _: () = assert!((u32::MAX / BLOCK_BYTES as u32) >> HALVINGS_MAX < FILE_BLOCKS_MIN);
/// Maximum time that a file-system step waits for the end of a page, in us. Streams that need longer to fill a page do
/// not let it wait.
pub(crate) const PAGE_WAIT_US: u32 = 1_000_000;
/// Maximum time in which a file gets its name, in us after its first mark is durable, if the rings absorb the steps. In the
/// second half of this time, steps no longer wait for the end of a page, and the name precedes all jobs but urgent ones.
pub(crate) const NAME_US_MAX: u64 = 10_000_000;
/// Maximum time that an urgent file-system step waits for the rings, in us.
pub(crate) const PATIENCE_US: u64 = 20_000;
/// Maximum time that it waits for the rings and for the end of a page, in us: within it, a page is full from 800 kB/s on.
pub(crate) const PAGE_PATIENCE_US: u64 = 40_000;
/// Interval between two attempts to prepare a file on a full card, in us.
pub(crate) const FULL_RETRY_US: u64 = 1_000_000;
/// If a stall alone would fill a ring, this fraction (1/n) of the ring still counts as room for other work.
pub(crate) const ROOM_PART: u64 = 16;
