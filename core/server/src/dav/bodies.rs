//! Bodies of WebDAV requests.

use super::locks::{Owner, Scope};
use super::xml::{DAV, Name, Node, elements};
use crate::status::{Refused, Status};
use core::fmt::Write as _;

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

/// Maximum number of properties in a request that need an answer of their own. Clients ask for up to 8.
const NAMES_MAX: usize = 16;

/// Parses the body of PROPFIND. [`unknown`] returns the properties that the server does not know.
///
/// # Errors
/// 400 if the body is not XML, or not that of PROPFIND; 413 if it names too many unknown properties.
pub(crate) fn propfind(body: &str) -> Result<Wanted, Refused> {
    if body.is_empty() {
        return Ok(Wanted::Values(Properties::ALL));
    }
    let (mut wanted, mut unknown) = (None, 0);
    let mut properties = Properties::default();
    elements(body, |path, node| {
        if !matches!(node, Node::Start(_)) {
            return Ok(());
        }
        match path {
            ["propfind"] => (),
            [root, ..] if *root != "propfind" => return Err(NOT_EXPECTED),
            [_, "allprop"] => wanted = Some(Wanted::Values(Properties::ALL)),
            [_, "propname"] => wanted = Some(Wanted::Names),
            [_, "prop"] => wanted = Some(Wanted::Values(properties)),
            [_, "prop", property] => {
                match PROPERTIES.iter().find(|(_, known)| known == property) {
                    Some((property, _)) => properties.add(*property),
                    None => unknown += 1,
                }
                wanted = Some(Wanted::Values(properties));
            }
            _ => (),
        }
        Ok(())
    })?;
    match unknown > NAMES_MAX {
        true => Err(TOO_MANY),
        false => wanted.ok_or(NOT_EXPECTED),
    }
}

/// Returns a property that the server does not know, by its number in the body of PROPFIND. A board has no room for a
/// table of them.
pub(crate) fn unknown(body: &str, number: usize) -> Option<Name<'_>> {
    named(body, number, |path| match path {
        [_, "prop", property] => PROPERTIES.iter().all(|(_, known)| known != property),
        _ => false,
    })
}

/// Returns a property by its number in the body of PROPPATCH.
pub(crate) fn patched(body: &str, number: usize) -> Option<Name<'_>> {
    named(body, number, is_patched)
}

fn is_patched(path: &[&str]) -> bool {
    matches!(path, [_, "set" | "remove", "prop", _])
}

fn named<'b>(body: &'b str, number: usize, is_meant: fn(&[&str]) -> bool) -> Option<Name<'b>> {
    let (mut count, mut found) = (0, None);
    // The body was checked before.
    let _ = elements(body, |path, node| {
        if let Node::Start(name) = node
            && is_meant(path)
        {
            found = found.or((count == number).then_some(name));
            count += 1;
        }
        Ok(())
    });
    found
}

/// Parses the body of LOCK; returns `None` if there is none, which refreshes a lock.
///
/// # Errors
/// 400 if the body is not XML, or not that of LOCK.
pub(crate) fn lock(body: &str) -> Result<Option<(Scope, Owner)>, Refused> {
    if body.is_empty() {
        return Ok(None);
    }
    let (mut scope, mut is_write) = (None, false);
    let (mut owner, mut is_whole) = (Owner::new(), true);
    elements(body, |path, node| {
        match (path, node) {
            (["lockinfo", "owner"], Node::Start(_) | Node::End(_)) => (),
            (["lockinfo", "owner", ..], node) => is_whole &= write_node(&mut owner, node).is_ok(),
            (["lockinfo", "lockscope", "exclusive"], _) => scope = Some(Scope::Exclusive),
            (["lockinfo", "lockscope", "shared"], _) => scope = Some(Scope::Shared),
            (["lockinfo", "locktype", "write"], _) => is_write = true,
            _ => (),
        }
        Ok(())
    })?;
    // A part of an owner may be malformed.
    if !is_whole {
        owner.clear();
    }
    match scope {
        Some(scope) if is_write => Ok(Some((scope, owner))),
        _ => Err(NOT_EXPECTED),
    }
}

/// Writes a part of the owner so that it needs no declarations but that of the prefix `D`. Attributes are dropped.
fn write_node(owner: &mut Owner, node: Node) -> core::fmt::Result {
    match node {
        Node::Text(text) => owner.write_str(text),
        Node::Start(Name { space: DAV, local }) => write!(owner, "<D:{local}>"),
        Node::End(Name { space: DAV, local }) => write!(owner, "</D:{local}>"),
        Node::Start(name) => {
            write!(owner, "<{} xmlns=\"", name.local)?;
            for (at, part) in name.space.split('"').enumerate() {
                owner.write_str(if at > 0 { "&quot;" } else { "" })?;
                owner.write_str(part)?;
            }
            owner.write_str("\">")
        }
        Node::End(name) => write!(owner, "</{}>", name.local),
    }
}

