//! Power cuts during uploads, renames and removals by another task, while the recorder runs.

use cardiograph_sim_power_cut::case::{CASES_PER_SCENE, run_scene};
use cardiograph_sim_power_cut::chain::Chain;
use cardiograph_sim_power_cut::outcome::Outcome;
use cardiograph_sim_power_cut::scene::Scene;
use std::sync::Arc;

/// A device records to its end after one in this many cuts.
const ENDS_EVERY: usize = 2;

/// Cuts the power at every point that leaves different contents on the card.
fn cut_everywhere(is_32: bool) {
    let scene = Scene::changing(is_32).unwrap();
    let reference = Arc::new(scene.reference_run().unwrap());
    let last = reference.steps.last().unwrap();
    assert!(
        last.done.is_some(),
        "the recording ended before the changes"
    );
    let refused = reference.steps.iter().filter_map(|step| step.done);
    let refused = refused.filter(|(_, result)| result.is_err()).count();
    assert_eq!(refused, 2);
    let copies = scene.copies_each();
    println!("{} cuts, FAT32: {is_32}", copies.len());
    let mut total = Outcome::default();
    for (number, copied) in copies.iter().enumerate() {
        let wrong = |why| format!("cut at byte {}: {why}", copied.byte);
        let chain = Chain::first(&scene, &reference, copied);
        let chain = chain.map_err(wrong).unwrap_or_else(|why| panic!("{why}"));
        if number % ENDS_EVERY == 0 {
            let end = chain.end(number % (32 * ENDS_EVERY) == 0);
            total += end.map_err(wrong).unwrap_or_else(|why| panic!("{why}"));
        }
    }
    assert!(copies.len() > 300, "{} cuts", copies.len());
    assert!(total.found.interrupted > 20, "{total:?}");
}

#[test]
#[ignore = "needs fsck.fat"]
fn every_cut_of_changes_on_fat32() {
    cut_everywhere(true);
}

#[test]
#[ignore = "needs fsck.fat"]
fn every_cut_of_changes_on_fat16() {
    cut_everywhere(false);
}

#[test]
#[ignore = "needs fsck.fat"]
fn changes_in_random_scenes_are_whole_or_absent() {
    let mut total = Outcome::default();
    let scenes =
        (1000..).filter(|number| !Scene::random(*number).unwrap().setup.changes.is_empty());
    for number in scenes.take(10) {
        let first = number * CASES_PER_SCENE;
        let judged = run_scene(number, first..first + CASES_PER_SCENE, |seed, result| {
            total += result.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        });
        judged.unwrap_or_else(|why| panic!("scene {number}: {why}"));
    }
    println!("{total:?}");
    assert!(total.found.uploads > 20, "{total:?}");
    assert!(total.found.interrupted > 60, "{total:?}");
}
