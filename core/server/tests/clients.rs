//! Several clients at the same time.

use crate::memory;

use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, responses};
use memory::recorder::{Recorder, row_of};
use memory::socket::{Clock, End, Socket, both};
use std::cell::Cell;

/// Two clients upload the same file: the upload that ends later takes effect, and neither contains bytes of the other.
#[test]
fn overlapping_uploads() {
    let (memory, clock) = (Memory::default(), Clock::default());
    memory.file("/a.csv", b"old");
    let upload = |byte: u8, parts: usize| {
        let head =
            b"PUT /a.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 2000\r\n\r\n".to_vec();
        let body = vec![byte; 2000];
        let parts = body.chunks(2000 / parts).map(<[u8]>::to_vec);
        let mut socket = Socket::new(&clock, [head].into_iter().chain(parts), End::Close);
        socket.gap_ms = 10;
        socket
    };
    let (mut slow, mut fast) = (upload(b's', 20), upload(b'f', 5));
    let (slow_sent, fast_sent) = (slow.sent.clone(), fast.sent.clone());
    let server = Server::new(&memory, &NoInstrument, &clock, CONFIG);
    let (mut one, mut other) = (Buffers::new(), Buffers::new());
    clock.run(both(
        server.serve(&mut slow, &mut one),
        server.serve(&mut fast, &mut other),
    ));
    for sent in [slow_sent, fast_sent] {
        assert_eq!(responses(&sent.take(), &[])[0].status, 204);
    }
    assert_eq!(memory.bytes("/a.csv").unwrap(), [b's'; 2000]);
    assert_eq!(memory.uploads.get(), 0);
}

/// Each of two clients receives each sample once.
#[test]
fn two_clients_receive_every_sample() {
    let (memory, clock) = (Memory::default(), Clock::default());
    let recorder = Recorder {
        step: 43,
        kept: 1000,
        ..Recorder::default()
    };
    let live = || {
        let request = "GET /live?all=1&from=100 HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n";
        let mut socket = Socket::new(&clock, [request.into()], End::Silence);
        socket.sent_bytes_max = 50_000;
        socket
    };
    let (mut one, mut other) = (live(), live());
    let sent = [one.sent.clone(), other.sent.clone()];
    let server = Server::new(&memory, &recorder, &clock, CONFIG);
    let (mut buffers, mut other_buffers) = (Buffers::new(), Buffers::new());
    clock.run(both(
        server.serve(&mut one, &mut buffers),
        server.serve(&mut other, &mut other_buffers),
    ));
    for sent in sent {
        let response = responses(&sent.take(), &[]).remove(0);
        let rows = response
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let rows: Vec<&str> = rows
            .filter(|row| row.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        assert!(rows.len() > 1000, "{}", rows.len());
        // The last row may be truncated where the client disappeared.
        for (row, number) in rows[..rows.len() - 1].iter().zip(100..) {
            assert_eq!(*row, format!("{number},{}", row_of(number)));
        }
    }
}

/// While one client tries wrong passwords, another one with the right one is served, and the recorder goes on.
#[test]
fn wrong_passwords_delay_only_who_sends_them() {
    let (memory, clock) = (Memory::default(), Clock::default());
    memory.file("/a.txt", b"contents");
    let recorder = Recorder {
        step: 1,
        ..Recorder::default()
    };
    let config = Config {
        basic_auth: Some("dXNlcjpwYXNz"),
        ..CONFIG
    };
    let request = |path: &str, password: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: 10.0.0.1\r\nAuthorization: Basic {password}\r\n\r\n")
    };
    let guesses = vec![request("/a.txt", "dXNlcjpwYXNy").into_bytes(); 20];
    let mut attacker = Socket::new(&clock, guesses, End::Close);
    let reads = vec![request("/a.txt", "dXNlcjpwYXNz").into_bytes(); 20];
    let live = request("/live?all=1", "dXNlcjpwYXNz").into_bytes();
    let mut reader = Socket::new(&clock, reads.into_iter().chain([live]), End::Silence);
    reader.sent_bytes_max = 8_000;
    let (guessed, read) = (attacker.sent.clone(), reader.sent.clone());
    let server = Server::new(&memory, &recorder, &clock, config);
    let (mut one, mut other) = (Buffers::new(), Buffers::new());
    let ended_ms = Cell::new(0);
    clock.run(both(server.serve(&mut attacker, &mut one), async {
        server.serve(&mut reader, &mut other).await;
        ended_ms.set(clock.now_ms());
    }));
    let guessed = responses(&guessed.take(), &[]);
    assert_eq!(guessed.len(), 20);
    assert!(guessed.iter().all(|response| response.status == 401));
    // One guess per second.
    assert_eq!(clock.now_ms(), 20_000);
    let read = responses(&read.take(), &[]);
    assert!(read.iter().all(|response| response.status == 200));
    assert!(read.len() == 21 && ended_ms.get() < 20_000);
    assert!(read[20].text().contains("data: 100,"), "no samples");
}
