//! Traces that a board prints, whole and with every kind of damage.

use cardiograph_trace::{Loaded, Operation, ReadOptions, Trace, read_from};
use std::collections::BTreeSet;

/// Writes per line.
const PER_LINE: usize = 3;

/// A write: file, start and end in us.
type Write = (u32, u64, u64);

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

fn line(text: &str) -> String {
    let text = format!("CG1 {text}");
    format!("{text} *{:04X}\r\n", crc(&text))
}

/// 20 writes to two files; the clock wraps within the second one.
fn writes() -> Vec<Write> {
    let mut start = u64::from(u32::MAX) - 30_000;
    let write = |number: u64| {
        start += 4 + number % 3;
        let end = start + 1000 + 700 * (number % 5);
        let write = (u32::from(number >= 11), start, end);
        start = end;
        write
    };
    (0..20).map(write).collect()
}

/// Lines as a board prints them.
fn lines(writes: &[Write]) -> Vec<String> {
    let mut lines = vec![line(
        "B board=mega2560 library=SD workload=stream bytes=512 clock_us=4",
    )];
    let mut index = 0;
    for file in writes.chunk_by(|a, b| a.0 == b.0) {
        for group in file.chunks(PER_LINE) {
            let (number, start, end) = group[0];
            let mut text = format!("W {index} {number} {} {}", start as u32, end - start);
            for pair in group.windows(2) {
                let [(_, _, before), (_, start, end)] = pair else {
                    unreachable!()
                };
                text += &format!(" {},{}", start - before, end - start);
            }
            lines.push(line(&text));
            index += group.len();
        }
    }
    lines.push(line(&format!("E {index}")));
    lines
}

fn read(text: &[u8]) -> Result<Trace, String> {
    match read_from("a.txt", text, &ReadOptions::default()) {
        Ok(Loaded::Trace(trace)) => Ok(trace),
        Ok(_) => panic!("no trace"),
        Err(error) => Err(error.to_string()),
    }
}

/// Times relative to the first write that was read.
fn operations(trace: &Trace) -> Vec<Write> {
    let write = |o: Operation| (o.file, o.start_ns / 1000, o.end_ns / 1000);
    trace.operations().map(write).collect()
}

fn relative(writes: &[Write]) -> Vec<Write> {
    let first = writes[0].1;
    let write = |&(file, start, end): &Write| (file, start - first, end - first);
    writes.iter().map(write).collect()
}

#[test]
fn a_whole_trace_is_read() {
    let trace = read(lines(&writes()).concat().as_bytes()).unwrap();
    assert_eq!(operations(&trace), relative(&writes()));
    assert_eq!(trace.about.workload, "stream");
    assert_eq!(trace.about.clock_resolution_ns, Some(4000));
    assert_eq!(trace.about.notes, ["Measured on mega2560 with SD."]);
    let lengths: BTreeSet<u64> = trace.operations().map(|o| o.length_bytes).collect();
    assert_eq!(lengths, BTreeSet::from([512]));
    let starts: Vec<u64> = trace.operations().map(|o| o.offset_bytes).collect();
    assert_eq!((starts[10], starts[11]), (5120, 0));
}

#[test]
fn noise_times_and_restarts_are_passed_over() {
    let lines = lines(&writes());
    let mut text = b"ets Jun  8 2016 00:22:57\r\n\xff\x00\xfe rst:0x1\r\n\x00".to_vec();
    // Opening the port restarts the board.
    text.extend(lines[..3].concat().bytes());
    for line in &lines {
        text.extend(format!("12:34:56.789 -> {line}").bytes());
        text.extend(b"hello\r\n");
    }
    let trace = read(&text).unwrap();
    assert_eq!(operations(&trace), relative(&writes()));
    let notes = trace.about.notes.join("\n");
    assert!(notes.contains("Skipped 6 writes of a run"), "{notes}");
    text.extend(lines.concat().bytes());
    let notes = read(&text).unwrap().about.notes.join("\n");
    assert!(notes.contains("Another run begins in line"), "{notes}");
}

#[test]
fn a_lost_line_is_named_and_the_others_keep_their_times() {
    let (all, lines) = (relative(&writes()), lines(&writes()));
    let mut index = 0;
    for lost in 1..lines.len() - 1 {
        let count = lines[lost].matches(',').count() + 1;
        let mut kept = lines.clone();
        kept.remove(lost);
        let trace = read(kept.concat().as_bytes()).unwrap();
        let mut expected = all.clone();
        expected.drain(index..index + count);
        assert_eq!(operations(&trace), relative(&expected), "line {lost}");
        let notes = trace.about.notes.join("\n");
        let note = format!(
            "Missing: {count} of 20 writes ({index} to {} before line {})",
            index + count - 1,
            lost + 1
        );
        assert!(notes.contains(&note), "{notes}");
        index += count;
    }
    let cut = lines[..lines.len() - 1].concat();
    let notes = read(cut.as_bytes()).unwrap().about.notes.join("\n");
    assert!(
        notes.contains("writes from number 20 on may be missing"),
        "{notes}"
    );
    let notes = read(lines[1..].concat().as_bytes())
        .unwrap()
        .about
        .notes
        .join("\n");
    assert!(
        notes.contains("first line of the trace is missing"),
        "{notes}"
    );
}

