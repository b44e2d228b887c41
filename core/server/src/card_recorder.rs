//! The recorder of a device, as the server sees it.

use crate::instrument::{
    Command, Gap, Instrument, Item, ROW_BYTES_MAX, Refusal, Sample, Session, Status, WriteLatency,
};
use crate::storage::RecordingPath;
use cardiograph_recorder::{
    Control, FileId, Format, Newest, ReadDesk, Session as RecorderSession, Shown,
};
use core::fmt::{self, Write as _};

/// A stream of a recorder, as clients see it.
#[derive(Clone, Copy)]
pub struct LiveStream<'d> {
    /// Format of the samples.
    pub format: Format,
    /// The newest samples: the producer writes them ([`Producer::show`](cardiograph_recorder::Producer::show)).
    pub newest: Newest<'d>,
}

/// Operations of the device itself. By default, it supports none of them.
pub trait Actions {
    /// Starts a recording.
    ///
    /// # Errors
    /// [`Refusal`] if it is not possible now.
    fn start(&self, _session: Option<Session>) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }

    /// Sets the clock; see [`Instrument::set_clock`].
    ///
    /// # Errors
    /// [`Refusal`] if it is not possible now.
    fn set_clock(&self, _unix_ms: u64, _zone_min: i16) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }

    /// Returns the latency of a write; see [`Instrument::latency`].
    fn latency(&self, _number: u64) -> Option<WriteLatency> {
        None
    }

    /// Carries out another action; see [`Instrument::act`].
    ///
    /// # Errors
    /// [`Refusal`] if there is no such action, or it is not possible now.
    fn act(&self, _action: &str) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }

    /// Writes the reason why no recording has started as a sentence; nothing if there is none. During a recording, the
    /// recorder itself reports faults of its card.
    ///
    /// # Errors
    /// Those of `text`.
    fn write_fault(&self, _text: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }

    /// Writes another report of the device; see [`Instrument::write_notice`].
    ///
    /// # Errors
    /// Those of `text`.
    fn write_notice(&self, _text: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }

    /// Returns an item that the application adds to the page; see [`Instrument::item`].
    fn item(&self, _number: usize, _text: &mut [u8; ROW_BYTES_MAX]) -> Option<(Item, usize)> {
        None
    }

    /// Returns true if the device knows the date and time.
    fn has_clock(&self) -> bool {
        false
    }
}

impl Actions for () {}

/// The recorder behind a desk.
pub struct CardRecorder<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    control: &'d Control,
    streams: &'d [LiveStream<'d>],
    actions: &'d dyn Actions,
}

impl<'d, 'a> CardRecorder<'d, 'a> {
    /// Creates the instrument. The streams are those of the recorder, in the same order.
    pub fn new(
        desk: &'d ReadDesk<'a>,
        control: &'d Control,
        streams: &'d [LiveStream<'d>],
        actions: &'d dyn Actions,
    ) -> Self {
        CardRecorder {
            desk,
            control,
            streams,
            actions,
        }
    }

    fn stream(&self, stream: u8) -> Option<&LiveStream<'d>> {
        self.streams.get(usize::from(stream))
    }

    fn begin(&self, session: &Session) -> Result<(), Refusal> {
        let first = self.stream(0).ok_or(Refusal::NotRecording)?;
        let session = RecorderSession::new(session.name, None, session.settings, &first.format)?;
        Ok(self.control.begin_session(&session)?)
    }

    /// Locates a sample that is not among the newest ones.
    fn on_card(&self, stream: u8, number: u64) -> Sample {
        match self.desk.file_of(stream, number) {
            Some((id, first)) if first <= number => Sample::OnCard {
                path: path_of(id),
                first,
            },
            Some((_, first)) => Sample::Lost {
                next: first,
                cause: "unknown",
            },
            None => Sample::Later,
        }
    }

    /// Returns the consecutive lost samples from this one on; a newer sample exists.
    fn lost(&self, stream: u8, newest: &Newest, number: u64) -> Sample {
        let mut sample = [0; ROW_BYTES_MAX];
        let mut next = number + 1;
        while newest.look(next as u32, &mut sample) == Shown::Lost {
            next += 1;
        }
        let gap = self.desk.gap_of(stream, number);
        let cause = gap.map_or("busy", |gap| gap.cause.word());
        Sample::Lost { next, cause }
    }
}

