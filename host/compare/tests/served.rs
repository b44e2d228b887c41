//! The file server next to the recorder, over a simulated network. Another FAT library reads the card afterwards.

use cardiograph_compare::{Served, ServedSetup, Watcher, serve_while_recording};
use cardiograph_recorder::{Config, Format, NewestMemory, StreamConfig, Window};
use cardiograph_server::LiveStream;
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::{Lines, StreamSetup};
use cardiograph_sim_net::Config as NetConfig;
use cardiograph_sim_power_cut::disk::{BlockStream, Image};
use cardiograph_sim_power_cut::foreign::Volume;
use cardiograph_sim_world::Link;
use fatfs::{FileSystem, FsOptions};
use std::collections::HashSet;
use std::io::Write;

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
    run_watched(stream, link, requests, path, &[])
}

/// Returns the contents of a card with foreign files.
fn image() -> Image {
    VOLUME.make(Seed::new(1)).unwrap().0
}

/// Runs a device with additional clients.
fn run_watched(
    stream: StreamSetup<'static>,
    link: Link,
    requests: Vec<Vec<u8>>,
    path: Option<&str>,
    watchers: &[Watcher],
) -> Served<1> {
    run_on(image(), stream, link, requests, path, watchers)
}

fn run_on(
    image: Image,
    stream: StreamSetup<'static>,
    link: Link,
    requests: Vec<Vec<u8>>,
    path: Option<&str>,
    watchers: &[Watcher],
) -> Served<1> {
    let setup = ServedSetup {
        requests,
        path: path.map(String::from),
        watchers: watchers.to_vec(),
        ..setup(image, stream, link)
    };
    serve_while_recording(setup).unwrap()
}

