//! Request heads: parsed by httparse, with the fields that the server uses.

use crate::guard::{self, Content};
use crate::limits::FIELDS_MAX;
use crate::status::{Refused, Status};

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of RFC 9110 and RFC 4918")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Mkcol,
    Move,
    Copy,
    Lock,
    Propfind,
    Proppatch,
    Unlock,
}

impl Method {
    fn of(word: &str) -> Option<Method> {
        Some(match word {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "MKCOL" => Method::Mkcol,
            "MOVE" => Method::Move,
            #[cfg(feature = "webdav")]
            "COPY" => Method::Copy,
            #[cfg(feature = "webdav")]
            "LOCK" => Method::Lock,
            #[cfg(feature = "webdav")]
            "PROPFIND" => Method::Propfind,
            #[cfg(feature = "webdav")]
            "PROPPATCH" => Method::Proppatch,
            #[cfg(feature = "webdav")]
            "UNLOCK" => Method::Unlock,
            _ => return None,
        })
    }

    /// Returns true for methods that only read.
    pub fn is_reading(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

/// A request head, with the fields that the server uses.
#[derive(Clone, Debug)]
pub struct Head<'b> {
    /// Method.
    pub method: Method,
    /// Target without scheme and authority: path and query, still encoded.
    pub target: &'b str,
    /// Minor version of HTTP/1.
    pub minor: u8,
    /// Length of the body.
    pub content: Content,
    /// `Host`, or the authority of an absolute target.
    pub host: Option<&'b str>,
    /// `Connection` contains `close`, or, in HTTP/1.0, does not contain `keep-alive`.
    pub closes: bool,
    /// `Expect: 100-continue`.
    pub expects_continue: bool,
    /// Other fields.
    pub fields: Fields<'b>,
    /// The whole head.
    raw: &'b [u8],
}

impl<'b> Head<'b> {
    /// Returns a field that few requests have, from the bytes of the head.
    pub(crate) fn field(&self, name: &str) -> Result<Option<&'b str>, Refused> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(self.raw).map_err(refused)?;
        guard::single(request.headers, name)
    }
}

/// Fields of a head, by name.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "named like the header fields")]
pub struct Fields<'b> {
    pub if_match: Option<&'b str>,
    pub if_none_match: Option<&'b str>,
    pub if_range: Option<&'b str>,
    /// The request has a field `If`.
    pub has_if: bool,
    /// The request has a field `If-Unmodified-Since`.
    pub has_unmodified_since: bool,
    pub origin: Option<&'b str>,
    pub range: Option<&'b str>,
    pub sec_fetch_site: Option<&'b str>,
}

impl Fields<'_> {
    /// Returns true if the request applies only to some states of its target.
    pub(crate) fn has_condition(&self) -> bool {
        let has_tags = self.if_match.is_some() || self.if_none_match.is_some();
        has_tags || self.has_if || self.has_unmodified_since
    }
}

/// Result of looking for a head at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The head has this many bytes.
    Whole(usize),
    /// The end of the head is missing.
    Part,
    /// The bytes are not a head.
    Bad(Refused),
}

/// Looks for a complete head.
pub(crate) fn scan(bytes: &[u8]) -> Scan {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    match httparse::Request::new(&mut fields).parse(bytes) {
        Ok(httparse::Status::Complete(bytes)) => Scan::Whole(bytes),
        Ok(httparse::Status::Partial) => Scan::Part,
        Err(error) => Scan::Bad(refused(error)),
    }
}

fn refused(error: httparse::Error) -> Refused {
    match error {
        httparse::Error::TooManyHeaders => Refused::new(
            Status::RequestHeadTooLarge,
            "the request has more than 32 header fields",
        ),
        _ => Refused::bad("the request is not HTTP/1.1"),
    }
}

/// Parses a complete head, and checks the fields that determine the length of the body.
///
/// # Errors
/// [`Refused`] with 400, 431 or 501.
pub fn parse(bytes: &[u8]) -> Result<Head<'_>, Refused> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let status = request.parse(bytes).map_err(refused)?;
    if status.is_partial() {
        return Err(Refused::bad("the request head is incomplete"));
    }
    let (Some(word), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(Refused::bad("the request line is incomplete"));
    };
    let content = guard::content(request.headers, minor)?;
    let host = guard::single(request.headers, "Host")?;
    let host = match host {
        None if minor > 0 => return Err(Refused::bad("the request has no Host")),
        host => host,
    };
    let (host, target) = split_target(host, target)?;
    let method = Method::of(word).ok_or(Refused::new(
        Status::NotImplemented,
        "the server does not implement this method",
    ))?;
    let value = |name| guard::single(request.headers, name);
    let has = |name, word| guard::contains(request.headers, name, word);
    Ok(Head {
        method,
        target,
        minor,
        content,
        host,
        closes: has("Connection", "close") || minor == 0 && !has("Connection", "keep-alive"),
        expects_continue: minor > 0 && has("Expect", "100-continue"),
        fields: Fields {
            if_match: value("If-Match")?,
            if_none_match: value("If-None-Match")?,
            if_range: value("If-Range")?,
            has_if: value("If")?.is_some(),
            has_unmodified_since: value("If-Unmodified-Since")?.is_some(),
            origin: value("Origin")?,
            range: value("Range")?,
            sec_fetch_site: value("Sec-Fetch-Site")?,
        },
        raw: bytes,
    })
}

/// Splits an absolute target into authority and path. The authority then has to agree with `Host`.
fn split_target<'b>(
    host: Option<&'b str>,
    target: &'b str,
) -> Result<(Option<&'b str>, &'b str), Refused> {
    if target.starts_with('/') || target == "*" {
        return Ok((host, target));
    }
    let (authority, path) = split_url(target).ok_or(Refused::bad("the target is not a path"))?;
    match host {
        Some(host) if !host.eq_ignore_ascii_case(authority) => {
            Err(Refused::bad("the target and Host disagree"))
        }
        _ => Ok((Some(authority), path)),
    }
}

/// Splits an `http` or `https` URL into authority and path.
pub(crate) fn split_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    is_http.then_some((authority, if path.is_empty() { "/" } else { path }))
}
