//! Options and figures of `bench` that say how far its results can be trusted. Stalls are planted by a FUSE file below a
//! loop device.

#![cfg(target_os = "linux")]

use crate::common;
use crate::disks as planted;

use common::signals::{end, wait_for_handler, wait_until};
use common::{Run, assert_refused, command, directory, done, json, names, number, refused};
use common::{results_in, run};
use planted::fuse::{Disk, Mounted};
use planted::{Loop, in_a_namespace};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;

/// A disk in memory whose writes of the payload take their time.
struct Slow {
    memory: Vec<u8>,
    /// Number of payload blocks written so far.
    writes: Arc<AtomicU64>,
    /// Time that a write takes, by its number.
    time: fn(u64) -> Duration,
}

impl Disk for Slow {
    fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        let at = offset_bytes as usize;
        buffer.copy_from_slice(&self.memory[at..at + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        let at = offset_bytes as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        if data.len() == BLOCK_BYTES && data[8..].iter().all(|&byte| byte == b'A') {
            let number = self.writes.fetch_add(1, Ordering::SeqCst);
            sleep((self.time)(number));
        }
        Ok(())
    }
}

/// A loop device over such a disk.
struct SlowDisk {
    writes: Arc<AtomicU64>,
    attached: Loop,
    _mounted: Mounted,
    _folder: tempfile::TempDir,
}

impl SlowDisk {
    fn new(time: fn(u64) -> Duration) -> Option<SlowDisk> {
        let folder = tempfile::tempdir().unwrap();
        let writes = Arc::new(AtomicU64::new(0));
        let disk = Slow {
            memory: vec![0; 16 << 20],
            writes: writes.clone(),
            time,
        };
        let mounted = Mounted::at(folder.path(), disk)?;
        let attached = Loop::over(&mounted.disk(), &[])?;
        Some(SlowDisk {
            writes,
            attached,
            _mounted: mounted,
            _folder: folder,
        })
    }

    /// Starts a run that overwrites the disk with the given number of blocks.
    fn bench(&self, own: &Path, blocks: u64, options: &[&str]) -> Child {
        fs::write(own.join("blocks.toml"), blocks_of(blocks)).unwrap();
        let device = self.attached.device.as_str();
        let args = ["bench", device, "--destroy", device, "--workload"];
        let outputs = ["blocks.toml", "--json", "f.json"];
        let args = [&args[..], &outputs, options].concat();
        command(own, &args).spawn().unwrap()
    }

