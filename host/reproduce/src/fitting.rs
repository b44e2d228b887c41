//! Fits a card within physical bounds, from a random start.
//!
//! Everything that is not fitted comes from data sheets ([`template`]). The first third of the trials are random points
//! within the bounds. The others change one to three values of the best point so far, by smaller and smaller steps.

pub use crate::bounds;
use crate::bounds::Bound;
use cardiograph_sim_card::{FtlProfile, Profile, Random};

/// Parts of a step: a fraction of the range of a value.
const PARTS: u64 = 1 << 20;

/// Largest unit in bytes: the allocation unit of an SDHC card (SD specification 4.10.2).
const UNIT_BYTES_MAX: u64 = 4 << 20;

/// Length of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Largest number of trials.
    pub trials: u32,
    /// Loss at which the search ends.
    pub enough: f64,
}

/// Searches for the profile with the lowest `loss` within the given bounds; returns it and its loss.
pub fn fit(
    template: &Profile,
    bounds: &[Bound],
    search: Search,
    random: &mut Random,
    mut loss: impl FnMut(&Profile) -> f64,
) -> (Profile, f64) {
    let mut best: Option<(Vec<f64>, Profile, f64)> = None;
    for trial in 0..search.trials {
        if best
            .as_ref()
            .is_some_and(|(.., loss)| *loss <= search.enough)
        {
            break;
        }
        let progress = f64::from(trial) / f64::from(search.trials);
        let places: Vec<f64> = match &best {
            Some((places, ..)) if progress > 1.0 / 3.0 => {
                let mut places = places.clone();
                for _ in 0..=random.below(3) {
                    let place = &mut places[random.below(bounds.len() as u64) as usize];
                    let step = (2.0 * self::place(random) - 1.0) * (1.1 - progress);
                    *place = (*place + step).clamp(0.0, 1.0);
                }
                places
            }
            _ => bounds.iter().map(|_| place(random)).collect(),
        };
        let Some(profile) = at(template, bounds, &places) else {
            continue;
        };
        let loss = loss(&profile);
        if best.as_ref().is_none_or(|(.., least)| loss < *least) {
            best = Some((places, profile, loss));
        }
    }
    best.map_or_else(
        || (template.clone(), f64::INFINITY),
        |(_, profile, loss)| (profile, loss),
    )
}

/// Length of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Largest number of trials to reach cards that explain the measurements.
    pub approach: u32,
    /// Number of trials among these cards.
    pub steps: u32,
}

/// Walks at random through the cards that explain measurements, and returns the one at which the walk ends: Markov chain Monte
/// Carlo without likelihoods (Marjoram et al., PNAS 100, 2003, algorithm E), with a uniform prior on a logarithmic scale between
/// the given bounds. Returns `None` if the approach reached no card that explains the measurements.
///
/// `distance` simulates the measurements on cards in random states, and returns 0 if they are explained.
pub fn walk(
    template: &Profile,
    bounds: &[Bound],
    walk: Walk,
    random: &mut Random,
    mut distance: impl FnMut(&Profile) -> f64,
) -> Option<Profile> {
    let mut present: Option<(Vec<f64>, Profile, f64)> = None;
    let (mut trials, mut steps) = (0, 0);
    while steps < walk.steps {
        match &present {
            Some((_, _, 0.0)) => steps += 1,
            _ if trials == walk.approach => return None,
            _ => trials += 1,
        }
        let places: Vec<f64> = match &present {
            Some((places, ..)) if steps > 0 || trials > walk.approach / 3 => step(places, random),
            _ => bounds.iter().map(|_| place(random)).collect(),
        };
        if let Some(profile) = at(template, bounds, &places) {
            let far = distance(&profile);
            if present.as_ref().is_none_or(|(.., limit)| far <= *limit) {
                present = Some((places, profile, far));
            }
        }
    }
    present.map(|(_, profile, _)| profile)
}

/// Returns a random place between the bounds of a value, from 0 to 1.
fn place(random: &mut Random) -> f64 {
    random.below(PARTS + 1) as f64 / PARTS as f64
}

/// Changes one to three values, by a small step or to any place. Steps back are as likely.
fn step(places: &[f64], random: &mut Random) -> Vec<f64> {
    let mut places = places.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(places.len() as u64) as usize;
        let changed = &mut places[at];
        *changed = match random.below(2) {
            0 => place(random),
            _ => reflected(*changed + (2.0 * place(random) - 1.0) * STEP_MAX),
        };
    }
    places
}

/// Longest step of a walk, as a part of the range of a value.
const STEP_MAX: f64 = 0.2;

/// Reflects a place beyond the bounds, so that steps in both directions stay equally likely.
fn reflected(place: f64) -> f64 {
    match place {
        below if below < 0.0 => -below,
        above if above > 1.0 => 2.0 - above,
        inside => inside,
    }
}

