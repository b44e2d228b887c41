//! Failure of a command.

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
}

fn on_one_line(message: impl Display) -> String {
    // A file name may contain any character; the message must stay on one line.
    let mut sentence = String::new();
    for character in message.to_string().chars() {
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

/// Prints to standard error, and ignores errors because there is no other way to report them.
pub fn print_error(text: &str) {
    use io::Write;
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
