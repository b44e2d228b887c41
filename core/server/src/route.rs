//! From a request head to an operation: a pure function.

use crate::dav::Depth;
use crate::guard::{self, Content};
use crate::head::{Head, Method, split_url};
use crate::operations::permission::overlap;
use crate::path::{Path, Query, check, decode_path, name};
use crate::server::Config;
use crate::status::{Refused, Status};
use crate::storage::{Day, SESSION_BYTES_MAX};

/// A request that may be carried out: an operation, and the path that it applies to.
#[derive(Clone, Debug)]
pub struct Route<'h> {
    /// Operation.
    pub operation: Operation<'h>,
    /// Path; empty if the operation has none.
    pub path: Path,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation<'h> {
    /// Sends a file, or the page of a folder.
    Read(Reading),
    /// Sends a folder as tar.
    Tar,
    /// Shows a page with a button that removes the path.
    ConfirmRemoval,
    /// Removes the path if the form in the body has the key of that page.
    RemoveWithKey,
    /// Creates an empty file or, if the name has no dot, a folder.
    Create,
    /// Lists a folder as JSON.
    List,
    /// Removes a file, or a folder with its contents.
    Remove,
    /// Receives a file.
    Put,
    /// Receives the files of a form into the folder, or into the folders that their names contain.
    Upload {
        /// Boundary of the form's parts.
        boundary: &'h str,
    },
    /// Creates a folder.
    MakeDirectory,
    /// Renames.
    Move {
        /// New path, encoded.
        to: &'h str,
    },
    /// Copies.
    Copy {
        /// New path, encoded.
        to: &'h str,
    },
    /// Sends the properties of a path.
    Propfind(Depth),
    /// Refuses to change properties.
    Proppatch,
    /// Locks a path.
    Lock,
    /// Ends a lock.
    Unlock,
    /// Lists the sessions.
    Sessions,
    /// Sends the recordings of the session with this name as tar.
    Session(&'h str),
    /// Lists the days.
    Days,
    /// Sends the recordings of a day, or those without a date, as tar.
    Day(Option<Day>),
    /// Sends the state of the recorder as JSON.
    Status,
    /// Sends gaps as JSON, from the one with this number on.
    Gaps {
        /// Number of the first gap.
        since: u64,
    },
    /// Sends the state of recorder and server for Prometheus.
    Metrics,
    /// Sends events until the connection ends.
    Live(Live),
    /// Starts, stops or rotates the recording.
    Record(Query<'h>),
    /// Sets the clock.
    Clock(Query<'h>),
    /// Tests the writes of the storage.
    Bench(Query<'h>),
    /// Sends a file of the page.
    #[cfg(feature = "page")]
    Page(&'static crate::page::Asset),
    /// Lists the methods.
    Options,
}

/// Options for reading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The browser saves the file.
    pub is_download: bool,
    /// The response continues while the file grows.
    pub follows: bool,
    /// First byte of a response that continues.
    pub offset: u64,
    /// Rows of the recording instead of its bytes.
    pub slice: Option<Slice>,
}

/// Rows of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// Stream of a recording with several.
    pub stream: u8,
    /// Age of the file at which the rows begin, in ms.
    pub from_ms: Option<u32>,
    /// Age of the file at which the rows end, in ms.
    pub to_ms: Option<u32>,
}

/// Options of an event stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Live {
    /// Every sample, instead of the state and the newest samples.
    pub has_all: bool,
    /// Stream of the samples.
    pub stream: u8,
    /// Number of the first sample; `None` begins with the next one.
    pub next: Option<u64>,
    /// The latencies of single writes, too.
    pub has_writes: bool,
}

/// Determines the operation of a request.
///
/// # Errors
/// [`Refused`]: 400 for paths and arguments that violate the rules in docs/security.md, 403 for protected paths and for
/// changes that are not allowed, 405 for methods that the path does not support, 411 for uploads of unknown length.
pub fn route<'h>(head: &Head<'h>, config: &Config) -> Result<Route<'h>, Refused> {
    let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
    let query = Query(query);
    if head.method == Method::Options {
        return Ok(plain(Operation::Options));
    }
    let route = match (head.method, path) {
        (Method::Get | Method::Head, _) => read(head, path, query)?,
        (Method::Post, _) => post(head, path, query)?,
        (Method::Put, "/edit") => at(Operation::Create, directory(query)?),
        (Method::Delete, "/edit") => at(Operation::Remove, directory(query)?),
        (Method::Put, _) => put(head, decode_path(path)?)?,
        (Method::Delete, _) => at(Operation::Remove, decode_path(path)?),
        (Method::Mkcol, _) => make_directory(head, decode_path(path)?)?,
        (Method::Move, _) => {
            let (to, path) = destination(head, decode_path(path)?)?;
            at(Operation::Move { to }, path)
        }
        (Method::Copy, _) => {
            let (to, path) = destination(head, decode_path(path)?)?;
            at(Operation::Copy { to }, path)
        }
        (Method::Propfind, _) => at(Operation::Propfind(Depth::of(head)?), decode_path(path)?),
        (Method::Proppatch, _) => at(Operation::Proppatch, decode_path(path)?),
        (Method::Lock, _) => at(Operation::Lock, decode_path(path)?),
        (Method::Unlock, _) => at(Operation::Unlock, decode_path(path)?),
        (Method::Options, _) => plain(Operation::Options),
    };
    if route.operation == Operation::ConfirmRemoval && config.is_read_only {
        return Err(guard::READ_ONLY);
    }
    if route.operation.is_change() {
        guard::admit_change(head, config)?;
        if route.path == "/" && !matches!(route.operation, Operation::Upload { .. }) {
            return Err(Refused::new(
                Status::Forbidden,
                "the root directory cannot be changed",
            ));
        }
        if is_reserved(&route.path) {
            return Err(Refused::new(
                Status::Forbidden,
                "the server itself answers at this path",
            ));
        }
    }
    Ok(route)
}

