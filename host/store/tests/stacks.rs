//! Storage stacks of all boards. fsck.fat and another library check the card's contents. The tests count
//! commands and blocks by making one of them slow.

use crate::common::{fsck, image};
use cardiograph_sim_card::{BLOCK_BYTES, BOARDS, Board, Card, LibraryName, Profile, Seed};
use cardiograph_store::{CachedCard, FatCard, StoreError, run_on_card};
use cardiograph_workload::{
    Activity, Clock, Flush, Observer, Operation, OperationKind, Order, Phase, Store, Workload,
};
use embedded_sdmmc::{
    Block, BlockCount, BlockDevice, BlockIdx, Mode, TimeSource, Timestamp, VolumeIdx, VolumeManager,
};
use std::convert::Infallible;
use std::io::Read;
use std::ops::ControlFlow;

/// A card on which clusters of 2 KiB result in FAT32 and clusters of 8 KiB in FAT16.
fn profile() -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 256 << 20;
    profile
}

fn board(name: &str, cluster_bytes: u32) -> Board {
    let mut board = Board::named(name).unwrap();
    board.library.cluster_bytes = cluster_bytes;
    board
}

/// A test step that works with any store.
trait Step {
    type Output;
    fn on<S: Store<Error = StoreError>>(
        self,
        store: &mut S,
        clock: &mut impl Clock,
    ) -> Self::Output;
}

/// Runs a step on a new card; returns its output and the unmounted card.
fn run_step<A: Step>(profile: &Profile, board: &Board, step: A) -> (A::Output, Card) {
    match board.library.name {
        LibraryName::EmbeddedSdmmc => {
            let mut store = FatCard::new(profile, board, 1).unwrap();
            let mut clock = store.clock();
            let output = step.on(&mut store, &mut clock);
            (output, store.unmount().unwrap())
        }
        LibraryName::Fatfs | LibraryName::Linux => {
            let card = CachedCard::new(profile, board, 1).unwrap();
            let output = step.on(&mut card.store(), &mut card.clock());
            (output, card.unmount().unwrap())
        }
    }
}

fn lines() -> Vec<u8> {
    (0..3000u32)
        .flat_map(|i| format!("line {i:>6} of many\r\n").into_bytes())
        .collect()
}

/// Length in bytes of each of the four files written in turn.
const IN_TURN: u64 = 700;

/// Writes a file that is kept open, a file that is reopened for each piece, and four files in turn, one of
/// which the step may remove.
struct ManyFiles {
    removes: bool,
}

impl Step for ManyFiles {
    type Output = ();

    fn on<S: Store<Error = StoreError>>(self, store: &mut S, _clock: &mut impl Clock) {
        let lines = lines();
        assert!(store.mkdir("DIR").unwrap());
        assert!(!store.mkdir("DIR").unwrap(), "the folder exists");
        let mut file = store.create("DIR/OPEN.TXT").unwrap();
        for (i, piece) in lines.chunks(77).enumerate() {
            store.write(&mut file, i as u64 * 77, piece).unwrap();
        }
        store.flush(&mut file, Flush::Wait).unwrap();
        store.close(file).unwrap();
        assert!(store.create("DIR/OPEN.TXT").is_err(), "the file exists");
        for (i, piece) in lines.chunks(1000).enumerate() {
            let mut file = store.append("DIR/APPENDED.TXT").unwrap();
            store.write(&mut file, i as u64 * 1000, piece).unwrap();
            store.close(file).unwrap();
        }
        let mut files: Vec<_> = ["A", "B", "C", "D"]
            .map(|name| store.create(&format!("{name}.TXT")).unwrap())
            .into();
        for at in 0..IN_TURN {
            for (file, name) in files.iter_mut().zip(b'A'..) {
                store.write(file, at, &[name]).unwrap();
            }
        }
        for file in files {
            store.close(file).unwrap();
        }
        if self.removes {
            store.remove("D.TXT").unwrap();
        }
        // Overwrite data in place, in the middle of the file and across a sector boundary.
        let mut file = store.open("C.TXT", true).unwrap();
        store
            .write(&mut file, 500, b"0123456789abcdefghij")
            .unwrap();
        let mut back = [0; 30];
        assert_eq!(store.read(&mut file, 495, &mut back).unwrap(), 30);
        assert_eq!(&back, b"CCCCC0123456789abcdefghijCCCCC");
        assert_eq!(store.read(&mut file, IN_TURN - 3, &mut back).unwrap(), 3);
        assert_eq!(store.read(&mut file, IN_TURN, &mut back).unwrap(), 0);
        store.close(file).unwrap();
    }
}

