//! Recordings as loggers leave them: odd rows, restarts, dates in any layout, several sources in one file.

use cardiograph_trace::{DateOrder, Loaded, ReadOptions, Recording, TimeUnit, read_from};
use std::fmt::Write;

fn read(text: &str, options: &ReadOptions) -> Result<Recording, String> {
    match read_from("log.csv", text.as_bytes(), options) {
        Ok(Loaded::Recording(recording)) => Ok(recording),
        Ok(Loaded::Trace(trace)) => Err(format!("{} writes", trace.len())),
        Ok(_) => Err("a histogram or statistics".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn recording(text: &str) -> Recording {
    read(text, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the steps in ms.
fn steps_ms(recording: &Recording) -> Vec<u64> {
    let steps = recording.trace.operations();
    steps.map(|o| (o.end_ns - o.start_ns) / 1_000_000).collect()
}

/// Returns the steps that are not `usual_ms`.
fn unusual_ms(recording: &Recording, usual_ms: u64) -> Vec<u64> {
    let mut steps = steps_ms(recording);
    steps.retain(|step| *step != usual_ms);
    steps
}

fn has_note(recording: &Recording, part: &str) -> bool {
    recording
        .trace
        .about
        .notes
        .iter()
        .any(|note| note.contains(part))
}

/// A text with the given header and rows of `row` for 0, 1, 2, ...
fn table(header: &str, count: u64, row: impl Fn(u64) -> String) -> String {
    let rows = (0..count).map(|n| row(n) + "\n");
    format!("{header}\n{}", rows.collect::<String>())
}

#[test]
fn the_number_of_a_column_is_never_the_text_of_a_cell() {
    let text = table("#,n,Date Time", 30, |n| {
        format!("{n},{},2026-03-14 14:00:{n:02}", n * n)
    });
    let third = ReadOptions {
        time_column: Some("3".to_owned()),
        ..ReadOptions::default()
    };
    assert_eq!(
        unusual_ms(&read(&text, &third).unwrap(), 1000),
        Vec::<u64>::new()
    );
    // Dates need no unit.
    let in_seconds = ReadOptions {
        time_unit: TimeUnit::named("s"),
        ..third
    };
    let found = read(&text, &in_seconds).unwrap();
    assert!(has_note(&found, "so --time-unit has no effect"));
    // A row has a "2" in its first column.
    let second = ReadOptions {
        time_column: Some("2".to_owned()),
        time_unit: TimeUnit::named("s"),
        ..ReadOptions::default()
    };
    assert_eq!(
        steps_ms(&read(&text, &second).unwrap())[..3],
        [1000, 3000, 5000]
    );
}

#[test]
fn rows_without_a_time_are_skipped_and_rows_without_another_value_are_not() {
    let text = table("time_ms,ax,event", 40, |n| match n {
        7 => ",3,".to_owned(),
        9 => format!("{},,start", n * 100),
        _ => format!("{},{n},", n * 100),
    });
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 100)), (39, vec![200]));
    assert!(has_note(
        &found,
        "Skipped 1 row without a time (first in line 9)."
    ));
}

#[test]
fn odd_rows_are_skipped_and_the_first_is_named() {
    for (odd, reason, missing) in [
        ("49", "expected 3 fields, found 1", true),
        ("time_ms,a,b", "the names of the columns again", false),
        ("err,0,0", "the time is \"err\"", false),
        ("9999999,1,2", "its time does not fit", false),
        ("3,1,2", "its time does not fit", false),
        ("4x0,1,2", "the time is \"4x0\"", true),
    ] {
        let mut text = String::from("time_ms,a,b\n");
        for n in 0..100 {
            match n {
                50 if missing => writeln!(text, "{odd}").unwrap(),
                50 => writeln!(text, "{odd}\n{},1,2", n * 10).unwrap(),
                _ => writeln!(text, "{},1,2", n * 10).unwrap(),
            }
        }
        let found = recording(&text);
        let expected = if missing { vec![20] } else { vec![] };
        assert_eq!(unusual_ms(&found, 10), expected, "{odd}");
        let note = format!("Skipped 1 row (line 52: {reason}");
        assert!(
            has_note(&found, &note),
            "{odd}: {:?}",
            found.trace.about.notes
        );
    }
}

#[test]
fn rows_of_different_lengths_are_samples() {
    let text = table("No,Time,a,b", 40, |n| {
        let last = if n % 4 == 0 { ",3.6" } else { "" };
        format!("{n},30.04.2026 15:00:{n:02},20.5{last}")
    });
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 1000)), (40, vec![]));
}

#[test]
fn rows_of_units_and_properties_below_the_names_are_skipped() {
    let names = "\"TOA5\",\"1234\",\"CR1000X\"\n\"TIMESTAMP\",\"RECORD\",\"Ux\"\n\"TS\",\"RN\",\"m/s\"\n\"\",\"\",\"Smp\"";
    let text = table(names, 40, |n| {
        let n = n + u64::from(n > 20);
        format!("\"2026-06-07 12:45:{:02}.{:02}\",{n},5", n / 20, n % 20 * 5)
    });
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 50)), (40, vec![100]));
    assert_eq!(found.time_column, "TIMESTAMP");
    assert!(has_note(&found, "--sequence-column RECORD"));
}

