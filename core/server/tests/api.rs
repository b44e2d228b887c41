//! The tables of docs/api.md: every request has the response that the document states, and every operation occurs.

use crate::memory;

use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, responses};
use memory::recorder::Recorder;
use memory::socket::{Clock, End, Socket};
use std::collections::BTreeSet;

struct Row {
    request: String,
    status: u16,
}

/// Returns the text between backticks.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 6, "{line}");
            let line = spans(cells[1])[0];
            let mut fields: String = spans(cells[2])
                .iter()
                .map(|field| format!("{field}\r\n"))
                .collect();
            let body = match cells[2].contains("*body*") {
                true => {
                    fields += "Content-Length: 3\r\n";
                    "abc"
                }
                false => "",
            };
            Row {
                request: format!("{line} HTTP/1.1\r\nHost: 192.168.4.1\r\n{fields}\r\n{body}"),
                status: cells[3].split(',').next().unwrap().parse().unwrap(),
            }
        });
    rows.collect()
}

fn card() -> Memory {
    let memory = Memory::default();
    for directory in ["/LOG00000", "/notes", "/notes/old"] {
        memory.directory(directory);
    }
    let day = Day {
        year: 2026,
        month: 11,
        day: 22,
    };
    memory.recording(
        "/LOG00000/LOG00012 run-3.CSV",
        "run-3",
        Some(day),
        b"1,2\r\n",
    );
    memory.growing("/LOG00000/LOG00013.CSV", b"1,2\r\n3,4\r\n", 5);
    memory.file("/LOG00000/LOG00014.BIN", b"");
    memory.file("/notes/a.txt", b"contents");
    memory
}

#[test]
fn every_request_has_the_stated_answer() {
    let rows = rows();
    assert!(rows.len() > 45, "{}", rows.len());
    for row in rows {
        let (memory, clock, recorder) = (card(), Clock::default(), Recorder::default());
        let mut socket = Socket::new(&clock, [row.request.clone().into()], End::Close);
        let sent = socket.sent.clone();
        let server = Server::new(&memory, &recorder, &clock, CONFIG);
        clock.run(server.serve(&mut socket, &mut Buffers::new()));
        let method = row.request.split(' ').next().unwrap();
        let response = responses(&sent.take(), &[method]).remove(0);
        let text = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, row.status, "{}\n{text}", row.request);
    }
}

/// Returns the name of an operation. Has no catch-all pattern, so that a new operation must be documented.
fn name_of(operation: &Operation) -> &'static str {
    match operation {
        Operation::Read(_) => "Read",
        Operation::Tar => "Tar",
        Operation::ConfirmRemoval => "ConfirmRemoval",
        Operation::RemoveWithKey => "RemoveWithKey",
        Operation::Create => "Create",
        Operation::List => "List",
        Operation::Remove => "Remove",
        Operation::Put => "Put",
        Operation::Upload { .. } => "Upload",
        Operation::MakeDirectory => "MakeDirectory",
        Operation::Move { .. } => "Move",
        Operation::Copy { .. } => "Copy",
        Operation::Propfind(_) => "Propfind",
        Operation::Proppatch => "Proppatch",
        Operation::Lock => "Lock",
        Operation::Unlock => "Unlock",
        Operation::Sessions => "Sessions",
        Operation::Session(_) => "Session",
        Operation::Days => "Days",
        Operation::Day(_) => "Day",
        Operation::Status => "Status",
        Operation::Gaps { .. } => "Gaps",
        Operation::Metrics => "Metrics",
        Operation::Live(_) => "Live",
        #[cfg(feature = "page")]
        Operation::Page(_) => "Page",
        Operation::Record(_) => "Record",
        Operation::Clock(_) => "Clock",
        Operation::Options => "Options",
        Operation::Bench(_) => "Bench",
    }
}
const OPERATIONS: usize = 28 + cfg!(feature = "page") as usize;

#[test]
fn every_operation_is_documented() {
    let names: BTreeSet<&str> = rows()
        .iter()
        .filter_map(|row| {
            let head = parse(row.request.as_bytes()).ok()?;
            admit(&head, &CONFIG).ok()?;
            Some(name_of(&route(&head, &CONFIG).ok()?.operation))
        })
        .collect();
    assert_eq!(names.len(), OPERATIONS, "{names:?}");
}
