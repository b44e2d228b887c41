//! Several clients at the same time.

mod memory;

use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, responses};
use memory::recorder::{Recorder, row_of};
use memory::socket::{Clock, End, Socket, both};

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
