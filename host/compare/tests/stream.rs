//! The recorder on simulated cards: verification detects wrong data.

use cardiograph_compare::{CardStreamError, Streaming, stream_on_card};
use cardiograph_record::{Feed, InputLines, Lines, StreamError, Times};
use cardiograph_recorder::{Config, Window};
use cardiograph_sim_card::{Card, Counterfeit, Defects, Profile, Seed, Spi};
use std::num::NonZeroU64;
use std::ops::ControlFlow;

const STREAMING: Streaming = Streaming {
    spi: Spi {
        clock_hz: 4_000_000,
        ncr_bytes: 1,
        send_gap_ns: 0,
        receive_gap_ns: 0,
    },
    cluster_bytes: 8192,
    buffer_bytes: 65_536,
    window: Window::Us(1_000_000),
    config: Config {
        file_bytes: 1 << 20,
        rotate_us: None,
        when_full: cardiograph_recorder::WhenFull::Wait,
        serves_after_end: false,
        waits_for_room: false,
        stall_budget_us: 0,
    },
};

/// A recording of 12 MB.
const LINES: Lines = Lines {
    rate_hz: 3000,
    line_bytes: 100,
    count: 120_000,
};

fn profile() -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 1 << 30;
    profile
}

#[test]
fn an_honest_card_contains_all_lines() {
    let card = Card::new(&profile(), Seed::new(1));
    let (mut pushed, mut looks) = (0, 0);
    let mut watch = |now: cardiograph_record::Progress| {
        assert!(now.pushed >= pushed && now.durable + now.lost <= now.pushed);
        (pushed, looks) = (now.pushed, looks + 1);
        ControlFlow::Continue(())
    };
    let streamed = stream_on_card::<1>(card, Seed::new(1), &STREAMING, &LINES, &mut watch);
    let streamed = streamed.unwrap();
    let [stream] = &streamed.streams[..] else {
        panic!("one stream");
    };
    assert_eq!(stream.pushed, LINES.count);
    assert_eq!(stream.summary.written, LINES.count);
    assert_eq!(stream.sample_bytes, LINES.bytes());
    assert_eq!(stream.gaps, []);
    assert!(stream.files >= LINES.bytes() / (1 << 20));
    assert!(looks > 100);
}

#[test]
fn a_card_smaller_than_its_claimed_capacity_is_detected() {
    let counterfeit = Counterfeit::Vanishes {
        // The card really stores 10 MB: enough for the file system and the first lines, but not for all
        // lines.
        real_blocks: NonZeroU64::new(20_000).unwrap(),
    };
    let defects = Defects {
        counterfeit: Some(counterfeit),
        ..Defects::default()
    };
    let card = Card::with_defects(&profile(), defects, Seed::new(1));
    let mut watch = |_| ControlFlow::Continue(());
    let streamed = stream_on_card::<1>(card, Seed::new(1), &STREAMING, &LINES, &mut watch);
    let Err(CardStreamError::Stream(StreamError::Differs { file, mismatch })) = streamed else {
        panic!("{streamed:?}");
    };
    assert!(file.starts_with("REC") && file.ends_with(".CSV"), "{file}");
    assert!(mismatch.expected > 0 && mismatch.expected < LINES.count);
}

#[test]
fn the_watch_callback_can_stop_the_recording() {
    let card = Card::new(&profile(), Seed::new(1));
    let mut watch = |now: cardiograph_record::Progress| match now.pushed > 5_000 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let lines = Lines {
        rate_hz: 1000,
        ..LINES
    };
    let streamed = stream_on_card::<2>(card, Seed::new(1), &STREAMING, &lines, &mut watch);
    let streamed = streamed.unwrap();
    for stream in &streamed.streams {
        assert!((2_000..4_000).contains(&stream.pushed), "{}", stream.pushed);
        assert_eq!(stream.summary.written, stream.pushed);
    }
}

#[test]
fn input_lines_keep_their_times_and_line_ends() {
    let mut input = InputLines::new(Times::PerLine(vec![0, 7_000_000, 7_000_000]));
    for line in [&b"a\n"[..], b"bc\r\n", b""] {
        input.push(line).unwrap();
    }
    assert_eq!(
        (input.count(), input.bytes(), input.line_bytes_max()),
        (3, 7, 4)
    );
    let card = Card::new(&profile(), Seed::new(1));
    let mut watch = |_| ControlFlow::Continue(());
    let streamed = stream_on_card::<1>(card, Seed::new(1), &STREAMING, &input, &mut watch);
    let streamed = streamed.unwrap();
    assert_eq!(streamed.streams[0].sample_bytes, 7);
    assert!(streamed.duration_us >= 7_000);
}
