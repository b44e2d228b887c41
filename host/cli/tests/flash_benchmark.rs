//! `flash-benchmark`: study 2 on whole disks, which are loop devices, and in directories.

use crate::common;

use crate::disks;

use common::loop_disk::LoopDisk;
use common::signals::{end, wait_until};
use common::{Run, assert_refused, command, directory, json, names, refused, results, run, tree};
use disks::in_a_namespace;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BYTES: u64 = 64 << 20;
const REGION_BEGIN: usize = 4 << 20;
const CLEARED: usize = 1 << 20;

/// Small enough for a test.
const SMALL: [&str; 4] = ["--limit", "2MB", "--repeat", "3"];

fn rows(figures: &Value) -> Vec<&Value> {
    figures["rows"].as_array().unwrap().iter().collect()
}

fn of<'v>(figures: &'v Value, experiment: &str) -> Vec<&'v Value> {
    let mut rows = rows(figures);
    rows.retain(|row| row["experiment"] == experiment);
    rows
}

/// Compares the statistics of every row with its values.
fn check_statistics(figures: &Value) {
    let mut count = 0;
    for row in rows(figures) {
        let values = row["values"].as_array().unwrap().iter();
        let mut values: Vec<f64> = values.map(|value| value.as_f64().unwrap()).collect();
        assert_eq!(values.is_empty(), row["statistics"].is_null(), "{row}");
        assert_eq!(row["outcome"] == "measured", !values.is_empty(), "{row}");
        if values.is_empty() {
            assert!(row["reason"].is_string(), "{row}");
            continue;
        }
        count += 1;
        values.sort_by(f64::total_cmp);
        assert!(values[0] > 0.0, "{row}");
        let statistics = &row["statistics"];
        assert_eq!(statistics["min"], values[0]);
        assert_eq!(statistics["max"], values[values.len() - 1]);
        if values.len() == 3 {
            assert_eq!(statistics["median"], values[1]);
        }
    }
    assert!(count > 0);
}

/// Asserts that no mount and no loop device uses the disk.
fn assert_unused(device: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.split_whitespace().any(|word| word == device),
        "{mounts}"
    );
    // A killed process closes its files a moment after its parent knows of its end.
    wait_until(|| {
        let list = Command::new("losetup")
            .args(["--noheadings", "--output", "BACK-FILE", "--list"])
            .output();
        let list = String::from_utf8(list.unwrap().stdout).unwrap();
        let in_sysfs = fs::read_dir("/sys/block").unwrap().flatten().any(|block| {
            let file = block.path().join("loop/backing_file");
            fs::read_to_string(file).is_ok_and(|file| file.trim() == device)
        });
        !in_sysfs && !list.lines().any(|line| line.trim() == device)
    });
}

#[test]
#[ignore = "needs root and losetup"]
fn all_experiments_run_on_a_disk_that_is_blank_afterwards() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    // A backup of a partition table, which is at the end of a disk, and data around the marker.
    disk.write(BYTES - 512, b"EFI PART");
    disk.write(BYTES - (1 << 20), b"EFI PART");
    disk.write(64 << 10, b"another signature");
    let own = directory();
    let device = disk.device.as_str();
    let whole = ["flash-benchmark", device, "--destroy", device];
    let outputs = ["--markdown", "m.md", "--html", "h.html"];
    let figures = json(own.path(), &[&whole, &SMALL[..], &outputs].concat());
    check_statistics(&figures);
    assert_eq!(figures["disk"]["is_overwritten"], true);

    // The list of file systems agrees with the kernel's.
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    for file_system in figures["file_systems"].as_array().unwrap() {
        let name = file_system["name"].as_str().unwrap();
        let is_known = known.lines().any(|line| line.trim() == name);
        let is_available = file_system["is_available"].as_bool().unwrap();
        assert!(is_known || !is_available, "{file_system}");
        let mut own = of(&figures, "filesystems");
        own.retain(|row| row["set_up"] == name);
        assert_eq!(own.len(), 4, "{name}");
        let outcome = if is_available {
            "measured"
        } else {
            "not-available"
        };
        assert_eq!(own[0]["outcome"], outcome, "{}", own[0]);
    }
    assert_eq!(of(&figures, "fs-block").len(), 16);
    assert_eq!(of(&figures, "chunk-sweep").len(), 5);
    assert_eq!(of(&figures, "chunk-sweep")[2]["published"]["value"], 3.3);
    let scenarios = of(&figures, "sync-scenarios");
    let first = |row: &Value| row["case"].as_str().unwrap()[..1].to_string();
    let order: String = scenarios.iter().map(|row| first(row)).collect();
    assert_eq!(order, "123456789");
    assert_eq!(scenarios[3]["published"]["max"], 1.8);
    for file in ["m.md", "h.html"] {
        let text = fs::read_to_string(own.path().join(file)).unwrap();
        assert!(
            text.contains("sync-scenarios") && text.contains("1.6 to 1.8"),
            "{text}"
        );
    }

    assert_unused(device);
    let content = disk.content();
    for begin in [0, REGION_BEGIN, content.len() - CLEARED] {
        let cleared = &content[begin..][..CLEARED];
        assert!(cleared.iter().all(|&byte| byte == 0), "from byte {begin}");
    }
    let signatures = Command::new("blkid").args(["--probe", device]).output();
    assert_eq!(signatures.unwrap().stdout, b"");
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_not_written_unless_its_name_is_repeated() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let named = format!("--destroy {device}");
    let refused = run(own.path(), &["flash-benchmark", "-q", device]);
    assert_refused(&refused, &[device, &named, "all files on it are lost"]);
    let other = ["flash-benchmark", "-q", device, "--destroy", "/dev/loop"];
    assert_refused(&run(own.path(), &other), &[device, &named]);
    assert!(disk.content() == vec![0; BYTES as usize]);
    let Some(small) = LoopDisk::new(16 << 20) else {
        return;
    };
    let device = small.device.as_str();
    let args = ["flash-benchmark", "-q", device, "--destroy", device];
    assert_refused(&run(own.path(), &args), &[device, "smaller than 32 MiB"]);
    assert!(small.content() == vec![0; 16 << 20]);
}

