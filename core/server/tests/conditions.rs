//! Conditions of changes, compared with RFC 9110, section 13.

use crate::memory;

use cardiograph_server::{Buffers, NoInstrument, Server};
use memory::Memory;
use memory::client::{CONFIG, get, request, responses, send_body};
use memory::socket::{Clock, End, Socket, both};

fn with_file() -> Memory {
    let memory = Memory::default();
    memory.directory("/d");
    memory.file("/d/a.csv", b"old");
    memory
}

fn tag(memory: &Memory) -> String {
    get(memory, "/d/a.csv").field("ETag").unwrap().to_string()
}

const FORM: &str = "Content-Type: multipart/form-data; boundary=b\r\n";

fn form(path: &str) -> Vec<u8> {
    format!("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{path}\"\r\n\r\nnew\r\n--b--\r\n")
        .into_bytes()
}

/// Sends a change; returns the status.
fn change(memory: &Memory, line: &str, condition: &str) -> u16 {
    let fields = format!("{condition}\r\nDestination: /d/c.csv\r\n");
    match line.split_once(' ').unwrap() {
        ("PUT", path) if !path.contains('?') => send_body(memory, line, &fields, b"new").status,
        ("POST", path) => send_body(memory, "POST /edit", &(fields + FORM), &form(path)).status,
        _ => request(memory, line, &fields).status,
    }
}

#[test]
fn every_change_of_an_existing_file_heeds_its_conditions() {
    let right = tag(&with_file());
    let conditions = [
        ("If-Match: *".to_string(), true),
        (format!("If-Match: {right}"), true),
        (format!("If-Match: \"x\", {right}"), true),
        ("If-Match: \"x\"".to_string(), false),
        // A weak tag never matches strongly.
        (format!("If-Match: W/{right}"), false),
        ("If-None-Match: *".to_string(), false),
        (format!("If-None-Match: {right}"), false),
        (format!("If-None-Match: W/{right}"), false),
        ("If-None-Match: \"x\"".to_string(), true),
        (format!("If-Match: {right}\r\nIf-None-Match: \"x\""), true),
        (format!("If-Match: {right}\r\nIf-None-Match: *"), false),
    ];
    for (condition, is_met) in &conditions {
        for (line, done) in [
            ("PUT /d/a.csv", 204),
            ("POST /d/a.csv", 201),
            ("DELETE /d/a.csv", 204),
            ("DELETE /edit?dir=/d/a.csv", 204),
            ("MOVE /d/a.csv", 201),
        ] {
            let memory = with_file();
            let status = change(&memory, line, condition);
            assert_eq!(
                status,
                if *is_met { done } else { 412 },
                "{line} {condition}"
            );
            let is_unchanged = memory.bytes("/d/a.csv").as_deref() == Some(b"old")
                && memory.node("/d/c.csv").is_none();
            assert_eq!(is_unchanged, !is_met, "{line} {condition}");
            assert_eq!(memory.uploads.get(), 0);
        }
    }
}

#[test]
fn new_files_and_folders_heed_their_conditions() {
    for (line, condition, status) in [
        ("PUT /d/b.csv", "If-None-Match: *", 201),
        ("PUT /d/b.csv", "If-None-Match: \"x\"", 201),
        ("PUT /d/b.csv", "If-Match: *", 412),
        ("PUT /d/b.csv", "If-Match: \"x\"", 412),
        ("POST /d/b.csv", "If-None-Match: *", 201),
        ("POST /d/b.csv", "If-Match: *", 412),
        ("MKCOL /d/f", "If-None-Match: *", 201),
        ("MKCOL /d/f", "If-Match: *", 412),
        ("PUT /edit?dir=/d/b.csv", "If-None-Match: *", 201),
        ("PUT /edit?dir=/d/b.csv", "If-Match: *", 412),
        ("GET /d/b.csv?create=1", "If-Match: *", 412),
        // Folders have no tag.
        ("DELETE /d", "If-Match: \"x\"", 412),
        ("DELETE /d", "If-None-Match: *", 412),
        ("DELETE /d", "If-Match: *", 204),
        // A request that fails without its condition fails in the same way with it.
        ("DELETE /d/b.csv", "If-Match: *", 404),
        ("MOVE /d/b.csv", "If-Match: *", 404),
        ("PUT /none/b.csv", "If-Match: *", 409),
        ("PUT /d/now.csv", "If-None-Match: *", 423),
        ("DELETE /d/now.csv", "If-Match: \"x\"", 423),
    ] {
        let memory = with_file();
        if line.contains("now.csv") {
            memory.growing("/d/now.csv", b"1", 1);
        }
        assert_eq!(
            change(&memory, line, condition),
            status,
            "{line} {condition}"
        );
        assert_eq!(memory.uploads.get(), 0);
    }
}

#[test]
fn a_download_of_a_changed_file_is_refused() {
    let memory = with_file();
    let condition = format!("If-Match: {}\r\n", tag(&memory));
    assert_eq!(request(&memory, "GET /d/a.csv", &condition).status, 200);
    memory.file("/d/a.csv", b"new");
    let response = request(&memory, "GET /d/a.csv", &condition);
    assert_eq!(response.status, 412);
    assert!(
        response.text().contains("a condition"),
        "{}",
        response.text()
    );
}

