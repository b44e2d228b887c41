//! Serves files and live data over HTTP, without an operating system or an allocator.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(test)]
extern crate std;

mod card;
mod chunk;
mod error;
mod guard;
mod head;
mod instrument;
mod limits;
mod multipart;
mod operations;
mod path;
mod range;
mod route;
mod server;
mod status;
mod storage;
mod tar;
mod text;
mod timer;
mod wire;

pub use card::CardStorage;
pub use error::Error;
pub use guard::{Content, admit};
pub use head::{Fields, Head, Method, parse};
pub use instrument::{
    Command, Gap, Instrument, NoInstrument, ROW_BYTES_MAX, Refusal, Sample, Session, Status,
};
pub use limits::HEAD_BYTES_MAX;
pub use path::{Path, Query, decode_path, is_hidden};
pub use range::{Selection, select};
pub use route::{Live, Operation, Reading, Route, Slice, route};
pub use server::{Buffers, Config, Server};
pub use status::{Refused, Status as StatusCode};
pub use storage::{
    Day, Entry, Kind, PATH_BYTES_MAX, Position, RECORDING_PATH_BYTES_MAX, Recording, RecordingPath,
    SESSION_BYTES_MAX, SessionName, Space, Stat, Storage, Version,
};
pub use timer::Timer;
