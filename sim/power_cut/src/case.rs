//! One case, determined by its seed: a card, a device and a power cut, after which the card is judged.

use crate::changes::{FileChange, Step, all_kinds, random_changes, repeated};
use crate::disk::{DirectBlocks, Image};
use crate::fat;
use crate::foreign::{Files, Volume};
use crate::judge::{Found, History, fsck, is_full};
use crate::plan::{Plan, SMALL};
use crate::session::{End, Exchange, Request, Session, Setup};
use cardiograph_recorder::{
    Config, DosTime, Event, FatVolume, Format, StartError, WhenFull, Window, recover,
};
use cardiograph_sim_card::wire::{Fault, FaultMix, FaultSchedule, InterruptedCard};
use cardiograph_sim_card::{Card, Profile};
use cardiograph_sim_world::{Clock, Random, Seed};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Number of cases per scene: consecutive seeds within a scene differ only in the power cuts.
pub const CASES_PER_SCENE: u64 = 20;
/// One in this many scenes has a nearly full volume.
const NEARLY_FULL_EVERY: u64 = 4;
/// One in this many cases also runs fsck.fat.
const FSCK_EVERY: u64 = 100;
/// Index of the case of a scene that injects faults into the card of a device that keeps its power.
const FAULTS: u64 = CASES_PER_SCENE - 2;
/// Index of the case of a scene that exchanges the card.
const EXCHANGE: u64 = CASES_PER_SCENE - 1;

/// Reference runs for a history that contains no power cut: none.
static NO_CUTS: BTreeMap<usize, Arc<Session>> = BTreeMap::new();

const PROFILES: [&str; 8] = [
    "class10-16g",
    "class4",
    "third",
    "sandisk-1g",
    "sandisk-edge-8g",
    "kingston-2g",
    "apacer-1g-slc",
    "panasonic-1g-slc",
];

/// A card with a file system and foreign files, and a device around it.
#[derive(Clone)]
pub struct Scene {
    volume: Volume,
    profile: Profile,
    image: Image,
    foreign: Files,
    /// Directory listing of the foreign files, and the original contents of the card.
    listing: fat::Listing,
    original: Image,
    /// Configuration of the device.
    pub setup: Setup,
    /// Sessions of earlier recordings on the card.
    earlier: Vec<Session>,
    seed: Seed,
}

/// Result of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Samples and files found on the card.
    pub found: Found,
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of files that a device recovered.
    pub recovered: u64,
    /// Number of times that fsck.fat was run.
    pub fsck_runs: u64,
    /// Number of cases in which injected faults took effect while the device kept its power.
    pub with_faults: u64,
    /// Number of cases in which the card was exchanged for another.
    pub exchanged: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.found += other.found;
        self.cuts += other.cuts;
        self.recovered += other.recovered;
        self.fsck_runs += other.fsck_runs;
        self.with_faults += other.with_faults;
        self.exchanged += other.exchanged;
    }
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

impl Scene {
    /// Creates the scene with the given number.
    ///
    /// # Errors
    /// If a recording without any fault fails already.
    pub fn random(number: u64) -> Result<Scene, String> {
        let seed = Seed::new(number).child("power-cut");
        let random = &mut seed.stream("scene");
        let volumes = [(64, 512), (64, 2048), (64, 4096), (64, 8192), (128, 1024)];
        let (card_mib, cluster_bytes) = pick(random, &volumes);
        let start = pick(random, &[0, 63, 2048]);
        let volume = match number % NEARLY_FULL_EVERY {
            0 => Volume {
                card_bytes: 64 << 20,
                bytes: 3 << 20,
                start,
                cluster_bytes: 512,
                free_bytes: Some(pick(random, &[80_000, 150_000, 300_000])),
            },
            _ => Volume {
                card_bytes: card_mib << 20,
                bytes: card_mib << 20,
                start,
                cluster_bytes,
                free_bytes: None,
            },
        };
        let mut profile = Profile::named(pick(random, &PROFILES)).map_err(|why| why.to_string())?;
        profile.capacity_bytes = volume.card_bytes;
        let (image, foreign) = volume.make(seed).map_err(|why| why.to_string())?;
        let setup = random_setup(seed, &volume, random);
        let mut scene = Scene {
            volume,
            profile,
            listing: fat::check(&image, volume.start)?,
            original: image.clone(),
            image,
            foreign,
            setup,
            earlier: Vec::new(),
            seed,
        };
        if random.below(3) == 0 {
            scene.record_before(random)?;
        }
        Ok(scene)
    }