#[test]
fn offsets_count_missing_writes_of_the_same_file() {
    let all = lines(&writes());
    let offsets =
        |trace: &Trace| Vec::from_iter(trace.operations().map(|o| (o.file, o.offset_bytes)));
    let whole = offsets(&read(all.concat().as_bytes()).unwrap());
    let mut kept = all.clone();
    kept.remove(2);
    let trace = read(kept.concat().as_bytes()).unwrap();
    assert_eq!(offsets(&trace), [&whole[..3], &whole[6..]].concat());
}

#[test]
fn a_trace_of_damaged_lines_is_recognised() {
    let text = lines(&writes()).concat().replace('*', "+");
    let error = read(text.as_bytes()).err().unwrap();
    assert!(
        error.contains("every line of the board's trace is damaged"),
        "{error}"
    );
}

#[test]
fn no_changed_byte_leads_to_a_wrong_write() {
    let all = relative(&writes());
    let durations: BTreeSet<_> = all
        .iter()
        .map(|(file, start, end)| (*file, end - start))
        .collect();
    let text = lines(&writes()).concat().into_bytes();
    for at in 0..text.len() {
        for byte in [
            b'0',
            b'9',
            b' ',
            b',',
            b'\n',
            0,
            text[at] ^ 1,
            text[at] ^ 0x80,
        ] {
            let mut text = text.clone();
            if core::mem::replace(&mut text[at], byte) == byte {
                continue;
            }
            let Ok(trace) = read(&text) else {
                continue;
            };
            for (file, start, end) in operations(&trace) {
                assert!(
                    durations.contains(&(file, end - start)),
                    "byte {at}: {byte:#x}"
                );
            }
            let notes = trace.about.notes.join("\n");
            let is_noted = notes.contains("Missing: ")
                || notes.contains("first line")
                || notes.contains("no last line");
            // The line feed may change without harm, and digits of the checksum may change their case.
            assert!(
                trace.len() == 20 || is_noted,
                "byte {at}: {byte:#x}\n{notes}"
            );
        }
    }
}

#[test]
fn a_stopped_test_states_its_reason() {
    let mut lines = lines(&writes());
    lines.pop();
    lines.push(line("X 20 write failed"));
    let notes = read(lines.concat().as_bytes())
        .unwrap()
        .about
        .notes
        .join("\n");
    assert!(
        notes.contains("stopped the test after 20 writes: write failed."),
        "{notes}"
    );
    let error = read(line("X 0 no card").as_bytes()).err().unwrap();
    assert!(
        error.contains("before the first write (no card)"),
        "{error}"
    );
}

#[test]
fn repeated_lines_are_not_read_twice() {
    let mut lines = lines(&writes());
    lines.insert(3, lines[2].clone());
    let trace = read(lines.concat().as_bytes()).unwrap();
    assert_eq!(operations(&trace), relative(&writes()));
    let notes = trace.about.notes.join("\n");
    assert!(
        notes.contains("Skipped 1 damaged or repeated lines"),
        "{notes}"
    );
}

#[test]
fn the_times_of_two_cores_become_a_note() {
    let notes = |lines: &[String]| read(lines.concat().as_bytes()).unwrap().about.notes;
    let times = "C board=esp32 alone_us=820000,823000 twice_us=1640000,1638000 both_us=968000";
    let note = "A load takes 820.0 ms on core 0 and 823.0 ms on core 1. On both at once, it takes 968.0 ms (1.18 times as \
                long; 1.18 times in study 1, with arithmetic of its own). Twice on core 0: 1640.0 ms (2.00 times). Twice on \
                core 1: 1638.0 ms (1.99 times).";
    let whole = lines(&writes());
    for at in 0..whole.len() {
        let mut lines = whole.clone();
        lines.insert(at, line("C alone_us=1,1 twice_us=1,1 both_us=1"));
        lines.insert(at + 1, line(times));
        assert_eq!(notes(&lines), ["Measured on mega2560 with SD.", note]);
        let trace = read(lines.concat().as_bytes()).unwrap();
        assert_eq!(operations(&trace), relative(&writes()));
    }
    // The line of the next run.
    let after = [whole.clone(), vec![line(times)], whole.clone()].concat();
    assert!(!notes(&after).concat().contains("A load"));
    for damaged in [
        "C alone_us=820000,823000 twice_us=1640000,1638000",
        "C alone_us=820000,823000 both_us=968000",
        "C alone_us=820000 twice_us=1640000,1638000 both_us=968000",
        "C alone_us=820000,0 twice_us=1640000,1638000 both_us=968000",
        "C alone_us=820000,823000 twice_us=1640000,1638000 both_us=4294967296",
    ] {
        let lines = [vec![line(damaged)], whole.clone()].concat();
        let notes = notes(&lines).join("\n");
        assert!(!notes.contains("A load"), "{damaged}");
        assert!(notes.contains("Skipped 1 damaged"), "{damaged}: {notes}");
    }
    // Without a test of the card, the times are shown with the error.
    for (end, error) in [
        ("E 0", "measured no card"),
        ("X 0 no card", "first write (no card)"),
    ] {
        let text = [line(times), lines(&[])[0].clone(), line(end)].concat();
        let message = read(text.as_bytes()).err().unwrap();
        assert!(
            message.contains(error) && message.ends_with(note),
            "{message}"
        );
    }
    assert!(read(line(times).as_bytes()).err().unwrap().ends_with(note));
}
