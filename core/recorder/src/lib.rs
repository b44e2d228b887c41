//! Records samples to files on a card, and loses none, whatever the card does.
//!
//! ```text
//!   interrupt ── Producer ──> ring ──> Consumer                            (ring.rs, gap.rs, session.rs)
//!                                        │
//!   Recorder ── from the first mount to the last close                     (recorder.rs)
//!     ├── planner ── state + conditions ──> next action. No I/O            (plan/)
//!     └── Shell ── carries actions out: the only owner of the card         (shell.rs)
//!           ├── Stream ── a ring, its encoder, its durability window       (stream.rs, account.rs)
//!           │     └── Encoder ── samples to blocks: lines, rows, binary    (format/)
//!           ├── Track ── files written one after another                   (track.rs)
//!           ├── jobs ── operations of the file system, step by step        (jobs.rs, steps.rs)
//!           │     └── Volume ── FatVolume: FAT16 and FAT32, a journal      (volume.rs, fat/)
//!           ├── recovery ── the actual end of an interrupted file          (recover.rs)
//!           ├── ReadDesk, Control ── reads and requests of others          (reads.rs, control.rs)
//!           └── BlockDevice ── a card driver                               (cardiograph-card)
//! ```
//!
//! No allocator, no `unsafe`, no clock of its own and no particular executor: a future that is polled.
//! Everything is bounded by the numbers in `limits.rs`.
//!
//! # Promises
//!
//! 1. [`Producer::push`] is wait-free: a few dozen instructions and a copy, whatever the card does.
//! 2. At any rate up to 95 % of what a plain saturating write sustains on the same card, bus and ring, no
//!    sample is lost. Binary streams share one file and one such write. A new file is begun when one is
//!    prepared; until then samples go to the old one.
//! 3. Past it, every lost sample is in exactly one [`Gap`]: which, how many, when, why. Gaps are reported as
//!    events, and are lines or blocks of the file.
//! 4. After a power loss everything older than the [`Window`] is there, other files are untouched, and the
//!    file system is consistent once the card has been mounted again. If keeping the window could lose
//!    samples, the window is exceeded instead, and [`StreamSummary`] counts that.
//! 5. A new file loses nothing. Up to four streams share a card. Files are ordinary ones.
//! 6. Others read while it records ([`ReadDesk`]) when the rings have room for it, and the cost is counted.
//!
//! These hold in every state: card full, failing, exchanged, fragmented; stopping, flushing, rotating. Data
//! are durable when the card says so; a card that lies, or loses what it had, is outside the promise. A
//! card that fails takes with it what was not durable: a gap says so, and recording continues in new files
//! when the card is back.
//!
//! # How
//!
//! **One write that stays open.** Space for files is prepared before it is needed, each file a run of
//! consecutive clusters that begins where the card's own units may. Samples go there as one CMD25, the
//! pattern that cards are fastest with. Nothing else is written meanwhile.
//!
//! **A checkpoint is part of the stream.** Marks say which file it is, how far it was, and how much of it was
//! durable. For a checkpoint the recorder ends a block with a mark and stops the write. It touches no
//! directory and no table: such small writes elsewhere are what cards collect garbage for.
//!
//! **At the end of a page.** A card that is stopped within a page of its flash has to put the beginning of
//! that page elsewhere. So a checkpoint waits for a multiple of up to 32 KiB, if samples arrive fast enough;
//! files begin at such multiples.
//!
//! **Others wait.** Steps of the file system, reads and checkpoints get the card when all rings absorb them
//! with the longest stall on top. Urgent steps, such as those of a file that is needed now, wait 20 ms at
//! most.
//!
//! # A checkpoint, step by step
//!
//! | step | a power loss after it leaves |
//! |---|---|
//! | samples are in the ring | the file as of the last checkpoint |
//! | the block with the mark was sent | the same, or more |
//! | stop token, busy, CMD13, ACMD22: all clean | **all samples up to the mark** |
//!
//! `plan/mod.rs` draws the states, `recover.rs` says what recovery does, and `fat/mod.rs` what an interrupted
//! operation leaves of a file system.
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
//! /// `ring` is a `static Ring<[AtomicU8; 65536]>` on a device; the producer goes to the interrupt.
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
//!                 // Show it.
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
//!     // Until CONTROL.stop(), or the producer is closed. Sampling begins when CONTROL.is_ready().
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
mod control;
mod crc32;
mod error;
mod event;
mod fat;
mod format;
mod gap;
mod jobs;
mod limits;
mod plan;
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
mod volume;

pub use control::{Control, FlushState};
pub use error::StartError;
pub use event::Event;
pub use fat::{DosTime, Error as FatError, FatVolume, INDEX_RECORD_BYTES, IndexRecord};
pub use format::{Column, DECIMALS_MAX, Format, Kind, MAGOD2, Schema};
pub use gap::{Cause, Gap};
pub use limits::{
    COLUMNS_MAX, LINE_BYTES_MAX, RING_BYTES_MIN, SAMPLE_BYTES_MAX, SCHEMAS_MAX, STREAMS_MAX,
};
pub use reads::{ReadDesk, ReadFailed, ReadTally};
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
    RESERVED_MAX, Request, Reserved, ShortText, Volume,
};

/// Source of time.
pub trait Clock {
    /// Time since any fixed moment, in us. It never goes back.
    fn now_us(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now_us(&self) -> u64 {
        self()
    }
}
