//! Live data, state and control of a recorder.

use crate::memory;

use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, Response, get, responses};
use memory::recorder::{Recorder, row_of};
use memory::socket::{Clock, End, Socket};

/// Sends a request to a server with this recorder. The client disappears after `sent_bytes_max`.
fn ask(recorder: &Recorder, request: &str, sent_bytes_max: usize) -> Response {
    let (memory, clock) = (Memory::default(), Clock::default());
    let mut socket = Socket::new(&clock, [request.into()], End::Silence);
    socket.sent_bytes_max = sent_bytes_max;
    let sent = socket.sent.clone();
    let server = Server::new(&memory, recorder, &clock, CONFIG);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    responses(&sent.take(), &[]).remove(0)
}

fn line(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n")
}

/// Returns numbers and rows of all samples of an event stream; gaps have no row.
fn samples(text: &str) -> Vec<(u64, Option<String>)> {
    let mut samples = Vec::new();
    for event in text
        .split("\n\n")
        .filter(|event| event.ends_with(|c: char| c.is_ascii_digit()))
    {
        let Some((lines, id)) = event.rsplit_once("\nid: ") else {
            continue;
        };
        for line in lines.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if let Some(gap) = line.strip_prefix("{\"first\":") {
                let first: u64 = gap.split(',').next().unwrap().parse().unwrap();
                let last: u64 = id.parse().unwrap();
                samples.extend((first..=last).map(|number| (number, None)));
            } else {
                let (number, row) = line.split_once(',').unwrap();
                samples.push((number.parse().unwrap(), Some(row.to_string())));
            }
        }
        assert_eq!(samples.last().unwrap().0, id.parse::<u64>().unwrap());
    }
    samples
}

#[test]
fn every_sample_comes_once() {
    let recorder = Recorder {
        step: 17,
        ..Recorder::default()
    };
    let response = ask(&recorder, &line("GET /live?all=1&from=60"), 20_000);
    assert_eq!(response.field("Content-Type"), Some("text/event-stream"));
    assert!(
        response
            .text()
            .contains("event: columns\ndata: time_ms,level_v\n\n")
    );
    let samples = samples(response.text());
    assert!(samples.len() > 300);
    for ((number, row), expected) in samples.iter().zip(60..) {
        assert_eq!((number, row), (&expected, &Some(row_of(expected))));
    }
}

#[test]
fn samples_that_are_gone_are_a_gap() {
    let recorder = Recorder {
        step: 10,
        ..Recorder::default()
    };
    let request = "GET /live?all=1 HTTP/1.1\r\nHost: 10.0.0.1\r\nLast-Event-ID: 19\r\n\r\n";
    let response = ask(&recorder, request, 4000);
    let samples = samples(response.text());
    let gap: Vec<u64> = samples
        .iter()
        .filter(|(_, row)| row.is_none())
        .map(|(n, _)| *n)
        .collect();
    assert_eq!(gap, (20..50).collect::<Vec<u64>>());
    assert!(
        samples
            .iter()
            .zip(20..)
            .all(|((number, _), expected)| *number == expected)
    );
    let bad = "GET /live?all=1 HTTP/1.1\r\nHost: 10.0.0.1\r\nLast-Event-ID: x\r\n\r\n";
    assert_eq!(ask(&recorder, bad, 4000).status, 400);
}

#[test]
fn the_state_and_new_gaps_are_events() {
    let recorder = Recorder::default();
    let response = ask(&recorder, &line("GET /live"), 3000);
    let text = response.text();
    assert!(
        text.contains(
            "event: status\ndata: {\"recording\":true,\"streams\":1,\"ring_bytes\":1000,"
        )
    );
    assert!(
        text.contains("event: sample\ndata: 0\ndata: 99,990,99.5\n\n"),
        "{text}"
    );
    assert_eq!(get(&Memory::default(), "/live").status, 404);
    assert_eq!(
        ask(&recorder, &line("GET /live?stream=1"), 3000).status,
        404
    );
}

#[test]
fn the_device_reports_what_is_wrong_besides() {
    for (notice, expected) in [
        ("", "\"notice\":null"),
        (
            "the router refuses \"it\"",
            "\"notice\":\"the router refuses \\\"it\\\"\"",
        ),
    ] {
        let recorder = Recorder {
            notice,
            ..Recorder::default()
        };
        for path in ["/live", "/status"] {
            let response = ask(&recorder, &line(&format!("GET {path}")), 3000);
            assert!(response.text().contains(expected), "{}", response.text());
        }
    }
}

#[test]
fn event_streams_are_limited() {
    let (memory, clock, recorder) = (Memory::default(), Clock::default(), Recorder::default());
    let config = Config {
        event_streams_max: 0,
        ..CONFIG
    };
    let server = Server::new(&memory, &recorder, &clock, config);
    let mut socket = Socket::new(&clock, [line("GET /live").into()], End::Close);
    let sent = socket.sent.clone();
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    assert_eq!(responses(&sent.take(), &[])[0].status, 503);
    // A stream that ends makes room for the next one.
    let server = Server::new(&memory, &recorder, &clock, CONFIG);
    for _ in 0..5 {
        let mut socket = Socket::new(&clock, [line("GET /live").into()], End::Close);
        let sent = socket.sent.clone();
        clock.run(server.serve(&mut socket, &mut Buffers::new()));
        assert_eq!(responses(&sent.take(), &[])[0].status, 200);
    }
}

