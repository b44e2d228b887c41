//! One case, determined by its seed: a scene (a card in a device), and power cuts, faults or an exchange of the card.
//! Afterwards the card is judged.

use crate::chain::Chain;
use crate::changes::Step;
use crate::outcome::Outcome;
use crate::scene::{NO_CUTS, Scene, pick, rerun};
use crate::session::{End, Exchange, Session, Setup};
use cardiograph_sim_card::Card;
use cardiograph_sim_card::wire::{FaultMix, FaultSchedule, InterruptedCard};
use cardiograph_sim_world::{Clock, Seed};
use std::sync::Arc;

/// Number of cases per scene: consecutive seeds within a scene differ only in the power cuts.
pub const CASES_PER_SCENE: u64 = 20;
/// One in this many cases also runs fsck.fat.
const FSCK_EVERY: u64 = 100;
/// Index of the case of a scene that injects faults into the card of a device that keeps its power.
const FAULTS: u64 = CASES_PER_SCENE - 2;
/// Index of the case of a scene that exchanges the card.
const EXCHANGE: u64 = CASES_PER_SCENE - 1;

impl Scene {
    /// Injects faults into the card while a device with its own power supply records, lets another device
    /// record, and judges the card. Returns the first session.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn run_with_faults(&self, faults: &FaultSchedule) -> Result<Session, String> {
        let clock = Clock::default();
        let setup = Setup {
            faults: faults.clone(),
            stops_without_power: false,
            ..self.setup.clone()
        };
        let (mut card, session) = setup.run(self.card(), &clock);
        let mut sessions = [&self.earlier[..], std::slice::from_ref(&session)].concat();
        // No second device records on a full card.
        let is_over = matches!(session.end, End::Done(_)) && !session.lost_card();
        if !(session.is_full() && is_over) {
            let after = rerun(&self.setup, 0.03, &mut self.seed.stream("after"));
            let last;
            (card, last) = after.run(card, &clock);
            sessions.push(last);
        }
        let with_scene = |why| format!("{why}\n  {}", self.description());
        self.history(&sessions, &NO_CUTS)
            .judge(&mut card)
            .map_err(with_scene)?;
        Ok(session)
    }

    /// Exchanges the card for one with its original contents while a device with its own power supply
    /// records; then lets devices record on both cards, and judges both. Returns the first session.
    ///
    /// # Errors
    /// The first broken promise, or that the recording ended before the exchange.
    pub fn run_with_exchange(&self, after_ns: u64, out_ns: u64) -> Result<Session, String> {
        let clock = Clock::default();
        let setup = Setup {
            exchange: Some(Exchange {
                after_ns,
                out_ns,
                profile: self.profile.clone(),
                image: self.original.clone(),
            }),
            stops_without_power: false,
            ..self.setup.clone()
        };
        let (second, mut session) = setup.run(self.card(), &clock);
        let Some((_, image)) = &session.taken_out else {
            return Err("the card was not exchanged".into());
        };
        let mut first = Card::new(&self.profile, self.seed);
        image.store(&mut first);
        let with_scene = |why| format!("{why}\n  {}", self.description());
        let history = self.history(&[], &NO_CUTS);
        history
            .judge_before(&first, &self.original, &self.listing)
            .map_err(with_scene)?;
        let mut random = self.seed.stream("after");
        let (mut first, one) = rerun(&self.setup, 0.03, &mut random).run(first, &Clock::default());
        let (mut second, mut other) = rerun(&self.setup, 0.03, &mut random).run(second, &clock);
        session.card = 0;
        other.card = 1;
        let sessions = [&self.earlier[..], &[session.clone(), one, other]].concat();
        let history = self.history(&sessions, &NO_CUTS);
        let judged = history.judge_cards(&mut [&mut first, &mut second]);
        judged.map_err(with_scene)?;
        Ok(session)
    }

    fn fault_case(&self, reference: &Session, seed: u64) -> Result<Outcome, String> {
        // Do not rename: recorded seeds depend on this name.
        let seed = Seed::new(seed).child("struck");
        let random = &mut seed.stream("mix");
        let mut some = |most: u64| random.below(most + 1) as u32;
        let mix = FaultMix {
            power_cuts: some(1) * some(1),
            pulls: some(2),
            out_ns_max: 300_000_000,
            lost_commands: some(4),
            flips_to_card: some(8),
            flips_to_host: some(8),
            long_busies: some(2),
            extra_ns_max: 600_000_000,
        };
        let bytes = reference.first_file_byte().min(reference.bytes - 1)..reference.bytes;
        let faults = FaultSchedule::random(seed, &mix, bytes);
        let session = self.run_with_faults(&faults);
        let session = session.map_err(|why| format!("{why}\n  {faults:?}"))?;
        Ok(Outcome {
            with_faults: u64::from(session.effects.total() > 0),
            ..Outcome::default()
        })
    }

    fn exchange_case(&self, reference: &Session, seed: u64) -> Result<Outcome, String> {
        let Some(started_ns) = reference.started_ns else {
            return Ok(Outcome::default());
        };
        let random = &mut Seed::new(seed).stream("exchange");
        let after_ns = random.below(reference.ended_ns.saturating_sub(started_ns).max(1));
        match self.run_with_exchange(after_ns, random.below(100_000_000)) {
            Ok(_) => Ok(Outcome {
                exchanged: 1,
                ..Outcome::default()
            }),
            // The recording ended before the exchange.
            Err(why) if why.starts_with("the card was not exchanged") => Ok(Outcome::default()),
            Err(why) => Err(format!("{why}\n  exchanged after {after_ns} ns")),
        }
    }

    /// Cuts the power at a byte of the recording, and again at bytes of later sessions; then lets a device
    /// record until a normal end, and judges the card.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn cut(
        &self,
        reference: Session,
        cuts: &[u64],
        runs_fsck: bool,
    ) -> Result<Outcome, String> {
        let copies = self.copies(cuts.first().copied());
        let copied = copies
            .first()
            .ok_or("the cut is after the last byte of the recording")?;
        self.case(&Arc::new(reference), copied, &cuts[1..], runs_fsck)
    }

    fn case(
        &self,
        reference: &Arc<Session>,
        copied: &InterruptedCard,
        more: &[u64],
        runs_fsck: bool,
    ) -> Result<Outcome, String> {
        let mut chain = Chain::first(self, reference, copied)?;
        for byte in more {
            chain.cut_again(*byte)?;
        }
        chain.end(runs_fsck)
    }
}

