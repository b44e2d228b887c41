//! Ranges and entity tags.

use crate::head::{Fields, Head};
use crate::status::Refused;
use crate::storage::{Kind, Stat, Version};
use crate::text::{rank_of, rank_of_date};
use core::fmt::Write;

/// An entity tag, with its quotation marks.
pub(crate) type Tag = heapless::String<48>;

/// Returns the entity tag of a file. The tag of a recording consists of epoch and length, so that a client that has the
/// first n bytes can continue at n at any time.
pub(crate) fn tag_of(stat: &Stat) -> Tag {
    let (mut tag, bytes) = (Tag::new(), stat.bytes);
    let written = match stat.version {
        Version::Appended { epoch } => write!(tag, "\"{epoch:08x}-{bytes}\""),
        Version::Whole { generation } => write!(tag, "\"g{generation:x}-{bytes}\""),
    };
    debug_assert!(written.is_ok());
    tag
}

/// Returns true if a list of tags contains this one, or is `*`.
fn contains(list: &str, tag: Option<&str>, is_same: fn(&str, &str) -> bool) -> bool {
    let mut items = list.split(',').map(str::trim);
    items.any(|item| item == "*" || tag.is_some_and(|tag| is_same(item, tag)))
}

/// Returns true if `If-None-Match` contains the tag.
pub(crate) fn is_unchanged(fields: &Fields, tag: &str) -> bool {
    let is_same = |item: &str, tag: &str| item.strip_prefix("W/").unwrap_or(item) == tag;
    let list = fields.if_none_match;
    list.is_some_and(|list| contains(list, Some(tag), is_same))
}

/// Result of the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The request is carried out.
    Met,
    /// The client has the file already: 304 for GET, 412 for changes.
    Unchanged,
    /// 412.
    NotMet,
}

/// Evaluates the conditions of a request for something that exists, in the order of RFC 9110, section 13.2.2. `modified_s`
/// is the time of the last change, if it is known.
pub(crate) fn evaluate(
    head: &Head,
    tag: Option<&str>,
    modified_s: Option<u64>,
) -> Result<Condition, Refused> {
    let fields = &head.fields;
    let is_newer = |name| -> Result<Option<bool>, Refused> {
        let date = head.field(name)?.and_then(rank_of_date);
        Ok(date.zip(modified_s).map(|(date, s)| rank_of(s) > date))
    };
    let is_matched = match fields.if_match {
        // A weak tag is not the same.
        Some(list) => contains(list, tag, |item, tag| item == tag),
        None => is_newer("If-Unmodified-Since")? != Some(true),
    };
    if !is_matched {
        return Ok(Condition::NotMet);
    }
    let is_unchanged = match (fields.if_none_match, tag) {
        (Some(_), Some(tag)) => is_unchanged(fields, tag),
        (Some(list), None) => list.trim() == "*",
        (None, _) => head.method.is_reading() && is_newer("If-Modified-Since")? == Some(false),
    };
    Ok(match is_unchanged {
        true => Condition::Unchanged,
        false => Condition::Met,
    })
}

/// Returns true if the conditions of a change are met. `stat` is `None` if nothing has the path. Folders have no tag.
pub(crate) fn is_met(head: &Head, stat: Option<&Stat>) -> Result<bool, Refused> {
    let Some(stat) = stat else {
        return Ok(head.fields.if_match.is_none());
    };
    let tag = Some(stat)
        .filter(|stat| stat.kind == Kind::File)
        .map(tag_of);
    Ok(evaluate(head, tag.as_deref(), stat.modified_s)? == Condition::Met)
}

/// Returns true if the client has the first bytes of this very file, or sent no `If-Range`.
fn is_continued(fields: &Fields, stat: &Stat, tag: &str) -> bool {
    let Some(given) = fields.if_range else {
        return true;
    };
    if given == tag {
        return true;
    }
    let Version::Appended { epoch } = stat.version else {
        return false;
    };
    let inner = given
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let Some((of, bytes)) = inner.and_then(|inner| inner.split_once('-')) else {
        return false;
    };
    u32::from_str_radix(of, 16) == Ok(epoch)
        && bytes.parse().is_ok_and(|bytes: u64| bytes <= stat.bytes)
}

/// Bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All bytes.
    Whole,
    /// Bytes from the first offset up to, but excluding, the second.
    Part(u64, u64),
    /// The range is not in the file.
    Nothing,
}

/// Returns the bytes that a request asks for.
pub(crate) fn selection(fields: &Fields, stat: &Stat, tag: &str) -> Selection {
    match fields.range {
        Some(range) if is_continued(fields, stat, tag) => select(range, stat.bytes),
        _ => Selection::Whole,
    }
}

/// Applies a `Range` to a file of this length. Several ranges, other units and damaged ranges select the whole
/// file, as RFC 9110 permits.
pub fn select(range: &str, bytes: u64) -> Selection {
    parse(range, bytes).unwrap_or(Selection::Whole)
}

fn parse(range: &str, bytes: u64) -> Option<Selection> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    if first.is_empty() {
        let count = number(last)?.min(bytes);
        return Some(match count {
            0 => Selection::Nothing,
            count => Selection::Part(bytes - count, bytes),
        });
    }
    let first = number(first)?;
    let end = match last {
        "" => bytes,
        last => match number(last)? {
            last if last < first => return None,
            last => last.saturating_add(1).min(bytes),
        },
    };
    Some(match first < bytes {
        true => Selection::Part(first, end),
        false => Selection::Nothing,
    })
}

/// Parses digits; numbers beyond 64 bits saturate.
fn number(text: &str) -> Option<u64> {
    let are_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().unwrap_or(u64::MAX))
}
