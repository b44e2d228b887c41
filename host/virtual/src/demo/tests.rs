//! Both ways to log in virtual time, on a simulated card.

use super::sketch::{Host, PATH, Sketch, Tally, Way};
use crate::RING_BYTES;
use crate::magnetometer::RATE_HZ;
use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_sim_world::Clock;
use cardiograph_store::CachedCard;
use cardiograph_workload::Store;

const S: u64 = 1_000_000_000;

/// Cuts the power at a time of the card's clock.
struct Cut<'a> {
    card: &'a CachedCard,
    at_ns: u64,
    copy: Option<Card>,
    lines: u64,
}

impl Host for Cut<'_> {
    fn pass_until(&mut self, ns: u64) -> bool {
        if ns >= self.at_ns {
            self.copy = self.card.interrupted_copy();
        }
        self.copy.is_none()
    }

    fn line_done(&mut self, _: &Tally, _: u64, _: u32) {
        self.lines += 1;
    }
}

/// Logs for a while; returns the samples, the lines written, and those in the file after the power cut.
fn logged(way: Way, seconds: u64) -> (Tally, u64, u64) {
    let board = Board::named("esp32").unwrap();
    let mut card = Card::new(&Profile::named("class10-16g").unwrap(), Seed::new(3));
    let volume = cardiograph_store::format(&mut card, board.library.cluster_bytes).unwrap();
    let clock = Clock::default();
    let mounted = CachedCard::insert(card, &volume, &board, clock.clone()).unwrap();
    let mut host = Cut {
        card: &mounted,
        at_ns: clock.now_ns() + seconds * S,
        copy: None,
        lines: 0,
    };
    let mut tally = Tally::default();
    let mut sketch = Sketch::new(way, 0, &mut tally, &mut host);
    let ran = sketch.run(&mut mounted.store(), &mut mounted.clock());
    ran.unwrap();
    let (copy, lines) = (host.copy.unwrap(), host.lines);
    let again = CachedCard::insert(copy, &volume, &board, clock).unwrap();
    let mut store = again.store();
    let mut text = vec![0; 1 << 20];
    let file = store.open(PATH, false);
    let len = file.map_or(0, |mut file| store.read(&mut file, 0, &mut text).unwrap());
    let kept = text[..len].split(|byte| *byte == b'\n').count() - 1;
    (tally, lines, kept as u64)
}

#[test]
fn open_and_close_loses_samples_but_keeps_its_lines() {
    let (tally, lines, kept) = logged(Way::OpenAndClose, 6);
    let taken = 6 * u64::from(RATE_HZ);
    assert!(tally.samples.abs_diff(taken) < 50, "{tally:?}");
    // The moment of the cut decides whether the last line is in the file.
    assert!(lines > 100 && kept.abs_diff(lines) <= 1, "{lines} {kept}");
    assert!(tally.lost > taken / 4, "{tally:?}");
    assert!(tally.ring_bytes_max > RING_BYTES - 100 && tally.ring_bytes_max <= RING_BYTES);
}

#[test]
fn a_file_kept_open_loses_nothing_until_the_power_cut_takes_all() {
    let (tally, lines, kept) = logged(Way::KeepOpen, 6);
    assert_eq!((tally.lost, kept), (0, 0));
    assert!(tally.samples - lines < 50, "{tally:?} {lines}");
}
