//! Streams that share a card.

use crate::logger_rig::{Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event, FlushState, Window};
use std::cell::RefCell;

#[test]
fn streams_that_fill_a_card_use_all_of_it() {
    // The file of one stream fills slowly; the other must not stop because of that.
    let control = Control::new();
    let case = case(&control, 512 << 10, SMALL_BLOCKS);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 5_000),
        lines(16_384, LINE_BYTES, 4_000, 1_250),
    ];
    let outcome = record(case, inputs, |_| ());
    (0..2).for_each(|stream| assert_all_written(&outcome, stream));
}

#[test]
fn a_flush_covers_all_streams() {
    let (control, asked, left) = (Control::new(), RefCell::new(None), RefCell::new(None));
    let inputs = || {
        let window = Window::Us(20_000_000);
        let input = |period_us, samples| Input {
            window,
            ..lines(32_768, LINE_BYTES, period_us, samples)
        };
        [input(1_000, 4_000), input(3_000, 1_300), input(700, 5_700)]
    };
    let case = case(&control, 1 << 20, 30_000);
    record(case, inputs(), |moment| {
        let number = asked.borrow().as_ref().map(|(number, _)| *number);
        match number {
            None if moment.now_us > 2_000_000 && control.is_ready() => {
                asked.replace(Some((control.flush(), moment.pushed.to_vec())));
            }
            Some(number)
                if control.flush_state(number) != FlushState::Pending
                    && left.borrow().is_none() =>
            {
                left.replace(Some(moment.durable.clone()));
            }
            _ => (),
        }
    });
    let (_, pushed) = asked.take().unwrap();
    let left = after_cut(&left.take().unwrap());
    for (stream, pushed) in pushed.into_iter().enumerate() {
        assert_eq!(files(&left, stream).missing(pushed), None);
    }
}

#[test]
fn a_full_card_is_reported_once_by_each_stream() {
    let control = Control::new();
    let case = case(&control, 256 << 10, 2 * SMALL_BLOCKS);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 40_000),
        lines(16_384, LINE_BYTES, 1_000, 40_000),
    ];
    let outcome = record(case, inputs, |_| ());
    let summaries = outcome.summaries.as_ref().unwrap();
    for (stream, summary) in summaries.iter().enumerate() {
        let files = files(&outcome.disk, stream);
        files.assert_sound(40_000);
        assert_eq!(summary.written, files.samples.len() as u64, "{stream}");
        assert_in_one_place(&files, &reported_gaps(&outcome, stream), 40_000);
        let is_full = |(_, event): &&(u64, Event)| {
            *event
                == Event::Full {
                    track: stream as u8,
                }
        };
        assert_eq!(outcome.events.iter().filter(is_full).count(), 1, "{stream}");
    }
    // 4.3 MB are 71,000 lines, without marks, folders and their indexes.
    let written: u64 = summaries.iter().map(|summary| summary.written).sum();
    assert!(written > 50_000, "{written}");
}
