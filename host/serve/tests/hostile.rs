//! Hostile and broken clients: they cannot read or change anything outside the directory, nor delay other clients.

use crate::common;

use cardiograph_serve::Settings;
use common::{Response, Server, noise, read_all};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A server with a secret next to the served directory, links to it, and hidden files.
fn with_secrets() -> Server {
    let server = Server::start();
    fs::write(server.outside().join("secret"), "secret").unwrap();
    fs::create_dir(server.path("folder")).unwrap();
    symlink("../secret", server.path("link")).unwrap();
    symlink("../..", server.path("folder/up")).unwrap();
    symlink("/", server.path("root")).unwrap();
    for name in [
        ".hidden",
        "LOG00001.CSV.part",
        "CARDIOGR.JNL",
        "folder/.cardiograph.lock",
    ] {
        server.write(name, "secret");
    }
    server
}

const TRAVERSALS: &[&str] = &[
    "/../secret",
    "/folder/../../secret",
    "/%2e%2e/secret",
    "/..%2fsecret",
    "/%252e%252e/secret",
    "/..%252fsecret",
    "/folder/..%5c..%5csecret",
    "/..\\secret",
    "/folder/%2e%2e%2f%2e%2e%2fsecret",
    "//../secret",
    "/./../secret",
    "/link",
    "/folder/up/secret",
    "/folder/up/etc/passwd",
    "/root/etc/passwd",
    "/%00/../secret",
    "/secret%00.txt",
    "/.hidden",
    "/%2ehidden",
    "/LOG00001.CSV.part",
    "/LOG00001.CSV.PART",
    "/LOG00001.CSV.part%20",
    "/LOG00001.CSV.part.",
    "/CARDIOGR.JNL",
    "/cardiogr.jnl",
    "/folder/.cardiograph.lock",
    "/proc/self/environ",
    "http://127.0.0.1/../secret",
];

#[test]
fn nothing_outside_the_directory_is_read() {
    let server = with_secrets();
    for path in TRAVERSALS {
        for line in [
            format!("GET {path}"),
            format!("GET {path}?tar"),
            format!("GET /list?dir={path}"),
            format!("HEAD {path}"),
        ] {
            let response = server.request(&line, "", b"");
            assert!(
                (400..500).contains(&response.status),
                "{line}: {}",
                response.head
            );
            assert!(!response.text().contains("secret"), "{line}");
        }
    }
    let list = server.get("/list?dir=/").text();
    assert!(list.contains("folder"), "{list}");
    for name in ["link", "root", "hidden", "part", "CARDIOGR"] {
        assert!(!list.contains(name), "{name}: {list}");
    }
    let tar = server.get("/?tar").text();
    assert!(!tar.contains("secret"), "{tar}");
}

#[test]
fn nothing_outside_the_directory_is_changed() {
    let server = with_secrets();
    for path in TRAVERSALS {
        for (line, fields) in [
            (format!("PUT {path}"), "Content-Length: 3\r\n"),
            (format!("PUT {path}/new"), "Content-Length: 3\r\n"),
            (format!("DELETE {path}"), ""),
            (format!("DELETE /edit?dir={path}"), ""),
            (
                "MOVE /folder".to_string(),
                &*format!("Destination: {path}/x\r\n"),
            ),
            (format!("MOVE {path}"), "Destination: /stolen\r\n"),
        ] {
            let response = server.request(&line, fields, b"new");
            let is_refused = (400..500).contains(&response.status);
            assert!(is_refused, "{line} {fields}: {}", response.head);
        }
        let part = format!(
            "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"{path}\"\r\n\r\nnew\r\n--b--\r\n"
        );
        let fields = format!(
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n",
            part.len()
        );
        server.request("POST /edit", &fields, part.as_bytes());
    }
    let secret = fs::read_to_string(server.outside().join("secret"));
    assert_eq!(secret.unwrap(), "secret");
    for name in [
        ".hidden",
        "LOG00001.CSV.part",
        "CARDIOGR.JNL",
        "folder/.cardiograph.lock",
    ] {
        assert_eq!(server.read(name), b"secret", "{name}");
    }
    let mut outside: Vec<_> = fs::read_dir(server.outside()).unwrap().flatten().collect();
    outside.sort_by_key(fs::DirEntry::file_name);
    let outside = Vec::from_iter(outside.iter().map(fs::DirEntry::file_name));
    assert_eq!(outside, ["secret", "served"]);
    assert!(!server.path("stolen").exists());
}

