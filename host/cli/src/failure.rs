//! Why the command ends without success.

use std::fmt::Display;
use std::io;

/// Why the command ends without success.
pub enum Failure {
    /// One sentence with file, place and remedy.
    Said(String),
    /// A sentence with an exit code of its own.
    SaidWith(String, u8),
    /// Everything has been shown; the exit code says how it ended.
    Shown(u8),
    /// Standard output was closed by its reader.
    OutputClosed,
}

impl Failure {
    /// A failure that says why.
    pub fn new(why: impl Display) -> Failure {
        Failure::Said(on_one_line(why))
    }

    /// A failure that says why, with an exit code of its own.
    pub fn with_code(why: impl Display, code: u8) -> Failure {
        Failure::SaidWith(on_one_line(why), code)
    }
}

fn on_one_line(why: impl Display) -> String {
    // A file name may hold anything; the sentence stays on its line all the same.
    let mut sentence = String::new();
    for character in why.to_string().chars() {
        if character.is_control() {
            sentence.extend(character.escape_default());
        } else {
            sentence.push(character);
        }
    }
    sentence
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    use io::Write;
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
    })
}

/// Prints to standard error. If that is closed or full, nobody is left to tell.
pub fn print_error(text: &str) {
    use io::Write;
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