/// Returns a device with its network, whose clients request nothing.
fn setup(image: Image, stream: StreamSetup<'static>, link: Link) -> ServedSetup<'static, 1> {
    // As on a device, this memory lasts for the whole run; 256 samples are 300 ms.
    let memory: &NewestMemory<256, 100> = Box::leak(Box::default());
    let live = Box::leak(Box::new([LiveStream {
        format: stream.config.format,
        newest: memory.handle(),
    }]));
    let seed = Seed::new(1);
    let profile = Profile::named("class10-16g").unwrap();
    let mut card = Card::new(&profile, seed);
    image.store(&mut card);
    ServedSetup {
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
        requests: Vec::new(),
        path: None,
        live,
        watchers: Vec::new(),
        seed,
    }
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

/// Returns the status and the body of a response.
fn parts(response: &[u8]) -> (u16, &[u8]) {
    let text = String::from_utf8_lossy(response);
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let end = response.windows(4).position(|four| four == b"\r\n\r\n");
    let status = status.unwrap_or_else(|| panic!("not a response: {text}"));
    (status, &response[end.unwrap_or(response.len() - 4) + 4..])
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
        // Long enough for the recorder to name its file.
        put("/LONG.BIN", &vec![1; 1_000_000]),
        request("DELETE /REC00000/REC00001.CSV", "", b""),
        request("GET /sessions", "", b""),
        request("GET /status", "", b""),
    ];
    let served = run(lines(860, 12), link(), requests, None);
    let responses: Vec<_> = served
        .responses
        .iter()
        .map(|response| parts(response))
        .collect();
    let statuses: Vec<u16> = responses.iter().map(|(status, _)| *status).collect();
    println!("{statuses:?}");
    let status = String::from_utf8_lossy(responses.last().unwrap().1);
    let size = status
        .split("\"size\":")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let size: u64 = size.unwrap().parse().unwrap();
    // All but the tables and the root directory; FAT16 has no count of free clusters.
    assert!(
        (VOLUME.bytes - (1 << 20)..VOLUME.bytes).contains(&size),
        "{status}"
    );
    assert!(status.contains("\"free\":null"), "{status}");
    assert_eq!(
        statuses[..13],
        [
            200, 201, 200, 204, 206, 201, 201, 404, 201, 204, 403, 201, 423
        ]
    );
    assert_eq!(responses[2].1, b"first");
    assert_eq!(responses[4].1, &long[99_990..]);
    let summary = served.streams[0];
    assert_eq!((summary.lost, summary.window_breaches), (0, 0));
    let mut card = served.card;
    let files = VOLUME.read(&mut *card).unwrap();
    assert_eq!(files["Set one/Long name.txt"], long);
    assert!(!files.contains_key("NOTES.TXT") && !files.contains_key("GONE.TXT"));
    assert!(files.keys().all(|path| !path.contains("CARDIOGR.U")));
}

/// The card is full of another program's file at the start: the server says so, sends it, and removes it. The recording
/// begins then.
#[test]
fn a_recording_begins_once_a_client_has_removed_a_file_from_a_full_card() {
    const FULL: Volume = Volume {
        bytes: 64 << 20,
        cluster_bytes: 8192,
        // Room for the journal, and 32 KiB.
        free_bytes: Some((9 + 4) * 8192),
        ..VOLUME
    };
    let (image, files) = FULL.make(Seed::new(1)).unwrap();
    let status = || vec![request("GET /status", "", b""); 300];
    let range = request("GET /FILLER.BIN", "Range: bytes=0-99\r\n", b"");
    let mut requests = status();
    requests.extend([range, request("DELETE /FILLER.BIN", "", b"")]);
    requests.extend(status());
    let mut setup = setup(image, lines(860, 5), link());
    setup.config.waits_for_room = true;
    setup.requests = requests;
    let served = serve_while_recording(setup).unwrap();
    let responses = served.responses.iter().map(|response| parts(response));
    let responses: Vec<_> = responses.collect();
    assert_eq!((responses[300].0, responses[301].0), (206, 204));
    assert_eq!(responses[300].1, &files["FILLER.BIN"][..100]);
    let is_full = |(_, body): &(u16, &[u8])| {
        String::from_utf8_lossy(body).contains("\"fault\":\"the card is full; remove files\"")
    };
    assert!(is_full(&responses[299]));
    let last = responses.last().unwrap();
    assert!(!is_full(last));
    assert!(String::from_utf8_lossy(last.1).contains("\"recording\":true"));
    assert_eq!(served.streams[0].lost, 0);
    let recorded = FULL.read(&mut { *served.card }).unwrap();
    assert!(!recorded.contains_key("FILLER.BIN"));
    assert!(recorded.keys().any(|path| path.starts_with("REC00000/")));
}

/// The network carries 2.5 MB/s; downloads from an idle card reach 2.4 MB/s. The recorder occupies the card at least
/// for the time that its bytes take on the bus.
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
    let (idle, busy) = (rate(1), rate(860));
    println!("{idle:.0} B/s idle, {busy:.0} B/s beside 860 Hz");
    let bus_bytes_per_s = 26.6e6 / 8.0 * 512.0 / 517.0;
    let share = 860.0 * 100.0 / bus_bytes_per_s;
    assert!(busy > 0.85 * idle * (1.0 - share));
}

/// A bad link, which study 1 calls "range", slows a download down but does not corrupt it.
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
    assert_eq!(served.responses.len(), 2);
    assert_eq!(parts(&served.responses[1]), (200, &file[..]));
    assert_eq!(served.streams[0].lost, 0);
}

/// Returns the body that a client received, and the time at which each byte arrived, in ns.
fn body_of(pieces: &[(u64, Vec<u8>)]) -> Vec<(u64, u8)> {
    let bytes = pieces.iter();
    let bytes = bytes.flat_map(|(at_ns, piece)| piece.iter().map(|byte| (*at_ns, *byte)));
    let bytes: Vec<(u64, u8)> = bytes.collect();
    let text: Vec<u8> = bytes.iter().map(|(_, byte)| *byte).collect();
    let find = |from: usize, end: &[u8]| {
        let found = text[from..].windows(end.len()).position(|it| it == end);
        found.map(|at| from + at + end.len())
    };
    let mut at = find(0, b"\r\n\r\n").unwrap();
    assert!(text.starts_with(b"HTTP/1.1 200"));
    let mut body = Vec::new();
    // The last chunk is incomplete when the recording ends.
    while let Some(start) = find(at, b"\r\n") {
        let digits = std::str::from_utf8(&text[at..start - 2]).unwrap();
        let length = usize::from_str_radix(digits, 16).unwrap();
        let end = (start + length).min(bytes.len());
        body.extend_from_slice(&bytes[start..end]);
        at = (start + length + 2).min(bytes.len());
    }
    body
}

