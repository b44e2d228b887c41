//! The recorder on cards that merge units of flash written in part, with files whose maximum is no multiple of a unit.

use cardiograph_compare::{Streaming, stream_on_card};
use cardiograph_record::{BinarySamples, RecordingResult};
use cardiograph_recorder::{Config, Window};
use cardiograph_sim_card::{Card, Profile, Seed, Spi};
use std::ops::ControlFlow;

const SAMPLE_BYTES: usize = 100;

/// Records `count` samples in total in `N` streams.
fn recorded<const N: usize>(
    card: &str,
    rate_hz: u32,
    count: u64,
    config: Config,
) -> RecordingResult {
    let streaming = Streaming {
        spi: Spi {
            clock_hz: 25_000_000,
            ncr_bytes: 1,
            send_gap_ns: 0,
            receive_gap_ns: 0,
        },
        cluster_bytes: 32_768,
        buffer_bytes: 65_536,
        window: Window::Us(1_000_000),
        config,
    };
    let samples = BinarySamples::new(rate_hz, SAMPLE_BYTES, count / N as u64);
    let card = Card::new(&Profile::named(card).unwrap(), Seed::new(1));
    let mut go_on = |_| ControlFlow::Continue(());
    stream_on_card::<N>(card, Seed::new(1), &streaming, &samples, &mut go_on).unwrap()
}

/// Rates are 79 % of what a plain loop sustains with the same buffer: see
/// `benchmarks/runs/2026-11-26-recorder-new-cards.md`, also for what was lost when files began and ended within units.
#[test]
fn files_that_are_no_multiple_of_a_unit_lose_nothing() {
    let config = Config {
        file_bytes: 8_950_000,
        ..Config::default()
    };
    for recorded in [
        recorded::<1>("kingston-8g-class10", 18_300, 600_000, config),
        recorded::<4>("toshiba-8g-class4", 4_980, 600_000, config),
    ] {
        for stream in &recorded.streams {
            assert_eq!(stream.lost(), 0);
            assert_eq!(stream.summary.window_breaches, 0);
        }
        let files: u64 = recorded.streams.iter().map(|stream| stream.files).sum();
        assert!(files >= 7, "{files}");
    }
}

/// Files that are left early end within a unit, so that the card merges: it stalls for longer than the rings last. After
/// such a stall, the rings of four streams were never empty enough for a checkpoint: data was at risk for 4.3 s.
#[test]
fn checkpoints_end_on_a_card_whose_stalls_outlast_the_rings() {
    let config = Config {
        file_bytes: 64 << 20,
        rotate_us: Some(6_000_000),
        ..Config::default()
    };
    let recorded = recorded::<4>("toshiba-8g-class4", 4_980, 900_000, config);
    let lost: u64 = recorded.streams.iter().map(|stream| stream.lost()).sum();
    assert!(lost > 0, "no stall outlasts the rings");
    for stream in &recorded.streams {
        let at_risk_us = stream.summary.at_risk_us_max;
        assert!(at_risk_us < 1_100_000, "{at_risk_us} us");
    }
}
