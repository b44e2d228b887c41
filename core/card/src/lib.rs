//! An SD card over SPI, for async code: a write stays open across calls, and while the card is busy
//! others run.
//!
//! ```text
//!   recorder, file system ── Medium ── a native SD host               (medium.rs: the seam)
//!                              │
//!   Card ── what the card is doing, as far as known                   (card.rs)
//!     ├── acquiring: from power to full speed                         (acquire.rs, csd.rs)
//!     ├── reading, and bringing back a card after trouble             (card.rs)
//!     └── writing: one block, or a stream                             (stream.rs)
//!           │
//!   Line ── bytes, commands, blocks, checksums, waiting               (line.rs, crc.rs)
//!           │
//!   SpiBus, OutputPin, DelayNs, SetClock ── yours
//! ```
//!
//! No allocator, no `unsafe`, no clock of its own, and no executor in particular. Section numbers, here
//! and in the files below, are those of the SD Physical Layer Simplified Specification, version 9.00.
//!
//! # States
//!
//! ```text
//!                     acquire: 80 clocks, CMD0, CMD8, CMD59,
//!                     ACMD41, CMD58, CMD9, full clock
//!        ┌────────┐ ─────────────────────────────────────────> ┌──────┐ ── CMD17, CMD18, CMD24 ──┐
//!        │ Absent │                                            │ Idle │                          │
//!   new ─└────────┘      stop token, skip one byte, busy,  ┌──>└──────┘ <── done ────────────────┤
//!            ^           CMD13, ACMD22: durable            │       │                             │
//!            │                                             │       │ ACMD23, CMD25               │
//!            │                                             │       v                             │
//!            │                                          end, read ┌───────────┐ ── block ──┐     │
//!            │                                             └──────│ Streaming │            │     │
//!            │                                                    └───────────┘ <─ taken ──┤     │
//!            │                                                                             │     │
//!            │ no answer                       ┌───────────┐   dropped, or anything wrong  v     v
//!            └──────────────────────────────── │ Unsettled │ <────────────────────────── (under way)
//!                                              └───────────┘
//!                        answers: Idle  <────────────┘  rest of a block, busy, CMD12, busy, CMD13
//! ```
//!
//! Before anything is begun the state says `Unsettled`, and what it came to only once that was seen. So
//! a future may be dropped anywhere; the next call finishes or ends what was begun, then does its own.
//! A task that owns the card and takes requests from others needs none of this. Busy is waited for with
//! nothing begun: dropping [`Card::push`] there costs nothing.
//!
//! A card that does not answer is not initialised behind the caller's back, since it may be another one:
//! everything fails with [`Error::NotReady`] until [`Card::acquire`].
//!
//! # Durable
//!
//! There is no command to empty a card's cache. Data are durable once the stop token was sent, busy has
//! ended and CMD13 is clean. A card that did not hear the token is clean in CMD13 too, so that the blocks
//! are counted as well (ACMD22).
//!
//! # Bytes on the wire
//!
//! ```text
//!   CMD24                    536 + 2 NCR
//!   a stream of n            517 n + 61 + 6 NCR + NAC
//! ```
//!
//! each plus busy. 517 are NWR, token, 512, checksum, answer; NWR is the look that sees the card ready.
//!
//! # Noticing the end of busy
//!
//! The card is looked at, a byte at a time, between sleeps that grow with the wait. How much may be lost
//! by the last of them is earned, block by block, up to 1 ms: short waits are followed closely, a stall
//! after many blocks is slept through. So a stream keeps 98 % of the wire as long as busy is below a
//! quarter of a millisecond a block in the mean, and loses less than half a percent of busy beyond.
//! This wants a delay that resolves microseconds; one that is coarser costs its resolution each time.
//!
//! Time is what was asked for of the delay and the bus: limits are no shorter than they say, and longer
//! if timers are late.
//!
//! # Checksums
//!
//! They are always on, and it is made sure that they are. What was garbled is tried again, a few times.
//! A block that was dropped in the middle is filled up with 0xFF; one in 65,536 of such has the checksum
//! by chance, and is then neither old nor new.
//!
//! # An example
//!
//! ```
//! # use cardiograph_card::{Block, Card, SetClock, WriteError};
//! # use embedded_hal::digital::OutputPin;
//! # use embedded_hal_async::{delay::DelayNs, spi::SpiBus};
//! async fn record<B: SpiBus, P: OutputPin, D: DelayNs, C: SetClock<B>>(
//!     card: &mut Card<B, P, D, C>,
//!     blocks: &[Block],
//! ) -> Result<(), Box<dyn core::error::Error>>
//! # where B::Error: 'static, P::Error: 'static
//! {
//!     card.acquire().await?;
//!     card.begin(8192, blocks.len() as u32).await?;
//!     for block in blocks {
//!         card.push(block).await?;
//!     }
//!     // A checkpoint: all of them are durable.
//!     card.end().await?;
//!     Ok(())
//! }
//! ```
#![no_std]
#[cfg(test)]
extern crate std;

mod acquire;
mod card;
mod crc;
mod csd;
mod error;
mod limits;
mod line;
mod medium;
mod stream;

pub use card::Card;
pub use error::{Error, WriteError};
pub use limits::{ACQUIRE_CLOCK_HZ, BUSY_NS_MAX, CLOCK_HZ, READ_NS_MAX};
pub use medium::Medium;

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;

/// What a block holds.
pub type Block = [u8; BLOCK_BYTES];

/// Sets the clock of a bus. Closures of bus and Hz do.
pub trait SetClock<Bus> {
    /// Sets the clock of `bus` to at most so many Hz.
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32);
}

impl<Bus, F: FnMut(&mut Bus, u32)> SetClock<Bus> for F {
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32) {
        self(bus, hz);
    }
}
