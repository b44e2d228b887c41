//! Files in the shapes that people and tools produce: read correctly, or refused with a remedy.

use cardiograph_trace::{Loaded, OperationKind, ReadOptions, TimeUnit, read, read_from};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, PartialEq)]
enum Found {
    /// Number of writes, and their median and worst-case latency in ns.
    Writes(usize, u64, u64),
    /// Number of samples, and the median interval in ns.
    Samples(u64, u64),
    /// Number of writes in a histogram, and their median and 99th percentile in ns.
    Histogram(u64, u64, u64),
    Refused(String),
}

fn found(name: &str, options: &ReadOptions) -> Found {
    match read(&folder().join(name), options) {
        Ok(loaded) => summary(name, loaded),
        Err(error) => Found::Refused(error.to_string()),
    }
}

fn summary(name: &str, loaded: Loaded) -> Found {
    let sorted = |trace: &cardiograph_trace::Trace| {
        let writes = trace
            .operations()
            .filter(|o| o.kind == OperationKind::Write);
        let times = writes.map(|o| o.end_ns - o.start_ns);
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times
    };
    match loaded {
        Loaded::Trace(trace) => {
            let times = sorted(&trace);
            Found::Writes(times.len(), times[times.len() / 2], times[times.len() - 1])
        }
        Loaded::Recording(recording) => {
            let times = sorted(&recording.trace);
            Found::Samples(recording.samples, times[times.len() / 2])
        }
        Loaded::Histogram(histogram) => {
            let percentile = |ppm| histogram.percentile_ns(ppm).unwrap();
            Found::Histogram(histogram.writes(), percentile(500_000), percentile(990_000))
        }
        Loaded::Aggregate(_) => panic!("{name} is no summary"),
    }
}

