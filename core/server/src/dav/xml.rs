//! Bodies of WebDAV requests.

use super::locks::Scope;
use crate::status::Refused;
use xmlparser::{ElementEnd, Token, Tokenizer};

/// A property of RFC 4918 or RFC 4331. The order is that of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    ResourceType,
    ContentLength,
    ContentType,
    LastModified,
    ETag,
    SupportedLock,
    LockDiscovery,
    QuotaAvailable,
    QuotaUsed,
}

/// Every property with its name.
pub(crate) const PROPERTIES: [(Property, &str); 9] = [
    (Property::ResourceType, "resourcetype"),
    (Property::ContentLength, "getcontentlength"),
    (Property::ContentType, "getcontenttype"),
    (Property::LastModified, "getlastmodified"),
    (Property::ETag, "getetag"),
    (Property::SupportedLock, "supportedlock"),
    (Property::LockDiscovery, "lockdiscovery"),
    (Property::QuotaAvailable, "quota-available-bytes"),
    (Property::QuotaUsed, "quota-used-bytes"),
];

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties(u16);

impl Properties {
    /// The properties of `allprop`: all but the quota (RFC 4331, section 2).
    pub(crate) const ALL: Properties =
        Properties(!(1 << Property::QuotaAvailable as u16 | 1 << Property::QuotaUsed as u16));

    pub(crate) fn has(self, property: Property) -> bool {
        self.0 & 1 << property as u16 != 0
    }

    pub(crate) fn add(&mut self, property: Property) {
        self.0 |= 1 << property as u16;
    }
}

/// A request for properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Values.
    Values(Properties),
    /// Names only.
    Names,
}

/// Parses the body of PROPFIND. Names that the server does not know are skipped.
///
/// # Errors
/// 400 if the body is not XML, or not that of PROPFIND.
pub(crate) fn propfind(body: &str) -> Result<Wanted, Refused> {
    if body.is_empty() {
        return Ok(Wanted::Values(Properties::ALL));
    }
    let mut wanted = None;
    let mut properties = Properties::default();
    elements(body, |path| {
        match path {
            ["propfind"] => (),
            [root, ..] if *root != "propfind" => return Err(NOT_EXPECTED),
            [_, "allprop"] => wanted = Some(Wanted::Values(Properties::ALL)),
            [_, "propname"] => wanted = Some(Wanted::Names),
            [_, "prop"] => wanted = Some(Wanted::Values(properties)),
            [_, "prop", name] => {
                let known = PROPERTIES.iter().find(|(_, known)| known == name);
                known
                    .iter()
                    .for_each(|(property, _)| properties.add(*property));
                wanted = Some(Wanted::Values(properties));
            }
            _ => (),
        }
        Ok(())
    })?;
    wanted.ok_or(NOT_EXPECTED)
}

/// Parses the body of LOCK; returns `None` if there is none, which refreshes a lock.
///
/// # Errors
/// 400 if the body is not XML, or not that of LOCK.
pub(crate) fn lock(body: &str) -> Result<Option<Scope>, Refused> {
    if body.is_empty() {
        return Ok(None);
    }
    let (mut scope, mut is_write) = (None, false);
    elements(body, |path| {
        match path {
            ["lockinfo", "lockscope", "exclusive"] => scope = Some(Scope::Exclusive),
            ["lockinfo", "lockscope", "shared"] => scope = Some(Scope::Shared),
            ["lockinfo", "locktype", "write"] => is_write = true,
            _ => (),
        }
        Ok(())
    })?;
    match scope {
        Some(scope) if is_write => Ok(Some(scope)),
        _ => Err(NOT_EXPECTED),
    }
}

/// Checks the body of PROPPATCH.
///
/// # Errors
/// 400 if the body is not XML, or not that of PROPPATCH.
pub(crate) fn proppatch(body: &str) -> Result<(), Refused> {
    let mut is_update = false;
    elements(body, |path| {
        is_update |= path == ["propertyupdate"];
        Ok(())
    })?;
    match is_update {
        true => Ok(()),
        false => Err(NOT_EXPECTED),
    }
}

const MALFORMED: Refused = Refused::bad("the body is not well-formed XML");
const NOT_EXPECTED: Refused = Refused::bad("the body does not belong to this method");
const HAS_DTD: Refused = Refused::bad("the body has a document type, which this server refuses");

/// Levels of elements whose names are known. Deeper elements are counted, and their names forgotten.
const LEVELS: usize = 4;
/// Deepest element.
const DEPTH_MAX: usize = 32;