    fn wait_for_write(&self, number: u64) {
        wait_until(|| self.writes.load(Ordering::SeqCst) >= number);
    }
}

fn blocks_of(blocks: u64) -> String {
    format!(
        "name = \"blocks\"\n[[phase]]\ncalls_per_file = {blocks}\nbytes_per_call = {BLOCK_BYTES}\n"
    )
}

/// Stops a process for a time.
fn stop_for(child: &Child, time: Duration) {
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        let sent = kill.args([name, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    sleep(time);
    signal("-CONT");
}

const STALL_AT: u64 = 1000;
const STALL: Duration = Duration::from_millis(1500);
const STOP: Duration = Duration::from_millis(400);

fn stalls_once(number: u64) -> Duration {
    match number {
        STALL_AT => STALL,
        _ => Duration::from_millis(2),
    }
}

/// Every write takes 2 ms, so that a stop of the process almost always falls into one: its latency includes the stop.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_stopped_process_is_told_from_a_stall_of_the_medium() {
    if !in_a_namespace("a_stopped_process_is_told_from_a_stall_of_the_medium") {
        return;
    }
    let Some(disk) = SlowDisk::new(stalls_once) else {
        return;
    };
    let own = directory();
    let child = disk.bench(own.path(), STALL_AT + 200, &["--for", "1h"]);
    for number in [100, 300, 500] {
        disk.wait_for_write(number);
        stop_for(&child, STOP);
    }
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = results_in(&own.path().join("f.json"));
    let computer = &figures["trust"]["computer"];
    let us = |value: &Value| value.as_f64().unwrap();
    // The stall of the medium stays the worst case, and nobody else is to blame for it.
    assert!(us(&figures["latency_us"]["worst_case"]) >= STALL.as_micros() as f64);
    assert_eq!(computer["worst_case_is_suspect"], false, "{computer}");
    let suspects = computer["suspects"].as_array().unwrap();
    let is_stall = |suspect: &&Value| suspect["operation"] == STALL_AT;
    assert!(!suspects.iter().any(|one| is_stall(&one)), "{computer}");
    assert!(!run.stdout.contains("may have caused the worst case"));
    // The stops are the computer's.
    let stop_us = STOP.as_micros() as f64;
    let is_stop = |suspect: &&Value| {
        us(&suspect["latency_us"]) >= stop_us && us(&suspect["lateness_us"]) >= stop_us / 2.0
    };
    assert!(suspects.iter().any(|one| is_stop(&one)), "{computer}");
    assert!(number(computer, "slow_operations") > number(computer, "suspect_operations"));
    assert!(us(&computer["worst_lateness_us"]) >= stop_us / 2.0);
    assert!(number(computer, "late_wake_ups") <= number(computer, "wake_ups"));
    // All of them are in the figures.
    assert_eq!(figures["writes"], STALL_AT + 200);
    assert!(run.stdout.contains("may have been delayed by the computer"));
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_worst_case_of_the_computer_has_a_warning_and_stays_in_the_figures() {
    if !in_a_namespace("a_worst_case_of_the_computer_has_a_warning_and_stays_in_the_figures") {
        return;
    }
    let Some(disk) = SlowDisk::new(|_| Duration::from_millis(2)) else {
        return;
    };
    let own = directory();
    let child = disk.bench(own.path(), 600, &["--html", "f.html"]);
    for number in [100, 200, 300] {
        disk.wait_for_write(number);
        stop_for(&child, Duration::from_secs(1));
    }
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = results_in(&own.path().join("f.json"));
    assert_eq!(figures["writes"], 600);
    assert!(figures["latency_us"]["worst_case"].as_f64() >= Some(1e6));
    let computer = &figures["trust"]["computer"];
    assert_eq!(computer["worst_case_is_suspect"], true, "{computer}");
    let warning = "the computer may have caused the worst case";
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    let page = fs::read_to_string(own.path().join("f.html")).unwrap();
    assert!(page.contains(warning) && page.contains("suspect operations"));
    let notes = figures["notes"].to_string();
    assert!(notes.contains(warning), "{notes}");
}

/// Two busy processes on the only processor that the bench may use.
#[test]
fn waits_for_a_processor_are_counted() {
    if !Path::new("/proc/self/schedstat").exists() {
        return;
    }
    let core = cardiograph_system::allowed_cores()[0].to_string();
    let own = directory();
    let text = "name = \"many\"\n[[phase]]\ncalls_per_file = 100000\n";
    fs::write(own.path().join("many.toml"), text).unwrap();
    let spin = || {
        let mut busy = Command::new("taskset");
        let busy = busy.args(["-c", &core, "sh", "-c", "while :; do :; done"]);
        busy.spawn().unwrap()
    };
    let mut busy = [spin(), spin()];
    let mut bench = Command::new("taskset");
    bench.args(["-c", &core, env!("CARGO_BIN_EXE_cardiograph")]);
    bench.args(["bench", ".", "--workload", "many.toml", "--io", "buffered"]);
    let output = bench.args(["--json", "-"]).current_dir(own.path()).output();
    for process in &mut busy {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let run = Run::from(output.unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = common::results(&run.stdout);
    let computer = &figures["trust"]["computer"];
    assert!(computer["queue_us"].as_f64() > Some(0.0), "{computer}");
    assert!(
        run.stderr.contains("waits for a processor"),
        "{}",
        run.stderr
    );
}

/// The worst case doubles from the first half of all writes to all of them, however many there are.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_worst_case_that_keeps_growing_is_reported_as_not_stable() {
    if !in_a_namespace("a_worst_case_that_keeps_growing_is_reported_as_not_stable") {
        return;
    }
    let growing = |number| Duration::from_millis(10 + 5 * number);
    let Some(disk) = SlowDisk::new(growing) else {
        return;
    };
    let own = directory();
    let child = disk.bench(own.path(), 8, &["--until-stable", "--for", "2s"]);
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = results_in(&own.path().join("f.json"));
    let until_stable = &figures["trust"]["until_stable"];
    // On a busy computer, one write may take far longer than its time; then no later one raises the worst case.
    if until_stable["is_stable"] == true {
        assert!(until_stable["increase_ratio"].as_f64() < Some(0.1));
        return;
    }
    assert_eq!(until_stable["ended_by"], "time");
    assert_eq!(until_stable["is_stable"], false, "{until_stable}");
    assert!(number(until_stable, "repeats") > 1, "{until_stable}");
    assert!(run.stdout.contains("warning: the worst case is not stable"));
    assert!(run.stdout.contains("allow more time with --for"));
}

/// Returns the latencies in a trace, in ns.
fn latencies_ns(own: &Path) -> Vec<u64> {
    done(own, &["analyze", "t.parquet", "--csv", "t.csv", "-q"]);
    let text = fs::read_to_string(own.join("t.csv")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split(',').collect()).collect();
    let column = |name| rows[0].iter().position(|one| *one == name).unwrap();
    let (start, end) = (column("start_ns"), column("end_ns"));
    let ns = |row: &[&str], column: usize| row[column].parse::<u64>().unwrap();
    let rows = rows[1..].iter();
    rows.map(|row| ns(row, end) - ns(row, start)).collect()
}

/// Applies the rule to a list.
fn increase(latencies_ns: &[u64]) -> f64 {
    let worst = |list: &[u64]| *list.iter().max().unwrap() as f64;
    worst(latencies_ns) / worst(&latencies_ns[..latencies_ns.len() / 2]) - 1.0
}

#[test]
fn a_workload_is_repeated_until_the_rule_holds_and_not_once_more() {
    const BLOCKS: usize = 16;
    let own = directory();
    let text = blocks_of(BLOCKS as u64);
    fs::write(own.path().join("blocks.toml"), text).unwrap();
    fs::create_dir(own.path().join("medium")).unwrap();
    let args = ["bench", "medium", "--workload", "blocks.toml", "--io"];
    let options = ["buffered", "--until-stable", "--trace", "t.parquet"];
    let figures = json(own.path(), &[&args[..], &options].concat());
    let until_stable = &figures["trust"]["until_stable"];
    assert_eq!(until_stable["ended_by"], "stable", "{until_stable}");
    assert_eq!(until_stable["is_stable"], true);
    let latencies_ns = latencies_ns(own.path());
    let repeats = number(until_stable, "repeats") as usize;
    assert_eq!(latencies_ns.len(), repeats * BLOCKS);
    assert_eq!(number(&figures, "writes") as usize, repeats * BLOCKS);
    for repeat in 1..=repeats {
        let increase = increase(&latencies_ns[..repeat * BLOCKS]);
        assert_eq!(increase < 0.1, repeat == repeats, "{repeat} of {repeats}");
    }
    let reported = until_stable["increase_ratio"].as_f64().unwrap();
    assert!((reported - increase(&latencies_ns)).abs() < 0.001);
    assert!(names(&own.path().join("medium")).is_empty());
}

#[test]
fn what_was_written_before_the_measurement_is_not_in_the_figures() {
    let own = directory();
    fs::write(own.path().join("blocks.toml"), blocks_of(512)).unwrap();
    fs::create_dir(own.path().join("medium")).unwrap();
    let args = ["bench", "medium", "--workload", "blocks.toml", "--io"];
    let options = ["buffered", "--precondition", "--warm-up", "100"];
    let outputs = ["--trace", "t.parquet"];
    let figures = json(own.path(), &[&args[..], &options, &outputs].concat());
    assert_eq!(figures["writes"], 412);
    let trust = &figures["trust"];
    assert_eq!(trust["preconditioned_bytes"], 512 * BLOCK_BYTES);
    assert_eq!(trust["warm_up_operations"], 100);
    assert!(trust["until_stable"].is_null());
    assert!(trust["clock_resolution_us"].as_f64() > Some(0.0));
    assert!(trust["overhead_us"].as_f64() > Some(0.0));
    assert!(trust["computer"]["wake_ups"].as_u64() > Some(0));
    assert!(names(&own.path().join("medium")).is_empty());
    assert_eq!(latencies_ns(own.path()).len(), 412);
    // The trace says so as well.
    let table = done(own.path(), &["analyze", "t.parquet"]);
    assert!(table.contains("100 operations of the workload were run as a warm-up"));
    assert!(table.contains("were written to bring the storage device into a used state"));
}

#[test]
fn a_warm_up_may_be_a_time() {
    let own = directory();
    let slow = "name = \"slow\"\n[[phase]]\ncalls_per_file = 100\ndelay_us = 5000\n";
    fs::write(own.path().join("slow.toml"), slow).unwrap();
    let args = ["bench", "--workload", "slow.toml", "--warm-up", "200ms"];
    let figures = json(own.path(), &[&args[..], &["."]].concat());
    let warm_up = number(&figures["trust"], "warm_up_operations");
    assert_eq!(warm_up + number(&figures, "writes"), 100);
    assert!((1..=41).contains(&warm_up), "{warm_up} writes, 5 ms apart");
    // In virtual time, the warm-up has the same number of operations in each run.
    let on_card = || {
        done(
            own.path(),
            &[&args[..], &["sim:class10-16g@esp32"]].concat(),
        )
    };
    let table = on_card();
    assert!(table.contains("were run as a warm-up"), "{table}");
    assert_eq!(table, on_card());
    let endless = ["bench", ".", "--workload", "slow.toml", "--warm-up", "1h"];
    refused(
        own.path(),
        &endless,
        &["within the warm-up of 1h", "a shorter --warm-up"],
    );
}

/// The first write of the open loop that is measured is due after those of the warm-up.
#[test]
fn an_open_loop_may_have_a_warm_up() {
    let own = directory();
    let args = ["bench", "--rate", "100", "--warm-up", "1000"];
    let figures = json(own.path(), &args);
    let whole = json(own.path(), &["bench", "--rate", "100"]);
    let (writes, all) = (number(&figures, "writes"), number(&whole, "writes"));
    assert_eq!(writes + 1000, all);
    let response = &figures["open_loop"]["response_us"];
    // From wrong due times, 1000 writes would be 10 s late or early.
    assert_eq!(
        response["median"],
        whole["open_loop"]["response_us"]["median"]
    );
    assert!(response["min"].as_f64() > Some(0.0));
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_filled_up_to_the_end_of_the_regions() {
    const MIB: usize = 1 << 20;
    let Some(disk) = common::loop_disk::LoopDisk::new(24 << 20) else {
        return;
    };
    let own = directory();
    // Files of 5 MiB are in regions of 8 MiB.
    fs::write(own.path().join("blocks.toml"), blocks_of(5 * 256)).unwrap();
    let device = disk.device.as_str();
    let args = ["bench", device, "--workload", "blocks.toml"];
    let options = ["--precondition", "--destroy", device];
    let figures = json(own.path(), &[&args[..], &options].concat());
    assert_eq!(figures["trust"]["preconditioned_bytes"], 8 * MIB);
    let content = disk.content();
    assert!(content[8..BLOCK_BYTES].iter().all(|&byte| byte == b'A'));
    let filled = content[5 * MIB..8 * MIB].chunks_exact(512);
    assert!(filled.clone().all(|sector| sector.starts_with(b"cardiogr")));
    assert!(content[8 * MIB..].iter().all(|&byte| byte == 0));

    let huge = blocks_of(100_000);
    fs::write(own.path().join("huge.toml"), huge).unwrap();
    let before = disk.content();
    let args = ["bench", "-q", device, "--workload", "huge.toml"];
    let run = run(own.path(), &[&args[..], &options].concat());
    assert_refused(&run, &[device, "writes less"]);
    assert!(disk.content() == before);
    for option in ["--precondition", "--until-stable"] {
        let args = ["bench", device, option];
        refused(
            own.path(),
            &args,
            &[device, option, &format!("--destroy {device}")],
        );
    }
}

#[test]
fn ctrl_c_ends_writes_before_the_measurement() {
    let own = directory();
    let slow = "name = \"slow\"\n[[phase]]\nfiles = 2000\npause_us = 1000000\n";
    fs::write(own.path().join("slow.toml"), slow).unwrap();
    fs::create_dir(own.path().join("medium")).unwrap();
    let args = [
        "bench",
        "medium",
        "--workload",
        "slow.toml",
        "--precondition",
    ];
    let begun = Instant::now();
    let child = command(own.path(), &args).spawn().unwrap();
    wait_for_handler(&child);
    wait_until(|| own.path().join("medium/writeTimeTemp").exists());
    let run = end(child, "-INT");
    assert_eq!(
        run.code,
        Some(130),
        "{} after {:?}",
        run.stderr,
        begun.elapsed()
    );
    assert_eq!(run.stdout, "");
    assert!(names(&own.path().join("medium")).is_empty());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let own = directory();
    fs::write(own.path().join("blocks.toml"), blocks_of(16)).unwrap();
    let reads = "name = \"reads\"\n[[phase]]\noperation = \"read\"\n";
    fs::write(own.path().join("reads.toml"), reads).unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        refused(own.path(), &[&["bench"], args].concat(), words);
    };
    let sim = "sim:class10-16g@esp32";
    refused(
        &[sim, "--precondition"],
        &["--precondition does not apply to simulated cards"],
    );
    refused(
        &[sim, "--until-stable"],
        &["--until-stable does not apply to simulated cards"],
    );
    refused(
        &[".", "--until-stable", "--rate", "100"],
        &["--until-stable cannot be combined with --rate"],
    );
    refused(
        &[".", "--until-stable", "--workload", "reads.toml"],
        &["compares writes", "reads only reads"],
    );
    for (count, target) in [("16", "."), ("17", "."), ("16", sim)] {
        refused(
            &[target, "--workload", "blocks.toml", "--warm-up", count],
            &[
                &format!("--warm-up {count} leaves nothing to measure"),
                "16 operations",
            ],
        );
    }
    for board in ["board:/dev/ttyACM0", "board:http://127.0.0.1:9"] {
        for option in [
            &["--precondition"][..],
            &["--warm-up", "1"],
            &["--until-stable"],
        ] {
            refused(
                &[&[board], option].concat(),
                &[option[0], "does not apply to boards"],
            );
        }
    }
    let run = run(own.path(), &["bench", "--warm-up", "soon"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr
            .contains("a number of operations, such as 1000, or a time")
    );
}
