//! Output and exit codes of `recover` and `export`.

use crate::common;

use common::{command, directory, done, names, run, tree};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes the directory that a killed recorder leaves, byte by byte according to docs/formats.md: one file
/// of preallocated length that contains two samples.
fn killed(directory: &Path) {
    let mut file = [0; 128 * 512];
    let text = b"00000000000,1\r\n00000000001,2\r\n#";
    file[..text.len()].copy_from_slice(text);
    file[text.len()..512 - 38].fill(b' ');
    let mark = b"@00000007 00000000 00000001 ";
    file[512 - 38..][..mark.len()].copy_from_slice(mark);
    let crc = crc32(&file[..512 - 10]);
    file[512 - 10..512].copy_from_slice(format!("{crc:08X}\r\n").as_bytes());
    fs::create_dir(directory.join("REC00000")).unwrap();
    fs::write(directory.join("REC00000/REC00001.CSV.part"), file).unwrap();
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 != 0 { 0xEDB8_8320 } else { 0 }
        })
    })
}

#[test]
fn a_directory_is_recovered_once() {
    let directory = directory();
    killed(directory.path());
    let before = tree(directory.path());
    let output = done(directory.path(), &["recover", ".", "--dry-run"]);
    assert_eq!(
        output,
        "REC00000/REC00001.CSV  would be trimmed to its actual length, 30 B\n"
    );
    assert_eq!(tree(directory.path()), before);

    let run = run(directory.path(), &["recover", ".", "--json", "-"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "REC00000/REC00001.CSV  trimmed to its actual length, 30 B\n"
    );
    let json = common::results(&run.stdout);
    let expected = serde_json::json!({
        "target": ".",
        "kind": "directory",
        "dry_run": false,
        "file_system_repaired": false,
        "files": [{ "name": "REC00000/REC00001.CSV", "bytes": 30, "action": "trimmed" }],
    });
    assert_eq!(json, expected);
    let text = fs::read_to_string(directory.path().join("REC00000/REC00001.CSV")).unwrap();
    assert_eq!(text, "00000000000,1\r\n00000000001,2\r\n");

    let before = tree(directory.path());
    let output = done(directory.path(), &["recover", "."]);
    assert_eq!(output, "Nothing to do: no interrupted recordings.\n");
    assert_eq!(tree(directory.path()), before);
}

#[test]
#[ignore = "needs mkfs.fat"]
fn targets_that_cannot_be_recovered_are_rejected() {
    let directory = directory();
    fs::write(
        directory.path().join("text.img"),
        "no card at all".repeat(100),
    )
    .unwrap();
    let volume = directory.path().join("exfat.img");
    let mut boot = vec![0; 1 << 20];
    boot[..11].copy_from_slice(b"\xEB\x76\x90EXFAT   ");
    boot[510..512].copy_from_slice(b"\x55\xAA");
    fs::write(&volume, &boot).unwrap();
    let mut table = vec![0; 1 << 20];
    table[446 + 4] = 0xEE;
    table[446 + 8] = 1;
    table[510..512].copy_from_slice(b"\x55\xAA");
    fs::write(directory.path().join("gpt.img"), &table).unwrap();
    let empty = directory.path().join("empty.img");
    fs::File::create(&empty).unwrap().set_len(16 << 20).unwrap();
    let mut make = Command::new("mkfs.fat");
    make.env(
        "PATH",
        format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()),
    );
    assert!(
        make.args(["-F", "16"])
            .arg(&empty)
            .output()
            .unwrap()
            .status
            .success()
    );
    fs::create_dir_all(directory.path().join("card")).unwrap();
    fs::write(directory.path().join("card/cardiogr.jnl"), "").unwrap();

    let before = tree(directory.path());
    for (target, part) in [
        ("missing.img", "check the name"),
        ("text.img", "is a text file"),
        ("exfat.img", "exFAT"),
        ("gpt.img", "GUID partition table"),
        ("empty.img", "no Cardiograph recordings"),
        (".", "contains no Cardiograph recording"),
        ("card", "unmount it"),
        ("/dev/null", "not a card"),
    ] {
        let run = run(directory.path(), &["recover", target]);
        assert_eq!(run.code, Some(2), "{target}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{target}");
        assert!(
            run.stderr.starts_with("error: ") && run.stderr.contains(part),
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    assert_eq!(tree(directory.path()), before);
}

/// Builds a binary block from docs/formats.md.
fn block(index: u32, kind: u8, first: u16, sample: u64, payload: &[u8]) -> [u8; 512] {
    let mut block = [0; 512];
    block[..4].copy_from_slice(&7_u32.to_le_bytes());
    block[4..8].copy_from_slice(&index.to_le_bytes());
    block[12] = kind;
    block[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    block[16..18].copy_from_slice(&first.to_le_bytes());
    block[20..28].copy_from_slice(&sample.to_le_bytes());
    block[28..][..payload.len()].copy_from_slice(payload);
    let crc = crc32(&block[..508]);
    block[508..].copy_from_slice(&crc.to_le_bytes());
    block
}

/// Builds a recording of two samples, the second of which continues in the next block, and a gap.
fn recording() -> Vec<u8> {
    let gap: Vec<u8> = [2_u64, 5, 1234]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let blocks = [
        block(
            0,
            0,
            u16::MAX,
            0,
            b"cardiograph recording 1\ntime_ms u16\nvolts f32.2\n",
        ),
        block(1, 1, 0, 0, &[1, 0, 0, 0, 0x20, 0xC0, 2, 0, 0]),
        block(2, 1, u16::MAX, 0, &[0, 0, 0x3F]),
        block(3, 2, 0, 2, &[&gap[..], &[0]].concat()),
    ];
    blocks.as_flattened().to_vec()
}

#[test]
fn a_binary_recording_becomes_csv() {
    let directory = directory();
    fs::write(directory.path().join("REC00001.BIN"), recording()).unwrap();
    let csv = "time_ms,volts,note\r\n1,-2.50\r\n2,0.50\r\n,,#gap first=2 count=5 at_us=1234 cause=busy\r\n";
    let summary = "Exported 2 samples. Lost samples, according to the gaps in the recording: 5.\n";
    let shown = run(directory.path(), &["export", "REC00001.BIN"]);
    assert_eq!(
        (shown.code, &shown.stdout[..], &shown.stderr[..]),
        (Some(0), csv, summary)
    );
    assert_eq!(
        done(
            directory.path(),
            &["export", "REC00001.BIN", "--csv", "out.csv"]
        ),
        summary
    );
    assert_eq!(
        fs::read_to_string(directory.path().join("out.csv")).unwrap(),
        csv
    );
    // Existing files are never overwritten.
    let again = run(
        directory.path(),
        &["export", "REC00001.BIN", "--csv", "out.csv"],
    );
    assert_eq!(again.code, Some(2));
}

#[test]
fn the_intact_blocks_of_a_damaged_recording_are_exported() {
    let directory = directory();
    let mut bytes = recording();
    bytes[2 * 512 + 30] ^= 1;
    fs::write(directory.path().join("REC00001.BIN"), &bytes).unwrap();
    let run = run(directory.path(), &["export", "REC00001.BIN"]);
    assert_eq!(run.code, Some(2));
    let csv = "time_ms,volts,note\r\n1,-2.50\r\n,,#damaged blocks=2..2\r\n\
               ,,#gap first=2 count=5 at_us=1234 cause=busy\r\n";
    assert_eq!(run.stdout, csv);
    assert!(
        run.stderr
            .contains("1 block of 512 B is damaged (block 2 at byte 1024);"),
        "{}",
        run.stderr
    );

    fs::write(directory.path().join("other.bin"), "time,value\n1,2\n").unwrap();
    let output = command(
        directory.path(),
        &["export", "other.bin", "--csv", "other.csv"],
    )
    .output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    assert_eq!(names(directory.path()), ["REC00001.BIN", "other.bin"]);
}

#[test]
fn a_directory_is_no_recording_to_export() {
    let directory = directory();
    let run = run(directory.path(), &["export", ".", "--csv", "out.csv"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "error: . is a directory; name a recording in it\n"
    );
    assert!(names(directory.path()).is_empty());
}

#[test]
fn files_of_other_programs_are_reported_and_left_alone() {
    let directory = directory();
    killed(directory.path());
    let report = directory.path().join("REC00000/REC00002.CSV.part");
    fs::write(&report, "a user report\n").unwrap();
    let prepared = directory.path().join(".cardiograph-0-REC-CSV.part");
    fs::write(&prepared, [0; 1024]).unwrap();
    let output = done(directory.path(), &["recover", ".", "--dry-run"]);
    let expected = "\
REC00000/REC00001.CSV  would be trimmed to its actual length, 30 B
.cardiograph-0-REC-CSV.part  would be removed: contains no samples
REC00000/REC00002.CSV.part  left alone: not a Cardiograph recording
";
    assert_eq!(output, expected);
    let output = done(directory.path(), &["recover", "."]);
    assert_eq!(output, expected.replace("would be ", ""));
    assert_eq!(fs::read_to_string(&report).unwrap(), "a user report\n");
    assert!(!prepared.exists());
    let output = done(directory.path(), &["recover", "."]);
    assert!(
        output.ends_with("Nothing to do: no interrupted recordings.\n"),
        "{output}"
    );
}

/// The error never advises the user to destroy contents that recovery did not recognise.
#[test]
fn foreign_contents_are_named_and_left_alone() {
    let directory = directory();
    let mut ext = vec![0; 64 << 10];
    ext[1080..1082].copy_from_slice(b"\x53\xEF");
    let boot_sector_of = |name: &[u8]| {
        let mut image = vec![0; 64 << 10];
        image[..3].copy_from_slice(b"\xEB\x76\x90");
        image[3..11].copy_from_slice(name);
        image[510..512].copy_from_slice(b"\x55\xAA");
        image
    };
    for (name, contents, found) in [
        ("zeros.img", vec![0; 64 << 10], "the boot sector is empty"),
        ("ext.img", ext, "contains ext2, ext3 or ext4"),
        ("exfat.img", boot_sector_of(b"EXFAT   "), "contains exFAT"),
        ("ntfs.img", boot_sector_of(b"NTFS    "), "contains NTFS"),
        ("run.csv", b"time,v\n".repeat(500), "is a text file"),
        ("image.gz", b"\x1F\x8B\x08\0".repeat(500), "is a gzip file"),
        ("short.img", vec![0; 100], "not a card"),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, &contents).unwrap();
        for options in [&["recover", name][..], &["recover", name, "--dry-run"]] {
            let run = run(directory.path(), options);
            assert_eq!(run.code, Some(2), "{name}");
            assert!(run.stderr.contains(found), "{}", run.stderr);
            assert!(!run.stderr.contains("format"), "{}", run.stderr);
        }
        assert_eq!(fs::read(&path).unwrap(), contents);
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn a_truncated_image_is_named() {
    let directory = directory();
    let path = directory.path().join("card.img");
    fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
    let format = Command::new("mkfs.fat")
        .env(
            "PATH",
            format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()),
        )
        .args(["-F", "32", "-s", "1"])
        .arg(&path)
        .output();
    assert!(format.unwrap().status.success());
    let half = fs::OpenOptions::new().write(true).open(&path).unwrap();
    half.set_len(32 << 20).unwrap();
    let run = run(directory.path(), &["recover", "card.img"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr
            .contains("its file system has 67108864 B, but the file only 33554432 B"),
        "{}",
        run.stderr
    );
}
