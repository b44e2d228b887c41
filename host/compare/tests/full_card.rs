//! Several streams on small and full cards.

use cardiograph_compare::{Streaming, stream_on_card};
use cardiograph_record::{Lines, RecordingResult};
use cardiograph_recorder::{Cause, Config, WhenFull, Window};
use cardiograph_sim_card::{Card, Profile, Seed, Spi};
use std::ops::ControlFlow;

/// Records four text streams on an empty card of 64 MiB.
fn record(config: Config, rate_hz: u32, seconds: u64) -> RecordingResult {
    let mut profile = Profile::named("sandisk-1g-2008").unwrap();
    profile.capacity_bytes = 64 << 20;
    profile.controller.log_blocks = 20;
    let seed = Seed::new(3);
    let streaming = Streaming {
        spi: Spi {
            clock_hz: 4_000_000,
            ncr_bytes: 1,
            send_gap_ns: 0,
            receive_gap_ns: 0,
        },
        cluster_bytes: 8192,
        buffer_bytes: 65_536,
        window: Window::Us(5_000_000),
        config,
    };
    let lines = Lines {
        rate_hz,
        line_bytes: 200,
        count: u64::from(rate_hz) * seconds,
    };
    let card = Card::new(&profile, seed);
    let mut go_on = |_| ControlFlow::Continue(());
    stream_on_card::<4>(card, seed, &streaming, &lines, &mut go_on).unwrap()
}

/// The first files of two streams would take the whole card.
#[test]
fn four_streams_begin_on_a_card_that_is_smaller_than_their_first_files() {
    let config = Config {
        file_bytes: 45 << 20,
        ..Config::default()
    };
    let recorded = record(config, 20, 10);
    for stream in &recorded.streams {
        assert_eq!((stream.pushed, stream.lost()), (200, 0));
        assert_eq!(stream.files, 1);
    }
}

/// Each second, four streams request a new file, and the card is full of short files after ten minutes.
#[test]
fn streams_do_not_wait_for_a_file_on_a_card_full_of_short_files() {
    let config = Config {
        file_bytes: 4 << 20,
        rotate_us: Some(1_000_000),
        when_full: WhenFull::RemoveOldest,
        ..Config::default()
    };
    let recorded = record(config, 118, 900);
    for (number, stream) in recorded.streams.iter().enumerate() {
        println!("{number}: {} files, {} lost", stream.files, stream.lost());
        assert!(stream.files > 100, "{} files", stream.files);
        let mut causes = stream.gaps.iter().map(|gap| gap.cause);
        assert!(causes.all(|cause| cause == Cause::Busy));
        assert_eq!(stream.pushed, 118 * 900);
    }
}
