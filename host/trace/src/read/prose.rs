//! Text with latencies in sentences, or in the notation of another format. It is refused with a command that extracts
//! the latencies.

use super::columns::{is_number, unit_named};
use super::error::{Fault, Problem, shown};
use super::remedy::ANALYZE;
use super::role::role;
use serde_json::Value;

/// Refuses text from whose rows a command can extract the latencies.
pub(super) fn refuse(head: &[u8], line: &[u8], below: &[u8]) -> Result<(), Fault> {
    let (Ok(line), Ok(below)) = (str::from_utf8(line), str::from_utf8(below)) else {
        return Ok(());
    };
    let found = coloured(line)
        .or_else(|| json(line))
        .or_else(|| arrow(line, below))
        .or_else(|| among_words(head));
    match found {
        Some((what, command)) => Err(Problem::Prose { what, command }.in_file()),
        None => Ok(()),
    }
}

/// Refuses rows of names and numbers, such as `latency=812`.
pub(super) fn refuse_assigned(line: &[u8], below: &[u8]) -> Result<(), Fault> {
    let found = str::from_utf8(line)
        .ok()
        .zip(str::from_utf8(below).ok())
        .and_then(|(line, below)| assigned(line, below));
    match found {
        Some((what, command)) => Err(Problem::Prose { what, command }.in_file()),
        None => Ok(()),
    }
}

type Found = Option<(&'static str, String)>;

/// Escape sequences of a terminal, such as those of ESP-IDF's log.
fn coloured(line: &str) -> Found {
    let command = format!("sed 's/\\x1b\\[[0-9;]*m//g' FILE | {ANALYZE}");
    line.contains("\x1b[")
        .then_some(("text with the colours of a terminal", command))
}

/// JSON: an array of numbers or of objects, or one object per line.
fn json(line: &str) -> Found {
    if line.starts_with('[') && line[1..].trim_start().starts_with('{') {
        let rows = "(.[0] | keys_unsorted) as $names | $names, (.[] | [.[$names[]]]) | @csv";
        return Some((
            "a JSON array of objects",
            format!("jq -r '{rows}' FILE | {ANALYZE}"),
        ));
    }
    if line.starts_with('[') && !line.contains('{') {
        let inner = line[1..].trim_start_matches(['[', ' ']);
        let is_array = inner.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        // A time stamp in brackets has text after it.
        let end = line.rfind(']').map_or("", |at| &line[at + 1..]);
        let rows = if line[1..].trim_start().starts_with('[') {
            "-r '.[] | @csv'"
        } else {
            "'.[]'"
        };
        let command = format!("jq {rows} FILE | {ANALYZE}");
        return (is_array && end.trim_matches(&[',', ' '][..]).is_empty())
            .then_some(("a JSON array", command));
    }
    if let Some(program) = columns_of_json(line) {
        return Some((
            "a table as one JSON object",
            format!("jq -r '{program}' FILE | {ANALYZE}"),
        ));
    }
    let Ok(Value::Object(object)) = serde_json::from_str(line) else {
        return None;
    };
    let is_plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let names: Vec<&str> = object
        .keys()
        .map(String::as_str)
        .filter(|name| is_plain(name))
        .collect();
    let list = |format: &dyn Fn(&str) -> String| {
        let texts: Vec<String> = names.iter().map(|name| format(name)).collect();
        texts.join(", ")
    };
    let header = list(&|name| format!("\"{name}\""));
    let values = list(&|name| format!(".{name}"));
    let program = format!("[{header}], (inputs | [{values}]) | @csv");
    (!names.is_empty()).then(|| ("JSON", format!("jq -rn '{program}' FILE | {ANALYZE}")))
}

/// Returns the jq program for a table in one JSON object, which may be too long for the text in memory.
fn columns_of_json(line: &str) -> Option<String> {
    const SEARCHED_CHARS: usize = 4096;
    let characters = line.chars().filter(|c| !c.is_whitespace());
    let head: String = characters.take(SEARCHED_CHARS).collect();
    let body = head.strip_prefix("{\"")?;
    if head.contains("\"columns\":[\"") {
        return Some(".columns, .data[] | @csv".to_owned());
    }
    if let Some((before, _)) = head.split_once("\":[{")
        && let Some(name) = before.rsplit('"').next()
    {
        let name = match head.contains("\"data\":[{") {
            true => "data",
            false => name,
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rows = "(.[0] | keys_unsorted) as $names | $names, (.[] | [.[$names[]]]) | @csv";
        return name
            .chars()
            .all(is_plain)
            .then(|| format!(".{name} | {rows}"));
    }
    let (_, value) = body.split_once("\":")?;
    let list = value.strip_prefix("{\"0\":").or(value.strip_prefix('['))?;
    list.starts_with(|c: char| c.is_ascii_digit() || "-\"".contains(c))
        .then(|| "keys_unsorted, ([.[] | [.[]]] | transpose[]) | @csv".to_owned())
}

/// The time stamps of a serial monitor: `12:34:56.123 -> 812`.
fn arrow(line: &str, below: &str) -> Found {
    let is_stamped = |text: &str| {
        text.split_once(" -> ")
            .is_some_and(|(stamp, _)| stamp.contains(':'))
    };
    (is_stamped(line) && is_stamped(below)).then(|| {
        (
            "rows with the time stamps of a serial monitor",
            format!("sed 's/^.* -> //' FILE | {ANALYZE}"),
        )
    })
}

/// `latency=812` or `latency=812us` in every row.
fn assigned(line: &str, below: &str) -> Found {
    let first: Vec<Assigned<'_>> = assignments(line).collect();
    let is_latency = |pair: &&Assigned<'_>| {
        let name = pair.name.to_lowercase();
        ["lat", "took", "dur", "time", "write"]
            .iter()
            .any(|word| name.contains(word))
    };
    let is_below = |pair: &&Assigned<'_>| assignments(below).any(|other| other.name == pair.name);
    let pair = first.iter().filter(is_below).find(is_latency)?;
    let name = shown(pair.name.as_bytes());
    let (number, unit) = match role(pair.name.as_bytes()).1 {
        _ if pair.has_unit => ("[0-9.]+[[:alpha:]]*", String::new()),
        Some(unit) => ("[0-9.]+", format!(" --time-unit {}", unit.name)),
        None => ("[0-9.]+", " with the --time-unit of the numbers".to_owned()),
    };
    let command = format!("grep -oE '\\b{name}={number}' FILE | cut -d= -f2 | {ANALYZE}{unit}");
    Some(("rows with names and numbers", command))
}

/// A name and its number.
struct Assigned<'a> {
    name: &'a str,
    /// True if a unit of time follows the number.
    has_unit: bool,
}

