//! Errors of requests, as sentences.

use std::fmt;
use std::time::Duration;
use ureq::Timeout;

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
    /// The server redirects to this address, if it states one.
    Redirected(String),
    /// The response does not fit the request.
    Wrong(String),
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
            RequestError::Redirected(place) => write!(
                f,
                "the server redirects to another address ({place}), which is not followed; request that address if you \
                 trust it"
            ),
            RequestError::Wrong(answer) => write!(f, "{answer}; check that the address is right"),
        }
    }
}

impl RequestError {
    /// Describes the error of a connection on which the client waits at most this long.
    pub fn from_connection(error: ureq::Error, patience: Duration) -> RequestError {
        let patience = humantime::format_duration(patience);
        RequestError::Connection(match error {
            ureq::Error::Io(error) => error.to_string(),
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                "no connection to the server in time".to_string()
            }
            ureq::Error::Timeout(_) => format!(
                "the server did not answer within {patience}, or stopped in the middle of an answer; allow more with --timeout"
            ),
            other => other.to_string(),
        })
    }
}
