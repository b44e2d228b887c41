//! Checks of a server's answers to a request for a file, or for the rest of one.
//!
//! A download consists of several answers if the connection breaks. Whatever the server sends, bytes of two files must
//! never end up in one.

use super::client::{Wanted, header};
use chrono::DateTime;
use std::time::SystemTime;
use ureq::http::{Response, Version};

/// Longest entity tag that is stored.
const TAG_BYTES_MAX: usize = 200;

/// Meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The body is the whole file.
    Whole {
        /// Length of the body; unknown if it is sent in chunks.
        bytes: Option<u64>,
    },
    /// The body begins where the request does.
    Rest {
        /// Length of the body.
        bytes: u64,
        /// Length of the file.
        total: u64,
    },
    /// The file ends where the request begins, if it is still the same file.
    Nothing,
    /// The file is not the one whose first bytes were received.
    Changed,
}

/// Returns the meaning of an answer.
///
/// # Errors
/// A sentence, if the answer does not fit the request.
pub fn meaning<B>(response: &Response<B>, wanted: &Wanted) -> Result<Answer, String> {
    if let Some(coding) = only(response, "Content-Encoding")?
        && !coding.trim().eq_ignore_ascii_case("identity")
    {
        return Err(format!(
            "the server encoded the file ({coding}), and the command did not ask for that"
        ));
    }
    let range = only(response, "Content-Range")?;
    match (response.status().as_u16(), range) {
        (200, None) => Ok(Answer::Whole {
            bytes: body_bytes(response)?,
        }),
        (206, Some(range)) if wanted.is_rest() => rest(response, range, wanted),
        (416, Some(range)) if wanted.is_rest() => Ok(match range.strip_prefix("bytes */") {
            Some(total) if number(total) == Some(wanted.start) => Answer::Nothing,
            _ => Answer::Changed,
        }),
        (416, None) if wanted.is_rest() => Ok(Answer::Changed),
        (200 | 206, _) => {
            Err("the server sent a part of the file that was not requested".to_string())
        }
        (status, _) => Err(format!("the server answered with status {status}")),
    }
}

fn rest<B>(response: &Response<B>, range: &str, wanted: &Wanted) -> Result<Answer, String> {
    let is_same = match (&wanted.tag, strong_tag(response)) {
        (Some(before), Some(now)) => continues(before, &now),
        _ => false,
    };
    if !is_same {
        return Ok(Answer::Changed);
    }
    let wrong = || format!("the server sent another part of the file than requested ({range})");
    let (first, last, total) = parsed(range).ok_or_else(wrong)?;
    if first != wanted.start || last < first || last >= total {
        return Err(wrong());
    }
    let bytes = last - first + 1;
    match body_bytes(response)? {
        Some(announced) if announced != bytes => Err(wrong()),
        _ => Ok(Answer::Rest { bytes, total }),
    }
}

/// Returns the length of the body, or `None` if it is sent in chunks. If only the end of the connection ended the body, a
/// truncated file would look complete.
fn body_bytes<B>(response: &Response<B>) -> Result<Option<u64>, String> {
    let length = header(response, "Content-Length");
    match (only(response, "Transfer-Encoding")?, length) {
        (None, Some(length)) => number(length).map(Some),
        (Some(coding), None) if response.version() != Version::HTTP_10 => coding
            .trim()
            .eq_ignore_ascii_case("chunked")
            .then_some(None),
        _ => None,
    }
    .ok_or_else(|| {
        "the server does not state the length of the file, so its end cannot be recognised"
            .to_string()
    })
}

/// Returns a header field, which must not be repeated.
fn only<'a, B>(response: &'a Response<B>, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = response.headers().get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(format!(
            "the server sent contradictory or unreadable {name} fields"
        )),
    }
}

/// Parses `bytes 5-9/10`: first and last byte, and length of the file.
fn parsed(range: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((number(first)?, number(last)?, number(total)?))
}

/// Parses digits; `parse` alone would accept a sign.
fn number(text: &str) -> Option<u64> {
    let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits)
}

/// Returns the entity tag of a response if it identifies every byte of the file; a weak tag does not.
pub fn strong_tag<B>(response: &Response<B>) -> Option<String> {
    let tag = only(response, "ETag").ok()??;
    let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_strong = !inner.contains('"') && tag.len() <= TAG_BYTES_MAX;
    is_strong.then(|| tag.to_string())
}

/// Returns true if a file with the tag `now` begins with the bytes that had the tag `before`. The tag of a recording
/// consists of epoch and length, so that it changes as the recording grows.
pub fn continues(before: &str, now: &str) -> bool {
    let appended = |tag: &str| {
        let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
        let (epoch, bytes) = inner.split_once('-')?;
        let is_epoch = epoch.len() == 8 && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_epoch.then_some((epoch.to_string(), number(bytes)?))
    };
    before == now
        || match (appended(before), appended(now)) {
            (Some((old, old_bytes)), Some((new, new_bytes))) => {
                old == new && old_bytes <= new_bytes
            }
            _ => false,
        }
}

