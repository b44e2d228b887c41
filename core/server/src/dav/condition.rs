//! The field `If` (RFC 4918, section 10.4): lists of lock tokens and entity tags, one of which has to hold.

use crate::status::Refused;

/// A list of conditions, all of which have to hold, and the resource that they apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List<'b> {
    /// URL of the resource; `None` for the target of the request.
    pub(crate) resource: Option<&'b str>,
    /// The conditions.
    conditions: &'b str,
}

/// State of a resource.
pub(crate) trait Resource {
    /// Returns true if the lock with this token covers the resource.
    fn has_lock(&self, token: &str) -> bool;
    /// Returns true if the resource has this entity tag.
    fn has_tag(&self, tag: &str) -> bool;
}

const MALFORMED: Refused = Refused::bad("the field If is malformed");

/// Returns the first list of a field, and the rest. `resource` is that of the list before it.
pub(crate) fn next_list<'b>(
    text: &'b str,
    resource: &mut Option<&'b str>,
) -> Result<Option<(List<'b>, &'b str)>, Refused> {
    let mut text = text.trim_start();
    if let Some(rest) = text.strip_prefix('<') {
        let (url, rest) = rest.split_once('>').ok_or(MALFORMED)?;
        *resource = Some(url);
        text = rest.trim_start();
        if !text.starts_with('(') {
            return Err(MALFORMED);
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let inner = text.strip_prefix('(').ok_or(MALFORMED)?;
    let end = end_of_list(inner).ok_or(MALFORMED)?;
    let list = List {
        resource: *resource,
        conditions: &inner[..end],
    };
    Ok(Some((list, &inner[end + 1..])))
}

/// Returns the offset of the parenthesis that ends a list; tokens and tags may contain parentheses.
fn end_of_list(text: &str) -> Option<usize> {
    let mut closing = None;
    for (at, byte) in text.bytes().enumerate() {
        closing = match (closing, byte) {
            (Some(expected), byte) if byte == expected => None,
            (Some(expected), _) => Some(expected),
            (None, b'<') => Some(b'>'),
            (None, b'[') => Some(b']'),
            (None, b')') => return Some(at),
            (None, _) => None,
        };
    }
    None
}

impl List<'_> {
    /// Returns true if all conditions hold.
    pub(crate) fn holds(&self, resource: &impl Resource) -> Result<bool, Refused> {
        let (mut rest, mut holds, mut is_empty) = (self.conditions.trim(), true, true);
        while !rest.is_empty() {
            let after_not = rest
                .get(..3)
                .filter(|word| word.eq_ignore_ascii_case("Not"));
            let is_negated = after_not.is_some();
            rest = if is_negated {
                rest[3..].trim_start()
            } else {
                rest
            };
            let (is_met, after) = if let Some(inner) = rest.strip_prefix('<') {
                let (token, after) = inner.split_once('>').ok_or(MALFORMED)?;
                (resource.has_lock(token), after)
            } else {
                let inner = rest.strip_prefix('[').ok_or(MALFORMED)?;
                let (tag, after) = inner.split_once(']').ok_or(MALFORMED)?;
                (resource.has_tag(tag), after)
            };
            holds &= is_met != is_negated;
            is_empty = false;
            rest = after.trim_start();
        }
        match is_empty {
            true => Err(MALFORMED),
            false => Ok(holds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    struct One;

    impl Resource for One {
        fn has_lock(&self, token: &str) -> bool {
            token == "urn:uuid:1"
        }

        fn has_tag(&self, tag: &str) -> bool {
            tag == "\"t)\""
        }
    }

    fn lists(text: &str) -> Result<Vec<(Option<&str>, bool)>, Refused> {
        let (mut rest, mut resource, mut lists) = (text, None, Vec::new());
        while let Some((list, after)) = next_list(rest, &mut resource)? {
            lists.push((list.resource, list.holds(&One)?));
            rest = after;
        }
        Ok(lists)
    }

    #[test]
    fn conditions_are_evaluated() {
        let one = |text| lists(text).map(|lists| lists[0].1);
        assert_eq!(one("(<urn:uuid:1>)"), Ok(true));
        assert_eq!(one("(<urn:uuid:2>)"), Ok(false));
        assert_eq!(one("(Not <DAV:no-lock>)"), Ok(true));
        assert_eq!(one("(<urn:uuid:1> [\"t)\"])"), Ok(true));
        assert_eq!(one("( <urn:uuid:1> not [\"t)\"] )"), Ok(false));
    }

    #[test]
    fn lists_may_name_a_resource() {
        let text = "<http://a/x> (<urn:uuid:1>) (Not <urn:uuid:1>) </y>(<urn:uuid:1>)";
        let (x, y) = (Some("http://a/x"), Some("/y"));
        assert_eq!(lists(text), Ok([(x, true), (x, false), (y, true)].into()));
        assert_eq!(lists(" "), Ok([].into()));
    }

    #[test]
    fn malformed_fields_are_refused() {
        for text in [
            "(",
            "()",
            "x",
            "<a>",
            "<a",
            "(<a)",
            "([a)",
            "(a)",
            "(Not)",
            "(<a>) x",
            "<a> <b> (<c>)",
        ] {
            assert_eq!(lists(text), Err(MALFORMED), "{text}");
        }
    }
}
