//! Hostile and unusual heads, over raw bytes.

use crate::memory;

use cardiograph_server::{Buffers, Config, NoInstrument, Server};
use memory::Memory;
use memory::client::{CONFIG, Response, raw, request, responses};
use memory::socket::{Clock, End, Socket};

fn with_file() -> Memory {
    let memory = Memory::default();
    memory.file("/a.txt", b"contents");
    memory
}

/// Sends bytes; returns all responses. The connection has to end.
fn send_all(bytes: &[u8]) -> Vec<Response> {
    let sent = raw(&with_file(), CONFIG, vec![bytes.to_vec()], End::Close);
    responses(&sent, &[])
}

#[test]
fn lengths_that_are_not_plain_are_refused_and_the_connection_closes() {
    for fields in [
        "Content-Length: abc",
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length: ",
        "Content-Length: 1 1",
        "Content-Length: 1, 1",
        "Content-Length: 0x10",
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\ncontent-length: 2",
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: x",
    ] {
        let bytes = format!(
            "POST /edit HTTP/1.1\r\nHost: 10.0.0.1\r\n{fields}\r\n\r\nGET /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
        );
        let responses = send_all(bytes.as_bytes());
        assert_eq!(responses.len(), 1, "{fields:?}");
        assert_eq!(responses[0].status, 400, "{fields:?}");
        assert_eq!(responses[0].field("Connection"), Some("close"));
    }
}

/// Valid lengths, but larger than any storage.
#[test]
fn lengths_beyond_every_storage_are_too_large() {
    for length in [
        "18446744073709551616",
        "36893488147419103232",
        &"9".repeat(300),
    ] {
        let bytes = format!(
            "PUT /b.txt HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {length}\r\n\r\nGET /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
        );
        let responses = send_all(bytes.as_bytes());
        assert_eq!(responses.len(), 1, "{length}");
        assert_eq!(responses[0].status, 413, "{length}");
        assert!(responses[0].text().contains("larger than the storage"));
        assert_eq!(responses[0].field("Connection"), Some("close"));
    }
}

#[test]
fn no_byte_of_a_body_becomes_a_request() {
    let hidden = "DELETE /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n";
    for line in ["GET /a.txt", "GET /none", "POST /none", "OPTIONS /"] {
        let bytes = format!(
            "{line} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {}\r\n\r\n{hidden}",
            hidden.len()
        );
        let memory = with_file();
        let sent = raw(&memory, CONFIG, vec![bytes.into()], End::Close);
        assert_eq!(responses(&sent, &[]).len(), 1, "{line}");
        assert!(memory.node("/a.txt").is_some(), "{line}");
    }
}

