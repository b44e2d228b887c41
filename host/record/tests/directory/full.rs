//! Recordings on a file system that is full or read-only.

use super::{lines, log, log_until_full, numbers, sentence, summary};
use cardiograph_recorder::{Event, WhenFull};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Process that the next test runs on a file system of 400 KiB.
#[test]
fn on_a_small_file_system() {
    let Some(directory) = std::env::var_os("CARDIOGRAPH_TEST_SMALL") else {
        return;
    };
    let directory = Path::new(&directory);
    // The recording has 320 kB of lines, and the prepared files take additional space.
    let mut removed = 0;
    let note = |_, event| removed += u64::from(matches!(event, Event::Removed { .. }));
    let twice = log_until_full(
        directory,
        WhenFull::RemoveOldest,
        lines(20_000, 16_000),
        note,
    )
    .unwrap();
    let summary = summary(&twice);
    assert_eq!((summary.written, summary.lost), (16_000, 0));
    assert!(removed > 0);
    let numbers = numbers(directory);
    assert_eq!(
        numbers,
        Vec::from_iter(16_000 - numbers.len() as u64..16_000)
    );

    // The storage device is full at the start: the oldest recordings make room. Other files stay, even if their names are
    // those of recordings, such as exports.
    let others = ["REC00000/REC00001.CSV", "REA00000/REA00001.CSV"];
    for name in others {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let row = format!("{}\n", "1,2,3".repeat(100));
        fs::write(path, format!("#file number=1 first=0 at_us=0\n{row}")).unwrap();
    }
    let filler = directory.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    let mut removed = 0;
    let note = |_, event| removed += u64::from(matches!(event, Event::Removed { .. }));
    let feed = lines(20_000, 1_000);
    let begun = log_until_full(directory, WhenFull::RemoveOldest, feed, note).unwrap();
    assert_eq!(
        (super::summary(&begun).written, begun.failure),
        (1_000, None)
    );
    assert!(removed > 0);
    fs::remove_file(filler).unwrap();
    for name in others {
        assert!(directory.join(name).exists(), "{name}");
    }

    let mut causes = Vec::new();
    let full = log(directory, lines(20_000, 16_000), |_, event| {
        if let Event::Lost { gap, .. } = event {
            causes.push(gap.cause.word());
        }
    });
    match &full {
        Ok(result) => {
            let [summary] = result.summaries;
            assert_eq!(summary.written + summary.lost, 16_000);
            assert!(
                summary.lost > 0 && causes.contains(&"card-full"),
                "{causes:?}"
            );
        }
        Err(error) => assert!(error.to_string().contains("remove files"), "{error}"),
    }
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(directory)
        .status();
    assert!(remounted.unwrap().success());
    let refused = log(directory, lines(1000, 1), |_, _| ());
    assert!(
        sentence(&refused).ends_with("mount it for writing"),
        "{}",
        sentence(&refused)
    );
    println!("completed");
}

#[test]
#[ignore = "needs root and mount"]
fn a_full_directory_and_a_read_only_one() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mount =
        "mount -t tmpfs -o size=400k cardiograph \"$CARDIOGRAPH_TEST_SMALL\" && exec \"$@\"";
    let run = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(flags)
            .args(["sh", "-c", mount, "sh"])
            .arg(std::env::current_exe().unwrap());
        command.args([
            "directory::full::on_a_small_file_system",
            "--exact",
            "--nocapture",
        ]);
        command
            .env("CARDIOGRAPH_TEST_SMALL", directory.path())
            .output()
            .unwrap()
    };
    // Mounting requires root, or user namespaces if the system permits them.
    let mut output = run(&["--mount"]);
    if output.stdout.is_empty() {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("completed"),
        "{stdout}{stderr}"
    );
}
