//! Serves files and live data over HTTP, without an operating system or an allocator.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(test)]
extern crate std;

mod error;
mod instrument;
mod server;
mod storage;

pub use error::Error;
pub use instrument::{
    Command, Gap, Instrument, NoInstrument, ROW_BYTES_MAX, Refusal, Sample, Session, Status,
};
pub use server::{Buffers, Config, HEAD_BYTES_MAX, Server, Timer};
pub use storage::{
    Day, Entry, Kind, PATH_BYTES_MAX, Position, RECORDING_PATH_BYTES_MAX, Recording, RecordingPath,
    SESSION_BYTES_MAX, SessionName, Space, Stat, Storage, Version,
};
