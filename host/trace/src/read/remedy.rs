//! Commands that convert a file to a supported format.

use super::error::Problem;
use crate::shell::quoted_path;
use std::path::Path;

/// Returns a command that passes the rows of a file through an awk program with its separator.
pub(super) fn awk(separator: u8, program: &str) -> String {
    let options = match separator {
        b' ' => "",
        b'\t' => "-F'\\t' -v OFS='\\t' ",
        b';' => "-F';' -v OFS=';' ",
        _ => "-F, -v OFS=, ",
    };
    format!("awk {options}'{program}' FILE | {ANALYZE}")
}

/// Escapes control characters from the file in a message, and replaces the word FILE in its commands by the path of the
/// file, quoted for a shell.
pub(super) fn with_path(message: &str, path: &str) -> String {
    let message = printable(message);
    match path {
        // There is no file to name.
        "-" | "standard input" => message,
        _ => message.replace(" FILE", &format!(" {}", quoted_path(Path::new(path)))),
    }
}

fn printable(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter.is_control() {
            true => text.extend(letter.escape_debug()),
            false => text.push(letter),
        }
    }
    text
}

pub(super) const ANALYZE: &str = "cardiograph analyze -";

/// Returns the problem of a time below 0: a signed 32-bit counter, or a clock that started below 0.
pub(super) fn of_negative(
    column: String,
    text: String,
    separator: u8,
    index: usize,
    rows_above: usize,
) -> Problem {
    let at = index + 1;
    let size: f64 = text
        .trim_start_matches('-')
        .replace(',', ".")
        .parse()
        .unwrap_or(0.0);
    let is_counter = size > 1e9 && size <= 2_147_483_648.0;
    let (cause, program) = match is_counter {
        true => (
            "if it is a 32-bit counter with a sign",
            format!("${at} = (${at} + 4294967296) % 4294967296"),
        ),
        false => (
            "if the clock started below 0, add a constant",
            format!("${at} += {size}"),
        ),
    };
    let command = awk(separator, &format!("NR > {rows_above} {{ {program} }} 1"));
    Problem::NegativeTime {
        column,
        text,
        cause,
        command,
    }
}
