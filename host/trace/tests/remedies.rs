//! Runs each command that an error message names, and reads its output.

use cardiograph_trace::{Loaded, ReadOptions, TimeUnit, read, read_from};
use std::fmt::Write;
use std::process::Command;

/// Passes a text through the command that its error message names.
fn through_command(text: &str) -> String {
    let read = read_from("a.log", text.as_bytes(), &ReadOptions::default());
    let message = read.err().unwrap().to_string();
    let command = message.split("run ").nth(1).unwrap();
    let command = command.split(" a.log").next().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{message}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn named_commands_make_a_table() {
    let words = "[1.5] write 1: took 812 us (ok)\n[2.5] write 2: took 1.2 ms (ok)\n[3.5] read 3: took 90 us (ok)\n";
    let coloured =
        "\x1b[0;32mI (5) sd: took 812 us\x1b[0m\n\x1b[0;32mI (6) sd: took 790 us\x1b[0m\n";
    let objects = "[{\"t_us\": 0, \"latency_us\": 812}, {\"t_us\": 2000, \"latency_us\": 790}]\n";
    for (text, expected) in [
        (words, "812 us\n1.2 ms\n"),
        (coloured, "I (5) sd: took 812 us\nI (6) sd: took 790 us\n"),
        (objects, "\"t_us\",\"latency_us\"\n0,812\n2000,790\n"),
        ("[[0, 812],\n[2000, 790]]\n", "0,812\n2000,790\n"),
    ] {
        assert_eq!(through_command(text), expected);
    }
}

/// Latencies in us: 40 writes, of which two are stalls.
fn latencies_us() -> impl Iterator<Item = u64> {
    (0..40).map(|n| match n {
        13 => 85_012,
        31 => 120_500,
        _ => 800 + n * 7 % 30,
    })
}

/// Returns a row for each latency; `row` receives the row number, and the start and latency of the write in us.
fn rows(row: impl Fn(u64, u64, u64) -> String) -> String {
    let mut start_us = 5000;
    let mut text = String::new();
    for (n, us) in (0..).zip(latencies_us()) {
        text += &row(n, start_us, us);
        start_us += us + 1000;
    }
    text
}

/// Runs the first command in the error message for a file, and reads its output with the options that follow it.
fn after_remedy(name: &str, text: &[u8]) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    let message = match read(&path, &ReadOptions::default()) {
        Ok(_) => panic!("{name} was read"),
        Err(error) => error.to_string(),
    };
    let start = ["run ", "sort them: ", "exceeds the elapsed time): "]
        .iter()
        .find_map(|mark| Some(message.find(mark)? + mark.len()))
        .unwrap_or_else(|| panic!("{message}"));
    let (command, options) = message[start..]
        .split_once(" | cardiograph analyze -")
        .or(message[start..].split_once(" > complete.csv"))
        .expect(&message);
    let output = Command::new("bash").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{message}: {output:?}");
    let options = ReadOptions {
        time_unit: match options.strip_prefix(" with the --time-unit of the numbers") {
            Some(_) => TimeUnit::named("us"),
            None => options
                .strip_prefix(" --time-unit ")
                .and_then(TimeUnit::named),
        },
        ..ReadOptions::default()
    };
    read_from("-", &output.stdout[..], &options)
        .unwrap_or_else(|error| panic!("{message}\n{error}"))
}

/// Checks that a trace has the latencies of [`latencies_us`], in any order.
fn check(name: &str, loaded: &Loaded, left_out: usize) {
    let Loaded::Trace(trace) = loaded else {
        panic!("{name} is no trace");
    };
    let mut found: Vec<u64> = trace.operations().map(|o| o.end_ns - o.start_ns).collect();
    let mut expected: Vec<u64> = latencies_us().skip(left_out).map(|us| us * 1000).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{name}");
}