#[test]
#[ignore = "needs root and losetup"]
fn a_limit_below_the_smallest_case_is_refused_before_anything_is_written() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    let small = ["flash-benchmark", "card", "--limit"];
    let smallest = ["1000000 B", "raise the limit to 1000000B"];
    for limit in ["0B", "999999B"] {
        refused(own.path(), &[&small[..], &[limit]].concat(), &smallest);
    }
    let chunks = [&small[..], &["1MB", "--experiment", "chunk-sweep"]].concat();
    refused(own.path(), &chunks, &["--limit 1000000B", "1048576 B"]);
    let zone = [&small[..], &["0B", "--experiment", "cache-size"]].concat();
    refused(own.path(), &zone, &smallest);
    let mounted = ["card", "--experiment", "fs-block"];
    let needs_disk = [&["flash-benchmark"], &mounted[..]].concat();
    let none = run(own.path(), &needs_disk);
    assert_refused(&none, &["card: nothing was measured", "needs a whole disk"]);

    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let device = disk.device.as_str();
    let whole = ["flash-benchmark", device, "--destroy", device];
    let none = [&whole[..], &["--limit", "0B"]].concat();
    refused(own.path(), &none, &smallest);
    assert!(disk.content() == vec![0; BYTES as usize]);
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_full_file_system_is_named_and_not_changed() {
    if !in_a_namespace("a_full_file_system_is_named_and_not_changed") {
        return;
    }
    let Some(disk) = LoopDisk::new(32 << 20) else {
        return;
    };
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    let script = r#"mkfs.ext4 -q -m 0 "$1" && mount "$1" "$2""#;
    let mut mount = Command::new("sh");
    mount.args(["-c", script, "sh", &disk.device]).arg(&card);
    assert!(mount.status().unwrap().success());
    fs::write(card.join("mine"), "mine").unwrap();
    fs::remove_dir(card.join("lost+found")).unwrap();
    let fill = |name: &str, block_bytes: usize, bytes: usize| {
        let mut file = fs::File::create(card.join(name)).unwrap();
        let block = vec![b'm'; block_bytes];
        let blocks = 0..bytes / block_bytes;
        let written = blocks.take_while(|_| file.write_all(&block).is_ok());
        assert!(written.count() > 0 || block_bytes == 1024, "{name}");
        file.sync_all().unwrap();
    };
    fill("spare", 4096, 1_500_000);
    fill("filler", 4096, usize::MAX);
    // The file system has blocks of 1 KiB: no folder fits.
    fill("rest", 1024, usize::MAX);
    let before = tree(own.path());
    let study = ["flash-benchmark", "card", "--experiment"];
    let of_study = |experiment| [&study[..], &[experiment]].concat();
    for (args, remedy) in [
        (of_study("file-size"), "free some space, at least 2 MB"),
        (of_study("cache-size"), "free some space, at least 2 MB"),
        (vec!["check", "card"], "free at least 6 MiB"),
    ] {
        let full = run(own.path(), &args);
        assert_refused(&full, &["error: card: No space left", remedy]);
        assert_eq!(full.stdout, "", "{args:?}");
        assert!(tree(own.path()) == before, "{args:?}");
    }
    // Room for a folder, and for no case of the search for the fast zone.
    fs::remove_file(card.join("spare")).unwrap();
    let before = tree(own.path());
    let check = run(own.path(), &["check", "card"]);
    assert_refused(&check, &["error: card: ", " free"]);
    assert!(tree(own.path()) == before);
    for (experiment, needed) in [("cache-size", "3 MB"), ("chunk-sweep", "75 MB")] {
        let args = ["flash-benchmark", "card", "--experiment", experiment];
        let full = run(own.path(), &[&args[..], &["--json", "-"]].concat());
        let needs = format!("needs {needed} of free space");
        assert_refused(&last_line(&full), &["card: nothing was measured", &needs]);
        let figures = results(&full.stdout);
        let all = figures["rows"].as_array().unwrap();
        assert!(!all.is_empty() && all.iter().all(|row| row["outcome"] == "skipped"));
        assert!(!full.stderr.contains("no drop"), "{}", full.stderr);
        assert!(tree(own.path()) == before);
    }
    assert!(
        Command::new("umount")
            .arg(&card)
            .status()
            .unwrap()
            .success()
    );
}

