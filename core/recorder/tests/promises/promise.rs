//! Helpers and checks shared by the tests.

use crate::fat_rig::{Disk, Rig, Spec, done};
use crate::logger_rig::{Case, Files, Input, Moment, Outcome, record};
use cardiograph_recorder::{Config, Control, Event, FlushState, recover};
use std::cell::RefCell;

pub const LINE_BYTES: u16 = 60;

/// Returns a FAT16 card with stale data in its free clusters.
pub fn card(blocks: u32) -> Disk {
    let spec = Spec {
        blocks,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: false,
    };
    let mut image = spec.make();
    image.add_stale_data();
    image.disk
}

/// Size of the smallest FAT16 volume: 2 MiB.
pub const SMALL_BLOCKS: u32 = 4_200;

/// Returns a case with files of this length on a card of this size.
pub fn case(control: &Control, file_bytes: u32, card_blocks: u32) -> Case<'_> {
    Case {
        config: Config {
            file_bytes,
            ..Config::default()
        },
        disk: Some(card(card_blocks)),
        ..Case::new(control)
    }
}

/// Returns the files of a stream of lines.
pub fn files(disk: &Disk, stream: usize) -> Files {
    Files::read(disk, stream, LINE_BYTES.into())
}

/// Returns the card as the next recorder's mount leaves it after a power cut.
pub fn after_cut(durable: &Disk) -> Disk {
    let mut rig = Rig::new(durable.powered_up());
    done(recover(&mut rig.volume, &mut rig.disk, |_, _| ())).unwrap();
    rig.disk
}

/// Returns first index and count of all gaps that a stream reported, in order of time.
pub fn reported_gaps<const N: usize>(outcome: &Outcome<N>, wanted: usize) -> Vec<(u64, u64)> {
    let gap = |(_, event): &(u64, Event)| match event {
        Event::Lost { stream, gap } if usize::from(*stream) == wanted => {
            Some((gap.first, gap.count))
        }
        _ => None,
    };
    outcome.events.iter().filter_map(gap).collect()
}

pub fn count<const N: usize>(outcome: &Outcome<N>, wanted: fn(&Event) -> bool) -> usize {
    let events = outcome.events.iter();
    events.filter(|(_, event)| wanted(event)).count()
}

/// Checks that each of the first `end` samples is either in the files or in exactly one of these gaps.
pub fn assert_in_one_place(files: &Files, gaps: &[(u64, u64)], end: u64) {
    let mut places = vec![0; end as usize];
    for index in &files.samples {
        if let Some(place) = places.get_mut(*index as usize) {
            *place += 1;
        }
    }
    for (first, count) in gaps {
        let gap = (*first).min(end)..first.saturating_add(*count).min(end);
        places[gap.start as usize..gap.end as usize]
            .iter_mut()
            .for_each(|place| *place += 1);
    }
    let wrong = places.iter().position(|places| *places != 1);
    assert_eq!(
        wrong.map(|at| (at, places[at])),
        None,
        "(sample, number of places); gaps {gaps:?}"
    );
}

/// Checks that the files contain only whole samples, and that every sample is in them or in one of their
/// gaps.
pub fn assert_kept<const N: usize>(outcome: &Outcome<N>, stream: usize) {
    let files = files(&outcome.disk, stream);
    let pushed = outcome.pushed[stream];
    files.assert_sound(pushed);
    files.assert_closed();
    assert_in_one_place(&files, &files.gaps, pushed);
    let summary = outcome.summaries.as_ref().unwrap()[stream];
    assert_eq!(summary.written, files.samples.len() as u64);
    assert_eq!(summary.lost, pushed - summary.written);
}

/// Checks that the files contain all samples of a stream, and nothing else.
pub fn assert_all_written<const N: usize>(outcome: &Outcome<N>, stream: usize) {
    assert_kept(outcome, stream);
    let lost = outcome.summaries.as_ref().unwrap()[stream].lost;
    let gaps = reported_gaps(outcome, stream);
    assert_eq!(lost, 0, "of {}: {gaps:?}", outcome.pushed[stream]);
}

/// Returns the numbers in the names of a stream's files.
pub fn numbers<const N: usize>(outcome: &Outcome<N>, stream: usize) -> Vec<u32> {
    let names = files(&outcome.disk, stream).names;
    let numbers = names.iter().map(|name| name[3..8].parse().unwrap());
    numbers.collect()
}

/// A completed flush.
pub struct Flushed {
    pub asked_us: u64,
    pub done_us: u64,
    /// Stated maximum duration.
    pub stated_us: u64,
    /// Number of samples pushed before the request.
    pub pushed: u64,
    /// First of these samples that is missing after a power cut at the end of the flush.
    pub missing: Option<u64>,
}

/// Records one stream, and requests a flush as soon as possible after each of these times.
pub fn record_with_flushes(
    case: Case<'_>,
    input: Input,
    times_us: Vec<u64>,
) -> (Outcome<1>, Vec<Flushed>) {
    let control = case.control;
    let flushes = RefCell::new(Vec::new());
    let (mut asked, mut times_us) = (None, times_us.into_iter().peekable());
    let watch = |moment: &Moment| match asked {
        None if control.is_ready() && times_us.next_if(|at| moment.now_us >= *at).is_some() => {
            let stated_us = u64::from(control.flush_us_max());
            asked = Some((control.flush(), moment.now_us, moment.pushed[0], stated_us));
        }
        Some((number, asked_us, pushed, stated_us))
            if control.flush_state(number) != FlushState::Pending =>
        {
            let left = files(&after_cut(moment.durable), 0);
            flushes.borrow_mut().push(Flushed {
                asked_us,
                done_us: moment.now_us,
                stated_us,
                pushed,
                missing: left.missing(pushed),
            });
            asked = None;
        }
        _ => (),
    };
    let outcome = record(case, [input], watch);
    (outcome, flushes.take())
}