/// Expected contents of the files.
fn expected() -> Vec<(&'static str, Vec<u8>)> {
    let mut c = vec![b'C'; IN_TURN as usize];
    c[500..520].copy_from_slice(b"0123456789abcdefghij");
    vec![
        ("OPEN.TXT", lines()),
        ("APPENDED.TXT", lines()),
        ("A.TXT", vec![b'A'; IN_TURN as usize]),
        ("B.TXT", vec![b'B'; IN_TURN as usize]),
        ("C.TXT", c),
    ]
}

fn is_in_folder(name: &str) -> bool {
    matches!(name, "OPEN.TXT" | "APPENDED.TXT")
}

/// Block device that accesses a card's memory directly, without a bus.
struct DirectAccess(Card);

impl BlockDevice for DirectAccess {
    type Error = Infallible;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), Infallible> {
        for (block, at) in blocks.iter_mut().zip(start.0..) {
            let mut data = [[0; BLOCK_BYTES]];
            self.0.load(at.into(), &mut data);
            block.contents = data[0];
        }
        Ok(())
    }

    fn write(&self, _: &[Block], _: BlockIdx) -> Result<(), Infallible> {
        // When embedded-sdmmc closes the volume, it writes its count of free clusters, which this device
        // ignores.
        Ok(())
    }

    fn num_blocks(&self) -> Result<BlockCount, Infallible> {
        Ok(BlockCount(self.0.blocks() as u32))
    }
}

struct Midnight;

impl TimeSource for Midnight {
    fn get_timestamp(&self) -> Timestamp {
        Timestamp::from_calendar(2026, 1, 1, 0, 0, 0).unwrap()
    }
}

fn check_with_embedded_sdmmc(card: Card) {
    let manager = VolumeManager::new(DirectAccess(card), Midnight);
    let volume = manager.open_volume(VolumeIdx(0)).unwrap();
    let root = volume.open_root_dir().unwrap();
    let folder = root.open_dir("DIR").unwrap();
    for (name, content) in expected() {
        let parent = if is_in_folder(name) { &folder } else { &root };
        let file = parent.open_file_in_dir(name, Mode::ReadOnly).unwrap();
        let mut back = vec![0; content.len() + 1];
        let mut read = 0;
        while !file.is_eof() {
            read += file.read(&mut back[read..]).unwrap();
        }
        assert!(back[..read] == content, "{name} differs");
    }
    assert!(root.find_directory_entry("D.TXT").is_err());
}

fn check_with_fatfs(path: &std::path::Path) {
    let image = std::fs::File::options().read(true).write(true).open(path);
    let volume = fatfs::FileSystem::new(image.unwrap(), fatfs::FsOptions::new()).unwrap();
    let root = volume.root_dir();
    let folder = root.open_dir("DIR").unwrap();
    for (name, content) in expected() {
        let parent = if is_in_folder(name) { &folder } else { &root };
        let mut back = Vec::new();
        let mut file = parent.open_file(name).unwrap();
        file.read_to_end(&mut back).unwrap();
        assert!(back == content, "{name} differs");
    }
}

