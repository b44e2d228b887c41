//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod browser;
mod distribution;
mod drawing;
mod energy;
mod page;
mod table;
