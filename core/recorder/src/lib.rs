//! Records samples to files on a card, and loses none, whatever the card does.
//!
//! ```text
//!   interrupt ── Sampler ──> ring ──> Source                                        (ring.rs, gap.rs)
//!                                       │
//!   Recorder ── from the first mount to the last close                              (recorder.rs)
//!     ├── Owner ── the one owner of the card: samples first, all others when        (owner.rs)
//!     │     │      the rings bear it                                                (admission.rs)
//!     │     ├── Stream ── its file, its window, what of it is durable               (stream.rs)
//!     │     │     └── Encoder ── samples to blocks: lines, rows, binary; marks      (format/)
//!     │     └── Medium ── a card driver                                       (cardiograph-card)
//!     ├── Volume ── files of consecutive blocks                                     (volume.rs)
//!     │     └── FatVolume ── on FAT16 and FAT32, with a journal                     (fat/)
//!     ├── true_length ── where a recording that was cut off ends                    (recover.rs)
//!     └── ReadDesk, Control ── reads and requests of others                (reads.rs, control.rs)
//! ```
//!
//! No allocator, no `unsafe`, no clock of its own and no executor in particular: a future that is polled.
//! Everything is bounded by the numbers in `limits.rs`.
//!
//! # What it promises
//!
//! 1. [`Sampler::push`] is wait-free: a few dozen instructions and a copy, whatever the card does.
//! 2. As long as samples come at no more than 95 % of what the card carries through its stalls with this
//!    ring, none is lost. Where the ring does not last a quarter of a second, eight files have to hold the
//!    recording: to prepare more while samples come that quickly may cost some.
//! 3. Past it, every sample that is lost is in a [`Gap`]: which, how many, when, why. Gaps are events, and
//!    lines or blocks of the file.
//! 4. After a power cut all that is older than the [`Window`] is there, other files are untouched, and the
//!    file system is whole once the card was mounted again. If keeping the window could lose samples, it is
//!    the window that gives way, and the [`StreamSummary`] says how often.
//! 5. A new file loses nothing. Up to four streams share a card. Files are ordinary ones.
//! 6. Others read while it records ([`ReadDesk`]), when the rings have room for it, and the cost is counted.
//!
//! Data are durable when the card says so; a card that lies is beyond it, and so is one that loses data it
//! had. A card that fails takes with it what was not durable: a gap says so, and it goes on in new files
//! as soon as the card is back.
//!
//! # How
//!
//! **One write that stays open.** Files are reserved before they are needed, each a run of consecutive
//! clusters that begins where the card's own units may. Samples go there as one CMD25, which is the pattern
//! that cards are quickest with. Nothing else is written while it goes on.
//!
//! **A checkpoint is part of the stream.** Marks tell what the file is, how far it was, and how much of it
//! was durable. To make a checkpoint the recorder ends a block with a mark and stops the write. No directory
//! and no table is touched: such small writes to other places are what cards clean up for.
//!
//! **At the end of a page.** A card that is stopped within a page of its flash has to put the beginning of
//! that page elsewhere. So a checkpoint waits for a multiple of up to 32 KiB, if samples come quickly enough
//! for that; files begin at such multiples.
//!
//! **Others wait.** The file system, reads and checkpoints get the card when all rings would bear it, with
//! the longest stall seen so far on top. What prepares files waits for rings that last a quarter of a
//! second, or until files run out: seven are prepared in advance, which the streams share.
//!
//! # A checkpoint, step by step
//!
//! | step | a power cut after it leaves |
//! |---|---|
//! | samples are in the ring | the file as of the last checkpoint |
//! | the block with the mark was sent | the same, or more |
//! | stop token, busy, CMD13, ACMD22: all clean | **all samples up to the mark** |
//!
//! What recovery does is in `recover.rs`, and what becomes of a file system that is cut off in `fat/mod.rs`.
//!
//! # An example
//!
//! ```
//! # use cardiograph_recorder::*;
//! # use cardiograph_card::Medium;
//! # use embedded_hal_async::delay::DelayNs;
//! # use core::sync::atomic::AtomicU8;
//! static CONTROL: Control = Control::new();
//!
//! /// `ring` is a `static Ring<[AtomicU8; 65536]>` on a device; the sampler goes to the interrupt.
//! async fn record<M: Medium, D: DelayNs>(
//!     card: M,
//!     delay: D,
//!     now_us: impl Fn() -> u64,
//!     source: Source<'_>,
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
//!         format: Format::Csv(&MAGOD2),
//!         window: Window::default(),
//!     };
//!     // Until CONTROL.stop(), or the sampler is closed. The sampler begins when CONTROL.is_ready().
//!     let mut recorder = Recorder::new(parts, Config::default(), [(stream, source)]);
//!     let [summary] = recorder.run().await.ok()?;
//!     Some(summary)
//! }
//! ```
#![no_std]
#[cfg(test)]
extern crate std;

mod admission;
mod control;
mod crc32;
mod event;
mod fat;
mod format;
mod gap;
mod limits;
mod owner;
mod reads;
mod recorder;
mod recover;
mod ring;
mod stream;
mod volume;

pub use control::Control;
pub use event::Event;
pub use fat::{DosTime, Error as FatError, FatVolume, INDEX_RECORD_BYTES, IndexRecord};
pub use format::{Column, DECIMALS_MAX, Format, Kind, MAGOD2, Schema};
pub use gap::{Cause, Gap};
pub use limits::{COLUMNS_MAX, LINE_BYTES_MAX, RING_BYTES_MIN, SAMPLE_BYTES_MAX, STREAMS_MAX};
pub use owner::Owner;
pub use reads::{ReadDesk, ReadFailed, ReadTally};
pub use recorder::{Config, Parts, Recorder, StartError, WhenFull};
pub use recover::{recover, true_length};
pub use ring::{Lost, RING_BYTES_MAX, Ring, Sampler, Source};
pub use stream::{StreamConfig, StreamSummary, Window};
pub use volume::{
    Blocks, ErrorKind, Extent, FOLDER_RECORDINGS_MAX, FileId, FileRecord, NUMBER_LAST, Name,
    RESERVED_MAX, Request, Reserved, ShortText, Volume,
};

/// Tells the time.
pub trait Clock {
    /// Time since any fixed moment, in us. It does not go back.
    fn now_us(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now_us(&self) -> u64 {
        self()
    }
}
