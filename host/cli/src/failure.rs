//! Failure of a command.

use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::fmt::Display;
use std::io;

/// Failure of a command.
pub enum Failure {
    /// A sentence that states the file, the location and the remedy.
    Message(String),
    /// A sentence with a specific exit code.
    MessageWithCode(String, u8),
    /// Everything has been reported; only the exit code remains.
    AlreadyPrinted(u8),
    /// Standard output was closed by its reader.
    OutputClosed,
}

impl Failure {
    /// Creates a failure with a message.
    pub fn new(message: impl Display) -> Failure {
        Failure::Message(on_one_line(message))
    }

    /// Creates a failure with a message and a specific exit code.
    pub fn with_code(message: impl Display, code: u8) -> Failure {
        Failure::MessageWithCode(on_one_line(message), code)
    }

    /// Joins the failures of independent steps, a line for each; the first one that is not a closed output determines the
    /// exit code.
    pub fn join(steps: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
        let mut failures = steps.into_iter().filter_map(Result::err);
        let Some(mut joined) = failures.next() else {
            return Ok(());
        };
        for failure in failures {
            match (&mut joined, failure) {
                (
                    Failure::Message(text) | Failure::MessageWithCode(text, _),
                    Failure::Message(more) | Failure::MessageWithCode(more, _),
                ) => text.push_str(&format!("\nerror: {more}")),
                (Failure::AlreadyPrinted(code), Failure::Message(more)) => {
                    joined = Failure::MessageWithCode(more, *code);
                }
                (Failure::OutputClosed, failure) => joined = failure,
                _ => (),
            }
        }
        Err(joined)
    }
}

fn on_one_line(message: impl Display) -> String {
    // A file name may contain any character; the message must stay on one line.
    let mut sentence = String::new();
    for character in message.to_string().chars() {
        if is_steering(character) {
            sentence.extend(character.escape_default());
        } else {
            sentence.push(character);
        }
    }
    sentence
}

/// Returns true for characters that control a terminal, end a line, or change the direction of text.
pub fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    use io::Write;
    let mut out = anstream::stdout().lock();
    let written = out
        .write_all(coloured(text).as_bytes())
        .and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
    })
}

/// Prints to standard error, and ignores errors because there is no other way to report them.
pub fn print_error(text: &str) {
    use io::Write;
    let _ = anstream::stderr()
        .lock()
        .write_all(coloured(text).as_bytes());
}

/// Style of errors, of conditions that failed and of lost samples.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of warnings, and of stalls.
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();

/// Words at the start of a line that have a colour. Without a terminal, and with NO_COLOR, anstream removes it.
const COLOURED: [(&str, Style); 2] = [("error:", BAD), ("warning:", DOUBTFUL)];

fn coloured(text: &str) -> Cow<'_, str> {
    if !COLOURED.iter().any(|(word, _)| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| {
        let found = COLOURED
            .iter()
            .find_map(|(word, style)| Some((word, style, line.strip_prefix(word)?)));
        match found {
            Some((word, style, rest)) => format!("{style}{word}{style:#}{rest}"),
            None => line.to_string(),
        }
    };
    Cow::Owned(text.split_inclusive('\n').map(line).collect())
}
