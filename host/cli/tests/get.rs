//! `get`: lists, downloads over links that break, growing files, sessions and days.

use crate::common;

use common::server::{BadLink, Serving};
use common::signals::wait_until;
use common::{command, directory, done, names, refused, tree};
use std::fs;
use std::process::Command;

/// Bytes that do not repeat.
fn contents(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(bytes).collect()
}

#[test]
fn a_folder_is_listed_and_a_file_downloaded() {
    let (served, own) = (directory(), directory());
    fs::create_dir(served.path().join("folder")).unwrap();
    let file = contents(3_000_000);
    fs::write(served.path().join("folder/a b.bin"), &file).unwrap();
    let serving = Serving::start(served.path(), &[]);
    let list = done(own.path(), &["get", &serving.address]);
    assert!(list.trim_end().ends_with("folder/"), "{list}");
    let list = done(own.path(), &["get", &serving.url("/folder/")]);
    assert!(
        list.contains("3 MB") && list.trim_end().ends_with("a b.bin"),
        "{list}"
    );
    let url = serving.url("/folder/a b.bin");
    let text = done(own.path(), &["get", &url]);
    assert_eq!(text, "a b.bin: 3 MB\n");
    assert_eq!(fs::read(own.path().join("a b.bin")).unwrap(), file);
    assert_eq!(names(own.path()), ["a b.bin"]);
    let text = done(own.path(), &["get", &url]);
    assert_eq!(text, "a b.bin: already complete\n");
    fs::write(own.path().join("a b.bin"), "mine").unwrap();
    refused(
        own.path(),
        &["get", &url],
        &["is not the beginning of the file"],
    );
    assert_eq!(fs::read(own.path().join("a b.bin")).unwrap(), b"mine");
    let printed = command(own.path(), &["get", &url, "-o", "-"])
        .output()
        .unwrap();
    assert!(printed.status.success() && printed.stdout == file);
}

#[test]
fn a_download_over_a_link_that_breaks_ends_right() {
    let (served, own) = (directory(), directory());
    let file = contents(2_000_000);
    fs::write(served.path().join("file"), &file).unwrap();
    let serving = Serving::start(served.path(), &[]);
    let link = BadLink::to(&serving.address, 300_000);
    done(own.path(), &["get", &format!("{}/file", link.address)]);
    assert_eq!(fs::read(own.path().join("file")).unwrap(), file);
    assert!(link.breaks() >= 6);
    assert_eq!(names(own.path()), ["file"]);
}

#[test]
#[ignore = "needs curl"]
fn another_run_continues_and_notices_a_changed_file() {
    let (served, own) = (directory(), directory());
    let file = contents(1_000_000);
    fs::write(served.path().join("file"), &file).unwrap();
    let serving = Serving::start(served.path(), &[]);
    let url = serving.url("/file");
    let tag = serving.curl(&["-I"], "/file");
    let tag = String::from_utf8(tag).unwrap();
    let tag = tag
        .lines()
        .find_map(|line| line.strip_prefix("ETag: "))
        .unwrap();
    // Writes the files of an interrupted run: the first bytes, and the tag file with their source and number.
    let leave = |bytes: &[u8], from: &str| {
        fs::write(own.path().join("copy.part"), bytes).unwrap();
        let text = format!("{from}\n{tag}\n{}\n", bytes.len());
        fs::write(own.path().join("copy.part.tag"), text).unwrap();
    };
    leave(&file[..700_000], &url);
    let text = done(own.path(), &["get", &url, "-o", "copy"]);
    assert_eq!(text, "copy: 1 MB, of which 700 kB were there before\n");
    assert_eq!(fs::read(own.path().join("copy")).unwrap(), file);
    assert_eq!(names(own.path()), ["copy"]);
    // The bytes are of another file, or of this file before it was changed: everything is downloaded again.
    let cases = [(&file[..10], "http://127.0.0.1/other"), (b"garbage", &*url)];
    for (bytes, from) in cases {
        fs::remove_file(own.path().join("copy")).unwrap();
        leave(bytes, from);
        let new = contents(900_000);
        fs::write(served.path().join("file"), &new).unwrap();
        let text = done(own.path(), &["get", &url, "-o", "copy"]);
        assert_eq!(text, "copy: 900 kB\n");
        assert_eq!(fs::read(own.path().join("copy")).unwrap(), new);
    }
}

