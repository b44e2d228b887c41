//! The samples of a stream in a case, and the text that the recorder must write for them.

use cardiograph_recorder::{
    Column, Format, Kind, LINE_BYTES_MAX, MAGOD2, Schema, Session, StreamConfig, Window,
};
use cardiograph_sim_device::{Samples, due_ns};
use cardiograph_sim_world::{Random, Seed};
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

/// Schema of a sample that takes less space than the metadata of its block.
pub const SMALL: Schema = {
    const fn column(name: &'static str, kind: Kind) -> Column {
        Column { name, kind }
    }
    Schema::new(&[
        column("number", Kind::U32),
        column("level", Kind::I16),
        column("charge", Kind::I64),
        column("gain", Kind::F32(3)),
        column("state", Kind::U8),
    ])
};

/// First line of text files that have a header.
pub const HEADER: &str = "number,what was sampled # and @ and more";

const PREFIXES: [[u8; 3]; 4] = [*b"LOG", *b"REC", *b"MAG", *b"AUX"];
const FORMATS: [Format; 6] = [
    lines(""),
    lines(HEADER),
    Format::Csv(&[MAGOD2]),
    Format::Csv(&[SMALL]),
    Format::Binary(&[MAGOD2]),
    Format::Binary(&[SMALL]),
];

const fn lines(header: &'static str) -> Format {
    Format::Lines {
        header,
        line_bytes_max: LINE_BYTES_MAX as u16,
    }
}

/// One stream: its samples and its settings.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// File names, format and durability window.
    pub config: StreamConfig,
    /// Size of the stream's ring buffer, in bytes.
    pub ring_bytes: usize,
    /// Samples per second.
    pub rate_hz: u32,
    /// Number of samples that arrive together.
    pub burst: u64,
    /// Total number of samples.
    pub count: u64,
    /// Lengths of the shortest and the longest line, including the line end.
    line_bytes: (u64, u64),
    /// Index of the sample before which each session should begin.
    sessions: [Option<u64>; SESSIONS],
    /// Index of the sample before which each session did begin.
    begun: [Option<u64>; SESSIONS],
    /// Seed for the contents of the samples.
    seed: Seed,
}

/// Largest number of sessions per stream.
pub const SESSIONS: usize = 3;
/// Settings of each session.
pub const SETTINGS: [&str; SESSIONS] = ["gain=4 range=2", "", "axes=x, y and z"];

/// Returns the name of a session.
pub fn session_name(session: usize) -> String {
    format!("run-{session}")
}

impl Plan {
    /// Creates stream number `at` of a case, sampled for `seconds`.
    pub fn random(at: usize, seconds: f64, random: &mut Random) -> Plan {
        let mut pick = |numbers: &[u64]| numbers[random.below(numbers.len() as u64) as usize];
        let window = [
            Window::Us(1_000_000),
            Window::Us(100_000),
            Window::Us(300_000),
            Window::Sample,
        ];
        let format = FORMATS[pick(&[0, 0, 1, 2, 3, 4, 4, 5, 5]) as usize];
        let shares = matches!(format, Format::Binary(_)) && pick(&[0, 1]) == 1;
        let config = StreamConfig {
            prefix: if shares { *b"BIN" } else { PREFIXES[at] },
            format,
            window: window[pick(&[0, 1, 1, 2, 3]) as usize],
        };
        let shortest = pick(&[14, 20, 60]);
        let line_bytes = (shortest, pick(&[shortest, 80, 120, LINE_BYTES_MAX as u64]));
        let ring_bytes = pick(&[1024, 2048, 4096, 8192, 16384, 16384, 32768, 65536]) as usize;
        let bytes = match config.format {
            Format::Lines { .. } => (line_bytes.0 + line_bytes.1) / 2,
            Format::Csv(schemas) | Format::Binary(schemas) => schemas[0].sample_bytes() as u64,
        };
        let rate = pick(&[100, 1000, 4000, 10_000, 20_000, 40_000, 80_000]) / bytes;
        let rate_hz = rate.max(2) as u32;
        Plan {
            config,
            ring_bytes,
            rate_hz,
            burst: pick(&[1, 1, 1, 5, 20]).min(rate_hz.into()),
            count: (f64::from(rate_hz) * seconds) as u64 + 1,
            line_bytes,
            sessions: [None; SESSIONS],
            begun: [None; SESSIONS],
            seed: Seed::new(random.next_u64()),
        }
    }

