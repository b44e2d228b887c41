//! An async driver for SD cards over SPI. A write stays open across calls, and other tasks run while the
//! card is busy.
//!
//! ```text
//!   recorder, file system ── BlockDevice ── a native SD host          (block_device.rs)
//!                              │
//!   Card ── the state of the card as far as the driver knows it       (card.rs)
//!     ├── initialisation: from power-on to full clock                 (acquire.rs, csd.rs)
//!     ├── reading, and recovery after an error                        (card.rs)
//!     ├── CID and CSD                                                 (registers.rs)
//!     └── writing: one block, or a stream                             (stream.rs)
//!           │
//!   Transport ── bytes, commands, blocks, checksums, busy waits       (transport.rs, crc.rs)
//!           │
//!   SpiBus, OutputPin, DelayNs, SetClock ── provided by the application
//! ```
//!
//! Uses no allocator, no `unsafe`, no clock and no particular executor. Section numbers, here and in the
//! modules, refer to the SD Physical Layer Simplified Specification, version 9.00.
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
//!            │ no response                     ┌───────────┐   dropped, or any error       v     v
//!            └──────────────────────────────── │  Unknown  │ <────────────────────────── (under way)
//!                                              └───────────┘
//!                        responds: Idle <────────────┘  rest of a block, busy, CMD12, busy, CMD13
//! ```
//!
//! Before a transaction starts, the state is set to `Unknown`; only after its end has been observed does the state say
//! what the card is doing. A future may therefore be dropped at any point: the next call first finishes or aborts the
//! interrupted transaction, then runs its own. If one task owns the card and serves the requests of all others, no
//! future is ever dropped, and no such recovery is needed. No transaction is open during a busy wait, so dropping
//! [`Card::push`] there costs nothing.
//!
//! The driver never initialises a card on its own after it stopped responding, because it may be a
//! different card: every call fails with [`Error::NotReady`] until [`Card::acquire`].
//!
//! # Durability
//!
//! The basic command set has no command that flushes the cache of a card. Data is durable once the stop token has been
//! sent, busy has ended and CMD13 reports no error. A card that missed the token reports no error in CMD13 either, so
//! the driver also checks the number of written blocks (ACMD22).
//!
//! # Bytes on the wire
//!
//! ```text
//!   CMD24                    536 + 2 NCR
//!   a stream of n blocks     517 n + 61 + 6 NCR + NAC
//! ```
//!
//! Busy time comes on top. The 517 bytes are NWR, token, 512 data bytes, checksum (2) and data response;
//! NWR is the poll that finds the card ready.
//!
//! # Detecting the end of busy
//!
//! The driver polls the card one byte at a time and sleeps between polls; the pauses grow with the wait. The time that
//! the last pause may overshoot is a budget that each block increases, up to 1 ms: the driver polls closely during
//! short waits, and sleeps most of the time during a stall after many blocks. As a result, a stream uses 98 % of the
//! bus bandwidth as long as busy is below a quarter of a millisecond per block on average, and beyond that it loses
//! less than half a percent of the busy time. This requires a delay with microsecond resolution; a coarser one adds its
//! resolution to each wait.
//!
//! The driver measures time as the sum of the delays and bus transfers that it requested: timeouts are
//! never shorter than stated, and longer if timers fire late.
//!
//! # Checksums
//!
//! Checksums are always on; initialisation verifies that the card checks them. Corrupted transfers are
//! retried a few times. After a write future was dropped in mid-block, the driver completes the block with
//! 0xFF; with a probability of 1 in 65,536 the checksum matches by chance, and the block then holds neither
//! the old nor the new data.
//!
//! # Example
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
//!     // A checkpoint: all blocks are durable.
//!     card.end().await?;
//!     Ok(())
//! }
//! ```
#![no_std]
#[cfg(test)]
extern crate std;

mod acquire;
mod block_device;
mod card;
mod crc;
mod csd;
mod error;
mod limits;
mod registers;
mod report;
mod stream;
mod transport;

pub use block_device::BlockDevice;
pub use card::Card;
pub use error::{Error, WriteError};
pub use limits::{ACQUIRE_CLOCK_HZ, BUSY_NS_MAX, CLOCK_HZ, READ_NS_MAX};
pub use registers::{Cid, REGISTER_BYTES};

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;

/// The data of one block.
pub type Block = [u8; BLOCK_BYTES];

/// Sets the clock of a bus. Implemented by closures that take the bus and the frequency in Hz.
pub trait SetClock<Bus> {
    /// Sets the clock of `bus` to at most `hz`.
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32);
}

impl<Bus, F: FnMut(&mut Bus, u32)> SetClock<Bus> for F {
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32) {
        self(bus, hz);
    }
}
