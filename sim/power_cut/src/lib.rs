//! The power-cut test: cuts the power of a data logger at any byte of its bus traffic, and judges the card.
//!
//! ```text
//!   seed ──> Scene: a formatted card, foreign files, a device ──> reference run: its bytes and events
//!                  └──> cut at a byte ──> restart, cut again or not ──> ... ──> a session that ends normally
//!                                                                                  │
//!            files, FATs, content, checkpoints, window <── judge <─────────────────┘
//! ```
//!
//! The judge shares no code with the recorder: it has its own checker for FATs and cluster chains, reads
//! files with the crate fatfs, and parses their contents according to docs/formats.md.

pub mod case;
pub mod chain;
pub mod changes;
pub mod content;
pub mod disk;
pub mod fat;
pub mod foreign;
pub mod judge;
pub mod ledger;
pub mod namespace;
pub mod outcome;
pub mod plan;
pub mod rules;
pub mod scene;
pub mod session;
