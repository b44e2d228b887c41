//! A card that answers over the SD bus, one bit or four, command by command.
//!
//! ```text
//!   host controller ── SdBusCard ── Card
//!                        │
//!                        ├── when: clocks as virtual time          (pace.rs)
//!                        ├── clocks of commands, blocks and busy   (card.rs)
//!                        ├── commands and responses                (frame.rs, execute.rs)
//!                        ├── card status and states                (status.rs)
//!                        ├── blocks, CRC status                    (transfer.rs, erase.rs, switch.rs)
//!                        └── blocks on one line or four            (lines.rs)
//! ```
//!
//! The states are those of 4.2 and 4.3, and which command is taken in which is 4.8. CMD0 leads to `idle`
//! from anywhere, and a command that is not in the drawing changes nothing.
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
//!    ├─ block out; ───── data ─────────────────┼─────────────┼────┼───────────────────┘
//!    │  CMD18: CMD12                           │             │    │
//!    │                                         │             │    │
//!    │            CMD24, CMD25                 │             │    │
//!    │                    ┌────────────────────┤             │    │
//!    │                    v                    │ CMD38       │    │
//!    ├─ CMD24: refused ─ rcv                   │             │    │
//!    │                    │                    v             │    │
//!    │                    └────────────────>  prg ───────────┘    │
//!    │    CMD24: block in; CMD25: CMD12        │ ^   CMD7,        │
//!    └───────────────────── done ──────────────┘ │   another's    │
//!                                                └────────────────┘
//! ```
//!
//! Where the numbers come from, in clocks of the bus (3.6.1, 4.7.2, 4.9, 4.12):
//!
//! ```text
//!   command                48   CMD   SSSSS────RRRRR                  NCR 2 to 64, NID 5
//!   response         48 or 136  DAT0  ──────DDDDDDDDDDD               read: NAC from the command's end
//!   block           18 + bits   DAT0  ────────────────DDDDDD─TTTTTBBB write: NWR from the response's end,
//!   CRC status    NCRC 2 and 5                                        NCRC before the status, then busy
//! ```
//!
//! `bits` are those of one line: 4096 or 1024 for 512 bytes. A block read runs beside the response to
//! its command. Busy begins, in time, with the end of the block or command that caused it; on DAT0 it
//! shows after the CRC status or the response. It hides nothing: CMD13 is answered meanwhile.
//!
//! # What a card may do as it likes, and this one does so
//!
//! - Its address is 1, then 2, and so on with each CMD3.
//! - It does not gather writes behind its back: READY_FOR_DATA is 0 whenever it is busy.
//! - A block that is refused for another reason than its checksum gets the CRC status 110, which means
//!   that over SPI (7.3.3.1). Those after it get none (4.3.4).
//! - A read that fails stays in `data` until CMD12, with one block as with many.
//! - CMD18 looks a block ahead: after the last block of the card the status says out of range (4.3.3).
//! - A function switched to by CMD6 is there at once.
//!
//! # What is the host's
//!
//! NRC, NCC and NWR, which nobody checks; how long it waits; and its number of lines and its clock, which
//! must fit what the card was told. A clock above what the card is switched to drowns all commands.
//!
//! # What is not there
//!
//! CMD4, CMD11, CMD15, CMD19, CMD20, CMD23, CMD27 to CMD30, CMD42, CMD56 and ACMD42, which are illegal
//! commands to this card; more than one card on the lines; the inactive state; 1.8 V.

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
pub use lines::{LineSums, Width};
pub use transfer::CrcStatus;
