//! Flushes: durable when they are acknowledged, and no slower than stated.

use crate::logger_rig::{Costs, Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Window};
use std::cell::Cell;

/// Sets a window so long that only flushes make samples durable.
fn with_long_window(input: Input) -> Input {
    let window = Window::Us(30_000_000);
    Input { window, ..input }
}

#[test]
fn the_first_stall_is_within_the_stated_time() {
    for phase_us in (0..40_000).step_by(4_003) {
        println!("phase {phase_us} us");
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        let at_us = 3_000_000 + phase_us;
        // Within the limit of the SD specification for one write.
        case.faults.write_stall = Some((at_us, 240_000));
        let input = with_long_window(lines(65_536, LINE_BYTES, 1_000, 5_000));
        let (_, flushes) = record_with_flushes(case, input, vec![at_us]);
        assert_eq!(flushes.len(), 1);
        for flush in flushes {
            let took_us = flush.done_us - flush.asked_us;
            assert!(took_us > 200_000, "the stall was elsewhere: {took_us} us");
            assert!(
                took_us <= flush.stated_us,
                "{took_us} > {}",
                flush.stated_us
            );
            assert_eq!(flush.missing, None);
        }
    }
}

/// Returns the highest stated time in us, from `from_us` after the recorder became ready.
fn highest_stated_us(case: crate::logger_rig::Case<'_>, from_us: u64) -> u32 {
    let (control, highest) = (case.control, Cell::new(0));
    let ready_us = Cell::new(None);
    record(case, [lines(65_536, LINE_BYTES, 1_000, 6_000)], |moment| {
        if control.is_ready() {
            let ready_us = ready_us.get().unwrap_or(moment.now_us);
            if moment.now_us >= ready_us + from_us {
                highest.set(highest.get().max(control.flush_us_max()));
            }
        }
        if control.is_ready() && ready_us.get().is_none() {
            ready_us.set(Some(moment.now_us));
        }
    });
    highest.get()
}

#[test]
fn a_stall_while_mounting_does_not_count_as_a_write_stall() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.read_stall = Some((0, 3_000_000));
    let stated_us = highest_stated_us(case, 1_000_000);
    assert!((1..1_500_000).contains(&stated_us), "{stated_us} us");
}

#[test]
fn slow_mounting_does_not_make_blocks_slow() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.costs = Costs {
        read_us: 20_000,
        ..case.costs
    };
    // From the start, because a supply may fail in the first second too.
    let stated_us = highest_stated_us(case, 10_000);
    assert!((1..1_500_000).contains(&stated_us), "{stated_us} us");
}

#[test]
fn the_stated_time_follows_a_ring_that_fills() {
    for at_us in (1_000_000..5_000_000).step_by(500_003) {
        println!("flush at {at_us} us");
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        // 98 kB/s written, 120 kB/s arriving: the ring fills for 6 s, and the recorder is never idle.
        case.costs = Costs {
            push_us: 5_000,
            ..case.costs
        };
        let input = with_long_window(lines(131_072, LINE_BYTES, 500, 12_000));
        let (_, flushes) = record_with_flushes(case, input, vec![at_us]);
        assert_eq!(flushes.len(), 1);
        for flush in flushes {
            let took_us = flush.done_us - flush.asked_us;
            assert!(
                took_us <= flush.stated_us,
                "{took_us} > {}",
                flush.stated_us
            );
            assert_eq!(flush.missing, None);
        }
    }
}

#[test]
fn a_flush_is_durable_when_it_is_acknowledged() {
    for rotate_us in [None, Some(300_000)] {
        let control = Control::new();
        let mut case = case(&control, 256 << 10, 20_000);
        case.config.rotate_us = rotate_us;
        let input = with_long_window(lines(16_384, LINE_BYTES, 700, 8_000));
        let times_us = (500_000..6_000_000).step_by(150_007).collect();
        let (_, flushes) = record_with_flushes(case, input, times_us);
        assert!(flushes.len() >= 25, "{}", flushes.len());
        for flush in flushes {
            assert_eq!(flush.missing, None, "of {}", flush.pushed);
        }
    }
}
