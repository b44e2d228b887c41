//! Checks before anything interprets a request: the length of the body, the name by which the client knows
//! the server, and the page that sent the request.

use crate::Error;
use crate::head::{Head, Method};
use crate::server::Config;
use crate::status::{Refused, Status};
use core::net::{Ipv4Addr, Ipv6Addr};
use httparse::Header;

/// Length of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// There is no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
}

/// Determines the length of a body: one `Content-Length` of digits, or `Transfer-Encoding: chunked`. Everything
/// else is refused, so that no byte of a body can be mistaken for a request.
pub(crate) fn content(fields: &[Header], minor: u8) -> Result<Content, Refused> {
    let length = single(fields, "Content-Length")?;
    let encoding = single(fields, "Transfer-Encoding")?;
    match (length, encoding) {
        (None, None) => Ok(Content::None),
        (Some(_), Some(_)) => Err(Refused::bad(
            "the request has both Content-Length and Transfer-Encoding",
        )),
        (Some(length), None) => length_of(length).map(Content::Length),
        (None, Some(encoding)) if minor > 0 && encoding.eq_ignore_ascii_case("chunked") => {
            Ok(Content::Chunked)
        }
        (None, Some(_)) => Err(Refused::bad("Transfer-Encoding is not chunked")),
    }
}

fn length_of(text: &str) -> Result<u64, Refused> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::bad("Content-Length is not a number"));
    }
    // Overflow is the only remaining error.
    text.parse().map_err(|_| Error::TooLarge.into())
}

/// Returns the value of a field that may occur once.
pub(crate) fn single<'b>(fields: &[Header<'b>], name: &str) -> Result<Option<&'b str>, Refused> {
    let mut values = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case(name));
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Refused::bad("a header field occurs twice"));
    }
    let value = first.map(|field| str::from_utf8(field.value)).transpose();
    let value = value.map_err(|_| Refused::bad("a header field is not UTF-8"))?;
    Ok(value.map(|value| value.trim_matches([' ', '\t'])))
}

/// Returns true if a field, which may be a list, contains a word.
pub(crate) fn contains(fields: &[Header], name: &str, word: &str) -> bool {
    fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case(name))
        .filter_map(|field| str::from_utf8(field.value).ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.trim_matches([' ', '\t']).eq_ignore_ascii_case(word))
}

/// Replaces the host of a request by the one that the client sent to a trusted proxy: `X-Forwarded-Host` and
/// `X-Forwarded-Proto`, or else `host` and `proto` of `Forwarded` (RFC 7239). Of several values, the last one is that of the
/// trusted proxy.
///
/// # Errors
/// 421 if the proxy did not use a name of this server: a page for whose name an attacker returns the address of this
/// server can set these fields, too. 403 if the origin has another scheme.
#[cfg(feature = "computer")]
pub(crate) fn believe(head: &mut Head, config: &Config) -> Result<(), Refused> {
    check_host(head, config)?;
    let forwarded = head.field("Forwarded")?;
    let value = |name, parameter| -> Result<_, Refused> {
        let field = head.field(name)?.and_then(last);
        Ok(field.or_else(|| forwarded_value(last(forwarded?)?, parameter)))
    };
    let host = value("X-Forwarded-Host", "host")?;
    let scheme = value("X-Forwarded-Proto", "proto")?;
    if let (Some(origin), Some(scheme)) = (head.fields.origin, scheme) {
        let of_origin = origin.split_once("://").map(|(scheme, _)| scheme);
        if !of_origin.is_some_and(|of_origin| of_origin.eq_ignore_ascii_case(scheme)) {
            return Err(CROSS_SITE);
        }
    }
    head.host = host.or(head.host);
    Ok(())
}

/// Returns the last item of a list.
#[cfg(feature = "computer")]
fn last(list: &str) -> Option<&str> {
    list.rsplit(',').next().map(str::trim)
}

/// Returns a parameter of an element of `Forwarded`, without its quotation marks.
#[cfg(feature = "computer")]
fn forwarded_value<'b>(element: &'b str, name: &str) -> Option<&'b str> {
    element.split(';').find_map(|pair| {
        let (found, value) = pair.split_once('=')?;
        let is_it = found.trim().eq_ignore_ascii_case(name);
        is_it.then(|| value.trim().trim_matches('"'))
    })
}

fn check_host(head: &Head, config: &Config) -> Result<(), Refused> {
    match head.host {
        Some(host) if !is_own(host, config.names) => Err(Refused::new(
            Status::MisdirectedRequest,
            "use the IP address of this server, or a name that it knows",
        )),
        _ => Ok(()),
    }
}

/// Decides whether a request may be routed.
///
/// # Errors
/// 421 for a foreign `Host`, 403 for requests that a page of another site caused.
pub fn admit(head: &Head, config: &Config) -> Result<(), Refused> {
    check_host(head, config)?;
    match head.fields.origin {
        Some(origin) if !is_same_origin(origin, head.host) => return Err(CROSS_SITE),
        _ => (),
    }
    // A link on a page of another site may open a file; nothing else on such a page may use the server.
    let is_navigation =
        head.method == Method::Get && head.field("Sec-Fetch-Mode")? == Some("navigate");
    match head.fields.sec_fetch_site {
        Some("cross-site") if !is_navigation => Err(CROSS_SITE),
        Some("same-site") if !head.method.is_reading() => Err(CROSS_SITE),
        _ => Ok(()),
    }
}

/// Decides whether a request may change something. Stricter than [`admit`], because such a request may be a GET.
///
/// # Errors
/// 403 if the server is read-only, or a page other than the server's own caused the request.
pub(crate) fn admit_change(head: &Head, config: &Config) -> Result<(), Refused> {
    if config.is_read_only {
        return Err(READ_ONLY);
    }
    match head.fields.sec_fetch_site {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(CROSS_SITE),
    }
}

pub(crate) const READ_ONLY: Refused = Refused::new(Status::Forbidden, "the server is read-only");
const CROSS_SITE: Refused = Refused::new(
    Status::Forbidden,
    "the request comes from a page of another site",
);

/// Returns true for an IP address, `localhost` or a configured name, each with an optional port.
fn is_own(host: &str, names: &[&str]) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => ("localhost", port),
            _ => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    let is_name = name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name));
    is_port && is_name
}

fn is_same_origin(origin: &str, host: Option<&str>) -> bool {
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    match (authority, host) {
        (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    }
}

/// Result of checking the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    Right,
    Missing,
    Wrong,
}

/// Checks the credentials in constant time.
pub(crate) fn credentials(head: &Head, config: &Config) -> Result<Credentials, Refused> {
    let Some(expected) = config.basic_auth else {
        return Ok(Credentials::Right);
    };
    let Some(given) = head.field("Authorization")? else {
        return Ok(Credentials::Missing);
    };
    let given = match given.split_once(' ') {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case("Basic") => given.trim(),
        _ => return Ok(Credentials::Wrong),
    };
    let differences = given
        .bytes()
        .zip(expected.bytes())
        .fold(given.len() ^ expected.len(), |sum, (one, other)| {
            sum | usize::from(one ^ other)
        });
    Ok(match differences {
        0 => Credentials::Right,
        _ => Credentials::Wrong,
    })
}
