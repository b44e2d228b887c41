//! A test of the storage's writes, whose trace is the response.

use crate::bench::{Bench, Next, WriteTest};
use crate::body::Body;
use crate::path::Query;
use crate::status::{Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Instrument, Server, Storage, Timer};
use core::cell::Cell;
use embedded_io_async::{Read, Write};

const RECORDING: Refused = Refused::new(
    Status::Locked,
    "a recording is in progress; stop it before the test",
);
const TESTING: Refused = Refused::new(
    Status::Locked,
    "another test is in progress; wait for its end",
);
const NO_CARD_BEHIND: Refused = Refused::new(
    Status::NotImplemented,
    "this server writes to the cache of a computer; measure its directory with cardiograph bench there",
);
const NO_CLOCK: Refused = Refused::new(
    Status::NotImplemented,
    "this server has no clock that can measure writes",
);
/// The test that may be under way.
struct Ticket<'a>(&'a Cell<bool>);

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Writes files, and sends the trace of the writes.
    pub(crate) async fn bench<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        body: &mut Body<'_>,
        query: Query<'_>,
    ) -> Result<(), Fault> {
        let test = match body.is_read() {
            true => WriteTest::of(query)?,
            false => WriteTest::of(body.form(wire).await?)?,
        };
        if self.is_recording() {
            return Err(RECORDING.into());
        }
        if self.storage.write_bytes() == 0 {
            return Err(NO_CARD_BEHIND.into());
        }
        if self.timer.now_us().is_none() {
            return Err(NO_CLOCK.into());
        }
        if self.is_testing.replace(true) {
            return Err(TESTING.into());
        }
        let _ticket = Ticket(&self.is_testing);
        let mut bench = Bench::begin(self.storage, test).await?;
        wire.closes |= wire.is_old();
        wire.start(Status::Ok).await?;
        wire.text(format_args!(
            "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
        ))
        .await?;
        wire.body(Length::Unknown).await?;
        loop {
            match bench.advance(|| self.timer.now_us().unwrap_or(0)).await {
                Next::Over => return Ok(wire.finish().await?),
                Next::Wait(ms) => wire.pause(ms).await?,
                Next::Line => {
                    wire.line(format_args!(""), |line| Some(bench.line(line)))
                        .await?;
                    wire.flush().await?;
                }
            }
            if self.is_recording() {
                bench.stop("a recording began");
            }
        }
    }

    fn is_recording(&self) -> bool {
        let status = self.instrument.status();
        status.is_some_and(|status| status.is_recording)
    }
}
