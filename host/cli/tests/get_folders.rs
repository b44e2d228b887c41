//! `get` and lists that name wrong files, or too many of them; and the times of files.

use crate::common;

use common::hostile::{Hostile, Reply, Request, answer, chunked};
use common::server::Serving;
use common::{Run, command, directory, names, run, tree};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Serves lists, and files that contain their own path.
fn serve_lists(list: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Hostile {
    Hostile::start(
        move |request| match request.target().strip_prefix("/list?dir=") {
            Some(folder) => match list(folder) {
                Some(list) => answer("200 OK", "", list.as_bytes()),
                None => answer("404 Not Found", "", b""),
            },
            None => answer("200 OK", "", request.target().as_bytes()),
        },
    )
}

/// Serves one folder, for which the list is the given text.
fn serve_list(list: impl Into<String>) -> Hostile {
    let list = list.into();
    serve_lists(move |folder| (folder == "/").then(|| list.clone()))
}

fn file(name: &str) -> serde_json::Value {
    json!({"type": "file", "name": name})
}

/// Downloads all files to `all`.
fn get_all(own: &Path, server: &Hostile, args: &[&str]) -> Run {
    let run = run(
        own,
        &[&["get", &server.address, "-o", "all"], args].concat(),
    );
    check_output(&run);
    run
}

/// Checks that nothing in the output controls a terminal, and that the command did not panic.
fn check_output(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let is_harmful =
            |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!text.contains(is_harmful), "{text:?}");
    }
    assert!(matches!(run.code, Some(0 | 2)), "{}", run.stderr);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let long = "x".repeat(300);
    for name in [
        "",
        ".",
        "..",
        "../evil",
        "../../evil",
        "/tmp/evil",
        "a/b",
        "sub/../../evil",
        "..\\evil",
        ".bashrc",
        ".ssh",
        ".",
        "...",
        "a\0b",
        "a\nb",
        "a\rb",
        "\u{1b}[2Jx",
        "\u{9b}31mx",
        "\u{7f}",
        "x\u{202e}vsc.exe",
        "a\u{2028}b",
        "good.csv.part",
        "good.csv.part.tag",
        "A.PART",
        &long,
    ] {
        for kind in ["file", "dir"] {
            let own = directory();
            let list = json!([{"type": kind, "name": name}, file("good.csv")]);
            let server = serve_list(list.to_string());
            let run = get_all(own.path(), &server, &[]);
            assert_eq!(run.code, Some(2), "{name:?}");
            assert!(
                run.stderr.contains(": the name "),
                "{name:?}: {}",
                run.stderr
            );
            assert!(run.stderr.contains("1 of 2 files were not downloaded"));
            assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
            assert_eq!(names(own.path()), ["all"], "{name:?}");
            assert_eq!(names(&own.path().join("all")), ["good.csv"], "{name:?}");
            // The list without -o shows the name without its effect.
            check_output(&common::run(own.path(), &["get", &server.address]));
        }
    }
}

#[test]
fn names_are_shown_as_escapes() {
    let own = directory();
    let list = json!([{"type": "file", "name": "\u{1b}[31mred", "unavailable": "\u{7}why"}]);
    let server = serve_list(list.to_string());
    let shown = run(own.path(), &["get", &server.address]);
    assert!(
        shown.stdout.contains("\\u{1b}[31mred  (cannot"),
        "{}",
        shown.stdout
    );
    let run = get_all(own.path(), &server, &[]);
    assert!(run.stderr.contains("\\u{7}why"), "{}", run.stderr);
}

#[test]
fn a_name_listed_twice_is_downloaded_once() {
    let own = directory();
    let server = serve_list(json!([file("a.csv"), file("b.csv"), file("a.csv")]).to_string());
    for args in [&[][..], &["--force"]] {
        let run = get_all(own.path(), &server, args);
        assert!(
            run.stderr.contains("another file with this name"),
            "{}",
            run.stderr
        );
        assert_eq!(names(&own.path().join("all")), ["a.csv", "b.csv"]);
    }
}

