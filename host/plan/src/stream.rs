//! Writes to a simulated card as the recorder does: one stream that stays open.

use cardiograph_card::{Card as Driver, Error};
use cardiograph_report::units;
use cardiograph_sim_card::wire::{ChipSelect, Delay, Kind, Options, SpiBus, SpiCard, Wire};
use cardiograph_sim_card::{Block, Board, Bus, Card, Clock, Profile, Seed, Spi, TomlError};
use cardiograph_trace::{About, Operation, OperationKind, Trace};
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Bytes per block, the unit of the stream.
pub const BLOCK_BYTES: u64 = 512;

/// Alignment of a stream's first block, at which every card has a flash block boundary.
const ALIGNMENT_BLOCKS: u64 = (4 << 20) / BLOCK_BYTES;

/// Payload of each block. A simulated card takes the same time for any data, and stores zeros without memory.
const DATA: Block = [0; BLOCK_BYTES as usize];

type Failure = Error<Infallible, Infallible>;

/// Result of a stream.
pub struct Streamed {
    /// The pushes of all blocks as operations.
    pub trace: Trace,
    /// First block of the stream on the card.
    pub start: u64,
}

/// Error: a card could not be written to.
#[derive(Debug)]
pub enum StreamError {
    /// The board has no SPI bus.
    NoSpi,
    /// The card is too small for a stream.
    TooSmall,
    /// A member of the card's ensemble is impossible.
    Members(TomlError),
    /// The driver reported an error.
    Driver(Failure),
    /// The caller stopped the plan.
    Stopped,
}

impl std::error::Error for StreamError {}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StreamError::NoSpi => f.write_str(
                "the recorder's card driver needs SPI, but this board uses the SD bus; choose a \
                 board with SPI, such as esp32",
            ),
            StreamError::TooSmall => write!(
                f,
                "the card is too small for a measurement; choose one of at least {}",
                units::binary_bytes(4 * ALIGNMENT_BLOCKS * BLOCK_BYTES)
            ),
            StreamError::Members(error) => error.fmt(f),
            StreamError::Stopped => f.write_str("the plan was stopped; start it again"),
            StreamError::Driver(error) => write!(f, "{error}; choose another card or board"),
        }
    }
}

impl From<Failure> for StreamError {
    fn from(error: Failure) -> StreamError {
        StreamError::Driver(error)
    }
}

/// Writes up to `bytes_max` bytes, at most half of the capacity, to a new card: each block as soon as the previous
/// one is accepted.
///
/// # Errors
/// [`StreamError`].
pub fn stream(
    (profile, board): (&Profile, &Board),
    seed: u64,
    bytes_max: u64,
) -> Result<Streamed, StreamError> {
    let Bus::Spi(spi) = board.bus else {
        return Err(StreamError::NoSpi);
    };
    let wire = wire(profile, &spi, seed)?;
    let clock = wire.card().clock().clone();
    let mut driver = driver(&wire, spi.clock_hz);
    done(driver.acquire())?;
    wire.set_gaps(spi.send_gap_ns, spi.receive_gap_ns);

    // Start well past the FAT.
    let start = u64::from(driver.blocks()) / 4 / ALIGNMENT_BLOCKS * ALIGNMENT_BLOCKS;
    let count = (bytes_max / BLOCK_BYTES).min(u64::from(driver.blocks()) / 2);
    if start == 0 {
        return Err(StreamError::TooSmall);
    }
    done(driver.begin(start as u32, 1)).map_err(|error| error.cause)?;
    let mut trace = Trace::new(About::default());
    for block in 0..count {
        let start_ns = clock.now_ns();
        done(driver.push(&DATA)).map_err(|error| error.cause)?;
        let pushed = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: block * BLOCK_BYTES,
            length_bytes: BLOCK_BYTES,
            start_ns,
            end_ns: clock.now_ns(),
        };
        if trace.push(&pushed).is_err() {
            unreachable!("virtual time never goes backward");
        }
    }
    Ok(Streamed { trace, start })
}

fn wire(profile: &Profile, spi: &Spi, seed: u64) -> Result<Wire, StreamError> {
    let options = Options {
        kind: Kind::High,
        ncr_bytes: spi.ncr_bytes.min(8) as u8,
        ..Options::default()
    };
    let card = Card::new(profile, Seed::new(seed));
    let card = SpiCard::new(card, options, Clock::default(), cardiograph_card::CLOCK_HZ);
    Ok(Wire::new(card.map_err(|_| StreamError::TooSmall)?))
}

type SetClock = Box<dyn FnMut(&mut SpiBus, u32)>;

fn driver(wire: &Wire, clock_hz: u32) -> Driver<SpiBus, ChipSelect, Delay, SetClock> {
    let card = wire.clone();
    let set_clock: SetClock = Box::new(move |_, hz| {
        if card.card().set_clock_hz(hz).is_err() {
            unreachable!(
                "a board's clock is validated when it is read, and the driver's is slower"
            );
        }
    });
    Driver::new(
        wire.bus(),
        wire.chip_select(),
        wire.delay(),
        set_clock,
        clock_hz,
    )
}

/// Polls a future to completion: in virtual time nothing has to wait.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
