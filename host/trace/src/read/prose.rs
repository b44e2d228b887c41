//! Text in which latencies stand among words, or in the notation of another format: refused with a command that
//! takes them out.

use super::columns::{is_number, unit_named};
use super::error::{Fault, Problem, shown};
use super::remedy::ANALYZE;
use serde_json::Value;

/// Refuses text whose first two rows show how to take out the latencies.
pub(super) fn refuse(line: &[u8], below: &[u8]) -> Result<(), Fault> {
    let (Ok(line), Ok(below)) = (str::from_utf8(line), str::from_utf8(below)) else {
        return Ok(());
    };
    let found = coloured(line)
        .or_else(|| markdown(line, below))
        .or_else(|| json(line))
        .or_else(|| arrow(line, below))
        .or_else(|| assigned(line, below))
        .or_else(|| among_words(line, below));
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

fn markdown(line: &str, below: &str) -> Found {
    let is_rule = |text: &str| text.starts_with('|') && text.chars().all(|c| "|-: ".contains(c));
    (line.starts_with('|') && is_rule(below)).then(|| {
        let edits = "-e '/^[-|: ]*$/d' -e 's/^| *//' -e 's/ *|$//' -e 's/ *| */,/g'";
        ("a Markdown table", format!("sed {edits} FILE | {ANALYZE}"))
    })
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
    (!names.is_empty()).then(|| {
        (
            "one JSON object per line",
            format!("jq -rn '{program}' FILE | {ANALYZE}"),
        )
    })
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

/// `latency=812` in every row.
fn assigned(line: &str, below: &str) -> Found {
    let names = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| c.is_whitespace() || ",;".contains(c));
        let pairs = words.filter_map(|word| word.split_once('='));
        pairs
            .filter(|(_, value)| is_number(value.as_bytes()))
            .map(|(name, _)| name.to_owned())
            .collect()
    };
    let (first, second) = (names(line), names(below));
    let is_latency = |name: &&String| {
        let name = name.to_lowercase();
        ["lat", "took", "dur", "time", "write"]
            .iter()
            .any(|word| name.contains(word))
    };
    let name = first
        .iter()
        .filter(|name| second.contains(name))
        .find(is_latency)?;
    let name = shown(name.as_bytes());
    let command = format!(
        "grep -oE '\\b{name}=[0-9.]+' FILE | cut -d= -f2 | {ANALYZE} with the --time-unit of the numbers"
    );
    Some(("rows with names and numbers", command))
}

/// `write 5: 812 us` in every row.
fn among_words(line: &str, below: &str) -> Found {
    let unit_of = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut pairs = words
            .windows(2)
            .filter(|pair| is_number(pair[0].as_bytes()) && unit_named(pair[1]).is_some());
        // Of several times, only the reader knows which one is the latency.
        match (pairs.next(), pairs.next()) {
            (Some(pair), None) => Some(pair[1].to_owned()),
            _ => None,
        }
    };
    let pattern = shape(line);
    // Rows of reads or of other messages have another shape.
    let is_one = pattern.matches(GROUP).count() == 1;
    let has_unit = unit_of(line).is_some() && unit_of(below).is_some();
    (is_one && has_unit && shape(below) == pattern).then(|| {
        (
            "latencies among words",
            format!("sed -nE 's/^{pattern}\\r?$/\\1/p' FILE | {ANALYZE} (rows with other words are left out)"),
        )
    })
}

/// The number with a unit in the expression of [`shape`].
const GROUP: &str = "([0-9.]+ [a-zA-Z]+)";

/// Returns a regular expression for rows with the same words and other numbers; its group is the number with a unit.
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

/// Escapes a word for a regular expression in which any number may stand for its numbers.
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
            // The expression is between such quotes.
            '\'' => pattern.push('.'),
            _ => pattern.extend(['\\', letter]),
        }
    }
    pattern
}
