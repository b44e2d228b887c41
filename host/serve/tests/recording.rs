//! A recording in a directory, and clients of its server: they change neither the recording nor the names that it may
//! use next, from before it begins until it has ended.

use crate::common;

use cardiograph_record::{DirectoryStream, LiveFeed, LiveSetup, Monitor, record_in_directory};
use cardiograph_recorder::{Config, Format, StreamConfig, Window};
use cardiograph_serve::{LiveRecorder, Settings};
use common::{PATIENCE, Server};
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Waits until a condition is true.
fn wait_for(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(1));
    }
}

const LOCK: &str = "<?xml version=\"1.0\"?><D:lockinfo xmlns:D=\"DAV:\">\
    <D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>";

fn send(server: &Server, line: &str, fields: &str, body: &str) -> u16 {
    let fields = format!("Content-Length: {}\r\n{fields}", body.len());
    server.request(line, &fields, body.as_bytes()).status
}

/// Sends every operation that creates or replaces a path; all must be refused for the recorder's sake.
fn cannot_be_created(server: &Server, path: &str) {
    let to = format!("Destination: {path}\r\n");
    let (folder, name) = path.rsplit_once('/').unwrap();
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"{}\"\r\n\r\nx\r\n--b--\r\n",
        name.replace("%20", " ")
    );
    let multipart = "Content-Type: multipart/form-data; boundary=b\r\n";
    // It exists already, if it is being recorded.
    let is_there = server.get(path).status == 200;
    for line in [
        format!("GET {path}?create=1"),
        format!("PUT /edit?dir={path}"),
    ] {
        let status = send(server, &line, "", "");
        assert!(
            status == 423 || status == 409 && is_there,
            "{line}: {status}"
        );
    }
    for (line, fields, body) in [
        (format!("PUT {path}"), "", "x"),
        (format!("PUT {path}"), "", ""),
        (format!("MKCOL {path}"), "", ""),
        ("MOVE /open.txt".to_string(), &*to, ""),
        ("MOVE /folder".to_string(), &*to, ""),
        ("COPY /open.txt".to_string(), &*to, ""),
        ("COPY /folder".to_string(), &*to, ""),
        (format!("POST /edit?dir={folder}/"), multipart, &*form),
    ] {
        assert_eq!(send(server, &line, fields, body), 423, "{line} {fields}");
    }
    // The recorder respects no locks, so a lock of its folder does no harm.
    if !server.path(&path[1..]).is_dir() {
        assert_eq!(
            send(server, &format!("LOCK {path}"), "", LOCK),
            423,
            "{path}"
        );
    }
}

/// Sends every operation that removes or moves a path; all must be refused for the recorder's sake.
fn cannot_be_removed(server: &Server, path: &str) {
    for line in [
        format!("DELETE {path}"),
        format!("DELETE /edit?dir={path}"),
        format!("MOVE {path}"),
    ] {
        for to in ["/away", "/target"] {
            let fields = format!("Destination: {to}\r\n");
            assert_eq!(send(server, &line, &fields, ""), 423, "{line}");
        }
    }
    assert_eq!(server.read("target/kept"), b"kept");
}

#[test]
fn a_recording_keeps_its_files_its_folder_and_its_next_names() {
    let monitor = Arc::new(Monitor::default());
    let recorder = LiveRecorder::new(Arc::clone(&monitor));
    let server = Server::beside(Settings::default(), monitor.files().clone(), recorder);
    for folder in ["folder", "target"] {
        fs::create_dir(server.path(folder)).unwrap();
    }
    server.write("open.txt", "open");
    server.write("target/kept", "kept");
    // The server begins first; the recorder would take any name that it finds for one of its own.
    for path in ["/REC00000", "/REC00000/REC00001.CSV", "/rec00000"] {
        cannot_be_created(&server, path);
    }
    let (input, mut lines) = std::io::pipe().unwrap();
    let stream = DirectoryStream {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "a",
                line_bytes_max: 16,
            },
            window: Window::Us(20_000),
        },
        ring_bytes: 1 << 16,
        feed: LiveFeed::Lines(Box::new(input)),
    };
    let is_there = |name: &str| server.path(name).exists();
    thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let setup = LiveSetup {
                config: Config {
                    file_bytes: 1 << 16,
                    ..Config::default()
                },
                length: None,
                is_stopped: &|| false,
                monitor: Some(&monitor),
            };
            record_in_directory(&server.directory(), &setup, [stream], |_, _| ())
        });
        wait_for(|| monitor.figures().is_recording);
        writeln!(lines, "1").unwrap();
        wait_for(|| is_there("REC00000/REC00001.CSV.part"));
        assert_eq!(server.get("/REC00000/REC00001.CSV").status, 200);
        for path in [
            "/REC00000",
            "/rec00000",
            "/REC00000/REC00001.CSV",
            "/Rec00000/Rec00001.csv",
            "/REC00000/REC00002.CSV",
            "/REC00000/rec00002.csv",
            "/REC00000/REC00002.BIN",
            "/REC00000/REC00002%20flight.CSV",
            "/REC00000/REC00999.CSV",
            "/REC00001",
            "/REC00123",
        ] {
            cannot_be_created(&server, path);
        }
        for path in ["/REC00000", "/REC00000/REC00001.CSV"] {
            cannot_be_removed(&server, path);
        }
        monitor.rotate();
        let mut count = 1;
        wait_for(|| {
            // The next file gets its name with its first line.
            count += 1;
            writeln!(lines, "{count}").unwrap();
            is_there("REC00000/REC00001.CSV") && is_there("REC00000/REC00002.CSV.part")
        });
        // A finished recording belongs to its user, and so do names that will not be used again.
        let finished = "/REC00000/REC00001.CSV";
        let renamed = "/REC00000/REC00001%20good.CSV";
        let to = |path: &str| format!("Destination: {path}\r\n");
        assert_eq!(send(&server, &format!("PUT {finished}"), "", "mine"), 204);
        assert_eq!(
            send(&server, &format!("MOVE {finished}"), &to(renamed), ""),
            201
        );
        assert_eq!(send(&server, &format!("PUT {finished}"), "", "again"), 201);
        assert_eq!(
            send(&server, &format!("MOVE {renamed}"), &to(finished), ""),
            204
        );
        assert_eq!(server.get(finished).text(), "mine");
        assert_eq!(send(&server, &format!("DELETE {finished}"), "", ""), 204);
        assert_eq!(send(&server, "PUT /REC00000/notes.txt", "", "mine"), 201);
        cannot_be_created(&server, "/REC00000/REC00003.CSV");
        cannot_be_removed(&server, "/REC00000");
        writeln!(lines, "the end").unwrap();
        drop(lines);
        let result = recording.join().unwrap().unwrap();
        assert_eq!(result.pushed, [count + 1]);
        let summary = result.summaries[0];
        assert_eq!((summary.written, summary.lost), (count + 1, 0));
        assert_eq!((result.failure, result.is_full), (None, false));
    });
    let recorded = server.read("REC00000/REC00002.CSV");
    let recorded = String::from_utf8(recorded).unwrap();
    assert!(recorded.contains("\nthe end"), "{recorded}");
    // Afterwards, nothing is reserved.
    assert_eq!(send(&server, "PUT /REC00000/REC00003.CSV", "", "x"), 201);
    assert_eq!(send(&server, "MKCOL /REC00001", "", ""), 201);
    assert_eq!(send(&server, "DELETE /REC00000", "", ""), 204);
}
