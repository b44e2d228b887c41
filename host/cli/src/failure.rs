//! Failure of a command, and printing.

use std::fmt::Display;
use std::io;

/// Failure of a command.
pub enum Failure {
    /// Message with file, place and remedy; exit code 2.
    Message(String),
    /// Message with another exit code.
    MessageWithCode(String, u8),
    /// Failure that the command has already printed, with its exit code.
    AlreadyPrinted(u8),
    /// The reader of standard output closed it.
    OutputClosed,
}

impl Failure {
    /// Creates a failure with a message.
    pub fn new(message: impl Display) -> Failure {
        Failure::Message(on_one_line(message))
    }

    /// Creates a failure with a message and an exit code.
    pub fn with_code(message: impl Display, code: u8) -> Failure {
        Failure::MessageWithCode(on_one_line(message), code)
    }
}

fn on_one_line(message: impl Display) -> String {
    // Messages contain file names, which may contain control characters.
    let mut line = String::new();
    for character in message.to_string().chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    use io::Write;
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!(
            "standard output: {error}; redirect it to another file"
        )),
    })
}

/// Prints to standard error. Ignores errors, because there is nowhere left to report them.
pub fn print_error(text: &str) {
    use io::Write;
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
