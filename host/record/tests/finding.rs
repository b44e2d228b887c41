//! Cards and images without a recorder's file system.

use cardiograph_record::{RecoverError, recover_path};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns a volume that mkfs.fat has made with these options.
fn volume(directory: &Path, options: &[&str]) -> Vec<u8> {
    let path = directory.join("volume");
    let file = fs::File::create(&path).unwrap();
    file.set_len(16 << 20).unwrap();
    let path_of_programs = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let mut make = Command::new("mkfs.fat");
    make.env("PATH", path_of_programs).args(options).arg(&path);
    let output = make.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bytes
}

/// Returns a block with partitions: type and first block of each.
fn partition_table(partitions: &[(u8, u32)]) -> [u8; 512] {
    let mut block = [0; 512];
    for (at, (kind, start)) in (446..).step_by(16).zip(partitions) {
        block[at + 4] = *kind;
        block[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
    }
    block[510..].copy_from_slice(&[0x55, 0xAA]);
    block
}

#[test]
#[ignore = "needs mkfs.fat"]
fn fat_file_systems_that_the_recorder_does_not_use_are_named() {
    const START: u32 = 2048;
    const LOGICAL: u32 = 100;
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let made = |options: &[&str]| volume(directory.path(), options);
    let on_card = |tables: &[(u32, [u8; 512])], volume: &[u8], at: u32| {
        let mut card = vec![0; at as usize * 512];
        for (block, table) in tables {
            card[*block as usize * 512..][..512].copy_from_slice(table);
        }
        card.extend_from_slice(volume);
        card
    };
    let usual = made(&["-F", "16"]);
    let four_tables = made(&["-F", "16", "-f", "4"]);
    let in_partition = [(0, partition_table(&[(6, START)]))];
    let extended = (0, partition_table(&[(0x83, 1), (5, START)]));
    // The first logical partition is that of another system; addresses are relative to the extended partition.
    let logical = [
        extended,
        (START, partition_table(&[(0x83, 1), (5, LOGICAL)])),
        (START + LOGICAL, partition_table(&[(6, 1)])),
    ];
    let cards = [
        (made(&["-S", "2048"]), "FAT with sectors of 2048 B"),
        (made(&["-S", "4096"]), "FAT with sectors of 4096 B"),
        (
            on_card(&in_partition, &made(&["-S", "4096"]), START),
            "FAT with sectors of 4096 B",
        ),
        (four_tables.clone(), "FAT with 4 allocation tables"),
        (
            on_card(&in_partition, &four_tables, START),
            "FAT with 4 allocation tables",
        ),
        (
            on_card(&logical, &usual, START + LOGICAL + 1),
            "FAT in a logical partition",
        ),
        (on_card(&logical[..2], &usual, 5000), "a Linux partition"),
    ];
    for (contents, found) in cards {
        let path = directory.path().join("card.img");
        fs::write(&path, &contents).unwrap();
        let error = recover_path(&path, false).unwrap_err();
        assert!(matches!(error, RecoverError::NoRecorder(_)), "{error}");
        let expected = format!("contains {found}, which the recorder never writes");
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(fs::read(&path).unwrap() == contents, "{found}");
    }
}
