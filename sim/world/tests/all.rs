//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod cut;
mod link;
mod order;
mod parallel;
mod stuck;
mod timers;
