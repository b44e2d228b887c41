//! Records samples to files on a card and loses none, whatever the card does.
//!
//! ```text
//!   interrupt ── Producer ──> ring ──> Consumer                            (ring.rs, gap.rs, session.rs)
//!                                        │
//!   Recorder ── from the first mount to the last close                     (recorder.rs)
//!     ├── planner ── state + conditions ──> next action; no I/O            (plan/)
//!     └── Shell ── carries out actions; only it accesses the card          (shell.rs)
//!           ├── Stream ── a ring, its encoder, its durability window       (stream.rs, account.rs)
//!           │     └── Encoder ── samples to blocks: lines, rows, binary    (format/)
//!           ├── Track ── a sequence of files, written one after another    (track.rs)
//!           ├── jobs ── operations of the file system, step by step        (jobs.rs, steps.rs)
//!           │     └── Volume ── FatVolume: FAT16 and FAT32, a journal      (volume.rs, fat/)
//!           ├── recovery ── finds the actual end of an interrupted file    (recover.rs)
//!           ├── ReadDesk ── reads and changes of other tasks               (reads.rs, changes.rs)
//!           │     └── CardFiles ── paths, listings, contents               (guest/)
//!           ├── Control ── requests: flush, rotate, session, stop          (control.rs)
//!           └── BlockDevice ── a card driver                               (cardiograph-card)
//! ```
//!
//! The crate needs no allocator, no `unsafe`, no clock of its own and no particular executor: it is a future
//! that the caller polls. `limits.rs` holds every numeric limit and the reason for its value.
//!
//! # Promises
//!
//! 1. [`Producer::push`] is wait-free: a few dozen instructions and a copy, whatever the card does.
//! 2. No sample is lost at any rate up to 95 % of what a plain CMD25 loop sustains on the same card, bus and ring,
//!    counted in encoded file bytes. Binary streams share one file and one write and reach that bound. CSV and line
//!    streams have a file each and take turns of up to 16 KiB, which costs throughput and causes longer stalls; for
//!    several of them, no rate is promised: on simulated cards, two streams with 32 KiB rings lost between nothing and
//!    59 % below half of the bound, and 512 KiB rings did not suffice on all cards. Up to eight files are prepared
//!    before sampling begins. To prepare more, the recorder writes small blocks to other places, after which some cards
//!    stall; at high rates, samples are lost if the ring does not hold these stalls as well. In that case the recorder
//!    delays rotation, and prepares the next file only when it is needed.
//! 3. Above that rate, every lost sample is in exactly one [`Gap`], which states the samples' indices, count,
//!    time and cause. The recorder reports gaps as events and writes them to the file as lines or blocks.
//! 4. After a power loss, everything older than the [`Window`] is on the card, other files are untouched, and
//!    the next mount makes the file system consistent. If meeting the window could lose samples, the recorder
//!    exceeds the window instead and counts that in [`StreamSummary`]. Stalls that frequent checkpoints cause later
//!    are not foreseen: on a simulated card, three CSV streams at 39 % of the bound lost a fifth of the samples with a
//!    window of 100 ms, and none with 1 s.
//! 5. Starting a file that is prepared takes no card time. Up to four streams share a card. The files are ordinary
//!    FAT files.
//! 6. Other tasks read and change files of the card before, during and after a recording ([`ReadDesk`],
//!    [`CardFiles`], [`Change`]). They get the card between two pages of the recorder's writes, when the rings can
//!    absorb that; the recorder counts the cost of reads.
//!
//! These promises hold in every state: with a full, failing, exchanged or fragmented card, and while stopping, flushing
//! or rotating. Data is durable once the card has reported it as written; a card that reports falsely, or loses data
//! that it had stored, is outside the promise. When a card fails, the data that was not yet durable is lost: a gap
//! reports it, and recording continues in new files once the card is back.
//!
//! # Design
//!
//! **One write that stays open.** The recorder prepares space for files before it needs it: each file is a
//! run of consecutive clusters, aligned to the card's own units where possible. Samples go there in a single
//! CMD25, the pattern that cards write fastest. Nothing else is written meanwhile.
//!
//! **A checkpoint is part of the stream.** A mark states which file it belongs to, its block index, and the
//! number of blocks that were durable. For a checkpoint the recorder ends a block with a mark and stops the
//! write. It touches neither the directory nor the allocation table, because such small writes elsewhere are
//! what triggers garbage collection.
//!
//! **Checkpoints end on page boundaries.** A card whose write stops within a flash page has to copy the
//! beginning of that page elsewhere. So a checkpoint waits for a multiple of up to 32 KiB if samples arrive
//! fast enough, and files begin at such multiples.
//!
//! **Files end with units of flash.** A unit of up to 4 MiB that is not written as a whole costs a merge later. So files
//! begin with a unit where one is free, and are up to an eighth shorter than [`Config::file_bytes`].
//!
//! **Samples take precedence.** File-system steps, reads and checkpoints get the card only when all rings can absorb
//! them plus the longest stall, and steps that are not urgent wait for the end of a turn and of a page. While other
//! tasks read, samples stay in the rings until they fill a page, which is then written in one burst. Urgent steps, such
//! as preparing a file that is needed now, wait at most 20 ms.
//!
//! # A checkpoint, step by step
//!
//! | step | contents of the card after a power loss here |
//! |---|---|
//! | samples are in the ring | the file as of the last checkpoint |
//! | the block with the mark was sent | the same, or more |
//! | stop token, busy, CMD13, ACMD22: all clean | **all samples up to the mark** |
//!
//! `plan/mod.rs` draws the states, `recover.rs` describes recovery, and `fat/mod.rs` the state in which an
//! interrupted operation leaves the file system.
//!
//! # An example
//!
//! ```
//! # use cardiograph_recorder::*;
//! # use cardiograph_card::BlockDevice;
//! # use embedded_hal_async::delay::DelayNs;
//! # use core::sync::atomic::AtomicU8;
//! static CONTROL: Control = Control::new();
//!
//! /// On a device, the ring is a `static Ring<[AtomicU8; 65536]>`, and the interrupt owns the producer.
//! async fn record<M: BlockDevice, D: DelayNs>(
//!     card: M,
//!     delay: D,
//!     now_us: impl Fn() -> u64,
//!     consumer: Consumer<'_>,
//! ) -> Option<StreamSummary> {
//!     let parts = Parts {
//!         medium: card,
//!         volume: FatVolume::new(|| DosTime::NO_CLOCK, 0x5EED),
//!         clock: now_us,
//!         delay,
//!         events: |event| {
//!             if let Event::Lost { gap, .. } = event {
//!                 // Show the gap to the user.
//!                 let _ = gap.count;
//!             }
//!         },
//!         control: &CONTROL,
//!         reads: None,
//!     };
//!     let stream = StreamConfig {
//!         prefix: *b"MAG",
//!         format: Format::Csv(&[MAGOD2]),
//!         window: Window::default(),
//!     };
//!     // Runs until CONTROL.stop() or until the producer is closed. Start sampling once CONTROL.is_ready().
//!     let mut recorder = Recorder::new(parts, Config::default(), [(stream, consumer)]);
//!     let [summary] = recorder.run().await.ok()?;
//!     Some(summary)
//! }
//! ```
#![no_std]
#[cfg(test)]
extern crate std;