#[test]
fn state_gaps_and_metrics() {
    let recorder = Recorder::default();
    let gap = |number, first| Gap {
        number,
        stream: 0,
        first,
        count: 5,
        at_us: 7,
        last_us: 8,
        cause: "busy",
    };
    recorder.gaps.replace(vec![gap(0, 10), gap(1, 20)]);
    let all = usize::MAX;
    let gaps = ask(&recorder, &line("GET /gaps?since=1"), all);
    assert_eq!(
        gaps.text(),
        "[{\"number\":1,\"stream\":0,\"first\":20,\"count\":5,\"at_us\":7,\"last_us\":8,\"cause\":\"busy\"}]\n"
    );
    assert_eq!(
        ask(&recorder, &line("GET /gaps"), all)
            .text()
            .lines()
            .count(),
        2
    );
    let status = ask(&recorder, &line("GET /status"), all);
    assert!(
        status
            .text()
            .starts_with("{\"storage\":null,\n\"recorder\":{\"recording\":true,")
    );
    let metrics = ask(&recorder, &line("GET /metrics"), all);
    let text = metrics.text();
    assert!(text.contains("\ncardiograph_recorder_lost_samples_total 3\n"));
    assert!(text.contains("\n# TYPE cardiograph_recorder_ring_bytes gauge\n"));
    assert!(text.contains("\ncardiograph_server_requests_total 1\n"));
    for line in text.lines() {
        assert!(
            line.starts_with("# ") || line.split(' ').count() == 2,
            "{line}"
        );
    }
    let without = get(&Memory::default(), "/status");
    assert!(without.text().contains("\"recorder\":null"));
    assert_eq!(get(&Memory::default(), "/gaps").status, 404);
    assert!(
        !get(&Memory::default(), "/metrics")
            .text()
            .contains("recorder")
    );
}

#[test]
fn the_recorder_is_controlled_by_arguments_or_forms() {
    let recorder = Recorder::default();
    let post = |target: &str, body: &str| {
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        ask(&recorder, &(head + body), usize::MAX).status
    };
    assert_eq!(
        post(
            "/record?action=rotate&session=run-3&settings=gain%3D4+x",
            ""
        ),
        204
    );
    assert_eq!(post("/record", "action=stop"), 204);
    assert_eq!(post("/record", "action=stop"), 409);
    assert_eq!(post("/record", "action=start&session=a\n"), 204);
    assert_eq!(post("/record?action=start", ""), 409);
    assert_eq!(post("/record", "action=jump"), 400);
    assert_eq!(post("/record", "action=rotate&settings=x"), 400);
    assert_eq!(
        post(
            "/record",
            &format!("action=rotate&session={}", "x".repeat(33))
        ),
        400
    );
    assert_eq!(post("/record", &"x".repeat(600)), 413);
    assert_eq!(post("/clock", "ms=1700000000123&zone=-60"), 204);
    assert_eq!(post("/clock?ms=5&zone=+330", ""), 204);
    assert_eq!(post("/clock", "zone=1"), 400);
    assert_eq!(post("/clock", "ms=1&zone=9999"), 400);
    assert_eq!(
        recorder.orders.take(),
        [
            "Rotate(Some(Session { name: \"run-3\", settings: \"gain=4 x\" }))",
            "Stop",
            "Start(Some(Session { name: \"a\", settings: \"\" }))",
            "1700000000123 -60",
            "5 330",
        ]
    );
}

#[test]
fn applications_add_buttons_rows_and_sentences() {
    let recorder = Recorder::default();
    let status = ask(&recorder, &line("GET /status"), usize::MAX);
    let text = status.text();
    let items = text.split_once("\"application\":").unwrap().1;
    assert_eq!(
        items,
        "[\n{\"action\":\"lamp\",\"chosen\":null,\"text\":\"The \\\"lamp\\\"\"},\
         \n{\"action\":\"lamp\",\"chosen\":true,\"text\":\"On\"},\
         \n{\"row\":\"cell\\u0009cell 2\"},\
         \n{\"text\":\"A sentence\\u000aof more than 64 letters, with \u{fc}, which is split in the middle of it.\"}]}\n"
    );
    let none = get(&Memory::default(), "/status");
    assert!(none.text().ends_with("\"application\":[]}\n"));
    for (action, status) in [("lamp", 204), ("other", 400)] {
        let request = line(&format!("POST /record?action={action}"));
        assert_eq!(ask(&recorder, &request, usize::MAX).status, status);
    }
    assert_eq!(recorder.orders.take(), ["lamp"]);
}
