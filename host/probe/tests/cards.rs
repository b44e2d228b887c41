//! Probes of simulated cards, compared with the values of their profiles.

use cardiograph_probe::{
    Answer, Findings, Limits, ProbeError, SimulatedTarget, Target, TargetError, probe,
};
use cardiograph_sim_card::{Board, CARDS, FIXTURES, Profile};
use std::fmt::Write;
use std::ops::ControlFlow;

/// A target whose host adds noise to each latency.
struct Noisy {
    card: SimulatedTarget,
    /// Largest addition, in ns.
    jitter_ns: u64,
    /// Additional time of one operation in 200, in ns.
    outlier_ns: u64,
    random: u64,
}

impl Noisy {
    fn noise_ns(&mut self) -> u64 {
        // xorshift64 (Marsaglia, 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let outlier_ns = match self.random % 200 {
            0 => self.outlier_ns,
            _ => 0,
        };
        (self.random >> 8) % (self.jitter_ns + 1) + outlier_ns
    }
}

impl Target for Noisy {
    fn bytes(&self) -> u64 {
        self.card.bytes()
    }

    fn begins_at_the_card(&self) -> bool {
        self.card.begins_at_the_card()
    }

    fn is_filled(&self) -> bool {
        self.card.is_filled()
    }

    fn write(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let ns = self.card.write(offset_bytes, length_bytes)?;
        Ok(ns + self.noise_ns())
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let ns = self.card.read(offset_bytes, length_bytes)?;
        Ok(ns + self.noise_ns())
    }

    fn pause(&mut self, ns: u64) {
        self.card.pause(ns);
    }

    fn elapsed_ns(&mut self) -> u64 {
        self.card.elapsed_ns()
    }
}