impl Instrument for CardRecorder<'_, '_> {
    fn status(&self) -> Option<Status> {
        let figures = self.desk.figures();
        let ms = |us: u64| u32::try_from(us / 1000).unwrap_or(u32::MAX);
        Some(Status {
            is_recording: figures.is_recording,
            streams: figures.streams,
            ring_bytes: figures.ring_bytes,
            ring_capacity_bytes: figures.ring_capacity_bytes,
            ring_bytes_max: figures.ring_bytes_max,
            samples: figures.samples,
            lost: figures.lost,
            gaps: figures.gaps,
            written_bytes: figures.blocks * cardiograph_card::BLOCK_BYTES as u64,
            rate_bytes_per_s: figures.rate_bytes_per_s,
            writes: figures.writes,
            write_us_median: figures.write_us_median,
            write_us_p99: figures.write_us_p99,
            write_us_max: figures.write_us_max,
            window_ms: ms(figures.window_us),
            windows_exceeded: figures.windows_exceeded,
            unsaved_ms: ms(figures.unsaved_us),
            has_clock: self.actions.has_clock(),
        })
    }

    fn write_fault(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        let figures = self.desk.figures();
        match figures.fault {
            Some(fault) => write!(text, "{fault}"),
            None if figures.is_recording => Ok(()),
            None => self.actions.write_fault(text),
        }
    }

    fn write_notice(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        self.actions.write_notice(text)
    }

    fn columns(&self, stream: u8, row: &mut [u8; ROW_BYTES_MAX]) -> usize {
        let Some(LiveStream { format, newest }) = self.stream(stream) else {
            return 0;
        };
        let mut sample = [0; ROW_BYTES_MAX];
        let schema = match newest.look(newest.next().wrapping_sub(1), &mut sample) {
            Shown::Sample { schema, .. } => schema,
            _ => 0,
        };
        format.write_columns(schema, row)
    }

    fn next(&self, stream: u8) -> u64 {
        let Some(LiveStream { newest, .. }) = self.stream(stream) else {
            return 0;
        };
        // The newest file begins less than 2^32 samples ago.
        let base = self.desk.file_of(stream, u64::MAX).map_or(0, |it| it.1);
        base + u64::from(newest.next().wrapping_sub(base as u32))
    }

    fn sample(&self, stream: u8, number: u64, row: &mut [u8; ROW_BYTES_MAX]) -> Sample {
        let Some(LiveStream { format, newest }) = self.stream(stream) else {
            return Sample::None;
        };
        let next = self.next(stream);
        if number >= next {
            return Sample::Later;
        }
        if next - number >= u64::from(newest.slots()) {
            return self.on_card(stream, number);
        }
        let mut sample = [0; ROW_BYTES_MAX];
        match newest.look(number as u32, &mut sample) {
            Shown::Sample { bytes, schema } => {
                Sample::Row(format.write_sample(schema, &sample[..bytes], row))
            }
            Shown::Later => Sample::Later,
            Shown::Lost => self.lost(stream, newest, number),
            Shown::NotKept => self.on_card(stream, number),
        }
    }

    fn gap(&self, number: u64) -> Option<Gap> {
        let (number, stream, gap) = self.desk.gap(number)?;
        Some(Gap::of(number, stream, &gap))
    }

    fn latency(&self, number: u64) -> Option<WriteLatency> {
        self.actions.latency(number)
    }

    fn control(&self, command: Command) -> Result<(), Refusal> {
        match (command, self.desk.figures().is_recording) {
            (Command::Start(session), false) => self.actions.start(session),
            (Command::Start(_), true) => Err(Refusal::Recording),
            (Command::Stop | Command::Rotate(_), false) => Err(Refusal::NotRecording),
            (Command::Stop, true) => {
                self.control.stop();
                Ok(())
            }
            (Command::Rotate(None), true) => {
                self.control.rotate();
                Ok(())
            }
            (Command::Rotate(Some(session)), true) => self.begin(&session),
        }
    }

    fn act(&self, action: &str) -> Result<(), Refusal> {
        self.actions.act(action)
    }

    fn item(&self, number: usize, text: &mut [u8; ROW_BYTES_MAX]) -> Option<(Item, usize)> {
        self.actions.item(number, text)
    }

    fn set_clock(&self, unix_ms: u64, zone_min: i16) -> Result<(), Refusal> {
        self.actions.set_clock(unix_ms, zone_min)
    }
}

fn path_of(id: FileId) -> RecordingPath {
    let mut path = RecordingPath::new();
    // Names of recordings are shorter than a path.
    let _ = write!(path, "/{id}");
    path
}
