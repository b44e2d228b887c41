//! A card that answers over SPI, byte by byte.
//!
//! ```text
//!   driver ── embedded-hal traits ── Wire ── SpiCard ── Card
//!             (bus.rs)                        │
//!                                             ├── when: bytes as virtual time              (pace.rs)
//!                                             ├── what a byte means just now              (card.rs)
//!                                             ├── commands and their answers  (command.rs, execute.rs)
//!                                             ├── data blocks                          (transfer.rs)
//!                                             ├── strikes, power                         (faults.rs)
//!                                             ├── CSD, CID, SCR, OCR, SD status       (registers.rs)
//!                                             └── CRC7 and CRC16                            (crc.rs)
//! ```
//!
//! What the card does with data is one of five tasks:
//!
//! ```text
//!                     ┌───────────────────── CMD0, from anywhere ─────────────────────┐
//!                     v                                                               │
//!   power ──> deaf ──> None ── CMD17, CMD18, registers ──> Send ── block out: CMD18 ──┐
//!      74 clocks, CMD0 │ ^ ^                               │  ^                       │
//!                      │ │ └── block out: CMD17; CMD12 ────┤  └── next block ─────────┘
//!                      │ │                                 └── no such block ──> Stalled ── CMD12 ─> None
//!                      │ │
//!        CMD24, CMD25  │ │ stop token, CMD12
//!                      v │
//!                     Await ── start token ──> Receive
//!                      ^                          │
//!                      └── CMD25: block answered ─┴── CMD24: block answered ──> None
//! ```
//!
//! Over it lie two states that hide what is below. While an *answer* is on its way (silence of NCR
//! bytes included), and after it while the card is *busy*, the host is not heard. Busy is 0x00 on the
//! wire for every byte that begins before the busy time ends. It begins when the last byte that caused
//! it is in, so that the answer to a block and the stuff byte after a stop token pass meanwhile.
//!
//! # What a card may do as it likes, and this one does so
//!
//! - The byte after the stop token is 0xFF, although busy has begun: a host that looks at once takes
//!   the card for ready (7.3.3.2). Its next command is lost, and busy reads as an R1 without errors.
//! - The upper three bits of a data response are ones.
//! - An address past the end is a parameter error in R1, and out of range in R2.
//! - A transfer that runs past the end ends by an error token (reading) or a write error.
//! - A token is taken right after R1; NWR is the host's to keep.
//! - ACMD23 is accepted and has no effect.
//!
//! # What is not there
//!
//! CMD1, CMD6, CMD27 to CMD30, CMD42 and CMD56, which are illegal commands to this card.

mod bus;
mod card;
mod command;
mod execute;
mod faults;
mod transfer;

pub use bus::{ChipSelect, Delay, SpiBus, SpiDevice, Wire};
pub use card::{Count, SpiCard};
pub use faults::{Copied, Effects};
