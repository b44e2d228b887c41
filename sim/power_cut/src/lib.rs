//! The power-cut test: power is cut at any byte of a data logger's life, and the card is judged.
//!
//! ```text
//!   seed ──> Scene: a formatted card, files of others, a device ──> uncut: its bytes and events
//!                  └──> cut at a byte ──> restart, cut again or not ──> ... ──> a session that ends
//!                                                                                  │
//!            files, FATs, content, checkpoints, window <── judge <─────────────────┘
//! ```
//!
//! Who judges shares no code with the recorder: chains and FATs are looked at by a checker of its own,
//! files are read by the crate fatfs, and what is in them by a parser of docs/formats.md.

pub mod case;
pub mod content;
pub mod disk;
pub mod fat;
pub mod judge;
pub mod ledger;
pub mod others;
pub mod plan;
pub mod rules;
pub mod session;
