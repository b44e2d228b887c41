//! `bench board:PORT` with a pseudo-terminal in place of a serial port.

use crate::common;

use common::signals::{end, wait_until};
use common::{Run, command, directory, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;

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

/// A trace of 40 writes, in lines of 4.
fn lines() -> Vec<String> {
    let mut lines = vec![line(
        "B board=mega2560 library=SD workload=stream bytes=512 clock_us=4",
    )];
    for first in (0..40).step_by(4) {
        let latencies = [1000 + 4 * first, 1200, 900, 20_000];
        let [a, b, c, d] = latencies;
        lines.push(line(&format!(
            "W {first} 0 {} {a} 8,{b} 8,{c} 8,{d}",
            first * 10_000
        )));
    }
    lines.push(line("E 40"));
    lines
}

/// A command that waits at one end of a pseudo-terminal, and the other end.
struct Session {
    board: File,
    child: Child,
}

impl Session {
    /// Starts the command; returns when it has opened the port.
    fn begin(folder: &Path, args: &[&str]) -> Session {
        let board = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&board).unwrap();
        unlockpt(&board).unwrap();
        let port = ptsname(&board, Vec::new()).unwrap().into_string().unwrap();
        let target = format!("board:{port}");
        let child = command(folder, &[&["bench", &target], args].concat());
        let child = { child }.spawn().unwrap();
        wait_until(|| {
            let modes = tcgetattr(&board).unwrap();
            !modes.local_modes.contains(LocalModes::ICANON)
        });
        let board = File::from(board);
        Session { board, child }
    }

    fn print(&mut self, text: &str) {
        self.board.write_all(text.as_bytes()).unwrap();
    }

    fn end(self) -> Run {
        Run::from(self.child.wait_with_output().unwrap())
    }
}

/// Returns the next line that the command sends.
fn sent(board: &mut File) -> String {
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        let mut byte = [0];
        board.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    String::from_utf8(text).unwrap()
}

/// A trace of 20 writes as Cardiograph's firmware prints it.
fn firmware_lines(bytes: u32) -> String {
    let begin = format!(
        "B library=cardiograph workload=stream bytes={bytes} clock_us=1 writes=20 buffer_bytes=1024"
    );
    let latencies = " 8,900".repeat(19);
    [
        line(&begin),
        line(&format!("W 0 0 0 900{latencies}")),
        line("E 20"),
    ]
    .concat()
}

#[test]
fn a_board_that_waits_for_a_command_gets_it_again_until_it_responds() {
    let folder = directory();
    let toml = "name = \"w\"\n[[phase]]\ncalls_per_file = 20\nbytes_per_call = 64\n";
    fs::write(folder.path().join("w.toml"), toml).unwrap();
    let mut session = Session::begin(folder.path(), &["--workload", "w.toml", "--json", "-"]);
    let expected = line("T bytes=64&writes=20&files=1&delay=0").replace('\r', "");
    for _ in 0..2 {
        assert_eq!(sent(&mut session.board), "\n");
        assert_eq!(sent(&mut session.board), expected);
    }
    session.print(&firmware_lines(64));
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["results"][0]["writes"], 20);
    assert!(
        run.stdout.contains("pass through a buffer of 1024 B"),
        "{}",
        run.stdout
    );
}

/// Checks that the command refuses what a board prints.
fn assert_refused(args: &[&str], text: &str, why: &str) {
    let folder = directory();
    let mut session = Session::begin(folder.path(), args);
    session.print(text);
    let run = session.end();
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn another_test_than_the_requested_one_is_refused() {
    for text in [firmware_lines(512), lines().concat()] {
        let why = "its sketch determines what it writes";
        assert_refused(&["--workload", "self-timing"], &text, why);
    }
}

#[test]
fn the_load_on_two_cores_comes_before_the_test() {
    let folder = directory();
    let args = ["--workload", "two-cores", "--json", "-"];
    let cores =
        line("C board=esp32 alone_us=820000,823000 twice_us=1640000,1638000 both_us=968000");
    let mut session = Session::begin(folder.path(), &args);
    session.print(&cores);
    session.print(&lines().concat());
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let report = &report["results"][0];
    assert_eq!(
        (&report["writes"], &report["workload"]),
        (&40.into(), &"stream".into())
    );
    let note = "takes 820.0 ms on core 0 and 823.0 ms on core 1. On both at once, it takes 968.0 ms (1.18 times";
    assert!(report["notes"].to_string().contains(note), "{report}");
    // The end of a trace whose beginning was lost is no test of two cores either.
    for text in [
        firmware_lines(512),
        lines().concat() + &cores,
        lines()[4..].concat(),
    ] {
        assert_refused(&args, &text, "upload the example MeasureCores");
    }
    let server = ["bench", "board:http://192.0.2.1", "--workload", "two-cores"];
    let run = common::run(folder.path(), &server);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("server runs no load"), "{}", run.stderr);
    assert_refused(&["--for", "1s"], &cores, "printed no write for");
}