    /// Creates a device with a card of 64 MiB that holds foreign files; `setup` receives the seed.
    ///
    /// # Errors
    /// If the volume cannot be formatted.
    pub fn new(
        bytes: u64,
        cluster_bytes: u32,
        seed: Seed,
        setup: impl FnOnce(Seed) -> Setup,
    ) -> Result<Scene, String> {
        let volume = Volume {
            card_bytes: 64 << 20,
            start: 63,
            bytes,
            cluster_bytes,
            free_bytes: None,
        };
        let mut profile = Profile::named("class10-16g").map_err(|why| why.to_string())?;
        profile.capacity_bytes = volume.card_bytes;
        let (image, foreign) = volume.make(seed).map_err(|why| why.to_string())?;
        Ok(Scene {
            volume,
            profile,
            listing: fat::check(&image, volume.start)?,
            original: image.clone(),
            image,
            foreign,
            setup: setup(seed),
            earlier: Vec::new(),
            seed,
        })
    }

    /// Creates a short recording in two streams, with a file rotation.
    ///
    /// # Errors
    /// If the recording cannot be set up.
    pub fn short() -> Result<Scene, String> {
        let window = Window::Us(30_000);
        let formats = [Format::Csv(&[SMALL]), Format::Binary(&[SMALL])];
        let plans = formats.into_iter().enumerate();
        let plans = plans.map(|(at, format)| Plan::steady(at, format, window, 1000, 150));
        let setup = |seed| Setup {
            clock_hz: 10_000_000,
            config: Config {
                file_bytes: 64 << 10,
                ..Config::default()
            },
            plans: plans.collect(),
            requests: vec![(70_000_000, Request::Rotate)],
            changes: Vec::new(),
            faults: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        };
        Scene::new(64 << 20, 2048, Seed::new(0).child("every write"), setup)
    }

    /// Creates a short recording in two binary streams that share their files, on FAT32.
    ///
    /// # Errors
    /// If the recording cannot be set up.
    pub fn shared() -> Result<Scene, String> {
        let window = Window::Us(20_000);
        let plans = (0..2).map(|at| {
            let mut plan = Plan::steady(at, Format::Binary(&[SMALL]), window, 1500, 150);
            plan.config.prefix = *b"BIN";
            plan
        });
        let setup = |seed| Setup {
            clock_hz: 20_000_000,
            config: Config {
                file_bytes: 64 << 10,
                when_full: WhenFull::RemoveOldest,
                ..Config::default()
            },
            plans: plans.collect(),
            requests: vec![(40_000_000, Request::Flush)],
            changes: Vec::new(),
            faults: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        };
        Scene::new(64 << 20, 512, Seed::new(1).child("every write"), setup)
    }

    /// Creates a short recording during which another task changes files in every way, on FAT32 or FAT16.
    ///
    /// # Errors
    /// If it cannot be set up.
    pub fn changing(is_32: bool) -> Result<Scene, String> {
        let format = Format::Csv(&[SMALL]);
        let plan = Plan::steady(0, format, Window::Us(30_000), 500, 400);
        let setup = |seed| Setup {
            clock_hz: 20_000_000,
            config: Config {
                file_bytes: 64 << 10,
                ..Config::default()
            },
            plans: vec![plan],
            requests: vec![(70_000_000, Request::Rotate)],
            changes: all_kinds(),
            faults: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        };
        let cluster_bytes = if is_32 { 512 } else { 2048 };
        Scene::new(
            64 << 20,
            cluster_bytes,
            Seed::new(3).child("changes"),
            setup,
        )
    }

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