#[test]
#[ignore = "needs fsck.fat"]
fn files_of_every_stack_are_clean_and_readable_by_another_library() {
    for (name, _) in BOARDS {
        for cluster_bytes in [2048, 8192] {
            let board = board(name, cluster_bytes);
            // embedded-sdmmc does not free the clusters of a removed file.
            let removes = board.library.name != LibraryName::EmbeddedSdmmc;
            let ((), card) = run_step(&profile(), &board, ManyFiles { removes });
            let path = image(&card, &format!("stack-{name}-{cluster_bytes}.img"));
            fsck(&path);
            match board.library.name {
                LibraryName::EmbeddedSdmmc => check_with_fatfs(&path),
                LibraryName::Fatfs | LibraryName::Linux => check_with_embedded_sdmmc(card),
            }
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// Extra time per command or block, long enough to derive their number from the total time.
const EXTRA_US: u32 = 50_000;

/// Counts the driver's commands and blocks in each part of a test step.
fn count<A: Step<Output = Vec<u64>> + Copy>(board: &Board, step: A) -> Vec<(u64, u64)> {
    let mut commands = board.clone();
    commands.driver.command_us += EXTRA_US;
    let mut blocks = board.clone();
    blocks.driver.block_us += EXTRA_US;
    let times = |board| run_step(&profile(), board, step).0;
    let extra_ns = u64::from(EXTRA_US) * 1000;
    let extras = |slow_ns: u64, ns: u64| (slow_ns - ns + extra_ns / 2) / extra_ns;
    let (plain, commands, blocks) = (times(board), times(&commands), times(&blocks));
    let all = plain.iter().zip(commands).zip(blocks);
    all.map(|((&ns, commands), blocks)| (extras(commands, ns), extras(blocks, ns)))
        .collect()
}

/// Sequential writes after the first 8 KiB of a file: the number of writes, and the bytes per write.
#[derive(Clone, Copy)]
struct Calls(u64, usize);

impl Step for Calls {
    type Output = Vec<u64>;

    /// Returns the total time of the calls, in ns.
    fn on<S: Store<Error = StoreError>>(self, store: &mut S, clock: &mut impl Clock) -> Vec<u64> {
        let Calls(calls, bytes) = self;
        let mut file = store.create("FILE.BIN").unwrap();
        store.write(&mut file, 0, &[1; 8192]).unwrap();
        let start_ns = clock.now_ns();
        for call in 0..calls {
            let at = 8192 + call * bytes as u64;
            store.write(&mut file, at, &vec![2; bytes]).unwrap();
        }
        let ns = clock.now_ns() - start_ns;
        store.close(file).unwrap();
        vec![ns]
    }
}

#[test]
fn whole_blocks_are_written_as_one_burst() {
    let counted = |name, change: fn(&mut Board), calls| {
        let mut board = board(name, 32_768);
        change(&mut board);
        count(&board, calls)[0]
    };
    let unchanged: fn(&mut Board) = |_| ();
    let profile = profile();
    assert!(profile.capacity_bytes / 32_768 > 4085, "FAT16 at least");
    assert_eq!(counted("lpc43xx", unchanged, Calls(1, 2048)), (1, 4));
    assert_eq!(counted("lpc43xx", unchanged, Calls(1, 8192)), (1, 16));
    assert_eq!(counted("lpc43xx", unchanged, Calls(4, 512)), (4, 4));
    // The C library's buffer combines the data of several calls.
    for name in ["esp32-s3-sd4", "esp32-s3-spi"] {
        assert_eq!(counted(name, unchanged, Calls(8, 512)), (1, 8), "{name}");
    }
    let short: fn(&mut Board) = |board| board.driver.burst_blocks = 3;
    assert_eq!(counted("lpc43xx", short, Calls(1, 2048)), (2, 4));
    assert_eq!(counted("esp32", unchanged, Calls(1, 2048)), (1, 4));
    // embedded-sdmmc never writes bursts.
    assert_eq!(counted("mega2560", unchanged, Calls(1, 2048)), (4, 4));
    assert_eq!(counted("linux-reader", unchanged, Calls(1, 8192)), (0, 0));
}

/// Writes single bytes to four files in turn, then reads single bytes.
#[derive(Clone, Copy)]
struct InTurn;

const BYTES_IN_TURN: u64 = 10;

impl Step for InTurn {
    type Output = Vec<u64>;

    /// Returns the times of writing and of reading, in ns.
    fn on<S: Store<Error = StoreError>>(self, store: &mut S, clock: &mut impl Clock) -> Vec<u64> {
        let mut files: Vec<_> = ["A", "B", "C", "D"]
            .map(|name| store.create(name).unwrap())
            .into();
        // The first byte allocates a cluster for each file and fills every buffer.
        for file in &mut files {
            store.write(file, 0, b"0").unwrap();
            store.flush(file, Flush::Wait).unwrap();
        }
        let mut turn = |writes: bool| {
            for file in &mut files {
                store.read(file, 0, &mut [0]).unwrap();
            }
            let start_ns = clock.now_ns();
            for at in 1..=BYTES_IN_TURN {
                for file in &mut files {
                    match writes {
                        true => store.write(file, at, b"1").unwrap(),
                        false => assert_eq!(store.read(file, at, &mut [0]).unwrap(), 1),
                    }
                }
            }
            clock.now_ns() - start_ns
        };
        let times = vec![turn(true), turn(false)];
        for file in files {
            store.close(file).unwrap();
        }
        times
    }
}

#[test]
fn files_sharing_a_buffer_evict_each_other() {
    let calls = 4 * BYTES_IN_TURN;
    let shared = count(&board("mega2560", 8192), InTurn);
    // Each byte evicts the buffered block of the previous file and reads a block of its own file. The first
    // byte evicts nothing.
    assert_eq!(shared[0], (2 * (calls - 1), 2 * (calls - 1)));
    assert_eq!(shared[1], (calls, calls));
    let mut own = board("mega2560", 8192);
    own.library.shared_buffer = false;
    let own = count(&own, InTurn);
    assert_eq!(own[0], (0, 0));
    assert_eq!(own[1], (0, 0), "all data is in the buffers");
}

/// Writes a file of 512 KiB in pieces, then syncs it. The pieces are in ascending order, or, if the value is true,
/// in descending order.
#[derive(Clone, Copy)]
struct Backwards(bool);

impl Step for Backwards {
    type Output = Vec<u64>;

    /// Returns the times of the writes and of the sync, in ns.
    fn on<S: Store<Error = StoreError>>(self, store: &mut S, clock: &mut impl Clock) -> Vec<u64> {
        const PIECE: usize = 4096;
        const PIECES: u64 = 128;
        let mut file = store.create("FILE.BIN").unwrap();
        for piece in 0..PIECES {
            store
                .write(&mut file, piece * PIECE as u64, &[1; PIECE])
                .unwrap();
        }
        store.flush(&mut file, Flush::Wait).unwrap();
        let start_ns = clock.now_ns();
        for piece in 0..PIECES {
            let piece = if self.0 { PIECES - 1 - piece } else { piece };
            let data = [piece as u8; PIECE];
            store.write(&mut file, piece * PIECE as u64, &data).unwrap();
        }
        let written_ns = clock.now_ns();
        store.flush(&mut file, Flush::Wait).unwrap();
        let synced_ns = clock.now_ns();
        let mut back = [0; PIECE];
        for piece in 0..PIECES {
            let at = piece * PIECE as u64;
            assert_eq!(store.read(&mut file, at, &mut back).unwrap(), PIECE);
            assert_eq!(back, [piece as u8; PIECE]);
        }
        store.close(file).unwrap();
        vec![written_ns - start_ns, synced_ns - written_ns]
    }
}

#[test]
fn a_page_cache_writes_only_at_a_sync_and_in_address_order() {
    let board = board("linux-reader", 8192);
    let (forwards, backwards) = (
        count(&board, Backwards(false)),
        count(&board, Backwards(true)),
    );
    assert_eq!(forwards[0], (0, 0), "writes before the sync");
    assert_eq!(forwards, backwards);
    let (commands, blocks) = forwards[1];
    // The card receives the data in bursts of 240 blocks, and a block of the directory.
    assert!((1024..1040).contains(&blocks), "{blocks}");
    assert!((5..=7).contains(&commands), "{commands}");
}

#[test]
fn a_page_cache_respects_its_limit_of_dirty_bytes() {
    let mut board = board("linux-reader", 8192);
    board.library.dirty_bytes_max = Some(64 << 10);
    let counted = count(&board, Backwards(true));
    let (_, before) = counted[0];
    let (_, at_sync) = counted[1];
    assert!(before >= 1024 - 128 - 8, "{before} blocks before the sync");
    assert!(at_sync <= 128 + 8, "{at_sync} blocks at the sync");
}

/// Writes a file of the given length, in MiB, and syncs it. Returns the total time, in ns.
#[derive(Clone, Copy)]
struct Synced(u64);

impl Step for Synced {
    type Output = u64;

    fn on<S: Store<Error = StoreError>>(self, store: &mut S, clock: &mut impl Clock) -> u64 {
        const MIB: usize = 1 << 20;
        let mut file = store.create("FILE.BIN").unwrap();
        let start_ns = clock.now_ns();
        for number in 0..self.0 {
            let at = number * MIB as u64;
            store.write(&mut file, at, &[0; MIB]).unwrap();
        }
        store.flush(&mut file, Flush::Wait).unwrap();
        let ns = clock.now_ns() - start_ns;
        store.close(file).unwrap();
        ns
    }
}

/// Metadata written between parts of a file keeps every run short enough for the reader.
#[test]
fn a_page_cache_that_is_full_writes_the_fat_between_parts_of_a_file() {
    let mut board = board("linux-reader-hangs", 8192);
    board.driver.hang.as_mut().unwrap().run_blocks_max = (8 << 20) / 512;
    for (dirty_bytes_max, hangs) in [(6_000_000, 0), (30_000_000, 2)] {
        board.library.dirty_bytes_max = Some(dirty_bytes_max);
        let (ns, _) = run_step(&profile(), &board, Synced(20));
        assert_eq!(ns / 30_000_000_000, hangs, "{ns} ns");
    }
}

#[derive(Default)]
struct Times(Vec<(u64, u64)>);

impl Observer for Times {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push((operation.start_ns, operation.end_ns));
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn times_of(board: &Board, seed: u64) -> Vec<(u64, u64)> {
    let write = Phase {
        files: 2,
        calls_per_file: 100,
        bytes_per_call: 700,
        order: Order::RoundRobin,
        ..Phase::WRITE
    };
    let read = Phase {
        operation: OperationKind::Read,
        ..write
    };
    let workload = Workload {
        name: "both",
        study: "",
        about: "",
        phases: &[write, read],
    };
    let mut times = Times::default();
    let mut buffer = vec![0; workload.buffer_bytes()];
    let card = Card::new(&profile(), Seed::new(seed));
    let run = run_on_card(card, board, &workload, &mut times, &mut buffer)
        .unwrap()
        .0;
    assert_eq!(run.result.unwrap().verified_bytes, workload.bytes());
    assert_eq!(run.timeouts, 0);
    times.0
}

#[test]
fn every_board_is_deterministic_for_a_seed() {
    for (name, _) in BOARDS {
        let board = board(name, 8192);
        let times = times_of(&board, 7);
        assert_eq!(times.len(), 400);
        assert!(times == times_of(&board, 7), "{name}");
        assert!(times != times_of(&board, 8), "{name}");
    }
}

/// Writes until garbage collection stalls the card for at least 1 s, then verifies the data. Returns the longest
/// latency.
struct UntilStall;

impl Step for UntilStall {
    type Output = Result<u64, StoreError>;

    fn on<S: Store<Error = StoreError>>(
        self,
        store: &mut S,
        clock: &mut impl Clock,
    ) -> Result<u64, StoreError> {
        let mut file = store.create("SLOW.BIN").unwrap();
        let mut longest_ns = 0;
        let mut blocks = 0u64;
        while longest_ns < 1_000_000_000 {
            let start_ns = clock.now_ns();
            store.write(&mut file, blocks * 4096, &[blocks as u8; 4096])?;
            store.flush(&mut file, Flush::Wait)?;
            longest_ns = longest_ns.max(clock.now_ns() - start_ns);
            blocks += 1;
            assert!(blocks < 20_000, "no stall within 20,000 writes");
        }
        let mut back = [0; 4096];
        for block in 0..blocks {
            assert_eq!(store.read(&mut file, block * 4096, &mut back)?, 4096);
            assert_eq!(back, [block as u8; 4096], "piece {block}");
        }
        store.close(file)?;
        Ok(longest_ns)
    }
}

/// A profile in which a merge of `pages_per_block` pages, each of `program_us`, is one stall.
fn stalling(pages_per_block: u32, program_us: u32) -> Profile {
    let mut profile = profile();
    profile.flash.pages_per_block = pages_per_block;
    profile.flash.program_us = vec![program_us];
    profile.controller.stall_limit_us = u32::MAX;
    profile
}

#[test]
#[ignore = "needs fsck.fat"]
fn a_stall_in_a_burst_is_waited_out_without_losing_data() {
    for name in ["lpc43xx", "esp32-s3-spi"] {
        let profile = stalling(64, 20_000);
        let (longest_ns, card) = run_step(&profile, &board(name, 8192), UntilStall);
        assert!(longest_ns.unwrap() > 1_000_000_000, "{name}");
        let path = image(&card, &format!("stall-{name}.img"));
        fsck(&path);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_card_that_stays_busy_is_an_error_with_a_remedy() {
    // This test uses the SD bus; wire.rs tests the same over SPI.
    let board = board("lpc43xx", 8192);
    let card = CachedCard::new(&stalling(256, 100_000), &board, 1).unwrap();
    let failed = UntilStall.on(&mut card.store(), &mut card.clock());
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("shorter stalls"), "{message}");
    assert!(card.timeouts() >= 24);
}

#[test]
fn a_full_card_is_an_error_with_a_remedy() {
    let mut profile = profile();
    profile.capacity_bytes = 64 << 20;
    for name in ["lpc43xx", "linux-reader"] {
        let card = CachedCard::new(&profile, &board(name, 8192), 1).unwrap();
        let mut store = card.store();
        let mut file = store.create("FULL.BIN").unwrap();
        let chunk = vec![0; 1 << 20];
        let failed = (0..64u64).find_map(|i| store.write(&mut file, i << 20, &chunk).err());
        let message = failed.expect("64 MiB fit the card").to_string();
        assert!(
            message.contains("disk full") && message.contains("larger card"),
            "{message}"
        );
    }
}
