//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod bundled;
mod fit;
mod laws;
mod published;
mod recording;
mod web;
