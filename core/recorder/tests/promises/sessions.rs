//! Sessions, from the producer to the files on the card.

use crate::fat_rig::{Rig, check, done};
use crate::logger_rig::{Case, Input, Moment, Outcome, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Column, Control, Format, IndexRecord, Kind, Schema, Session};
use std::cell::Cell;

const FORMAT: Format = Format::Lines {
    header: "",
    line_bytes_max: LINE_BYTES,
};

fn session(name: &str, settings: &str) -> Session {
    Session::new(name, None, settings, &FORMAT).unwrap()
}

/// Returns the index records of a stream's files.
fn index<const N: usize>(outcome: &Outcome<N>, stream: usize) -> Vec<IndexRecord> {
    let mut rig = Rig::mounted(outcome.disk.clone());
    let (mut records, prefix) = (Vec::new(), [b'A' + stream as u8; 3]);
    let Rig { volume, disk, .. } = &mut rig;
    done(volume.list_folder(disk, prefix, 0, |record| records.push(*record))).unwrap();
    records
}

/// Returns the contents of a file in the first folder of a stream.
fn content<const N: usize>(outcome: &Outcome<N>, stream: usize, number: u32) -> Vec<u8> {
    let listing = check(&outcome.disk, 0).unwrap();
    let wanted = format!("{0}{0}{0}{number:05}", (b'A' + stream as u8) as char);
    let mut files = listing.files.iter();
    let file = files.find(|(name, _)| name.contains(&format!("/{wanted}")));
    let (_, entry) = file.unwrap_or_else(|| panic!("{wanted} not in {:?}", listing.files.keys()));
    let blocks = entry.blocks.iter();
    let mut bytes: Vec<u8> = blocks
        .flat_map(|block| *outcome.disk.block(*block))
        .collect();
    bytes.truncate(entry.size as usize);
    bytes
}

/// Returns the indices of the samples in a text file.
fn samples(content: &[u8]) -> Vec<u64> {
    let lines = content.split(|byte| *byte == b'\n');
    let text = lines.filter_map(|line| std::str::from_utf8(line.get(..11)?).ok());
    text.filter_map(|index| index.parse().ok()).collect()
}

#[test]
fn a_producer_begins_a_session_at_its_sample_in_a_file_of_its_own() {
    let control = Control::new();
    let case = Case {
        sessions: vec![
            (0, 0, session("zero-field", "coils=off")),
            (0, 700, session("Field_1", "coils=3 A, led=red")),
            (0, 1500, session("zero-field", "")),
        ],
        ..case(&control, 1 << 20, 30_000)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 2_000)], |_| ());
    assert_all_written(&outcome, 0);
    let expected = [
        ("zero-field", "coils=off", 0..700),
        ("Field_1", "coils=3 A, led=red", 700..1500),
        ("zero-field", "", 1500..2000),
    ];
    let listed = index(&outcome, 0);
    assert_eq!(listed.len(), expected.len());
    for (number, (name, settings, range)) in (1..).zip(expected) {
        let content = content(&outcome, 0, number);
        assert_eq!(samples(&content), range.clone().collect::<Vec<u64>>());
        let first_line = String::from_utf8_lossy(&content[..content.len().min(300)]);
        let first_line = first_line.lines().next().unwrap();
        assert!(first_line.contains(name), "{first_line}");
        assert!(first_line.contains(settings), "{first_line}");
        let record = &listed[number as usize - 1].record;
        assert_eq!(record.session.as_str(), name);
        assert_eq!((record.samples, record.lost), (range.end - range.start, 0));
        assert!(record.first_us < record.last_us);
        assert_eq!(
            listed[number as usize - 1].created,
            None,
            "a date without a clock"
        );
    }
    assert!(listed.is_sorted_by(|one, next| one.record.last_us <= next.record.first_us));
}

#[test]
fn a_session_has_its_name_in_the_files_long_name() {
    let control = Control::new();
    let case = Case {
        sessions: vec![(0, 300, session("Rotating-field_12", ""))],
        ..case(&control, 1 << 20, 30_000)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 600)], |_| ());
    let seen = crate::fat_rig::long_names(&outcome.disk);
    let expected = ["AAA00001.CSV", "AAA00002 Rotating-field_12.CSV"];
    for name in expected {
        assert!(
            seen.iter().any(|seen| seen.ends_with(name)),
            "{name} of {seen:?}"
        );
    }
}

