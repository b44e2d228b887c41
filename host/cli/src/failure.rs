//! Why the command ends without success.

use std::fmt::Display;
use std::io;

/// Why the command ends without success.
pub enum Failure {
    /// One sentence with file, place and remedy.
    Said(String),
    /// Ctrl-C; everything measured has been shown.
    Interrupted,
    /// Standard output was closed by its reader.
    OutputClosed,
}

impl Failure {
    /// A failure that says why.
    pub fn new(why: impl Display) -> Failure {
        // A file name may hold anything; the sentence stays on its line all the same.
        let mut sentence = String::new();
        for character in why.to_string().chars() {
            if character.is_control() {
                sentence.extend(character.escape_default());
            } else {
                sentence.push(character);
            }
        }
        Failure::Said(sentence)
    }
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
