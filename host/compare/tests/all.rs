//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod cards;
#[path = "../../store/tests/common/mod.rs"]
mod common;
mod definition;
mod full_card;
mod plain_stream;
mod recorder;
mod recover;
mod served;
mod stream;
mod units;
