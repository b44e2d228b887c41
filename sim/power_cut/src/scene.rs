//! Scenes: a card with a file system and foreign files, and a device around it.

use crate::changes::{FileChange, all_kinds, random_changes, repeated};
use crate::disk::Image;
use crate::fat;
use crate::foreign::{Files, Volume};
use crate::judge::History;
use crate::plan::{Plan, SMALL};
use crate::session::{Request, Session, Setup};
use cardiograph_recorder::{Config, Format, WhenFull, Window};
use cardiograph_sim_card::wire::{Fault, FaultSchedule, InterruptedCard};
use cardiograph_sim_card::{Card, Profile};
use cardiograph_sim_world::{Clock, Random, Seed};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One in this many scenes has a nearly full volume.
const NEARLY_FULL_EVERY: u64 = 4;

/// Reference runs for a history that contains no power cut: none.
pub(crate) static NO_CUTS: BTreeMap<usize, Arc<Session>> = BTreeMap::new();

const PROFILES: [&str; 8] = [
    "class10-16g",
    "generic-8g-class4",
    "generic-8g-third",
    "sandisk-1g-2008",
    "sandisk-edge-8g",
    "kingston-2g-2010",
    "apacer-1g-slc",
    "panasonic-1g-slc",
];

/// A card with a file system and foreign files, and a device around it.
#[derive(Clone)]
pub struct Scene {
    pub(crate) volume: Volume,
    pub(crate) profile: Profile,
    pub(crate) image: Image,
    pub(crate) foreign: Files,
    /// Directory listing of the foreign files, and the original contents of the card.
    pub(crate) listing: fat::Listing,
    pub(crate) original: Image,
    /// Configuration of the device.
    pub setup: Setup,
    /// Sessions of earlier recordings on the card.
    pub(crate) earlier: Vec<Session>,
    pub(crate) seed: Seed,
}

pub(crate) fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
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
            requests: vec![(70_000_000, Request::Rotate)],
            ..Setup::new(10_000_000, plans.collect(), seed)
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
            config: Config {
                file_bytes: 64 << 10,
                when_full: WhenFull::RemoveOldest,
                ..Config::default()
            },
            requests: vec![(40_000_000, Request::Flush)],
            ..Setup::new(20_000_000, plans.collect(), seed)
        };
        Scene::new(64 << 20, 512, Seed::new(1).child("every write"), setup)
    }

    /// Creates a short recording during which another task changes files in every way, on FAT32 or FAT16.
    ///
    /// # Errors
    /// If the recording cannot be set up.
    pub fn changing(is_32: bool) -> Result<Scene, String> {
        let format = Format::Csv(&[SMALL]);
        let plan = Plan::steady(0, format, Window::Us(30_000), 500, 400);
        let setup = |seed| Setup {
            requests: vec![(70_000_000, Request::Rotate)],
            changes: all_kinds(),
            ..Setup::new(20_000_000, vec![plan], seed)
        };
        let cluster_bytes = if is_32 { 512 } else { 2048 };
        Scene::new(
            64 << 20,
            cluster_bytes,
            Seed::new(3).child("changes"),
            setup,
        )
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

    pub(crate) fn history<'a>(
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

    /// Returns the scene with a device that loses its power together with its card.
    #[must_use]
    pub fn with_power_of_card(&self) -> Scene {
        let mut scene = self.clone();
        scene.setup.stops_without_power = true;
        scene
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
        requests: requests.collect(),
        changes: changes_of(seed, volume),
        config,
        ..Setup::new(clock_hz, plans, seed)
    }
}

/// Returns the changes of files in a scene: in half of the scenes, another task changes files.
fn changes_of(seed: Seed, volume: &Volume) -> Vec<(u64, FileChange)> {
    let random = &mut seed.stream("changes");
    let most_bytes = volume.free_bytes.unwrap_or(100_000);
    match random.below(2) {
        0 => Vec::new(),
        _ => random_changes(random, most_bytes),
    }
}

/// Returns the setup of the same device for a short further recording, with other samples.
pub(crate) fn rerun(setup: &Setup, seconds: f64, random: &mut Random) -> Setup {
    let plans = setup.plans.iter().map(|plan| plan.rerun(seconds, random));
    let plans: Vec<Plan> = plans.collect();
    // Draws from a clone of the stream, so that scenes without changes stay the same.
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
