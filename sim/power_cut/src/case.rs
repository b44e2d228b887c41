//! One case from its seed: a card, a device, a power cut, and who judges what is left.

use crate::disk::{Direct, Image};
use crate::fat;
use crate::judge::{Found, History, fsck, is_full};
use crate::others::{Files, Volume};
use crate::plan::{Plan, SMALL};
use crate::session::{Ask, End, Exchange, Session, Setup};
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

/// Cases of one set-up: seeds that follow each other differ in the cuts only.
pub const CASES_OF_SETUP: u64 = 20;
/// Every so many scenes the volume is nearly full.
const NEARLY_FULL_EVERY: u64 = 4;
/// Every so many cases fsck.fat is asked too.
const FSCK_EVERY: u64 = 100;
/// Of the cases of a set-up the one in which the card is struck and the device keeps its power.
const STRUCK: u64 = CASES_OF_SETUP - 2;
/// The one in which the card is exchanged.
const EXCHANGED: u64 = CASES_OF_SETUP - 1;

/// No power was cut.
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

/// A card with a file system and files of others, and a device around it.
#[derive(Clone)]
pub struct Scene {
    volume: Volume,
    profile: Profile,
    image: Image,
    others: Files,
    /// The same as a directory lists them, and what the card held then.
    listing: fat::Listing,
    original: Image,
    /// The device.
    pub setup: Setup,
    /// What was recorded on the card before.
    earlier: Vec<Session>,
    seed: Seed,
}

/// How a case went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was found.
    pub found: Found,
    /// How often power was cut.
    pub cuts: u64,
    /// How many files a device recovered.
    pub recovered: u64,
    /// Whether fsck.fat was asked.
    pub asked_fsck: u64,
    /// Devices whose card was struck, and that went on.
    pub struck: u64,
    /// Devices whose card was exchanged for another.
    pub exchanged: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.found += other.found;
        self.cuts += other.cuts;
        self.recovered += other.recovered;
        self.asked_fsck += other.asked_fsck;
        self.struck += other.struck;
        self.exchanged += other.exchanged;
    }
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

