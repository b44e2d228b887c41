//! Parts that the firmware of several boards has in common: samples, and, with the feature `network`, the fault that
//! prevents a recording and the connections to the server.
#![no_std]

#[cfg(feature = "network")]
mod connection;
#[cfg(feature = "network")]
mod fault;
mod samples;

#[cfg(feature = "network")]
pub use connection::{Clock, Connection, serve_next};
#[cfg(feature = "network")]
pub use fault::Fault;
pub use samples::{FORMAT, RATE_HZ, SAMPLE_BYTES, measure, sample};
