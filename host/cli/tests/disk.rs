//! `bench` and `check` on whole disks, which are loop devices; and `bench --rate`.

use crate::common;

use common::loop_disk::LoopDisk;
use common::{assert_refused, data, directory, json, json_with_code, names, run};

const BYTES: u64 = 24 << 20;

/// Writes 2 MiB in blocks of 4 KiB.
const SHORT: &str = "name = \"short\"\n[[phase]]\ncalls_per_file = 512\nbytes_per_call = 4096\n";

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_only_read_unless_its_name_is_repeated() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    std::fs::write(own.path().join("short.toml"), SHORT).unwrap();
    let device = disk.device.as_str();
    let args = ["bench", device, "--workload", "short.toml"];
    let figures = json(own.path(), &args);
    assert_eq!(figures["writes"], 512);
    assert_eq!(figures["disk"]["is_overwritten"], false);
    assert_eq!(figures["disk"]["capacity_bytes"], BYTES);
    assert_eq!(figures["disk"]["bus"], "loop");
    let zeros = vec![0; BYTES as usize];
    assert!(disk.content() == zeros);

    for other in ["/dev/sdz", "/dev/loop", ""] {
        let refused = run(own.path(), &[&args[..], &["--destroy", other]].concat());
        assert_refused(&refused, &[device, &format!("--destroy {device}")]);
    }
    assert!(disk.content() == zeros);

    let destroying = [&args[..], &["--destroy", device]].concat();
    let figures = json(own.path(), &destroying);
    assert_eq!(figures["disk"]["is_overwritten"], true);
    let content = disk.content();
    // The first block is number 0, the last one number 511, all of them letters.
    assert_eq!(content[511 * 4096..][..8], 511_u64.to_le_bytes());
    assert!(content[8..4096].iter().all(|&byte| byte == b'A'));
    assert!(content[512 * 4096..] == zeros[512 * 4096..]);
}

#[test]
#[ignore = "needs root and losetup"]
fn options_for_other_targets_are_refused() {
    let own = directory();
    let nonsense = run(own.path(), &["bench", ".", "--destroy", "."]);
    assert_refused(&nonsense, &["--destroy applies to whole disks only"]);
    let nonsense = run(own.path(), &["check", ".", "--destroy", "."]);
    assert_refused(&nonsense, &["not a whole disk"]);
    for target in ["/dev/null", "no-such-folder"] {
        let nonsense = run(own.path(), &["check", target]);
        assert_refused(&nonsense, &[target, "neither a directory nor a disk"]);
    }
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let device = disk.device.as_str();
    for option in [["--io", "direct"], ["--seed", "1"], ["--rate", "10"]] {
        let refused = run(own.path(), &[&["bench", device], &option[..]].concat());
        assert_refused(&refused, &[device, option[0]]);
    }
    // The default workload of study 1 writes lines of 512 B, others do not write whole blocks.
    let odd = "name = \"odd\"\n[[phase]]\ncalls_per_file = 8\nbytes_per_call = 100\n";
    std::fs::write(own.path().join("odd.toml"), odd).unwrap();
    let args = ["bench", "-q", device, "--workload", "odd.toml"];
    assert_refused(&run(own.path(), &args), &[device, "whole blocks"]);
    let args = [&args[..], &["--destroy", device]].concat();
    assert_refused(&run(own.path(), &args), &[device, "whole blocks"]);
    let huge = "name = \"huge\"\n[[phase]]\ncalls_per_file = 100000\nbytes_per_call = 4096\n";
    std::fs::write(own.path().join("huge.toml"), huge).unwrap();
    let args = [
        "bench",
        "-q",
        device,
        "--workload",
        "huge.toml",
        "--destroy",
        device,
    ];
    assert_refused(&run(own.path(), &args), &[device, "writes less"]);
}

#[test]
#[ignore = "needs root and losetup"]
fn a_read_only_disk_is_measured_and_not_written() {
    let Some(disk) = LoopDisk::with_options(BYTES, &["--read-only"]) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    json(own.path(), &["bench", device]);
    let refused = run(own.path(), &["bench", device, "--destroy", device]);
    assert_refused(&refused, &[device, "read-only"]);
}

#[test]
#[ignore = "needs root and losetup"]
fn a_check_reports_an_honest_disk_and_leaves_directories_as_they_were() {
    let own = directory();
    std::fs::write(own.path().join("mine"), "mine").unwrap();
    let part = ["check", ".", "--allow-root-file-system", "--limit", "3MiB"];
    let figures = json_with_code(own.path(), &part, 6);
    assert_eq!(figures["capacity"]["tested_bytes"], 3 << 20);
    assert_eq!(figures["capacity"]["wrong_blocks"], 0);
    assert_eq!(names(own.path()), ["mine"]);
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let device = disk.device.as_str();
    let figures = json_with_code(own.path(), &["check", device], 6);
    assert_eq!(figures["verdict"], "not_tested");
    assert!(figures["capacity"].is_null());
    assert!(figures["speed"]["write_bytes_per_s"].is_null());
    assert!(figures["speed"]["random_reads_per_s"].as_f64() > Some(0.0));
    assert!(disk.content() == vec![0; BYTES as usize]);
    let figures = json(
        own.path(),
        &["check", device, "--destroy", device, "--full"],
    );
    assert_eq!(figures["capacity"]["kept_bytes"], BYTES);
    assert_eq!(figures["capacity"]["tested_bytes"], BYTES);
}

/// The backlog behind a stall, on a simulated card: the closed loop and the open one agree about the buffer.
#[test]
fn an_open_loop_measures_from_the_due_times() {
    let own = directory();
    std::fs::write(own.path().join("short.toml"), SHORT).unwrap();
    let args = ["bench", "--workload", "short.toml", "--rate", "50"];
    let figures = json(own.path(), &args);
    let open = &figures["open_loop"];
    assert_eq!(open["rate_bytes_per_s"], 50.0 * 4096.0);
    // 512 writes every 20 ms: the last one begins after 10.22 s.
    let elapsed_us = figures["elapsed_us"].as_f64().unwrap();
    assert!(
        (10_220_000.0..12_000_000.0).contains(&elapsed_us),
        "{elapsed_us}"
    );
    let response_us = open["response_us"]["worst_case"].as_f64().unwrap();
    let latency_us = figures["latency_us"]["worst_case"].as_f64().unwrap();
    assert!(
        response_us >= latency_us - 1.0,
        "{response_us} and {latency_us}"
    );
    assert_eq!(json(own.path(), &args), figures, "the same seed");
    // Ten times what the card sustains: the backlog never ends, and both loops say so.
    let args = ["bench", "--workload", "short.toml", "--rate", "100000"];
    let figures = json(own.path(), &args);
    let backlog_bytes = figures["open_loop"]["backlog_bytes_max"].as_f64().unwrap();
    assert!(backlog_bytes > 1e6, "{backlog_bytes}");
    assert_eq!(figures["open_loop"]["late_writes"], 511);
    let none = run(own.path(), &["bench", "--rate", "0"]);
    assert!(none.code == Some(2) && none.stderr.contains("use a number from 0.001 to 1000000"));
    let lapse = data("../../docs/examples/time-lapse.toml");
    let whole_files = [
        "bench",
        "--rate",
        "1",
        "--workload",
        lapse.to_str().unwrap(),
    ];
    assert_refused(&run(own.path(), &whole_files), &["--rate", "time-lapse"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let own = directory();
    let refused = run(own.path(), &["check", "/proc"]);
    assert_refused(&refused, &["/proc"]);
}