impl Operation<'_> {
    /// Returns true for operations that change something.
    pub fn is_change(&self) -> bool {
        use Operation as Op;
        match self {
            Op::Read(_) | Op::Tar | Op::ConfirmRemoval | Op::List | Op::Options => false,
            Op::Propfind(_) => false,
            Op::Sessions | Op::Session(_) | Op::Days | Op::Day(_) => false,
            #[cfg(feature = "page")]
            Op::Page(_) => false,
            Op::Status | Op::Gaps { .. } | Op::Metrics | Op::Live(_) => false,
            Op::RemoveWithKey | Op::Create | Op::Remove | Op::Put | Op::Upload { .. } => true,
            Op::MakeDirectory | Op::Move { .. } | Op::Record(_) | Op::Clock(_) => true,
            Op::Bench(_) => true,
            Op::Copy { .. } | Op::Proppatch | Op::Lock | Op::Unlock => true,
        }
    }
}

/// Names in the root directory that stand for operations.
const RESERVED: &[&str] = &[
    "list",
    "edit",
    "sessions",
    "days",
    "status",
    "gaps",
    "metrics",
    "live",
    "record",
    "clock",
    "bench",
    #[cfg(feature = "page")]
    "page",
];

/// Returns true if the server itself answers at a path.
pub(crate) fn is_reserved(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or(path).split('/').next();
    first.is_some_and(|first| RESERVED.contains(&first))
}

/// Returns true if the server answers a GET of this name in the root directory with something other than the file.
/// `/edit` accepts only changes.
pub(crate) fn is_answered(name: &str) -> bool {
    RESERVED.contains(&name) && name != "edit"
}

/// Returns true for a folder, and for paths in it.
#[cfg(feature = "page")]
fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn plain(operation: Operation<'_>) -> Route<'_> {
    at(operation, Path::new())
}

fn at(operation: Operation<'_>, path: Path) -> Route<'_> {
    Route { operation, path }
}

/// Returns the path in the argument `dir` or `path`, as in the web server of study 1.
fn directory(query: Query) -> Result<Path, Refused> {
    let path = match query.path("dir")? {
        Some(path) => Some(path),
        None => query.path("path")?,
    };
    path.ok_or(Refused::bad("the argument dir is missing"))
}

const NO_METHOD: Refused = Refused::new(
    Status::MethodNotAllowed,
    "the path does not have this method",
);

fn read<'h>(head: &Head<'h>, path: &'h str, query: Query<'h>) -> Result<Route<'h>, Refused> {
    let stream = stream(query)?;
    let operation = match path {
        "/list" => return Ok(at(Operation::List, directory(query)?)),
        "/sessions" | "/sessions/" => Operation::Sessions,
        "/days" | "/days/" => Operation::Days,
        "/status" => Operation::Status,
        "/metrics" => Operation::Metrics,
        "/gaps" => Operation::Gaps {
            since: query.number("since")?.unwrap_or(0),
        },
        "/live" => Operation::Live(Live {
            has_all: query.has("all"),
            stream,
            next: next_sample(head, query)?,
            has_writes: query.has("writes"),
        }),
        "/record" | "/clock" | "/bench" => return Err(NO_METHOD),
        #[cfg(feature = "page")]
        _ if is_in(path, "/page") => match crate::page::find(path) {
            Some(asset) => Operation::Page(asset),
            None => return Err(crate::Error::NotFound.into()),
        },
        _ => match path.strip_prefix("/sessions/") {
            Some(name) => return session(name),
            None => match path.strip_prefix("/days/") {
                Some(day) => Operation::Day(day_of(day)?),
                None => return read_path(head, decode_path(path)?, query),
            },
        },
    };
    Ok(plain(operation))
}

