//! A client: sends bytes, and reads the responses.

use super::Memory;
use super::socket::{Clock, End, Socket};
use cardiograph_server::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body has its whole length.
    pub is_whole: bool,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut found = self
            .fields
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "{name} occurs twice");
        first.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Splits what a server sent into responses. `methods` are those of the requests.
pub fn responses(mut bytes: &[u8], methods: &[&str]) -> Vec<Response> {
    let mut responses = Vec::new();
    while !bytes.is_empty() {
        let method = methods.get(responses.len()).copied().unwrap_or("GET");
        let (response, rest) = response(bytes, method);
        bytes = rest;
        if response.status != 100 {
            responses.push(response);
        }
    }
    responses
}

fn response<'a>(bytes: &'a [u8], method: &str) -> (Response, &'a [u8]) {
    let end = find(bytes, b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no head in {:?}", String::from_utf8_lossy(bytes));
    });
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap();
    let status: u16 = line.strip_prefix("HTTP/1.1 ").unwrap()[..3]
        .parse()
        .unwrap();
    let fields = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_string(), value.to_string())
    });
    let mut response = Response {
        status,
        fields: fields.collect(),
        body: Vec::new(),
        is_whole: true,
    };
    if method == "HEAD" || status == 304 || status == 204 || status == 100 {
        return (response, rest);
    }
    if response.field("Transfer-Encoding") == Some("chunked") {
        loop {
            let Some(end) = find(rest, b"\r\n") else {
                response.is_whole = false;
                return (response, &[]);
            };
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16);
            let size = size.unwrap();
            rest = &rest[end + 2..];
            if rest.len() < size + 2 {
                response.body.extend(&rest[..size.min(rest.len())]);
                response.is_whole = false;
                return (response, &[]);
            }
            response.body.extend(&rest[..size]);
            assert_eq!(&rest[size..size + 2], b"\r\n");
            rest = &rest[size + 2..];
            if size == 0 {
                return (response, rest);
            }
        }
    }
    let bytes = match response.field("Content-Length") {
        Some(bytes) => bytes.parse().unwrap(),
        None => rest.len(),
    };
    response.is_whole = bytes <= rest.len();
    let (body, rest) = rest.split_at(bytes.min(rest.len()));
    response.body = body.to_vec();
    (response, rest)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

pub const CONFIG: Config = Config {
    names: &["logger.local"],
    is_read_only: false,
    basic_auth: None,
    secret: 0x1234_5678_9ABC_DEF0,
    event_streams_max: 2,
};

/// Sends segments on one connection to a server without a recorder; returns all bytes that it sends.
pub fn raw(memory: &Memory, config: Config, segments: Vec<Vec<u8>>, end: End) -> Vec<u8> {
    let clock = Clock::default();
    let mut socket = Socket::new(&clock, segments, end);
    let sent = socket.sent.clone();
    let server = Server::new(memory, &NoInstrument, &clock, config);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    sent.take()
}

pub fn send(memory: &Memory, request: &str) -> Response {
    send_bytes(memory, request.as_bytes())
}

pub fn send_bytes(memory: &Memory, request: &[u8]) -> Response {
    let sent = raw(memory, CONFIG, vec![request.to_vec()], End::Close);
    let method = String::from_utf8_lossy(request);
    let mut responses = responses(&sent, &[method.split(' ').next().unwrap()]);
    assert_eq!(responses.len(), 1, "{:?}", String::from_utf8_lossy(&sent));
    responses.remove(0)
}

/// Sends a request without a body.
pub fn request(memory: &Memory, line: &str, fields: &str) -> Response {
    send(
        memory,
        &format!("{line} HTTP/1.1\r\nHost: 192.168.4.1\r\n{fields}\r\n"),
    )
}

/// Sends a GET.
pub fn get(memory: &Memory, target: &str) -> Response {
    request(memory, &format!("GET {target}"), "")
}

/// Sends a request with a body.
pub fn send_body(memory: &Memory, line: &str, fields: &str, body: &[u8]) -> Response {
    let head = format!(
        "{line} HTTP/1.1\r\nHost: 192.168.4.1\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    );
    send_bytes(memory, &[head.as_bytes(), body].concat())
}
