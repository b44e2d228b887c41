//! A card on the SD bus, 1 or 4 bits wide, simulated command by command.
//!
//! ```text
//!   host controller ── SdBusCard ── Card
//!                        │
//!                        ├── clocks as virtual time                (pace.rs)
//!                        ├── clocks of commands, blocks and busy   (card.rs)
//!                        ├── commands and responses                (frame.rs, execute.rs)
//!                        ├── card status and states                (status.rs)
//!                        ├── blocks, CRC status                    (transfer.rs, erase.rs, switch.rs)
//!                        └── blocks on one or four data lines      (lines.rs)
//! ```
//!
//! The states are those of 4.2 and 4.3; section 4.8 lists the commands allowed in each state. CMD0 leads to
//! `idle` from any state, and a command that is not in the diagram does not change the state.
//!
//! ```text
//!   power, 74 clocks
//!      │
//!      v   ACMD41          CMD2          CMD3
//!    idle ───────> ready ──────> ident ──────> stby <──── CMD7, another's address ────┐
//!                                              │  ^                                   │
//!                           CMD7, its address  │  │ done                              │
//!                                              v  └──────── dis ──┐ CMD7, its address │
//!    ┌──────────────────────────────────────> tran           ^    │                   │
//!    │                                         │  │          │    │                   │
//!    │    CMD17, CMD18, CMD6, ACMD13, 22, 51   │  └──────────┼────┼───────────────────┤
//!    │                    ┌────────────────────┤             │    │                   │
//!    │                    v                    │             │    │                   │
//!    ├─ block sent; ──── data ─────────────────┼─────────────┼────┼───────────────────┘
//!    │  CMD18: CMD12                           │             │    │
//!    │                                         │             │    │
//!    │            CMD24, CMD25                 │             │    │
//!    │                    ┌────────────────────┤             │    │
//!    │                    v                    │ CMD38       │    │
//!    ├─ CMD24: refused ─ rcv                   │             │    │
//!    │                    │                    v             │    │
//!    │                    └────────────────>  prg ───────────┘    │
//!    │    CMD24: block received; CMD25: CMD12  │ ^   CMD7,        │
//!    └───────────────────── done ──────────────┘ │   another's    │
//!                                                └────────────────┘
//! ```
//!
//! Sources of the timings, in clocks of the bus (3.6.1, 4.7.2, 4.9, 4.12):
//!
//! ```text
//!   command                48   CMD   SSSSS────RRRRR                  NCR 2 to 64, NID 5
//!   response         48 or 136  DAT0  ──────DDDDDDDDDDD               read: NAC from the command's end
//!   block           18 + bits   DAT0  ────────────────DDDDDD─TTTTTBBB write: NWR from the response's end,
//!   CRC status    NCRC 2 and 5                                        NCRC before the status, then busy
//! ```
//!
//! `bits` is the number of data bits on one line: 4096 or 1024 for 512 bytes. A block that is read runs in
//! parallel with the response to its command. Busy begins, in time, with the end of the block or command
//! that caused it; on DAT0 it appears after the CRC status or the response. The card accepts commands while
//! busy: it answers CMD13, for example.
//!
//! # Implementation-defined behaviour
//!
//! - The card's address is 1 after the first CMD3, 2 after the second, and so on.
//! - The card does not buffer writes in the background: READY_FOR_DATA is 0 whenever it is busy.
//! - A block that is rejected for a reason other than its checksum gets the CRC status 110, which has this
//!   meaning over SPI (7.3.3.1). The blocks after the rejected one get no CRC status (4.3.4).
//! - A read that fails stays in `data` until CMD12, for single and multiple blocks.
//! - CMD18 reads one block ahead: after the last block of the card, the status reports out of range
//!   (4.3.3).
//! - A function selected by CMD6 takes effect at once.
//!
//! # Responsibilities of the host
//!
//! - NRC, NCC and NWR, which are not checked;
//! - timeouts;
//! - the bus width and the clock, which must match the state of the card. If the clock is above the selected speed, the
//!   card receives no commands.
//!
//! # Not implemented
//!
//! - CMD4, CMD11, CMD15, CMD19, CMD20, CMD23, CMD27 to CMD30, CMD42, CMD56 and ACMD42, which this card rejects as
//!   illegal commands;
//! - more than one card on the bus;
//! - the inactive state;
//! - 1.8 V.

mod card;
mod erase;
mod execute;
mod frame;
mod lines;
mod status;
mod switch;
mod transfer;

pub use card::SdBusCard;
pub use frame::{Command, Response};
pub use lines::{CrcStatus, LineSums, Width};
