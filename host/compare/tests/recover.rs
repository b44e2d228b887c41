//! Recovery on a computer of cards that lost power, compared with the recovery by the device itself.

use cardiograph_record::{RecoverError, TargetKind, recover_path};
use cardiograph_recorder::{Event, FatError, Format, StreamConfig, Window};
use cardiograph_sim_card::wire::Fault;
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile, Seed};
use cardiograph_sim_device::{Device, Lines, Outcome, StreamSetup, line};
use cardiograph_store::format;
use fatfs::{FileSystem, FsOptions};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const LINE_BYTES: usize = 40;
const CARD_BYTES: u64 = 64 << 20;

/// Program that formats a new card.
#[derive(Clone, Copy, Debug)]
enum Maker {
    /// Cardiograph's formatter, with a partition table.
    Partition,
    /// `mkfs.fat`, without a partition table.
    Whole,
}

fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env(
        "PATH",
        format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()),
    );
    command
}

/// Returns an empty card.
fn card(maker: Maker, directory: &Path) -> Card {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = CARD_BYTES;
    let mut card = Card::new(&profile, Seed::new(1));
    match maker {
        Maker::Partition => drop(format(&mut card, 4096).unwrap()),
        Maker::Whole => {
            let path = directory.join("empty.img");
            fs::File::create(&path)
                .unwrap()
                .set_len(CARD_BYTES)
                .unwrap();
            let made = program("mkfs.fat")
                .args(["-F", "16", "-i", "12345678"])
                .arg(&path)
                .output();
            assert!(
                made.expect("mkfs.fat is in Debian's package dosfstools")
                    .status
                    .success()
            );
            let bytes = fs::read(&path).unwrap();
            card.store(0, bytes.as_chunks::<BLOCK_BYTES>().0);
        }
    }
    card
}

/// Records `count` lines on a device; returns the number of samples reported as durable.
fn log(device: &Device, count: u64) -> (Outcome<1>, u64) {
    let lines = Lines {
        rate_hz: 2000,
        line_bytes: LINE_BYTES,
        count,
    };
    let stream = StreamSetup {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "number,digits",
                line_bytes_max: LINE_BYTES as u16,
            },
            window: Window::Us(100_000),
        },
        ring_bytes: 1 << 16,
        samples: Box::new(lines),
    };
    let mut durable = 0;
    let note = |_, event| {
        if let Event::Checkpoint { samples, .. } = event {
            durable = samples;
        }
    };
    let logged = device.log([stream], note, |_, _, _| None);
    (logged.outcome, durable)
}

fn device(card: Card, clock: Option<&cardiograph_sim_world::Clock>) -> Device {
    let seed = Seed::new(2);
    let mut device = match clock {
        None => Device::new(card, 1, 20_000_000, seed),
        Some(clock) => Device::on_clock(card, 1, 20_000_000, seed, clock.clone()),
    };
    device.config.file_bytes = 1 << 18;
    device.stops_without_power = true;
    device
}

/// Writes the whole card to an image.
fn image(card: &Card, directory: &Path, name: &str) -> std::path::PathBuf {
    let mut blocks = vec![[0; BLOCK_BYTES]; card.blocks() as usize];
    card.load(0, &mut blocks);
    let path = directory.join(name);
    fs::write(&path, blocks.as_flattened()).unwrap();
    path
}

/// Returns the offset of the first partition of an image, in bytes.
fn partition_at(image: &[u8]) -> usize {
    u32::from_le_bytes(image[454..458].try_into().unwrap()) as usize * BLOCK_BYTES
}

/// Checks the file system of an image with fsck.fat; returns the contents of its files.
fn files(image: &Path, maker: Maker) -> BTreeMap<String, Vec<u8>> {
    let bytes = fs::read(image).unwrap();
    let start = match maker {
        Maker::Partition => partition_at(&bytes),
        Maker::Whole => 0,
    };
    let volume = image.with_extension("volume");
    fs::write(&volume, &bytes[start..]).unwrap();
    let output = program("fsck.fat").arg("-n").arg(&volume).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let file = fs::File::open(&volume).unwrap();
    let volume = FileSystem::new(file, FsOptions::new()).unwrap();
    let Ok(folder) = volume.root_dir().open_dir("REC00000") else {
        return BTreeMap::new();
    };
    let entries = folder.iter().map(|entry| entry.unwrap());
    let files = entries
        .filter(|entry| entry.file_name().starts_with("REC"))
        .map(|entry| {
            let mut bytes = Vec::new();
            entry.to_file().read_to_end(&mut bytes).unwrap();
            (format!("REC00000/{}", entry.file_name()), bytes)
        });
    files.collect()
}

/// Returns the number of lines in all files; asserts that the lines are as generated and in order.
fn count(files: &BTreeMap<String, Vec<u8>>) -> u64 {
    let lines = files
        .values()
        .flat_map(|bytes| bytes.split_inclusive(|byte| *byte == b'\n'));
    let lines = lines.filter(|found| !found.starts_with(b"#") && !found.starts_with(b"number"));
    let mut count = 0;
    for found in lines {
        let mut expected = [0; LINE_BYTES];
        line(count, &mut expected);
        assert_eq!(found, expected);
        count += 1;
    }
    count
}

