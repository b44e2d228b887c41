//! Rows of recordings. The encoder here was written from docs/formats.md; the reference for CSV is the export of
//! cardiograph-record.

use crate::memory;

use cardiograph_record::export_csv;
use cardiograph_server::*;
use memory::Memory;
use memory::client::{CONFIG, get, responses};
use memory::recorder::Recorder;
use memory::socket::{Clock, End, Socket};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

const EPOCH: u32 = 0x5F3A_9C01;

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 != 0 { 0xEDB8_8320 } else { 0 }
        })
    })
}

/// A binary recording of two streams with samples of 100 and 6 bytes.
#[derive(Default)]
struct Binary {
    bytes: Vec<u8>,
    age_ms: u32,
}

impl Binary {
    fn block(&mut self, kind: u8, stream: u8, first: u16, sample: u64, payload: &[u8]) {
        let index = (self.bytes.len() / 512) as u32;
        let mut block = [0; 512];
        block[0..4].copy_from_slice(&EPOCH.to_le_bytes());
        block[4..8].copy_from_slice(&index.to_le_bytes());
        block[12..14].copy_from_slice(&[kind, stream]);
        block[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        block[16..18].copy_from_slice(&first.to_le_bytes());
        block[20..28].copy_from_slice(&sample.to_le_bytes());
        block[32..36].copy_from_slice(&self.age_ms.to_le_bytes());
        block[36..36 + payload.len()].copy_from_slice(payload);
        let crc = crc32(&block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
        self.bytes.extend(block);
        self.age_ms += 10;
    }

    fn header(
        &mut self,
        stream: u8,
        next: u64,
        columns: &[&str],
        sample_bytes: usize,
        settings: &str,
    ) {
        let first = if stream == 0 { 1200 } else { 7 };
        let text = format!(
            "cardiograph recording 2\nprefix LOG\nnumber 12\nstreams 2\nfirst {first}\nat_us 60012345\n\
             sample_bytes {sample_bytes}\nsession run-3\nsettings {settings}\ncolumns {}\n{}\n",
            columns.len(),
            columns.join("\n")
        );
        for (at, part) in text.as_bytes().chunks(472).enumerate() {
            self.block(0, stream, (at * 472) as u16, next, part);
        }
    }

    /// Writes samples so that they continue in the next block; the last block is not full.
    fn samples(&mut self, stream: u8, first: u64, samples: &[Vec<u8>]) {
        let size = samples[0].len();
        let all = samples.concat();
        for (at, payload) in all.chunks(472).enumerate() {
            let offset = at * 472;
            let begun = offset.div_ceil(size);
            let begins_at = begun * size - offset;
            let field = match begins_at < payload.len() {
                true => begins_at as u16,
                false => u16::MAX,
            };
            self.block(1, stream, field, first + begun as u64, payload);
        }
    }

    fn gap(&mut self, stream: u8, first: u64, count: u64) {
        let numbers = [first, count, 70_000_000, 70_000_100];
        let mut payload: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        payload.push(3);
        self.block(2, stream, u16::MAX, first, &payload);
    }
}

const COLUMNS: [&str; 14] = [
    "time_ms u32",
    "a f64.6",
    "b with blanks f64.0",
    "c f64.9",
    "a_long_name_so_that_the_header_has_two_blocks_d f64.6",
    "a_long_name_so_that_the_header_has_two_blocks_e f64.6",
    "a_long_name_so_that_the_header_has_two_blocks_f f64.6",
    "a_long_name_so_that_the_header_has_two_blocks_g f64.6",
    "h u64",
    "i i64",
    "j f32.3",
    "k i32",
    "l i16",
    "m u16",
];
const SAMPLE_BYTES: usize = 4 + 9 * 8 + 4 + 4 + 2 + 2;

fn sample(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((number as u32 * 125).to_le_bytes());
    let values = [1.0 / 3.0, -2.5, f64::NAN, 1e300, -1e300, -0.0, 9.2e18];
    for (value, at) in values.iter().zip(0..) {
        bytes.extend((value + (number * at) as f64).to_le_bytes());
    }
    bytes.extend(number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    bytes.extend(
        (number as i64)
            .wrapping_mul(-0x1E37_79B9_7F4A_7C15)
            .to_le_bytes(),
    );
    bytes.extend((number as f32 / 7.0).to_le_bytes());
    bytes.extend((-(number as i32)).to_le_bytes());
    bytes.extend((-(number as i16)).to_le_bytes());
    bytes.extend((number as u16).to_le_bytes());
    assert_eq!(bytes.len(), SAMPLE_BYTES);
    bytes
}

fn small(number: u64) -> Vec<u8> {
    [
        (number as u32).to_le_bytes().as_slice(),
        &(number as u16).to_le_bytes(),
    ]
    .concat()
}

/// A recording with two streams, a gap, repeated headers and samples 1200 to 1499 of stream 0.
fn recording(settings: &str) -> Binary {
    let mut file = Binary::default();
    file.header(0, 1200, &COLUMNS, SAMPLE_BYTES, settings);
    let samples: Vec<_> = (1200..1300).map(sample).collect();
    file.samples(0, 1200, &samples[..50]);
    file.header(1, 7, &["n u32", "m u16"], 6, settings);
    file.samples(1, 7, &(7..200).map(small).collect::<Vec<_>>());
    file.samples(0, 1250, &samples[50..]);
    file.gap(0, 1300, 100);
    file.header(0, 1400, &COLUMNS, SAMPLE_BYTES, settings);
    file.samples(0, 1400, &(1400..1500).map(sample).collect::<Vec<_>>());
    file.samples(1, 200, &(200..300).map(small).collect::<Vec<_>>());
    file
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the CSV of a stream, as exported by cardiograph-record.
fn reference(bytes: &[u8], wanted: u8) -> String {
    let outputs: RefCell<Vec<(u8, Shared)>> = RefCell::default();
    let open = |stream, _| {
        let output = Shared::default();
        outputs.borrow_mut().push((stream, output.clone()));
        Ok(output)
    };
    export_csv(bytes, open, |_| ()).unwrap();
    let outputs = outputs.take();
    let (_, output) = outputs
        .iter()
        .find(|(stream, _)| *stream == wanted)
        .unwrap();
    String::from_utf8(output.0.take()).unwrap()
}

#[test]
fn a_binary_recording_as_csv() {
    for settings in ["gain=4 range=2", "gain=4,range=2"] {
        let memory = Memory::default();
        let file = recording(settings);
        memory.file("/LOG00012.BIN", &file.bytes);
        for stream in [0, 1] {
            let response = get(
                &memory,
                &format!("/LOG00012.BIN?format=csv&stream={stream}"),
            );
            assert_eq!((response.status, response.is_whole), (200, true));
            assert_eq!(
                response.field("Content-Type"),
                Some("text/csv; charset=utf-8")
            );
            assert_eq!(
                response.text(),
                reference(&file.bytes, stream),
                "stream {stream}"
            );
        }
    }
    let memory = Memory::default();
    memory.file("/LOG00012.BIN", &recording("x").bytes);
    assert_eq!(
        get(&memory, "/LOG00012.BIN?format=csv&stream=2").status,
        404
    );
    let saved = get(&memory, "/LOG00012.BIN?format=csv&download=1");
    assert_eq!(
        saved.field("Content-Disposition"),
        Some("attachment; filename*=UTF-8''LOG00012.BIN.csv")
    );
}

/// Rows of a recording of release 0.1, or of a picture, would be their bytes.
#[test]
fn binary_files_of_other_kinds_have_no_rows() {
    let memory = Memory::default();
    let old = include_bytes!("../../../tests/data/recordings/REC00002.BIN");
    memory.file("/REC00002.BIN", old);
    memory.file("/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    for path in ["/REC00002.BIN", "/picture.png"] {
        for query in ["format=csv", "from=0", "to=1", "format=csv&from=1"] {
            let response = get(&memory, &format!("{path}?{query}"));
            assert_eq!(response.status, 409, "{path} {query}");
            assert!(
                response.text().contains("cardiograph export"),
                "{path} {query}"
            );
        }
        assert_eq!(get(&memory, path).status, 200);
    }
    memory.file("/empty.csv", b"");
    assert_eq!(get(&memory, "/empty.csv?format=csv").status, 200);
}

/// Every block in turn is damaged or missing its end.
#[test]
fn damaged_recordings_as_csv() {
    let whole = recording("gain=4").bytes;
    let memory = Memory::default();
    // Without the header of stream 1, the reference also calls its samples damaged.
    let header = whole
        .chunks(512)
        .position(|block| block[12..14] == [0, 1])
        .unwrap();
    for block in (2..whole.len() / 512).filter(|block| *block != header) {
        let mut bytes = whole.clone();
        bytes[block * 512 + 100] ^= 1;
        if block % 3 == 0 {
            bytes.truncate(bytes.len() - 100);
        }
        memory.file("/a.BIN", &bytes);
        let response = get(&memory, "/a.BIN?format=csv");
        let expected = reference(&bytes, 0);
        assert!(
            response.text() == expected,
            "block {block}:\n{}",
            difference(response.text(), &expected)
        );
    }
}

fn difference(one: &str, other: &str) -> String {
    let pairs = one.lines().zip(other.lines());
    let found = pairs.enumerate().find(|(_, (one, other))| one != other);
    format!(
        "{found:?} {} {}",
        one.lines().count(),
        other.lines().count()
    )
}

#[test]
fn a_slice_of_a_binary_recording() {
    let memory = Memory::default();
    let file = recording("gain=4");
    memory.file("/a.BIN", &file.bytes);
    let whole = get(&memory, "/a.BIN?format=csv");
    let (names, rows) = split(whole.text());
    let blocks = file.bytes.len() as u32 / 512;
    for (from, to) in [
        (0, 3),
        (1, 7),
        (5, 12),
        (7, 7),
        (20, blocks),
        (0, blocks),
        (blocks, blocks + 9),
    ] {
        let query = format!(
            "/a.BIN?from={}.{:02}&to={}",
            from / 100,
            from % 100,
            f64::from(to) / 100.0
        );
        let response = get(&memory, &query);
        assert_eq!(response.status, 200, "{query}");
        let (slice_names, slice) = split(response.text());
        assert_eq!(slice_names, names);
        assert!(rows.contains(slice), "{query}");
    }
    assert_eq!(get(&memory, "/a.BIN?to=99999999").text(), whole.text());
    assert_eq!(get(&memory, "/a.BIN?from=0&to=").text(), whole.text());
    assert!(
        split(get(&memory, "/a.BIN?from=0.2&to=0.4").text())
            .1
            .lines()
            .count()
            > 5
    );
    for query in [
        "from=x",
        "from=1.2345",
        "to=-1",
        "format=ulog",
        "from=1&follow=1",
    ] {
        assert_eq!(
            get(&memory, &format!("/a.BIN?{query}")).status,
            400,
            "{query}"
        );
    }
}

/// Splits names and the line about the file from the rows.
fn split(text: &str) -> (&str, &str) {
    let end = text.match_indices('\n').nth(1).unwrap().0;
    text.split_at(end + 1)
}

/// A recording of text: row `number` for samples from 1200 on, a mark in block 0, in every 64th block and after
/// every 20 blocks.
fn text_recording(blocks: usize) -> (Vec<u8>, String) {
    let mut bytes = b"n,level,note\r\n,,#file number=12 first=1200 at_us=60012345\r\n".to_vec();
    let mut plain = String::from_utf8(bytes.clone()).unwrap();
    let (mut number, mut samples, mut lost) = (1200_u64, 0_u32, 0_u32);
    for index in 0..blocks {
        let is_marked = index == 0 || (index + 1) % 64 == 0 || index % 20 == 19;
        let end = (index + 1) * 512;
        let limit = if is_marked { end - 77 } else { end };
        while bytes.len() + 60 < limit || !is_marked && bytes.len() < end {
            let line = match number % 500 {
                499 => {
                    lost += 10;
                    number += 10;
                    format!(
                        ",,#gap first={} count=10 at_us=1 last_us=2 cause=busy\r\n",
                        number - 10
                    )
                }
                _ => {
                    samples += 1;
                    number += 1;
                    format!("{},{}.25\r\n", number - 1, number)
                }
            };
            bytes.extend(line.as_bytes());
            plain += &line;
        }
        if is_marked {
            let age_ms = index * 100;
            let tail = format!(
                "@{EPOCH:08X} {index:08X} 00000000 {samples:08X} 00000000 {lost:08X} {age_ms:08X} 00000000\r\n"
            );
            let spaces = end - bytes.len() - tail.len() - 3;
            bytes.extend(format!(",,#{}{tail}", " ".repeat(spaces)).as_bytes());
            assert_eq!(bytes.len(), end);
        }
    }
    (bytes, plain)
}

#[test]
fn text_without_marks_and_in_slices() {
    let memory = Memory::default();
    let (bytes, plain) = text_recording(300);
    memory.file("/a.CSV", &bytes);
    assert_eq!(get(&memory, "/a.CSV?format=csv").text(), plain);
    let (names, rows) = split(&plain);
    for (from, to) in [
        ("0", "10"),
        ("5", "9"),
        ("11", "20"),
        ("25", "90"),
        ("29.9", "30"),
    ] {
        let response = get(&memory, &format!("/a.CSV?from={from}&to={to}"));
        let (slice_names, slice) = split(response.text());
        assert_eq!(slice_names, names);
        assert!(rows.contains(slice), "{from} {to}");
        assert!(slice.len() < rows.len() && !slice.contains('@'));
    }
    // Each row is between a mark younger than the beginning and one 2 s older than the end.
    let slice = get(&memory, "/a.CSV?from=10&to=15");
    let rows = slice.text().lines().count();
    assert!((2700..3300).contains(&rows), "{rows}");
    memory.file("/foreign.csv", b"1,2\r\n3,4\r\n".repeat(200).as_slice());
    assert_eq!(
        get(&memory, "/foreign.csv?format=csv").body,
        b"1,2\r\n3,4\r\n".repeat(200)
    );
    assert_eq!(get(&memory, "/foreign.csv?from=1").status, 409);
    memory.file("/short.csv", b"a,b\n1,2\n");
    assert_eq!(get(&memory, "/short.csv?from=1").status, 409);
    assert_eq!(get(&memory, "/short.csv?format=csv").status, 200);
}

/// Returns the samples of `/live?all=1` that come from a file on the card, from `next` on.
fn replayed(path: &str, bytes: &[u8], first: u64, end: u64, next: u64) -> String {
    let memory = Memory::default();
    memory.file(path, bytes);
    let recorder = Recorder {
        next: end.into(),
        kept: 5,
        card: Some((RecordingPath::try_from(path).unwrap(), first)),
        ..Recorder::default()
    };
    let clock = Clock::default();
    let request = format!("GET /live?all=1&from={next} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    let mut socket = Socket::new(&clock, [request.into()], End::Close);
    let sent = socket.sent.clone();
    let server = Server::new(&memory, &recorder, &clock, CONFIG);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    responses(&sent.take(), &[]).remove(0).text().to_string()
}

/// Checks that each sample occurs once, or is in a gap; returns the rows.
fn checked(text: &str, first: u64, end: u64) -> Vec<(u64, String)> {
    let (mut next, mut rows) = (first, Vec::new());
    for event in text.split("\n\n").filter(|event| event.contains("id: ")) {
        for line in event.lines() {
            if let Some(gap) = line.strip_prefix("data: {\"first\":") {
                let mut fields = gap.split([',', ':']);
                assert_eq!(fields.next().unwrap().parse(), Ok(next));
                next += fields.nth(1).unwrap().parse::<u64>().unwrap();
            } else if let Some(row) = line.strip_prefix("data: ") {
                let (number, row) = row.split_once(',').unwrap();
                assert_eq!(number.parse(), Ok(next), "{event}");
                rows.push((next, row.to_string()));
                next += 1;
            }
        }
        let id: u64 = event.split("id: ").nth(1).unwrap().trim().parse().unwrap();
        assert_eq!(id, next - 1);
    }
    assert_eq!(next, end);
    rows
}

#[test]
fn samples_come_from_the_card_once_each() {
    let file = recording("gain=4");
    let csv = reference(&file.bytes, 0);
    let expected: Vec<&str> = csv
        .lines()
        .filter(|line| !line.contains('#'))
        .skip(1)
        .collect();
    for next in [1200, 1201, 1249, 1250, 1299, 1300, 1350, 1400, 1401, 1494] {
        let text = replayed("/LOG00012.BIN", &file.bytes, 1200, 1500, next);
        let rows = checked(&text, next, 1500);
        for (number, row) in rows.iter().filter(|(number, _)| *number < 1495) {
            let at = match number {
                ..1300 => number - 1200,
                _ => number - 1300,
            };
            assert_eq!(row, expected[at as usize], "{number}");
        }
        let missing = 1400_u64.saturating_sub(next).min(100);
        assert_eq!(rows.len() as u64, 1500 - next - missing, "from {next}");
    }
    // A damaged block becomes a gap.
    let mut damaged = file.bytes.clone();
    damaged[512 * 5 + 40] ^= 1;
    let rows = checked(&replayed("/a.BIN", &damaged, 1200, 1500, 1200), 1200, 1500);
    assert!((185..199).contains(&rows.len()), "{}", rows.len());
}

/// A gap of a damaged file may end at any number.
#[test]
fn a_gap_at_the_last_number_ends_the_rows() {
    let (mut bytes, _) = text_recording(1);
    let gap = format!(
        ",,#gap first={} count=10 at_us=1 last_us=2 cause=busy\r\n",
        u64::MAX - 5
    );
    bytes.extend(gap.as_bytes());
    bytes.extend(b"1,2.25\r\n1,2.25\r\n");
    bytes.resize(2 * 512, b' ');
    let text = replayed("/LOG00012.CSV", &bytes, 1200, 1500, 1200);
    let lost = r#"data: {"first":18446744073709551610,"count":5,"cause":"gap"}"#;
    let (before, after) = text.split_once(lost).unwrap();
    assert!(before.contains("data: 1200,1200,1201.25\n"), "{text}");
    // No number follows the highest one.
    assert_eq!(after.matches("data: 18446744073709551615,").count(), 2);
}

#[test]
fn samples_come_from_text_once_each() {
    let (bytes, plain) = text_recording(300);
    let last: u64 = plain
        .lines()
        .next_back()
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    for next in [1200, 1201, 1499, 1505, 2000, 5000, last - 10] {
        let rows = checked(
            &replayed("/a.CSV", &bytes, 1200, last + 1, next),
            next,
            last + 1,
        );
        for (number, row) in rows.iter().filter(|(number, _)| *number < last - 4) {
            assert_eq!(*row, format!("{number},{}.25", number + 1));
        }
    }
}

/// A line with a mark may begin in the previous block; the same bytes may also begin a gap.
#[test]
fn lines_at_the_ends_of_blocks() {
    let tail = |index: usize| {
        format!(
            "@{EPOCH:08X} {index:08X} 00000000 00000000 00000000 00000000 00000000 00000000\r\n"
        )
    };
    let first = "n,l,note\r\n,,#file number=1 first=0 at_us=1\r\n0,0\r\n";
    let spaces = " ".repeat(512 - first.len() - 3 - tail(0).len());
    let mut bytes = format!("{first},,#{spaces}{}", tail(0));
    let mut plain = first.to_string();
    for (end, is_mark) in [
        (",,#      ", true),
        (",,#", true),
        (",", true),
        (",,", false),
        (",,#", false),
        ("", true),
    ] {
        let fill = format!("1,{}\r\n", "7".repeat(512 - end.len() - 4));
        let index = bytes.len() / 512 + 1;
        bytes += &fill;
        bytes += end;
        plain += &fill;
        let missing = &",,#"[end.trim_end().len()..];
        if is_mark {
            bytes += missing;
            bytes += &" ".repeat(512 - missing.len() - tail(index).len());
            bytes += &tail(index);
        } else {
            let gap = format!("{missing}gap first=2 count=1 at_us=1 last_us=2 cause=busy\r\n");
            let fill = format!("1,{}\r\n", "8".repeat(512 - gap.len() - 4));
            bytes += &gap;
            bytes += &fill;
            plain += end;
            plain += &gap;
            plain += &fill;
        }
        assert_eq!(bytes.len() % 512, 0);
    }
    bytes += "2,2\r\n,,";
    plain += "2,2\r\n,,";
    let memory = Memory::default();
    for piece_bytes in [512, 700, 4096] {
        memory.piece_bytes.set(piece_bytes);
        memory.file("/a.CSV", bytes.as_bytes());
        assert_eq!(get(&memory, "/a.CSV?format=csv").text(), plain);
    }
}
