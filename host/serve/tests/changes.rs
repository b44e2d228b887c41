//! Files that change while they are downloaded, and clients that change the same file.

use crate::common;

use common::{Response, Server, noise, read_all};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, SystemTime};

const BYTES: usize = 20 << 20;

/// Overwrites a byte in place, without changing the length.
fn overwrite(server: &Server, name: &str) {
    let file = fs::File::options().write(true).open(server.path(name));
    file.unwrap().write_all_at(b"x", BYTES as u64 - 1).unwrap();
}

/// Begins a download that exceeds the socket buffers, calls `change`, and receives the rest.
fn download(server: &Server, path: &str, change: impl FnOnce()) -> Response {
    // Timestamps of files have a resolution of a few ms.
    thread::sleep(Duration::from_millis(50));
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut start = vec![0; 100_000];
    stream.read_exact(&mut start).unwrap();
    change();
    start.extend(read_all(&mut stream));
    Response::parse(&start)
}

fn is_whole(response: &Response) -> bool {
    let length: usize = response.field("Content-Length").unwrap().parse().unwrap();
    assert!(response.body.len() <= length);
    response.body.len() == length
}

#[test]
fn a_file_that_is_overwritten_arrives_incomplete() {
    for path in ["/folder/large", "/folder?tar"] {
        let server = Server::start();
        fs::create_dir(server.path("folder")).unwrap();
        let contents = noise(BYTES, 1);
        server.write("folder/large", &contents);
        server.write("folder/small", "small");
        let response = download(&server, path, || overwrite(&server, "folder/large"));
        assert!(!is_whole(&response), "{path}");
        // Renaming the file does not disturb the download, because the contents do not change.
        server.write("folder/large", &contents);
        let response = download(&server, path, || {
            fs::rename(server.path("folder/large"), server.path("folder/moved")).unwrap();
        });
        assert!(is_whole(&response), "{path}");
        if path == "/folder/large" {
            assert!(response.body == contents);
        }
    }
}

#[test]
fn a_file_that_grows_arrives_as_it_was() {
    let server = Server::start();
    let contents = noise(BYTES, 1);
    server.write("log.csv", &contents);
    // An append updates the time before the length; the test extends this delay to 20 ms.
    for between_ms in [0, 20] {
        let mut appending = None;
        let response = download(&server, "/log.csv", || {
            let mut options = fs::File::options();
            let mut file = options.append(true).open(server.path("log.csv")).unwrap();
            if between_ms > 0 {
                file.set_modified(SystemTime::now()).unwrap();
            }
            appending = Some(thread::spawn(move || {
                thread::sleep(Duration::from_millis(between_ms));
                file.write_all(b"more").unwrap();
            }));
        });
        appending.unwrap().join().unwrap();
        assert!(is_whole(&response) && response.body.starts_with(&contents));
    }
}

/// Sends a PUT with a condition from many clients at once; returns the number of successful requests.
fn race(server: &Server, path: &str, condition: &str) -> usize {
    let statuses = thread::scope(|scope| {
        let clients = (0..20).map(|client| {
            scope.spawn(move || {
                let body = noise(100_000, client);
                let fields = format!("Content-Length: {}\r\n{condition}\r\n", body.len());
                server
                    .request(&format!("PUT {path}"), &fields, &body)
                    .status
            })
        });
        let clients = Vec::from_iter(clients);
        Vec::from_iter(clients.into_iter().map(|client| client.join().unwrap()))
    });
    assert!(
        statuses
            .iter()
            .all(|status| [201, 204, 412].contains(status)),
        "{statuses:?}"
    );
    statuses.iter().filter(|status| **status < 300).count()
}

#[test]
fn one_of_many_conditional_uploads_succeeds() {
    let server = Server::start();
    assert_eq!(race(&server, "/a", "If-None-Match: *"), 1);
    let tag = server.get("/a").field("ETag").unwrap().to_string();
    assert_eq!(race(&server, "/a", &format!("If-Match: {tag}")), 1);
    assert_eq!(race(&server, "/a", &format!("If-Match: {tag}")), 0);
    assert_eq!(server.names(), ["a"]);
}

#[test]
#[ignore = "needs curl"]
fn curl_heeds_conditions() {
    let server = Server::start();
    server.write("a", "old");
    fs::write(server.outside().join("new"), "new").unwrap();
    let url = server.url("/a");
    let put = |condition: &str| server.curl(&["-T", "new", "-H", condition, &url]);
    assert!(put("If-None-Match: *").unwrap_err().contains("412"));
    assert!(put("If-Match: \"other\"").unwrap_err().contains("412"));
    assert_eq!(server.read("a"), b"old");
    let tag = server.get("/a").field("ETag").unwrap().to_string();
    put(&format!("If-Match: {tag}")).unwrap();
    assert_eq!(server.read("a"), b"new");
    let remove = ["-X", "DELETE", "-H", &format!("If-Match: {tag}"), &url];
    assert!(server.curl(&remove).unwrap_err().contains("412"));
    assert_eq!(server.read("a"), b"new");
}

/// A client can remove every depth of folders that it can create.
#[test]
fn the_deepest_folders_are_removed() {
    let server = Server::start();
    let mut path = String::new();
    for _ in 0..64 {
        path += "/a";
        assert_eq!(
            server.request(&format!("MKCOL {path}"), "", b"").status,
            201
        );
    }
    assert_eq!(
        server.request(&format!("MKCOL {path}/a"), "", b"").status,
        400
    );
    assert_eq!(server.request("DELETE /a", "", b"").status, 204);
    assert!(server.names().is_empty());
}