/// Two links to one file are what a file system that ignores case shows for two names.
#[test]
fn names_that_differ_in_case_do_not_replace_each_other() {
    let server = serve_list(json!([file("a.csv"), file("A.csv")]).to_string());
    let own = directory();
    let all = own.path().join("all");
    assert_eq!(get_all(own.path(), &server, &[]).code, Some(0));
    assert_eq!(
        names(&all),
        ["A.csv", "a.csv"],
        "this file system distinguishes the names"
    );
    fs::remove_file(all.join("A.csv")).unwrap();
    fs::hard_link(all.join("a.csv"), all.join("A.csv")).unwrap();
    let run = get_all(own.path(), &server, &[]);
    assert!(
        run.stderr.contains("perhaps in another case"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read(all.join("a.csv")).unwrap(), b"/a.csv");
}

#[test]
fn depth_and_number_are_bounded() {
    let own = directory();
    let endless =
        serve_lists(|_| Some(json!([{"type": "dir", "name": "d"}, file("f")]).to_string()));
    let run = get_all(own.path(), &endless, &[]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("deeper than 16 folders"),
        "{}",
        run.stderr
    );
    assert_eq!(tree(&own.path().join("all")).len(), 16 + 17);

    let many: Vec<_> = (0..200_001)
        .map(|n| format!("{{\"type\":\"dir\",\"name\":\"{n}\"}}"))
        .collect();
    let server = serve_list(format!("[{}]", many.join(",")));
    let own = directory();
    let run = get_all(own.path(), &server, &[]);
    assert!(
        run.stderr.contains("more than 200000 files"),
        "{}",
        run.stderr
    );
    assert_eq!(server.heads().len(), 1);

    // A tree whose folders each have 100 others ends, too, after the limit and not after each folder.
    let folders: Vec<_> = (0..50_001)
        .map(|n| json!({"type": "dir", "name": n.to_string()}))
        .collect();
    let list = json!(folders).to_string();
    let server = serve_lists(move |_| Some(list.clone()));
    let run = get_all(own.path(), &server, &[]);
    assert_eq!(
        run.stderr.matches("more than 200000 files").count(),
        1,
        "{}",
        run.stderr
    );
    assert_eq!(server.heads().len(), 4);
}

#[test]
fn lists_that_cannot_be_read_are_refused() {
    let own = directory();
    let deep = "[".repeat(100_000);
    for list in [
        "",
        "[",
        "{}",
        "null",
        "<html>\u{1b}[31m",
        "[1]",
        "[{}]",
        &deep,
        "[{\"type\":\"file\",\"name\":7}]",
        "[{\"type\":\"file\",\"name\":\"a\",\"name\":\"b\"}]",
        "[{\"type\":\"file\",\"name\":\"a\",\"size\":-1}]",
        "[{\"type\":\"file\",\"name\":\"a\",\"size\":99999999999999999999}]",
        "[{\"type\":\"file\",\"name\":\"\\ud800\"}]",
        "[{\"type\":\"file\",\"name\":\"a\",\"time\":\"\u{1b}[2J\"}]",
    ] {
        let server = serve_list(list);
        for args in [&[][..], &["-o", "all"]] {
            let run = run(own.path(), &[&["get", &server.address], args].concat());
            check_output(&run);
            assert_eq!(run.code, Some(2), "{list}");
            assert!(
                run.stderr.contains("list cannot be read"),
                "{list}: {}",
                run.stderr
            );
            assert!(run.stderr.len() < 600, "{}", run.stderr.len());
        }
        for kind in ["--session", "--day"] {
            let server = Hostile::start(move |_| answer("200 OK", "", b"[{\"day\":\"\x1b\"}]"));
            let run = run(own.path(), &["get", &server.address, kind]);
            check_output(&run);
            assert_eq!(run.code, Some(2));
        }
    }
    assert!(names(own.path()).is_empty());
}

#[test]
fn endless_and_redirected_lists_are_refused() {
    let own = directory();
    type Answer = fn(&Request) -> Reply;
    let cases: [(Answer, &str); 4] = [
        (
            |_| {
                Reply::Endless(
                    b"HTTP/1.1 200 OK\r\n\r\n[".to_vec(),
                    vec![b' '; 1 << 20],
                    Duration::ZERO,
                )
            },
            "more than 67108864 bytes",
        ),
        (
            |_| answer("302 Found", "Location: http://192.0.2.1/\r\n", b""),
            "redirects to another",
        ),
        (|_| answer("204 No Content", "", b""), "status 204"),
        (
            |_| chunked("200 OK", "", &[b"[]"], "1\r\n"),
            "check the address",
        ),
    ];
    for (reply, text) in cases {
        let server = Hostile::start(reply);
        let run = get_all(own.path(), &server, &[]);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(text), "{}", run.stderr);
    }
    assert!(names(own.path()).is_empty());
}