#[test]
fn a_clock_that_restarts_begins_another_run() {
    let mut text = String::from("millis,temp\n");
    for _ in 0..3 {
        (0..50).for_each(|n| writeln!(text, "{},{n}", 500 + n * 100).unwrap());
    }
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 100)), (150, vec![]));
    let runs: Vec<(&str, u64)> = found
        .runs
        .iter()
        .map(|run| (&run.label[..], run.samples))
        .collect();
    assert_eq!(
        runs,
        [
            ("run 1 (from line 2)", 50),
            ("run 2 (from line 52)", 50),
            ("run 3 (from line 102)", 50)
        ]
    );
    // The interval between two runs is no operation.
    assert_eq!(found.trace.len(), 147);
}

#[test]
fn two_swapped_rows_are_put_in_order() {
    let text = table("time_ms,a", 40, |n| match n {
        20 => "210,1".to_owned(),
        21 => "200,1".to_owned(),
        _ => format!("{},1", n * 10),
    });
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 10)), (40, vec![]));
    assert!(has_note(
        &found,
        "Put 1 row in order, which came after a later one (first in line 23)."
    ));
}

#[test]
fn an_hour_set_back_is_noted_and_recording_continues() {
    let text = table("time,temp", 120, |n| {
        let minute = n % 60;
        let hour = if n < 60 { 2 } else { 2 + (n - 60) / 60 };
        format!("2026-10-25 {hour:02}:{minute:02}:00,20")
    });
    let found = recording(&text);
    assert_eq!((found.samples, unusual_ms(&found, 60_000)), (120, vec![]));
    assert!(has_note(&found, "set back by an hour in line 62"));
}

#[test]
fn names_of_columns_with_dates_are_found() {
    for name in [
        "Date Time",
        "Date/Time",
        "\"Date Time, GMT+01:00\"",
        "Local Time",
        "LoggedAt",
        "date_time",
        "Timestamp (UTC)",
        "Time (UTC)",
        "Measured on",
    ] {
        let text = table(&format!("{name},temp"), 30, |n| {
            format!("2026-11-22 13:59:{n:02},{n}.5")
        });
        assert_eq!(
            unusual_ms(&recording(&text), 1000),
            Vec::<u64>::new(),
            "{name}"
        );
    }
    let text = table("rtcDate,rtcTime,aX", 30, |n| {
        format!("03/04/2026,14:00:00.{n:02},1.00")
    });
    assert_eq!(unusual_ms(&recording(&text), 10), Vec::<u64>::new());
}

#[test]
fn an_ambiguous_date_is_asked_for() {
    let text = table("time,temp", 30, |n| {
        format!("{:02}/02/26 00:00:00,1", n % 3 + 1 + n / 3 % 2 * 5)
    });
    let message = read(&text, &ReadOptions::default()).err().unwrap();
    assert!(message.contains("--date-order dmy"), "{message}");
    let months = table("time,temp", 12, |n| {
        format!("01/{:02}/26 00:00:00,1", n + 1)
    });
    let steps_days = |order| {
        let options = ReadOptions {
            date_order: DateOrder::named(order),
            ..ReadOptions::default()
        };
        steps_ms(&read(&months, &options).unwrap())[0] / 86_400_000
    };
    assert_eq!((steps_days("dmy"), steps_days("mdy")), (31, 1));
}

#[test]
fn each_group_is_counted_alone() {
    let text = table("time_ms,sensor,v", 200, |n| {
        let n = n + u64::from(n > 100);
        format!("{},{},1", n * 5, if n % 2 == 0 { "a" } else { "b" })
    });
    let options = ReadOptions {
        group_column: Some("sensor".to_owned()),
        ..ReadOptions::default()
    };
    let found = read(&text, &options).unwrap();
    let runs: Vec<(&str, u64)> = found
        .runs
        .iter()
        .map(|run| (&run.label[..], run.samples))
        .collect();
    assert_eq!(runs, [("sensor a", 101), ("sensor b", 99)]);
    assert_eq!(unusual_ms(&found, 10), [20]);
    assert!(has_note(&recording(&text), "add --group-by sensor"));
}

#[test]
fn columns_of_different_rates_are_counted_alone() {
    let text = table("time_ms,gyro_x,gyro_y,gps,event", 400, |n| {
        let gyro = if n % 10 == 5 || n == 201 { "," } else { "1,2" };
        let gps = if n % 10 == 5 && n != 105 { "48.1" } else { "" };
        format!("{},{gyro},{gps},", n * 10 + n / 10 % 2)
    });
    let found = recording(&text);
    let labels: Vec<&str> = found.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["gyro_x, gyro_y", "gps"]);
    assert_eq!(found.runs[1].samples, 39);
    // A column with a value in every row holds the times of all samples.
    let sparse = table("time_ms,ax,lat", 60, |n| {
        format!("{},{n},{}", n * 100, if n == 0 { "47.1" } else { "" })
    });
    assert_eq!(recording(&sparse).runs.len(), 1);
}

