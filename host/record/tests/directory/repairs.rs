//! Repairs of files that an earlier recording left unfinished.

use super::{files, kill_after, lines, log, numbers, recovered, summary};
use cardiograph_record::{Access, Repair, block_on, open_directory};
use cardiograph_recorder::{Event, recover};
use std::fs;
use std::path::Path;

/// Returns the names of the unfinished files of a directory.
fn unfinished(directory: &Path) -> Vec<String> {
    let names = files(directory).into_keys();
    names.filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn files_of_other_programs_are_not_mistaken_for_unfinished_ones() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    kill_after(directory.path(), 2);
    let parts = unfinished(directory.path());
    assert!(parts.len() > 2, "{parts:?}");
    // Another program overwrote a prepared file, and created a file whose name is that of an unfinished
    // recording.
    let prepared = parts.iter().find(|name| name.starts_with('.')).unwrap();
    let foreign = "REC00000/REC00077.CSV.part";
    // A slow process may have been killed before its first file received its number.
    fs::create_dir_all(directory.path().join("REC00000")).unwrap();
    for name in [prepared, foreign] {
        fs::write(directory.path().join(name), "foreign, without a line end").unwrap();
    }
    let before = numbers_in_parts(directory.path());
    let found = recovered(directory.path(), Access::Recover).unwrap();
    assert_eq!(found.iter().filter(|(_, bytes)| *bytes > 0).count(), before);
    let mut left = unfinished(directory.path());
    left.sort();
    assert_eq!(left, [prepared, foreign]);
    for name in left {
        let bytes = fs::read(directory.path().join(&name)).unwrap();
        assert_eq!(bytes, b"foreign, without a line end", "{name}");
    }
}

/// Recovers a directory; returns the names in the list of repairs.
fn repairs(directory: &Path, access: Access) -> Vec<Repair> {
    let (mut card, mut volume) = open_directory(directory, access).unwrap();
    block_on(recover(&mut volume, &mut card, |_, _| ())).unwrap();
    volume.take_repairs()
}

#[test]
fn only_provable_recordings_are_renamed_or_removed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("REC00000")).unwrap();
    let mut behind = vec![0; 1 << 20];
    behind[700_000] = 1;
    let ours = "time_us,x\r\n,,\"#file number=2 first=0 at_us=1 settings=a,b\"\r\n1,2\r\n";
    for (name, bytes) in [
        ("REC00000/REC00001.CSV.part", &b"a user report\n"[..]),
        ("REC00000/REC00002.CSV.part", ours.as_bytes()),
        ("REC00000/REC00003.CSV.part", &[0; 2048]),
        ("REC00000/REC00005.CSV.part", &behind),
        (".cardiograph-0-REC-CSV.part", &behind),
        (".cardiograph-1-REC-CSV.part", &[0; 2048]),
        (".cardiograph-01-REC-CSV.part", &[0; 2048]),
        (".cardiograph-2-REC-CSV.part", &[0; 2047]),
    ] {
        fs::write(at(name), bytes).unwrap();
    }
    for name in ["REC00000/REC00004.CSV.part", ".cardiograph-3-REC-CSV.part"] {
        std::os::unix::fs::symlink(at(".cardiograph-1-REC-CSV.part"), at(name)).unwrap();
    }
    let before = files(directory.path());
    let expected = [
        Repair::LeftAlone(".cardiograph-0-REC-CSV.part".to_string()),
        Repair::LeftAlone(".cardiograph-2-REC-CSV.part".to_string()),
        Repair::LeftAlone(".cardiograph-3-REC-CSV.part".to_string()),
        Repair::LeftAlone("REC00000/REC00001.CSV.part".to_string()),
        Repair::LeftAlone("REC00000/REC00005.CSV.part".to_string()),
        Repair::Renamed("REC00000/REC00002.CSV".to_string(), ours.len() as u64),
        Repair::Removed(".cardiograph-1-REC-CSV.part".to_string()),
        Repair::Removed("REC00000/REC00003.CSV.part".to_string()),
    ];
    assert_eq!(repairs(directory.path(), Access::DryRun), expected);
    assert_eq!(files(directory.path()), before, "the dry run changed files");
    assert_eq!(repairs(directory.path(), Access::Recover), expected);
    for name in ["REC00000/REC00004.CSV.part", ".cardiograph-3-REC-CSV.part"] {
        assert!(at(name).is_symlink(), "{name}");
        fs::remove_file(at(name)).unwrap();
    }
    let mut left = before;
    left.retain(|name, _| !name.contains("04.") && !name.contains("-3-"));
    let renamed = left.remove("REC00000/REC00002.CSV.part").unwrap();
    left.insert("REC00000/REC00002.CSV".to_string(), renamed);
    left.remove(".cardiograph-1-REC-CSV.part");
    left.remove("REC00000/REC00003.CSV.part");
    left.insert(".cardiograph.lock".to_string(), Vec::new());
    assert_eq!(files(directory.path()), left);
}

