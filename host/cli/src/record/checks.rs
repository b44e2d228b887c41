//! What cannot be recorded, said before anything is.

use super::args::{Durability, FormatArg, PolicyArg, Record};
use crate::failure::Failure;
use crate::outputs::is_standard_output;
use cardiograph_compare::bus_rate_Bps;
use cardiograph_record::{BINARY_SAMPLE_BYTES_MAX, BINARY_SAMPLE_BYTES_MIN, Feed, LINE_BYTES_MIN};
use cardiograph_recorder::{LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, STREAMS_MAX};
use cardiograph_report::units;
use cardiograph_sim_card::{Board, Bus, Profile, Spi};
use std::num::NonZeroU32;

/// Lines a second where no rate is named: the most samples that an ADS1115 gives (its data sheet).
pub const RATE_HZ: NonZeroU32 = NonZeroU32::new(860).unwrap();
/// Bytes of a line where none are named: a line of MagOD2.
pub const LINE_BYTES: usize = 100;

/// What a card has besides files, at most: partition table, allocation tables, and alignment.
const OVERHEAD_BYTES: u64 = 16 << 20;
/// Lengths that a file can have.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=u32::MAX as u64;

/// Checks what does not depend on the card; returns the rate.
pub fn options(args: &Record) -> Result<NonZeroU32, Failure> {
    let refuse = |why: String| Err(Failure::new(why));
    let rate_hz = args.rate.unwrap_or(RATE_HZ.get());
    let Some(rate) = NonZeroU32::new(rate_hz) else {
        return refuse("--rate is 0; give it 1 line a second at least".to_string());
    };
    sample_bytes(args)?;
    if !(1..=STREAMS_MAX as u32).contains(&args.streams) {
        return refuse(format!(
            "--streams is {}; it must be 1 to {STREAMS_MAX}, which share a card",
            args.streams
        ));
    }
    let ring_bytes = args.ram / u64::from(args.streams);
    if !(RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64).contains(&ring_bytes) {
        return refuse(format!(
            "--ram is {}, {ring_bytes} B for each stream; it must be {RING_BYTES_MIN} B, two blocks, to \
             2 GiB for each",
            units::binary_bytes(args.ram)
        ));
    }
    if !FILE_BYTES.contains(&args.file_size) {
        return refuse(format!(
            "--file-size is {}; it must be 64KiB, some blocks with marks, to 4294967295, which FAT can hold",
            units::binary_bytes(args.file_size)
        ));
    }
    if matches!(args.durability, Durability::Time(time) if time.as_micros() == 0) {
        return refuse(
            "--durability is less than 1us; name `sample` for the newest line".to_string(),
        );
    }
    if args.recipe.is_some_and(|time| time.as_micros() == 0) {
        return refuse("--recipe is less than 1us; give it a length".to_string());
    }
    only_with_stream(args)?;
    Ok(rate)
}

/// Checks the length of a sample in its format.
fn sample_bytes(args: &Record) -> Result<(), Failure> {
    let Some(bytes) = args.line else {
        return Ok(());
    };
    let (range, remedy) = match args.format() {
        FormatArg::Csv => (LINE_BYTES_MIN..=LINE_BYTES_MAX, "give a length within it"),
        FormatArg::Binary => (
            BINARY_SAMPLE_BYTES_MIN..=BINARY_SAMPLE_BYTES_MAX,
            "give a length within it, or choose --format csv",
        ),
    };
    if range.contains(&bytes) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "--line is {bytes}, but samples made here have {} to {} B in this format; {remedy}",
        range.start(),
        range.end()
    )))
}

/// Some options are for our recorder alone, and some are told by the samples.
fn only_with_stream(args: &Record) -> Result<(), Failure> {
    let is_others = args.compare || args.policy != PolicyArg::Stream;
    for (is_given, option) in [
        (args.samples.is_some(), "--samples"),
        (args.streams > 1, "--streams"),
        (args.format() == FormatArg::Binary, "--format binary"),
    ] {
        if is_given && is_others {
            return Err(Failure::new(format!(
                "{option} works with --policy stream alone; the others record one stream of lines made here"
            )));
        }
    }
    let Some(samples) = &args.samples else {
        return Ok(());
    };
    if args.format() == FormatArg::Binary {
        return Err(Failure::new(
            "--format binary needs samples of a schema, and those of --samples are lines of text; choose --format csv",
        ));
    }
    let is_file = !is_standard_output(samples);
    for (is_given, option) in [
        (args.line.is_some(), "--line"),
        (is_file && args.rate.is_some(), "--rate"),
    ] {
        if is_given {
            return Err(Failure::new(format!(
                "{option} is told by the lines of --samples; leave one of both away"
            )));
        }
    }
    Ok(())
}

/// What a directory cannot do.
pub fn directory(args: &Record) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::new(format!("{}: {why}", args.target)));
    if args.compare || args.policy != PolicyArg::Stream {
        return refuse(
            "a directory is recorded to with --policy stream alone, as the others are simulations; leave it \
             away, or name a simulated card as sim:CARD@BOARD",
        );
    }
    if args.samples.as_deref().is_some_and(is_standard_output) {
        if args.rate.is_some() {
            return refuse("lines of --samples - are recorded as they come; leave --rate away");
        }
        if args.streams > 1 {
            return refuse("lines of --samples - are one stream; leave --streams away");
        }
    }
    Ok(())
}

/// The SPI bus of a board.
pub fn spi<'a>(args: &Record, board: &'a Board) -> Result<&'a Spi, Failure> {
    match &board.bus {
        Bus::Spi(spi) => Ok(spi),
        Bus::Sd(_) => Err(Failure::new(format!(
            "{}: its board has an SD bus, and --policy stream drives cards over SPI; name a board with SPI, \
             such as esp32",
            args.target
        ))),
    }
}

/// Whether bus and card can take the lines at all.
pub fn load(
    args: &Record,
    feed: &dyn Feed,
    profile: &Profile,
    spi: Option<&Spi>,
) -> Result<(), Failure> {
    let bytes = feed.bytes() * u64::from(args.streams);
    let is_timed = args
        .samples
        .as_deref()
        .is_some_and(|path| !is_standard_output(path));
    if let Some(spi) = spi.filter(|_| !is_timed) {
        let rate_hz = f64::from(args.rate.unwrap_or(RATE_HZ.get()));
        let asked = bytes as f64 / feed.lines() as f64 * rate_hz;
        let most = bus_rate_Bps(spi);
        if asked > most {
            return Err(Failure::new(format!(
                "{}: the lines are {} and its bus carries {} at most; lower --rate or --line, or name a board \
                 with a faster clock",
                args.target,
                units::rate(asked),
                units::rate(most)
            )));
        }
    }
    let removes = matches!(args.when_full, super::args::WhenFullArg::RemoveOldest);
    let room = profile.capacity_bytes.saturating_sub(OVERHEAD_BYTES);
    if bytes > room && !removes {
        return Err(Failure::new(format!(
            "{}: {} of lines do not fit on a card of {}; lower --for, name a larger card, or give --when-full \
             remove-oldest",
            args.target,
            units::bytes(bytes as f64),
            units::bytes(profile.capacity_bytes as f64)
        )));
    }
    Ok(())
}