/// Returns the bytes at which a case cuts the power: the first anywhere, at the beginning or end of a busy
/// phase, near an event, or during a change of files; in some cases, further ones that interrupt the recovery
/// too.
pub fn cuts_of(reference: &Session, seed: u64) -> Vec<u64> {
    let random = &mut Seed::new(seed).stream("cuts");
    let kind = match reference.events.is_empty() || reference.busy_edges.is_empty() {
        // The device refused the card, so there are no events or busy phases to cut near.
        true => 0,
        false => random.below(3),
    };
    let first = match kind {
        0 => random.below(reference.bytes),
        1 if !reference.busy_edges.is_empty() => pick(random, &reference.busy_edges),
        _ if reference.events.is_empty() => random.below(reference.bytes),
        _ => {
            let near = pick(random, &reference.events).byte;
            let byte = (near + random.below(20_000)).saturating_sub(10_000);
            byte.min(reference.bytes - 1)
        }
    };
    let mut cuts = vec![cut_of_change(reference, seed).unwrap_or(first)];
    while cuts.len() < 4 && random.below(3) == 0 {
        let most = pick(random, &[30_000, 100_000, 300_000]);
        cuts.push(random.below(most));
    }
    cuts
}

/// Returns a byte during a change of files, in half of the cases with changes.
fn cut_of_change(reference: &Session, seed: u64) -> Option<u64> {
    let random = &mut Seed::new(seed).stream("cuts of changes");
    let bytes = |step: &Step| {
        let done = step.done.map_or(reference.bytes, |(done, _)| done);
        step.begun.map(|begun| begun..done.min(reference.bytes))
    };
    let changes = reference.steps.iter().filter_map(bytes);
    let changes: Vec<_> = changes.filter(|bytes| !bytes.is_empty()).collect();
    if changes.is_empty() || random.below(2) == 0 {
        return None;
    }
    let during = &changes[random.below(changes.len() as u64) as usize];
    Some(during.start + random.below(during.end - during.start))
}

/// Runs cases of a scene, each with its own seed.
///
/// # Errors
/// The first broken promise in the run without a power cut; such an error applies to all cases of the scene.
pub fn run_scene(
    number: u64,
    seeds: impl Iterator<Item = u64>,
    mut each: impl FnMut(u64, Result<Outcome, String>),
) -> Result<(), String> {
    let scene = Scene::random(number)?;
    let reference = scene
        .reference_run()
        .map_err(|why| format!("without a cut: {why}\n  {}", scene.description()))?;
    let with_scene = |why: String| {
        format!(
            "{why}
  {}",
            scene.description()
        )
    };
    let mut cases = Vec::new();
    for seed in seeds {
        match seed % CASES_PER_SCENE {
            FAULTS => each(seed, scene.fault_case(&reference, seed).map_err(with_scene)),
            EXCHANGE => each(
                seed,
                scene.exchange_case(&reference, seed).map_err(with_scene),
            ),
            _ => cases.push((seed, cuts_of(&reference, seed))),
        }
    }
    cases.sort_by_key(|(_, cuts)| cuts[0]);
    let reference = Arc::new(reference);
    let copies = scene.copies(cases.iter().map(|(_, cuts)| cuts[0]));
    for ((seed, cuts), copied) in cases.iter().zip(&copies) {
        let result = scene.case(&reference, copied, &cuts[1..], seed % FSCK_EVERY == 0);
        each(
            *seed,
            result.map_err(|why| with_scene(format!("{why}\n  cut at {cuts:?}"))),
        );
    }
    Ok(())
}
