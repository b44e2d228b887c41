//! The simulated card as a store, checked by fsck.fat and by another FAT library.

use crate::common::{fsck, image, partition_of};
use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_store::{CardClock, FatCard, format};
use cardiograph_timing::{Latencies, Stalls, buckets_below};
use cardiograph_workload::{
    Activity, Clock, Flush, Observer, Operation, Phase, Store, Workload, run, workload,
};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;

const BUCKETS: usize = buckets_below(64);

/// A card of 1 GiB, small enough to write out as an image.
fn small_profile() -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 1 << 30;
    profile
}

#[test]
#[ignore = "needs fsck.fat"]
fn a_formatted_card_is_clean_and_its_data_aligned() {
    for (capacity, cluster_bytes) in [
        (1u64 << 30, 8192),
        (1 << 30, 4096),
        (256 << 20, 4096),
        (4 << 30, 32_768),
    ] {
        let mut profile = small_profile();
        profile.capacity_bytes = capacity;
        let mut card = Card::new(&profile, Seed::new(1));
        let partition = format(&mut card, cluster_bytes).unwrap();
        assert_eq!(partition, partition_of(&card));
        let path = image(&card, &format!("formatted-{capacity}-{cluster_bytes}.img"));
        fsck(&path);
        let volume = fatfs::FileSystem::new(
            File::options().read(true).write(true).open(&path).unwrap(),
            fatfs::FsOptions::new(),
        )
        .unwrap();
        assert_eq!(volume.cluster_size(), cluster_bytes);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_cluster_size_that_results_in_fat12_is_rejected_with_a_remedy() {
    let mut profile = small_profile();
    profile.capacity_bytes = 64 << 20;
    let error = format(&mut Card::new(&profile, Seed::new(1)), 32_768)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("FAT12") && error.contains("cluster size"),
        "{error}"
    );
}

#[test]
#[ignore = "needs fsck.fat"]
fn files_are_read_by_another_library_and_clean_for_fsck() {
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(&small_profile(), &board, 1).unwrap();
    store.mkdir("DIR").unwrap();
    assert!(!store.mkdir("DIR").unwrap(), "the folder exists already");
    let lines: Vec<u8> = (0..3000u32)
        .flat_map(|i| format!("line {i:>6} of many\r\n").into_bytes())
        .collect();
    // Write a file that is kept open, in pieces that are not aligned to blocks.
    let mut file = store.create("DIR/OPEN.TXT").unwrap();
    for (i, piece) in lines.chunks(77).enumerate() {
        store.write(&mut file, i as u64 * 77, piece).unwrap();
    }
    store.flush(&mut file, Flush::Wait).unwrap();
    store.close(file).unwrap();
    // Write another file that is opened and closed for each piece.
    for (i, piece) in lines.chunks(1000).enumerate() {
        let mut file = store.append("DIR/APPENDED.TXT").unwrap();
        store.write(&mut file, i as u64 * 1000, piece).unwrap();
        store.close(file).unwrap();
    }

    let path = image(&store.unmount().unwrap(), "written.img");
    fsck(&path);
    let volume = fatfs::FileSystem::new(
        File::options().read(true).write(true).open(&path).unwrap(),
        fatfs::FsOptions::new(),
    )
    .unwrap();
    let folder = volume.root_dir().open_dir("DIR").unwrap();
    for name in ["OPEN.TXT", "APPENDED.TXT"] {
        let mut content = Vec::new();
        folder
            .open_file(name)
            .unwrap()
            .read_to_end(&mut content)
            .unwrap();
        assert!(content == lines, "{name} differs");
    }
    std::fs::remove_file(path).unwrap();
}

#[derive(Default)]
struct Times(Vec<(u64, u64)>);

impl Observer for Times {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push((
            operation.end_ns - operation.start_ns,
            operation.length_bytes,
        ));
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs a workload on a card with this profile; returns the latency in ns and the payload of every write.
fn times_of(workload: &Workload, profile: &Profile, seed: u64) -> Vec<(u64, u64)> {
    // The card of version 0.1 was fitted to the accesses of embedded-sdmmc.
    let mut board = Board::named("esp32").unwrap();
    (board.library.window, board.driver.burst_blocks) = (false, 1);
    let mut store = FatCard::new(profile, &board, seed).unwrap();
    let mut clock: CardClock = store.clock();
    let mut times = Times::default();
    let mut buffer = vec![0; workload.buffer_bytes()];
    let outcome = run(workload, &mut store, &mut clock, &mut times, &mut buffer);
    assert_eq!(outcome.unwrap().verified_bytes, workload.bytes());
    assert!(clock.now_ns() > times.0.iter().map(|time| time.0).sum());
    times.0
}

fn stalls_of(times: &[(u64, u64)], threshold_ns: u64) -> Stalls<BUCKETS> {
    let mut stalls = Stalls::above(threshold_ns);
    times.iter().for_each(|&(ns, bytes)| stalls.push(ns, bytes));
    stalls.finish();
    stalls
}

const MS: u64 = 1_000_000;

#[test]
fn lines_opened_and_closed_show_the_published_stalls() {
    let profile = Profile::named("class10-16g").unwrap();
    for seed in 1..=5 {
        let times = times_of(workload("magod2").unwrap(), &profile, seed);
        let stalls = stalls_of(&times, 50 * MS);
        let (latency_ns, mode) = (
            stalls.median_latency_ns().unwrap(),
            stalls.mode_spacing_bytes().unwrap(),
        );
        assert!(
            (50 * MS..=90 * MS).contains(&latency_ns),
            "seed {seed}: median stall {latency_ns} ns"
        );
        assert!(
            (70_000..=95_000).contains(&mode),
            "seed {seed}: stalls {mode} B apart"
        );
        assert!(times.iter().all(|time| time.0 < 100 * MS), "seed {seed}");
    }
}

#[test]
fn mean_latency_of_files_kept_open_is_below_a_millisecond() {
    let profile = Profile::named("class10-16g").unwrap();
    let mut figures = Latencies::<BUCKETS>::default();
    for (ns, bytes) in times_of(workload("magod2-kept-open").unwrap(), &profile, 1) {
        figures.push(ns, bytes);
    }
    assert!(figures.mean_ns().unwrap() < MS);
    // Most lines only fill the buffer.
    assert!(figures.percentile_ns(500_000).unwrap() < MS / 10);
}

#[test]
fn stall_spacing_grows_with_the_number_of_log_blocks() {
    let spacing = |log_blocks| {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.controller.log_blocks = log_blocks;
        let times = times_of(workload("magod2").unwrap(), &profile, 1);
        stalls_of(&times, 50 * MS).mode_spacing_bytes().unwrap() as f64
    };
    let ratio = spacing(40) / spacing(20);
    assert!(
        (1.8..=2.2).contains(&ratio),
        "twice the log blocks, {ratio} times the spacing"
    );
}

#[test]
fn stall_latency_grows_with_the_program_time() {
    let latency_ns = |program_us| {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.flash.program_us = vec![program_us];
        let times = times_of(workload("magod2").unwrap(), &profile, 1);
        stalls_of(&times, 50 * MS).median_latency_ns().unwrap()
    };
    // A merge programs 64 pages, each of which takes 300 µs longer.
    let grown = latency_ns(1000) - latency_ns(700);
    assert!(grown.abs_diff(64 * 300_000) < 2 * MS, "{grown} ns longer");
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let profile = Profile::named("class10-16g").unwrap();
    let phase = [Phase {
        calls_per_file: 2000,
        ..Phase::WRITE
    }];
    let stream = Workload {
        name: "stream",
        study: "",
        about: "",
        phases: &phase,
    };
    assert_eq!(
        times_of(&stream, &profile, 7),
        times_of(&stream, &profile, 7)
    );
    assert_ne!(
        times_of(&stream, &profile, 7),
        times_of(&stream, &profile, 8)
    );
}

#[test]
fn a_full_card_is_an_error_with_a_remedy() {
    let mut profile = small_profile();
    profile.capacity_bytes = 64 << 20;
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(&profile, &board, 1).unwrap();
    let mut file = store.create("FULL.BIN").unwrap();
    let chunk = vec![1; 1 << 20];
    let failed = (0..64u64).find_map(|i| store.write(&mut file, i << 20, &chunk).err());
    let message = failed
        .expect("64 MiB fit the card next to its file system")
        .to_string();
    assert!(
        message.contains("disk full") && message.contains("larger card"),
        "{message}"
    );
}