#[test]
fn tables_in_other_notations_have_a_command() {
    let list = |between: &str| {
        let texts: Vec<String> = latencies_us().map(|us| us.to_string()).collect();
        texts.join(between)
    };
    let rule = "+------+------------+\n";
    let psql = rows(|_, at, us| format!(" {at:>6} | {us:>10}\n"));
    let boxed = rows(|_, at, us| format!("| {at:>6} | {us:>10} |\n"));
    let json = |row: fn(u64, u64, u64) -> String| rows(row).trim_end_matches(',').to_owned();
    for (name, text) in [
        (
            "psql.txt",
            format!(" t_us | latency_us\n------+-----\n{psql}(40 rows)\n"),
        ),
        (
            "mysql.txt",
            format!("{rule}| t_us | latency_us |\n{rule}{boxed}{rule}"),
        ),
        (
            "frame.txt",
            format!(
                "   t_us  latency_us\n{}",
                rows(|n, at, us| format!("{n:<4} {at}   {us}\n"))
            ),
        ),
        (
            "columns.json",
            format!(
                "{{\"latency_us\": {{{}}}}}\n",
                json(|n, _, us| format!("\"{n}\": {us},"))
            ),
        ),
        (
            "split.json",
            format!(
                "{{\"columns\":[\"t_us\",\"latency_us\"],\"data\":[{}]}}\n",
                json(|_, at, us| format!("[{at},{us}],"))
            ),
        ),
        (
            "nested.json",
            format!(
                "{{\"writes\": [{}]}}\n",
                json(|_, at, us| format!("{{\"t_us\": {at}, \"latency_us\": {us}}},"))
            ),
        ),
        (
            "strace.txt",
            rows(|_, _, us| format!("write(3, \"x\"..., 4096) = 4096 <{:.6}>\n", us as f64 / 1e6)),
        ),
        (
            "logfmt.txt",
            rows(|_, at, us| format!("ts={at} msg=write latency={us}us\n")),
        ),
        (
            "influx.txt",
            rows(|_, at, us| format!("sd,card=a latency_us={us}i {at}000\n")),
        ),
        (
            "slow.log",
            rows(|_, _, us| {
                format!(
                    "write took {us} us{}\n",
                    if us > 1000 { " SLOW!" } else { "" }
                )
            }),
        ),
        (
            "both.log",
            rows(|_, _, us| format!("write took {us} us\nread took {} us\n", us / 4)),
        ),
        (
            "boot.log",
            format!(
                "I (5) boot: start\n{}",
                rows(|_, at, us| { format!("I ({at}) sd: write {us} us\n") })
            ),
        ),
        (
            "days.csv",
            format!(
                "time,latency_us\n{}",
                rows(|n, _, us| { format!("{:.9},{us}\n", 46_084.416_72 + n as f64 / 86_400.0) })
            ),
        ),
        ("array.c", format!("const int us[] = {{{}}};\n", list(", "))),
        ("array.m", format!("us = [{}];\n", list(" "))),
        ("row.txt", format!("{}\n", list(" "))),
        (
            "overlap.csv",
            format!(
                "start_us,end_us\n{}",
                rows(|n, _, us| format!("{},{}\n", n * 100, n * 100 + us))
            ),
        ),
        (
            "reverse.csv",
            format!(
                "t_us,latency_us\n{}",
                rows(|n, _, us| format!("{},{us}\n", 9_000_000 - n * 200_000))
            ),
        ),
    ] {
        check(name, &after_remedy(name, text.as_bytes()), 0);
    }
    let table = format!("latency_us\n{}", rows(|_, _, us| format!("{us}\n")));
    let compressed = Command::new("bash")
        .args(["-c", "printf %s \"$0\" | gzip", &table])
        .output()
        .unwrap();
    check("a.csv.gz", &after_remedy("a.csv.gz", &compressed.stdout), 0);
}

