//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod changes;
mod common;
mod files;
mod hostile;
mod limits;
mod protected;
mod proxy;
mod recording;
mod webdav;
mod zone;