#[test]
fn lists_with_extreme_numbers_are_shown() {
    let own = directory();
    let entry = |time: i64| json!({"type": "file", "name": "a", "size": u64::MAX, "time": time});
    let times = [
        i64::MIN,
        -1,
        0,
        253_402_300_799,
        253_402_300_800,
        8_210_266_876_799,
        i64::MAX,
    ];
    let server = serve_list(json!(times.map(entry)).to_string());
    let run = run(own.path(), &["get", &server.address]);
    assert_eq!(
        (run.code, run.stdout.lines().count()),
        (Some(0), times.len()),
        "{}",
        run.stderr
    );
}

#[test]
fn a_folder_that_is_not_listed_is_reported() {
    let own = directory();
    let server = serve_list(json!([{"type": "dir", "name": "d"}, file("f")]).to_string());
    let run = get_all(own.path(), &server, &[]);
    assert!(
        run.stderr.contains("does not list this folder"),
        "{}",
        run.stderr
    );
    assert_eq!(names(&own.path().join("all")), ["f"]);
}

#[test]
fn a_silent_server_is_given_up_before_the_end_of_its_list() {
    for kind in ["file", "dir"] {
        let own = directory();
        let entries: Vec<_> = (0..50)
            .map(|n| json!({"type": kind, "name": n.to_string()}))
            .collect();
        let list = json!(entries).to_string();
        let server = Hostile::start(move |request| match request.target() {
            "/list?dir=/" => answer("200 OK", "", list.as_bytes()),
            _ => Reply::Hang(Vec::new()),
        });
        let run = get_all(own.path(), &server, &["--timeout", "1s"]);
        assert_eq!(run.code, Some(2));
        assert!(
            run.stderr.contains("too many requests wait"),
            "{}",
            run.stderr
        );
        assert_eq!(server.heads().len(), 4, "{kind}");
    }
}

#[test]
fn links_in_the_output_directory_are_not_followed() {
    use std::os::unix::fs::symlink;
    let list = |folder: &str| {
        let entries =
            json!([{"type": "dir", "name": "sub"}, file("a"), file("b"), file("c"), file("d")]);
        match folder {
            "/" => Some(entries.to_string()),
            _ => Some(json!([file("x")]).to_string()),
        }
    };
    for args in [&[][..], &["--force"]] {
        let (own, outside) = (directory(), directory());
        let (all, target) = (own.path().join("all"), outside.path().join("target"));
        fs::create_dir(&all).unwrap();
        fs::write(&target, "mine").unwrap();
        symlink(outside.path(), all.join("sub")).unwrap();
        symlink(&target, all.join("a")).unwrap();
        symlink(&target, all.join("b.part")).unwrap();
        symlink(&target, all.join("c.part.tag")).unwrap();
        symlink(outside.path().join("new"), all.join("d")).unwrap();
        let run = get_all(own.path(), &serve_lists(list), args);
        assert_eq!(run.code, Some(2));
        assert!(
            run.stderr.contains("sub: exists and is not a folder"),
            "{}",
            run.stderr
        );
        let refused = run.stderr.matches("exists and is not an ordinary file");
        assert_eq!(refused.count(), 4, "{}", run.stderr);
        assert_eq!(names(outside.path()), ["target"]);
        assert_eq!(fs::read(&target).unwrap(), b"mine");
    }
}

