//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod dropped;
mod faults;
mod flips;
mod registers;
mod reports;
mod rig;
mod soak;
mod wire_bytes;
