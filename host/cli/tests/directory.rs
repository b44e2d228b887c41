//! `bench` on directories: figures, messages, and existing files that remain untouched.

mod common;

use common::mount::run_mounted;
use common::{Run, Source, assert_refused, assert_schema, directory, done, file_system, json};
use common::{command, names, run, tree};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Uses every span, order and folder layout. All payloads are whole blocks, so that they can also bypass the
/// page cache.
const WORKLOAD: &str = r#"
name = "all ways"
[[phase]]
files = 2
calls_per_file = 8
bytes_per_call = 4096
[[phase]]
files = 3
calls_per_file = 4
bytes_per_call = 4096
span = "open-to-close"
order = "round-robin"
folder_per_file = true
passes = 2
[[phase]]
calls_per_file = 4
bytes_per_call = 4096
span = "file"
sync_end = "wait"
[[phase]]
calls_per_file = 8
bytes_per_call = 4096
jump_within_bytes = 65536
fill = "letter"
"#;

/// Number of operations of the four phases: 16 + 24 + 1 (a whole file) + 8.
const WRITES: u64 = 49;

/// Fills a directory with files that have the names that a run would choose.
fn fill(directory: &Path) {
    let test = directory.join("writeTimeTemp/test_0");
    fs::create_dir_all(&test).unwrap();
    fs::write(test.join("temp_0.txt"), "mine").unwrap();
    fs::write(directory.join("writeTimeTemp/notes.txt"), [0, 255, 10]).unwrap();
    fs::write(directory.join("photo.raw"), vec![7; 10_000]).unwrap();
}

fn workload(directory: &Path, text: &str) -> String {
    let path = directory.join("workload.toml");
    fs::write(&path, text).unwrap();
    path.into_os_string().into_string().unwrap()
}

#[test]
fn every_way_of_writing_leaves_the_directory_as_it_was() {
    let own = directory();
    let workload = workload(own.path(), WORKLOAD);
    for io in ["buffered", "direct", "dsync", "fsync-write", "fsync-file"] {
        for is_filled in [false, true] {
            let medium = directory();
            if is_filled {
                fill(medium.path());
            }
            let before = tree(medium.path());
            let name = medium.path().to_str().unwrap();
            let args = ["bench", name, "--io", io, "--workload", &workload];
            let run = run(own.path(), &[&args[..], &["--json", "-"]].concat());
            assert!(tree(medium.path()) == before, "--io {io} left something");
            if io == "direct" && run.code != Some(0) {
                // Not every file system supports O_DIRECT.
                assert_refused(&run, &[name, "use --io dsync instead of --io direct"]);
                continue;
            }
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert!(
                run.stderr.contains(&format!("--io {io}.")),
                "{}",
                run.stderr
            );
            let figures = common::results(&run.stdout);
            assert_schema(&figures, Source::Writes);
            assert_eq!(figures["target"], name);
            assert_eq!(figures["workload"], "all ways");
            assert_eq!(figures["writes"], WRITES);
            assert_eq!(figures["payload_bytes"], (WRITES + 3) * 4096);
        }
    }
}

#[test]
fn repeats_on_a_directory_are_an_array() {
    let medium = directory();
    let args = ["bench", ".", "--io", "buffered", "--workload"];
    let args = [&args[..], &["byte-multi-read"]].concat();
    let figures = json(medium.path(), &[&args[..], &["--repeat", "2"]].concat());
    assert_eq!(figures.as_array().unwrap().len(), 2);
    for run in figures.as_array().unwrap() {
        assert_schema(run, Source::Writes);
        assert_eq!(run["writes"], 4 * 4096);
    }
    assert!(names(medium.path()).is_empty());
}

#[test]
fn a_run_stops_when_its_time_is_up_and_says_so() {
    let own = directory();
    let slow = workload(own.path(), "name = \"slow\"\n[[phase]]\ndelay_us = 5000\n");
    let medium = directory();
    let name = medium.path().to_str().unwrap();
    let args = ["bench", name, "--workload", &slow, "--for", "300ms"];
    let begun = Instant::now();
    let table = done(own.path(), &[&args[..], &["--json", "f.json"]].concat());
    // The whole workload would take more than 80 s.
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(table.contains("warning: stopped after 300ms"), "{table}");
    assert!(table.contains("allow more time with --for"), "{table}");
    let figures = common::results_in(&own.path().join("f.json"));
    let writes = figures["writes"].as_u64().unwrap();
    assert!((1..=61).contains(&writes), "{writes} writes, 5 ms apart");
    // The data written by then is read back, and a note states which stalls the run could not show.
    assert!(table.contains("read back, identical"), "{table}");
    assert!(!table.contains("not all files were verified"), "{table}");
    assert!(
        table.contains("Stalls that occur less often than once in"),
        "{table}"
    );
    assert!(names(medium.path()).is_empty());
}

#[test]
fn a_time_limit_holds_for_a_simulated_card_in_its_own_time() {
    let own = directory();
    let args = ["bench", "--workload", "magod2", "--for", "10s"];
    let figures = json(own.path(), &args);
    let elapsed_us = figures["elapsed_us"].as_f64().unwrap();
    // Each line and the pause after it take less than 0.3 s in total.
    assert!((9.7e6..10.3e6).contains(&elapsed_us), "{elapsed_us}");
    assert!(done(own.path(), &args).contains("warning: stopped after 10s"));
}

