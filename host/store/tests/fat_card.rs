//! The simulated card as a store: judged by fsck.fat and by another FAT library.

mod common;

use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_store::{CardClock, FatCard, format};
use cardiograph_timing::{Latencies, Stalls, buckets_below};
use cardiograph_workload::{
    Clock, Doing, Flush, Observer, Operation, Phase, Store, Workload, run, workload,
};
use common::{fsck, image, partition_of};
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
fn a_cluster_size_that_makes_fat12_is_refused_with_a_remedy() {
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
fn what_the_store_wrote_another_library_reads_and_fsck_finds_clean() {
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(&small_profile(), &board, 1).unwrap();
    store.mkdir("DIR").unwrap();
    assert!(!store.mkdir("DIR").unwrap(), "it is there already");
    let lines: Vec<u8> = (0..3000u32)
        .flat_map(|i| format!("line {i:>6} of many\r\n").into_bytes())
        .collect();
    // Kept open, in pieces that fit no block.
    let mut file = store.create("DIR/OPEN.TXT").unwrap();
    for (i, piece) in lines.chunks(77).enumerate() {
        store.write(&mut file, i as u64 * 77, piece).unwrap();
    }
    store.flush(&mut file, Flush::Wait).unwrap();
    store.close(file).unwrap();
    // Opened anew for each piece.
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

    fn wait(&mut self, _doing: Doing, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs a workload on the card that comes along; returns every write time in ns with its payload.
fn times_of(workload: &Workload, profile: &Profile, seed: u64) -> Vec<(u64, u64)> {
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(profile, &board, seed).unwrap();
    let mut clock: CardClock = store.clock();
    let mut times = Times::default();
    let mut buffer = vec![0; workload.buffer_bytes()];
    let outcome = run(workload, &mut store, &mut clock, &mut times, &mut buffer);
    assert_eq!(outcome.unwrap().verified_bytes, workload.bytes());
    assert!(clock.now_ns() > times.0.iter().map(|time| time.0).sum());
    times.0
}

fn peaks_of(times: &[(u64, u64)], threshold_ns: u64) -> Stalls<BUCKETS> {
    let mut peaks = Stalls::above(threshold_ns);
    times.iter().for_each(|&(ns, bytes)| peaks.push(ns, bytes));
    peaks.finish();
    peaks
}

const MS: u64 = 1_000_000;

#[test]
fn lines_opened_and_closed_show_the_published_peaks() {
    let profile = Profile::named("class10-16g").unwrap();
    for seed in 1..=5 {
        let times = times_of(workload("magod2").unwrap(), &profile, seed);
        let peaks = peaks_of(&times, 50 * MS);
        let (height, mode) = (
            peaks.median_latency_ns().unwrap(),
            peaks.mode_spacing_bytes().unwrap(),
        );
        assert!(
            (50 * MS..=90 * MS).contains(&height),
            "seed {seed}: {height} ns high"
        );
        assert!(
            (70_000..=95_000).contains(&mode),
            "seed {seed}: {mode} B apart"
        );
        assert!(times.iter().all(|time| time.0 < 100 * MS), "seed {seed}");
    }
}

#[test]
fn lines_to_files_kept_open_take_less_than_a_millisecond_in_the_mean() {
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
fn the_spacing_of_the_peaks_grows_with_the_log() {
    let spacing = |log_blocks| {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.controller.log_blocks = log_blocks;
        let times = times_of(workload("magod2").unwrap(), &profile, 1);
        peaks_of(&times, 50 * MS).mode_spacing_bytes().unwrap() as f64
    };
    let ratio = spacing(40) / spacing(20);
    assert!(
        (1.8..=2.2).contains(&ratio),
        "twice the log, {ratio} times the spacing"
    );
}

#[test]
fn the_height_of_the_peaks_grows_with_the_pages_of_a_block() {
    let height = |program_us| {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.flash.program_us = vec![program_us];
        let times = times_of(workload("magod2").unwrap(), &profile, 1);
        peaks_of(&times, 50 * MS).median_latency_ns().unwrap()
    };
    // 64 pages, each 300 us longer.
    let grown = height(1000) - height(700);
    assert!(grown.abs_diff(64 * 300_000) < 2 * MS, "{grown} ns higher");
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
        .expect("64 MiB do not fit beside the file system")
        .to_string();
    assert!(
        message.contains("disk full") && message.contains("larger card"),
        "{message}"
    );
}