#[test]
fn removing_a_folder_does_not_follow_links_and_spares_unfinished_recordings() {
    let server = with_secrets();
    fs::create_dir_all(server.path("old/sub")).unwrap();
    symlink(server.outside(), server.path("old/sub/up")).unwrap();
    assert_eq!(server.request("DELETE /edit?dir=/old", "", b"").status, 409);
    assert!(server.path("old/sub/up").is_symlink());
    assert!(server.outside().join("secret").exists());
    fs::create_dir_all(server.path("LOG00000")).unwrap();
    server.write("LOG00000/LOG00001.CSV.part", "data");
    assert_eq!(
        server.request("DELETE /edit?dir=/LOG00000", "", b"").status,
        409
    );
    let to = "Destination: /other\r\n";
    assert_eq!(server.request("MOVE /LOG00000", to, b"").status, 403);
    assert_eq!(server.read("LOG00000/LOG00001.CSV.part"), b"data");
    assert_eq!(server.request("DELETE /edit?dir=/", "", b"").status, 403);
}

/// Clients see neither links nor pipes nor hidden files; a removal of what they see must not destroy them.
#[test]
fn only_what_clients_see_is_removed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let server = with_secrets();
    let pipe = |path: &str| {
        let made = Command::new("mkfifo").arg(server.path(path)).status();
        assert!(made.unwrap().success());
    };
    pipe("pipe");
    for path in ["/link", "/root", "/pipe"] {
        for line in [format!("DELETE {path}"), format!("DELETE /edit?dir={path}")] {
            assert_eq!(server.request(&line, "", b"").status, 403, "{line}");
        }
        let to = "Destination: /b\r\n";
        assert_eq!(server.request(&format!("MOVE {path}"), to, b"").status, 403);
        assert!(server.path(&path[1..]).symlink_metadata().is_ok(), "{path}");
    }
    for (folder, unseen) in [
        ("a", ".hidden"),
        ("b", "CARDIOGR.JNL"),
        ("c", "link"),
        ("d", "pipe"),
        ("e", "?"),
    ] {
        fs::create_dir_all(server.path(folder).join("sub")).unwrap();
        server.write(&format!("{folder}/visible"), "visible");
        let path = format!("{folder}/sub/{unseen}");
        match unseen {
            "link" => symlink("/etc", server.path(&path)).unwrap(),
            "pipe" => pipe(&path),
            "?" => {
                let name = OsStr::from_bytes(b"\xff");
                fs::write(server.path(folder).join("sub").join(name), "x").unwrap();
            }
            _ => server.write(&path, "hidden"),
        }
        for path in [folder.to_string(), format!("{folder}/sub")] {
            let response = server.request(&format!("DELETE /{path}"), "", b"");
            assert_eq!(response.status, 409, "{path}: {}", response.head);
            assert!(
                response.text().contains("not served"),
                "{}",
                response.text()
            );
        }
        assert_eq!(server.read(&format!("{folder}/visible")), b"visible");
        assert_eq!(
            fs::read_dir(server.path(folder).join("sub"))
                .unwrap()
                .count(),
            1
        );
    }
    // A file that an interrupted upload left behind is the server's own.
    fs::create_dir(server.path("f")).unwrap();
    server.write("f/.cardiograph-upload-0.part", "x");
    assert_eq!(server.request("DELETE /f", "", b"").status, 204);
}