    /// Returns the card in its initial state.
    pub fn card(&self) -> Card {
        let mut card = Card::new(&self.profile, self.seed);
        self.image.store(&mut card);
        card
    }

    fn record_before(&mut self, random: &mut Random) -> Result<(), String> {
        let setup = rerun(&self.setup, 0.1, random);
        let (mut card, session) = setup.run(self.card(), &Clock::default());
        self.earlier.push(session);
        self.history(&self.earlier, &NO_CUTS).judge(&mut card)?;
        self.image = Image::of(&card);
        Ok(())
    }

    fn history<'a>(
        &'a self,
        sessions: &'a [Session],
        reference: &'a BTreeMap<usize, Arc<Session>>,
    ) -> History<'a> {
        History {
            volume: self.volume,
            foreign: &self.foreign,
            sessions,
            reference,
        }
    }

    /// Runs the device without a power cut.
    ///
    /// # Errors
    /// The first broken promise on the card after the run.
    pub fn reference_run(&self) -> Result<Session, String> {
        let (mut card, session) = self.setup.run(self.card(), &Clock::default());
        let sessions = [&self.earlier[..], std::slice::from_ref(&session)].concat();
        self.history(&sessions, &NO_CUTS).judge(&mut card)?;
        Ok(session)
    }

    /// Returns a copy of the card for each of the given bytes, in order, in the state in which a power cut
    /// before this byte leaves the card.
    pub fn copies(&self, bytes: impl IntoIterator<Item = u64>) -> Vec<InterruptedCard> {
        let mut setup = self.setup.clone();
        let faults = bytes.into_iter().map(|byte| (byte, Fault::Copy));
        setup.faults = FaultSchedule::default();
        setup.faults.extend(faults);
        setup.run_with_copies(self.card(), &Clock::default()).2
    }

    /// Returns one copy of the card for each distinct content that a power cut can leave.
    pub fn copies_each(&self) -> Vec<InterruptedCard> {
        let mut setup = self.setup.clone();
        setup.copies_each = true;
        setup.run_with_copies(self.card(), &Clock::default()).2
    }

    /// Judges the card after a power cut, before and after a recovery, without another recording.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn first_cut<'a>(
        &'a self,
        reference: &Arc<Session>,
        copied: &InterruptedCard,
    ) -> Result<Chain<'a>, String> {
        let mut chain = Chain {
            scene: self,
            sessions: self.earlier.clone(),
            reference: BTreeMap::new(),
            card: copied.card.clone(),
            clock: Clock::default(),
            random: self.seed.stream("after the cut"),
            cuts: 0,
        };
        chain.cut(reference, copied)?;
        Ok(chain)
    }

    /// Returns the scene with a device that loses its power together with its card.
    #[must_use]
    pub fn with_power_of_card(&self) -> Scene {
        let mut scene = self.clone();
        scene.setup.stops_without_power = true;
        scene
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
        let mut chain = self.first_cut(reference, copied)?;
        for byte in more {
            chain.cut_again(*byte)?;
        }
        chain.end(runs_fsck)
    }

    /// Describes the scene in a few words.
    pub fn description(&self) -> String {
        let streams = self.setup.plans.iter().map(|plan| {
            format!(
                "\n    {} {:?}, ring {}, {} Hz in bursts of {}, {} samples",
                plan.kind(),
                plan.config.window,
                plan.ring_bytes,
                plan.rate_hz,
                plan.burst,
                plan.count
            )
        });
        let streams: String = streams.collect();
        format!(
            "{}, {:?}, {} Hz, {:?}, {} earlier recordings, {:?}, changes {:?}{streams}",
            self.profile.about,
            self.volume,
            self.setup.clock_hz,
            self.setup.config,
            self.earlier.len(),
            self.setup.requests,
            self.setup.changes
        )
    }
}