/// Returns the time of the last change, if the server states a plausible one.
pub fn modified<B>(response: &Response<B>) -> Option<SystemTime> {
    let time = DateTime::parse_from_rfc2822(header(response, "Last-Modified")?).ok()?;
    (time.timestamp() >= 0).then(|| time.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Answer::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn response(status: u16, fields: Fields) -> Response<()> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap()
    }

    fn of(status: u16, fields: Fields, start: u64) -> Result<Answer, String> {
        let tag = Some("\"a\"".to_string());
        meaning(&response(status, fields), &Wanted { start, tag })
    }

    #[test]
    fn parts_must_be_those_requested() {
        let part = |range, length| {
            let fields = [
                ("ETag", "\"a\""),
                ("Content-Range", range),
                ("Content-Length", length),
            ];
            of(206, &fields, 5)
        };
        let rest = |bytes, total| Ok(Rest { bytes, total });
        assert_eq!(part("bytes 5-9/10", "5"), rest(5, 10));
        assert_eq!(part("bytes 5-5/10", "1"), rest(1, 10));
        // The length of the file does not overflow.
        let max = part("bytes 5-5/18446744073709551615", "1");
        assert_eq!(max, rest(1, u64::MAX));
        for (range, length) in [
            ("bytes 5-9/10", "6"),
            ("bytes 5-9/10", "4"),
            ("bytes 4-9/10", "6"),
            ("bytes 6-9/10", "4"),
            ("bytes 5-10/10", "6"),
            ("bytes 5-4/10", "0"),
            ("bytes 5-9/*", "5"),
            ("bytes */10", "5"),
            ("bytes +5-9/10", "5"),
            ("bytes 5-9", "5"),
            ("items 5-9/10", "5"),
            ("bytes 5-9/99999999999999999999", "5"),
            ("", "5"),
        ] {
            assert!(part(range, length).is_err(), "{range} {length}");
        }
        let untagged = [("Content-Range", "bytes 5-9/10"), ("Content-Length", "5")];
        assert_eq!(of(206, &untagged, 5), Ok(Changed));
        assert!(of(206, &untagged, 0).is_err());
        assert!(of(206, &[("Content-Length", "5")], 5).is_err());
        assert!(of(200, &untagged, 0).is_err());
    }

    #[test]
    fn other_answers_are_read_or_refused() {
        let whole = |bytes| Ok(Whole { bytes });
        assert_eq!(of(200, &[("Content-Length", "7")], 5), whole(Some(7)));
        assert_eq!(of(200, &[("Transfer-Encoding", "chunked")], 0), whole(None));
        for fields in [
            &[][..],
            &[("Content-Length", "7, 7")],
            &[("Content-Length", "7"), ("Content-Encoding", "gzip")],
            &[("Content-Length", "7"), ("Transfer-Encoding", "chunked")],
            &[("Transfer-Encoding", "gzip, chunked")],
            &[
                ("Transfer-Encoding", "chunked"),
                ("Transfer-Encoding", "chunked"),
            ],
        ] {
            assert!(of(200, fields, 0).is_err(), "{fields:?}");
        }
        let none = |range| of(416, &[("Content-Range", range)], 5);
        assert_eq!(none("bytes */5"), Ok(Nothing));
        assert_eq!(none("bytes */4"), Ok(Changed));
        assert_eq!(of(416, &[], 5), Ok(Changed));
        assert!(of(416, &[("Content-Range", "bytes */0")], 0).is_err());
        assert!(of(204, &[("Content-Length", "0")], 0).is_err());
    }

    #[test]
    fn tags_identify_the_first_bytes() {
        assert!(continues("\"a\"", "\"a\""));
        assert!(continues("\"0000002a-5\"", "\"0000002a-9\""));
        for (before, now) in [
            ("\"a\"", "\"b\""),
            ("\"0000002a-5\"", "\"0000002a-4\""),
            ("\"0000002a-5\"", "\"0000002b-9\""),
            ("\"ga-5\"", "\"ga-9\""),
        ] {
            assert!(!continues(before, now), "{before} {now}");
        }
        let tag = |tag| strong_tag(&response(200, &[("ETag", tag)]));
        assert_eq!(tag("\"a\"").as_deref(), Some("\"a\""));
        let long = format!("\"{}\"", "x".repeat(TAG_BYTES_MAX));
        for weak in ["W/\"a\"", "a", "\"", "\"a\"b\"", "", &long] {
            assert_eq!(tag(weak), None, "{weak}");
        }
    }

    #[test]
    fn times_are_those_of_http() {
        let time = |text| modified(&response(200, &[("Last-Modified", text)]));
        let s = |s| Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(s));
        // The example of RFC 9110, section 5.6.7.
        assert_eq!(time("Sun, 06 Nov 1994 08:49:37 GMT"), s(784_111_777));
        assert_eq!(time("Thu, 01 Jan 1970 00:00:00 GMT"), s(0));
        for text in [
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "yesterday",
            "",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