impl Scene {
    /// The scene of a number.
    ///
    /// # Errors
    /// What is wrong already: a recording without any fault.
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
        let (image, others) = volume.make(seed).map_err(|why| why.to_string())?;
        let setup = random_setup(seed, &volume, random);
        let mut scene = Scene {
            volume,
            profile,
            listing: fat::check(&image, volume.start)?,
            original: image.clone(),
            image,
            others,
            setup,
            earlier: Vec::new(),
            seed,
        };
        if random.below(3) == 0 {
            scene.record_before(random)?;
        }
        Ok(scene)
    }

    /// A device with a card of 64 MiB that has files of others on it; `setup` is told the seed.
    ///
    /// # Errors
    /// That there can be no such volume.
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
        let (image, others) = volume.make(seed).map_err(|why| why.to_string())?;
        Ok(Scene {
            volume,
            profile,
            listing: fat::check(&image, volume.start)?,
            original: image.clone(),
            image,
            others,
            setup: setup(seed),
            earlier: Vec::new(),
            seed,
        })
    }

    /// A short recording in two streams, with a roll.
    ///
    /// # Errors
    /// That it cannot be set up.
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
            asks: vec![(70_000_000, Ask::Roll)],
            strikes: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        };
        Scene::new(64 << 20, 2048, Seed::new(0).child("every write"), setup)
    }

    /// A short recording in two binary streams that share their files, on FAT32.
    ///
    /// # Errors
    /// That it cannot be set up.
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
            asks: vec![(40_000_000, Ask::Flush)],
            strikes: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        };
        Scene::new(64 << 20, 512, Seed::new(1).child("every write"), setup)
    }

    /// Lets the card be struck while a device records that has power of its own, lets another device
    /// record, and judges. Gives the first session.
    ///
    /// # Errors
    /// What is wrong.
    pub fn struck(&self, strikes: &FaultSchedule) -> Result<Session, String> {
        let clock = Clock::default();
        let setup = Setup {
            strikes: strikes.clone(),
            stops_without_power: false,
            ..self.setup.clone()
        };
        let (mut card, session) = setup.run(self.card(), &clock);
        let mut sessions = [&self.earlier[..], std::slice::from_ref(&session)].concat();
        // A full card is not recorded on again.
        let is_over = matches!(session.end, End::Done(_)) && !session.lost_card();
        if !(session.is_full() && is_over) {
            let after = again(&self.setup, 0.03, &mut self.seed.stream("after"));
            let last;
            (card, last) = after.run(card, &clock);
            sessions.push(last);
        }
        let told = |why| format!("{why}\n  {}", self.about());
        self.history(&sessions, &NO_CUTS)
            .judge(&mut card)
            .map_err(told)?;
        Ok(session)
    }

    /// Lets the card be exchanged for one that holds what it held at first, while a device records that has
    /// power of its own; lets devices record on both, and judges both. Gives the first session.
    ///
    /// # Errors
    /// What is wrong.
    pub fn exchanged(&self, after_ns: u64, out_ns: u64) -> Result<Session, String> {
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
        let told = |why| format!("{why}\n  {}", self.about());
        let history = self.history(&[], &NO_CUTS);
        history
            .judge_before(&first, &self.original, &self.listing)
            .map_err(told)?;
        let mut random = self.seed.stream("after");
        let (mut first, one) = again(&self.setup, 0.03, &mut random).run(first, &Clock::default());
        let (mut second, mut other) = again(&self.setup, 0.03, &mut random).run(second, &clock);
        session.card = 0;
        other.card = 1;
        let sessions = [&self.earlier[..], &[session.clone(), one, other]].concat();
        let history = self.history(&sessions, &NO_CUTS);
        let judged = history.judge_cards(&mut [&mut first, &mut second]);
        judged.map_err(told)?;
        Ok(session)
    }

    fn struck_case(&self, uncut: &Session, seed: u64) -> Result<Outcome, String> {
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
        let places = uncut.first_file_byte().min(uncut.bytes - 1)..uncut.bytes;
        let strikes = FaultSchedule::random(seed, &mix, places);
        let session = self.struck(&strikes);
        let session = session.map_err(|why| format!("{why}\n  {strikes:?}"))?;
        Ok(Outcome {
            struck: u64::from(session.effects.total() > 0),
            ..Outcome::default()
        })
    }

    fn exchanged_case(&self, uncut: &Session, seed: u64) -> Result<Outcome, String> {
        let Some(started_ns) = uncut.started_ns else {
            return Ok(Outcome::default());
        };
        let random = &mut Seed::new(seed).stream("exchange");
        let after_ns = random.below(uncut.ended_ns.saturating_sub(started_ns).max(1));
        match self.exchanged(after_ns, random.below(100_000_000)) {
            Ok(_) => Ok(Outcome {
                exchanged: 1,
                ..Outcome::default()
            }),
            // It was over before.
            Err(why) if why.starts_with("the card was not exchanged") => Ok(Outcome::default()),
            Err(why) => Err(format!("{why}\n  exchanged after {after_ns} ns")),
        }
    }

    /// The card, as it is before.
    pub fn card(&self) -> Card {
        let mut card = Card::new(&self.profile, self.seed);
        self.image.store(&mut card);
        card
    }

    fn record_before(&mut self, random: &mut Random) -> Result<(), String> {
        let setup = again(&self.setup, 0.1, random);
        let (mut card, session) = setup.run(self.card(), &Clock::default());
        self.earlier.push(session);
        self.history(&self.earlier, &NO_CUTS).judge(&mut card)?;
        self.image = Image::of(&card);
        Ok(())
    }

    fn history<'a>(
        &'a self,
        sessions: &'a [Session],
        uncut: &'a BTreeMap<usize, Arc<Session>>,
    ) -> History<'a> {
        History {
            volume: self.volume,
            others: &self.others,
            sessions,
            uncut,
        }
    }

    /// What happens without a cut.
    ///
    /// # Errors
    /// What is wrong with the card afterwards.
    pub fn uncut(&self) -> Result<Session, String> {
        let (mut card, session) = self.setup.run(self.card(), &Clock::default());
        let sessions = [&self.earlier[..], std::slice::from_ref(&session)].concat();
        self.history(&sessions, &NO_CUTS).judge(&mut card)?;
        Ok(session)
    }

    /// The card as power cuts before these bytes leave it, in their order.
    pub fn copies(&self, bytes: impl IntoIterator<Item = u64>) -> Vec<InterruptedCard> {
        let mut setup = self.setup.clone();
        let strikes = bytes.into_iter().map(|byte| (byte, Fault::Copy));
        setup.strikes = FaultSchedule::default();
        setup.strikes.extend(strikes);
        setup.run_with_copies(self.card(), &Clock::default()).2
    }

    /// The card wherever a power cut leaves something else on it.
    pub fn copies_each(&self) -> Vec<InterruptedCard> {
        let mut setup = self.setup.clone();
        setup.copies_each = true;
        setup.run_with_copies(self.card(), &Clock::default()).2
    }

    /// What a power cut leaves, judged before and after recovery, without another recording.
    ///
    /// # Errors
    /// What is wrong.
    pub fn first_cut<'a>(
        &'a self,
        uncut: &Arc<Session>,
        copied: &InterruptedCard,
    ) -> Result<Chain<'a>, String> {
        let mut chain = Chain {
            scene: self,
            sessions: self.earlier.clone(),
            uncut: BTreeMap::new(),
            card: copied.card.clone(),
            clock: Clock::default(),
            random: self.seed.stream("after the cut"),
            cuts: 0,
        };
        chain.cut(uncut, copied)?;
        Ok(chain)
    }

    /// The same device, that loses its power with its card.
    #[must_use]
    pub fn with_power_of_card(&self) -> Scene {
        let mut scene = self.clone();
        scene.setup.stops_without_power = true;
        scene
    }

    /// Cuts the power at a byte, and at bytes of what follows; then lets a device end by itself, and
    /// judges.
    ///
    /// # Errors
    /// What is wrong.
    pub fn cut(&self, uncut: Session, cuts: &[u64], asks_fsck: bool) -> Result<Outcome, String> {
        let copies = self.copies(cuts.first().copied());
        let copied = copies.first().ok_or("the cut comes after the end")?;
        self.case(&Arc::new(uncut), copied, &cuts[1..], asks_fsck)
    }

    fn case(
        &self,
        uncut: &Arc<Session>,
        copied: &InterruptedCard,
        more: &[u64],
        asks_fsck: bool,
    ) -> Result<Outcome, String> {
        let mut chain = self.first_cut(uncut, copied)?;
        for byte in more {
            chain.cut_again(*byte)?;
        }
        chain.end(asks_fsck)
    }

    /// What the scene is made of, in a few words.
    pub fn about(&self) -> String {
        let streams = self.setup.plans.iter().map(|plan| {
            format!(
                "\n    {} {:?}, ring {}, {} Hz by {}, {} samples",
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
            "{}, {:?}, {} Hz, {:?}, {} earlier, {:?}{streams}",
            self.profile.about,
            self.volume,
            self.setup.clock_hz,
            self.setup.config,
            self.earlier.len(),
            self.setup.asks
        )
    }
}

/// A card whose power is cut, again and again.
#[derive(Clone)]
pub struct Chain<'a> {
    scene: &'a Scene,
    sessions: Vec<Session>,
    /// What cut sessions, by their number, do if their power is not cut.
    uncut: BTreeMap<usize, Arc<Session>>,
    card: Card,
    clock: Clock,
    random: Random,
    cuts: u64,
}