    /// Adds sessions, possibly with another schema in some of them.
    #[must_use]
    pub fn with_sessions(mut self, random: &mut Random) -> Plan {
        for session in &mut self.sessions {
            *session = (random.below(3) > 0).then(|| random.below(self.count + 1));
        }
        self.sessions
            .sort_by_key(|sample| sample.unwrap_or(u64::MAX));
        if random.below(2) == 0 {
            self.config.format = match self.config.format {
                Format::Csv(_) => Format::Csv(&[SMALL, MAGOD2]),
                Format::Binary([first, ..]) if *first == SMALL => Format::Binary(&[SMALL, MAGOD2]),
                Format::Binary(_) => Format::Binary(&[MAGOD2, SMALL]),
                format => format,
            };
        }
        self
    }

    /// Returns the session that a sample belongs to.
    pub fn session_at(&self, sample: u64) -> Option<usize> {
        let is_begun = |session: &usize| self.begun[*session].is_some_and(|first| first <= sample);
        (0..SESSIONS).rev().find(is_begun)
    }

    /// Returns true if a session began.
    pub fn has_begun(&self, session: usize) -> bool {
        self.begun[session].is_some()
    }

    /// Returns the schema of the samples in a session; `None` for lines of text.
    pub fn schema_of(&self, session: Option<usize>) -> Option<&'static Schema> {
        let schemas = self.config.format.schemas();
        schemas.get(session.map_or(0, |session| session % schemas.len().max(1)))
    }

    /// Creates the source of samples for a device; it records in `begun` the sessions that began.
    pub fn source(&self, begun: Rc<RefCell<[Option<u64>; SESSIONS]>>) -> Source {
        let plan = Plan {
            begun: [None; SESSIONS],
            ..*self
        };
        Source { plan, begun }
    }

    /// Returns the plan with `begun` as the sessions that began.
    #[must_use]
    pub fn with_begun(self, begun: [Option<u64>; SESSIONS]) -> Plan {
        Plan { begun, ..self }
    }

    /// Creates stream number `at`, with `count` samples that arrive one by one.
    pub fn steady(at: usize, format: Format, window: Window, rate_hz: u32, count: u64) -> Plan {
        Plan {
            config: StreamConfig {
                prefix: PREFIXES[at],
                format,
                window,
            },
            ring_bytes: 16 << 10,
            rate_hz,
            burst: 1,
            count,
            line_bytes: (14, 80),
            sessions: [None; SESSIONS],
            begun: [None; SESSIONS],
            seed: Seed::new(at as u64),
        }
    }

    /// Returns a plan for the same stream with other samples, for `seconds`.
    #[must_use]
    pub fn rerun(&self, seconds: f64, random: &mut Random) -> Plan {
        Plan {
            count: (f64::from(self.rate_hz) * seconds) as u64 + 1,
            sessions: [None; SESSIONS],
            begun: [None; SESSIONS],
            seed: Seed::new(random.next_u64()),
            ..*self
        }
    }

    /// Names the format, with the size of a sample in bytes.
    pub fn kind(&self) -> String {
        let bytes = self.schema_of(None).map_or(0, Schema::sample_bytes);
        match self.config.format {
            Format::Lines { header, .. } => format!("lines {:?} {header:?}", self.line_bytes),
            Format::Csv(_) => format!("csv {bytes}"),
            Format::Binary(_) => format!("binary {bytes}"),
        }
    }

    /// Returns the due time of a sample, in ns from the start of sampling.
    pub fn due_ns(&self, index: u64) -> u64 {
        let rate_hz = (self.rate_hz / self.burst as u32).max(1);
        due_ns(index / self.burst, rate_hz) + index % self.burst * 1000
    }

    /// Returns the number of samples due before a time, in ns from the start of sampling.
    pub fn due_before(&self, ns: u64) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.due_ns(middle) < ns {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns a sample as it is pushed.
    pub fn sample(&self, index: u64) -> Vec<u8> {
        let mut random = self.seed.nth(index);
        let Some(schema) = self.schema_of(self.session_at(index)) else {
            return self.line(index, &mut random);
        };
        let columns = schema.columns().iter().enumerate();
        let values = columns.flat_map(|(at, column)| match at {
            0 => (index as u32).to_le_bytes().to_vec(),
            _ => value(column.kind, &mut random),
        });
        values.collect()
    }

    /// Returns the line of text that the recorder must write for a sample.
    pub fn text(&self, index: u64) -> Vec<u8> {
        let sample = self.sample(index);
        let Some(schema) = self.schema_of(self.session_at(index)) else {
            return sample;
        };
        let mut text = String::new();
        let mut rest = &sample[..];
        for (at, column) in schema.columns().iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            let (bytes, after) = rest.split_at(column.kind.bytes());
            write_value(column.kind, bytes, &mut text);
            rest = after;
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// Returns a line that begins with its number and continues with text that resembles checkpoint marks.
    fn line(&self, index: u64, random: &mut Random) -> Vec<u8> {
        const LETTERS: &[u8] = b"0123456789ABCDEF   ,,##@@ gap=\r";
        let more = self.line_bytes.1.saturating_sub(self.line_bytes.0);
        let len = (self.line_bytes.0 + random.below(more + 1)) as usize;
        let mut line = format!("{index},").into_bytes();
        while line.len() < len - 2 {
            line.push(LETTERS[random.below(LETTERS.len() as u64) as usize]);
        }
        line.extend(if random.below(4) > 0 {
            b"\r\n".as_slice()
        } else {
            b"\n"
        });
        line
    }
}

/// Source of a plan's samples, as a device pushes them.
pub struct Source {
    plan: Plan,
    begun: Rc<RefCell<[Option<u64>; SESSIONS]>>,
}

impl Source {
    /// Returns the last session that should begin before a sample.
    fn session_before(&self, index: u64) -> Option<usize> {
        let sessions = self.plan.sessions;
        (0..SESSIONS).rev().find(|at| sessions[*at] == Some(index))
    }
}

impl Samples for Source {
    fn due_ns(&mut self, index: u64) -> Option<u64> {
        (index < self.plan.count).then(|| self.plan.due_ns(index))
    }

    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let made = self.plan.sample(index);
        sample[..made.len()].copy_from_slice(&made);
        made.len()
    }

    fn session(&mut self, index: u64) -> Option<Session> {
        let session = self.session_before(index)?;
        let schema = self.plan.schema_of(Some(session));
        let format = &self.plan.config.format;
        Session::new(&session_name(session), schema, SETTINGS[session], format).ok()
    }

    fn note_session(&mut self, index: u64, is_begun: bool) {
        if let Some(session) = self.session_before(index).filter(|_| is_begun) {
            self.plan.begun[session] = Some(index);
            *self.begun.borrow_mut() = self.plan.begun;
        }
    }
}

fn value(kind: Kind, random: &mut Random) -> Vec<u8> {
    let bits = random.next_u64();
    let scale = 10_f64.powi(random.below(12) as i32 - 3);
    let real = (bits as i64 >> 11) as f64 / (1_u64 << 52) as f64 * scale;
    match kind {
        Kind::F32(_) => (real as f32).to_le_bytes().to_vec(),
        Kind::F64(_) => real.to_le_bytes().to_vec(),
        _ => (bits >> random.below(64)).to_le_bytes()[..kind.bytes()].to_vec(),
    }
}

/// Writes a value with the formatting of the standard library.
fn write_value(kind: Kind, bytes: &[u8], text: &mut String) {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let written = match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => write!(text, "{bits}"),
        Kind::I16 => write!(text, "{}", bits as i16),
        Kind::I32 => write!(text, "{}", bits as i32),
        Kind::I64 => write!(text, "{}", bits as i64),
        Kind::F32(decimals) => {
            write!(text, "{:.*}", decimals.into(), f32::from_bits(bits as u32))
        }
        Kind::F64(decimals) => write!(text, "{:.*}", decimals.into(), f64::from_bits(bits)),
    };
    written.unwrap_or_else(|_| unreachable!("writing to a string cannot fail"));
}
