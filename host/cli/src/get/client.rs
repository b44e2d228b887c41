//! Requests to a server.

use super::url::Url;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use std::fmt;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for the next bytes. A recorder that needs its card may delay reads.
const READ: Duration = Duration::from_secs(30);
/// Maximum length of a list.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// A client of one server.
pub struct Client<'a> {
    agent: Agent,
    origin: String,
    authorization: Option<String>,
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
    /// Entity tag of the bytes before `start`.
    pub tag: Option<String>,
}

/// Reason why a request got no usable response.
#[derive(Debug)]
pub enum RequestError {
    /// The connection failed; another attempt may succeed.
    Connection(String),
    /// The server is busy; another attempt may succeed after this time.
    Busy(Duration),
    /// The server needs a user name and a password.
    CredentialsNeeded,
    /// The server does not accept the user name or the password.
    CredentialsWrong,
    /// The server refused the request.
    Refused(u16, String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RequestError::Connection(error) => {
                write!(f, "{error}; check the address and the network")
            }
            RequestError::Busy(_) => f.write_str("the server is busy; try again later"),
            RequestError::CredentialsNeeded => {
                f.write_str("the server needs a user name and a password; use --auth USER:PASSWORD")
            }
            RequestError::CredentialsWrong => {
                f.write_str("the user name or the password is wrong; correct --auth USER:PASSWORD")
            }
            RequestError::Refused(404, _) => f.write_str("not found on the server; check the name"),
            RequestError::Refused(status, text) => match text.trim() {
                "" => write!(f, "the server answered with status {status}"),
                text => write!(f, "the server answered: {text} (status {status})"),
            },
        }
    }
}

impl<'a> Client<'a> {
    /// Creates a client; it connects when needed.
    pub fn new(origin: &str, auth: Option<&str>, interrupt: &'a Interrupt) -> Client<'a> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(READ))
            .user_agent(concat!("cardiograph/", env!("CARGO_PKG_VERSION")));
        Client {
            agent: config.build().new_agent(),
            origin: origin.to_string(),
            authorization: auth.map(|auth| format!("Basic {}", BASE64_STANDARD.encode(auth))),
            interrupt,
        }
    }

    /// Fails after Ctrl-C.
    pub fn check_interrupt(&self) -> Result<(), Failure> {
        match self.interrupt.exit_code() {
            Some(code) => Err(Failure::AlreadyPrinted(code)),
            None => Ok(()),
        }
    }

    /// Requests a file or part of it.
    pub fn get(&self, url: &Url, wanted: &Wanted) -> Result<Response<Body>, RequestError> {
        let mut request = self.authorized(self.agent.get(url.to_string()));
        if let Some(tag) = wanted.tag.as_ref().filter(|_| wanted.start > 0) {
            request = request
                .header("Range", format!("bytes={}-", wanted.start))
                .header("If-Range", tag);
        }
        self.usable(request.call())
    }

    /// Sends a request that changes something, without a body.
    pub fn post(&self, url: &Url) -> Result<Response<Body>, RequestError> {
        let request = self.authorized(self.agent.post(url.to_string()));
        self.usable(request.send_empty())
    }

    /// Returns the length of a file, if the server states it.
    pub fn length(&self, url: &Url) -> Result<Option<u64>, RequestError> {
        let response = self.authorized(self.agent.head(url.to_string())).call();
        let response = self.usable(response)?;
        Ok(header(&response, "Content-Length").and_then(|length| length.parse().ok()))
    }

    /// Returns the entries of a folder, or [`Found::File`] if the path is not that of a folder.
    pub fn folder(&self, path: &str) -> Result<Found, Failure> {
        let url = Url::parse(&self.origin).map_err(Failure::new)?;
        let list = url.at("/list").with(&format!("dir={path}"));
        match self.json(&list) {
            Ok(entries) => Ok(Found::Folder(entries)),
            Err(RequestError::Refused(..)) => Ok(Found::File),
            Err(error) => Err(Failure::new(format!("{}: {error}", self.origin))),
        }
    }

    /// Returns the sessions or days.
    pub fn groups(&self, kind: &str) -> Result<Vec<Group>, Failure> {
        let url = Url::parse(&self.origin).map_err(Failure::new)?;
        let groups = self.json(&url.at(&format!("/{kind}")));
        groups.map_err(|error| Failure::new(format!("{}: {error}", self.origin)))
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }

    /// Returns a response with a status below 400, or 416; anything else is an error.
    fn usable(
        &self,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, RequestError> {
        let mut response = response.map_err(|error| {
            RequestError::Connection(match error {
                ureq::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            })
        })?;
        let status = response.status().as_u16();
        if status < 400 || status == 416 {
            return Ok(response);
        }
        Err(match status {
            401 if self.authorization.is_some() => RequestError::CredentialsWrong,
            401 => RequestError::CredentialsNeeded,
            503 => {
                let wait = header(&response, "Retry-After").and_then(|wait| wait.parse().ok());
                RequestError::Busy(Duration::from_secs(wait.unwrap_or(1)))
            }
            _ => {
                let text = response.body_mut().read_to_string().unwrap_or_default();
                let first = text.lines().next().unwrap_or_default();
                RequestError::Refused(status, first.chars().take(200).collect())
            }
        })
    }

    fn json<T: serde::de::DeserializeOwned>(&self, url: &Url) -> Result<T, RequestError> {
        let mut response = self.get(url, &Wanted::default())?;
        let text = response.body_mut().with_config().limit(LIST_BYTES_MAX);
        let text = text
            .read_to_string()
            .map_err(|error| RequestError::Connection(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| {
            let text = format!("a list that cannot be read ({error})");
            RequestError::Refused(200, text)
        })
    }
}

/// Returns a header field of a response.
pub fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
