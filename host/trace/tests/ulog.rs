//! Topics of ULog files, compared with pyulog.

use cardiograph_trace::{Loaded, ReadOptions, Recording, read};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = r#"
import sys
from pyulog import ULog
log = ULog(sys.argv[1])
for data in log.data_list:
    name = data.name if data.multi_id == 0 else f"{data.name}.{data.multi_id}"
    print(name, *data.data["timestamp"])
print("dropouts", len(log.dropouts), sum(dropout.duration for dropout in log.dropouts))
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn recording(topic: Option<&str>) -> Recording {
    let options = ReadOptions {
        time_column: topic.map(str::to_owned),
        ..ReadOptions::default()
    };
    match read(&root().join("tests/data/foreign/px4.ulg"), &options) {
        Ok(Loaded::Recording(recording)) => recording,
        Ok(_) => panic!("a ULog file is a recording"),
        Err(error) => panic!("{error}"),
    }
}

fn times_us(recording: &Recording) -> Vec<u64> {
    let first = recording.trace.first_start_ns();
    let ends = recording.trace.operations().map(|step| step.end_ns);
    std::iter::once(first)
        .chain(ends)
        .map(|ns| ns / 1000)
        .collect()
}

#[test]
#[ignore = "needs python3 and its packages"]
fn every_topic_has_the_times_that_pyulog_reads() {
    let python = root().join("target/python/bin/python3");
    assert!(
        python.exists(),
        "Python packages are missing; run `cargo xtask test`, which installs them"
    );
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(root().join("tests/data/foreign/px4.ulg"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut topics = 0;
    for line in text.lines() {
        let (name, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers
            .split(' ')
            .map(|text| text.parse().unwrap())
            .collect();
        if name == "dropouts" {
            let (count, ms) = (numbers[0], numbers[1]);
            let note = format!("The logger reports {count} dropouts of {ms} ms in total");
            let notes = recording(None).trace.about.notes;
            assert!(
                notes.iter().any(|found| found.starts_with(&note)),
                "{notes:?}"
            );
            continue;
        }
        topics += 1;
        assert_eq!(times_us(&recording(Some(name))), numbers, "{name}");
    }
    assert_eq!(topics, 3);
}

#[test]
fn the_topic_with_the_most_samples_is_the_default() {
    let recording = recording(None);
    assert_eq!(recording.time_column, "sensor_combined.timestamp");
    assert_eq!(recording.samples, 200);
}

#[test]
fn an_unknown_topic_is_refused_with_the_topics_of_the_file() {
    let options = ReadOptions {
        time_column: Some("gyro".to_owned()),
        ..ReadOptions::default()
    };
    let path = root().join("tests/data/foreign/px4.ulg");
    let error = read(&path, &options).err().unwrap().to_string();
    assert!(
        error.contains("cpuload, cpuload.1, sensor_combined"),
        "{error}"
    );
}