/// A card with a sequence of power cuts.
#[derive(Clone)]
pub struct Chain<'a> {
    scene: &'a Scene,
    sessions: Vec<Session>,
    /// Reference runs by session number: for each interrupted session, the same session without the power
    /// cut.
    reference: BTreeMap<usize, Arc<Session>>,
    card: Card,
    clock: Clock,
    random: Random,
    cuts: u64,
}

impl Chain<'_> {
    /// Adds a power cut to the history, and judges the resulting card.
    fn cut(&mut self, reference: &Arc<Session>, copied: &InterruptedCard) -> Result<(), String> {
        self.card = copied.card.clone();
        self.clock = Clock::default();
        self.clock.advance_to_ns(copied.at_ns);
        self.reference
            .insert(self.sessions.len(), Arc::clone(reference));
        self.sessions
            .push(reference.until(copied.byte, copied.at_ns));
        self.cuts += 1;
        let scene = self.scene;
        let history = scene.history(&self.sessions, &self.reference);
        history.judge_before(&self.card, &scene.original, &scene.listing)?;
        self.judge_recovered()
    }

    /// Judges the card after a recovery alone, before a later recording can remove files.
    fn judge_recovered(&self) -> Result<(), String> {
        let mut card = self.card.clone();
        let mut volume = FatVolume::new(|| DosTime::NO_CLOCK, 7);
        let mut events = Vec::new();
        {
            let mut blocks = DirectBlocks(&mut card);
            let recovering = pin!(recover(&mut volume, &mut blocks, |_, event| events.push(event)));
            match recovering.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => (),
                Poll::Ready(Err(StartError::Volume(why))) if self.may_refuse(&why.to_string()) => {
                    return Ok(());
                }
                Poll::Ready(Err(why)) => return Err(format!("recovery alone: {why}")),
                Poll::Pending => {
                    return Err(
                        "the recovery waits although every block operation is immediate".into(),
                    );
                }
            }
        }
        let sessions = [&self.sessions[..], &[Session::of_recovery(events)]].concat();
        let history = self.scene.history(&sessions, &self.reference);
        let judged = history.judge_recovered(&mut card);
        judged
            .map(|_| ())
            .map_err(|why| format!("recovery alone: {why}"))
    }

    /// Returns true if `why` is a valid reason for a device to refuse the card.
    fn may_refuse(&self, why: &str) -> bool {
        let history = self.scene.history(&self.sessions, &self.reference);
        history.may_be_full() && is_full(why)
    }

    fn next_setup(&mut self) -> Setup {
        rerun(&self.scene.setup, 0.03, &mut self.random)
    }

    /// Lets a device record until its power is cut at a byte, or until the recording ends earlier.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn cut_again(&mut self, byte: u64) -> Result<(), String> {
        let mut setup = self.next_setup();
        setup.faults.add(byte, Fault::Copy);
        let (card, session, copies) = setup.run_with_copies(self.card.clone(), &self.clock);
        match copies.first() {
            Some(copied) => self.cut(&Arc::new(session), copied),
            None => {
                self.card = card;
                self.sessions.push(session);
                Ok(())
            }
        }
    }

    /// Cuts the next recording at every point that leaves different contents on the card, and judges each
    /// result. Passes to `each` the chain with the additional cut, or the first broken promise.
    pub fn cut_each(&self, mut each: impl FnMut(Result<Self, String>)) {
        let mut before = self.clone();
        let mut setup = before.next_setup();
        setup.copies_each = true;
        let clock = Clock::default();
        clock.advance_to_ns(self.clock.now_ns());
        let (_, session, copies) = setup.run_with_copies(self.card.clone(), &clock);
        let session = Arc::new(session);
        for copied in &copies {
            let mut chain = before.clone();
            each(chain.cut(&session, copied).map(|()| chain));
        }
    }

    /// Lets a device record to its end, and judges the card.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn end(mut self, runs_fsck: bool) -> Result<Outcome, String> {
        let setup = self.next_setup();
        let (mut card, session) = setup.run(self.card, &self.clock);
        self.sessions.push(session);
        let events = self.sessions.iter().flat_map(|session| &session.events);
        let is_recovered = |event| matches!(event, Event::Recovered { .. });
        let recovered = events.filter(|timed| is_recovered(timed.event)).count() as u64;
        let scene = self.scene;
        let mut outcome = Outcome {
            cuts: self.cuts,
            recovered,
            ..Outcome::default()
        };
        let judged = scene
            .history(&self.sessions, &self.reference)
            .judge(&mut card);
        if judged.is_err() || runs_fsck {
            let name = format!("{:?}", std::thread::current().id());
            let fsck_result = fsck(&card, &scene.volume, &name);
            outcome.fsck_runs = 1;
            outcome.found = match (judged, fsck_result) {
                (Ok(found), Ok(())) => found,
                (Err(why), Ok(())) => return Err(format!("{why} (fsck.fat reports no error)")),
                (Ok(_), Err(output)) => return Err(format!("fsck.fat: {output}")),
                (Err(why), Err(output)) => return Err(format!("{why}\nfsck.fat: {output}")),
            };
            return Ok(outcome);
        }
        outcome.found = judged?;
        Ok(outcome)
    }
}