#[test]
fn existing_files_are_kept() {
    let own = directory();
    let server = serve_list(json!([file("a"), file("b"), file("c")]).to_string());
    let all = own.path().join("all");
    fs::create_dir_all(all.join("b")).unwrap();
    fs::write(all.join("a"), "mine").unwrap();
    let run = get_all(own.path(), &server, &[]);
    assert_eq!(run.code, Some(2));
    assert_eq!(fs::read(all.join("a")).unwrap(), b"mine");
    assert_eq!(names(&all), ["a", "b", "c"]);
    let run = get_all(own.path(), &server, &["--force"]);
    assert!(
        run.stderr.contains("b: exists and is not an ordinary file"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read(all.join("a")).unwrap(), b"/a");
}

/// Answers a request for a growing file: the bytes so far, then what follows them.
fn growing(request: &Request, follow: impl Fn(usize) -> Reply) -> Reply {
    match request.target().split_once("offset=") {
        Some((_, offset)) => follow(offset.parse().unwrap()),
        None if request.target().starts_with("/list") => answer("404 No", "", b""),
        None => answer("200 OK", "ETag: \"a\"\r\n", &recorded()[..3000]),
    }
}

/// Returns lines that do not repeat.
fn recorded() -> Vec<u8> {
    (0..500)
        .map(|n| format!("{n},{}\n", n * n))
        .collect::<String>()
        .into_bytes()
}

#[test]
fn a_growing_file_is_followed_only_if_the_server_continues_it() {
    let own = directory();
    let get = |follow: fn(usize) -> Reply| {
        let server = Hostile::start(move |request| growing(request, follow));
        let run = run(own.path(), &["get", &server.url("/file"), "--follow"]);
        check_output(&run);
        run
    };
    let chunks = |bytes: &[u8]| chunked("200 OK", "", &[bytes], "0\r\n\r\n");
    type Follow = fn(usize) -> Reply;
    let refused: [(Follow, &str); 5] = [
        // The arguments are ignored: the whole file again.
        (|_| answer("200 OK", "", &recorded()), "omit --follow"),
        (
            |_| chunked("200 OK", "", &[&recorded()], "0\r\n\r\n"),
            "started over 5 times",
        ),
        (
            |_| chunked("200 OK", "", &[b"evil"], "0\r\n\r\n"),
            "started over 5 times",
        ),
        (
            |_| chunked("200 OK", "", &[], "0\r\n\r\n"),
            "started over 5 times",
        ),
        (
            |_| answer("416 No", "Content-Range: bytes */5\r\n", b""),
            "status 416",
        ),
    ];
    for (follow, text) in refused {
        let run = get(follow);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(text), "{}", run.stderr);
        assert!(!own.path().join("file").exists());
        let _ = fs::remove_file(own.path().join("file.part"));
        let _ = fs::remove_file(own.path().join("file.part.tag"));
    }
    assert_eq!(
        get(|offset| chunked("200 OK", "", &[&recorded()[offset..]], "0\r\n\r\n")).code,
        Some(0)
    );
    assert!(fs::read(own.path().join("file")).unwrap() == recorded());
    // Standard output.
    let server =
        Hostile::start(move |request| growing(request, |offset| chunks(&recorded()[offset..])));
    let run = run(
        own.path(),
        &["get", &server.url("/file"), "--follow", "-o", "-"],
    );
    assert!(run.stdout.into_bytes() == recorded());
}

/// The page of the server shows the same: local time, with its zone.
#[test]
fn times_are_local_and_files_keep_them() {
    let (served, own) = (directory(), directory());
    fs::write(served.path().join("a.csv"), "1").unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let file = fs::File::options()
        .write(true)
        .open(served.path().join("a.csv"));
    file.unwrap().set_modified(time).unwrap();
    let serving = Serving::start(served.path(), &[]);
    // The zones are names of POSIX, in which east is negative, so that no database is necessary.
    for (zone, shown) in [
        ("UTC0", "1994-11-06 08:49 +00:00  a.csv"),
        ("IST-5:30", "1994-11-06 14:19 +05:30  a.csv"),
        ("XXX9", "1994-11-05 23:49 -09:00  a.csv"),
    ] {
        let output = command(own.path(), &["get", &serving.address])
            .env("TZ", zone)
            .output();
        let list = Run::from(output.unwrap());
        assert!(list.stdout.contains(shown), "{}", list.stdout);
        let args = ["get", &serving.url("/a.csv"), "--force"];
        let output = command(own.path(), &args).env("TZ", zone).output().unwrap();
        assert!(output.status.success());
        let copy = fs::metadata(own.path().join("a.csv")).unwrap();
        assert_eq!(copy.modified().unwrap(), time);
    }
    common::done(own.path(), &["get", &serving.address, "-o", "all"]);
    let copy = fs::metadata(own.path().join("all/a.csv")).unwrap();
    assert_eq!(copy.modified().unwrap(), time);
}