#[test]
#[ignore = "needs curl"]
fn ctrl_c_leaves_a_part_that_the_next_run_continues() {
    let (served, own) = (directory(), directory());
    let serving = Serving::recording(
        served.path(),
        &[
            "--rate",
            "860",
            "--for",
            "4s",
            "--buffer",
            "4MiB",
            "--durability-window",
            "100ms",
        ],
    );
    serving.wait_for_samples(300);
    let url = serving.url("/REC00000/REC00001.CSV");
    let child = command(own.path(), &["get", &url, "--follow"])
        .spawn()
        .unwrap();
    let part = own.path().join("REC00001.CSV.part");
    wait_until(|| fs::metadata(&part).is_ok_and(|part| part.len() > 30_000));
    let run = common::signals::end(child, "-INT");
    assert_eq!((run.code, &*run.stderr), (Some(130), ""));
    assert_eq!(
        names(own.path()),
        ["REC00001.CSV.part", "REC00001.CSV.part.tag"]
    );
    let text = done(own.path(), &["get", &url, "--follow"]);
    assert!(text.contains("were there before"), "{text}");
    assert_eq!(serving.finish().code, Some(0));
    let recorded = fs::read(served.path().join("REC00000/REC00001.CSV")).unwrap();
    assert!(fs::read(own.path().join("REC00001.CSV")).unwrap() == recorded);
}

#[test]
fn folders_sessions_and_days_are_downloaded_whole() {
    let (served, own) = (directory(), directory());
    for _ in 0..2 {
        done(
            served.path(),
            &["record", ".", "--rate", "100", "--for", "100ms"],
        );
    }
    let serving = Serving::start(served.path(), &[]);
    let text = done(own.path(), &["get", &serving.address, "-o", "all"]);
    assert_eq!(text.lines().count(), 2, "{text}");
    let folder = served.path().join("REC00000");
    assert_eq!(tree(&own.path().join("all/REC00000")).len(), 2);
    for name in names(&folder) {
        let copy = own.path().join("all/REC00000").join(&name);
        assert_eq!(
            fs::read(copy).unwrap(),
            fs::read(folder.join(&name)).unwrap()
        );
    }
    let text = done(own.path(), &["get", &serving.address, "-o", "all"]);
    assert_eq!(text.matches("already complete").count(), 2, "{text}");

    // A recording that was downloaded while it grew is completed.
    let copy = own.path().join("all/REC00000/REC00002.CSV");
    let whole = fs::read(&copy).unwrap();
    for bytes in [0, 1, whole.len() - 1] {
        fs::write(&copy, &whole[..bytes]).unwrap();
        let text = done(own.path(), &["get", &serving.address, "-o", "all"]);
        assert_eq!(text.matches("already complete").count(), 1, "{text}");
        assert!(fs::read(&copy).unwrap() == whole, "{bytes}");
    }
    assert_eq!(tree(&own.path().join("all/REC00000")).len(), 2);

    let days = done(own.path(), &["get", &serving.address, "--day"]);
    assert!(days.contains("2 files, 20 samples"), "{days}");
    let date = days
        .split_whitespace()
        .find(|word| word.len() == 10 && word.contains('-'));
    let date = date.unwrap();
    done(own.path(), &["get", &serving.address, "--day", date]);
    let tar = own.path().join(format!("{date}.tar"));
    let listed = Command::new("tar").arg("tf").arg(tar).output().unwrap();
    assert!(listed.status.success());
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 2);
    let sessions = done(own.path(), &["get", &serving.address, "--session"]);
    assert_eq!(sessions.lines().count(), 2, "{sessions}");
    refused(
        own.path(),
        &["get", &serving.address, "--session", "none"],
        &["not found on the server"],
    );
}