/// A sample, or a range of lost samples, as a client received it.
#[derive(Debug)]
struct Seen {
    at_ns: u64,
    first: u64,
    count: u64,
    row: String,
}

/// Parses the events of `/live?all=1`.
fn seen_in(body: &[(u64, u8)]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut event = String::new();
    for line in body.split_inclusive(|(_, byte)| *byte == b'\n') {
        // The last line is incomplete when the recording ends.
        let Some(line) = line.strip_suffix(&[(line[line.len() - 1].0, b'\n')]) else {
            break;
        };
        let text: String = line.iter().map(|(_, byte)| char::from(*byte)).collect();
        let at_ns = line.last().map_or(0, |(at_ns, _)| *at_ns);
        if text.is_empty() {
            event.clear();
        } else if let Some(name) = text.strip_prefix("event: ") {
            event = name.into();
        } else if let Some(data) = text.strip_prefix("data: ") {
            let number = |name: &str| -> u64 {
                let rest = data.split(&format!("\"{name}\":")).nth(1).unwrap();
                rest.split([',', '}']).next().unwrap().parse().unwrap()
            };
            let (first, count, row) = match event.as_str() {
                "columns" => continue,
                "gap" => (number("first"), number("count"), String::new()),
                _ => {
                    let (number, row) = data.split_once(',').unwrap();
                    (number.parse().unwrap(), 1, row.to_string())
                }
            };
            seen.push(Seen {
                at_ns,
                first,
                count,
                row,
            });
        }
    }
    seen
}

/// Asserts that a client received each sample once, with its own contents, or saw it in a gap. Returns the number of
/// samples received, and the greatest age of a sample on arrival, in ns.
fn check_seen(seen: &[Seen], started_ns: u64, rate_hz: u32) -> (u64, u64) {
    let mut next = seen[0].first;
    let (mut samples, mut age_ns_max) = (0, 0);
    for one in seen {
        assert_eq!(one.first, next, "{one:?}");
        next += one.count;
        if one.row.is_empty() {
            continue;
        }
        let mut line = [0; 100];
        cardiograph_sim_device::line(one.first, &mut line);
        assert_eq!(one.row.as_bytes(), line.trim_ascii_end());
        samples += 1;
        let taken_ns = started_ns + cardiograph_sim_device::due_ns(one.first, rate_hz);
        age_ns_max = age_ns_max.max(one.at_ns - taken_ns);
    }
    (samples, age_ns_max)
}

#[test]
fn each_sample_reaches_two_clients_within_250_ms() {
    let watcher = Watcher {
        path: "/live?all=1",
        after_ns: 0,
    };
    for download in [None, Some("/DAY.BIN")] {
        let requests = vec![put("/DAY.BIN", &vec![0x5A; 2_000_000])];
        let watchers = [watcher, watcher];
        let served = run_watched(lines(860, 12), link(), requests, download, &watchers);
        assert_eq!(served.streams[0].lost, 0);
        for pieces in &served.watched {
            let seen = seen_in(&body_of(pieces));
            let (samples, age_ns_max) = check_seen(&seen, served.started_ns, 860);
            println!("{samples} samples, up to {age_ns_max} ns old, {download:?}");
            assert!(samples > 860 * 11, "{samples}");
            assert!(age_ns_max <= 250_000_000, "{age_ns_max}");
        }
    }
}