impl Chain<'_> {
    /// Takes a power cut into the history, and judges what it left.
    fn cut(&mut self, uncut: &Arc<Session>, copied: &InterruptedCard) -> Result<(), String> {
        self.card = copied.card.clone();
        self.clock = Clock::default();
        self.clock.advance_to_ns(copied.at_ns);
        self.uncut.insert(self.sessions.len(), Arc::clone(uncut));
        self.sessions.push(uncut.until(copied.byte, copied.at_ns));
        self.cuts += 1;
        let scene = self.scene;
        let history = scene.history(&self.sessions, &self.uncut);
        history.judge_before(&self.card, &scene.original, &scene.listing)?;
        self.judge_recovered()
    }

    /// Judges the card after a recovery alone: what a recording after it removes is still there.
    fn judge_recovered(&self) -> Result<(), String> {
        let mut card = self.card.clone();
        let mut volume = FatVolume::new(|| DosTime::NO_CLOCK, 7);
        let mut events = Vec::new();
        {
            let mut blocks = Direct(&mut card);
            let recovering = pin!(recover(&mut volume, &mut blocks, |_, event| events.push(event)));
            match recovering.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => (),
                Poll::Ready(Err(StartError::Volume(why))) if self.may_refuse(&why.to_string()) => {
                    return Ok(());
                }
                Poll::Ready(Err(why)) => return Err(format!("recovery alone: {why}")),
                Poll::Pending => return Err("recovery waits for nothing".into()),
            }
        }
        let sessions = [&self.sessions[..], &[Session::of_recovery(events)]].concat();
        let history = self.scene.history(&sessions, &self.uncut);
        let judged = history.judge_recovered(&mut card);
        judged
            .map(|_| ())
            .map_err(|why| format!("recovery alone: {why}"))
    }

    /// Returns true if a card may be refused for this reason.
    fn may_refuse(&self, why: &str) -> bool {
        let history = self.scene.history(&self.sessions, &self.uncut);
        history.may_be_full() && is_full(why)
    }

    fn next_setup(&mut self) -> Setup {
        again(&self.scene.setup, 0.03, &mut self.random)
    }

    /// Lets a device record until its power is cut at a byte; it may be done before.
    ///
    /// # Errors
    /// What is wrong.
    pub fn cut_again(&mut self, byte: u64) -> Result<(), String> {
        let mut setup = self.next_setup();
        setup.strikes.add(byte, Fault::Copy);
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

    /// The chains that power cuts in the next recording lead to, one for each that leaves something else on
    /// the card; each is judged.
    ///
    /// # Errors
    /// What is wrong.
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

    /// Lets a device record until it is done, and judges.
    ///
    /// # Errors
    /// What is wrong.
    pub fn end(mut self, asks_fsck: bool) -> Result<Outcome, String> {
        let setup = self.next_setup();
        let (mut card, session) = setup.run(self.card, &self.clock);
        self.sessions.push(session);
        let said = self.sessions.iter().flat_map(|session| &session.said);
        let is_recovered = |event| matches!(event, Event::Recovered { .. });
        let recovered = said.filter(|said| is_recovered(said.event)).count() as u64;
        let scene = self.scene;
        let mut outcome = Outcome {
            cuts: self.cuts,
            recovered,
            ..Outcome::default()
        };
        let judged = scene.history(&self.sessions, &self.uncut).judge(&mut card);
        if judged.is_err() || asks_fsck {
            let name = format!("{:?}", std::thread::current().id());
            let told = fsck(&card, &scene.volume, &name);
            outcome.asked_fsck = 1;
            outcome.found = match (judged, told) {
                (Ok(found), Ok(())) => found,
                (Err(why), Ok(())) => return Err(format!("{why} (fsck.fat finds nothing)")),
                (Ok(_), Err(told)) => return Err(format!("fsck.fat: {told}")),
                (Err(why), Err(told)) => return Err(format!("{why}\nfsck.fat: {told}")),
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
    };
    let blocks = volume.card_bytes / 512;
    let clock_hz = pick(random, &[4_000_000, 10_000_000, 20_000_000, 25_000_000]);
    let asks = (0..pick(random, &[0, 0, 1, 3, 8])).map(|_| {
        let after_ns = random.below(200_000_000);
        let ask = match random.below(4) {
            0 => Ask::Roll,
            1 => Ask::Flush,
            _ => Ask::Read(
                random.below(blocks - 40) as u32,
                1 + random.below(40) as usize,
            ),
        };
        (after_ns, ask)
    });
    Setup {
        clock_hz,
        asks: asks.collect(),
        config,
        plans,
        strikes: FaultSchedule::default(),
        exchange: None,
        write_protected: false,
        stops_without_power: true,
        copies_each: false,
        seed,
    }
}

/// The same device again, for a short while, with other samples.
fn again(setup: &Setup, seconds: f64, random: &mut Random) -> Setup {
    let plans = setup.plans.iter().map(|plan| plan.again(seconds, random));
    Setup {
        plans: plans.collect(),
        asks: Vec::new(),
        exchange: None,
        strikes: FaultSchedule::default(),
        ..setup.clone()
    }
}

/// Bytes at which a case cuts the power: anywhere, where busy begins or ends, or about where something
/// happened; in some the recovery is cut off too.
pub fn cuts_of(uncut: &Session, seed: u64) -> Vec<u64> {
    let random = &mut Seed::new(seed).stream("cuts");
    let kind = match uncut.said.is_empty() || uncut.borders.is_empty() {
        // A card that was refused.
        true => 0,
        false => random.below(3),
    };
    let first = match kind {
        0 => random.below(uncut.bytes),
        1 if !uncut.borders.is_empty() => pick(random, &uncut.borders),
        _ if uncut.said.is_empty() => random.below(uncut.bytes),
        _ => {
            let about = pick(random, &uncut.said).byte;
            let byte = (about + random.below(20_000)).saturating_sub(10_000);
            byte.min(uncut.bytes - 1)
        }
    };
    let mut cuts = vec![first];
    while cuts.len() < 4 && random.below(3) == 0 {
        let most = pick(random, &[30_000, 100_000, 300_000]);
        cuts.push(random.below(most));
    }
    cuts
}

/// The cases of a scene, each of a seed of its own.
///
/// # Errors
/// Those of a scene without a cut, which are those of all its cases.
pub fn run_scene(
    number: u64,
    seeds: impl Iterator<Item = u64>,
    mut each: impl FnMut(u64, Result<Outcome, String>),
) -> Result<(), String> {
    let scene = Scene::random(number)?;
    let uncut = scene
        .uncut()
        .map_err(|why| format!("without a cut: {why}\n  {}", scene.about()))?;
    let about = |why: String| {
        format!(
            "{why}
  {}",
            scene.about()
        )
    };
    let mut cases = Vec::new();
    for seed in seeds {
        match seed % CASES_OF_SETUP {
            STRUCK => each(seed, scene.struck_case(&uncut, seed).map_err(about)),
            EXCHANGED => each(seed, scene.exchanged_case(&uncut, seed).map_err(about)),
            _ => cases.push((seed, cuts_of(&uncut, seed))),
        }
    }
    cases.sort_by_key(|(_, cuts)| cuts[0]);
    let uncut = Arc::new(uncut);
    let copies = scene.copies(cases.iter().map(|(_, cuts)| cuts[0]));
    for ((seed, cuts), copied) in cases.iter().zip(&copies) {
        let result = scene.case(&uncut, copied, &cuts[1..], seed % FSCK_EVERY == 0);
        each(
            *seed,
            result.map_err(|why| about(format!("{why}\n  cut at {cuts:?}"))),
        );
    }
    Ok(())
}