/// The temporary name would be longer than file systems allow.
#[test]
fn long_names_are_downloaded() {
    let (served, own) = (directory(), directory());
    let long = ["x".repeat(254), "\u{e9}".repeat(127), "y".repeat(250)];
    for name in &long {
        fs::write(served.path().join(name), name).unwrap();
    }
    let serving = Serving::start(served.path(), &[]);
    done(own.path(), &["get", &serving.address, "-o", "all"]);
    let copies = own.path().join("all");
    assert_eq!(names(&copies), names(served.path()));
    for name in &long {
        assert_eq!(fs::read_to_string(copies.join(name)).unwrap(), *name);
    }
}

/// More files than become durable together, of which some cannot be downloaded.
#[test]
fn a_folder_of_many_files_is_downloaded() {
    let (served, own) = (directory(), directory());
    fs::create_dir(served.path().join("folder")).unwrap();
    for number in 0..600 {
        let name = format!("folder/{number}.txt");
        fs::write(served.path().join(name), contents(number)).unwrap();
    }
    fs::write(served.path().join("folder/100%"), "x").unwrap();
    let serving = Serving::start(served.path(), &[]);
    let list = done(own.path(), &["get", &serving.url("/folder")]);
    assert_eq!(list.matches("100%  (cannot be requested)").count(), 1);
    let run = common::run(own.path(), &["get", &serving.address, "-o", "all"]);
    assert_eq!(run.code, Some(2));
    for part in [
        "/folder/100%25: the name has a percent sign",
        "download its folder as tar",
        "1 of 601 files were not downloaded",
    ] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    assert_eq!(run.stdout.lines().count(), 600);
    let copies = own.path().join("all/folder");
    assert_eq!(names(&copies).len(), 600);
    for number in 0..600 {
        let copy = fs::read(copies.join(format!("{number}.txt"))).unwrap();
        assert!(copy == contents(number), "{number}");
    }
    let run = common::run(own.path(), &["get", &serving.address, "-o", "all"]);
    assert_eq!(run.stdout.matches("already complete").count(), 600);
    // A different length is reported, and the file is not replaced.
    fs::write(copies.join("0.txt"), "mine").unwrap();
    let run = common::run(own.path(), &["get", &serving.address, "-o", "all"]);
    assert!(
        run.stderr
            .contains("0.txt: exists already, and is not the beginning")
    );
    assert_eq!(fs::read(copies.join("0.txt")).unwrap(), b"mine");
    let url = serving.url("/folder/0.txt");
    let copy = copies.join("0.txt").display().to_string();
    for quiet in [&[][..], &["--quiet"]] {
        fs::write(&copy, "mine").unwrap();
        let forced = [&["get", &url, "-o", &copy, "--force"], quiet].concat();
        assert_eq!(done(own.path(), &forced).is_empty(), !quiet.is_empty());
        assert!(fs::read(&copy).unwrap() == contents(0));
    }
}

#[test]
fn errors_are_sentences() {
    let own = directory();
    let serving = Serving::start(own.path(), &["--auth", "ada:secret"]);
    let url = serving.url("/file");
    for (args, part) in [
        (
            &["get", "127.0.0.1:1/a"][..],
            "check the address and the network",
        ),
        (&["get", "https://127.0.0.1/"], "https is not supported"),
        (
            &["get", &url],
            "needs a user name and a password; use --auth",
        ),
        (
            &["get", &url, "--auth", "ada:wrong"],
            "the user name or the password is wrong; correct --auth USER:PASSWORD",
        ),
        (
            &["get", &serving.address, "--day", "--auth", "eve:secret"],
            "the user name or the password is wrong",
        ),
        (&["get", "ada:secret@127.0.0.1/"], "pass it with --auth"),
        (
            &["get", &url, "--auth", "ada:secret"],
            "not found on the server",
        ),
        (
            &["get", &serving.address, "--follow", "--auth", "ada:secret"],
            "needs the path of a file",
        ),
    ] {
        refused(own.path(), args, &[part]);
    }
    assert!(names(own.path()).is_empty());
}