#[test]
fn heads_that_are_not_http_are_refused() {
    for (bytes, status) in [
        ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03", 400),
        ("GET /a.txt\r\n\r\n", 400),
        ("GET /a.txt HTTP/2.0\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\nHost : 10.0.0.1\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 400),
        (
            "GET http://10.0.0.2/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
            400,
        ),
        ("BREW /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 501),
        ("SEARCH / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 501),
        ("POST /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 405),
        ("GET /clock HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 405),
    ] {
        let responses = send_all(bytes.as_bytes());
        assert_eq!(responses[0].status, status, "{bytes:?}");
    }
}

#[test]
fn large_heads_are_refused() {
    let long = "x".repeat(3000);
    for head in [
        format!("GET /{long} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: 10.0.0.1\r\nX: {long}\r\n\r\n"),
        format!(
            "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n{}\r\n",
            "a: b\r\n".repeat(40)
        ),
    ] {
        assert_eq!(send_all(head.as_bytes())[0].status, 431);
    }
    let path = "x".repeat(256);
    let head = format!("GET /{path} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    assert_eq!(send_all(head.as_bytes())[0].status, 400);
}

#[test]
fn slow_heads_and_idle_connections_end() {
    let memory = with_file();
    let run = |segments: Vec<Vec<u8>>, gap_ms| {
        let clock = Clock::default();
        let mut socket = Socket::new(&clock, segments, End::Silence);
        socket.gap_ms = gap_ms;
        let sent = socket.sent.clone();
        let server = Server::new(&memory, &NoInstrument, &clock, CONFIG);
        clock.run(server.serve(&mut socket, &mut Buffers::new()));
        (sent.take(), cardiograph_server::Timer::now_ms(&clock))
    };
    assert_eq!(run(vec![], 0), (vec![], 5_000));
    let head = b"GET /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n";
    let drops: Vec<Vec<u8>> = head.iter().map(|byte| vec![*byte]).collect();
    let (sent, now_ms) = run(drops.clone(), 500);
    assert_eq!(responses(&sent, &[])[0].status, 408);
    assert!((5_000..7_000).contains(&now_ms), "{now_ms}");
    let (sent, now_ms) = run(drops, 50);
    assert_eq!(responses(&sent, &[])[0].body, b"contents");
    // The connection stays open for the next request.
    assert!((11_500..12_500).contains(&now_ms), "{now_ms}");
}

#[test]
fn slow_readers_end() {
    let memory = with_file();
    memory.piece_bytes.set(4096);
    memory.file("/large.bin", &vec![7; 100_000]);
    let run = |write_bytes_max, write_ms| {
        let clock = Clock::default();
        let head = b"GET /large.bin HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n".to_vec();
        let mut socket = Socket::new(&clock, vec![head], End::Close);
        (socket.write_bytes_max, socket.write_ms) = (write_bytes_max, write_ms);
        let sent = socket.sent.clone();
        let server = Server::new(&memory, &NoInstrument, &clock, CONFIG);
        clock.run(server.serve(&mut socket, &mut Buffers::new()));
        (sent.take().len(), cardiograph_server::Timer::now_ms(&clock))
    };
    assert!(run(2000, 1000).0 > 100_000);
    let (bytes, now_ms) = run(500, 1000);
    assert!(
        bytes < 10_000 && (10_000..12_000).contains(&now_ms),
        "{bytes} {now_ms}"
    );
    // A client that receives nothing at all.
    let (bytes, now_ms) = run(500, 1_000_000);
    assert!(
        bytes == 0 && (10_000..12_000).contains(&now_ms),
        "{bytes} {now_ms}"
    );
}

/// Serves a request for a file on this socket; returns the bytes sent, and the time at the end, in ms.
fn end_of(path: &str, change: impl FnOnce(&mut Socket)) -> (usize, u64) {
    end_with(&Clock::default(), path, change)
}

fn end_with(clock: &Clock, path: &str, change: impl FnOnce(&mut Socket)) -> (usize, u64) {
    let memory = with_file();
    memory.file("/large.bin", &vec![7; 100_000]);
    let head = format!("GET {path} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    let mut socket = Socket::new(clock, vec![head.into()], End::Silence);
    change(&mut socket);
    let sent = socket.sent.clone();
    let server = Server::new(&memory, &NoInstrument, clock, CONFIG);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    (sent.take().len(), cardiograph_server::Timer::now_ms(clock))
}

/// A client's system with large buffers lets its client read them before it takes more.
#[test]
fn a_patient_server_waits_longer_for_readers() {
    let with_patience = |write_ms| {
        let clock = Clock::default();
        clock.patience_ms.set(Some(120_000));
        end_with(&clock, "/large.bin", |socket| {
            socket.write_ms = write_ms;
        })
    };
    assert!(with_patience(5_000).0 > 100_000);
    assert!(end_of("/large.bin", |socket| socket.write_ms = 5_000).0 < 10_000);
    assert_eq!(with_patience(1_000_000), (0, 120_000));
}

#[test]
fn a_client_that_stops_reading_is_given_up_after_ten_seconds() {
    // Earlier bytes do not count: 30 pieces in 3 s.
    let (bytes, now_ms) = end_of("/large.bin", |socket| {
        socket.write_ms = 100;
        socket.taken_bytes_max = 20_000;
    });
    assert_eq!((bytes, now_ms), (20_000, 3_000 + 10_000));
}

#[test]
fn a_client_that_confirms_nothing_is_given_up_after_ten_seconds() {
    let (bytes, now_ms) = end_of("/a.txt", |socket| socket.flush_ms = 1_000_000);
    assert!(bytes > 0);
    assert_eq!(now_ms, 10_000);
}

#[test]
fn foreign_names_of_the_server_are_refused() {
    for host in [
        "192.168.4.1",
        "192.168.4.1:80",
        "localhost:8080",
        "LocalHost",
        "[::1]",
        "[fe80::1]:80",
        "logger.local",
        "Logger.Local:80",
    ] {
        let bytes = format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(send_all(bytes.as_bytes())[0].status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "192.168.4.1.evil.example",
        "logger.local.evil.example",
        "localhost.",
        "localhost@evil.example",
        "",
        "[::1",
        "[evil]",
        "192.168.4.1:80:80",
        "192.168.4.1:evil",
        "1234567",
    ] {
        let bytes = format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(send_all(bytes.as_bytes())[0].status, 421, "{host}");
        let bytes = format!("GET http://{host}/a.txt HTTP/1.0\r\n\r\n");
        assert!(
            matches!(send_all(bytes.as_bytes())[0].status, 400 | 421),
            "{host}"
        );
    }
}

#[test]
fn pages_of_other_sites_are_refused() {
    let memory = with_file();
    for (line, fields, status) in [
        (
            "GET /a.txt",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
            403,
        ),
        (
            "GET /a.txt",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
            200,
        ),
        ("GET /a.txt", "Sec-Fetch-Site: same-origin\r\n", 200),
        ("GET /a.txt", "Origin: http://evil.example\r\n", 403),
        ("GET /live", "Origin: null\r\n", 403),
        ("GET /a.txt", "Origin: http://192.168.4.1\r\n", 200),
        ("POST /record?action=stop", "", 404),
        (
            "POST /record?action=stop",
            "Origin: http://192.168.4.1\r\n",
            404,
        ),
        (
            "POST /record?action=stop",
            "Origin: http://evil.example\r\n",
            403,
        ),
        (
            "POST /record?action=stop",
            "Origin: http://192.168.4.1:81\r\n",
            403,
        ),
        ("POST /record?action=stop", "Origin: null\r\n", 403),
        (
            "POST /record?action=stop",
            "Sec-Fetch-Site: same-site\r\n",
            403,
        ),
        (
            "POST /record?action=stop",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
            403,
        ),
        ("DELETE /a.txt", "Sec-Fetch-Site: cross-site\r\n", 403),
        ("DELETE /a.txt", "Origin: https://evil.example\r\n", 403),
        (
            "OPTIONS /a.txt",
            "Origin: http://evil.example\r\nAccess-Control-Request-Method: DELETE\r\n",
            403,
        ),
    ] {
        let response = request(&memory, line, fields);
        assert_eq!(response.status, status, "{line} {fields:?}");
        let has_cors = response
            .fields
            .iter()
            .any(|(name, _)| name.starts_with("Access-Control"));
        assert!(!has_cors);
    }
    assert!(memory.node("/a.txt").is_some());
}

#[test]
fn credentials_are_needed_everywhere() {
    let memory = with_file();
    let config = Config {
        basic_auth: Some("dXNlcjpwYXNz"),
        ..CONFIG
    };
    for (fields, status) in [
        ("", 401),
        ("Authorization: Basic dXNlcjpwYXNz\r\n", 200),
        ("Authorization: basic dXNlcjpwYXNz\r\n", 200),
        ("Authorization: Basic dXNlcjpwYXNy\r\n", 401),
        ("Authorization: Basic dXNlcjpwYXN\r\n", 401),
        ("Authorization: Basic \r\n", 401),
        ("Authorization: Bearer dXNlcjpwYXNz\r\n", 401),
    ] {
        let bytes = format!("GET /a.txt HTTP/1.1\r\nHost: 10.0.0.1\r\n{fields}\r\n");
        let sent = raw(&memory, config, vec![bytes.into()], End::Close);
        let response = &responses(&sent, &[])[0];
        assert_eq!(response.status, status, "{fields:?}");
        assert_eq!(response.field("WWW-Authenticate").is_some(), status == 401);
    }
}

#[test]
fn paths_cannot_leave_the_storage() {
    let memory = with_file();
    for path in [
        "/../a.txt",
        "/d/../../a.txt",
        "/%2e%2e/a.txt",
        "/..%2fa.txt",
        "/%252e%252e/a.txt",
        "/a.txt%2500",
        "/a.txt%00",
        "/a.txt%0a",
        "/..\\a.txt",
        "/..%5ca.txt",
        "//a.txt",
        "/./a.txt",
        "/a.txt.",
        "/a.txt%20",
        "/a.txt%2e",
        "/a%",
        "/a%4",
        "/a%zz",
        "/%ff%fe",
        "/%25",
    ] {
        assert_eq!(
            request(&memory, &format!("GET {path}"), "").status,
            400,
            "{path}"
        );
        let list = format!("GET /list?dir={path}");
        assert_eq!(request(&memory, &list, "").status, 400, "{path}");
    }
    for path in [
        "/.ssh/id",
        "/d/.hidden",
        "/CARDIOGR.JNL",
        "/LOG00000/cardiogr.idx",
        "/%43ardiogr.R00",
        "/card%C4%B1ogr.txt",
        "/LOG00001.CSV.part",
        "/x.PART",
        "/%2Ex",
    ] {
        assert_eq!(
            request(&memory, &format!("GET {path}"), "").status,
            403,
            "{path}"
        );
    }
}

#[test]
fn old_clients_get_answers_without_chunks() {
    let memory = with_file();
    let bytes = b"GET /list?dir=/ HTTP/1.0\r\n\r\n".to_vec();
    let sent = raw(&memory, CONFIG, vec![bytes], End::Silence);
    let response = &responses(&sent, &[])[0];
    assert_eq!(response.field("Transfer-Encoding"), None);
    assert_eq!(response.field("Connection"), Some("close"));
    assert!(response.text().starts_with("[{"));
    let bytes = b"GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec();
    let sent = raw(&memory, CONFIG, vec![bytes.clone(), bytes], End::Close);
    assert_eq!(responses(&sent, &[]).len(), 2);
}