#[test]
fn warns_if_caches_hide_the_device() {
    let own = directory();
    let workload = workload(own.path(), WORKLOAD);
    let warning = |name: &str, io: &str| {
        let table = done(
            own.path(),
            &["bench", name, "--io", io, "--workload", &workload],
        );
        let warning = table.lines().find(|line| line.starts_with("warning: "));
        warning.unwrap_or_default().to_string()
    };
    let medium = directory();
    let name = medium.path().to_str().unwrap();
    match file_system(medium.path()).as_str() {
        "tmpfs" | "ramfs" => assert!(warning(name, "buffered").contains("is in memory")),
        _ => {
            assert!(warning(name, "buffered").contains("return from the page cache"));
            assert!(warning(name, "buffered").contains("use --io dsync or --io direct"));
            assert!(warning(name, "fsync-file").contains("until a file is closed"));
            assert_eq!(warning(name, "dsync"), "");
            assert_eq!(warning(name, "fsync-write"), "");
        }
    }
    let memory = Path::new("/dev/shm");
    if memory.is_dir() && file_system(memory) == "tmpfs" {
        let medium = tempfile::tempdir_in(memory).unwrap();
        let name = medium.path().to_str().unwrap();
        assert!(warning(name, "dsync").contains("is in memory"));
        assert!(names(medium.path()).is_empty());
    }
}

#[test]
fn a_full_disk_shows_what_was_measured_and_is_left_clean() {
    let (own, medium) = (directory(), directory());
    let name = medium.path().to_str().unwrap();
    let json = own.path().join("figures.json");
    // The workload writes 8 MiB, the file system holds 1 MiB.
    let args = ["bench", name, "--json", json.to_str().unwrap()];
    let (run, left) = run_mounted("tmpfs", "size=1m", medium.path(), &args);
    let file = "writeTimeTemp/test_0/temp_0.txt";
    assert_refused(&run, &[name, file, "free some space"]);
    let Run { stdout, .. } = run;
    assert!(
        stdout.contains("the run failed; the figures cover the operations before the failure"),
        "{stdout}"
    );
    let writes = stdout.lines().find(|line| line.contains("  writes  "));
    let writes: String = writes.unwrap().matches(char::is_numeric).collect();
    let writes: u64 = writes.parse().unwrap();
    // 1 MiB in blocks of 512 B, minus the space for folders.
    assert!((1000..=2048).contains(&writes), "{writes}");
    assert_eq!(left, [""; 0]);
    assert!(names(own.path()).is_empty());
}

#[test]
fn a_result_that_does_not_fit_is_not_left_by_half() {
    let medium = directory();
    let csv = medium.path().join("t.csv");
    // 32768 rows of more than 32 characters.
    let args = ["bench", "--workload", "blinky-interleaved", "--csv"];
    let args = [&args[..], &[csv.to_str().unwrap()]].concat();
    let (run, left) = run_mounted("tmpfs", "size=1m", medium.path(), &args);
    assert_refused(&run, &["t.csv: the disk is full", "free some space"]);
    assert!(run.stdout.contains("  writes  "), "{}", run.stdout);
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_refused() {
    let medium = directory();
    let name = medium.path().to_str().unwrap();
    let (run, left) = run_mounted("tmpfs", "ro", medium.path(), &["bench", name]);
    assert_refused(&run, &[name, "choose a directory you may write to"]);
    assert_eq!(left, [""; 0]);

    let json = medium.path().join("f.json");
    let args = ["bench", "--json", json.to_str().unwrap()];
    let (run, _) = run_mounted("tmpfs", "ro", medium.path(), &args);
    assert_refused(&run, &["f.json", "choose another location"]);
    // The command detected the problem before it measured anything.
    assert_eq!(run.stdout, "");
}

#[test]
fn a_file_system_without_direct_access_is_left_clean() {
    let medium = directory();
    let name = medium.path().to_str().unwrap();
    let args = ["bench", name, "--io", "direct"];
    let (run, left) = run_mounted("ramfs", "rw", medium.path(), &args);
    assert_refused(&run, &[name, "use --io dsync instead of --io direct"]);
    assert_eq!(left, [""; 0]);
}

#[test]
fn two_runs_in_one_directory_do_not_disturb_each_other() {
    let (own, medium) = (directory(), directory());
    let slow = workload(
        own.path(),
        "name = \"slow\"\n[[phase]]\ncalls_per_file = 50\ndelay_us = 20000\n",
    );
    let name = medium.path().to_str().unwrap();
    let args = ["bench", name, "--workload", &slow];
    let first = command(own.path(), &args).spawn().unwrap();
    while !medium.path().join("writeTimeTemp/test_0").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let second = command(own.path(), &args).spawn().unwrap();
    for child in [first, second] {
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    // A run that finds the shared folder in use may leave it behind, but nothing inside it.
    let left = tree(medium.path());
    assert!(left.len() <= 1, "{left:?}");
}
