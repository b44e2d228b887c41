//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod directory;
mod export;
mod export_streams;
mod finding;
mod monitor;
mod totals;
