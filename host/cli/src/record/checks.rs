//! Checks of the arguments before recording starts.

use super::args::{FormatArg, PolicyArg, Record};
use crate::failure::Failure;
use crate::outputs::is_standard_output;
use cardiograph_compare::Load;
use cardiograph_record::{BINARY_SAMPLE_BYTES_MAX, BINARY_SAMPLE_BYTES_MIN, Feed, LINE_BYTES_MIN};
use cardiograph_recorder::{LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN};
use cardiograph_report::units;
use cardiograph_sim_card::{Board, Bus, Profile, Spi};
use std::num::NonZeroU32;

/// Default samples per second: the maximum rate of an ADS1115 converter, from its data sheet.
pub const RATE_HZ: NonZeroU32 = NonZeroU32::new(860).unwrap();
/// Default bytes per sample: the length of a line that the MagOD2 logger writes.
pub const SAMPLE_BYTES: usize = 100;

/// Permitted file sizes.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=u32::MAX as u64;

/// Checks everything that does not depend on the card; returns the rate.
pub fn options(args: &Record) -> Result<NonZeroU32, Failure> {
    let refuse = |why: String| Err(Failure::new(why));
    sample_bytes(args)?;
    let ring_bytes = args.buffer / u64::from(args.streams);
    if !(RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64).contains(&ring_bytes) {
        return refuse(format!(
            "--buffer gives each stream {}; the permitted range per stream is {RING_BYTES_MIN} B (two blocks) to 2 GiB - 1 B",
            units::binary_bytes(ring_bytes)
        ));
    }
    if !FILE_BYTES.contains(&args.file_size) {
        return refuse(format!(
            "--file-size is {}; the range is 64 KiB to 4 GiB - 1 B, the maximum of FAT",
            units::binary_bytes(args.file_size)
        ));
    }
    if args.rotate_every.is_some_and(|time| time.as_micros() == 0) {
        return refuse("--rotate-every is less than 1us; use a longer time".to_string());
    }
    only_with_stream(args)?;
    only_with_server(args)?;
    Ok(args.rate.unwrap_or(RATE_HZ))
}

/// Checks the length of a sample in its format.
fn sample_bytes(args: &Record) -> Result<(), Failure> {
    let Some(bytes) = args.sample_bytes else {
        return Ok(());
    };
    let (range, remedy) = match args.format() {
        FormatArg::Csv => (
            LINE_BYTES_MIN..=LINE_BYTES_MAX,
            "use a length in this range",
        ),
        FormatArg::Binary => (
            BINARY_SAMPLE_BYTES_MIN..=BINARY_SAMPLE_BYTES_MAX,
            "use a length in this range, or --format csv",
        ),
    };
    if range.contains(&bytes) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "--sample-bytes is {bytes}, but generated samples are {} to {} B long in this format; {remedy}",
        range.start(),
        range.end()
    )))
}

/// Rejects options that only the recorder supports, and options that conflict with --samples.
fn only_with_stream(args: &Record) -> Result<(), Failure> {
    let has_other_policy = args.compare || args.policy != PolicyArg::Stream;
    for (is_given, option) in [
        (args.samples.is_some(), "--samples"),
        (args.streams > 1, "--streams"),
        (args.format() == FormatArg::Binary, "--format binary"),
    ] {
        if is_given && has_other_policy {
            return Err(Failure::new(format!(
                "{option} works only with --policy stream; the other policies record one stream of generated samples"
            )));
        }
    }
    let Some(samples) = &args.samples else {
        return Ok(());
    };
    if args.format() == FormatArg::Binary {
        return Err(Failure::new(
            "--format binary requires samples with a schema, but --samples reads lines of text; use --format csv",
        ));
    }
    let is_file = !is_standard_output(samples);
    if args.sample_bytes.is_some() {
        return Err(Failure::new(
            "--sample-bytes cannot be combined with --samples; remove one",
        ));
    }
    if is_file && args.rate.is_some() {
        return Err(Failure::new(
            "--rate cannot be combined with a recording, which has its own times; remove --rate",
        ));
    }
    Ok(())
}

/// Rejects options of a server without --serve.
fn only_with_server(args: &Record) -> Result<(), Failure> {
    let has_names = !args.public.hosts.is_empty() || !args.public.proxies.is_empty();
    match has_names && args.serve.is_none() {
        true => Err(Failure::new(
            "--host and --trusted-proxy are options of the server; add --serve ADDR, or remove them",
        )),
        false => Ok(()),
    }
}

/// Rejects --serve for simulated cards.
pub fn no_server(args: &Record) -> Result<(), Failure> {
    match args.serve {
        Some(_) => Err(Failure::new(format!(
            "{}: --serve works only with directories, because simulated cards run in virtual time; record to a \
             directory",
            args.target
        ))),
        None => Ok(()),
    }
}

/// Rejects options that do not work with directories.
pub fn directory(args: &Record) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::new(format!("{}: {why}", args.target)));
    if args.compare || args.policy != PolicyArg::Stream {
        return refuse(
            "the policies other than stream are simulated, so they need a simulated card; name one as \
             sim:CARD@BOARD, or remove --compare and --policy",
        );
    }
    if args.samples.as_deref().is_some_and(is_standard_output) {
        if args.rate.is_some() {
            return refuse(
                "in a directory, samples from standard input (`--samples -`) are recorded as they arrive; remove --rate",
            );
        }
        if args.streams > 1 {
            return refuse(
                "samples read from standard input (`--samples -`) form a single stream; remove --streams",
            );
        }
    }
    Ok(())
}

/// Returns the SPI bus of a board.
pub fn spi<'a>(args: &Record, board: &'a Board) -> Result<&'a Spi, Failure> {
    match &board.bus {
        Bus::Spi(spi) => Ok(spi),
        Bus::Sd(_) => Err(Failure::new(format!(
            "{}: the board has an SD bus, but --policy stream drives cards over SPI; use a board with SPI, such \
             as esp32",
            args.target
        ))),
    }
}

/// Checks that the bus supports the data rate, and that the samples fit on the card.
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
    let rate_hz = f64::from(args.rate.unwrap_or(RATE_HZ).get());
    let load = Load {
        bytes,
        bytes_per_s: (!is_timed).then(|| bytes as f64 / feed.count() as f64 * rate_hz),
        removes_oldest: matches!(args.when_full, super::args::WhenFullArg::RemoveOldest),
    };
    let checked = load.check(profile, spi);
    checked.map_err(|error| Failure::new(format!("{}: {error}", args.target)))
}
