//! `POST /bench`: a test of the storage's writes.

use crate::memory;

use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, Response, get, responses};
use memory::recorder::Recorder;
use memory::socket::{Clock, End, Socket, both};
use std::rc::Rc;

/// Time that an append takes, in ms.
const APPEND_MS: u32 = 7;

/// Returns a storage like a card, whose writes take time, and its clock.
fn card() -> (Memory, Rc<Clock>) {
    let (memory, clock) = (Memory::default(), Rc::new(Clock::default()));
    memory
        .append_time
        .replace(Some((Rc::clone(&clock), APPEND_MS)));
    (memory, clock)
}

fn idle() -> Recorder {
    let recorder = Recorder::default();
    recorder.is_recording.set(false);
    recorder
}

fn ask_with(
    card: &(Memory, Rc<Clock>),
    recorder: &Recorder,
    config: Config,
    request: &str,
) -> Response {
    let (memory, clock) = card;
    let mut socket = Socket::new(clock, [request.into()], End::Silence);
    let sent = socket.sent.clone();
    let server = Server::new(memory, recorder, &**clock, config);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    responses(&sent.take(), &["POST"]).remove(0)
}

fn ask(card: &(Memory, Rc<Clock>), recorder: &Recorder, arguments: &str) -> Response {
    let request =
        format!("POST /bench?{arguments} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 0\r\n\r\n");
    ask_with(card, recorder, CONFIG, &request)
}

/// Remainder of the polynomial division, bit by bit.
fn crc(text: &str) -> u32 {
    let bits = text
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let mut rest = 0_u32;
    for bit in bits.chain([0; 16]) {
        rest = rest << 1 | u32::from(bit);
        if rest > 0xFFFF {
            rest ^= 0x1_1021;
        }
    }
    rest
}

/// Returns the lines of a trace without marks and checksums, which have to be right.
fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| {
            let (line, checksum) = line.rsplit_once(" *").unwrap();
            assert_eq!(format!("{:04X}", crc(line)), checksum, "{line}");
            line.strip_prefix("CG1 ").unwrap()
        })
        .collect()
}

#[test]
fn every_write_is_in_the_trace() {
    let (card, recorder) = (card(), idle());
    let response = ask(&card, &recorder, "bytes=1000&writes=18&files=2&delay=3");
    assert_eq!(response.status, 200);
    let lines = lines(response.text());
    assert_eq!(
        lines[0],
        "B library=cardiograph workload=stream bytes=1000 clock_us=1 writes=36 buffer_bytes=2048"
    );
    // A write of 1000 B is two appends. The pauses are those of the request.
    let group = |count| " 3000,14000".repeat(count);
    assert_eq!(lines[1], format!("W 0 0 0 14000{}", group(15)));
    assert_eq!(
        lines[2],
        format!("W 16 0 {} 14000{}", 16 * 17_000, group(1))
    );
    assert_eq!(
        lines[3],
        format!("W 18 1 {} 14000{}", 18 * 17_000, group(15))
    );
    assert_eq!(
        lines[4],
        format!("W 34 1 {} 14000{}", 34 * 17_000, group(1))
    );
    assert_eq!(lines[5..], ["E 36"]);
    // Nothing remains.
    assert_eq!(card.0.paths(), ["/"]);
    assert_eq!(card.0.uploads.get(), 0);
}

#[test]
fn a_test_without_arguments_writes_a_mebibyte() {
    let card = card();
    let response = ask(&card, &idle(), "");
    let lines = lines(response.text());
    assert_eq!(lines.len(), 1 + 2048 / 16 + 1);
    assert_eq!(lines.last(), Some(&"E 2048"));
}

#[test]
fn lines_that_time_themselves_have_100_bytes() {
    let (card, recorder) = (card(), idle());
    let response = ask(&card, &recorder, "bytes=100&writes=2&lines=1");
    assert_eq!(
        lines(response.text())[..2],
        [
            "B library=cardiograph workload=self-timing bytes=100 clock_us=1 writes=2 buffer_bytes=2048",
            "W 0 0 0 7000 0,7000"
        ]
    );
    let refused = ask(&card, &recorder, "bytes=101&writes=2&lines=1");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("bytes=100"), "{}", refused.text());
}