/// Result of PROPPATCH, which stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    /// All properties are those of Microsoft, which are accepted and dropped: Explorer gives up a copy otherwise.
    Accepted,
    /// Properties are refused, so that those of Microsoft fail, too.
    Refused,
}

/// Parses the body of PROPPATCH. [`patched`] returns its properties.
///
/// # Errors
/// 400 if the body is not XML, or not that of PROPPATCH; 413 if it names too many properties.
pub(crate) fn proppatch(body: &str) -> Result<Patch, Refused> {
    let (mut names, mut patch) = (0, Patch::Accepted);
    elements(body, |path, node| {
        match (path, node) {
            ([root, ..], _) if *root != "propertyupdate" => return Err(NOT_EXPECTED),
            (path, Node::Start(name)) if is_patched(path) => {
                names += 1;
                if !is_microsoft(&name) {
                    patch = Patch::Refused;
                }
            }
            _ => (),
        }
        Ok(())
    })?;
    match names > NAMES_MAX {
        true => Err(TOO_MANY),
        false => Ok(patch),
    }
}

pub(crate) fn is_microsoft(name: &Name) -> bool {
    name.space.starts_with("urn:schemas-microsoft-com:")
}

const NOT_EXPECTED: Refused = Refused::bad("the body does not belong to this method");
const TOO_MANY: Refused = Refused::new(
    Status::ContentTooLarge,
    "the body names more than 16 properties that the server does not have; ask for fewer",
);

#[cfg(test)]
mod tests {
    use super::super::xml::{HAS_DTD, MALFORMED};
    use super::*;
    use std::format;
    use std::vec::Vec;

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
    fn properties_that_the_server_does_not_know_are_returned_with_their_namespaces() {
        let body = "<D:propfind xmlns:D='DAV:' xmlns:x='urn:x'><D:prop><D:displayname/><getetag/>\
            <x:getetag/><D:getetag><x:deeper/></D:getetag></D:prop></D:propfind>";
        assert_eq!(propfind(body), values(&[Property::ETag]));
        let name = |space, local| Name { space, local };
        let expected = [
            name(DAV, "displayname"),
            name("", "getetag"),
            name("urn:x", "getetag"),
        ];
        let found = (0..).map_while(|number| unknown(body, number));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let many = |count: usize| {
            let names = "<x/>".repeat(count);
            format!("<propfind xmlns='DAV:'><prop>{names}</prop></propfind>")
        };
        assert_eq!(propfind(&many(16)), values(&[]));
        assert_eq!(propfind(&many(17)), Err(TOO_MANY));
    }

    #[test]
    fn scope_and_owner_of_a_lock_are_found() {
        let body = |scope: &str, owner: &str| {
            format!(
                "<a:lockinfo xmlns:a='DAV:'><a:lockscope><a:{scope}/></a:lockscope><a:locktype><a:write/>\
                 </a:locktype>{owner}</a:lockinfo>"
            )
        };
        let locked = |scope, owner: &str| Ok(Some((scope, Owner::try_from(owner).unwrap())));
        let given = "<a:owner><a:href>mailto:a</a:href> &lt;<x xmlns='u\"'><y/></x></a:owner>";
        let stored =
            "<D:href>mailto:a</D:href> &lt;<x xmlns=\"u&quot;\"><y xmlns=\"u&quot;\"></y></x>";
        assert_eq!(
            lock(&body("exclusive", given)),
            locked(Scope::Exclusive, stored)
        );
        assert_eq!(lock(&body("shared", "")), locked(Scope::Shared, ""));
        let long = format!("<a:owner>{}</a:owner>", "x".repeat(300));
        assert_eq!(lock(&body("shared", &long)), locked(Scope::Shared, ""));
        assert_eq!(lock(&body("other", "")), Err(NOT_EXPECTED));
        assert_eq!(lock(""), Ok(None));
    }

    #[test]
    fn malformed_and_other_bodies_are_refused() {
        for body in [
            "<propfind",
            "<propfind xmlns='DAV:'>",
            "<propfind xmlns='DAV:'></prop>",
            "<propfind xmlns='DAV:'><allprop/></propfind></propfind>",
            "<propfind xmlns='DAV:'><allprop></propfind></allprop>",
            "</propfind>",
            "text",
            "<propfind xmlns='DAV:' xmlns:a=''><allprop/></propfind>",
            "<propfind xmlns='DAV:'><allprop/></propfind><propfind/>",
            "<propfind xmlns='DAV:'>&unknown</propfind",
        ] {
            assert_eq!(propfind(body), Err(MALFORMED), "{body}");
        }
        for body in [
            "<x/>",
            "<propfind xmlns='DAV:'/>",
            "<propfind><allprop/></propfind>",
            "<propfind xmlns='DAVX:'><allprop/></propfind>",
        ] {
            assert_eq!(propfind(body), Err(NOT_EXPECTED), "{body}");
        }
        let other = "<propfind xmlns='DAV:'><allprop/></propfind>";
        assert_eq!(proppatch(other), Err(NOT_EXPECTED));
        let bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]><propfind><allprop/></propfind>";
        assert_eq!(propfind(bomb), Err(HAS_DTD));
    }
}