/// Dates around that of files in memory.
const EARLIER: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
const SAME: &str = "Sunday, 09-Sep-01 01:46:40 GMT";
const LATER: &str = "Sun Sep  9 01:46:41 2001";

/// Status according to the steps of RFC 9110, section 13.2.2, for a file with the tag `right`.
fn status_of(
    line: &str,
    right: &str,
    [if_match, since, if_none_match, modified]: [&str; 4],
) -> u16 {
    let is_reading = line.starts_with("GET") || line.starts_with("HEAD");
    // Step 1, or step 2 without If-Match.
    let is_right = match if_match {
        "" => since != EARLIER,
        list => list == right,
    };
    // Step 3, or step 4 without If-None-Match.
    let is_unchanged = match if_none_match {
        "" => is_reading && (modified == SAME || modified == LATER),
        list => list == right,
    };
    match (is_right, is_unchanged, is_reading) {
        (false, _, _) | (true, true, false) => 412,
        (true, true, true) => 304,
        (true, false, true) => 200,
        (true, false, false) => 204,
    }
}

#[test]
fn conditions_are_evaluated_in_the_order_of_the_rfc() {
    let right = tag(&with_file());
    let tags = ["", right.as_str(), "\"x\""];
    let dates = ["", EARLIER, SAME, LATER, "2001-09-09T01:46:39Z"];
    let mut cases = Vec::new();
    for if_match in tags {
        for since in dates {
            for if_none_match in tags {
                cases.extend(dates.map(|modified| [if_match, since, if_none_match, modified]));
            }
        }
    }
    let names = [
        "If-Match",
        "If-Unmodified-Since",
        "If-None-Match",
        "If-Modified-Since",
    ];
    for case in cases {
        let fields = names
            .iter()
            .zip(case)
            .filter(|(_, value)| !value.is_empty());
        let fields = fields.map(|(name, value)| format!("{name}: {value}\r\n"));
        let fields = fields.collect::<String>();
        for line in [
            "GET /d/a.csv",
            "HEAD /d/a.csv",
            "PUT /d/a.csv",
            "DELETE /d/a.csv",
        ] {
            let memory = with_file();
            let status = match line {
                "PUT /d/a.csv" => send_body(&memory, line, &fields, b"new").status,
                _ => request(&memory, line, &fields).status,
            };
            assert_eq!(status, status_of(line, &right, case), "{line} {fields}");
            let is_kept = memory.bytes("/d/a.csv").as_deref() == Some(b"old");
            assert_eq!(is_kept, status != 204, "{line} {fields}");
        }
    }
}

/// Its length grows without a change of the date, which has a resolution of 1 s; and nothing is known about the date of
/// a file from a card without a clock.
#[test]
fn a_growing_file_has_changed_after_any_date_and_a_new_one_has_none() {
    let memory = with_file();
    memory.growing("/d/now.csv", b"1", 1);
    let modified = format!("If-Modified-Since: {LATER}\r\n");
    let unmodified = format!("If-Unmodified-Since: {LATER}\r\n");
    assert_eq!(request(&memory, "GET /d/now.csv", &modified).status, 200);
    assert_eq!(request(&memory, "GET /d/now.csv", &unmodified).status, 412);
    let earlier = format!("If-Unmodified-Since: {EARLIER}\r\n");
    assert_eq!(
        send_body(&memory, "PUT /d/b.csv", &earlier, b"new").status,
        201
    );
}

/// Two clients with the same condition send their files at the same time; only one may succeed.
#[test]
fn one_of_two_overlapping_uploads_succeeds() {
    for (path, condition) in [
        ("/d/a.csv", format!("If-Match: {}", tag(&with_file()))),
        ("/d/b.csv", "If-None-Match: *".to_string()),
    ] {
        let memory = with_file();
        memory.commit_polls.set(3);
        let clock = Clock::default();
        let server = Server::new(&memory, &NoInstrument, &clock, CONFIG);
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n{condition}\r\n\r\n"
        );
        let client = |body: &[u8]| {
            let mut socket = Socket::new(&clock, [head.clone().into(), body.to_vec()], End::Close);
            socket.gap_ms = 100;
            let sent = socket.sent.clone();
            (socket, sent)
        };
        let ((mut one, of_one), (mut other, of_other)) = (client(b"one"), client(b"two"));
        let (mut first, mut second) = (Buffers::new(), Buffers::new());
        clock.run(both(
            server.serve(&mut one, &mut first),
            server.serve(&mut other, &mut second),
        ));
        let status = |sent: &[u8]| responses(sent, &["PUT"])[0].status;
        let statuses = [status(&of_one.take()), status(&of_other.take())];
        assert!(statuses[0] < 300 && statuses[1] == 412, "{statuses:?}");
        assert_eq!(memory.bytes(path).unwrap(), b"one");
        assert_eq!(memory.uploads.get(), 0);
    }
}
