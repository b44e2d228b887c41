//! Headers of streams in binary recordings.

use super::values::Kind;

/// First line of a header.
const DESCRIPTION: &str = "cardiograph recording 2";
/// Maximum number of columns.
const COLUMNS_MAX: usize = 32;
/// Maximum size of a sample in bytes.
const SAMPLE_BYTES_MAX: usize = 256;
/// Columns of a stream, complete once the whole header was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) kinds: heapless::Vec<Kind, COLUMNS_MAX, u8>,
    /// Size of a sample in bytes.
    pub(crate) sample_bytes: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Description,
    Keys,
    Columns {
        left: u8,
    },
    Whole,
    Bad,
}

impl Columns {
    /// Returns true once the header is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Returns true while a part of the header is missing.
    pub(crate) fn is_begun(&self) -> bool {
        matches!(self.state, State::Keys | State::Columns { .. })
    }

    /// Returns true if the header is damaged.
    pub(crate) fn is_bad(&self) -> bool {
        self.state == State::Bad
    }

    /// Takes the next line of a header; returns the length of the name if it is that of a column.
    pub(crate) fn take(&mut self, line: &[u8]) -> Option<usize> {
        let Ok(line) = str::from_utf8(line) else {
            self.state = State::Bad;
            return None;
        };
        if let State::Columns { left } = self.state {
            return self.take_column(line, left);
        }
        let number = |value: &str, max: usize| {
            let number = value.parse().ok();
            number.filter(|number| (1..=max).contains(number))
        };
        let next = match (self.state, line.split_once(' ')) {
            (State::Description, _) if line == DESCRIPTION => Some(State::Keys),
            (State::Keys, Some(("sample_bytes", value))) => {
                let bytes = number(value, SAMPLE_BYTES_MAX);
                self.sample_bytes = bytes.unwrap_or(0) as u16;
                bytes.map(|_| State::Keys)
            }
            (State::Keys, Some(("columns", value))) => {
                let left = number(value, COLUMNS_MAX);
                left.map(|left| State::Columns { left: left as u8 })
            }
            (State::Keys, Some(_)) => Some(State::Keys),
            _ => None,
        };
        self.state = next.unwrap_or(State::Bad);
        None
    }

    fn take_column(&mut self, line: &str, left: u8) -> Option<usize> {
        let (name, word) = line.rsplit_once(' ').unwrap_or_default();
        let kind = Kind::of(word).and_then(|kind| self.kinds.push(kind).ok());
        let bytes: usize = self.kinds.iter().map(|kind| kind.bytes()).sum();
        self.state = match (kind, left) {
            (None, _) => State::Bad,
            (_, 1) if bytes == usize::from(self.sample_bytes) => State::Whole,
            (_, 1) => State::Bad,
            _ => State::Columns { left: left - 1 },
        };
        Some(name.len()).filter(|_| self.state != State::Bad)
    }
}

/// Returns the value of a key in the first block of a header.
pub(crate) fn value<'t>(text: &'t [u8], key: &str) -> Option<&'t str> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| str::from_utf8(line).ok());
    lines
        .take_while(|line| !line.starts_with("columns "))
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
}

/// Returns true if the text begins like a header.
pub(crate) fn is_header(text: &[u8]) -> bool {
    text.starts_with(DESCRIPTION.as_bytes())
}
