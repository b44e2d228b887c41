//! Values of a request: text, of which an empty one selects the default.

/// Returns the text without spaces around it; `None` if it is empty.
pub fn is_given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Parses a value; `None` if the text is empty.
pub fn optional<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    is_given(text).map(parse).transpose()
}

/// Parses a value; an empty text selects the default.
pub fn or<T>(
    text: &str,
    default: T,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    optional(text, parse).map(|value| value.unwrap_or(default))
}

/// Names the option in front of the error of its value.
pub fn of<T>(option: &str, value: Result<T, String>) -> Result<T, String> {
    value.map_err(|error| format!("{option}: {error}"))
}
