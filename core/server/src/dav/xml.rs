//! XML of requests: elements with their namespaces. What is not well-formed is refused, as far as a table of names shows.

use crate::status::Refused;
use xmlparser::{ElementEnd, Token, Tokenizer};

pub(crate) const MALFORMED: Refused = Refused::bad("the body is not well-formed XML");
pub(crate) const HAS_DTD: Refused =
    Refused::bad("the body has a document type, which this server refuses");
const TOO_COMPLEX: Refused = Refused::bad(
    "the body is too complex: at most 16 levels of elements, 16 namespaces, and 16 attributes of an element",
);

/// Namespace of WebDAV.
pub(crate) const DAV: &str = "DAV:";

/// Levels of elements whose names are passed on.
const LEVELS: usize = 5;
/// Deepest element, and the most namespaces and attributes.
const ITEMS_MAX: usize = 16;

/// Name of an element, as in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'b> {
    /// Namespace; empty for none.
    pub(crate) space: &'b str,
    pub(crate) local: &'b str,
}

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node<'b> {
    Start(Name<'b>),
    Text(&'b str),
    End(Name<'b>),
}

/// Calls a function for each element and text with the names of the elements that contain it, from the root, and its
/// own. Names of other namespaces than that of WebDAV are empty there.
pub(crate) fn elements<'b>(
    body: &'b str,
    mut visit: impl FnMut(&[&'b str], Node<'b>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut walk = Walk::default();
    let mut has_root = false;
    for token in Tokenizer::from(body) {
        match token.map_err(|_| MALFORMED)? {
            Token::ElementStart { prefix, local, .. } => {
                if walk.open.is_empty() && has_root {
                    return Err(MALFORMED);
                }
                has_root = true;
                walk.open(prefix.as_str(), local.as_str())?;
            }
            Token::Attribute {
                prefix,
                local,
                value,
                ..
            } => walk.attribute((prefix.as_str(), local.as_str()), value.as_str())?,
            Token::ElementEnd { end, .. } => {
                let closed = match end {
                    ElementEnd::Open | ElementEnd::Empty => {
                        let name = walk.enter()?;
                        visit(walk.path(), Node::Start(name))?;
                        matches!(end, ElementEnd::Empty).then_some(name)
                    }
                    ElementEnd::Close(prefix, local) => {
                        let qualified = (prefix.as_str(), local.as_str());
                        match walk.open.last() {
                            Some(opened) if *opened == qualified => Some(walk.name(qualified)?),
                            _ => return Err(MALFORMED),
                        }
                    }
                };
                if let Some(name) = closed {
                    visit(walk.path(), Node::End(name))?;
                    walk.leave();
                }
            }
            Token::Text { text } => {
                check_references(text.as_str())?;
                visit(walk.path(), Node::Text(text.as_str()))?;
            }
            Token::DtdStart { .. } | Token::EmptyDtd { .. } => return Err(HAS_DTD),
            _ => (),
        }
    }
    match has_root && walk.open.is_empty() {
        true => Ok(()),
        false => Err(MALFORMED),
    }
}

/// Prefix and local part of a name.
type Qualified<'b> = (&'b str, &'b str);

/// The elements that contain a position.
#[derive(Default)]
struct Walk<'b> {
    open: heapless::Vec<Qualified<'b>, ITEMS_MAX>,
    /// Names for [`elements`].
    path: [&'b str; LEVELS],
    /// Prefixes and namespaces, each with the depth of the element that declares it.
    spaces: heapless::Vec<(Qualified<'b>, usize), ITEMS_MAX>,
    /// Attributes of the innermost element.
    attributes: heapless::Vec<Qualified<'b>, ITEMS_MAX>,
}

impl<'b> Walk<'b> {
    fn open(&mut self, prefix: &'b str, local: &'b str) -> Result<(), Refused> {
        self.attributes.clear();
        self.open.push((prefix, local)).map_err(|_| TOO_COMPLEX)
    }

    fn attribute(&mut self, name: Qualified<'b>, value: &'b str) -> Result<(), Refused> {
        check_references(value)?;
        if self.attributes.contains(&name) {
            return Err(MALFORMED);
        }
        self.attributes.push(name).map_err(|_| TOO_COMPLEX)?;
        let declared = match name {
            // A prefix cannot be undeclared (Namespaces in XML 1.0, section 2.2).
            ("xmlns", _) if value.is_empty() => return Err(MALFORMED),
            ("xmlns", prefix) => prefix,
            ("", "xmlns") => "",
            _ => return Ok(()),
        };
        let space = ((declared, value), self.open.len());
        self.spaces.push(space).map_err(|_| TOO_COMPLEX)
    }

    /// Ends the start of an element, whose namespaces are now known; returns its name.
    fn enter(&mut self) -> Result<Name<'b>, Refused> {
        for (prefix, local) in &self.attributes {
            if !["", "xmlns"].contains(prefix) {
                self.name((prefix, local))?;
            }
        }
        let opened = self.open.last().copied().ok_or(MALFORMED)?;
        let name = self.name(opened)?;
        if let Some(place) = self.path.get_mut(self.open.len() - 1) {
            *place = match name.space {
                DAV => name.local,
                _ => "",
            };
        }
        Ok(name)
    }

    fn name(&self, (prefix, local): Qualified<'b>) -> Result<Name<'b>, Refused> {
        let mut spaces = self.spaces.iter().rev();
        let space = match spaces.find(|((declared, _), _)| *declared == prefix) {
            Some(((_, space), _)) => space,
            None if prefix.is_empty() || prefix == "xml" => "",
            None => return Err(MALFORMED),
        };
        Ok(Name { space, local })
    }

    /// Returns the names of the outermost elements.
    fn path(&self) -> &[&'b str] {
        &self.path[..self.open.len().min(LEVELS)]
    }

    fn leave(&mut self) {
        let depth = self.open.len();
        self.spaces.retain(|(_, declared_at)| *declared_at < depth);
        self.open.pop();
    }
}

/// Checks that a text or value refers only to characters, and to entities that XML itself has.
fn check_references(text: &str) -> Result<(), Refused> {
    let mut references = text.split('&').skip(1);
    let is_known = |after: &str| match after.split_once(';') {
        Some(("amp" | "lt" | "gt" | "quot" | "apos", _)) => true,
        Some((name, _)) => number_of(name).is_some_and(is_character),
        None => false,
    };
    match references.all(is_known) {
        true => Ok(()),
        false => Err(MALFORMED),
    }
}

fn number_of(reference: &str) -> Option<u32> {
    let digits = reference.strip_prefix('#')?;
    let (digits, radix) = match digits.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    // Rust accepts a plus sign.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u32::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_number)
}

/// Returns true for the characters of XML 1.0 (section 2.2).
fn is_character(number: u32) -> bool {
    match number {
        0x9 | 0xA | 0xD => true,
        0xFFFE | 0xFFFF => false,
        _ => number >= 0x20 && char::from_u32(number).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn nodes(body: &str) -> Result<Vec<(usize, Node<'_>)>, Refused> {
        let mut nodes = Vec::new();
        elements(body, |path, node| {
            nodes.push((path.len(), node));
            Ok(())
        })?;
        Ok(nodes)
    }

    #[test]
    fn namespaces_are_those_of_the_innermost_declaration() {
        let body = "<p:a xmlns:p='DAV:' xmlns='urn:1'><b xmlns:p='urn:2' p:x=''><p:c/></b>&#x41;<d/></p:a>";
        let name = |space, local| Name { space, local };
        let (a, b) = (name("DAV:", "a"), name("urn:1", "b"));
        let (c, d) = (name("urn:2", "c"), name("urn:1", "d"));
        let expected = [
            (1, Node::Start(a)),
            (2, Node::Start(b)),
            (3, Node::Start(c)),
            (3, Node::End(c)),
            (2, Node::End(b)),
            (1, Node::Text("&#x41;")),
            (2, Node::Start(d)),
            (2, Node::End(d)),
            (1, Node::End(a)),
        ];
        assert_eq!(nodes(body), Ok(expected.into()));
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        for body in [
            "<a>&b;</a>",
            "<a>& </a>",
            "<a b='&c;'/>",
            "<a>&#x110000;</a>",
            "<a>&#0;</a>",
            "<a>&#xD800;</a>",
            "<a>&#+65;</a>",
            "<a xmlns:b='&#xFFFE;'/>",
            "<a b='' b=''/>",
            "<a xmlns:b='c' xmlns:b='c'/>",
            "<b:a/>",
            "<a b:c=''/>",
            "<a><b xmlns:c='d'/><c:e/></a>",
            "<c:a xmlns:c='d' xmlns:e='d'></e:a>",
        ] {
            assert_eq!(nodes(body), Err(MALFORMED), "{body}");
        }
        for body in [
            "<a>&lt;&#65;&#x1F600;&amp;</a>",
            "<a xml:lang='en' b='&quot;'/>",
        ] {
            assert!(nodes(body).is_ok(), "{body}");
        }
    }

    #[test]
    fn a_body_has_limits() {
        let deep = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
        assert!(nodes(&deep(16)).is_ok());
        assert_eq!(nodes(&deep(17)), Err(TOO_COMPLEX));
    }
}
