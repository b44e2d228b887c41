//! Stopping, on request and stream by stream.

use crate::logger_rig::{Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, FlushState, Window};
use std::cell::{Cell, RefCell};

#[test]
fn a_gap_that_still_grows_at_a_stop_is_in_the_files() {
    let mut overflown = 0;
    for samples in (3_050..3_700).step_by(50) {
        println!("silent after {samples} samples");
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        // The ring lasts 70 ms. After the last loss nothing is pushed that would close its gap.
        case.faults.write_stall = Some((3_000_000, 700_000));
        let input = Input {
            closes: false,
            ..lines(4_096, LINE_BYTES, 1_000, samples)
        };
        let is_over = Cell::new(0);
        let outcome = record(case, [input], |moment| {
            if moment.pushed[0] == samples && is_over.replace(1) == 0 {
                control.stop();
            }
        });
        assert_kept(&outcome, 0);
        overflown += usize::from(outcome.summaries.unwrap()[0].lost > 0);
    }
    assert!(overflown >= 8, "{overflown}");
}

#[test]
fn a_gap_that_still_grows_at_a_flush_is_durable() {
    let (control, asked, left) = (Control::new(), Cell::new(None), RefCell::new(None));
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.write_stall = Some((2_000_000, 700_000));
    let input = Input {
        closes: false,
        ..lines(4_096, LINE_BYTES, 1_000, 2_500)
    };
    record(case, [input], |moment| match asked.get() {
        None if moment.pushed[0] == 2_500 => asked.set(Some(control.flush())),
        Some(number)
            if control.flush_state(number) != FlushState::Pending && left.borrow().is_none() =>
        {
            left.replace(Some(moment.durable.clone()));
            control.stop();
        }
        _ => (),
    });
    let left = files(&after_cut(&left.take().unwrap()), 0);
    assert!(left.samples.len() < 2_500, "the ring did not overflow");
    assert_eq!(left.missing(2_500), None);
}

#[test]
fn a_gap_alone_is_durable_within_the_window() {
    let (control, left) = (Control::new(), RefCell::new(None));
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.write_stall = Some((2_000_000, 700_000));
    let input = Input {
        closes: false,
        window: Window::Us(500_000),
        ..lines(4_096, LINE_BYTES, 1_000, 2_500)
    };
    record(case, [input], |moment| {
        if moment.now_us > 6_000_000 && left.borrow().is_none() {
            left.replace(Some(moment.durable.clone()));
            control.stop();
        }
    });
    let left = files(&after_cut(&left.take().unwrap()), 0);
    assert!(left.samples.len() < 2_500, "the ring did not overflow");
    assert_eq!(left.missing(2_500), None);
}

#[test]
fn a_stream_that_stops_alone_is_durable_within_the_window() {
    let (control, left) = (Control::new(), RefCell::new(None));
    let inputs = [
        Input {
            window: Window::Us(300_000),
            ..lines(16_384, LINE_BYTES, 1_000, 2_345)
        },
        lines(16_384, LINE_BYTES, 1_000, 8_000),
    ];
    let case = case(&control, 1 << 20, 20_000);
    let outcome = record(case, inputs, |moment| {
        if moment.now_us > 4_500_000 && left.borrow().is_none() {
            left.replace(Some(moment.durable.clone()));
        }
    });
    (0..2).for_each(|stream| assert_all_written(&outcome, stream));
    let left = files(&after_cut(&left.take().unwrap()), 0);
    assert!((0..2_345).eq(left.samples));
}