fn read_path<'h>(head: &Head<'h>, path: Path, query: Query<'h>) -> Result<Route<'h>, Refused> {
    let is_get = head.method == Method::Get;
    if query.has("create") {
        return match is_get {
            true => Ok(at(Operation::Create, path)),
            false => Err(NO_METHOD),
        };
    }
    if query.has("delete") {
        return Ok(at(Operation::ConfirmRemoval, path));
    }
    if query.has("tar") {
        return Ok(at(Operation::Tar, path));
    }
    let (from_ms, to_ms) = (seconds(query, "from")?, seconds(query, "to")?);
    let is_csv = match query.value("format") {
        None | Some("") => false,
        Some("csv") => true,
        Some(_) => return Err(Refused::bad("the only format is csv")),
    };
    let slice = Slice {
        stream: stream(query)?,
        from_ms,
        to_ms,
    };
    let reading = Reading {
        is_download: query.has("download"),
        follows: query.has("follow"),
        offset: query.number("offset")?.unwrap_or(0),
        slice: (is_csv || from_ms.is_some() || to_ms.is_some()).then_some(slice),
    };
    if reading.follows && reading.slice.is_some() {
        return Err(Refused::bad(
            "follow cannot be combined with format, from or to",
        ));
    }
    Ok(at(Operation::Read(reading), path))
}

/// Parses an argument in s, with up to three decimals; returns it in ms.
fn seconds(query: Query, name: &str) -> Result<Option<u32>, Refused> {
    const BAD: Refused = Refused::bad("from and to are times in s since the beginning of the file");
    let Some(text) = query.value(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !are_digits(whole) || !are_digits(decimals) || decimals.len() > 3 {
        return Err(BAD);
    }
    let whole: u64 = whole.parse().map_err(|_| BAD)?;
    let fraction: u64 = decimals.parse().map_err(|_| BAD)?;
    let unit = [0, 100, 10, 1][decimals.len()];
    let ms = whole.saturating_mul(1000);
    // Ages in files saturate at 32 bits.
    let ms = ms.saturating_add(fraction * unit);
    Ok(Some(u32::try_from(ms).unwrap_or(u32::MAX)))
}

fn stream(query: Query) -> Result<u8, Refused> {
    let stream = query.number("stream")?.unwrap_or(0);
    u8::try_from(stream).map_err(|_| Refused::bad("there is no such stream"))
}

/// Returns the number of the first sample of an event stream: the one after `Last-Event-ID`, or `from`.
fn next_sample(head: &Head, query: Query) -> Result<Option<u64>, Refused> {
    match head.field("Last-Event-ID")? {
        None => query.number("from"),
        Some(id) => match id.parse::<u64>() {
            Ok(id) => Ok(Some(id.saturating_add(1))),
            Err(_) => Err(Refused::bad("Last-Event-ID is not a number")),
        },
    }
}

/// Checks the name of a session, which never needs to be encoded.
fn session(name: &str) -> Result<Route<'_>, Refused> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    match (1..=SESSION_BYTES_MAX).contains(&name.len()) && name.chars().all(is_part) {
        true => Ok(plain(Operation::Session(name))),
        false => Err(Refused::bad(
            "a session's name has 1 to 32 letters, digits, hyphens and underscores",
        )),
    }
}

/// Parses a date, or `unknown`.
fn day_of(text: &str) -> Result<Option<Day>, Refused> {
    const BAD: Refused = Refused::bad("expected a date such as 2026-11-22, or \"unknown\"");
    if text == "unknown" {
        return Ok(None);
    }
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        let are_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        are_digits.then(|| part.parse::<u16>().ok()).flatten()
    };
    let (year, month, day) = (part(4), part(2), part(2));
    match (year, month, day, parts.next()) {
        (Some(year), Some(month @ 1..=12), Some(day @ 1..=31), None) => Ok(Some(Day {
            year,
            month: month as u8,
            day: day as u8,
        })),
        _ => Err(BAD),
    }
}