fn probed(profile: &Profile, seed: u64, jitter_us: u64) -> Findings {
    let board = Board::named("linux-reader").unwrap();
    let card = SimulatedTarget::new(profile, &board, seed).unwrap();
    let mut target = Noisy {
        card,
        jitter_ns: jitter_us * 1000,
        outlier_ns: jitter_us * 50_000,
        random: seed,
    };
    probe(&mut target, Limits::MAX, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

/// Values of a profile that the probe looks for: page, unit, open units, log, FAT zone.
fn truth(profile: &Profile) -> [u64; 5] {
    let (flash, controller) = (&profile.flash, profile.controller);
    let page = u64::from(flash.page_bytes) * u64::from(flash.planes);
    let unit = page * u64::from(flash.pages_per_block);
    // One block of the log is being freed.
    let log_blocks = u64::from(profile.log_blocks() - 1);
    let rewrites = log_blocks * u64::from(profile.log_pages_per_block()) * page;
    [
        page,
        unit,
        controller.open_units.into(),
        rewrites / unit * unit,
        u64::from(controller.fast_zone_units) * unit,
    ]
}

fn answers(findings: &Findings) -> [&Answer<u64>; 5] {
    [
        &findings.page_bytes,
        &findings.unit_bytes,
        &findings.open_units,
        &findings.log_bytes,
        &findings.fat_zone_bytes,
    ]
}

/// Number of cards of which page, unit and open units are right, and number of wrong answers.
#[derive(Default)]
struct Score {
    right: usize,
    wrong: usize,
    table: String,
}

impl Score {
    fn add(&mut self, name: &str, profile: &Profile, findings: &Findings) {
        let truth = truth(profile);
        let found = answers(findings).map(Answer::value);
        let pairs = || found.iter().zip(truth);
        self.right += usize::from(pairs().take(3).all(|(found, truth)| *found == Some(truth)));
        self.wrong += pairs()
            .filter(|(found, truth)| found.is_some_and(|found| found != *truth))
            .count();
        let idle = findings.collects_while_idle.value();
        let collects = profile.controller.idle_free_blocks > 0;
        self.wrong += usize::from(idle.is_some_and(|idle| idle != collects));
        let _ = writeln!(self.table, "{name}: truth {truth:?}");
        self.table.push_str(&findings.text(name));
    }
}

#[test]
fn ten_of_the_cards_are_recognised_and_no_answer_is_wrong() {
    let mut score = Score::default();
    for (name, _) in CARDS {
        let profile = Profile::named(name).unwrap();
        score.add(name, &profile, &probed(&profile, 1, 0));
    }
    assert_eq!(score.wrong, 0, "{}", score.table);
    assert!(score.right >= 10, "{}\n{}", score.right, score.table);
}

/// The flash model of the fixtures differs: every page of a card holds data.
#[test]
fn seven_of_the_fixtures_are_recognised_and_no_answer_is_wrong() {
    let mut score = Score::default();
    for (name, _) in FIXTURES {
        let profile = Profile::named(name).unwrap();
        score.add(name, &profile, &probed(&profile, 1, 0));
    }
    assert_eq!(score.wrong, 0, "{}", score.table);
    assert!(score.right >= 7, "{}\n{}", score.right, score.table);
}

/// Each of the 14 cards has another history for each seed.
#[test]
fn used_cards_get_no_wrong_answer() {
    let mut score = Score::default();
    for (seed, (name, _)) in (2..).zip(CARDS) {
        let members = Profile::named(name).unwrap().members(name).unwrap();
        let profile = &members[seed as usize % members.len()];
        score.add(name, profile, &probed(profile, seed, 0));
    }
    assert_eq!(score.wrong, 0, "{}", score.table);
    println!("{} right\n{}", score.right, score.table);
}

/// With little noise, most cards are still recognised; with much, answers are missing but not wrong.
#[test]
fn noise_of_the_host_makes_no_answer_wrong() {
    for (jitter_us, right_min) in [(50, 8), (300, 0)] {
        let mut score = Score::default();
        for (seed, (name, _)) in (100..).zip(CARDS) {
            let profile = Profile::named(name).unwrap();
            score.add(name, &profile, &probed(&profile, seed, jitter_us));
        }
        assert_eq!(score.wrong, 0, "{}", score.table);
        assert!(score.right >= right_min, "{}\n{}", score.right, score.table);
    }
}

/// Returns `class10-16g` with a small capacity and a change.
fn changed(change: impl Fn(&mut Profile)) -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 256 << 20;
    change(&mut profile);
    profile
}

#[test]
fn a_card_that_collects_garbage_while_idle_is_recognised() {
    let profile = changed(|profile| profile.controller.idle_free_blocks = 4);
    let findings = probed(&profile, 1, 0);
    assert_eq!(
        findings.collects_while_idle.value(),
        Some(true),
        "{}",
        findings.text("idle")
    );
}

/// Sizes that are no powers of two, cards without streams in place, and tiny cards have answers missing, but none wrong.
#[test]
fn cards_that_the_experiments_do_not_expect_get_no_wrong_answer() {
    let mut score = Score::default();
    let cards = [
        changed(|profile| {
            profile.flash.pages_per_block = 96;
            profile.capacity_bytes = 256 * 96 * 4096;
        }),
        changed(|profile| profile.controller.open_units = 0),
        changed(|profile| profile.capacity_bytes = 32 << 20),
        changed(|profile| profile.controller.open_units = 60),
        changed(|profile| {
            profile.controller.log_blocks = 2;
            profile.controller.fast_zone_units = 3;
        }),
    ];
    for profile in cards {
        score.add("changed", &profile, &probed(&profile, 1, 0));
    }
    println!("{}", score.table);
    assert_eq!(score.wrong, 0, "{}", score.table);
}

#[test]
fn the_probe_ends_at_its_limits_and_when_it_is_stopped() {
    let profile = Profile::named("class10-16g").unwrap();
    let board = Board::named("linux-reader").unwrap();
    let limits = Limits {
        bytes: 50_000_000,
        ns: 600_000_000_000,
    };
    let mut target = SimulatedTarget::new(&profile, &board, 1).unwrap();
    let findings = probe(&mut target, limits, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(findings.written_bytes <= limits.bytes);
    assert_eq!(findings.unit_bytes.value(), Some(262_144));
    let text = findings.text("card");
    assert!(
        text.contains("the limit of 50 MB written was reached"),
        "{text}"
    );

    let mut calls = 0;
    let stopped = probe(&mut target, limits, &mut |_, _| {
        calls += 1;
        match calls {
            1000 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!((stopped, calls), (Err(ProbeError::Stopped), 1000));
}