#[test]
fn rows_with_missing_values_can_be_left_out() {
    for missing in ["", "-", "nan", "NaN", "NULL", "n/a", "inf"] {
        let text = rows(|n, at, us| match n {
            0 => format!("{at},{missing}\n"),
            _ => format!("{at},{us}\n"),
        });
        let text = format!("t_us,latency_us\n{text}");
        check(missing, &after_remedy("a.csv", text.as_bytes()), 1);
    }
}

#[test]
fn no_remedy_leads_to_other_figures_than_those_of_writes() {
    let mut table = String::from("time_s,min_us,max_us\n");
    for second in 0..40 {
        writeln!(table, "{second},800,{}", 900 + second * 7 % 50).unwrap();
    }
    let speeds = format!(
        "n,MB/s\n{}",
        rows(|n, _, us| format!("{n},{}\n", 4096.0 / us as f64))
    );
    let flags = format!(
        "is_write,latency_us\n{}",
        rows(|n, _, us| format!("{},{us}\n", n % 2))
    );
    let blocks = format!("block,time\n{}", rows(|n, _, us| format!("{n},{us}\n")));
    let bins = format!(
        "bucket_us,count\n{}",
        rows(|n, _, us| format!("{},{}\n", n * 512, us % 50))
    );
    for (text, expected) in [
        (table.as_str(), "the column \"min_us\" contains statistics"),
        (
            &speeds,
            "the column \"MB/s\" contains rates instead of the latency of each write",
        ),
        (
            &flags,
            "the column \"is_write\" does not say which rows are writes (0, 1); choose them, for example with awk -F, -v \
                  OFS=, 'NR <= 1 || $1 == \"1\"'",
        ),
        (
            &blocks,
            "rows, so they are not those of a clock; if they are the latencies of writes, run cardiograph analyze \
                   a.csv --latency-column time",
        ),
        (
            &bins,
            "a histogram whose column of bins is not named as a latency",
        ),
        (
            "# TYPE w histogram\nw_bucket{le=\"0.1\"} 3\nw_bucket{le=\"+Inf\"} 4\n",
            "a Prometheus histogram does not",
        ),
        (
            "@us:\n[512, 1K)  390 |@@@@@@@|\n[64K, 128K)  10 |@@      |\n",
            "a bpftrace histogram does not",
        ),
        ("PK\x03\x04...", "a ZIP archive or a spreadsheet; unpack it"),
    ] {
        let read = read_from("a.csv", text.as_bytes(), &ReadOptions::default());
        let message = read.err().expect(text).to_string();
        assert!(message.contains(expected), "{message}");
    }
    let options = ReadOptions {
        latency_column: Some("MB/s".to_owned()),
        ..ReadOptions::default()
    };
    let read = read_from("a.csv", speeds.as_bytes(), &options);
    assert!(read.err().unwrap().to_string().contains("contains rates"));
}

