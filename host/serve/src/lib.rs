//! The file server on a computer: a directory, and the recorder that writes to it.
//!
//! ```text
//!   listen ── one thread ── a task per connection ──> cardiograph-server
//!                                                       │         │
//!                            DirectoryStorage <── Storage         Instrument ──> NoInstrument
//!                              │        │
//!                              │        └── LiveFiles: durable lengths, from the recorder's thread
//!                              └── Root: openat2, no links, nothing above the directory
//! ```
//!
//! - [`DirectoryStorage`]: files of a directory. Reads from the page cache happen at once, all other access to
//!   the storage device in helper threads, so that a slow device delays only the client that waits for it.
//! - [`Listener`]: sockets, limits of connections, and the end of the server.

mod beneath;
mod directory;
mod listener;

pub use directory::DirectoryStorage;
pub use listener::{Listener, Settings};