/// Calls a function for each element with the names of the elements that contain it, from the root, and its own;
/// namespaces are not distinguished. Elements deeper than [`LEVELS`] are skipped.
fn elements<'b>(
    body: &'b str,
    mut visit: impl FnMut(&[&'b str]) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut names = [""; LEVELS];
    let (mut depth, mut has_root) = (0_usize, false);
    for token in Tokenizer::from(body) {
        match token.map_err(|_| MALFORMED)? {
            Token::ElementStart { local, .. } => {
                if depth == DEPTH_MAX || depth == 0 && has_root {
                    return Err(MALFORMED);
                }
                has_root = true;
                if let Some(name) = names.get_mut(depth) {
                    *name = local.as_str();
                    visit(&names[..=depth])?;
                }
                depth += 1;
            }
            Token::ElementEnd { end, .. } => {
                let closed = match end {
                    ElementEnd::Open => continue,
                    ElementEnd::Empty => None,
                    ElementEnd::Close(_, local) => Some(local.as_str()),
                };
                depth = depth.checked_sub(1).ok_or(MALFORMED)?;
                let opened = names.get(depth);
                if closed
                    .zip(opened)
                    .is_some_and(|(closed, opened)| closed != *opened)
                {
                    return Err(MALFORMED);
                }
            }
            // A prefix cannot be undeclared (Namespaces in XML 1.0, section 2.2).
            Token::Attribute { prefix, value, .. }
                if prefix.as_str() == "xmlns" && value.as_str().is_empty() =>
            {
                return Err(MALFORMED);
            }
            Token::DtdStart { .. } | Token::EmptyDtd { .. } => return Err(HAS_DTD),
            _ => (),
        }
    }
    match has_root && depth == 0 {
        true => Ok(()),
        false => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn values(properties: &[Property]) -> Result<Wanted, Refused> {
        let mut set = Properties::default();
        properties.iter().for_each(|property| set.add(*property));
        Ok(Wanted::Values(set))
    }

    #[test]
    fn properties_are_found_under_any_prefix() {
        let all = Ok(Wanted::Values(Properties::ALL));
        assert_eq!(propfind(""), all);
        let declared = r#"<?xml version="1.0" encoding="utf-8"?>"#;
        let body = format!(r#"{declared}<propfind xmlns="DAV:"><allprop/></propfind>"#);
        assert_eq!(propfind(&body), all);
        let body = r#"<a:propfind xmlns:a="DAV:"><a:propname/></a:propfind>"#;
        assert_eq!(propfind(body), Ok(Wanted::Names));
        let body = r#"<D:propfind xmlns:D="DAV:"><D:prop>
            <D:getetag/><x:executable xmlns:x="http://example.org/"/><D:resourcetype></D:resourcetype>
            </D:prop></D:propfind>"#;
        assert_eq!(
            propfind(body),
            values(&[Property::ETag, Property::ResourceType])
        );
        let none = r#"<propfind xmlns="DAV:"><prop></prop></propfind>"#;
        assert_eq!(propfind(none), values(&[]));
    }

    #[test]
    fn the_scope_of_a_lock_is_found() {
        let body = |scope: &str| {
            format!(
                "<lockinfo xmlns='DAV:'><lockscope><{scope}/></lockscope><locktype><write/></locktype>\
                 <owner><href>mailto:a@example.org</href></owner></lockinfo>"
            )
        };
        assert_eq!(lock(&body("exclusive")), Ok(Some(Scope::Exclusive)));
        assert_eq!(lock(&body("shared")), Ok(Some(Scope::Shared)));
        assert_eq!(lock(&body("other")), Err(NOT_EXPECTED));
        assert_eq!(lock(""), Ok(None));
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for body in [
            "<propfind",
            "<propfind>",
            "<propfind></prop>",
            "<propfind><allprop/></propfind></propfind>",
            "<propfind><allprop></propfind></allprop>",
            "</propfind>",
            "text",
            "<propfind xmlns:a=''><allprop/></propfind>",
            "<propfind><allprop/></propfind><propfind/>",
            "<propfind>&unknown</propfind",
        ] {
            assert_eq!(propfind(body), Err(MALFORMED), "{body}");
        }
        assert_eq!(propfind("<x/>"), Err(NOT_EXPECTED));
        assert_eq!(propfind("<propfind/>"), Err(NOT_EXPECTED));
        assert_eq!(
            proppatch("<propfind><allprop/></propfind>"),
            Err(NOT_EXPECTED)
        );
        let bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]><propfind><allprop/></propfind>";
        assert_eq!(propfind(bomb), Err(HAS_DTD));
        let deep = "<a>".repeat(100);
        assert_eq!(propfind(&deep.replace("<a>", "<propfind>")), Err(MALFORMED));
    }
}