/// Returns the card whose values are at the given places between their bounds, from 0 to 1; `None` if no such card is possible.
fn at(template: &Profile, bounds: &[Bound], places: &[f64]) -> Option<Profile> {
    let mut profile = template.clone();
    for (bound, place) in bounds.iter().zip(places) {
        set(&mut profile, bound, value(bound, *place));
    }
    fit_together(&mut profile);
    let is_possible = unit_bytes(&profile) <= UNIT_BYTES_MAX && profile.check("trial").is_ok();
    is_possible.then_some(profile)
}

fn unit_bytes(profile: &Profile) -> u64 {
    let flash = &profile.flash;
    let planes = u64::from(flash.page_bytes) * u64::from(flash.planes);
    planes * u64::from(flash.pages_per_block)
}

/// Returns a card of the present flash model with the capacity and the bits per cell of another one, and with the
/// values of data sheets: SLC as Samsung K9K8G08U0A, MLC as K9GAG08U0M, TLC as in AnandTech, Understanding TLC NAND, 2012.
/// The stall limit is that of the SD specification.
pub fn template(like: &Profile) -> Profile {
    let mut card = like.clone();
    card.model = 2;
    card.member.clear();
    card.ftl = Some(FtlProfile {
        receive_pages: like.ftl().receive_pages,
        ..FtlProfile::default()
    });
    let flash = &mut card.flash;
    let bits = flash.program_us.len();
    let mean_us;
    (flash.page_bytes, flash.read_us, mean_us, flash.erase_us) = match bits {
        1 => (2048, 25, 200, 1500),
        2 => (4096, 60, 800, 1500),
        _ => (8192, 75, 1100, 4500),
    };
    flash.program_us = program_us(bits, mean_us);
    flash.log_program_us = flash.program_us[0];
    (flash.spread_percent, flash.cycles_used) = (5, 0);
    let controller = &mut card.controller;
    (controller.log_blocks, controller.log_used_pages) = (1024, 0);
    controller.gc_log_blocks = 1;
    controller.ram_pages = 2;
    (controller.stall_limit_us, controller.idle_free_blocks) = (250_000, 2);
    controller.wear_levelling_erases = 1000;
    card
}

/// Returns the value at a place from 0 to 1 between the bounds, on a logarithmic scale.
fn value(bound: &Bound, place: f64) -> u32 {
    let [least, most] = [*bound.allowed.start(), *bound.allowed.end()];
    // One is added so that a range may begin at 0.
    let shift = u32::from(least == 0);
    let [low, high] = [least + shift, most + shift].map(f64::from);
    let value = low * (high / low).powf(place);
    match bound.is_power {
        true => 1 << value.log2().round() as u32,
        false => (value.round() as u32 - shift).clamp(least, most),
    }
}

/// Adjusts what depends on fitted values: the log is programmed like the fastest page, and the spare blocks include
/// those in work.
fn fit_together(profile: &mut Profile) {
    let flash = &mut profile.flash;
    flash.log_program_us = flash.program_us.first().copied().unwrap_or_default();
    // Of large units, a card has few: the spare blocks are at most a tenth of them.
    let units = (profile.blocks() - u64::from(profile.flash.spare_blocks)) as u32;
    profile.flash.spare_blocks = profile.flash.spare_blocks.min(units / 10);
    profile.flash.spare_blocks += profile.reserved_blocks() + 1;
}

/// Returns the times of the pages that share cells for their mean: the upper page of two takes 2.5 times as long as the
/// lower, the last of three 8 times as long as the first.
fn program_us(bits: usize, mean_us: u32) -> Vec<u32> {
    match bits {
        1 => vec![mean_us],
        2 => vec![mean_us * 4 / 7, mean_us * 10 / 7],
        _ => vec![mean_us / 4, mean_us * 3 / 4, mean_us * 2],
    }
}

fn set(profile: &mut Profile, bound: &Bound, value: u32) {
    let bits = profile.flash.program_us.len();
    match bound.path {
        "flash.program_us" => profile.flash.program_us = program_us(bits, value),
        "flash.planes" => profile.flash.planes = value,
        "flash.pages_per_block" => profile.flash.pages_per_block = value,
        "flash.spare_blocks" => profile.flash.spare_blocks = value,
        "flash.erase_us" => profile.flash.erase_us = value,
        "controller.command_us" => profile.controller.command_us = value,
        "controller.open_units" => profile.controller.open_units = value,
        "controller.fast_zone_units" => profile.controller.fast_zone_units = value,
        "ftl.step_pages" => profile.ftl.get_or_insert_default().step_pages = value,
        "ftl.commit_us" => profile.ftl.get_or_insert_default().commit_us = value,
        "ftl.part_blocks" => profile.ftl.get_or_insert_default().part_blocks = value,
        _ => (),
    }
}