fn trace_of(name: &str, text: &str) -> cardiograph_trace::Trace {
    match read_from(name, text.as_bytes(), &ReadOptions::default()) {
        Ok(Loaded::Trace(trace)) => trace,
        Ok(Loaded::Recording(recording)) => recording.trace,
        Ok(_) => panic!("{name} is a histogram"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_row_of_units_holds_for_lengths_too() {
    let text = format!(
        "latency,size\n[us],[KiB]\n{}",
        rows(|_, _, us| format!("{us},4\n"))
    );
    let trace = trace_of("units.csv", &text);
    assert!(trace.operations().all(|o| o.length_bytes == 4096));
}

#[test]
fn times_of_ends_are_times_of_the_writes() {
    let text = format!(
        "end_us,latency_us\n{}",
        rows(|_, at, us| format!("{},{us}\n", at + us))
    );
    let trace = trace_of("ends.csv", &text);
    let elapsed_ns = trace.last_end_ns() - trace.operations().next().unwrap().start_ns;
    let sum_us: u64 = latencies_us().sum();
    // Pauses of 1 ms lie between the writes.
    assert_eq!(elapsed_ns, (sum_us + 39_000) * 1000);
}

#[test]
fn a_column_of_dates_completes_times_of_day() {
    let mut text = String::from("date,time,v\n");
    for n in 0..20 {
        let day = if n < 10 { 22 } else { 25 };
        writeln!(text, "2026-11-{day},12:00:{n:02},0").unwrap();
    }
    let trace = trace_of("days.csv", &text);
    let longest_ns = trace.operations().map(|o| o.end_ns - o.start_ns).max();
    assert_eq!(longest_ns, Some((3 * 86_400 + 1) * 1_000_000_000));
}

#[test]
fn doubts_are_noted() {
    let falling: String = (0..20)
        .map(|n| format!("{n},{}\n", 9000 - 13 * n))
        .collect();
    for (text, note) in [
        (
            format!("n,latency_us\n{falling}"),
            "The latencies are sorted",
        ),
        (
            format!("size,latency_us\n{}", rows(|_, _, us| format!("4,{us}\n"))),
            "are read as bytes; if they have",
        ),
        (
            format!(
                "n_blocks,block_size,latency_us\n{}",
                rows(|_, _, us| format!("8,512,{us}\n"))
            ),
            "the column \"n_blocks\" is not used",
        ),
        (
            format!(
                "t0_us,t1_us,t2_us\n{}",
                rows(|_, at, us| format!("{at},{},{}\n", at + 50, at + us))
            ),
            "the differences of the columns \"t0_us\" and \"t1_us\"; to analyse another column (t2_us)",
        ),
        (
            format!(
                "ok,latency_us\n{}",
                rows(|n, _, us| format!("{},{us}\n", u64::from(n % 9 > 0)))
            ),
            "The column \"ok\" has several texts",
        ),
    ] {
        let notes = trace_of("a.csv", &text).about.notes;
        assert!(notes.iter().any(|found| found.contains(note)), "{notes:?}");
    }
    for (text, note) in [
        (
            format!(
                "n,latency_us\n{}",
                rows(|n, _, us| format!("{},{us}\n", n * 7 % 40))
            ),
            "decrease in places, so the rows are not in the order",
        ),
        (
            format!(
                "n,latency_us\n{}",
                rows(|n, _, us| format!("{},{us}\n", n + n / 9))
            ),
            "have gaps, so rows seem to be missing",
        ),
        (
            format!(
                "t_us,latency_us\n{}",
                rows(|_, at, us| format!("{at},{us}\n{at},{us}\n"))
            ),
            "40 rows have the time and the latency of the previous row",
        ),
        (
            format!(
                "latency_us\n{}",
                rows(|_, _, us| format!("{}\n", us.min(65_535)))
            ),
            "2 latencies are 65535, the largest number of 16 bits",
        ),
    ] {
        let notes = trace_of("a.csv", &text).about.notes;
        assert!(notes.iter().any(|found| found.contains(note)), "{notes:?}");
    }
    for header in ["time_s,duration_s,v", "time_s,response_time_ms,url"] {
        let text = format!(
            "{header}\n{}",
            rows(|n, _, us| format!("{n},{:.6},x{n}\n", us as f64 / 1e6))
        );
        let notes = trace_of("a.csv", &text).about.notes;
        let note = "is read as the latency of writes; if it is something else";
        assert!(notes.iter().any(|found| found.contains(note)), "{notes:?}");
    }
    let usual = format!("n,latency_us\n{}", rows(|n, _, us| format!("{n},{us}\n")));
    assert_eq!(trace_of("a.csv", &usual).about.notes.len(), 1);
    let slat = read_from(
        "a_slat.1.log",
        "0, 5000, 1, 512, 0\n".as_bytes(),
        &ReadOptions::default(),
    );
    assert!(
        slat.err()
            .unwrap()
            .to_string()
            .contains("submission latencies")
    );
}
