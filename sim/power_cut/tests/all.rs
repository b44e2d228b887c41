//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod card_files;
mod changes;
mod faults;
mod parallel;