#[test]
fn the_test_of_a_board_that_was_started_is_stopped() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &["--for", "3s"]);
    assert_eq!(sent(&mut session.board), "\n");
    assert!(sent(&mut session.board).starts_with("CG1 T bytes=512&writes="));
    session.print(&lines()[..5].concat());
    assert_eq!(sent(&mut session.board), line("Q").replace('\r', ""));
    assert_eq!(session.end().code, Some(0));
}

/// Figures of a report without its target.
fn figures(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let report = &mut value["results"][0];
    report.as_object_mut().unwrap().remove("target");
    report.clone()
}

#[test]
fn a_board_is_reported_like_its_saved_trace() {
    let folder = directory();
    let text = format!("boot\r\n\u{0}{}", lines().concat());
    fs::write(folder.path().join("saved.txt"), &text).unwrap();
    let saved = run(folder.path(), &["analyze", "saved.txt", "--json", "-"]).stdout;
    let mut session = Session::begin(folder.path(), &["--json", "-"]);
    // In pieces that are no lines, and with text after the end.
    for piece in text.as_bytes().chunks(7) {
        session.board.write_all(piece).unwrap();
    }
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(figures(&run.stdout), figures(&saved));
}

#[test]
fn a_lost_line_is_noted() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &[]);
    let mut lines = lines();
    lines.remove(3);
    session.print(&lines.concat());
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("Missing: 4 of 40 writes"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_board_that_is_restarted_begins_again() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &[]);
    session.print(&lines()[..5].concat());
    session.print(&lines().concat());
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("Skipped 16 writes of a run"),
        "{}",
        run.stdout
    );
}

#[test]
fn an_interrupted_measurement_reports_what_it_received() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &["--for", "1s"]);
    session.print(&lines()[..5].concat());
    let run = session.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout
            .contains("stopped before the end of the board's test"),
        "{}",
        run.stdout
    );
    let session = Session::begin(folder.path(), &["--for", "1s"]);
    let run = session.end();
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("printed nothing for 1 s"),
        "{}",
        run.stderr
    );
    let session = Session::begin(folder.path(), &[]);
    let Session { board, child } = session;
    let run = end(child, "-INT");
    drop(board);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
}

#[test]
fn a_board_without_a_card_states_its_reason() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &[]);
    session.print(&line("X 0 no card"));
    let run = session.end();
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("before the first write (no card)"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_port_that_is_pulled_ends_the_measurement() {
    let folder = directory();
    let mut session = Session::begin(folder.path(), &[]);
    session.print(&lines()[..2].concat());
    let Session { board, child } = session;
    drop(board);
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("check the cable"), "{}", run.stderr);
}

#[test]
fn wrong_ports_and_options_have_a_remedy() {
    let folder = directory();
    fs::write(folder.path().join("saved.txt"), lines().concat()).unwrap();
    for (args, text) in [
        (
            &["board:/dev/ttyNONE"][..],
            "no such serial port; connect the board",
        ),
        (&["board:saved.txt"], "cardiograph analyze"),
        (&["board:"], "names no board"),
        (&["board:http://127.0.0.1:1/x"], "name the server alone"),
        (
            &["board:http://127.0.0.1:1"],
            "check the address and the network",
        ),
        (
            &["board:http://127.0.0.1:1", "--workload", "magod2"],
            "does not apply to a board,",
        ),
        (
            &["board:saved.txt", "--auth", "a:b"],
            "--auth applies to servers only",
        ),
        (
            &["board:saved.txt", "--seed", "1"],
            "--seed applies to simulated cards only",
        ),
        (
            &["board:saved.txt", "--io", "direct"],
            "--io applies to directories only",
        ),
        (
            &["board:saved.txt", "--repeat", "2"],
            "--repeat does not apply to boards",
        ),
        (
            &["board:saved.txt", "--workload", "magod2"],
            "does not apply to a board,",
        ),
        (
            &["sim:class10-16g@esp32", "--baud", "9600"],
            "--baud applies to boards only",
        ),
    ] {
        let run = run(folder.path(), &[&["bench"], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(text), "{args:?}: {}", run.stderr);
    }
}
