//! Test of the recorder: samples from an interrupt are recorded to files on a FAT card that stalls.

use crate::card::TestCard;
use crate::producer::{self, CONTROL, FORMAT};
use crate::time::{Delay, block_on, idle_us, now_us};
use cardiograph_recorder::{
    Config, DosTime, Event, FatVolume, Parts, Recorder, StreamConfig, Window,
};
use cortex_m_semihosting::hprintln;

/// Largest RAM of recorder, file system and driver, without ring buffers. The goal is 8 KiB.
const RAM_BYTES_MAX: usize = 10_496;
/// Samples of 5 s; the same number as in `xtask/src/firmware/recording.rs`.
const SAMPLES: u32 = 20_000;
/// Small enough that the recording has several files.
const FILE_BYTES: u32 = 128 << 10;

/// Records samples; panics if one is lost. `cargo xtask firmware` checks the files.
pub fn test(card: TestCard) {
    let parts = Parts {
        medium: card,
        volume: FatVolume::new(|| DosTime::NO_CLOCK, 1),
        clock: now_us,
        delay: Delay,
        events: print,
        control: &CONTROL,
        reads: None,
    };
    let config = Config {
        file_bytes: FILE_BYTES,
        ..Config::default()
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, config, [(stream, producer::start(SAMPLES))]);
    let (bytes, four_bytes) = (size_of_val(&recorder), with_four_streams(&recorder));
    let (began_us, began_idle_us) = (now_us(), idle_us());
    let run = recorder.run();
    let future_bytes = size_of_val(&run);
    hprintln!(
        "recorder, file system and driver: {} B, with four streams {} B; future {} B",
        bytes,
        four_bytes,
        future_bytes
    );
    assert!(four_bytes + future_bytes <= RAM_BYTES_MAX);
    let [summary] = match block_on(run) {
        Ok(summaries) => summaries,
        Err(error) => panic!("the recording did not start: {error}"),
    };
    hprintln!("{:?}", summary);
    hprintln!(
        "{} samples in {} us, {} us idle",
        SAMPLES,
        now_us() - began_us,
        idle_us() - began_idle_us
    );
    assert_eq!((summary.written, summary.lost), (u64::from(SAMPLES), 0));
    hprintln!("ok: recorded {} samples", SAMPLES);
}

fn print(event: Event) {
    if let Event::Lost { .. } | Event::CardLost = event {
        hprintln!("{:?}", event);
    }
}

/// Returns the size in bytes of the same recorder with four streams, the maximum.
fn with_four_streams<M, V, VE, C, D, E>(_: &Recorder<'_, M, V, VE, C, D, E, 1>) -> usize {
    size_of::<Recorder<'static, M, V, VE, C, D, E, 4>>()
}
