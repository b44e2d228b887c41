//! Arbitrary text as the specification of a sweep, and as its JSON form.
#![cfg_attr(fuzzing, no_main)]

use cardiograph_sweep::{PARTS_MAX, Sweep};
use std::path::Path;

/// Number of tasks up to which a sweep is divided here.
const DIVIDED_TASKS_MAX: u64 = 10_000;

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let parsed = [
        Sweep::from_toml("sweep.toml", text, Path::new("none")),
        Sweep::from_json(text),
    ];
    for result in parsed {
        match result {
            Ok(sweep) => check(&sweep),
            Err(error) => assert!(error.to_string().len() > 10),
        }
    }
});

/// Checks that each task belongs to one part, and that another process would compute the same sweep.
fn check(sweep: &Sweep) {
    assert!(sweep.cost_s() > 0.0);
    assert!((1..=PARTS_MAX).contains(&sweep.parts()));
    let last = sweep.task(sweep.tasks() - 1);
    assert!(last.seeds.start < last.seeds.end);
    let json = sweep.to_json();
    let copy = Sweep::from_json(&json);
    assert_eq!(copy.map(|copy| copy.to_json()), Ok(json));
    if sweep.tasks() > DIVIDED_TASKS_MAX {
        return;
    }
    let mut next = 0;
    for part in 0..sweep.parts() {
        let tasks = sweep.tasks_of_part(part);
        assert_eq!(tasks.start, next);
        assert!(tasks.end > tasks.start);
        next = tasks.end;
    }
    assert_eq!(next, sweep.tasks());
}
