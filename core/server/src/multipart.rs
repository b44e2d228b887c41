//! Heads of a form's parts.

/// Returns the position of the first occurrence of `wanted`.
pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// Returns the length of the delimiter between parts: a line end, two hyphens and the boundary.
pub(crate) fn delimiter_bytes(boundary: &str) -> usize {
    4 + boundary.len()
}

/// Returns the position of the first delimiter.
pub(crate) fn find_delimiter(bytes: &[u8], boundary: &str) -> Option<usize> {
    bytes
        .windows(delimiter_bytes(boundary))
        .position(|window| window.starts_with(b"\r\n--") && window.ends_with(boundary.as_bytes()))
}

/// Returns the file name in the head of a part, from the line end after the boundary to the empty line; an empty
/// name if the part is not a file. Returns `None` if the head is damaged.
pub(crate) fn file_name(head: &[u8]) -> Option<&str> {
    let head = str::from_utf8(head).ok()?;
    // Spaces and tabs may follow the boundary.
    let (spaces, lines) = head.split_once("\r\n")?;
    if !spaces.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
        return None;
    }
    for line in lines.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        if name.trim().eq_ignore_ascii_case("Content-Disposition") {
            return Some(parameter(value, "filename").unwrap_or(""));
        }
    }
    Some("")
}

/// Returns a parameter of a field, without quotation marks.
fn parameter<'b>(value: &'b str, wanted: &str) -> Option<&'b str> {
    let mut rest = value;
    while let Some(at) = rest.find(';') {
        rest = rest[at + 1..].trim_start();
        let (name, after) = rest.split_once('=')?;
        let (text, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(text.trim());
        }
        rest = after;
    }
    None
}