#[test]
#[ignore = "needs mkfs.fat"]
fn a_computer_recovers_as_the_device_does() {
    for (maker, cut_byte) in [
        (Maker::Partition, 60_000),
        (Maker::Partition, 400_000),
        (Maker::Whole, 700_003),
        (Maker::Whole, 1_100_000),
    ] {
        let directory = directory();
        let cut = device(card(maker, directory.path()), None);
        cut.wire.card().inject(cut_byte, Fault::PowerCut);
        let (finished, durable) = log(&cut, u64::MAX);
        assert!(
            matches!(finished, Outcome::PowerCut),
            "{maker:?} {cut_byte}: {finished:?}"
        );
        let clock = cut.clock().clone();
        let mut card = cut.into_card();
        let path = image(&card, directory.path(), "card.img");
        let before = fs::read(&path).unwrap();

        // A dry run reports the same repairs as a real one, and writes nothing.
        let seen = recover_path(&path, true).unwrap();
        assert!(
            fs::read(&path).unwrap() == before,
            "the dry run changed the image"
        );
        let done = recover_path(&path, false).unwrap();
        assert_eq!(done, seen);
        assert_eq!(done.kind, TargetKind::Card);
        let ours = files(&path, maker);
        // An image of the partition alone is recovered in the same way.
        if matches!(maker, Maker::Partition) {
            let partition = directory.path().join("partition.img");
            fs::write(&partition, &before[partition_at(&before)..]).unwrap();
            assert_eq!(recover_path(&partition, false).unwrap(), done);
            assert!(
                files(&partition, Maker::Whole) == ours,
                "{cut_byte}: the partition differs"
            );
        }
        for file in done.files {
            let bytes = ours.get(&file.name).map_or(0, |bytes| bytes.len() as u64);
            assert_eq!(bytes, file.bytes, "{}", file.name);
        }
        assert!(count(&ours) >= durable, "{} of {durable}", count(&ours));

        // A second recovery has nothing to do and writes nothing.
        let before = fs::read(&path).unwrap();
        let again = recover_path(&path, false).unwrap();
        assert!(again.files.is_empty() && !again.is_repaired, "{again:?}");
        assert!(fs::read(&path).unwrap() == before, "the image changed");

        // The device itself mounts, recovers, and records one more line.
        card.power_on(clock.now_ns());
        let restarted = device(card, Some(&clock));
        let (finished, _) = log(&restarted, 1);
        assert!(matches!(finished, Outcome::Done(_)), "{finished:?}");
        let path = image(&restarted.into_card(), directory.path(), "device.img");
        let mut theirs = files(&path, maker);
        theirs.pop_last();
        assert!(theirs == ours, "{maker:?} {cut_byte}: contents differ");
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn foreign_cards_are_left_alone() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let refused = |path: &Path| {
        let before = fs::read(path).ok();
        let error = recover_path(path, false).unwrap_err();
        assert!(fs::read(path).ok() == before, "{error}");
        error
    };
    let empty = image(
        &card(Maker::Whole, directory.path()),
        directory.path(),
        "none.img",
    );
    let error = refused(&empty);
    assert!(
        matches!(&error, RecoverError::Volume(_, why) if matches!(**why, FatError::NoJournal)),
        "{error}"
    );

    fs::write(at("text.img"), "no card at all".repeat(100)).unwrap();
    assert!(
        refused(&at("text.img"))
            .to_string()
            .contains("is a text file")
    );
    fs::write(at("short.img"), "short").unwrap();
    assert!(refused(&at("short.img")).to_string().contains("not a card"));
    assert!(
        refused(&at("missing.img"))
            .to_string()
            .ends_with("check the name")
    );

    // A journal without records, and a journal copied from another card.
    let recorded = device(card(Maker::Whole, directory.path()), None);
    log(&recorded, 100);
    let path = image(&recorded.into_card(), directory.path(), "card.img");
    let mut bytes = fs::read(&path).unwrap();
    // Byte 39 belongs to the serial number of the file system in a FAT16 boot sector.
    bytes[39] ^= 1;
    fs::write(at("foreign.img"), &bytes).unwrap();
    assert!(
        refused(&at("foreign.img"))
            .to_string()
            .contains("another card")
    );
    let records: Vec<_> = (0..bytes.len())
        .step_by(512)
        .filter(|at| bytes[*at..].starts_with(b"CARDIOJ3"))
        .collect();
    assert_eq!(records.len(), 2);
    records.iter().for_each(|at| bytes[at + 100] ^= 1);
    fs::write(at("damaged.img"), &bytes).unwrap();
    assert!(refused(&at("damaged.img")).to_string().contains("damaged"));

    fs::create_dir(at("mounted")).unwrap();
    fs::write(at("mounted/CARDIOGR.JNL"), "").unwrap();
    assert!(refused(&at("mounted")).to_string().contains("unmount it"));
}
