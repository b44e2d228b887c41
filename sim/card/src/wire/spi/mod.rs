//! A card on an SPI bus, simulated byte by byte.
//!
//! ```text
//!   driver ── embedded-hal traits ── Wire ── SpiCard ── Card
//!             (bus.rs)                        │
//!                                             ├── bytes as virtual time                    (pace.rs)
//!                                             ├── bytes in and out                         (card.rs)
//!                                             ├── commands and responses    (command.rs, execute.rs)
//!                                             ├── data blocks                (state.rs, transfer.rs)
//!                                             ├── faults, power                (faults.rs, power.rs)
//!                                             ├── CSD, CID, SCR, OCR, SD status       (registers.rs)
//!                                             └── CRC7 and CRC16                            (crc.rs)
//! ```
//!
//! A data transfer is in one of five states:
//!
//! ```text
//!                     ┌───────────────────── CMD0, from anywhere ─────────────────────┐
//!                     v                                                               │
//!   power ─> silent ─> None ── CMD17, CMD18, registers ─> Sending ─ block out: CMD18 ─┐
//!      74 clocks, CMD0 │ ^ ^                               │  ^                       │
//!                      │ │ └── block out: CMD17; CMD12 ────┤  └── next block ─────────┘
//!                      │ │                                 └── no such block ──> AwaitStop ─ CMD12 ─> None
//!                      │ │
//!        CMD24, CMD25  │ │ stop token, CMD12
//!                      v │
//!                   AwaitToken ── start token ──> Receive
//!                      ^                          │
//!                      └─ CMD25: block received ──┴── CMD24: block received ──> None
//! ```
//!
//! Two more states take precedence. While a *response* is being sent (including the filler bytes of NCR),
//! and while the card is *busy* afterwards, the card ignores the host. Busy is 0x00 on the bus for every
//! byte that begins before the busy time ends. The busy time begins at the end of the byte that caused it,
//! so the data response of a block and the stuff byte after a stop token are sent during the busy time.
//!
//! # Implementation-defined behaviour
//!
//! - The byte after the stop token is 0xFF although the card is already busy: a host that polls at once
//!   takes the card for ready (7.3.3.2). The host's next command is lost, and the busy signal reads as an R1
//!   without errors.
//! - The upper three bits of a data response are ones.
//! - An address past the end is a parameter error in R1, and out of range in R2.
//! - A transfer that runs past the end is terminated by an error token (reading) or a write error.
//! - A token is accepted directly after R1; the host is responsible for observing NWR.
//! - ACMD23 is accepted and has no effect.
//! - High speed can be selected (CMD6) but is not enforced: the bus may be faster than 25 MHz without it.
//!
//! # Not implemented
//!
//! CMD1, CMD27 to CMD30, CMD42 and CMD56, which this card rejects as illegal commands.

mod bus;
mod card;
mod command;
mod execute;
mod faults;
mod levels;
mod power;
mod state;
mod transfer;

pub use bus::{ChipSelect, Delay, SpiBus, SpiDevice, Wire};
pub use card::{Count, SpiCard};
pub use faults::{FaultCounts, InterruptedCard};