/// Files that are read, with figures from the scripts and programs that wrote them.
const READ: &[(&str, Found)] = &[
    (
        "operations_in_words.csv",
        Found::Writes(300, 856_000, 201_168_000),
    ),
    (
        "two_devices.csv",
        Found::Writes(600, 2_184_000, 603_504_000),
    ),
    (
        "sketch_list_us.txt",
        Found::Writes(120, 5_812_000, 90_012_000),
    ),
    (
        "sketch_time_latency_bytes.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "sketch_latency_only.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "excel_semicolons.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("quoted.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("start_end_ms.tsv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "start_end_no_unit.csv",
        Found::Writes(120, 5_812_000, 90_012_000),
    ),
    ("camel_case.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("decimal_ms.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("seconds.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("fio_job_lat.1.log", Found::Writes(64, 10_095, 66_179)),
    ("recording_seconds.csv", Found::Samples(200, 10_000_000)),
    ("recording_ms_100hz.csv", Found::Samples(200, 10_000_000)),
    ("recording_micros.csv", Found::Samples(200, 2_500_000)),
    ("epoch_s.csv", Found::Samples(200, 1_000_000_000)),
    ("epoch_s_fraction.csv", Found::Samples(200, 20_000_000)),
    ("epoch_ms.csv", Found::Samples(200, 10_000_000)),
    ("epoch_us.csv", Found::Samples(200, 4_000_000)),
    ("epoch_ns.csv", Found::Samples(200, 4_000_000)),
    ("px4_sensor.csv", Found::Samples(200, 4_004_000)),
    ("iso_dates.csv", Found::Samples(200, 20_000_000)),
    // Day and month are ambiguous, but all rows have the same date.
    (
        "dates_ambiguous.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("blank_dates.csv", Found::Samples(90, 1_000_000_000)),
    ("time_of_day.csv", Found::Samples(300, 250_000_000)),
    ("micros_wrap.csv", Found::Samples(200, 1_000_000)),
    ("writes_wrap.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("px4_attitude.csv", Found::Samples(200, 20_010_000)),
    (
        "decimal_comma_header.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("fio2_lat.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("reads_too.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("total_row.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("size_kib.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("cut_number.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("iso_latency.csv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "units_in_values.txt",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "units_in_column.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("preamble.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("blanks.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("t_start.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("old_mac.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("biosnoop.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("blkparse.txt", Found::Writes(120, 812_000, 85_012_000)),
    ("ioping.txt", Found::Writes(119, 812_000, 85_000_000)),
    ("iso_dst.csv", Found::Samples(120, 1_000_000_000)),
    ("counts.csv", Found::Histogram(120, 812_000, 85_012_000)),
    ("renamed_lat.txt", Found::Writes(256, 59538, 288486)),
    ("px4.ulg", Found::Samples(200, 4_000_000)),
    ("px4_cut.ulg", Found::Samples(199, 4_000_000)),
    // fio states these percentiles in the same file.
    ("fio_plus.json", Found::Histogram(512, 2_864, 31_360)),
    ("thousands_dot.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("thousands_ns.csv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "thousands_apostrophe.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "thousands_nbsp.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "thousands_quoted.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "blank_decimal_comma.txt",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("units_row.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("usecs.csv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "comment_header.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("ops_pwrite64.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("ops_cmd.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("totals_german.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("totals_p99.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("dates_german.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("dates_basic.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("dates_am_pm.csv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "epoch_ns_latency.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "sizes_in_values.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    ("sizes_blocks.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("two_durations.csv", Found::Writes(120, 812_000, 85_012_000)),
    ("index_by_ten.csv", Found::Writes(120, 812_000, 85_012_000)),
    (
        "constant_count.csv",
        Found::Writes(120, 812_000, 85_012_000),
    ),
    (
        "histogram_n.csv",
        Found::Histogram(120, 812_000, 85_012_000),
    ),
    (
        "histogram_anzahl.csv",
        Found::Histogram(120, 812_000, 85_012_000),
    ),
    (
        "fio_ios_differ.json",
        Found::Histogram(120, 812_000, 85_012_000),
    ),
];

/// Files that are refused, with a part of the message that contains the remedy.
const REFUSED: &[(&str, &str)] = &[
    (
        "sketch_bare_us.txt",
        "read as ms, the median write takes 801 ms; read as us, the median write takes 801 us); add --time-unit \
         ms or --time-unit us",
    ),
    (
        "sketch_latency_no_unit.csv",
        "the latencies in column \"latency\" have no unit",
    ),
    (
        "sketch_no_header.csv",
        "its columns, each with its first value, are 1 (9812), 2 (812); if it is a recording",
    ),
    ("two_latencies.csv", "choose one with --latency-column"),
    ("statistics.csv", "log one row per write"),
    (
        "recording_ambiguous.csv",
        "read as ms, there is a sample every 1 s; read as us, there is a sample every 1 ms",
    ),
    ("px4_cpuload.csv", "--time-unit ms or --time-unit us"),
    (
        "fio_job_bw.1.log",
        "a fio bandwidth log, which does not contain the latency of each write; run fio with --write_lat_log",
    ),
    ("fio_job_iops.1.log", "a fio IOPS log"),
    ("renamed_iops.txt", "a fio IOPS log"),
    ("dd.txt", "output of dd does not list individual writes"),
    (
        "iostat.txt",
        "run cardiograph bench on the card's directory",
    ),
    ("fio_summary.json", "fio's JSON summary does not"),
    ("fio_averages_bw.1.log", "a fio bandwidth log"),
    ("percentiles.hgrm", "add --time-unit ms or --time-unit us"),
    (
        "before_after.csv",
        "the times in column \"after\" have no unit",
    ),
    ("renamed_bw_slow.txt", "unless it is a bandwidth log"),
    ("renamed_bw.txt", "a fio bandwidth log"),
    ("renamed_rate_limited.txt", "as ns (fio 3) the median is"),
    (
        "four_numbers.csv",
        "name the column: --latency-column 2 --time-unit us",
    ),
    ("decimal_comma_list.txt", "replace the commas with points"),
    ("decimal_comma_no_header.csv", "--time-column 1"),
    ("thousands.txt", "add --time-unit ms or --time-unit us"),
    (
        "underflow.csv",
        "line 62: the latency 4294966.484 is a negative difference of 32-bit times",
    ),
    (
        "coarse_clock.csv",
        "500 samples have only 10 distinct times",
    ),
    ("ioping_batch.txt", "run ioping without -B"),
    (
        "fio_averages_lat.1.log",
        "record again without log_avg_msec",
    ),
    (
        "ops_unknown.csv",
        "the column \"op\" does not say which rows are writes (foo); choose them, for example with",
    ),
    ("hdr_intervals.hlog", "add --time-unit ms or --time-unit us"),
    (
        "hdr_tags.hlog",
        "line 5: contains intervals with different tags",
    ),
    ("ops_zero_one.csv", "which rows are writes (1, 0)"),
    (
        "empty_label.csv",
        "line 122: the first column is \"\" instead of a number",
    ),
    (
        "last_total.txt",
        "the last latency is the sum of all others",
    ),
    (
        "histogram_shares.csv",
        "the column \"frequency\" contains shares",
    ),
    (
        "running_total.csv",
        "every \"latency_us\" is greater than the previous one",
    ),
    (
        "ticks.csv",
        "the unit of the column \"latency_ticks\" has no known length",
    ),
    ("utf16.csv", "the text is UTF-16LE"),
    ("utf32.csv", "the text is UTF-32"),
    ("nul_tail.csv", "line 122: NUL bytes"),
    (
        "table.md",
        "a table with drawn borders cannot be read directly; run sed",
    ),
    ("rows.jsonl", "JSON cannot be read directly; run jq"),
    ("array.json", "a JSON array cannot be read directly; run jq"),
    (
        "serial.txt",
        "a text with latencies in sentences cannot be read directly; run sed",
    ),
    (
        "assigned.txt",
        "rows with names and numbers cannot be read directly; run grep",
    ),
    (
        "monitor.txt",
        "rows with the time stamps of a serial monitor cannot be read directly; run sed",
    ),
    (
        "negative_time.csv",
        "if the clock started below 0, add a constant",
    ),
    (
        "negative_latency.csv",
        "line 79: latency_us is negative (-5), so the clock went back",
    ),
    (
        "two_headers.csv",
        "line 122: the header with the column time_us appears again",
    ),
    ("fio_reads.json", "fio only read, so there are no writes"),
    (
        "fio_bins_differ.json",
        "the bins contain 120 writes, but fio states 900",
    ),
];

/// Files that are read although their meaning is uncertain, with a part of the note that says so.
const NOTED: &[(&str, &str)] = &[
    (
        "two_devices.csv",
        "The column \"device\" has several texts, such as \"sda\" and \"sdb\"",
    ),
    (
        "thousands_dot.csv",
        "The points are read as separators of thousands (85.012)",
    ),
    (
        "thousands_or_decimals.csv",
        "read as the decimal point (5.800); if it separates thousands, run tr -d .",
    ),
    (
        "decimal_comma_header.csv",
        "so the commas are read as decimal commas",
    ),
    (
        "two_durations.csv",
        "column \"write_us\"; to analyse another column (sync_us), pass --latency-column",
    ),
    (
        "read_latency.csv",
        "The file contains no writes; all figures describe its 120 reads.",
    ),
    (
        "exposure.csv",
        "is read as the latency of writes; if it is something else",
    ),
    ("coarse_ms.csv", "All latencies are multiples of 1 ms"),
    ("cut_in_number.csv", "its last number may be incomplete"),
    ("sizes_blocks.csv", "The column \"blocks\" is ignored"),
    (
        "totals_german.csv",
        "Skipped 2 rows with totals or statistics (line 122: \"Summe\")",
    ),
    (
        "ops_cmd.csv",
        "The figures cover writes only: 120 reads are left out.",
    ),
    ("fio_ios_differ.json", "The bins contain 120 of 900 writes"),
    ("epoch_ns_latency.csv", "they are read as ns since 1970"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/foreign")
}

#[test]
fn doubts_are_in_notes() {
    for (name, part) in NOTED {
        let mut loaded = read(&folder().join(name), &ReadOptions::default()).unwrap();
        let notes = match &mut loaded {
            Loaded::Trace(trace) => &trace.about.notes,
            Loaded::Recording(recording) => &recording.trace.about.notes,
            Loaded::Histogram(histogram) => &histogram.about.notes,
            Loaded::Aggregate(_) => panic!("{name} is no summary"),
        };
        assert!(
            notes.iter().any(|note| note.contains(part)),
            "{name}: {notes:?}"
        );
    }
}

#[test]
fn lengths_have_units_of_their_own() {
    let loaded = read(
        &folder().join("sizes_in_values.csv"),
        &ReadOptions::default(),
    );
    let Ok(Loaded::Trace(trace)) = loaded else {
        panic!("not read");
    };
    let lengths: u64 = trace.operations().map(|o| o.length_bytes).sum();
    assert_eq!(lengths, 60 * 512 + 60 * 4096);
}

#[test]
fn a_command_never_takes_out_two_times_of_a_row() {
    let text = "open 5 us write 812 us\nopen 5 us write 790 us\n";
    let error = read_from("two.txt", text.as_bytes(), &ReadOptions::default());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("unknown format"), "{error}");
}

#[test]
fn the_first_column_may_be_hexadecimal() {
    let text = "sector,latency_us\n0010,812\n001F,790\n0A2C,801\n";
    let loaded = read_from("hex.csv", text.as_bytes(), &ReadOptions::default());
    let Ok(Loaded::Trace(trace)) = loaded else {
        panic!("not read");
    };
    assert_eq!(trace.len(), 3);
}

#[test]
fn times_among_words_may_precede_a_table() {
    let text = "timeout 500 ms\nretry 10 ms\ntime_us,latency_us\n0,812\n2000,790\n";
    let loaded = read_from("preamble.csv", text.as_bytes(), &ReadOptions::default());
    let Ok(Loaded::Trace(trace)) = loaded else {
        panic!("not read");
    };
    assert_eq!(trace.len(), 2);
}

/// Runs a command from an error message, and reads its output.
fn after_command(name: &str, number: usize, options: &ReadOptions) -> Found {
    let Found::Refused(message) = found(name, &ReadOptions::default()) else {
        panic!("{name} was read");
    };
    let end = " FILE | cardiograph analyze -";
    let starts = [
        "awk ", "sed ", "grep ", "jq ", "iconv ", "head -c", "head -n", "tr -d",
    ];
    let mut commands = message
        .split(" | cardiograph analyze -")
        .filter_map(|part| {
            let from = starts.iter().filter_map(|start| part.rfind(start)).min()?;
            Some(part[from..].to_owned())
        });
    let command = commands
        .nth(number)
        .unwrap_or_else(|| panic!("{message}{end}"));
    let command = command.replacen("FILE", name, 1);
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    match read_from("-", &output.stdout[..], options) {
        Ok(loaded) => summary(name, loaded),
        Err(error) => Found::Refused(error.to_string()),
    }
}

#[test]
fn the_named_commands_work() {
    let plain = ReadOptions::default();
    let us = ReadOptions {
        time_unit: TimeUnit::named("us"),
        ..ReadOptions::default()
    };
    let all = Found::Writes(120, 812_000, 85_012_000);
    for (name, number, options) in [
        ("ops_unknown.csv", 0, &plain),
        ("ops_zero_one.csv", 0, &plain),
        ("last_total.txt", 0, &plain),
        ("nul_tail.csv", 0, &plain),
        ("table.md", 0, &plain),
        ("rows.jsonl", 0, &plain),
        ("array.json", 0, &plain),
        ("serial.txt", 0, &plain),
        ("assigned.txt", 0, &us),
        ("monitor.txt", 0, &plain),
        ("negative_time.csv", 0, &plain),
        ("two_headers.csv", 0, &plain),
        ("running_total.csv", 0, &plain),
    ] {
        assert_eq!(after_command(name, number, options), all, "{name}");
    }
    let found = after_command("utf16.csv", 0, &plain);
    assert!(
        matches!(found, Found::Writes(_, 812_000, 85_012_000)),
        "{found:?}"
    );
    // The second command declares all rows as writes.
    let found = after_command("ops_zero_one.csv", 1, &plain);
    assert_eq!(found, Found::Writes(240, 300_000_000, 300_000_000));
    let found = after_command("histogram_shares.csv", 0, &plain);
    // The shares of 120 writes, each multiplied by 1000 and rounded.
    assert_eq!(found, Found::Histogram(1004, 812_000, 85_012_000));
}

#[test]
fn ticks_have_the_length_that_the_user_states() {
    let us = ReadOptions {
        time_unit: TimeUnit::named("us"),
        ..ReadOptions::default()
    };
    assert_eq!(
        found("ticks.csv", &us),
        Found::Writes(120, 812_000, 85_012_000)
    );
}

#[test]
fn rows_without_a_header_may_name_their_operations() {
    let options = ReadOptions {
        time_unit: TimeUnit::named("us"),
        latency_column: Some("3".to_owned()),
        ..ReadOptions::default()
    };
    let found = found("ops_no_header.csv", &options);
    assert_eq!(found, Found::Writes(120, 812_000, 85_012_000));
}

#[test]
fn files_are_read_right() {
    for (name, expected) in READ {
        assert_eq!(&found(name, &ReadOptions::default()), expected, "{name}");
    }
}

#[test]
fn files_are_refused_with_a_remedy() {
    for (name, remedy) in REFUSED {
        match found(name, &ReadOptions::default()) {
            Found::Refused(message) => assert!(message.contains(remedy), "{message}"),
            found => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn summaries_state_their_longest_write() {
    for (name, latency_ns, writes) in [
        ("sdfat_bench.txt", Some(85_012_000), Some(9765)),
        ("sd_bench.txt", Some(85_000_000), None),
        ("fio_summary.txt", Some(888_000), Some(64)),
        ("crystaldiskmark.txt", None, None),
    ] {
        let Ok(Loaded::Aggregate(found)) = read(&folder().join(name), &ReadOptions::default())
        else {
            panic!("{name} is no summary");
        };
        let longest = found.longest;
        assert_eq!(
            longest.map(|longest| longest.latency_ns),
            latency_ns,
            "{name}"
        );
        assert_eq!(longest.and_then(|longest| longest.writes), writes, "{name}");
    }
    let sectors = " sector  | count  | size(kB) | wr_time(ms) | wr_speed(MB/s) | rd_time(ms) | rd_speed(MB/s)\n\
                   0 | 1 | 0.5 | 5.44 | 0.1 | 0.79 | 0.6\n8192 | 16 | 8 | 145.35 | 0.05 | 2 | 4\n";
    let Ok(Loaded::Aggregate(found)) =
        read_from("a.txt", sectors.as_bytes(), &ReadOptions::default())
    else {
        panic!("no summary");
    };
    let longest = found.longest.unwrap();
    assert_eq!((longest.latency_ns, longest.writes), (145_350_000, Some(2)));
}

#[test]
fn the_named_remedies_work() {
    let with = |unit, time: Option<&str>, latency: Option<&str>| ReadOptions {
        time_unit: TimeUnit::named(unit),
        time_column: time.map(str::to_owned),
        latency_column: latency.map(str::to_owned),
        ..ReadOptions::default()
    };
    let us = with("us", None, None);
    for (name, options, expected) in [
        (
            "sketch_bare_us.txt",
            us.clone(),
            Found::Writes(4, 812_000, 85_012_000),
        ),
        (
            "sketch_latency_no_unit.csv",
            us.clone(),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        (
            "sketch_no_header.csv",
            with("us", Some("1"), Some("2")),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        (
            "sketch_time_latency_bytes.csv",
            with("", Some("timestamp_us"), Some("latency_us")),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        (
            "two_latencies.csv",
            with("", None, Some("clat_us")),
            Found::Writes(1, 2_000, 2_000),
        ),
        (
            "recording_ambiguous.csv",
            us.clone(),
            Found::Samples(200, 1_000_000),
        ),
        (
            "percentiles.hgrm",
            us.clone(),
            Found::Histogram(120, 812_000, 85_055_000),
        ),
        (
            "before_after.csv",
            us.clone(),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        (
            "decimal_comma_no_header.csv",
            with("ms", Some("1"), Some("2")),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        (
            "four_numbers.csv",
            with("us", None, Some("2")),
            Found::Writes(120, 812_000, 85_012_000),
        ),
        // The figures that the library of HdrHistogram for Python states.
        (
            "hdr_intervals.hlog",
            us.clone(),
            Found::Histogram(120, 812_000, 85_055_000),
        ),
        ("px4_cpuload.csv", us, Found::Samples(200, 500_100_000)),
    ] {
        assert_eq!(found(name, &options), expected, "{name}");
    }
}

/// Values of the first row are no names: a 0 there must not be taken for a column.
#[test]
fn without_a_header_columns_have_numbers_from_1() {
    for column in ["0", "812", "3", "-1"] {
        let options = ReadOptions {
            time_unit: TimeUnit::named("us"),
            time_column: Some("1".to_owned()),
            latency_column: Some(column.to_owned()),
            ..ReadOptions::default()
        };
        match found("sketch_no_header.csv", &options) {
            Found::Refused(message) => {
                assert!(
                    message.contains("numbered 1 to 2, because there is no header"),
                    "{message}"
                );
            }
            found => panic!("{column}: {found:?}"),
        }
    }
}

#[test]
fn points_in_a_list_may_separate_thousands() {
    let us = ReadOptions {
        time_unit: TimeUnit::named("us"),
        ..ReadOptions::default()
    };
    let found = found("thousands.txt", &us);
    assert_eq!(found, Found::Writes(120, 812_000, 85_012_000));
}

#[test]
fn options_that_a_format_would_ignore_are_refused() {
    let us = ReadOptions {
        time_unit: TimeUnit::named("us"),
        ..ReadOptions::default()
    };
    for name in [
        "fio_job_lat.1.log",
        "camel_case.csv",
        "iso_dates.csv",
        "px4_sensor.csv",
    ] {
        let is_refused =
            matches!(found(name, &us), Found::Refused(text) if text.contains("remove --time-unit"));
        assert_eq!(is_refused, name != "px4_sensor.csv", "{name}");
    }
    let missing = ReadOptions {
        latency_column: Some("lat_ms".to_owned()),
        ..ReadOptions::default()
    };
    let Found::Refused(message) = found("camel_case.csv", &missing) else {
        panic!("read");
    };
    assert!(
        message.contains("the columns are index, writeTimeUs"),
        "{message}"
    );
}

/// A file that is still being written, or whose copy was interrupted.
#[test]
fn a_last_row_that_is_cut_is_skipped_with_a_note() {
    for (text, rows) in [
        ("index,start_us,end_us\n0,0,5\n1,9", 1),
        (
            "operation,file,offset,length,start_ns,end_ns\nwrite,0,0,512,0,9\nwrite,0,512,51",
            1,
        ),
        ("latency_us,temperature\n812,20\n85012,21\n79", 2),
        ("Time[ms],U[V]\n10,1.0\n20,1.0\n30", 1),
    ] {
        let loaded = read_from("cut.csv", text.as_bytes(), &ReadOptions::default());
        let trace = match loaded.unwrap() {
            Loaded::Trace(trace) => trace,
            Loaded::Recording(recording) => recording.trace,
            Loaded::Histogram(_) | Loaded::Aggregate(_) => panic!("{text} is no summary"),
        };
        assert_eq!(trace.len(), rows, "{text}");
        let line = text.lines().count();
        let note = format!("The file ends within line {line}; this row was skipped.");
        assert!(trace.about.notes.contains(&note), "{:?}", trace.about.notes);
    }
}
