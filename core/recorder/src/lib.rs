//! Records samples to files on a card, and loses none.
#![no_std]
#[cfg(test)]
extern crate std;

mod volume;

pub use volume::{Blocks, Extent, Name, RESERVED_MAX, Request, Reserved, Volume};