/// Clients that begin at the first sample receive the old samples from several files on the card, then the new ones.
#[test]
fn old_samples_come_from_the_card() {
    let watchers = [1, 5, 9].map(|after_s| Watcher {
        path: "/live?all=1&from=0",
        after_ns: after_s * 1_000_000_000,
    });
    let served = run_watched(lines(860, 12), link(), Vec::new(), None, &watchers);
    assert_eq!(served.streams[0].lost, 0);
    for pieces in &served.watched {
        let seen = seen_in(&body_of(pieces));
        assert_eq!(seen[0].first, 0);
        let (samples, _) = check_seen(&seen, served.started_ns, 860);
        assert!(samples > 860 * 11, "{samples}");
    }
}

/// A ring that lasts 24 ms cannot absorb every stall.
#[test]
fn lost_samples_are_gaps_for_clients_too() {
    let watcher = Watcher {
        path: "/live?all=1",
        after_ns: 0,
    };
    let watchers = [watcher, watcher];
    let stream = StreamSetup {
        ring_bytes: 2_048,
        ..lines(860, 12)
    };
    let served = run_watched(stream, link(), Vec::new(), None, &watchers);
    let lost = served.streams[0].lost;
    assert!(lost > 0);
    for pieces in &served.watched {
        let seen = seen_in(&body_of(pieces));
        let (samples, _) = check_seen(&seen, served.started_ns, 860);
        let last = seen.last().unwrap();
        println!(
            "{samples} samples of {}, {lost} lost",
            last.first + last.count
        );
        assert!(samples + lost + 200 > 860 * 12, "{samples}");
    }
}

#[test]
fn a_client_begins_a_session_and_ends_the_recording() {
    let post = |query: &str| {
        let line = format!("POST /record?{query}");
        request(&line, "Content-Length: 0\r\n", b"")
    };
    let requests = vec![
        request("GET /status", "", b""),
        post("action=rotate&session=run-7&settings=gain%3D4"),
        post("action=start"),
        put("/WAIT.BIN", &vec![0x5A; 3_000_000]),
        request("GET /sessions", "", b""),
        post("action=stop"),
    ];
    let served = run(lines(860, 60), link(), requests, None);
    let responses: Vec<_> = served
        .responses
        .iter()
        .map(|response| parts(response))
        .collect();
    let text = |at: usize| String::from_utf8_lossy(responses[at].1).into_owned();
    let statuses: Vec<u16> = responses.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 204, 409, 201, 200, 204]);
    assert!(text(0).contains("\"recording\":true"), "{}", text(0));
    assert!(text(4).contains("\"session\":\"run-7\""), "{}", text(4));
    assert!(served.ns < 30_000_000_000, "{}", served.ns);
    assert_eq!(served.streams[0].lost, 0);
}

#[test]
fn readers_do_not_delay_new_files() {
    // At 4 MHz, readers take most of the time on the bus. Each of these begins while others still read. The ring lasts
    // longer than the durability window.
    let watchers = (0..100).map(|number: u64| Watcher {
        path: ["/sessions", "/REC00000?tar=1"][number as usize % 2],
        after_ns: number * 200_000_000,
    });
    let served = serve_while_recording(ServedSetup {
        clock_hz: 4_000_000,
        config: Config {
            rotate_us: Some(700_000),
            ..Config::default()
        },
        watchers: watchers.collect(),
        ..setup(image(), lines(230, 20), link())
    });
    let served = served.unwrap();
    let summary = served.streams[0];
    println!("{summary:?} {:?}", served.reads);
    assert_eq!((summary.lost, summary.window_breaches), (0, 0));
    assert!(served.reads.reads > 100, "{:?}", served.reads);
}