/// Returns the values of a fitted profile as TOML, one line each.
pub fn lines(profile: &Profile) -> Vec<String> {
    let (flash, controller) = (&profile.flash, profile.controller);
    vec![
        format!("\"flash.program_us\" = {:?}", flash.program_us),
        format!("\"flash.log_program_us\" = {}", flash.log_program_us),
        format!("\"flash.planes\" = {}", flash.planes),
        format!("\"flash.pages_per_block\" = {}", flash.pages_per_block),
        format!("\"flash.spare_blocks\" = {}", flash.spare_blocks),
        format!("\"flash.erase_us\" = {}", flash.erase_us),
        format!("\"controller.command_us\" = {}", controller.command_us),
        format!("\"controller.open_units\" = {}", controller.open_units),
        format!(
            "\"controller.fast_zone_units\" = {}",
            controller.fast_zone_units
        ),
        format!("\"ftl.commit_us\" = {}", profile.ftl().commit_us),
        format!("\"ftl.step_pages\" = {}", profile.ftl().step_pages),
        format!("\"ftl.part_blocks\" = {}", profile.ftl().part_blocks),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::{CARDS, Seed};

    fn search(trials: u32) -> Search {
        Search {
            trials,
            enough: 0.0,
        }
    }

    #[test]
    fn every_fitted_value_is_within_its_bounds_and_every_bound_has_a_source() {
        for (name, _) in CARDS {
            let template = template(&Profile::named(name).unwrap());
            let bounds = bounds::of_members(&template);
            assert!(bounds.len() <= 11 && bounds.iter().all(|bound| bound.source.len() > 20));
            let mut random = Seed::new(1).stream("fit");
            let mut trials = 0;
            fit(&template, &bounds, search(60), &mut random, |profile| {
                trials += 1;
                let mean = |times: &[u32]| times.iter().sum::<u32>() / times.len() as u32;
                let program = &bounds[0].allowed;
                let mean_us = mean(&profile.flash.program_us);
                assert!(program.start() - 3 <= mean_us && mean_us <= *program.end());
                assert!(profile.controller.stall_limit_us == 250_000);
                assert!((10..=2000).contains(&profile.controller.command_us));
                assert!(profile.ftl().commit_us <= 10_000);
                assert!(profile.log_blocks() >= 4);
                f64::from(trials)
            });
            assert!(trials > 10, "{name}: {trials} trials");
        }
    }

    #[test]
    fn the_search_approaches_hidden_values() {
        let template = template(&Profile::named("toshiba-8g").unwrap());
        let far = |value: u32, hidden: f64| (f64::from(value) / hidden).ln().powi(2);
        let mut random = Seed::new(3).stream("fit");
        let (found, loss) = fit(
            &template,
            &bounds::of(&template),
            search(2000),
            &mut random,
            |profile| {
                far(profile.controller.command_us, 300.0) + far(profile.ftl().commit_us + 1, 2000.0)
            },
        );
        assert!(loss < 0.01, "{loss}");
        assert!(found.controller.command_us.abs_diff(300) < 30);
    }

    const WALK: Walk = Walk {
        approach: 500,
        steps: 100,
    };

    #[test]
    fn a_walk_keeps_to_cards_that_explain_and_spreads_over_the_rest() {
        let template = template(&Profile::named("toshiba-8g").unwrap());
        let bounds = bounds::of_members(&template);
        let explains = |card: &Profile| (250..=350).contains(&card.controller.command_us);
        let far = |card: &Profile| f64::from(u8::from(!explains(card)));
        let end = |seed| {
            let mut random = Seed::new(seed).stream("walk");
            walk(&template, &bounds, WALK, &mut random, far).unwrap()
        };
        let cards: Vec<Profile> = (0..40).map(end).collect();
        assert!(cards.iter().all(explains));
        // Nothing was said about the commit: it must reach both ends of its logarithmic range.
        let commits_us = || cards.iter().map(|card| card.ftl().commit_us);
        let (least, most) = (commits_us().min().unwrap(), commits_us().max().unwrap());
        assert!(least < 10 && most > 1000, "{least} to {most}");
        let sizes = |of: fn(&Profile) -> u32| {
            let sizes: std::collections::BTreeSet<u32> = cards.iter().map(of).collect();
            sizes.len()
        };
        assert_eq!(sizes(|card| card.flash.planes), 3);
        assert!(sizes(|card| card.ftl().part_blocks) >= 5);
        assert!(sizes(|card| card.ftl().step_pages) >= 8);
    }

    #[test]
    fn a_walk_without_a_card_that_explains_returns_none() {
        let template = template(&Profile::named("toshiba-8g").unwrap());
        let bounds = bounds::of_members(&template);
        let mut random = Seed::new(3).stream("walk");
        let mut trials = 0;
        let found = walk(&template, &bounds, WALK, &mut random, |card| {
            trials += 1;
            1.0 + f64::from(card.controller.command_us)
        });
        assert_eq!(found, None);
        assert!((WALK.approach / 2..=WALK.approach).contains(&trials));
    }

    #[test]
    fn lines_of_a_fit_are_those_of_a_member() {
        let template = template(&Profile::named("toshiba-8g").unwrap());
        let mut random = Seed::new(3).stream("fit");
        let (found, _) = fit(
            &template,
            &bounds::of_members(&template),
            search(10),
            &mut random,
            |_| 1.0,
        );
        let text = format!(
            "{}\n[[member]]\n{}\n",
            template.to_toml().unwrap(),
            lines(&found).join("\n")
        );
        let ensemble = Profile::from_toml("ensemble", &text).unwrap();
        assert_eq!(ensemble.members("ensemble").unwrap()[1], found);
    }
}
