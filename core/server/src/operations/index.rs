//! Lists of sessions and days, from the index of recordings.

use super::archive::write_day;
use super::list::url;
use crate::status::{Closed, Fault};
use crate::text::Json;
use crate::wire::Wire;
use crate::{
    Day, Instrument, Position, Recording, RecordingPath, Server, SessionName, Storage, Timer,
};
use core::fmt::{self, Display, Formatter};
use embedded_io_async::{Read, Write};

/// Property by which recordings are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Session; a recording without one is a group of its own.
    Session,
    Day,
}

/// Consecutive recordings of one session or day.
struct Group {
    first: RecordingPath,
    session: SessionName,
    day: Option<Day>,
    recordings: u32,
    bytes: u64,
    samples: u64,
    gaps: u64,
    lost: u64,
    is_growing: bool,
}

impl Group {
    fn of(recording: &Recording) -> Group {
        let mut group = Group {
            first: recording.path.clone(),
            session: recording.session.clone(),
            day: recording.day,
            recordings: 0,
            bytes: 0,
            samples: 0,
            gaps: 0,
            lost: 0,
            is_growing: false,
        };
        group.add(recording);
        group
    }

    fn add(&mut self, recording: &Recording) {
        self.recordings += 1;
        self.bytes = self.bytes.saturating_add(recording.stat.bytes);
        self.samples = self.samples.saturating_add(recording.samples);
        self.gaps = self.gaps.saturating_add(recording.gaps.into());
        self.lost = self.lost.saturating_add(recording.lost);
        self.is_growing |= recording.stat.is_growing;
    }

    fn takes(&self, grouping: Grouping, recording: &Recording) -> bool {
        match grouping {
            Grouping::Session => !self.session.is_empty() && self.session == recording.session,
            Grouping::Day => self.day == recording.day,
        }
    }
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends the sessions or days, oldest first. Recordings are grouped as long as they are consecutive.
    pub(crate) async fn groups<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        grouping: Grouping,
    ) -> Result<(), Fault> {
        let mut position = Position::default();
        let mut group: Option<Group> = None;
        // The response begins with the first recording, so that a failure of the card before it has its own status.
        let (mut is_started, mut separator) = (false, "[");
        loop {
            let next = self.storage.record(&mut position).await?;
            if let (Some(group), Some(recording)) = (&mut group, &next)
                && group.takes(grouping, recording)
            {
                group.add(recording);
                continue;
            }
            if !is_started {
                is_started = true;
                wire.start_json().await?;
            }
            if let Some(group) = &group {
                wire.bytes(separator.as_bytes()).await?;
                json_group(wire, grouping, group).await?;
                separator = ",\n";
            }
            match next.filter(|_| !wire.is_head()) {
                Some(recording) => group = Some(Group::of(&recording)),
                None => break,
            }
        }
        if separator == "[" {
            wire.bytes(b"[").await?;
        }
        wire.bytes(b"]\n").await?;
        Ok(wire.finish().await?)
    }
}

async fn json_group<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    grouping: Grouping,
    group: &Group,
) -> Result<(), Closed> {
    let Group {
        recordings,
        bytes,
        samples,
        gaps,
        lost,
        is_growing,
        ..
    } = group;
    let day = DayText(group.day);
    wire.bytes(b"{").await?;
    if grouping == Grouping::Session {
        wire.text(format_args!("\"session\":\"{}\",", Json(&group.session)))
            .await?;
    }
    wire.text(format_args!(
        "\"day\":\"{day}\",\"recordings\":{recordings},\"size\":{bytes},\"samples\":{samples},\
         \"gaps\":{gaps},\"lost\":{lost},\"growing\":{is_growing},\"first\":\"{}\",\"url\":\"",
        Json(&group.first)
    ))
    .await?;
    match grouping {
        Grouping::Day => wire.text(format_args!("/days/{day}")).await?,
        Grouping::Session if group.session.is_empty() => url(wire, &group.first).await?,
        Grouping::Session => {
            wire.bytes(b"/sessions/").await?;
            url(wire, &group.session).await?;
        }
    }
    wire.bytes(b"\"}").await
}

/// A date, or `unknown`.
struct DayText(Option<Day>);

impl Display for DayText {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write_day(f, self.0)
    }
}