/// Returns the run with the last line of standard error only: the table is in front of it.
fn last_line(run: &Run) -> Run {
    let last = run.stderr.lines().last().unwrap_or_default();
    Run {
        code: run.code,
        stdout: String::new(),
        stderr: format!("{last}\n"),
    }
}

#[test]
fn a_folder_that_is_exchanged_meanwhile_is_not_touched() {
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    let args = ["flash-benchmark", "card", "--experiment", "file-size"];
    let many = ["--limit", "1MB", "--repeat", "1000", "--for", "60s"];
    let child = command(own.path(), &[&args[..], &many].concat())
        .spawn()
        .unwrap();
    let folder = card.join("cardiograph-flash-benchmark-0");
    wait_until(|| folder.join("00000.bin").exists());
    let moved = card.join("moved");
    fs::rename(&folder, &moved).unwrap();
    let mine = folder.join("00000.bin");
    fs::create_dir(&folder).unwrap();
    fs::write(&mine, "mine").unwrap();
    let written = || {
        fs::metadata(moved.join("00000.bin"))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = written();
    wait_until(|| written() > before);
    let ended = end(child, "-INT");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(!ended.stderr.contains("removed\n"), "{}", ended.stderr);
    for words in [
        "warning: card: interrupted\n",
        "moved: could not be removed (it was moved during the run)",
        "remove it: rm -r /",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert_eq!(names(&moved), [""; 0]);
    assert_eq!(names(&card), ["cardiograph-flash-benchmark-0", "moved"]);
}

/// Starts a run that ends with SIGINT only, and waits until it has written.
fn start_long(own: &Path) -> Child {
    let args = ["flash-benchmark", "card", "--experiment", "file-size"];
    let many = ["--limit", "1MB", "--repeat", "1000", "--for", "60s"];
    let child = command(own, &[&args[..], &many].concat()).spawn().unwrap();
    let file = own.join("card").join(FOLDER).join("00000.bin");
    wait_until(|| file.exists());
    child
}

const FOLDER: &str = "cardiograph-flash-benchmark-0";

#[test]
fn a_directory_that_is_renamed_is_cleared_where_it_is() {
    let own = directory();
    let (card, moved) = (own.path().join("card"), own.path().join("moved"));
    fs::create_dir(&card).unwrap();
    let child = start_long(own.path());
    fs::rename(&card, &moved).unwrap();
    let ended = end(child, "-INT");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let warning = "warning: card: interrupted; the new files were removed\n";
    assert!(ended.stderr.ends_with(warning), "{}", ended.stderr);
    assert_eq!(names(&moved), [""; 0]);
}

#[test]
fn files_of_others_in_the_folder_survive_and_the_folder_is_named() {
    let own = directory();
    let card = own.path().join("card");
    let folder = card.join(FOLDER);
    fs::create_dir(&card).unwrap();
    for is_folder in [false, true] {
        let child = start_long(own.path());
        match is_folder {
            true => fs::create_dir(folder.join("mine")).unwrap(),
            false => fs::write(folder.join("mine"), "mine").unwrap(),
        }
        let ended = end(child, "-INT");
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(!ended.stderr.contains("were removed"), "{}", ended.stderr);
        let named = format!(
            "warning: card: interrupted\nerror: card/{FOLDER}: could not be removed (it contains files that this run did \
             not create: move them elsewhere first); remove it: rm -r card/{FOLDER}\n"
        );
        assert!(ended.stderr.ends_with(&named), "{}", ended.stderr);
        assert_eq!(names(&folder), ["mine"]);
        if !is_folder {
            assert_eq!(fs::read(folder.join("mine")).unwrap(), b"mine");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_file_of_others_with_the_name_of_a_new_one_is_not_overwritten() {
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    let args = ["flash-benchmark", "card", "--limit", "2MB"];
    let short = ["--experiment", "cache-size", "--experiment", "file-size"];
    let many = ["--repeat", "1000", "--for", "2s", "--json", "f.json"];
    let child = command(own.path(), &[&args[..], &short, &many].concat())
        .spawn()
        .unwrap();
    // Experiments run in their order in the study: files first, then the one of all transfers.
    let folder = card.join(FOLDER);
    wait_until(|| folder.join("00000.bin").exists());
    let mine = folder.join("99999.bin");
    fs::write(&mine, "mine").unwrap();
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let taken = format!("{FOLDER}/99999.bin exists already, and this run did not create it");
    let left = format!("\nerror: card/{FOLDER}: could not be removed");
    for words in [&taken, &left] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert_eq!(names(&folder), ["99999.bin"]);
    assert!(own.path().join("f.json").exists());
}

/// The file of a run is moved, and a file of somebody else takes its place.
#[test]
fn a_file_in_place_of_one_of_the_run_is_neither_overwritten_nor_removed() {
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    let child = start_long(own.path());
    let mine = card.join(FOLDER).join("00000.bin");
    fs::write(own.path().join("mine"), "mine").unwrap();
    fs::rename(&mine, own.path().join("moved")).unwrap();
    fs::rename(own.path().join("mine"), &mine).unwrap();
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let left = format!(
        "\nerror: card/{FOLDER}: could not be removed (it contains files that this run did"
    );
    for words in ["1 case failed", "another program", &left] {
        assert!(ended.stderr.contains(words), "{words} in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("do not trust"), "{}", ended.stderr);
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert_eq!(names(&card.join(FOLDER)), ["00000.bin"]);
}

/// End of the message about a folder that an attribute protects; `cleared.rs` runs such a command.
#[cfg(target_os = "linux")]
fn unlocked() -> String {
    format!(": chattr -ia card && chattr -R -ia card/{FOLDER} && rm -r card/{FOLDER}\n")
}

/// Sets or clears an attribute; returns false if the file system has none.
#[cfg(target_os = "linux")]
fn attribute(change: &str, path: &Path) -> bool {
    let done = Command::new("chattr").arg(change).arg(path).output();
    done.is_ok_and(|done| done.status.success())
}

/// Nothing in an immutable folder can be removed, and no folder of an append-only directory.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root and chattr"]
fn a_signal_and_a_folder_that_cannot_be_removed_are_both_reported() {
    for (letter, is_folder, files) in [("i", true, &["00000.bin"][..]), ("a", false, &[])] {
        let own = directory();
        let card = own.path().join("card");
        fs::create_dir(&card).unwrap();
        let child = start_long(own.path());
        let locked = match is_folder {
            true => card.join(FOLDER),
            false => card.clone(),
        };
        if !attribute(&format!("+{letter}"), &locked) {
            eprintln!("no attributes of files here: not tested");
            end(child, "-INT");
            return;
        }
        let ended = end(child, "-INT");
        let left = names(&card.join(FOLDER));
        assert!(attribute(&format!("-{letter}"), &locked));
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        let both = format!(
            "warning: card: interrupted\nerror: card/{FOLDER}: could not be removed (Operation not permitted (os error 1)); "
        );
        assert!(ended.stderr.contains(&both), "{}", ended.stderr);
        assert!(ended.stderr.ends_with(&unlocked()), "{}", ended.stderr);
        assert_eq!(left, files);
    }
}

/// Folders of a directory with this attribute cannot be removed.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root and chattr"]
fn a_folder_that_cannot_be_removed_is_named() {
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    if !attribute("+a", &card) {
        eprintln!("no attributes of files here: not tested");
        return;
    }
    let complete = run(
        own.path(),
        &[&["flash-benchmark", "card"], &SMALL[..]].concat(),
    );
    let left = names(&card);
    assert!(attribute("-a", &card));
    assert_eq!(complete.code, Some(2), "{}", complete.stderr);
    assert_eq!(left, [FOLDER]);
    assert_eq!(names(&card.join(FOLDER)), [""; 0]);
    let sentence = format!("error: card/{FOLDER}: could not be removed");
    assert!(complete.stderr.contains(&sentence), "{}", complete.stderr);
    assert!(
        complete.stderr.ends_with(&unlocked()),
        "{}",
        complete.stderr
    );
    fs::remove_dir(card.join(FOLDER)).unwrap();
}

#[test]
#[ignore = "needs root and losetup"]
fn a_killed_run_is_named_by_the_next_one_and_leaves_no_mount() {
    let own = directory();
    for step in ["raw transfers", "ext2", "ext3", "ext4"] {
        let Some(disk) = LoopDisk::new(BYTES) else {
            return;
        };
        let device = disk.device.as_str();
        let whole = ["flash-benchmark", device, "--destroy", device];
        let mut started = command(own.path(), &[&whole, &SMALL[..]].concat());
        let mut child = started
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = format!("\nstep: {step}\n");
        wait_until(|| {
            let begin = disk.first_block();
            let is_there = String::from_utf8_lossy(&begin).contains(&line);
            assert!(is_there || child_runs(&child), "{step} was not reached");
            is_there
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_unused(device);
        let named = format!(
            "warning: {device} was half formatted by an interrupted run of `cardiograph flash-benchmark {device}"
        );
        // The run may have begun its next step before it was killed.
        let begin = String::from_utf8(disk.first_block().to_vec()).unwrap();
        let killed_at = begin.lines().find_map(|line| line.strip_prefix("step: "));
        let killed_at = format!("at the step {}; ", killed_at.unwrap());
        // A disk that is only read is not tested.
        for (next, code) in [("bench", 0), ("check", 6)] {
            let next = run(own.path(), &[next, device, "-q"]);
            assert_eq!(next.code, Some(code), "{}", next.stderr);
            assert!(next.stderr.contains(&named), "{}", next.stderr);
            assert!(next.stderr.contains(&killed_at), "{}", next.stderr);
        }
        let experiment = ["--experiment", "chunk-sweep", "--repeat", "1"];
        let whole = run(own.path(), &[&whole[..], &experiment].concat());
        assert_eq!(whole.code, Some(0), "{}", whole.stderr);
        assert!(whole.stderr.contains(&named), "{}", whole.stderr);
        let next = run(own.path(), &["bench", device, "-q"]);
        assert_eq!((next.code, next.stderr.as_str()), (Some(0), ""));
    }
}

/// Returns true unless the process has ended.
fn child_runs(child: &Child) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_directory_is_measured_without_formatting_and_left_as_it_was() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    fs::write(own.path().join("card/mine"), "mine").unwrap();
    let left = own.path().join("card/cardiograph-flash-benchmark-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("00000.bin"), "mine, too").unwrap();
    let before = tree(own.path());
    let figures = json(
        own.path(),
        &[&["flash-benchmark", "card"], &SMALL[..]].concat(),
    );
    check_statistics(&figures);
    assert_eq!(tree(own.path()), before);
    assert!(figures["disk"].is_null());
    let mut scenarios = of(&figures, "sync-scenarios");
    scenarios.retain(|row| row["outcome"] == "measured");
    assert_eq!(scenarios.len(), 3);
    for row in of(&figures, "fs-block") {
        assert_eq!(row["reason"], "needs a whole disk");
    }
    assert_eq!(of(&figures, "file-size")[0]["published"]["set_up"], "ext2");

    for (args, words) in [
        (
            &["sim:class10-16g"][..],
            ["sim:class10-16g", "cardiograph reproduce"],
        ),
        (
            &["no-such-folder"],
            ["no-such-folder", "neither a directory nor a disk"],
        ),
        (
            &["card", "--destroy", "card"],
            ["card", "--destroy does not apply"],
        ),
        (&["/proc"], ["/proc", "choose a directory you may write to"]),
    ] {
        let refused = run(own.path(), &[&["flash-benchmark"], args].concat());
        assert_refused(&refused, &words);
    }
    assert_eq!(names(own.path()), ["card"]);
}
