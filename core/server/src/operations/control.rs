//! The recorder and the clock.

use super::upload::done;
use crate::body::Body;
use crate::path::Query;
use crate::status::{Fault, Refused, Status};
use crate::wire::Wire;
use crate::{Command, Instrument, Refusal, Server, Session, Storage, Timer};
use embedded_io_async::{Read, Write};

/// Maximum length of a session's settings, in bytes.
const SETTINGS_BYTES_MAX: usize = 96;

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Starts, stops or rotates the recording. The arguments are in the URL or in a form.
    pub(crate) async fn record<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        body: &mut Body<'_>,
        query: Query<'_>,
    ) -> Result<(), Fault> {
        let order = match body.is_read() {
            true => Order::of(query)?,
            false => Order::of(body.form(wire).await?)?,
        };
        let session = order.session.as_ref().map(|name| Session {
            name,
            settings: &order.settings,
        });
        let command = match order.action.as_str() {
            "start" => Command::Start(session),
            "rotate" => Command::Rotate(session),
            "stop" => Command::Stop,
            other => {
                self.act(other)?;
                return done(wire, Status::NoContent).await;
            }
        };
        self.instrument.control(command).map_err(refused)?;
        done(wire, Status::NoContent).await
    }

    /// Carries out an action of the application.
    fn act(&self, action: &str) -> Result<(), Refused> {
        match self.instrument.act(action) {
            Err(Refusal::Unsupported) => Err(Refused::bad(
                "this device has no such action; it has start, stop and rotate, and those that /status lists",
            )),
            result => result.map_err(refused),
        }
    }

    /// Sets the clock.
    pub(crate) async fn clock<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        body: &mut Body<'_>,
        query: Query<'_>,
    ) -> Result<(), Fault> {
        let (unix_ms, zone_min) = match body.is_read() {
            true => time(query)?,
            false => time(body.form(wire).await?)?,
        };
        self.instrument
            .set_clock(unix_ms, zone_min)
            .map_err(refused)?;
        done(wire, Status::NoContent).await
    }
}

/// Arguments of a request to the recorder.
struct Order {
    action: heapless::String<8>,
    session: Option<heapless::String<{ crate::SESSION_BYTES_MAX }>>,
    settings: heapless::String<SETTINGS_BYTES_MAX>,
}

impl Order {
    fn of(arguments: Query) -> Result<Order, Refused> {
        let session = arguments.text("session")?;
        let settings = arguments.text("settings")?;
        if session.is_none() && settings.is_some() {
            return Err(Refused::bad("settings belong to a session; add its name"));
        }
        Ok(Order {
            action: arguments.text("action")?.unwrap_or_default(),
            session,
            settings: settings.unwrap_or_default(),
        })
    }
}

/// Returns the arguments of a clock: ms since 1970, and the zone in minutes east of UTC.
fn time(arguments: Query) -> Result<(u64, i16), Refused> {
    const BAD: Refused =
        Refused::bad("the clock needs ms since 1970 and, if known, zone in minutes east of UTC");
    let ms = arguments.number("ms")?.ok_or(BAD)?;
    let zone = arguments.text::<8>("zone")?.unwrap_or_default();
    let zone_min = match zone.trim() {
        "" => 0,
        zone => zone.parse().map_err(|_| BAD)?,
    };
    match (-18 * 60..=18 * 60).contains(&zone_min) {
        true => Ok((ms, zone_min)),
        false => Err(BAD),
    }
}

fn refused(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Unsupported => Refused::new(
            Status::NotFound,
            "this server has no recorder, or the device cannot do this",
        ),
        Refusal::Recording => Refused::new(Status::Conflict, "a recording is in progress"),
        Refusal::NotRecording => Refused::new(Status::Conflict, "no recording is in progress"),
        Refusal::SessionInvalid => Refused::bad(
            "a session has 1 to 32 letters, digits, - and _, and settings of up to 96 printable ASCII characters without double quotes",
        ),
        Refusal::Busy => Refused::new(
            Status::ServiceUnavailable,
            "requests to the recorder are queued; try again later",
        ),
    }
}