/// A recorder that is killed between creating and preallocating a file leaves it empty.
#[test]
fn empty_prepared_files_are_removed() {
    const FILES: usize = 256;
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| directory.path().join(name);
    let fill = || {
        for index in 0..FILES {
            fs::write(at(&format!(".cardiograph-{index}-REC-CSV.part")), b"").unwrap();
        }
    };
    fill();
    // A link is not one of them.
    fs::write(at("empty"), b"").unwrap();
    let link = ".cardiograph-0-LOG-CSV.part";
    std::os::unix::fs::symlink(at("empty"), at(link)).unwrap();
    for access in [Access::DryRun, Access::Recover] {
        assert_eq!(unfinished(directory.path()).len(), FILES + 1, "{access:?}");
        let found = repairs(directory.path(), access);
        let is_removed = |repair: &&Repair| matches!(repair, Repair::Removed(_));
        assert_eq!(found.iter().filter(is_removed).count(), FILES);
    }
    assert_eq!(unfinished(directory.path()), [link]);
    // With all names in use, a recorder could not prepare its first file.
    fill();
    let result = log(directory.path(), lines(2_000, 1_000), |_, _| ()).unwrap();
    assert_eq!(summary(&result).written, 1_000);
    assert_eq!(unfinished(directory.path()), [link]);
}

/// Returns the number of unfinished files with lines.
fn numbers_in_parts(directory: &Path) -> usize {
    let parts = files(directory).into_iter();
    parts
        .filter(|(name, bytes)| name.ends_with(".part") && bytes.starts_with(b"#file"))
        .count()
}

#[test]
fn a_finished_recording_is_never_replaced() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let taken = directory.path().join("REC00000/REC00001.CSV");
    let mut is_taken = false;
    // Another program takes the final name while the file is being written.
    let result = log(directory.path(), lines(2_000, 1_000), |_, event| {
        if matches!(event, Event::Checkpoint { .. }) && !is_taken {
            fs::create_dir_all(taken.parent().unwrap()).unwrap();
            fs::write(&taken, "foreign").unwrap();
            is_taken = true;
        }
    });
    assert!(is_taken);
    assert_eq!(fs::read(&taken).unwrap(), b"foreign");
    // The conflict is reported as a failure of the storage device; no sample is silently counted as written.
    let result = result.unwrap();
    let counted = summary(&result).written + summary(&result).lost;
    assert_eq!(counted, result.pushed[0]);
    assert_eq!(unfinished(directory.path()), [""; 0]);
    fs::remove_file(&taken).unwrap();
    let kept = numbers(directory.path()).len() as u64;
    assert!(kept >= summary(&result).written, "{kept}: {result:?}");
    fs::write(&taken, "foreign").unwrap();
    assert_eq!(repairs(directory.path(), Access::Recover), []);
    assert!(
        result
            .failure
            .as_ref()
            .is_some_and(|why| why.contains("REC00001.CSV")),
        "{:?}",
        result.failure
    );
}