#[test]
fn a_control_begins_a_session_of_all_streams() {
    let control = Control::new();
    let case = case(&control, 1 << 20, 40_000);
    let asked = Cell::new(false);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 3_000),
        lines(16_384, LINE_BYTES, 3_000, 1_000),
    ];
    let outcome = record(case, inputs, |moment: &Moment| {
        if moment.pushed[0] > 1_000 && !asked.replace(true) {
            control.begin_session(&session("both", "")).unwrap();
        }
    });
    for stream in 0..2 {
        assert_all_written(&outcome, stream);
        let listed = index(&outcome, stream);
        let names: Vec<_> = listed.iter().map(|it| it.record.session.as_str()).collect();
        assert_eq!(names, ["", "both"]);
        let boundary = *samples(&content(&outcome, stream, 2)).first().unwrap();
        let expected = [1_001, 335][stream];
        assert!(boundary.abs_diff(expected) < 200, "{boundary}");
        assert_eq!(listed[1].record.samples, outcome.pushed[stream] - boundary);
    }
}

/// A stream begins a session with its next sample, so a slow one may still have to begin the session before.
#[test]
fn a_slow_stream_begins_every_session() {
    let control = Control::new();
    let case = case(&control, 1 << 20, 40_000);
    let asked = Cell::new(0);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 10_000),
        lines(16_384, LINE_BYTES, 2_000_000, 5),
    ];
    let outcome = record(case, inputs, |moment: &Moment| {
        let (number, name) = match moment.pushed[0] {
            ..1_000 => return,
            1_000..1_100 => (1, "one"),
            _ => (2, "two"),
        };
        if asked.replace(number) != number {
            control.begin_session(&session(name, "")).unwrap();
            if number == 2 {
                assert!(control.begin_session(&session("late", "")).is_err());
            }
        }
    });
    for stream in 0..2 {
        assert_all_written(&outcome, stream);
        let listed = index(&outcome, stream);
        let names: Vec<_> = listed.iter().map(|it| it.record.session.as_str()).collect();
        assert_eq!(names, ["", "one", "two"], "stream {stream}");
    }
    control.begin_session(&session("next", "")).unwrap();
}

#[test]
fn rotation_keeps_the_session_and_its_columns() {
    let control = Control::new();
    let case = Case {
        sessions: vec![(0, 100, session("long", "a=1"))],
        ..case(&control, 128 << 10, 30_000)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 500, 9_000)], |_| ());
    assert_all_written(&outcome, 0);
    let listed = index(&outcome, 0);
    assert!(listed.len() > 4, "{}", listed.len());
    for (number, record) in (1..).zip(&listed).skip(1) {
        assert_eq!(record.record.session.as_str(), "long");
        let content = content(&outcome, 0, number);
        let first_line = String::from_utf8_lossy(&content[..200]).into_owned();
        assert!(
            first_line.lines().next().unwrap().contains("a=1"),
            "{first_line}"
        );
    }
}

#[test]
fn a_session_that_begins_on_a_full_card_keeps_every_sample_accounted_for() {
    let control = Control::new();
    let case = Case {
        sessions: vec![(0, 38_000, session("late", ""))],
        ..case(&control, 256 << 10, SMALL_BLOCKS)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 40_000)], |_| ());
    let files = files(&outcome.disk, 0);
    files.assert_sound(40_000);
    assert_in_one_place(&files, &reported_gaps(&outcome, 0), 40_000);
}

const NARROW: Schema = Schema::new(&[Column {
    name: "narrow",
    kind: Kind::U32,
}]);
const WIDE: Schema = Schema::new(&[
    Column {
        name: "wide",
        kind: Kind::U64,
    },
    Column {
        name: "other",
        kind: Kind::U16,
    },
]);
const SCHEMAS: Format = Format::Csv(&[NARROW, WIDE]);

#[test]
fn a_session_may_change_the_columns() {
    let control = Control::new();
    let wide = Session::new("wide", Some(&WIDE), "", &SCHEMAS).unwrap();
    let case = Case {
        sessions: vec![(0, 500, wide)],
        ..case(&control, 1 << 20, 30_000)
    };
    let input = Input {
        format: SCHEMAS,
        make: Box::new(|index| match index {
            ..500 => (index as u32).to_le_bytes().to_vec(),
            _ => [&index.to_le_bytes()[..], &7_u16.to_le_bytes()].concat(),
        }),
        ..lines(16_384, LINE_BYTES, 1_000, 1_000)
    };
    let outcome = record(case, [input], |_| ());
    let rows = |number| {
        let text = String::from_utf8(content(&outcome, 0, number)).unwrap();
        let rows = text.lines().filter(|row| !row.contains('#'));
        rows.map(str::to_string).collect::<Vec<_>>()
    };
    let (narrow, wide) = (rows(1), rows(2));
    assert_eq!(
        (narrow[0].as_str(), wide[0].as_str()),
        ("narrow,note", "wide,other,note")
    );
    assert_eq!((narrow.len(), wide.len()), (501, 501));
    assert_eq!((narrow[500].as_str(), wide[1].as_str()), ("499", "500,7"));
    let summary = outcome.summaries.unwrap()[0];
    assert_eq!((summary.written, summary.lost), (1_000, 0));
}
