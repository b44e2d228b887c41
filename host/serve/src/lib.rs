//! The file server on a computer: a directory and the recorder that writes to it, or a card that is not mounted.
//!
//! ```text
//!   listen ── one thread ── a task per connection ──> cardiograph-server
//!                                                       │         │
//!                            DirectoryStorage <── Storage         Instrument ──> LiveRecorder
//!                              │        │                                          │
//!                              │        └── LiveFiles <── Monitor <────────────────┘
//!                              └── Root: openat2                └── written by the recorder's threads
//! ```
//!
//! - [`DirectoryStorage`]: files of a directory. Reads that the page cache cannot answer and all changes happen in
//!   helper threads, so that a slow storage device delays only the client that waits for it.
//! - [`LiveRecorder`]: status, samples and gaps of a recording in this process.
//! - [`Listener`]: sockets, limits of connections, and the end of the server. [`Listener::serve_card`] serves a card or
//!   an image through the recorder's file system, as a device does.

// openat2, on which the safety of paths rests, exists on Linux only.
#[cfg(target_os = "linux")]
mod beneath;
mod card;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod directory;
mod listener;
mod recorder;
mod socket;

pub use card::ServedCard;
#[cfg(target_os = "linux")]
pub use directory::DirectoryStorage;
pub use listener::{Listener, Settings};
pub use recorder::LiveRecorder;