/// Returns the contents of a card with a directory of the given number of empty files. Does not use the crate fatfs,
/// which would take a minute.
fn image_with_names(names: usize) -> Image {
    let mut image = image();
    let entry = |name: &[u8], attributes: u8| {
        let mut entry = [0; 32];
        entry[..11].fill(b' ');
        entry[..name.len()].copy_from_slice(name);
        entry[11] = attributes;
        entry
    };
    let files = (0..names).map(|number| entry(format!("{number:08}TXT").as_bytes(), 0x20));
    let parents = [entry(b".", 0x10), entry(b"..", 0x10)];
    let entries: Vec<[u8; 32]> = parents.into_iter().chain(files).collect();
    {
        let stream = BlockStream::new(&mut image, VOLUME.blocks());
        let file_system = FileSystem::new(stream, FsOptions::new()).unwrap();
        let mut file = file_system.root_dir().create_file("MANY").unwrap();
        file.write_all(entries.as_flattened()).unwrap();
    }
    // Turn the file into a directory.
    image.change_each(|block| {
        for entry in block.as_chunks_mut::<32>().0 {
            if entry.starts_with(b"MANY       ") {
                entry[11] = 0x10;
                entry[28..].fill(0);
            }
        }
    });
    image
}

#[test]
fn a_folder_of_10_000_names_is_listed() {
    const NAMES: usize = 10_000;
    let watchers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map(|after_s| Watcher {
        path: match after_s % 2 {
            0 => "/list?dir=/MANY",
            _ => "/MANY/",
        },
        after_ns: after_s * 1_000_000_000,
    });
    let image = image_with_names(NAMES);
    let served = run_on(image, lines(860, 16), link(), Vec::new(), None, &watchers);
    let summary = served.streams[0];
    assert_eq!((summary.lost, summary.window_breaches), (0, 0));
    let (mut lists_ns, mut pages_ns) = (Vec::new(), Vec::new());
    for (pieces, watcher) in served.watched.iter().zip(&watchers) {
        let asked_ns = served.started_ns + watcher.after_ns;
        let first_ns = pieces[0].0 - asked_ns;
        match watcher.path.starts_with("/list") {
            true => lists_ns.push(first_ns),
            false => pages_ns.push(first_ns),
        }
        let last_ns = pieces.last().unwrap().0 - asked_ns;
        println!(
            "{}: first byte after {first_ns:?} ns, last after {last_ns} ns",
            watcher.path
        );
        let text: Vec<u8> = body_of(pieces).into_iter().map(|(_, byte)| byte).collect();
        let text = String::from_utf8(text).unwrap();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let found: HashSet<&str> = text.split(|c| !is_part(c)).collect();
        for number in 0..NAMES {
            let name = format!("{number:08}.TXT");
            assert!(found.contains(name.as_str()), "{name}");
        }
    }
    // Uses medians, because a stall of the card can delay any response. Before a page is sent, the whole folder is
    // searched for index.htm.
    let median_ns = |mut times_ns: Vec<u64>| {
        times_ns.sort_unstable();
        times_ns[times_ns.len() / 2]
    };
    let (list_ns, page_ns) = (median_ns(lists_ns), median_ns(pages_ns));
    assert!(list_ns <= 20_000_000, "{list_ns}");
    assert!(page_ns <= 200_000_000, "{page_ns}");
}

/// The recording continues at 344 kB/s during the download.
#[test]
fn a_day_of_70_mb_is_downloaded_in_60_s() {
    let stream = StreamSetup {
        config: StreamConfig {
            format: Format::Lines {
                header: "",
                line_bytes_max: 400,
            },
            ..lines(860, 1).config
        },
        samples: Box::new(Lines {
            rate_hz: 860,
            line_bytes: 400,
            count: 860 * 280,
        }),
        ..lines(860, 1)
    };
    let watcher = Watcher {
        path: "/days/unknown",
        after_ns: 210_000_000_000,
    };
    let served = run_watched(stream, link(), Vec::new(), None, &[watcher]);
    assert_eq!(served.streams[0].lost, 0);
    let pieces = &served.watched[0];
    let bytes: Vec<u8> = pieces.iter().flat_map(|(_, piece)| piece.clone()).collect();
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    assert!(length > 70_000_000, "{head}");
    assert_eq!(bytes.len() - end, length);
    assert_eq!(&bytes[end + 257..end + 262], b"ustar");
    let asked_ns = served.started_ns + watcher.after_ns;
    let took_ns = pieces.last().unwrap().0 - asked_ns;
    println!("{length} bytes in {took_ns} ns");
    assert!(took_ns <= 60_000_000_000, "{took_ns}");
}
