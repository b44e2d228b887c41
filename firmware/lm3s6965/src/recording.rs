//! Test of the recorder: samples from an interrupt are recorded to files on a FAT card that stalls.

use crate::card::TestCard;
use crate::producer::{self, CONTROL, FORMAT};
use crate::time::{Delay, block_on, idle_us, now_us};
use cardiograph_card::BlockDevice;
use cardiograph_recorder::{
    Clock, Config, DosTime, Event, FatVolume, Parts, Port, Recorder, StreamConfig, Volume, Window,
};
use cortex_m_semihosting::hprintln;
use embedded_hal_async::delay::DelayNs;

/// Largest RAM of a recorder of four streams with its file system, driver and future, without ring buffers.
const RAM_BYTES_MAX: usize = 8192;
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
    let bytes = size_of_val(&recorder);
    let (four_bytes, four_future_bytes) = with_four_streams(&recorder);
    let (began_us, began_idle_us) = (now_us(), idle_us());
    let run = recorder.run();
    hprintln!(
        "recorder, file system and driver: {} B, future {} B; with four streams {} B and {} B",
        bytes,
        size_of_val(&run),
        four_bytes,
        four_future_bytes
    );
    assert!(four_bytes + four_future_bytes <= RAM_BYTES_MAX);
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

/// Returns the sizes in bytes of the same recorder with four streams, the maximum, and of its future.
fn with_four_streams<M, V, VE, C, D, E>(_: &Recorder<'_, M, V, VE, C, D, E, 1>) -> (usize, usize)
where
    M: BlockDevice + 'static,
    V: for<'s> Volume<Port<'s>, Error = VE> + 'static,
    VE: 'static,
    C: Clock + 'static,
    D: DelayNs + 'static,
    E: FnMut(Event) + 'static,
{
    let run = |four: &'static mut Recorder<'static, M, V, VE, C, D, E, 4>| four.run();
    (
        size_of::<Recorder<'static, M, V, VE, C, D, E, 4>>(),
        bytes_of_output(run),
    )
}

/// Returns the size in bytes of a function's output.
fn bytes_of_output<Input, Output>(_: impl FnOnce(Input) -> Output) -> usize {
    size_of::<Output>()
}
