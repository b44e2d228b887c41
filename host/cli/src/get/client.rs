//! Requests to a server.

use super::answer::strong_tag;
use super::error::RequestError;
use super::names::shown;
use super::reading::Reading;
use super::url::Url;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Default of the longest wait for the next bytes. A recorder that needs its card may delay reads.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum length of a list.
const LIST_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of the explanation of an error.
const REASON_BYTES_MAX: u64 = 4096;

/// A client of one server.
pub struct Client<'a> {
    agent: Agent,
    origin: String,
    authorization: Option<String>,
    patience: Duration,
    interrupt: &'a Interrupt,
}

/// Entry of a folder.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    /// `dir` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name in the folder.
    pub name: String,
    /// Length in bytes; the stock server of the studies does not send it.
    pub size: Option<u64>,
    /// Time of the last change, in s since 1970.
    pub time: Option<i64>,
    /// True if the recorder is writing the file.
    #[serde(default)]
    pub growing: bool,
    /// Reason why the entry cannot be requested from the server.
    pub unavailable: Option<String>,
}

impl Entry {
    /// Returns true for a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == "dir"
    }
}

/// A session or a day.
#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    /// Name of the session; empty for a recording without one.
    #[serde(default)]
    pub session: String,
    /// Date on which it began.
    pub day: String,
    /// Number of files.
    pub recordings: u64,
    /// Total length in bytes.
    pub size: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples lost in gaps.
    pub lost: u64,
    /// True if the recorder is writing one of the files.
    pub growing: bool,
    /// Path of the first file.
    pub first: String,
}

/// Result of a request for the entries of a path.
pub enum Found {
    /// A folder with these entries.
    Folder(Vec<Entry>),
    /// The path is that of a file, or nothing exists there.
    File,
}

/// Part of a file to request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Offset of the first byte.
    pub start: u64,
    /// Strong entity tag of the bytes before `start`.
    pub tag: Option<String>,
}

impl Wanted {
    /// Returns true if the request is for the rest of a file; false if it is for the whole file.
    pub fn is_rest(&self) -> bool {
        self.start > 0 && self.tag.is_some()
    }
}

