//! Fake cards that claim 64 GiB, in memory: the quick check finds all of them, and passes honest ones.

use cardiograph_disk::{
    Capacity, CapacityPlan, Medium, SPACING_BYTES, Stopped, Verdict, check_capacity, measure_speed,
    pass_bytes, read_workload, verdict,
};
use cardiograph_workload::{Activity, Clock, Observer, Operation, Phase, Workload};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::ControlFlow;

const CLAIMED_BYTES: u64 = 64 << 30;
const SECTOR_BYTES: u64 = 512;

const EIO: i32 = 5;
const ENOMEM: i32 = 12;

/// Numbers of SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Behaviour of a card beyond its real capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beyond {
    Honest,
    Wraps,
    /// Writes are ignored; reads return what other programs wrote there, or noise.
    Drops,
    Zeros,
    /// Every write beyond goes to the last 1 MiB.
    Folds,
}

/// A card in memory; sectors that were never written are noise.
struct Card {
    real_bytes: u64,
    beyond: Beyond,
    sectors: HashMap<u64, Box<[u8]>>,
    /// The newest writes, which any card answers from RAM.
    cache: VecDeque<(u64, Box<[u8]>)>,
    cache_sectors: usize,
    /// Sectors that always fail, with this error.
    bad: Vec<u64>,
    errno: i32,
    /// Number of accesses after which the card vanishes.
    vanishes_after: u64,
}

impl Card {
    fn new(real_bytes: u64, beyond: Beyond) -> Card {
        Card {
            real_bytes,
            beyond,
            sectors: HashMap::new(),
            cache: VecDeque::new(),
            cache_sectors: 0,
            bad: Vec::new(),
            errno: EIO,
            vanishes_after: u64::MAX,
        }
    }

    /// Returns the sector that stores an address, if any does.
    fn place(&self, sector: u64) -> Option<u64> {
        let real = self.real_bytes / SECTOR_BYTES;
        match self.beyond {
            _ if sector < real => Some(sector),
            Beyond::Honest => Some(sector),
            Beyond::Wraps => Some(sector % real),
            Beyond::Drops | Beyond::Zeros => None,
            Beyond::Folds => Some(real - 2048 + sector % 2048),
        }
    }

    fn access(&mut self, offset_bytes: u64, length: usize) -> io::Result<u64> {
        self.vanishes_after = self.vanishes_after.saturating_sub(1);
        if self.vanishes_after == 0 {
            return Err(io::Error::from_raw_os_error(19));
        }
        assert!(offset_bytes.is_multiple_of(SECTOR_BYTES));
        assert!(offset_bytes + length as u64 <= CLAIMED_BYTES);
        let first = offset_bytes / SECTOR_BYTES;
        let sectors = length as u64 / SECTOR_BYTES;
        match self
            .bad
            .iter()
            .any(|bad| (first..first + sectors).contains(bad))
        {
            true => Err(io::Error::from_raw_os_error(self.errno)),
            false => Ok(first),
        }
    }
}

impl Medium for Card {
    fn capacity_bytes(&self) -> u64 {
        CLAIMED_BYTES
    }

    fn block_bytes(&self) -> u32 {
        512
    }

    fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let first = self.access(offset_bytes, buffer.len())?;
        for (data, sector) in buffer.chunks_exact_mut(512).zip(first..) {
            let cached = self.cache.iter().rev().find(|entry| entry.0 == sector);
            let place = self.place(sector);
            let stored = place.and_then(|place| self.sectors.get(&place));
            match cached.map(|entry| &entry.1).or(stored) {
                Some(found) => data.copy_from_slice(found),
                None if place.is_none() && self.beyond == Beyond::Zeros => data.fill(0),
                None => data.fill(sector as u8 | 1),
            }
        }
        Ok(())
    }

    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let first = self.access(offset_bytes, data.len())?;
        for (data, sector) in data.chunks_exact(512).zip(first..) {
            if let Some(place) = self.place(sector) {
                self.sectors.insert(place, data.into());
            }
            if self.cache_sectors > 0 {
                self.cache.push_back((sector, data.into()));
                if self.cache.len() > self.cache_sectors {
                    self.cache.pop_front();
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check(card: &mut Card, run: u64) -> Capacity {
    let checked = check_capacity(
        card,
        CapacityPlan::Quick,
        run,
        |_| ControlFlow::Continue(()),
    );
    checked.unwrap()
}

#[test]
fn a_hundred_fakes_of_random_capacity_are_found() {
    let kinds = [Beyond::Wraps, Beyond::Drops, Beyond::Zeros, Beyond::Folds];
    let mut random = Random(8);
    for seed in 0..100 {
        let kind = kinds[seed as usize % kinds.len()];
        // Any number of sectors from 32 MiB up to one probe less than claimed.
        let least = 32 << 20;
        let real_bytes = (least + random.below(CLAIMED_BYTES - 4096 - least)) / 512 * 512;
        let capacity = check(&mut Card::new(real_bytes, kind), seed);
        assert!(!capacity.is_honest(), "{kind:?} at {real_bytes}: not found");
        let kept_bytes = capacity.kept_bytes;
        match kind {
            Beyond::Wraps if real_bytes < CLAIMED_BYTES - SPACING_BYTES => {
                assert_eq!(kept_bytes, real_bytes, "{kind:?}");
            }
            Beyond::Drops | Beyond::Zeros => {
                let above = kept_bytes.abs_diff(real_bytes);
                assert!(
                    above <= SPACING_BYTES,
                    "{kind:?}: {kept_bytes}, not {real_bytes}"
                );
            }
            _ => {}
        }
        assert!(capacity.findings.len() <= 100);
    }
}

#[test]
fn a_hundred_honest_cards_pass() {
    for seed in 0..100 {
        let capacity = check(&mut Card::new(CLAIMED_BYTES, Beyond::Honest), seed);
        assert!(capacity.is_honest(), "seed {seed}: {capacity:?}");
        assert_eq!(capacity.kept_bytes, CLAIMED_BYTES);
        let passes = pass_bytes(CapacityPlan::Quick, CLAIMED_BYTES);
        assert_eq!(capacity.tested_bytes, passes / 2);
    }
}

/// Wrapping at a length that is no power of two, and no multiple of anything, is the case that sparse checks miss.
#[test]
fn wrapping_at_every_residue_collides() {
    for residue in (0..SPACING_BYTES).step_by(2 * 1_048_576 + 512) {
        let real_bytes = (7 << 30) + residue;
        let capacity = check(&mut Card::new(real_bytes, Beyond::Wraps), residue);
        assert_eq!(capacity.kept_bytes, real_bytes);
    }
}

#[test]
fn a_cache_of_the_newest_writes_hides_nothing() {
    for seed in 0..4 {
        let mut card = Card::new(3 << 30, Beyond::Drops);
        card.cache_sectors = 2_000 << seed;
        let capacity = check(&mut card, seed);
        assert!(
            !capacity.is_honest(),
            "{} sectors of cache",
            card.cache_sectors
        );
    }
}

/// A card that was checked before holds the sectors of that check, each at the offset that it states.
#[test]
fn sectors_of_an_earlier_check_do_not_count() {
    let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
    assert!(check(&mut card, 1).is_honest());
    (card.real_bytes, card.beyond) = (1 << 30, Beyond::Drops);
    struct Stale(Card, HashMap<u64, Box<[u8]>>);
    impl Medium for Stale {
        fn capacity_bytes(&self) -> u64 {
            CLAIMED_BYTES
        }
        fn block_bytes(&self) -> u32 {
            512
        }
        fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
            if offset_bytes < self.0.real_bytes {
                return self.0.read_at(offset_bytes, buffer);
            }
            for (data, sector) in buffer.chunks_exact_mut(512).zip(offset_bytes / 512..) {
                data.copy_from_slice(&self.1[&sector]);
            }
            Ok(())
        }
        fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
            self.0.write_at(offset_bytes, data)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let old = card.sectors.clone();
    let mut stale = Stale(card, old);
    let go_on = |_| ControlFlow::Continue(());
    let capacity = check_capacity(&mut stale, CapacityPlan::Quick, 2, go_on).unwrap();
    assert!(!capacity.is_honest());
}

#[test]
fn a_bad_block_is_recorded_and_the_check_goes_on() {
    let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
    // One in the contiguous run, and one in a probe.
    card.bad = vec![5_000, 5 * SPACING_BYTES / 512];
    let capacity = check(&mut card, 1);
    let offsets: Vec<_> = capacity.findings.iter().map(|f| f.offset_bytes).collect();
    assert_eq!(offsets, [5_000 / 8 * 4096, 5 * SPACING_BYTES]);
    assert!(
        capacity
            .findings
            .iter()
            .any(|f| f.fault.contains("Input/output"))
    );
}

/// Blocks between good ones: none of them is the 64th in a row.
#[test]
fn many_bad_blocks_are_counted_to_the_end() {
    let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
    card.bad = (0..200).map(|block| block * 2 * 8).collect();
    let capacity = check(&mut card, 1);
    assert_eq!(capacity.failed_blocks, 200);
    let first: Vec<_> = capacity.findings.iter().map(|f| f.offset_bytes).collect();
    let expected: Vec<u64> = (0..100).map(|block| block * 2 * 4096).collect();
    assert_eq!(first, expected);
    let passes = pass_bytes(CapacityPlan::Quick, CLAIMED_BYTES);
    assert_eq!(capacity.tested_bytes, passes / 2);
}

/// A card that fails only when it is read back: what was read before the end is in the result.
#[test]
fn many_bad_blocks_in_a_row_end_the_check_with_their_addresses() {
    struct Unreadable(Card);
    impl Medium for Unreadable {
        fn capacity_bytes(&self) -> u64 {
            8 << 20
        }
        fn block_bytes(&self) -> u32 {
            512
        }
        fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
            match offset_bytes + buffer.len() as u64 > 3 << 20 {
                true => Err(io::Error::from_raw_os_error(EIO)),
                false => self.0.read_at(offset_bytes, buffer),
            }
        }
        fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
            self.0.write_at(offset_bytes, data)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut card = Unreadable(Card::new(CLAIMED_BYTES, Beyond::Honest));
    let go_on = |_| ControlFlow::Continue(());
    let Err(Stopped::Failed(ended)) = check_capacity(&mut card, CapacityPlan::Full, 1, go_on)
    else {
        panic!("the check did not end");
    };
    let capacity = &ended.so_far;
    let found: Vec<_> = capacity.findings.iter().map(|f| f.offset_bytes).collect();
    let expected: Vec<u64> = (3 << 20..).step_by(4096).take(64).collect();
    assert_eq!(found, expected);
    assert_eq!(ended.offset_bytes, Some(expected[63]));
    assert_eq!(
        (capacity.tested_bytes, capacity.kept_bytes),
        (3 << 20, 3 << 20)
    );
    assert_eq!(capacity.failed_blocks, 64);
}

#[test]
fn a_card_that_vanishes_ends_the_check() {
    let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
    card.vanishes_after = 1_000;
    let go_on = |_| ControlFlow::Continue(());
    let ended = check_capacity(&mut card, CapacityPlan::Quick, 1, go_on);
    assert!(matches!(ended, Err(Stopped::Failed(_))), "{ended:?}");
}

/// The check is stopped after the third call of 4 KiB that reads.
#[test]
fn a_check_that_is_stopped_returns_what_it_tested() {
    let read_bytes = 3 * 4096;
    let end_bytes = pass_bytes(CapacityPlan::Quick, CLAIMED_BYTES) / 2 + read_bytes;
    let stop = |done_bytes| match done_bytes < end_bytes {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
    match check_capacity(&mut card, CapacityPlan::Quick, 1, stop) {
        Err(Stopped::Interrupted(so_far)) => assert_eq!(so_far.tested_bytes, read_bytes),
        other => panic!("{other:?}"),
    }
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now_ns(&mut self) -> u64 {
        0
    }

    fn pause_ns(&mut self, _: u64) {}
}

/// Observes nothing.
struct Nobody;

impl Observer for Nobody {
    fn observe(&mut self, _: &Operation) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn a_block_is_bad_only_if_the_card_causes_the_error() {
    let phases = [Phase {
        calls_per_file: 64,
        bytes_per_call: 4096,
        ..Phase::WRITE
    }];
    let workload = Workload {
        name: "test",
        study: "",
        about: "",
        phases: &phases,
    };
    let card = |errno| {
        let mut card = Card::new(CLAIMED_BYTES, Beyond::Honest);
        (card.bad, card.errno) = (vec![80], errno);
        card
    };
    let check = |errno| {
        let go_on = |_| ControlFlow::Continue(());
        check_capacity(&mut card(errno), CapacityPlan::Quick, 1, go_on)
    };
    let speed = |errno| {
        let go_on = || ControlFlow::Continue(());
        measure_speed(&mut card(errno), false, &mut Still, go_on)
    };
    let read = |errno| {
        let mut buffer = [0; 4096];
        read_workload(
            &mut card(errno),
            &workload,
            &mut Still,
            &mut Nobody,
            &mut buffer,
        )
    };
    assert_eq!(check(EIO).unwrap().failed_blocks, 1);
    assert!(!speed(EIO).unwrap().failed.is_empty());
    assert_eq!(read(EIO).unwrap().len(), 1);
    let is_memory = |error: &io::Error| error.raw_os_error() == Some(ENOMEM);
    assert!(matches!(check(ENOMEM), Err(Stopped::Failed(ended)) if is_memory(&ended.source)));
    assert!(is_memory(&speed(ENOMEM).unwrap_err().source));
    let ended = read(ENOMEM).unwrap_err();
    assert!(ended.offset_bytes == Some(80 * SECTOR_BYTES) && is_memory(&ended.source));
}

/// Counts overlaps of a full pass, on a card small enough for it.
#[test]
fn the_full_pass_covers_every_byte() {
    struct Small(Vec<u8>, usize);
    impl Medium for Small {
        fn capacity_bytes(&self) -> u64 {
            self.0.len() as u64
        }
        fn block_bytes(&self) -> u32 {
            512
        }
        fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
            let begin = offset_bytes as usize;
            buffer.copy_from_slice(&self.0[begin..begin + buffer.len()]);
            Ok(())
        }
        fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
            let begin = offset_bytes as usize;
            self.0[begin..begin + data.len()].copy_from_slice(data);
            // A single stuck bit, anywhere.
            self.0[self.1] |= 1;
            Ok(())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let length = (5 << 20) + 1536;
    for stuck in [0, 512 * 77 + 100, length - 1] {
        let mut small = Small(vec![0; length], stuck);
        let go_on = |_| ControlFlow::Continue(());
        let capacity = check_capacity(&mut small, CapacityPlan::Full, 3, go_on).unwrap();
        assert_eq!(capacity.tested_bytes, length as u64);
        // The bit may have been one already.
        let expected = u64::from(capacity.kept_bytes < length as u64);
        assert_eq!(capacity.wrong_blocks, expected);
    }
}

/// Another program uses up the space for a moment, or removes the files: the disk has lost nothing.
#[test]
fn a_file_system_that_refuses_a_call_is_no_fake() {
    struct Refusing(Card, u64, io::ErrorKind);
    impl Medium for Refusing {
        fn capacity_bytes(&self) -> u64 {
            self.0.capacity_bytes()
        }
        fn block_bytes(&self) -> u32 {
            512
        }
        fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset_bytes, buffer)
        }
        fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
            match offset_bytes == self.1 {
                true => Err(self.2.into()),
                false => self.0.write_at(offset_bytes, data),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for kind in [
        io::ErrorKind::StorageFull,
        io::ErrorKind::QuotaExceeded,
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::FileTooLarge,
        io::ErrorKind::NotFound,
    ] {
        let card = Card::new(CLAIMED_BYTES, Beyond::Honest);
        let mut refusing = Refusing(card, 3 * SPACING_BYTES, kind);
        let go_on = |_| ControlFlow::Continue(());
        let checked = check_capacity(&mut refusing, CapacityPlan::Quick, 1, go_on);
        let is_same =
            matches!(&checked, Err(Stopped::Failed(ended)) if ended.source.kind() == kind);
        assert!(is_same, "{kind:?}: {checked:?}");
    }
}

#[test]
fn a_verdict_needs_99_percent_or_a_single_fault() {
    let tested = |tested_bytes: u64, wrong_blocks: u64| Capacity {
        claimed_bytes: 1000,
        tested_bytes,
        wrong_blocks,
        ..Capacity::default()
    };
    let of = |capacity: Option<&Capacity>, device: u64| verdict(capacity, Some(device), 0);
    assert_eq!(of(Some(&tested(990, 0)), 1000), Verdict::Genuine);
    assert_eq!(of(Some(&tested(989, 0)), 1000), Verdict::NotTested);
    assert_eq!(of(Some(&tested(990, 0)), 1001), Verdict::NotTested);
    assert_eq!(of(Some(&tested(1000, 1)), 1000), Verdict::Fake);
    assert_eq!(of(Some(&tested(1, 1)), 1000), Verdict::Fake);
    assert_eq!(of(None, 1000), Verdict::NotTested);
    // Of an unknown size, any share may have been tested.
    assert_eq!(verdict(Some(&tested(1000, 0)), None, 0), Verdict::NotTested);
    assert_eq!(verdict(None, Some(1000), 1), Verdict::Fake);
    // A product of 64 bits would overflow.
    let huge = Capacity {
        tested_bytes: u64::MAX,
        ..Capacity::default()
    };
    assert_eq!(verdict(Some(&huge), Some(u64::MAX), 0), Verdict::Genuine);
}
