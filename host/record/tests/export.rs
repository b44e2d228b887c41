//! Exports of binary recordings, compared with the CSV that the recorder itself writes for the same samples.

use cardiograph_record::{
    DirectoryStream, ExportError, Exported, Feed, LiveFeed, LiveSetup, export_csv,
    record_in_directory,
};
use cardiograph_recorder::{
    Column, Config, Format, Kind, LINE_BYTES_MAX, Schema, StreamConfig, Window,
};
use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};

const SCHEMA: Schema = {
    const fn column(name: &'static str, kind: Kind) -> Column {
        Column { name, kind }
    }
    Schema::new(&[
        column("time_us", Kind::U64),
        column("small", Kind::U8),
        column("short", Kind::I16),
        column("middle", Kind::U16),
        column("wide", Kind::I32),
        column("plain", Kind::U32),
        column("long", Kind::I64),
        column("volts", Kind::F32(3)),
        column("precise", Kind::F64(9)),
    ])
};
const SAMPLES: u64 = 700;

/// Samples of random bits, which include special values such as infinities.
struct Bits;

impl Feed for Bits {
    fn count(&self) -> u64 {
        SAMPLES
    }

    fn due_ns(&self, index: u64) -> u64 {
        index * 20_000
    }

    fn make(&self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let len = SCHEMA.sample_bytes();
        // SplitMix64.
        let mut state = index << 32;
        for byte in &mut sample[..len] {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            *byte = (mixed >> 56) as u8;
        }
        len
    }

    fn bytes(&self) -> u64 {
        SAMPLES * SCHEMA.sample_bytes() as u64
    }

    fn format(&self) -> Format {
        Format::Binary(&[SCHEMA])
    }
}

fn recorded(format: Format) -> Vec<u8> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let stream = DirectoryStream {
        config: StreamConfig {
            prefix: *b"REC",
            format,
            window: Window::Us(1_000_000),
        },
        ring_bytes: 1 << 20,
        feed: LiveFeed::Clock(Box::new(Bits)),
    };
    let setup = LiveSetup {
        config: Config {
            file_bytes: 1 << 20,
            ..Config::default()
        },
        length: None,
        is_stopped: &|| false,
        monitor: None,
    };
    let logged = record_in_directory(directory.path(), &setup, [stream], |_, _| ()).unwrap();
    assert_eq!(logged.summaries[0].written, SAMPLES);
    let extension = String::from_utf8(format.extension().to_vec()).unwrap();
    fs::read(
        directory
            .path()
            .join(format!("REC00000/REC00001.{extension}")),
    )
    .unwrap()
}

struct Shared<'a>(&'a RefCell<Vec<u8>>);

impl Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exported(bytes: &[u8]) -> (Exported, String, Vec<(u64, u64)>) {
    let (text, mut damaged) = (RefCell::new(Vec::new()), Vec::new());
    let open = |_, streams| {
        assert_eq!(streams, 1);
        Ok(Shared(&text))
    };
    let exported = export_csv(bytes, open, |range| damaged.push(range.into_inner())).unwrap();
    (
        exported,
        String::from_utf8(text.into_inner()).unwrap(),
        damaged,
    )
}

/// Removes the rows that the recorder adds, because its checkpoint marks depend on times and block
/// boundaries.
fn rows(text: &str) -> String {
    let rows = text.split_inclusive('\n');
    rows.filter(|row| !row.contains('#')).collect()
}

#[test]
fn an_export_equals_the_csv_of_the_recorder() {
    let (exported, text, damaged) = exported(&recorded(Format::Binary(&[SCHEMA])));
    assert_eq!((exported.samples, exported.damaged_blocks), (SAMPLES, 0));
    assert_eq!(damaged, []);
    let csv = String::from_utf8(recorded(Format::Csv(&[SCHEMA]))).unwrap();
    assert_eq!(rows(&text), rows(&csv));
    let about = |text: &str| {
        let row = text.lines().nth(1).unwrap().to_string();
        row.split_once(" at_us=").unwrap().0.to_string()
    };
    assert_eq!(about(&text), ",,,,,,,,,#file number=1 first=0");
    assert_eq!(about(&text), about(&csv));
    assert_eq!(text.lines().filter(|row| row.contains('#')).count(), 1);
}

#[test]
fn damaged_blocks_are_reported_and_everything_else_is_exported() {
    let mut bytes = recorded(Format::Binary(&[SCHEMA]));
    let (_, whole, _) = exported(&bytes);
    for at in [5 * 512 + 77, 6 * 512, 9 * 512 + 511] {
        bytes[at] ^= 0x20;
    }
    bytes.extend([7; 100]);
    let last = bytes.len() as u64 / 512;
    let (exported, text, damaged) = exported(&bytes);
    assert_eq!(damaged, [(5, 6), (9, 9), (last, last)]);
    assert_eq!(exported.damaged_blocks, 4);
    let notes = text.lines().skip(2);
    let notes: Vec<_> = notes.filter_map(|row| row.split_once('#')).collect();
    let commas = ",".repeat(SCHEMA.columns().len());
    let blocks = [
        "5..6".to_string(),
        "9..9".to_string(),
        format!("{last}..{last}"),
    ];
    let expected: Vec<_> = blocks
        .iter()
        .map(|blocks| format!("damaged blocks={blocks}"))
        .collect();
    assert_eq!(
        notes,
        Vec::from_iter(expected.iter().map(|note| (&commas[..], &note[..])))
    );
    // Only samples that touch the damaged blocks are missing, and the others are in order.
    let mut rows = whole.lines();
    for row in text.lines().filter(|row| !row.contains('#')) {
        assert!(rows.any(|other| other == row), "{row}");
    }
    let missing = SAMPLES - exported.samples;
    let touched = 3 * (472 / SCHEMA.sample_bytes() as u64 + 2);
    assert!(0 < missing && missing <= touched, "{missing}");
}

#[test]
fn other_files_are_rejected() {
    for bytes in [&b""[..], b"time,value\r\n", &[0; 2048]] {
        let refused = export_csv(bytes, |_, _| Ok(Vec::new()), |_| ());
        assert!(matches!(refused, Err(ExportError::NoHeader)), "{refused:?}");
    }
}
