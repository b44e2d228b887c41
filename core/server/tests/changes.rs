//! Uploads, and other changes.

use crate::memory;

use cardiograph_server::{Buffers, Config, Error, NoInstrument, Server, Timer};
use memory::client::{CONFIG, get, raw, request, responses, send_body, send_bytes};
use memory::socket::{Clock, End, Socket};
use memory::{Memory, Node};

fn with_folder() -> Memory {
    let memory = Memory::default();
    memory.directory("/d");
    memory.file("/d/old.csv", b"old");
    memory
}

#[test]
fn put_replaces_a_file_when_it_is_whole() {
    let memory = with_folder();
    let body = vec![b'x'; 5000];
    assert_eq!(send_body(&memory, "PUT /d/new.csv", "", &body).status, 201);
    assert_eq!(send_body(&memory, "PUT /d/old.csv", "", &body).status, 204);
    assert_eq!(memory.bytes("/d/new.csv").unwrap(), body);
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), body);
    assert_eq!(send_body(&memory, "PUT /d/empty.csv", "", b"").status, 201);
    assert_eq!(memory.bytes("/d/empty.csv").unwrap(), b"");
    assert_eq!(memory.uploads.get(), 0);
}

#[test]
fn an_interrupted_upload_leaves_the_old_file() {
    let memory = with_folder();
    let request = "PUT /d/old.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 4000\r\n\r\nshort";
    let sent = raw(&memory, CONFIG, vec![request.into()], End::Close);
    assert_eq!(sent, b"");
    // The client stops sending but stays connected.
    let sent = raw(&memory, CONFIG, vec![request.into()], End::Silence);
    assert_eq!(sent, b"");
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old");
    assert_eq!(memory.uploads.get(), 0);
}

/// A client that has sent its whole body does not have to wait until the server has drained it.
#[test]
fn the_connection_closes_right_after_a_refused_upload() {
    let memory = with_folder();
    for (body, sent_bytes, waited_ms) in [(0, 0, 0), (3, 3, 0), (1000, 1000, 0), (1000, 999, 1000)]
    {
        let mut request =
            format!("PUT /none/a.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {body}\r\n\r\n")
                .into_bytes();
        request.resize(request.len() + sent_bytes, b'x');
        let clock = Clock::default();
        let mut socket = Socket::new(&clock, [request], End::Silence);
        let sent = socket.sent.clone();
        let server = Server::new(&memory, &NoInstrument, &clock, CONFIG);
        clock.run(server.serve(&mut socket, &mut Buffers::new()));
        assert_eq!(responses(&sent.take(), &["PUT"])[0].status, 409);
        if body > 0 {
            assert_eq!(clock.now_ms(), waited_ms, "{sent_bytes} of {body} B");
        }
    }
}

/// Leading zeros do not change a size, and trailer fields may look like one.
#[test]
fn sizes_of_chunks_are_numbers() {
    for (lines, status) in [
        (
            "00000000000000000000000000000005\r\nhello\r\n0\r\n\r\n",
            201,
        ),
        ("5\r\nhello\r\n0000000000000000000\r\n\r\n", 201),
        ("5\r\nhello\r\n0\r\n0123456789abcdef\r\n\r\n", 201),
        (
            "5\r\nhello\r\n0\r\nffffffffffffffffffffffff: x\r\na: b\r\n\r\n",
            201,
        ),
        ("10000000000000005\r\nhello\r\n0\r\n\r\n", 400),
        ("fffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400),
        ("1000000000000000;x\r\nhello\r\n0\r\n\r\n", 400),
        ("x\r\nhello\r\n0\r\n\r\n", 400),
    ] {
        let memory = with_folder();
        let head = "PUT /d/c.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let sent = raw(
            &memory,
            CONFIG,
            vec![[head, lines].concat().into()],
            End::Close,
        );
        assert_eq!(responses(&sent, &["PUT"])[0].status, status, "{lines}");
        let expected = (status == 201).then(|| b"hello".to_vec());
        assert_eq!(memory.bytes("/d/c.csv"), expected, "{lines}");
        assert_eq!(memory.uploads.get(), 0);
    }
}

#[test]
fn put_takes_chunks() {
    let memory = with_folder();
    let head = "PUT /d/c.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "5\r\nhello\r\n006;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    let next = "GET /d/c.csv HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n";
    let whole = [head, body, next].concat();
    for split in 1..whole.len() {
        let (one, other) = whole.split_at(split);
        let segments = vec![one.into(), other.into()];
        let sent = raw(&memory, CONFIG, segments, End::Close);
        let responses = responses(&sent, &[]);
        assert_eq!(responses.len(), 2, "split at {split}");
        assert!(matches!(responses[0].status, 201 | 204));
        assert_eq!(responses[1].text(), "hello world");
    }
}

