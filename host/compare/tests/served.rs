//! The file server beside the recorder, over a simulated network. Another FAT library reads the card afterwards.

use cardiograph_compare::{Served, ServedSetup, serve_while_recording};
use cardiograph_recorder::{Config, Format, StreamConfig, Window};
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::{Lines, StreamSetup};
use cardiograph_sim_net::Config as NetConfig;
use cardiograph_sim_power_cut::foreign::Volume;
use cardiograph_sim_world::Link;

const NETWORK_BYTES_PER_S: u64 = 2_500_000;
const VOLUME: Volume = Volume {
    card_bytes: 1 << 30,
    start: 8192,
    bytes: 900 << 20,
    cluster_bytes: 32_768,
    free_bytes: None,
};

fn lines(rate_hz: u32, seconds: u32) -> StreamSetup<'static> {
    StreamSetup {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "",
                line_bytes_max: 100,
            },
            window: Window::default(),
        },
        ring_bytes: 65_536,
        samples: Box::new(Lines {
            rate_hz,
            line_bytes: 100,
            count: u64::from(rate_hz * seconds),
        }),
    }
}

fn run(
    stream: StreamSetup<'static>,
    link: Link,
    requests: Vec<Vec<u8>>,
    path: Option<&str>,
) -> Served<1> {
    let seed = Seed::new(1);
    let profile = Profile::named("class10-16g").unwrap();
    let mut card = Card::new(&profile, seed);
    let (image, _) = VOLUME.make(seed).unwrap();
    image.store(&mut card);
    let setup = ServedSetup {
        card,
        clock_hz: 26_600_000,
        config: Config {
            rotate_us: Some(4_000_000),
            ..Config::default()
        },
        streams: [stream],
        read_buffers: 3,
        link,
        network: NetConfig::default(),
        requests,
        path: path.map(String::from),
        seed,
    };
    serve_while_recording(setup).unwrap()
}

fn link() -> Link {
    Link {
        bandwidth_bps: NETWORK_BYTES_PER_S * 8,
        delay_ns: 2_000_000,
        ..Link::default()
    }
}

fn request(line: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{line} HTTP/1.1\r\nHost: 10.0.0.2\r\nConnection: close\r\n{fields}\r\n");
    [head.as_bytes(), body].concat()
}

fn put(path: &str, body: &[u8]) -> Vec<u8> {
    let length = format!("Content-Length: {}\r\n", body.len());
    request(&format!("PUT {path}"), &length, body)
}

/// Returns the status and the body of an answer.
fn parts(answer: &[u8]) -> (u16, &[u8]) {
    let text = String::from_utf8_lossy(answer);
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let status = status.unwrap_or_else(|| panic!("not an answer: {text}"));
    (status, &answer[end.unwrap_or(answer.len() - 4) + 4..])
}

#[test]
fn files_are_changed_while_samples_are_recorded() {
    let long: Vec<u8> = (0..100_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    let requests = vec![
        request("GET /", "", b""),
        put("/NOTES.TXT", b"first"),
        request("GET /NOTES.TXT", "", b""),
        put("/NOTES.TXT", &long),
        request("GET /NOTES.TXT", "Range: bytes=99990-\r\n", b""),
        request("MKCOL /Set%20one", "", b""),
        request(
            "MOVE /NOTES.TXT",
            "Destination: http://10.0.0.2/Set%20one/Long%20name.txt\r\n",
            b"",
        ),
        request("GET /NOTES.TXT", "", b""),
        put("/GONE.TXT", b"gone"),
        request("DELETE /GONE.TXT", "", b""),
        put("/CARDIOGR.JNL", b"no"),
        // Meanwhile the recording gets its name.
        put("/LONG.BIN", &vec![1; 1_000_000]),
        request("DELETE /REC00000/REC00001.CSV", "", b""),
        request("GET /sessions", "", b""),
        request("GET /status", "", b""),
    ];
    let served = run(lines(860, 12), link(), requests, None);
    let answers: Vec<_> = served.answers.iter().map(|answer| parts(answer)).collect();
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    println!("{statuses:?}");
    assert_eq!(
        statuses[..13],
        [
            200, 201, 200, 204, 206, 201, 201, 404, 201, 204, 403, 201, 423
        ]
    );
    assert_eq!(answers[2].1, b"first");
    assert_eq!(answers[4].1, &long[99_990..]);
    let summary = served.streams[0];
    assert_eq!((summary.lost, summary.window_breaches), (0, 0));
    let mut card = served.card;
    let files = VOLUME.read(&mut *card).unwrap();
    assert_eq!(files["Set one/Long name.txt"], long);
    assert!(!files.contains_key("NOTES.TXT") && !files.contains_key("GONE.TXT"));
    assert!(files.keys().all(|path| !path.contains("CARDIOGR.U")));
}

/// The network carries 2.5 MB/s, and the idle card 2.4 MB/s over it. The recorder needs the card for at least the time
/// of its bytes on the bus.
#[test]
fn a_download_beside_a_recording_is_nearly_as_fast_as_without() {
    let file = vec![0x5A; 3_000_000];
    let upload = || vec![put("/DAY.BIN", &file)];
    let rate = |rate_hz: u32| {
        let served = run(lines(rate_hz, 20), link(), upload(), Some("/DAY.BIN"));
        assert_eq!(served.downloaded.failures, Vec::<String>::new());
        assert_eq!(served.streams[0].lost, 0);
        assert!(served.downloaded.count > 3);
        served.downloaded.bytes_per_s()
    };
    let (idle, beside) = (rate(1), rate(860));
    println!("{idle:.0} B/s idle, {beside:.0} B/s beside 860 Hz");
    let bus_bytes_per_s = 26.6e6 / 8.0 * 512.0 / 517.0;
    let share = 860.0 * 100.0 / bus_bytes_per_s;
    assert!(beside > 0.85 * idle * (1.0 - share));
}

/// Study 1's word for a bad link is range: a download over it is slow, and still right.
#[test]
fn a_download_over_a_bad_link_ends_right() {
    let file: Vec<u8> = (0..300_000_u32).map(|at| (at / 5) as u8).collect();
    let bad = Link {
        loss_ppm: 20_000,
        reorder_ppm: 5_000,
        reorder_ns: 20_000_000,
        ..link()
    };
    let requests = vec![put("/FILE.BIN", &file), request("GET /FILE.BIN", "", b"")];
    let served = run(lines(860, 40), bad, requests, None);
    assert_eq!(served.answers.len(), 2);
    assert_eq!(parts(&served.answers[1]), (200, &file[..]));
    assert_eq!(served.streams[0].lost, 0);
}
