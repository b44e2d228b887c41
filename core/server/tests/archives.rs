//! Archives, compared with the system's tar.

use crate::memory;

use cardiograph_server::Day;
use memory::client::{Response, get, request};
use memory::{Memory, Node};
use std::io::Write as _;
use std::process::{Command, Stdio};

const DAY: Option<Day> = Some(Day {
    year: 2026,
    month: 11,
    day: 22,
});

fn with_recordings() -> Memory {
    let memory = Memory::default();
    memory.directory("/LOG00000");
    for number in 0..20_usize {
        let (name, session) = match number / 5 {
            0 | 2 => (String::new(), ""),
            _ => (" run-3".to_string(), "run-3"),
        };
        let day = DAY.filter(|_| number % 2 == 0);
        let bytes: Vec<u8> = (0..number * 173).map(|at| (at * number) as u8).collect();
        memory.recording(
            &format!("/LOG00000/LOG{number:05}{name}.CSV"),
            session,
            day,
            &bytes,
        );
    }
    memory
}

/// Unpacks an archive with the system's tar; returns names and contents.
fn unpack(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let run = |arguments: &[&str]| {
        let mut child = Command::new("tar")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = archive.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    let names = String::from_utf8(run(&["--quoting-style=literal", "-tf", "-"])).unwrap();
    let mut rest = run(&["-xOf", "-"]);
    let sizes = String::from_utf8(run(&["--quoting-style=literal", "-tvf", "-"])).unwrap();
    let members = names.lines().zip(sizes.lines()).map(|(name, line)| {
        let size: usize = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        let after = rest.split_off(size);
        (name.to_string(), std::mem::replace(&mut rest, after))
    });
    let members: Vec<_> = members.collect();
    assert!(rest.is_empty());
    members
}

fn checked(response: &Response) -> Vec<(String, Vec<u8>)> {
    assert_eq!((response.status, response.is_whole), (200, true));
    assert_eq!(response.field("Content-Type"), Some("application/x-tar"));
    assert_eq!(response.body.len() % 512, 0);
    unpack(&response.body)
}

#[test]
fn a_folder_as_tar() {
    let memory = with_recordings();
    let long = format!("/LOG00000/{}.csv", "n\u{e9}".repeat(60));
    memory.file(&long, b"long name");
    let longest = format!("/LOG00000/{}", "x".repeat(245));
    memory.file(&longest, b"longest name");
    memory.directory("/LOG00000/sub");
    memory.file("/LOG00000/CARDIOGR.IDX", b"hidden");
    let members = checked(&get(&memory, "/LOG00000?tar=1"));
    assert_eq!(members.len(), 22);
    for (name, bytes) in members {
        assert_eq!(memory.bytes(&format!("/{name}")), Some(bytes), "{name}");
    }
    let root = Memory::default();
    root.file("/a", b"1");
    assert_eq!(
        checked(&get(&root, "/?tar")),
        [("card/a".to_string(), b"1".to_vec())]
    );
    assert_eq!(checked(&get(&Memory::default(), "/?tar")), []);
    assert_eq!(get(&root, "/a?tar").status, 409);
}

#[test]
fn every_range_of_an_archive() {
    let memory = Memory::default();
    memory.file("/a.csv", &[b'a'; 700]);
    memory.file(&format!("/{}", "b".repeat(150)), &[b'b'; 512]);
    memory.file("/c", b"");
    let whole = get(&memory, "/?tar=1").body;
    let tag = get(&memory, "/?tar=1").field("ETag").unwrap().to_string();
    let starts = (0..whole.len())
        .step_by(97)
        .chain([511, 512, 513, 1211, 1212, 1535, 1536]);
    for start in starts {
        for end in [
            start + 1,
            start + 511,
            start + 512,
            start + 1300,
            whole.len(),
        ] {
            let end = end.min(whole.len());
            let fields = format!("Range: bytes={start}-{}\r\nIf-Range: {tag}\r\n", end - 1);
            let part = request(&memory, "GET /?tar=1", &fields);
            assert_eq!((part.status, part.is_whole), (206, true));
            assert!(part.body == whole[start..end], "{start}..{end}");
        }
    }
    let same = request(&memory, "GET /?tar=1", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!(same.status, 304);
    memory.file("/c", b"1");
    let changed = format!("Range: bytes=10-20\r\nIf-Range: {tag}\r\n");
    assert_eq!(request(&memory, "GET /?tar=1", &changed).status, 200);
    let head = request(&memory, "HEAD /?tar=1", "");
    let bytes: usize = head.field("Content-Length").unwrap().parse().unwrap();
    assert_eq!(bytes, get(&memory, "/?tar=1").body.len());
}

/// An archive that cannot contain every file is refused; it must not omit one silently.
#[test]
fn an_archive_contains_every_file_or_is_refused() {
    let memory = Memory::default();
    let folder = format!("/{}", "d".repeat(100));
    memory.directory(&folder);
    memory.file(&format!("{folder}/{}", "x".repeat(153)), b"longest path");
    let path = format!("{folder}?tar");
    assert_eq!(checked(&get(&memory, &path)).len(), 1);
    memory.file(&format!("{folder}/{}", "y".repeat(154)), b"one byte more");
    for line in [format!("GET {path}"), format!("HEAD {path}")] {
        assert_eq!(request(&memory, &line, "").status, 409, "{line}");
    }
    let response = get(&memory, &path);
    assert!(
        response
            .text()
            .contains("longer than 255 bytes: shorten its name")
    );

    let memory = Memory::default();
    for epoch in 1..=8 {
        memory.growing(&format!("/{epoch}.csv"), &[b'a'; 10], epoch);
    }
    assert_eq!(checked(&get(&memory, "/?tar")).len(), 8);
    memory.growing("/9.csv", b"a", 9);
    let response = get(&memory, "/?tar");
    assert_eq!(response.status, 409);
    assert!(
        response.text().contains("one by one, or wait"),
        "{}",
        response.text()
    );
}

/// A file is replaced by one of the same length: between the two passes, or while the file before it is sent.
#[test]
fn an_archive_whose_members_change_is_interrupted() {
    for is_between_passes in [true, false] {
        let memory = Memory::default();
        memory.file("/a.csv", &[b'a'; 2000]);
        memory.file("/b.csv", &[b'b'; 2000]);
        let replacement = ("/b.csv".to_string(), vec![b'c'; 2000]);
        match is_between_passes {
            true => *memory.when_listed.borrow_mut() = [None, Some(replacement)].into(),
            false => *memory.when_read.borrow_mut() = [replacement].into(),
        }
        let response = get(&memory, "/?tar=1");
        assert_eq!((response.status, response.is_whole), (200, false));
        assert_eq!(memory.bytes("/b.csv").unwrap(), [b'c'; 2000]);
    }
}

/// A card lists finished recordings without their epochs.
#[test]
fn recordings_that_are_listed_without_epochs_are_archived() {
    let memory = Memory::default();
    memory.growing("/a.csv", &[b'a'; 700], 9);
    memory.growing("/b.csv", &[b'b'; 600], 10);
    if let Some(Node::File(contents)) = memory.nodes.borrow_mut().get_mut("/b.csv") {
        contents.is_growing = false;
    }
    memory.lists_without_epochs.set(true);
    let members = checked(&get(&memory, "/?tar=1"));
    let bytes: Vec<Vec<u8>> = members.into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(bytes, [vec![b'a'; 700], vec![b'b'; 600]]);
}

/// The guard refuses requests for these names, but an archive contains them.
#[test]
fn an_archive_contains_names_that_cannot_be_requested() {
    let memory = Memory::default();
    memory.directory("/d");
    for name in ["100%.csv", "a\\b", "dot.", "blank ", "plain"] {
        memory.file(&format!("/d/{name}"), name.as_bytes());
    }
    let members = checked(&get(&memory, "/d?tar=1"));
    assert_eq!(members.len(), 5);
    for (name, bytes) in members {
        assert_eq!(name.as_bytes(), [b"d/", &*bytes].concat());
    }
}

/// The file grows between the two passes over the folder.
#[test]
fn an_unfinished_file_has_its_length_of_the_beginning() {
    let memory = Memory::default();
    memory.growing("/a.csv", &[b'a'; 700], 9);
    memory.file("/b.csv", b"b");
    memory.grows_when_listed.set(true);
    memory
        .growth
        .borrow_mut()
        .extend([vec![b'b'; 500], vec![b'c'; 500]]);
    let members = checked(&get(&memory, "/?tar=1"));
    assert_eq!(memory.bytes("/a.csv").unwrap().len(), 1700);
    assert_eq!(
        members[0].1,
        [[b'a'; 700].as_slice(), &[b'b'; 500]].concat()
    );
    assert_eq!(members[1].1, b"b");
}

#[test]
fn sessions_and_days() {
    let memory = with_recordings();
    let members = checked(&get(&memory, "/sessions/run-3"));
    assert_eq!(members.len(), 10);
    for (name, bytes) in members {
        let name = name.strip_prefix("run-3/").unwrap();
        assert_eq!(
            memory.bytes(&format!("/LOG00000/{name}")),
            Some(bytes),
            "{name}"
        );
    }
    assert_eq!(checked(&get(&memory, "/days/2026-11-22")).len(), 10);
    assert_eq!(checked(&get(&memory, "/days/unknown")).len(), 10);
    assert_eq!(get(&memory, "/days/2026-11-23").status, 404);
    assert_eq!(get(&memory, "/days/2026-13-23").status, 400);
    assert_eq!(get(&memory, "/sessions/none").status, 404);
    assert_eq!(get(&memory, "/sessions/a%20b").status, 400);
    let saved = get(&memory, "/days/2026-11-22");
    assert_eq!(
        saved.field("Content-Disposition"),
        Some("attachment; filename*=UTF-8''2026-11-22.tar")
    );
}

#[test]
fn lists_of_sessions_and_days() {
    let memory = with_recordings();
    let sessions = get(&memory, "/sessions");
    let rows: Vec<&str> = sessions.text().lines().collect();
    // Five without a name, one session, five without a name, one session.
    assert_eq!(rows.len(), 12);
    assert_eq!(
        rows[5],
        "{\"session\":\"run-3\",\"day\":\"unknown\",\"recordings\":5,\"size\":6055,\"samples\":50,\
         \"gaps\":5,\"lost\":10,\"growing\":false,\"first\":\"/LOG00000/LOG00005 run-3.CSV\",\
         \"url\":\"/sessions/run-3\"},"
    );
    assert!(rows[0].contains("\"url\":\"/LOG00000/LOG00000.CSV\""));
    let days = get(&memory, "/days");
    assert_eq!(days.text().lines().count(), 20);
    assert!(
        days.text()
            .starts_with("[{\"day\":\"2026-11-22\",\"recordings\":1,")
    );
    assert_eq!(get(&Memory::default(), "/days").text(), "[]\n");
}