#[test]
fn damaged_chunks_are_refused() {
    let memory = with_folder();
    for body in [
        "5\r\nhelloX\r\n0\r\n\r\n",
        "x\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5 5\rhello",
        "1000000000000000f\r\n",
        "\r\n",
    ] {
        let request = format!(
            "PUT /d/old.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        );
        let response = send_bytes(&memory, request.as_bytes());
        assert_eq!(response.status, 400, "{body:?}");
        assert_eq!(response.field("Connection"), Some("close"));
    }
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old");
}

#[test]
fn permission_comes_before_the_body_and_refusals_instead_of_it() {
    let memory = with_folder();
    let head = |path: &str| {
        format!(
            "PUT {path} HTTP/1.1\r\nHost: 10.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
    };
    let segments = vec![head("/d/a.csv").into(), b"abc".to_vec()];
    let sent = raw(&memory, CONFIG, segments, End::Close);
    let text = String::from_utf8(sent).unwrap();
    assert!(text.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"));
    let sent = raw(
        &memory,
        CONFIG,
        vec![head("/none/a.csv").into()],
        End::Silence,
    );
    let text = String::from_utf8(sent).unwrap();
    assert!(text.starts_with("HTTP/1.1 409 Conflict\r\n"), "{text}");
}

#[test]
fn uploads_need_a_length_a_folder_and_room() {
    let memory = with_folder();
    memory.growing("/d/now.csv", b"1", 1);
    assert_eq!(request(&memory, "PUT /d/a.csv", "").status, 411);
    assert_eq!(send_body(&memory, "PUT /none/a.csv", "", b"1").status, 409);
    assert_eq!(send_body(&memory, "PUT /d", "", b"1").status, 409);
    assert_eq!(send_body(&memory, "PUT /d/now.csv", "", b"1").status, 423);
    assert_eq!(send_body(&memory, "PUT /d/.x", "", b"1").status, 403);
    assert_eq!(send_body(&memory, "PUT /status", "", b"1").status, 403);
    assert_eq!(send_body(&memory, "PUT /", "", b"1").status, 403);
    let append = "X-Update-Range: append\r\n";
    assert_eq!(send_body(&memory, "PUT /d/a.csv", append, b"1").status, 501);
    memory.room_bytes.set(2);
    let full = send_body(&memory, "PUT /d/old.csv", "", b"123");
    assert_eq!(
        (full.status, full.text()),
        (
            507,
            "the card is full, or has only the space that the recorder needs; remove files first\n"
        )
    );
    memory.failure.set(Some(Error::Busy));
    let busy = send_body(&memory, "PUT /d/old.csv", "", b"1");
    assert_eq!((busy.status, busy.field("Retry-After")), (503, Some("1")));
    memory.failure.set(None);
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old");
    assert_eq!(memory.uploads.get(), 0);
}

/// The form that `curl -F` sends.
fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, bytes) in parts {
        body.extend(b"--XyZ\r\n");
        body.extend(head.as_bytes());
        body.extend(b"\r\n\r\n");
        body.extend(*bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--XyZ--\r\n");
    body
}

const FORM: &str = "Content-Type: multipart/form-data; boundary=XyZ\r\n";

#[test]
fn a_form_with_files_of_any_length() {
    for bytes in (0..40).chain([400, 500, 511, 512, 513, 900, 1000, 1023, 1024, 1025, 5000]) {
        let memory = with_folder();
        // Many beginnings of the delimiter.
        let contents: Vec<u8> = b"\r\n--Xy".iter().copied().cycle().take(bytes).collect();
        let body = form(&[
            ("Content-Disposition: form-data; name=\"note\"", b"text"),
            (
                "Content-Disposition: form-data; name=\"data\"; filename=\"/d/a;b.csv\"\r\nContent-Type: text/csv",
                &contents,
            ),
            (
                "content-disposition: form-data; name=data; filename=second.csv",
                b"2",
            ),
        ]);
        let response = send_body(&memory, "POST /edit", FORM, &body);
        assert_eq!(response.status, 201, "{bytes}: {}", response.text());
        assert_eq!(memory.bytes("/d/a;b.csv").unwrap(), contents);
        assert_eq!(memory.bytes("/second.csv").unwrap(), b"2");
        assert_eq!(memory.uploads.get(), 0);
    }
}

#[test]
fn a_browser_returns_to_the_folder() {
    let memory = with_folder();
    let body = form(&[(
        "Content-Disposition: form-data; name=\"data\"; filename=\"b.csv\"",
        b"1",
    )]);
    let fields = format!("{FORM}Origin: http://192.168.4.1\r\n");
    let response = send_body(&memory, "POST /edit?dir=/d", &fields, &body);
    assert_eq!(
        (response.status, response.field("Location")),
        (303, Some("/d"))
    );
    assert_eq!(memory.bytes("/d/b.csv").unwrap(), b"1");
}

/// Table 2.3 of the thesis has a form whose argument is the path of the file.
#[test]
fn the_argument_of_a_form_may_be_the_path_of_its_file() {
    let memory = with_folder();
    memory.directory("/d/v1.0");
    let part = "Content-Disposition: form-data; name=\"data\"; filename=\"local.txt\"";
    let fields = format!("{FORM}Origin: http://192.168.4.1\r\n");
    for (place, path) in [
        ("/d/file2.txt", "/d/file2.txt"),
        ("/d/old.csv", "/d/old.csv"),
        ("/d/v1.0", "/d/v1.0/local.txt"),
        ("/d/v1.0/", "/d/v1.0/local.txt"),
        ("/d", "/d/local.txt"),
    ] {
        let line = format!("POST /edit?dir={place}");
        let body = form(&[(part, path.as_bytes())]);
        let response = send_body(&memory, &line, &fields, &body);
        assert_eq!(response.status, 303, "{place}: {}", response.text());
        let folder = path.rsplit_once('/').unwrap().0;
        assert_eq!(response.field("Location"), Some(folder), "{place}");
        assert_eq!(memory.bytes(path).unwrap(), path.as_bytes(), "{place}");
    }
    // There is room for one file only, and for none in a folder that does not exist.
    let two = form(&[(part, b"1"), (part, b"2")]);
    let response = send_body(&memory, "POST /edit?dir=/d/file2.txt", FORM, &two);
    assert_eq!(response.status, 400);
    let one = form(&[(part, b"1")]);
    let response = send_body(&memory, "POST /edit?dir=/none/file2.txt", FORM, &one);
    assert_eq!(response.status, 409);
    for place in ["/d/.file2.txt", "/status", "/d/a.part"] {
        let line = format!("POST /edit?dir={place}");
        assert_eq!(send_body(&memory, &line, FORM, &one).status, 403, "{place}");
    }
    assert_eq!(memory.uploads.get(), 0);
}

#[test]
fn damaged_forms_leave_the_old_file() {
    let memory = with_folder();
    let head = "Content-Disposition: form-data; name=\"data\"; filename=\"/d/old.csv\"";
    let whole = form(&[(head, b"new contents")]);
    for end in 0..whole.len() - 4 {
        let response = send_body(&memory, "POST /edit", FORM, &whole[..end]);
        assert_eq!(response.status, 400, "{end}");
        assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old", "{end}");
    }
    let long = format!("{head}\r\nX: {}", "x".repeat(2000));
    assert_eq!(
        send_body(&memory, "POST /edit", FORM, &form(&[(&long, b"1")])).status,
        400
    );
    assert_eq!(
        send_body(&memory, "POST /edit", FORM, &form(&[])).status,
        400
    );
    assert_eq!(send_body(&memory, "POST /edit", "", &whole).status, 415);
    for name in ["/d/../x", "/d/.x", "/live", "d/x%41"] {
        let head = format!("Content-Disposition: form-data; name=\"data\"; filename=\"{name}\"");
        let response = send_body(&memory, "POST /edit", FORM, &form(&[(&head, b"1")]));
        assert!(
            matches!(response.status, 400 | 403),
            "{name}: {}",
            response.status
        );
    }
    assert_eq!(memory.uploads.get(), 0);
    assert_eq!(memory.paths(), ["/", "/d", "/d/old.csv"]);
}

#[test]
fn the_stock_server_creates_and_removes() {
    let memory = with_folder();
    assert_eq!(request(&memory, "PUT /edit?dir=/d/a.csv", "").status, 201);
    assert_eq!(memory.bytes("/d/a.csv").unwrap(), b"");
    assert_eq!(request(&memory, "PUT /edit?path=/d/sub", "").status, 201);
    assert!(matches!(memory.node("/d/sub"), Some(Node::Directory)));
    assert_eq!(request(&memory, "PUT /edit?dir=/d/old.csv", "").status, 409);
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old");
    assert_eq!(request(&memory, "PUT /edit", "").status, 400);
    assert_eq!(request(&memory, "DELETE /edit?dir=/", "").status, 403);
    assert_eq!(request(&memory, "DELETE /edit?dir=/none", "").status, 404);
    assert_eq!(request(&memory, "DELETE /edit?dir=/d", "").status, 204);
    assert_eq!(memory.paths(), ["/"]);
}

#[test]
fn the_address_bar_creates() {
    let memory = with_folder();
    assert_eq!(get(&memory, "/d/a%20b.csv?create=1").status, 201);
    assert_eq!(memory.bytes("/d/a b.csv").unwrap(), b"");
    assert_eq!(get(&memory, "/x?create=1").status, 201);
    assert_eq!(get(&memory, "/x?create=1").status, 409);
    assert_eq!(get(&memory, "/none/x?create=1").status, 409);
    let foreign = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_eq!(request(&memory, "GET /y?create=1", foreign).status, 403);
    assert_eq!(request(&memory, "HEAD /y?create=1", "").status, 405);
    assert!(memory.node("/y").is_none());
}

#[test]
fn a_get_never_removes() {
    let memory = with_folder();
    let page = get(&memory, "/d/old.csv?delete=1");
    assert_eq!(page.status, 200);
    let policy = page.field("Content-Security-Policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"));
    assert!(!page.text().contains("<script"));
    assert_eq!(memory.bytes("/d/old.csv").unwrap(), b"old");
    let key = page.text().split("value=\"").nth(1).unwrap();
    let key = format!("key={}", &key[..16]);
    let post = |path: &str, key: &str| {
        send_body(
            &memory,
            &format!("POST {path}?delete=1"),
            "",
            key.as_bytes(),
        )
        .status
    };
    // The key belongs to the path and its state.
    assert_eq!(post("/d", &key), 403);
    assert_eq!(post("/d/old.csv", "key=0000000000000000"), 403);
    assert_eq!(post("/d/old.csv", ""), 403);
    memory.file("/d/old.csv", b"new");
    assert_eq!(post("/d/old.csv", &key), 403);
    let page = get(&memory, "/d/old.csv?delete=1");
    let key = page.text().split("value=\"").nth(1).unwrap();
    let key = format!("key={}", &key[..16]);
    assert_eq!(post("/d/old.csv", &key), 204);
    assert!(memory.node("/d/old.csv").is_none());
    assert_eq!(get(&memory, "/d/old.csv?delete=1").status, 404);
}

#[test]
fn a_file_being_recorded_stays() {
    let memory = with_folder();
    memory.growing("/d/now.csv", b"1", 1);
    for line in [
        "DELETE /d/now.csv",
        "DELETE /d",
        "DELETE /edit?dir=/d",
        "GET /d/now.csv?delete=1",
    ] {
        assert_eq!(request(&memory, line, "").status, 423, "{line}");
    }
    let response = request(&memory, "MOVE /d/now.csv", "Destination: /d/x.csv\r\n");
    assert_eq!(response.status, 423);
    assert_eq!(memory.paths(), ["/", "/d", "/d/now.csv", "/d/old.csv"]);
}

#[test]
fn names_change() {
    let memory = with_folder();
    let to = |path: &str| format!("Destination: {path}\r\n");
    let rename = |from: &str, destination: &str| {
        request(&memory, &format!("MOVE {from}"), &to(destination)).status
    };
    assert_eq!(rename("/d/old.csv", "http://192.168.4.1/d/n%20w.csv"), 201);
    assert_eq!(memory.bytes("/d/n w.csv").unwrap(), b"old");
    assert_eq!(rename("/d/old.csv", "/d/x.csv"), 404);
    assert_eq!(rename("/d/n%20w.csv", "/none/x.csv"), 409);
    assert_eq!(rename("/d/n%20w.csv", "http://example.org/d/x.csv"), 400);
    assert_eq!(rename("/d", "/d/e"), 403);
    assert_eq!(rename("/d", "/"), 403);
    assert_eq!(rename("/d", "/.e"), 403);
    assert_eq!(rename("/d", "/e"), 201);
    assert_eq!(memory.bytes("/e/n w.csv").unwrap(), b"old");
    assert_eq!(request(&memory, "MKCOL /f", "").status, 201);
    assert_eq!(request(&memory, "MKCOL /f", "").status, 405);
    assert_eq!(request(&memory, "MKCOL /none/f", "").status, 409);
    assert_eq!(send_body(&memory, "MKCOL /g", "", b"x").status, 415);
}

#[test]
fn a_read_only_server_changes_nothing() {
    let memory = with_folder();
    let config = Config {
        is_read_only: true,
        ..CONFIG
    };
    for line in [
        "PUT /d/old.csv",
        "DELETE /d/old.csv",
        "DELETE /edit?dir=/d",
        "PUT /edit?dir=/x",
        "GET /x?create=1",
        "MKCOL /x",
        "POST /d/old.csv?delete=1",
        "GET /d/old.csv?delete=1",
        "HEAD /d?delete=1",
        "POST /record?action=stop",
        "POST /clock?ms=1",
        "MOVE /d",
        "COPY /d",
        "PROPPATCH /d",
        "LOCK /d",
        "UNLOCK /d",
    ] {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nDestination: /x\r\n\r\n"
        );
        let sent = raw(&memory, config, vec![request.into()], End::Close);
        let methods = [line.split(' ').next().unwrap()];
        assert_eq!(responses(&sent, &methods)[0].status, 403, "{line}");
    }
    assert_eq!(memory.paths(), ["/", "/d", "/d/old.csv"]);
}
