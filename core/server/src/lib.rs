//! Serves the files of a card and live data over HTTP, while the recorder writes.
//!
//! ```text
//!   socket ── Read + Write of embedded-io-async
//!     │
//!   Wire ──── receives heads, sends framed responses, ends slow connections       (wire.rs, timer.rs)
//!     ├── head ── httparse                                                      (head.rs)
//!     ├── guard ─ length of the body, Host, origin, credentials                 (guard.rs)
//!     ├── route ─ head ──> operation and path; a pure function                  (route.rs, path.rs)
//!     ├── Body ── bytes of known length, or chunks                              (body.rs, chunk.rs)
//!     └── operations                                                            (operations/)
//!           ├── read, list, archive, slice, index ──> files, folders, tar, CSV
//!           ├── upload, change                   ──> PUT, forms, DELETE
//!           ├── propfind, copy, lock             ──> WebDAV                    (dav/)
//!           ├── bench                            ──> trace of writes            (bench.rs, order.rs)
//!           └── live, replay, state, control     ──> events, samples, status, recorder
//!                 │                    │
//!              Storage             Instrument                                   (storage.rs, instrument.rs)
//!                 │                    │
//!            CardStorage          CardRecorder ── of a device                   (card.rs, card_recorder.rs)
//! ```
//!
//! The crate needs no allocator, no operating system and no particular executor: [`Server::serve`] is a future that
//! handles one connection. All connections share one [`Server`] in one thread. `docs/api.md` lists every request,
//! and `docs/security.md` the attacks that the server withstands.
//!
//! # Order of checks
//!
//! The guard determines the length of the body before anything else interprets the head, so that no byte of a body is
//! ever mistaken for a request. Then it checks the name by which the client knows the server, and the page that sent
//! the request. Only then does the router look at method, path and arguments. An operation sends nothing until the
//! storage has confirmed as much as it can, so that a failure up to then has its own status. A later failure interrupts
//! the response; the client notices this, because it knows the length.
//!
//! # Memory
//!
//! A connection has two buffers ([`Buffers`]): 1504 bytes for the head of the request, and 768 bytes for everything
//! that the server generates or receives. Bytes of files are sent from the read buffer of the storage. Together with
//! the future of [`Server::serve`] on a [`CardStorage`], this is at most 4 KiB on a 32-bit target, without the state of
//! timer and socket; `size.rs` asserts it when the crate is compiled for one.
//!
//! # A device
//!
//! The recorder and this function run as tasks of the same executor, and share a desk and a control. Each further
//! connection needs another task.
//!
//! ```
//! # use cardiograph_recorder::{Control, ReadDesk};
//! # use cardiograph_server::*;
//! # use embedded_io_async::{Read, Write};
//! /// Serves connections one after another; `accept` waits for the next one.
//! async fn run<T: Timer, C: Read + Write>(
//!     desk: &ReadDesk<'_>,
//!     control: &Control,
//!     streams: &[LiveStream<'_>],
//!     timer: &T,
//!     secret: u64,
//!     accept: impl AsyncFn() -> C,
//! ) {
//!     let storage = CardStorage::new(desk);
//!     let recorder = CardRecorder::new(desk, control, streams, &());
//!     let config = Config {
//!         names: &["cardiograph.local"],
//!         is_read_only: true,
//!         basic_auth: None,
//!         secret,
//!         event_streams_max: 1,
//!     };
//!     let server = Server::new(&storage, &recorder, timer, config);
//!     let mut buffers = Buffers::new();
//!     loop {
//!         let mut socket = accept().await;
//!         server.serve(&mut socket, &mut buffers).await;
//!     }
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#[cfg(test)]
extern crate std;

mod bench;
mod body;
mod card;
mod card_recorder;
mod chunk;
mod dav;
#[cfg(feature = "computer")]
mod direct;
mod error;
mod guard;
mod head;
mod instrument;
mod limits;
mod multipart;
mod operations;
mod order;
#[cfg(feature = "page")]
mod page;
mod path;
mod range;
mod recording;
mod route;
mod server;
#[cfg(any(test, target_pointer_width = "32"))]
mod size;
mod status;
mod storage;
mod tar;
mod text;
mod timer;
mod wire;

pub use bench::{BENCH_LINE_BYTES_MAX, Bench, Next, Payload, WriteTest, bench_refusal};
pub use card::{CardStorage, CardStorageFile, CardUpload};
pub use card_recorder::{Actions, CardRecorder, LiveStream};
pub use cardiograph_recorder::is_protected;
pub use dav::Depth;
#[cfg(feature = "computer")]
pub use direct::{Direct, Peer, Sent};
pub use error::Error;
pub use guard::{Content, admit};
pub use head::{Fields, Head, Method, parse};
pub use instrument::{
    Command, Gap, Instrument, Item, NoInstrument, ROW_BYTES_MAX, Refusal, Sample, Session, Status,
    WriteLatency,
};
pub use limits::HEAD_BYTES_MAX;
pub use order::{Order, OrderLine};
pub use path::{Path, Query, decode_path};
pub use range::{Selection, select};
pub use route::{Live, Operation, Reading, Route, Slice, route};
pub use server::{Buffers, Config, Server};
pub use status::{Refused, Status as StatusCode};
pub use storage::{
    Day, Entry, Kind, NAME_BYTES_MAX, NameBuffer, PATH_BYTES_MAX, Position,
    RECORDING_PATH_BYTES_MAX, Recording, RecordingPath, SESSION_BYTES_MAX, SessionName, Space,
    Stat, Storage, Version,
};
pub use timer::Timer;