#[test]
fn a_recording_keeps_the_card() {
    let card = card();
    let recorder = Recorder::default();
    assert_eq!(ask(&card, &recorder, "").status, 423);
    assert_eq!(card.0.uploads.get(), 0);
    // One that begins during the test ends it after the writes of a line, or after a pause.
    let cases = [("", 20 * APPEND_MS, "X 32"), ("?delay=1000", 2500, "X 3")];
    for (arguments, begins_ms, end) in cases {
        recorder.is_recording.set(false);
        let (memory, clock) = &card;
        let request = format!(
            "POST /bench{arguments} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 0\r\n\r\n"
        );
        let mut socket = Socket::new(clock, [request.into()], End::Silence);
        let sent = socket.sent.clone();
        let server = Server::new(memory, &recorder, &**clock, CONFIG);
        let mut buffers = Buffers::new();
        clock.run(both(server.serve(&mut socket, &mut buffers), async {
            clock.sleep_ms(begins_ms).await;
            recorder.is_recording.set(true);
        }));
        let response = responses(&sent.take(), &["POST"]).remove(0);
        let lines = lines(response.text());
        assert_eq!(lines[lines.len() - 1], format!("{end} a recording began"));
    }
    assert_eq!(card.0.uploads.get(), 0);
}

#[test]
fn a_second_test_has_to_wait() {
    let (card, recorder) = (card(), idle());
    let (memory, clock) = &card;
    let request = "POST /bench?writes=40 HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 0\r\n\r\n";
    let mut sockets = [(); 2].map(|()| Socket::new(clock, [request.into()], End::Silence));
    let sent = sockets.each_ref().map(|socket| socket.sent.clone());
    let server = Server::new(memory, &recorder, &**clock, CONFIG);
    let [one, other] = &mut sockets;
    let mut buffers = [Buffers::new(), Buffers::new()];
    let [first, second] = &mut buffers;
    clock.run(both(server.serve(one, first), server.serve(other, second)));
    let statuses = sent.map(|sent| responses(&sent.take(), &["POST"]).remove(0).status);
    assert_eq!(statuses, [200, 423]);
    // The next one may begin.
    assert_eq!(ask(&card, &recorder, "writes=1").status, 200);
}

#[test]
fn a_failure_ends_the_trace_with_its_reason() {
    let (card, recorder) = (card(), idle());
    card.0.room_bytes.set(4000);
    assert_eq!(ask(&card, &recorder, "bytes=100&writes=41").status, 507);
    card.0.room_bytes.set(1 << 20);
    card.0.appends_max.set(20);
    let response = ask(&card, &recorder, "");
    let lines = lines(response.text());
    assert!(lines[2].starts_with("W 16 0 "));
    assert_eq!(lines[3..], ["X 20 the card failed; check it"]);
    assert_eq!(card.0.uploads.get(), 0);
}

#[test]
fn a_client_that_leaves_ends_the_test() {
    let (card, recorder) = (card(), idle());
    let (memory, clock) = &card;
    let request = "POST /bench?delay=1000 HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 0\r\n\r\n";
    let mut socket = Socket::new(clock, [request.into()], End::Close);
    let server = Server::new(memory, &recorder, &**clock, CONFIG);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    assert!(clock.now_ms() < 2000, "{} ms", clock.now_ms());
}

#[test]
fn requests_are_guarded() {
    let (card, recorder) = (card(), idle());
    let request = |fields: &str| {
        format!("POST /bench HTTP/1.1\r\nHost: 10.0.0.1\r\n{fields}Content-Length: 0\r\n\r\n")
    };
    let read_only = Config {
        is_read_only: true,
        ..CONFIG
    };
    let locked = Config {
        basic_auth: Some("YWRhOnNlY3JldA=="),
        ..CONFIG
    };
    for (config, fields, status) in [
        (read_only, "", 403),
        (locked, "", 401),
        (locked, "Authorization: Basic YWRhOndyb25n\r\n", 401),
        (locked, "Authorization: Basic YWRhOnNlY3JldA==\r\n", 200),
        (CONFIG, "Origin: http://example.com\r\n", 403),
        (CONFIG, "Sec-Fetch-Site: same-site\r\n", 403),
    ] {
        let response = ask_with(&card, &recorder, config, &request(fields));
        assert_eq!(response.status, status, "{fields}");
    }
    assert_eq!(get(&card.0, "/bench").status, 405);
}

#[test]
fn wrong_arguments_are_refused() {
    let (card, recorder) = (card(), idle());
    for (arguments, status) in [
        ("bytes=0", 400),
        ("bytes=65537", 400),
        ("bytes=-1", 400),
        ("bytes=x", 400),
        ("writes=0", 400),
        ("files=0", 400),
        ("files=4294967296", 400),
        ("delay=60001", 400),
        ("writes=18446744073709551616", 400),
        ("bytes=65536&writes=65536", 413),
    ] {
        assert_eq!(
            ask(&card, &recorder, arguments).status,
            status,
            "{arguments}"
        );
    }
    // A directory of a computer has a cache, and no card.
    card.0.append_time.replace(None);
    assert_eq!(ask(&card, &recorder, "").status, 501);
}