#[test]
fn a_recovered_recording_passes_taken_names() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let durable = kill_after(directory.path(), 2);
    let at = |name: &str| directory.path().join(name);
    let parts = unfinished(directory.path()).into_iter();
    let named = parts.filter(|name| name.starts_with("REC"));
    let finals = named.map(|name| name.strip_suffix(".part").unwrap().to_string());
    let finals = Vec::from_iter(finals);
    assert!(!finals.is_empty());
    for name in &finals {
        fs::write(at(name), "foreign").unwrap();
    }
    // Neither files nor folders that already have one of the next names are replaced.
    fs::create_dir(at("REC00000/REC00090.CSV")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("REC00000/REC00091.CSV")).unwrap();
    let seen = recovered(directory.path(), Access::DryRun).unwrap();
    assert_eq!(recovered(directory.path(), Access::Recover).unwrap(), seen);
    assert!(
        seen.iter().any(|(name, _)| name == "REC00000/REC00092.CSV"),
        "{seen:?}"
    );
    for name in &finals {
        assert_eq!(fs::read(at(name)).unwrap(), b"foreign");
        fs::remove_file(at(name)).unwrap();
    }
    assert!(at("REC00000/REC00091.CSV").is_symlink());
    fs::remove_file(at("REC00000/REC00091.CSV")).unwrap();
    let mut numbers = numbers(directory.path());
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u64));
    assert!(numbers.len() as u64 >= durable);
    assert_eq!(repairs(directory.path(), Access::Recover), []);
}

#[test]
fn numbers_pass_names_of_other_programs() {
    for taken in ["REC99999/REC99999.CSV", "REC99999/REC99998.CSV"] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(directory.path().join("REC99999")).unwrap();
        fs::write(directory.path().join(taken), "foreign").unwrap();
        for number in 1..=2 {
            log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
            let name = format!("REC00000/REC0000{number}.CSV");
            assert!(directory.path().join(&name).is_file(), "{name}");
        }
        assert_eq!(fs::read(directory.path().join(taken)).unwrap(), b"foreign");
    }
    // A regular file has the name of the first recording folder.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(directory.path().join("REC00000"), "foreign").unwrap();
    for number in 0..2 {
        let result = log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
        assert_eq!((summary(&result).written, result.failure), (10, None));
        let name = format!("REC00001/REC0100{number}.CSV");
        assert!(directory.path().join(&name).is_file(), "{name}");
    }
    assert_eq!(unfinished(directory.path()), [""; 0]);
    let foreign = fs::read(directory.path().join("REC00000")).unwrap();
    assert_eq!(foreign, b"foreign");
}

#[test]
fn a_trimmed_recording_passes_a_taken_name() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
    let taken = directory.path().join("REC00000/REC00001.CSV");
    let whole = fs::read(&taken).unwrap();
    fs::rename(&taken, taken.with_extension("CSV.part")).unwrap();
    fs::write(&taken, "foreign").unwrap();
    let name = "REC00000/REC00002.CSV";
    let expected = [Repair::Renamed(name.to_string(), whole.len() as u64)];
    assert_eq!(repairs(directory.path(), Access::DryRun), expected);
    assert_eq!(repairs(directory.path(), Access::Recover), expected);
    assert_eq!(fs::read(&taken).unwrap(), b"foreign");
    assert_eq!(fs::read(directory.path().join(name)).unwrap(), whole);
}

#[test]
fn an_interrupted_close_is_completed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    log(directory.path(), lines(20_000, 3_000), |_, _| ()).unwrap();
    let whole = files(directory.path());
    let recordings: Vec<_> = whole.keys().filter(|name| name.ends_with(".CSV")).collect();
    assert!(recordings.len() >= 2, "{recordings:?}");
    // A file that was trimmed but not renamed must keep the data after its last checkpoint mark.
    for name in &recordings {
        let path = directory.path().join(name);
        fs::rename(&path, path.with_extension("CSV.part")).unwrap();
    }
    assert_eq!(recovered(directory.path(), Access::DryRun).unwrap(), []);
    recovered(directory.path(), Access::Recover).unwrap();
    assert_eq!(files(directory.path()), whole);
}