mod account;
mod admission;
mod boundary;
mod buffers;
mod changes;
mod control;
mod crc32;
mod error;
mod event;
mod fat;
mod fault;
mod format;
mod gap;
mod guest;
mod jobs;
mod limits;
#[cfg(feature = "serving")]
mod newest;
mod plan;
mod protected;
mod reads;
mod recorder;
mod recover;
#[cfg(test)]
mod replay;
mod ring;
mod session;
mod shell;
mod steps;
mod stream;
mod track;
mod units;
mod volume;
mod waker_queue;
mod watched;

pub use buffers::READ_BUFFERS_MAX;
pub use changes::{CHANGE_PATH_BYTES_MAX, Change, ChangePath, ChangeTask, WriteBuffer};
pub use control::{Control, FlushState};
pub use error::StartError;
pub use event::Event;
#[cfg(any(feature = "log", feature = "defmt"))]
pub use event::log_event;
pub use fat::{
    ChainPosition, DirCursor, DirEntry, DosTime, ENTRY_NAME_BYTES_MAX, Error as FatError,
    FatVolume, INDEX_RECORD_BYTES, IndexRecord, Node, Refusal, UPLOADS_MAX, Upload,
};
pub use fault::CardFault;
pub use format::{Column, DECIMALS_MAX, Format, Kind, MAGOD2, Schema};
pub use gap::{Cause, Gap};
pub use guest::{
    CardBytes, CardFile, CardFiles, FileError, FileSystem, Growing, LISTED_NAME_BYTES_MAX,
    ListedFile, Listing, RecordingPosition, Unfinished,
};
pub use limits::{
    COLUMNS_MAX, LINE_BYTES_MAX, RING_BYTES_MIN, SAMPLE_BYTES_MAX, SCHEMAS_MAX, STREAMS_MAX,
    WINDOW_US_MIN,
};
#[cfg(feature = "serving")]
pub use newest::{Newest, NewestMemory, Shown};
pub use protected::{is_protected, is_same_name};
pub use reads::{Lent, ReadClass, ReadDesk, ReadError, ReadTally};
pub use recorder::{Config, Parts, Recorder, WhenFull};
pub use recover::{Recovered, find_end, recover};
pub use ring::{Consumer, Producer, PushError, RING_BYTES_MAX, Ring};
pub use session::{
    SESSION_NAME_BYTES_MAX, SETTINGS_BYTES_MAX, Session, SessionError, SessionName, Settings,
};
pub use steps::Port;
pub use stream::{StreamConfig, StreamSummary, Window};
pub use volume::{
    Blocks, ErrorKind, Extent, FOLDER_RECORDINGS_MAX, FileId, FileRecord, NUMBER_LAST, Name,
    RESERVED_MAX, Removed, Request, Reserved, ShortText, Volume,
};
pub use watched::Figures;

/// A source of time.
pub trait Clock {
    /// Returns the time since a fixed moment, in us. It never decreases.
    fn now_us(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now_us(&self) -> u64 {
        self()
    }
}