impl<'a> Client<'a> {
    /// Creates a client; it connects when needed. `patience` is the longest wait for the next bytes.
    pub fn new(
        origin: &str,
        auth: Option<&str>,
        patience: Duration,
        interrupt: &'a Interrupt,
    ) -> Client<'a> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could lead to another server, and lose the name of the file.
            .max_redirects(0)
            // An encoded file could not be continued.
            .accept_encoding("identity")
            .timeout_resolve(Some(CONNECT.min(patience)))
            .timeout_connect(Some(CONNECT.min(patience)))
            .timeout_recv_response(Some(patience))
            .timeout_per_read(Some(patience))
            .timeout_per_write(Some(patience))
            .user_agent(concat!("cardiograph/", env!("CARGO_PKG_VERSION")));
        Client {
            agent: config.build().new_agent(),
            origin: origin.to_string(),
            authorization: auth.map(|auth| format!("Basic {}", BASE64_STANDARD.encode(auth))),
            patience,
            interrupt,
        }
    }

    /// Returns the longest wait for the next bytes.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Fails after Ctrl-C.
    pub fn check_interrupt(&self) -> Result<(), Failure> {
        match self.interrupt.exit_code() {
            Some(code) => Err(Failure::AlreadyPrinted(code)),
            None => Ok(()),
        }
    }

    /// Requests a file or the rest of it.
    pub fn get(&self, url: &Url, wanted: &Wanted) -> Result<Response<Body>, RequestError> {
        self.usable(again_if_closed(|| {
            let mut request = self.authorized(self.agent.get(url.to_string()));
            if let Some(tag) = wanted.tag.as_ref().filter(|_| wanted.is_rest()) {
                request = request
                    .header("Range", format!("bytes={}-", wanted.start))
                    .header("If-Range", tag);
            }
            request.call()
        }))
    }

    /// Sends a request that changes something, without a body.
    pub fn post(&self, url: &Url) -> Result<Response<Body>, RequestError> {
        let request = self.authorized(self.agent.post(url.to_string()));
        self.usable(request.send_empty())
    }

    /// Returns length and strong entity tag of a file, if the server states them.
    pub fn describe(&self, url: &Url) -> Result<(Option<u64>, Option<String>), RequestError> {
        let head = || self.authorized(self.agent.head(url.to_string())).call();
        let response = expect_ok(self.usable(again_if_closed(head))?)?;
        let length = header(&response, "Content-Length").and_then(|length| length.parse().ok());
        Ok((length, strong_tag(&response)))
    }

    /// Returns the entries of a folder, or [`Found::File`] if the path is not that of a folder.
    pub fn folder(&self, path: &str) -> Result<Found, Failure> {
        let url = Url::parse(&self.origin).map_err(Failure::new)?;
        let list = url.at("/list").with(&format!("dir={path}"));
        match self.json(&list) {
            Ok(entries) => Ok(Found::Folder(entries)),
            Err(RequestError::Refused(..)) => Ok(Found::File),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Returns the sessions or days.
    pub fn groups(&self, kind: &str) -> Result<Vec<Group>, Failure> {
        let url = Url::parse(&self.origin).map_err(Failure::new)?;
        let groups = self.json(&url.at(&format!("/{kind}")));
        groups.map_err(|error| self.failure(&error))
    }

    /// Reads a response. Fails if the server sends it too slowly.
    pub fn read<'b>(&self, response: &'b mut Response<Body>) -> Reading<'b> {
        Reading::new(response, self.patience)
    }

    fn failure(&self, error: &RequestError) -> Failure {
        match self.check_interrupt() {
            Err(interrupted) => interrupted,
            Ok(()) => Failure::new(format!("{}: {error}", self.origin)),
        }
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }

    /// Returns a response with a status below 300, or 416; anything else is an error.
    fn usable(
        &self,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, RequestError> {
        let mut response =
            response.map_err(|error| RequestError::from_connection(error, self.patience))?;
        let status = response.status().as_u16();
        if status < 300 || status == 416 {
            return Ok(response);
        }
        Err(match status {
            401 if self.authorization.is_some() => RequestError::CredentialsWrong,
            401 => RequestError::CredentialsNeeded,
            503 => {
                let wait = header(&response, "Retry-After").and_then(|wait| wait.parse().ok());
                RequestError::Busy(Duration::from_secs(wait.unwrap_or(1)))
            }
            301..=303 | 307 | 308 => {
                let place = header(&response, "Location").unwrap_or("not stated");
                RequestError::Redirected(shown(place))
            }
            _ => {
                let text = self.text(&mut response, REASON_BYTES_MAX);
                let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
                RequestError::Refused(status, shown(text.lines().next().unwrap_or_default()))
            }
        })
    }

    /// Reads a whole body.
    fn text(&self, response: &mut Response<Body>, bytes_max: u64) -> Result<Vec<u8>, RequestError> {
        let (mut text, mut reading) = (Vec::new(), self.read(response));
        while let Some(piece) = reading.next()? {
            text.extend_from_slice(piece);
            if text.len() as u64 > bytes_max {
                let limit =
                    format!("the server sent more than {bytes_max} bytes in place of a list");
                return Err(RequestError::Wrong(limit));
            }
            if self.interrupt.is_raised() {
                return Err(RequestError::Connection("interrupted".to_string()));
            }
        }
        Ok(text)
    }

    fn json<T: serde::de::DeserializeOwned>(&self, url: &Url) -> Result<T, RequestError> {
        let mut response = expect_ok(self.get(url, &Wanted::default())?)?;
        let text = self.text(&mut response, LIST_BYTES_MAX)?;
        serde_json::from_slice(&text).map_err(|error| {
            let error = shown(&error.to_string());
            RequestError::Wrong(format!("the server's list cannot be read ({error})"))
        })
    }
}

/// Sends a request, and once more if the connection was closed: the server may have closed it after an earlier response,
/// just as this request was sent.
fn again_if_closed(
    send: impl Fn() -> Result<Response<Body>, ureq::Error>,
) -> Result<Response<Body>, ureq::Error> {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let closed = [
        UnexpectedEof,
        ConnectionReset,
        ConnectionAborted,
        BrokenPipe,
    ];
    match send() {
        Err(ureq::Error::Io(error)) if closed.contains(&error.kind()) => send(),
        sent => sent,
    }
}

/// Refuses a response whose status is not 200.
fn expect_ok(response: Response<Body>) -> Result<Response<Body>, RequestError> {
    match response.status().as_u16() {
        200 => Ok(response),
        status @ 400.. => Err(RequestError::Refused(status, String::new())),
        status => {
            let text = format!("the server answered with status {status}");
            Err(RequestError::Wrong(text))
        }
    }
}

/// Returns a header field of a response.
pub fn header<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