#[test]
fn a_foreign_host_name_is_refused() {
    let server = Server::with(Settings {
        names: vec!["logger".to_string()],
        ..Settings::default()
    });
    server.write("a", "a");
    for (host, status) in [
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("logger.evil.example", 421),
        ("localhost", 200),
        ("127.0.0.1:1234", 200),
        ("[::1]", 200),
        ("LOGGER:8080", 200),
    ] {
        let response = server.raw(format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(Response::parse(&response).status, status, "{host}");
    }
    let response = server.raw("GET /a HTTP/1.1\r\n\r\n");
    assert_eq!(Response::parse(&response).status, 400);
}

#[test]
fn wrong_lengths_are_refused_and_change_nothing() {
    let server = Server::start();
    server.write("a", "old");
    for fields in [
        "Content-Length: abc\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let response = server.request("PUT /a", fields, b"3\r\nnew\r\n0\r\n\r\n");
        assert_eq!(response.status, 400, "{fields}: {}", response.head);
        assert_eq!(server.read("a"), b"old", "{fields}");
    }
    // More than fits on any storage device; the largest lengths exceed the integers of a file system.
    for length in [
        "999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
    ] {
        let fields = format!("Content-Length: {length}\r\n");
        let response = server.request("PUT /a", &fields, b"");
        assert!(
            [413, 507].contains(&response.status),
            "{length}: {}",
            response.head
        );
        let reason = response.text();
        assert!(
            reason.contains("the card is full") || reason.contains("larger than the storage"),
            "{length}: {reason}"
        );
    }
    assert_eq!(server.names(), ["a"]);
    assert_eq!(server.get("/a").body, b"old");
}

/// A request within a body must never be executed.
#[test]
#[ignore = "needs curl"]
fn a_chunked_body_is_not_the_next_request() {
    let server = Server::start();
    server.write("a", "old");
    let smuggled = "DELETE /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let chunks = format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len());
    for method in ["PUT", "POST", "GET", "DELETE", "MOVE"] {
        let request = format!(
            "{method} /b HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
        );
        server.raw(request);
        assert_eq!(server.read("a"), b"old", "{method}");
    }
    // curl sends a body of unknown length in chunks.
    fs::write(server.outside().join("body"), "new").unwrap();
    let chunked = ["-T", "body", "-H", "Transfer-Encoding: chunked"];
    let url = server.url("/c");
    let uploaded = server.curl(&[&chunked[..], &[&url]].concat());
    match uploaded {
        Ok(_) => assert_eq!(server.read("c"), b"new"),
        Err(error) => assert!(error.contains("411"), "{error}"),
    }
}

#[test]
fn an_interrupted_upload_leaves_the_old_file() {
    let server = Server::start();
    server.write("a", "old");
    let host = server.address;
    for sent in [0, 1, 70_000, 199_999] {
        let mut stream = server.connect();
        let head = format!("PUT /a HTTP/1.1\r\nHost: {host}\r\nContent-Length: 200000\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&noise(sent, 6)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&mut stream);
        assert_eq!(server.read("a"), b"old", "{sent}");
    }
    let form = "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"/a\"\r\n\r\nnew";
    let fields =
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n".to_string();
    let request = format!("POST /edit HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n{form}");
    server.raw(request);
    assert_eq!(server.read("a"), b"old");
    assert_eq!(server.names(), ["a"], "temporary files are left");
}

#[test]
fn overlapping_uploads_leave_one_of_them_whole() {
    let server = Server::start();
    let host = server.address;
    let contents = [noise(300_000, 7), noise(200_000, 8), noise(100_000, 9)];
    let mut streams = Vec::new();
    for contents in &contents {
        let mut stream = server.connect();
        let length = contents.len();
        let head = format!(
            "PUT /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&contents[..length / 2]).unwrap();
        streams.push(stream);
    }
    for (stream, contents) in streams.iter_mut().zip(&contents) {
        stream.write_all(&contents[contents.len() / 2..]).unwrap();
    }
    for stream in &mut streams {
        let status = Response::parse(&read_all(stream)).status;
        assert!([201, 204].contains(&status), "{status}");
    }
    assert!(contents.contains(&server.read("a")));
    assert_eq!(server.names(), ["a"]);
}

#[test]
fn a_file_left_by_a_killed_server_is_reused() {
    let server = Server::start();
    server.write(".cardiograph-upload-0.part", noise(100_000, 10));
    let response = server.request("PUT /a", "Content-Length: 3\r\n", b"new");
    assert_eq!(response.status, 201, "{}", response.head);
    assert_eq!(server.read("a"), b"new");
    assert_eq!(server.names(), ["a"]);
}

#[test]
fn slow_readers_and_half_open_connections_delay_nobody() {
    let server = Server::start();
    server.write("large", noise(20 << 20, 11));
    server.write("small", "small");
    let host = server.address;
    let mut idle = Vec::new();
    for index in 0..60 {
        let mut stream = server.connect();
        let request: &str = match index % 3 {
            // Reads nothing.
            0 => &format!("GET /large HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            // Never completes its header, or its body.
            1 => &format!("GET /large HTTP/1.1\r\nHost: {host}\r\n"),
            _ => &format!(
                "PUT /new{index} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\n\r\n12345"
            ),
        };
        stream.write_all(request.as_bytes()).unwrap();
        idle.push(stream);
    }
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(server.get("/small").body, b"small");
    }
    // Waiting for one of these clients until its time limit would take longer.
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    // The header has to be complete within 5 s.
    let mut response = Vec::new();
    let _ = idle[1].read_to_end(&mut response);
    assert_eq!(Response::parse(&response).status, 408);
}

#[test]
fn a_hundred_clients_receive_what_they_asked_for() {
    let server = Server::start();
    let contents = noise(1 << 20, 12);
    server.write("file", &contents);
    thread::scope(|scope| {
        for client in 0..100 {
            let (server, contents) = (&server, &contents);
            scope.spawn(move || {
                let start = client * 7919;
                let fields = format!("Range: bytes={start}-\r\n");
                let response = server.request("GET /file", &fields, b"");
                assert_eq!(response.status, 206);
                assert!(response.body == contents[start..], "client {client}");
            });
        }
    });
}

#[test]
fn one_address_never_holds_the_last_connection() {
    let server = Server::start();
    server.write("a", "a");
    let held: Vec<_> = (0..192).map(|_| server.connect()).collect();
    // The server may accept connections in a different order than clients open them.
    let refused = (0..10).filter(|_| server.get("/a").status == 503).count();
    assert!(refused > 0);
    drop(held);
    let begun = Instant::now();
    while server.get("/a").status != 200 {
        assert!(begun.elapsed() < common::PATIENCE);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_read_only_server_changes_nothing() {
    let server = Server::with(Settings {
        is_read_only: true,
        ..Settings::default()
    });
    server.write("a", "old");
    for (line, fields) in [
        ("PUT /a", "Content-Length: 3\r\n"),
        ("PUT /edit?dir=/new", "Content-Length: 0\r\n"),
        ("DELETE /a", ""),
        ("DELETE /edit?dir=/a", ""),
        ("GET /new?create=1", ""),
        ("GET /a?delete=1", ""),
        ("MKCOL /new", ""),
        ("MOVE /a", "Destination: /b\r\n"),
        (
            "POST /edit",
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 3\r\n",
        ),
        ("POST /record", "Content-Length: 3\r\n"),
    ] {
        let response = server.request(line, fields, b"new");
        assert_eq!(response.status, 403, "{line}: {}", response.head);
    }
    assert_eq!(server.names(), ["a"]);
    assert_eq!(server.get("/a").body, b"old");
}

#[test]
#[ignore = "needs curl"]
fn every_request_needs_the_credentials() {
    let server = Server::with(Settings {
        // ada:secret
        basic_auth: Some("YWRhOnNlY3JldA==".to_string()),
        ..Settings::default()
    });
    server.write("a", "a");
    for path in ["/a", "/", "/list?dir=/", "/status", "/none"] {
        let response = server.get(path);
        assert_eq!(response.status, 401, "{path}");
        assert!(response.field("WWW-Authenticate").is_some());
    }
    let url = server.url("/a");
    assert_eq!(server.curl(&["-u", "ada:secret", &url]).unwrap(), b"a");
    assert!(server.curl(&["-u", "ada:wrong", &url]).is_err());
}
