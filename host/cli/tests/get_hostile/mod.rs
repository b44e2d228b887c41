//! `get` and servers that answer wrongly, slowly, without end, or with names that lead elsewhere. No file with wrong
//! content ever has its final name.

mod answers;
mod parts;

use crate::common;

use common::hostile::{Hostile, Reply, Request, Turn, answer, raw};
use common::{Run, command, directory, names};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The file on the server: bytes that do not repeat.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(BYTES).collect()
});
const BYTES: usize = 200_000;
/// Bytes that an earlier run received.
const KEPT: usize = 100_000;
/// Tag of the file, and of the file that it replaced.
const TAG: &str = "ETag: \"new\"\r\n";
const OLD_TAG: &str = "ETag: \"old\"\r\n";
/// Time after which a command counts as hanging; only a failing test waits that long.
const HANGS: Duration = Duration::from_secs(180);

/// Right end of a download.
enum End {
    /// The file is complete.
    Right,
    /// The command fails with a sentence that contains this text, and leaves no file.
    Refused(&'static str),
}
use End::{Refused, Right};

/// Earlier run that a download continues.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    /// The first bytes of the file, with its tag.
    Same,
    /// Bytes of the file that this one replaced, with its tag.
    Old,
}
use Before::{Nothing, Old, Same};

type Case = (&'static str, Before, fn(&Request) -> Reply, End);

fn whole() -> Reply {
    answer("200 OK", TAG, &FILE)
}

/// Returns the rest of the file as a right answer.
fn rest(start: usize) -> Reply {
    part(start, BYTES - 1, TAG)
}

fn part(first: usize, last: usize, tag: &str) -> Reply {
    let range = format!("{tag}Content-Range: bytes {first}-{last}/{BYTES}\r\n");
    answer("206 Partial Content", &range, &FILE[first..=last])
}

/// Answers requests for the rest with this status, field and body; any other one with the whole file.
fn to_rest(request: &Request, status: &str, fields: &str, body: &[u8]) -> Reply {
    match request.start() {
        Some(_) => answer(status, fields, body),
        None => whole(),
    }
}

/// Answers a request for the rest with this range of bytes.
fn with_range(request: &Request, range: &str, body: &[u8]) -> Reply {
    let fields = format!("{TAG}Content-Range: {range}\r\n");
    to_rest(request, "206 Partial Content", &fields, body)
}

fn redirect(status: &str, place: &str) -> Reply {
    answer(status, &format!("Location: {place}\r\n"), b"")
}

/// Returns the whole file with this length announced.
fn announced(length: &str) -> Reply {
    raw(&format!("HTTP/1.1 200 OK\r\n{TAG}{length}\r\n"), &FILE)
}

#[test]
fn wrong_parts_never_end_up_in_a_file() {
    check_all(parts::PARTS, &[]);
}

#[test]
fn wrong_answers_are_refused_in_a_sentence() {
    check_all(answers::ANSWERS, &[]);
}

#[test]
fn slow_servers_are_given_up() {
    check_all(answers::SLOW, &["--timeout", "2s"]);
}

/// Downloads from the servers of a table, several at a time because some attempts pause.
fn check_all(cases: &[Case], args: &[&str]) {
    let turn = Turn::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = cases.get(turn.next()) {
                    check(case, args);
                }
            });
        }
    });
}

fn check((name, before, answer, end): &Case, args: &[&str]) {
    let own = directory();
    let server = serve_file(*answer);
    let url = server.url("/file");
    let old: Vec<u8> = FILE[..KEPT].iter().map(|byte| byte ^ 1).collect();
    let earlier = match before {
        Nothing => None,
        Same => Some(("\"new\"", &FILE[..KEPT])),
        Old => Some(("\"old\"", &old[..])),
    };
    if let Some((tag, bytes)) = earlier {
        fs::write(own.path().join("file.part"), bytes).unwrap();
        let text = format!("{url}\n{tag}\n{KEPT}\n");
        fs::write(own.path().join("file.part.tag"), text).unwrap();
    }
    let run = bounded(own.path(), &[&["get", &url], args].concat());
    let left = names(own.path());
    check_output(name, &run);
    match end {
        Right => {
            assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
            assert_eq!(left, ["file"], "{name}");
            assert!(
                fs::read(own.path().join("file")).unwrap() == *FILE,
                "{name}"
            );
        }
        Refused(text) => {
            assert_eq!(run.code, Some(2), "{name}: {}", run.stdout);
            assert!(run.stderr.contains(text), "{name}: {}", run.stderr);
            let sentences = run.stderr.matches("error: ").count();
            assert_eq!(
                (sentences, run.stderr.lines().count()),
                (1, 1),
                "{name}: {}",
                run.stderr
            );
            let is_partial = |name: &String| name == "file.part" || name == "file.part.tag";
            assert!(left.iter().all(is_partial), "{name}: {left:?}");
        }
    }
    // Whatever was left, a server that answers rightly completes the file.
    if matches!(end, Refused(_)) {
        let right = |request: &Request| request.start().map_or_else(whole, rest);
        complete_from(&own.path().join("file"), &url, right, name);
    }
}

/// Continues a download that failed from a right server. The tag file must name its address.
fn complete_from(output: &Path, old: &str, answer: fn(&Request) -> Reply, name: &str) {
    let server = serve_file(answer);
    let url = server.url("/file");
    let tag_file = output.with_file_name("file.part.tag");
    if let Ok(text) = fs::read_to_string(&tag_file) {
        fs::write(&tag_file, text.replace(old, &url)).unwrap();
    }
    let run = bounded(output.parent().unwrap(), &["get", &url]);
    assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
    assert!(fs::read(output).unwrap() == *FILE, "{name}, continued");
}

/// Serves one file; the list knows no folders.
fn serve_file(file: fn(&Request) -> Reply) -> Hostile {
    Hostile::start(move |request| match request.target() {
        "/file" => file(request),
        _ => answer("404 Not Found", "", b""),
    })
}

/// Runs the command, which must not hang.
fn bounded(directory: &Path, args: &[&str]) -> Run {
    let mut child = command(directory, args).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANGS {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Run::from(child.wait_with_output().unwrap())
}

/// Checks that nothing in the output controls a terminal, and that the command did not panic.
fn check_output(name: &str, run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let is_harmful =
            |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!text.contains(is_harmful), "{name}: {text:?}");
    }
    assert!(
        matches!(run.code, Some(0 | 2)),
        "{name}: {:?}, {}",
        run.code,
        run.stderr
    );
}
