//! `bench` on directories: figures, messages, and existing files that remain untouched.

use crate::common;

use common::mount::run_mounted;
use common::signals::{end_within, wait_until};
use common::{Run, Source, assert_refused, assert_schema, directory, done, file_system, json};
use common::{command, names, number, results_in, run, tree};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
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
        // A busy computer causes a warning of its own.
        let warning = table.lines().find(|line| {
            line.starts_with("warning: ") && !line.starts_with("warning: the computer may have")
        });
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
    assert_refused(
        &run,
        &[
            name,
            "make the file system writable, or choose another directory",
        ],
    );
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
    assert_eq!(names(medium.path()), [""; 0]);
}

/// Small writes to one file, over and over.
fn repeated(passes: u32) -> String {
    format!(
        "name = \"repeated\"\n[[phase]]\ncalls_per_file = 100000\nbytes_per_call = 64\npasses = {passes}\nfill = \"letter\"\n"
    )
}

/// The same number of writes at random offsets of two files.
fn scattered(passes: u32) -> String {
    format!(
        "{}files = 2\norder = \"round-robin\"\njump_within_bytes = 1048576\n",
        repeated(passes / 2)
    )
}

/// Starts writes to one file, with a trace.
#[cfg(target_os = "linux")]
fn start_repeated(own: &Path, workload: &str) -> Child {
    let medium = own.join("medium");
    fs::create_dir_all(&medium).unwrap();
    fs::write(own.join("repeated.toml"), workload).unwrap();
    let name = medium.to_str().unwrap();
    let args = [
        "bench",
        name,
        "--workload",
        "repeated.toml",
        "--io",
        "buffered",
        "--for",
        "1h",
    ];
    let outputs = ["--json", "f.json", "--trace", "t.parquet"];
    let mut bench = command(own, &[&args[..], &outputs[..]].concat());
    bench.spawn().unwrap()
}

/// Returns the number of writes in the JSON, and in the trace as `analyze` reads it.
fn writes_of(own: &Path) -> (u64, u64) {
    let analyzed = json(own, &["analyze", "t.parquet"]);
    let figures = results_in(&own.join("f.json"));
    (number(&figures, "writes"), number(&analyzed, "writes"))
}

/// Peak of the resident memory until shortly before the end, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib(mut child: Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak.unwrap_or(peak_kib);
        sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    peak_kib
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_needs_no_more_memory_for_more_writes() {
    for workload in [repeated, scattered] {
        needs_no_more_memory(workload);
    }
}

#[cfg(target_os = "linux")]
fn needs_no_more_memory(workload: fn(u32) -> String) {
    let own = directory();
    let mut peaks_kib = Vec::new();
    for passes in [10, 30] {
        peaks_kib.push(peak_kib(start_repeated(own.path(), &workload(passes))));
        let writes = u64::from(passes) * 100_000;
        assert_eq!(writes_of(own.path()), (writes, writes));
        assert_eq!(
            names(own.path()),
            ["f.json", "medium", "repeated.toml", "t.parquet"]
        );
        fs::remove_file(own.path().join("t.parquet")).unwrap();
        fs::remove_file(own.path().join("f.json")).unwrap();
    }
    // In memory, two million more writes take 16 MB, at random offsets 24 MB.
    assert!(peaks_kib[1] < peaks_kib[0] + 6 * 1024, "{peaks_kib:?} KiB");
}

/// Some of the times are in the temporary file when the signal arrives.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_a_whole_trace_of_a_long_run() {
    let own = directory();
    let child = start_repeated(own.path(), &repeated(100_000));
    let io = format!("/proc/{}/io", child.id());
    let written = || {
        let text = fs::read_to_string(&io).unwrap_or_default();
        let written = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        written
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
    };
    // 200,000 writes, and their times.
    wait_until(|| written() > 200_000 * (64 + 8));
    assert_eq!(
        end_within(child, "-INT", Duration::from_secs(60)).code,
        Some(130)
    );
    let (writes, analyzed) = writes_of(own.path());
    assert!(writes > 150_000, "{writes}");
    assert_eq!(analyzed, writes);
    assert_eq!(names(&own.path().join("medium")), [""; 0]);
}
