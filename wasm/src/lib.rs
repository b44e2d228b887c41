//! Cardiograph as WebAssembly with a plain C ABI.
//!
//! The simulated card, so that an emulated board can have it on its SPI bus; and, with the feature `playground`, the
//! commands `analyze`, `record` and `plan` for a browser.
//!
//! The host and this module exchange names, states, blocks, files and messages through one buffer: `buffer(bytes)` sets
//! its length and returns its address. Cards have handles, from 0. Functions that may fail return a negative number; the
//! buffer then holds the message, and `buffer_bytes` returns its length.
//!
//! Times are in ns of the host's clock, as floating-point numbers, which are exact for 104 days. No function moves time
//! on its own.

mod card;
mod exports;
#[cfg(feature = "playground")]
mod playground;