fn assignments(text: &str) -> impl Iterator<Item = Assigned<'_>> {
    let words = text.split(|c: char| c.is_whitespace() || ",;".contains(c));
    words.filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        let end = value
            .find(|c: char| c.is_alphabetic())
            .unwrap_or(value.len());
        let (number, unit) = value.split_at(end);
        let has_unit = unit_named(unit).is_some();
        // InfluxDB marks integers with an `i`.
        let is_known = has_unit || unit.is_empty() || unit == "i";
        (is_known && is_number(number.as_bytes())).then_some(Assigned { name, has_unit })
    })
}

/// `write 5: 812 us` in several rows, perhaps among other messages.
fn among_words(head: &[u8]) -> Found {
    const LINES_MAX: usize = 200;
    let mut shapes: Vec<(String, usize)> = Vec::new();
    let lines = head.split(|byte| *byte == b'\n').take(LINES_MAX);
    for line in lines.filter_map(|line| str::from_utf8(line.trim_ascii_end()).ok()) {
        let Some(shape) = shape_of_latency(line) else {
            continue;
        };
        match shapes.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, count)) => *count += 1,
            None => shapes.push((shape, 1)),
        }
    }
    shapes.retain(|(_, count)| *count > 1);
    // Rows of reads or of other messages have another shape.
    let is_of_writes = |(shape, _): &&(String, usize)| shape.to_lowercase().contains("writ");
    let mut of_writes = shapes.iter().filter(is_of_writes);
    let pattern = match (of_writes.next(), of_writes.next(), &shapes[..]) {
        (Some((shape, _)), None, _) | (None, _, [(shape, _)]) => shape,
        _ => return None,
    };
    Some((
        "a text with latencies in sentences",
        format!(
            "sed -nE 's/^{pattern}.*/\\1/p' FILE | {ANALYZE} (lines with other words are skipped)"
        ),
    ))
}

/// Returns the shape of a row up to its only number with a unit of time; `None` for any other row.
fn shape_of_latency(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time = |pair: &&[&str]| {
        let unit = pair[1].trim_matches(|c: char| !c.is_alphanumeric());
        is_number(pair[0].as_bytes()) && unit_named(unit).is_some()
    };
    // If there are several times, only the user knows which one is the latency.
    if words.windows(2).filter(is_time).count() != 1 {
        return None;
    }
    let pattern = shape(line);
    let end = pattern.find(GROUP)? + GROUP.len();
    Some(pattern[..end].to_owned())
}

/// The number with a unit in the expression of [`shape`].
const GROUP: &str = "([0-9.]+ [a-zA-Z]+)";

/// Returns a regular expression for rows with the same words but other numbers; its group is the number with a unit.
fn shape(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let mut pattern = Vec::new();
    while !words.is_empty() {
        let has_unit = words.len() > 1
            && is_number(words[0].as_bytes())
            && unit_named(words[1].trim_matches(|c: char| !c.is_alphanumeric())).is_some();
        if has_unit {
            let unit = words[1].trim_start_matches(char::is_alphanumeric);
            pattern.push(format!("{GROUP}{}", escaped(unit)));
        } else {
            pattern.push(escaped(words[0]));
        }
        words.drain(..1 + usize::from(has_unit));
    }
    pattern.join(" ")
}

/// Escapes a word for a regular expression. In place of each of its numbers, the expression accepts any number.
fn escaped(word: &str) -> String {
    let mut pattern = String::new();
    for letter in word.chars() {
        let is_digit = letter.is_ascii_digit();
        match letter {
            _ if is_digit && pattern.ends_with("[0-9.]+") => {}
            _ if is_digit => pattern.push_str("[0-9.]+"),
            '.' if pattern.ends_with("[0-9.]+") => {}
            _ if letter.is_alphanumeric() || " _=:,;%#@!<>\"-".contains(letter) => {
                pattern.push(letter)
            }
            // A quote would end the shell's quotes around the expression, and control characters could control the
            // terminal that shows it.
            '\'' => pattern.push('.'),
            _ if letter.is_control() => pattern.push('.'),
            _ => pattern.extend(['\\', letter]),
        }
    }
    pattern
}