#[test]
fn sequence_numbers_count_losses_across_a_wrap() {
    let text = table("time_ms,seq", 400, |n| {
        let n = n + if n > 300 { 4 } else { 0 };
        format!("{},{}", n * 10, (n + 100) % 256)
    });
    let options = ReadOptions {
        sequence_column: Some("seq".to_owned()),
        ..ReadOptions::default()
    };
    let sequence = read(&text, &options).unwrap().sequence.unwrap();
    assert_eq!((sequence.lost, sequence.repeated), (4, 0));
}

#[test]
fn readings_of_a_clock_are_no_latencies() {
    let mut swapped: Vec<u64> = (0..300).map(|n| 1_000_017 + n * 10_000).collect();
    swapped.swap(150, 151);
    let repeated = (0..300).map(|n| 7884 + n / 10 * 100).collect();
    for (times, name) in [(swapped, "swapped"), (repeated, "repeated")] {
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        for unit in ["us", "ns"] {
            let options = ReadOptions {
                time_unit: TimeUnit::named(unit),
                ..ReadOptions::default()
            };
            let message = read(&text, &options).err().unwrap();
            assert!(message.contains("--time-column 1"), "{name}: {message}");
        }
    }
    // Latencies of a coarse clock fall as often as they rise.
    let coarse: String = (0..300)
        .map(|n| if n % 97 == 5 { "70\n" } else { "2\n" })
        .collect();
    assert_eq!(
        read(&coarse, &ReadOptions::default()).err().unwrap(),
        "300 writes"
    );
}

#[test]
fn block_traces_of_other_programs_are_writes() {
    let filetime = |n: u64| {
        format!(
            "{},hx,1,{},{},4096,{}",
            128_166_372_003_061_629 + n * 877_412,
            ["Write", "Read"][n as usize % 2],
            n * 4096,
            8000 + n * 7 % 30
        )
    };
    let response = |n: u64| {
        format!(
            "{}.5,0.0008{:02},{},1,{},4096",
            1_455_592_800 + n,
            n * 7 % 40,
            ["W", "R"][n as usize % 2],
            n * 4096
        )
    };
    let biosnoop = |n: u64| {
        format!(
            "{n}.000000000    my program       17553  sdb     W  {}         4096        0.8{:02}",
            n * 8,
            n * 7 % 40
        )
    };
    for (text, median_ns) in [
        (
            table(
                "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
                40,
                filetime,
            ),
            802_000,
        ),
        (table(&filetime(0), 40, filetime), 802_000),
        (
            table("Timestamp,Response,IOType,LUN,Offset,Size", 40, response),
            820_000,
        ),
        (table(&biosnoop(0), 40, biosnoop), 820_000),
    ] {
        let trace = match read_from("a.csv", text.as_bytes(), &ReadOptions::default()) {
            Ok(Loaded::Trace(trace)) => trace,
            Ok(_) => panic!("no writes: {text}"),
            Err(error) => panic!("{error}: {text}"),
        };
        let mut latencies: Vec<u64> = trace
            .operations()
            .filter(|o| o.kind == cardiograph_trace::OperationKind::Write)
            .map(|o| o.end_ns - o.start_ns)
            .collect();
        latencies.sort_unstable();
        let near = latencies[latencies.len() / 2].abs_diff(median_ns);
        assert!(near <= 2_000, "{latencies:?}");
    }
}

#[test]
fn other_formats_are_named_with_the_program_that_decodes_them() {
    for (start, name, program) in [
        (
            &b"H Product:Blackbox flight data recorder by Nicholas Sherlock\n"[..],
            "Betaflight",
            "blackbox_decode",
        ),
        (b"\xa3\x95\x80\x80\x59FMT", "ArduPilot", "mavlogdump.py"),
        (
            b"FMT, 128, 89, FMT, BBnNZ, Type,Length\n",
            "ArduPilot",
            "mavlogdump.py",
        ),
        (b"\x89MCAP0\r\n\x01", "MCAP", "mcap info"),
        (b"#ROSBAG V2.0\nE\0\0\0", "rosbag", "rostopic echo"),
        (b"MDF     4.10    CANape\0\0", "MDF", "asammdf"),
        (b"TDSm\x0e\0\0\0", "TDMS", "tdmsinfo"),
        (b"LOGG\x90\0\0\0", "BLF", "can_logconvert"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "WAV", "soxi"),
    ] {
        let read = read_from("a.bin", start, &ReadOptions::default());
        let message = read.err().unwrap().to_string();
        assert!(
            message.contains(name) && message.contains(program),
            "{message}"
        );
    }
}
