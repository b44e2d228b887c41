//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod api;
mod archives;
mod bench;
mod changes;
mod clients;
mod conditions;
mod dav;
mod files;
mod heads;
mod live;
mod memory;
mod orders;
mod properties;
mod rows;