fn post<'h>(head: &Head<'h>, path: &'h str, query: Query<'h>) -> Result<Route<'h>, Refused> {
    match path {
        "/record" => Ok(plain(Operation::Record(query))),
        "/clock" => Ok(plain(Operation::Clock(query))),
        "/bench" => Ok(plain(Operation::Bench(query))),
        "/edit" => {
            let boundary = boundary(head)?;
            Ok(at(Operation::Upload { boundary }, upload_folder(head)?))
        }
        _ if query.has("delete") => Ok(at(Operation::RemoveWithKey, decode_path(path)?)),
        _ => Err(NO_METHOD),
    }
}

/// Returns the folder of an upload by POST.
pub(crate) fn upload_folder(head: &Head) -> Result<Path, Refused> {
    let query = head.target.split_once('?').map_or("", |(_, query)| query);
    match Query(query).path("dir")? {
        Some(folder) => Ok(folder),
        None => decode_path("/"),
    }
}

/// Returns the boundary of a form with files.
fn boundary<'h>(head: &Head<'h>) -> Result<&'h str, Refused> {
    const BAD: Refused = Refused::new(
        Status::UnsupportedMediaType,
        "uploads by POST are multipart/form-data, as curl -F sends them",
    );
    let value = head.field("Content-Type")?.ok_or(BAD)?;
    let mut parts = value.split(';').map(str::trim);
    let is_form = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/form-data"));
    let boundary = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("boundary")
            .then(|| value.trim_matches('"'))
    });
    let length = 1..=crate::limits::BOUNDARY_BYTES_MAX;
    match boundary {
        Some(boundary) if is_form && length.contains(&boundary.len()) => Ok(boundary),
        _ => Err(BAD),
    }
}

fn put<'h>(head: &Head<'h>, path: Path) -> Result<Route<'h>, Refused> {
    if head.field("X-Update-Range")?.is_some() || head.field("Content-Range")?.is_some() {
        return Err(Refused::new(
            Status::NotImplemented,
            "the server replaces whole files; it does not append to them",
        ));
    }
    if head.content == Content::None {
        return Err(Refused::new(
            Status::LengthRequired,
            "an upload needs Content-Length or chunks",
        ));
    }
    Ok(at(Operation::Put, path))
}

fn make_directory<'h>(head: &Head<'h>, path: Path) -> Result<Route<'h>, Refused> {
    match head.content {
        Content::None | Content::Length(0) => Ok(at(Operation::MakeDirectory, path)),
        _ => Err(Refused::new(
            Status::UnsupportedMediaType,
            "MKCOL has no body",
        )),
    }
}

/// Returns the path of a target.
pub(crate) fn target_path(head: &Head) -> Result<Path, Refused> {
    decode_path(
        head.target
            .split_once('?')
            .map_or(head.target, |(path, _)| path),
    )
}

fn is_host(head: &Head, authority: &str) -> bool {
    head.host
        .is_some_and(|host| host.eq_ignore_ascii_case(authority))
}

/// Returns the new path of COPY or MOVE, encoded, and the old one.
fn destination<'h>(head: &Head<'h>, path: Path) -> Result<(&'h str, Path), Refused> {
    let to = head.field("Destination")?;
    let to = to.ok_or(Refused::bad("the field Destination is missing"))?;
    let to = match to.starts_with('/') {
        true => to,
        false => match split_url(to) {
            Some((authority, path)) if is_host(head, authority) => path,
            _ => return Err(Refused::bad("Destination is not a path of this server")),
        },
    };
    if to.contains(['?', '#']) {
        return Err(Refused::bad("Destination has a query or a fragment"));
    }
    let target = decode_path(to)?;
    check(&target)?;
    if overlap(&target, &path) || is_reserved(&target) {
        return Err(Refused::new(
            Status::Forbidden,
            "the path cannot be moved or copied there",
        ));
    }
    Ok((to, path))
}

/// Returns true if a new path is a file, by the rule of the web server of study 1: its name has a dot after the first
/// letter.
pub(crate) fn names_file(path: &str) -> bool {
    name(path).rfind('.').is_some_and(|at| at > 0)
}
