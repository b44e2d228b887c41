//! Records samples to files on a card, and loses none.
#![no_std]
#[cfg(test)]
extern crate std;

mod admission;
mod control;
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
pub use fat::{DosTime, Error as FatError, FatVolume};
pub use format::{Column, DECIMALS_MAX, Format, Kind, MAGOD2, Schema};
pub use gap::{Cause, Gap};
pub use limits::{COLUMNS_MAX, LINE_BYTES_MAX, RING_BYTES_MIN, SAMPLE_BYTES_MAX, STREAMS_MAX};
pub use owner::Owner;
pub use reads::{ReadDesk, ReadFailed, ReadTally};
pub use recorder::{Config, Parts, Recorder, StartError, WhenFull};
pub use recover::true_length;
pub use ring::{Lost, RING_BYTES_MAX, Ring, Sampler, Source};
pub use stream::{StreamConfig, StreamSummary, Window};
pub use volume::{Blocks, Extent, Name, RESERVED_MAX, Request, Reserved, Trouble, Volume};

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
