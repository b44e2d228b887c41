//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod bad_input;
mod board;
mod doubts;
mod foreign;
mod formats;
mod parquet_by_others;
mod progress;
mod recordings;
mod remedies;
mod results;
mod round_trip;
mod runs;
mod scope;
mod ulog;