fn random_setup(seed: Seed, volume: &Volume, random: &mut Random) -> Setup {
    let streams = pick(random, &[1, 1, 2, 3, 4]);
    let seconds = match volume.free_bytes {
        None => pick(random, &[0.1, 0.2, 0.3, 0.5, 1.0]),
        Some(_) => pick(random, &[0.5, 1.0, 2.0]),
    };
    let plans = (0..streams).map(|at| Plan::random(at, seconds, random));
    let mut plans: Vec<Plan> = plans.collect();
    let of_sessions = &mut seed.stream("sessions");
    if of_sessions.below(3) == 0 {
        plans = plans
            .into_iter()
            .map(|plan| plan.with_sessions(of_sessions))
            .collect();
    }
    let config = Config {
        file_bytes: pick(random, &[64 << 10, 64 << 10, 100_000, 256 << 10, 1 << 20]),
        rotate_us: pick(random, &[None, None, None, Some(50_000), Some(400_000)]),
        when_full: pick(random, &[WhenFull::Wait, WhenFull::RemoveOldest]),
        ..Config::default()
    };
    let blocks = volume.card_bytes / 512;
    let clock_hz = pick(random, &[4_000_000, 10_000_000, 20_000_000, 25_000_000]);
    let requests = (0..pick(random, &[0, 0, 1, 3, 8])).map(|_| {
        let after_ns = random.below(200_000_000);
        let request = match random.below(4) {
            0 => Request::Rotate,
            1 => Request::Flush,
            _ => Request::Read(
                random.below(blocks - 40) as u32,
                1 + random.below(40) as usize,
            ),
        };
        (after_ns, request)
    });
    Setup {
        clock_hz,
        requests: requests.collect(),
        changes: changes_of(seed, volume),
        config,
        plans,
        faults: FaultSchedule::default(),
        exchange: None,
        write_protected: false,
        stops_without_power: true,
        copies_each: false,
        seed,
    }
}

/// Returns the changes of files in a scene: in every second one, another task changes files.
fn changes_of(seed: Seed, volume: &Volume) -> Vec<(u64, FileChange)> {
    let random = &mut seed.stream("changes");
    let most_bytes = volume.free_bytes.unwrap_or(100_000);
    match random.below(2) {
        0 => Vec::new(),
        _ => random_changes(random, most_bytes),
    }
}

/// Returns the setup of the same device for a short further recording, with other samples.
fn rerun(setup: &Setup, seconds: f64, random: &mut Random) -> Setup {
    let plans = setup.plans.iter().map(|plan| plan.rerun(seconds, random));
    let plans: Vec<Plan> = plans.collect();
    // Looks ahead, so that scenes without changes stay the same.
    let serial = random.clone().next_u64();
    Setup {
        plans,
        requests: Vec::new(),
        changes: repeated(&setup.changes, serial),
        exchange: None,
        faults: FaultSchedule::default(),
        ..setup.clone()
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
