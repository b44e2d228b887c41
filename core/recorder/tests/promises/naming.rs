//! Names of files that are being written.

use crate::fat_rig::check;
use crate::logger_rig::{Costs, Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The file system's steps are slow enough that few of them fit between two writes.
const SLOW: Costs = Costs {
    read_us: 10_000,
    begin_us: 9_000,
    push_us: 100,
    end_us: 9_000,
};

#[test]
fn files_get_their_names_within_10_s_of_their_first_mark() {
    record_with_rotations(lines(65_536, LINE_BYTES, 1_100, 40_000), 4_000_000);
}

#[test]
fn names_that_are_due_do_not_wait_for_the_ends_of_pages() {
    // A page fills in 0.6 s. The ring lasts 154 ms, less than a card may be busy, so that few steps fit in at its end: with
    // all of them there, files get their names after 19 s.
    record_with_rotations(lines(8_192, LINE_BYTES, 1_100, 46_000), 8_000_000);
}

/// Records one stream with five rotations, and checks the time at which each file gets its name.
fn record_with_rotations(input: Input, interval_us: u64) {
    let (control, looked_us) = (Control::new(), Cell::new(0));
    let seen = RefCell::new(BTreeMap::new());
    // While a file needs its name, its predecessor is closed and another file is prepared.
    let rotations_us = (0..5).map(|at| 8_000_000 + at * interval_us);
    let mut rotations_us = rotations_us.peekable();
    let mut case = case(&control, 3 << 20, 60_000);
    case.costs = SLOW;
    let outcome = record(case, [input], |moment| {
        if rotations_us.next_if(|us| moment.now_us > *us).is_some() {
            control.rotate();
        }
        if moment.now_us >= looked_us.get() {
            looked_us.set(moment.now_us + 300_000);
            // The check also fails halfway through a step.
            let files = check(moment.durable, 0).map(|listing| listing.files);
            for name in files.unwrap_or_default().into_keys() {
                seen.borrow_mut().entry(name).or_insert(moment.now_us);
            }
        }
    });
    assert_all_written(&outcome, 0);
    let opened = outcome.events.iter().filter_map(|(us, event)| match event {
        Event::Opened { id, .. } => Some((id.number, *us)),
        _ => None,
    });
    let marked_us = |opened_us: u64| {
        let mut events = outcome.events.iter();
        let mark =
            events.find(|(us, event)| *us > opened_us && matches!(event, Event::Checkpoint { .. }));
        mark.map(|(us, _)| *us)
    };
    let mut named = 0;
    for (number, opened_us) in opened {
        let Some(marked_us) = marked_us(opened_us) else {
            continue;
        };
        let named_us = seen.borrow()[&format!("AAA00000/AAA{number:05}CSV")];
        println!("{number}: opened {opened_us}, marked {marked_us}, named {named_us}");
        assert!(named_us <= marked_us + 10_000_000);
        named += 1;
    }
    assert!(named == 6, "{named}");
}
