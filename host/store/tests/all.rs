//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod common;
mod fat_card;
#[path = "../../../sim/card/tests/reference/mod.rs"]
mod reference;
mod stacks;
mod window;
mod wire;
