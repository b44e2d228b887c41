//! Addresses of files on a server.

use super::names;
use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode,
};
use std::fmt;

/// Characters that people type in a path, and that a request must not contain.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// Characters of a name that have a meaning in a path.
const IN_NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An address: server, path and query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Scheme and server, without a trailing slash.
    origin: String,
    /// Percent-encoded; begins with a slash and ends with one only if it is the root.
    path: String,
    /// Without the question mark.
    query: Option<String>,
}

impl Url {
    /// Parses an address with or without `http://`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some((scheme, _)) => {
                return Err(format!("{text}: {scheme} is not supported; use http"));
            }
            None => text,
        };
        let (server, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if server.contains('@') {
            // The message does not repeat the address, which may contain a password.
            return Err(
                "the address contains a user name; pass it with --auth USER:PASSWORD instead"
                    .to_string(),
            );
        }
        let is_server = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if server.is_empty() || !server.bytes().all(is_server) {
            return Err(format!(
                "{text}: expected a server and a path, such as 192.168.4.1/REC00000/REC00001.CSV"
            ));
        }
        let port = server.rsplit_once(':').map_or("", |(_, port)| port);
        if port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_err()
            && !port.is_empty()
        {
            return Err(format!(
                "{text}: {port} is not a port; the range is 1 to 65535"
            ));
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_string())),
            None => (path, None),
        };
        let path = utf8_percent_encode(path.trim_matches('/'), IN_PATH);
        Ok(Url {
            origin: format!("http://{server}"),
            path: format!("/{path}"),
            query,
        })
    }

    /// Returns scheme and server.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the percent-encoded path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns another path of the same server.
    pub fn at(&self, path: &str) -> Url {
        Url {
            origin: self.origin.clone(),
            path: path.to_string(),
            query: None,
        }
    }

    /// Returns the address of an entry of this folder.
    pub fn entry(&self, name: &str) -> Url {
        let folder = self.path.trim_end_matches('/');
        self.at(&format!("{folder}/{}", encoded(name)))
    }

    /// Returns the address with more arguments.
    pub fn with(&self, arguments: &str) -> Url {
        let query = match &self.query {
            Some(query) => format!("{query}&{arguments}"),
            None => arguments.to_string(),
        };
        Url {
            query: Some(query),
            ..self.clone()
        }
    }

    /// Returns the decoded last component of the path, as the name of a file on this computer.
    pub fn file_name(&self) -> Result<String, String> {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        let name = percent_decode_str(last).decode_utf8_lossy().into_owned();
        match names::check(&name) {
            Ok(()) => Ok(name),
            Err(reason) => Err(format!(
                "{self}: the name of the file {reason}; name the output with -o"
            )),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

/// Encodes a name as one component of a path.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, IN_NAME).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_and_encoded() {
        for (text, url) in [
            ("192.168.4.1", "http://192.168.4.1/"),
            ("http://logger.local:8080/", "http://logger.local:8080/"),
            ("[::1]:80/a//", "http://[::1]:80/a"),
            ("h/LOG00001 run 3.CSV", "http://h/LOG00001%20run%203.CSV"),
            ("h/a%20b?format=csv", "http://h/a%20b?format=csv"),
            ("h?x", "http://h/?x"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), url, "{text}");
        }
        for text in ["", "/a", "ftp://h/a", "https://h/a", "a b/c", "user@h/a"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_decoded_and_stay_in_the_directory() {
        let name = |text| Url::parse(text).unwrap().file_name();
        assert_eq!(name("h/a/LOG%201.CSV").unwrap(), "LOG 1.CSV");
        assert_eq!(name("h/%C3%A9").unwrap(), "é");
        for text in ["h", "h/a/..", "h/%2e%2e", "h/a%2fb", "h/a%00", "h/.a"] {
            assert!(name(text).is_err(), "{text}");
        }
        let folder = Url::parse("h/a").unwrap();
        assert_eq!(folder.entry("b c%.csv").path(), "/a/b%20c%25.csv");
        assert_eq!(
            folder.with("x=1").with("y=2").to_string(),
            "http://h/a?x=1&y=2"
        );
    }
}
