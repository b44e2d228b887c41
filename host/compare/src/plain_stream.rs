//! One continuous write of many blocks by a minimal loop: the best case of a card.
//!
//! The loop is written from the SD Physical Layer Simplified Specification, version 9.00, chapter 7, and shares
//! no code with the card driver, so that it represents any firmware that streams. It polls busy byte by byte,
//! and does nothing else.

use cardiograph_sim_card::wire::{ChipSelect, Kind, Options, OptionsError, SpiBus, SpiCard, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card, Clock};
use cardiograph_timing::sustained::sustained_rates_bytes_per_s;
use cardiograph_timing::{Latencies, buckets_below};
use embedded_hal::digital::OutputPin;
use embedded_hal::spi::SpiBus as _;
use std::fmt;
use std::ops::Range;

/// Bus clock until the card is initialised, in Hz (6.4.1.1 permits 100 to 400 kHz).
const INIT_CLOCK_HZ: u32 = 400_000;
/// Capacity of the largest card with byte addresses.
const STANDARD_BYTES_MAX: u64 = 2 << 30;
/// Maximum number of bytes until a response (NCR of 7.5.4), including the response.
const RESPONSE_BYTES_MAX: u32 = 9;
/// Start token of a block of CMD25 (7.3.3.2).
const START_TOKEN: u8 = 0xFC;
/// Stop token of CMD25 (7.3.3.2).
const STOP_TOKEN: u8 = 0xFD;
/// Byte read while the card does not drive MISO.
const RELEASED: u8 = 0xFF;
/// Data response to an accepted block (7.3.3.1), and the mask of the bits to compare.
const ACCEPTED: u8 = 0b0_0101;
const RESPONSE_BITS: u8 = 0x1F;

/// Reason why a plain stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainError {
    /// The simulated bus does not support the requested clock frequency.
    Options(OptionsError),
    /// The card did not respond to the command with this index.
    Silence(u8),
    /// The card rejected a command.
    Refused {
        /// Index of the command.
        command: u8,
        /// The R1 response.
        r1: u8,
    },
    /// The card rejected a block.
    Block {
        /// Index of the block in the stream, from 0.
        block: u32,
        /// Data response of the card (7.3.3.1).
        response: u8,
    },
    /// The card reported an error after the stop token; the value is the second byte of R2.
    Status(u8),
}

impl std::error::Error for PlainError {}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PlainError::Options(error) => error.fmt(f),
            PlainError::Silence(command) => write!(f, "no response to CMD{command}"),
            PlainError::Refused { command, r1 } => {
                write!(f, "CMD{command} rejected with R1 {r1:#04x}")
            }
            PlainError::Block { block, response } => {
                write!(
                    f,
                    "block {block} rejected with data response {response:#04x}"
                )
            }
            PlainError::Status(status) => write!(f, "error status {status:#04x} after the stream"),
        }
    }
}

/// Writes `blocks` consecutive blocks from `start` by one CMD25, with the SPI bus at `clock_hz`. `data`
/// fills each block according to its index in the stream, which takes no virtual time. Returns the start and
/// end of each block in ns of the card's time, and the card.
///
/// A block lasts from the start of its token to the end of busy, marked by the first byte 0xFF. Each block
/// therefore starts when the previous one has ended.
///
/// # Errors
/// [`PlainError`]; the card is dropped.
pub fn plain_stream(
    card: Card,
    clock_hz: u32,
    start: u32,
    blocks: u32,
    data: impl FnMut(u32, &mut Block),
) -> Result<(Vec<(u64, u64)>, Card), PlainError> {
    plain_turns(card, clock_hz, std::iter::once(start..start + blocks), data)
}

/// Writes `turns` of consecutive blocks, each turn by one CMD25, as [`plain_stream`] does for a single turn.
/// The first block of a turn counts from the end of the previous block, so its time includes the stop token,
/// the busy time after the token, CMD13 and the next CMD25.
///
/// # Errors
/// [`PlainError`]; the card is dropped.
pub fn plain_turns(
    card: Card,
    clock_hz: u32,
    turns: impl Iterator<Item = Range<u32>>,
    mut data: impl FnMut(u32, &mut Block),
) -> Result<(Vec<(u64, u64)>, Card), PlainError> {
    let bytes = card.blocks() * BLOCK_BYTES as u64;
    let kind = match bytes {
        0..=STANDARD_BYTES_MAX => Kind::Standard,
        _ => Kind::High,
    };
    let options = Options {
        kind,
        ..Options::default()
    };
    let clock = Clock::default();
    let card = SpiCard::new(card, options, clock.clone(), INIT_CLOCK_HZ);
    let wire = Wire::new(card.map_err(PlainError::Options)?);
    let mut host = Host {
        bus: wire.bus(),
        pin: wire.chip_select(),
        counts_blocks: false,
    };
    host.init()?;
    let set = wire.card().set_clock_hz(clock_hz);
    set.map_err(PlainError::Options)?;
    let mut times: Vec<(u64, u64)> = Vec::new();
    for turn in turns {
        let ended_ns = times.last().map(|(_, end_ns)| *end_ns);
        let begun = times.len();
        host.turn(turn, &mut data, || clock.now_ns(), &mut times)?;
        if let (Some(ended_ns), Some(first)) = (ended_ns, times.get_mut(begun)) {
            first.0 = ended_ns;
        }
    }
    host.select(false);
    drop(host);
    let card = wire.into_card();
    let card = card.unwrap_or_else(|| unreachable!("the loop was the only user of the wire"));
    Ok((times, card))
}

/// Returns the highest constant rate in B/s that a buffer of `buffer_bytes` sustains without loss if blocks
/// take the times in `blocks`, as computed by `cardiograph_timing`, exact to 0.1 %.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn sustained_rate_bytes_per_s(blocks: &[(u64, u64)], buffer_bytes: u64) -> f64 {
    let writes: Vec<(u64, u64)> = blocks
        .iter()
        .map(|(start_ns, end_ns)| (end_ns - start_ns, BLOCK_BYTES as u64))
        .collect();
    let mut times = Latencies::<{ buckets_below(64) }>::default();
    writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
    sustained_rates_bytes_per_s(&writes[..], &times, &[buffer_bytes])[0]
}

struct Host {
    bus: SpiBus,
    pin: ChipSelect,
    counts_blocks: bool,
}

impl Host {
    fn send(&mut self, bytes: &[u8]) {
        let Ok(()) = self.bus.write(bytes);
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [RELEASED];
        let Ok(()) = self.bus.transfer_in_place(&mut byte);
        byte[0]
    }

    fn select(&mut self, is_selected: bool) {
        let Ok(()) = match is_selected {
            true => self.pin.set_low(),
            false => self.pin.set_high(),
        };
    }

    fn wait(&mut self) {
        while self.byte() != RELEASED {}
    }

    /// Sends a command; returns R1. Cards check the CRC of CMD0 and CMD8 only.
    fn command(&mut self, index: u8, argument: u32, crc: u8) -> Result<u8, PlainError> {
        let [a, b, c, d] = argument.to_be_bytes();
        self.send(&[RELEASED, 0x40 | index, a, b, c, d, crc]);
        let mut responses = (0..RESPONSE_BYTES_MAX).map(|_| self.byte());
        let r1 = responses.find(|byte| byte & 0x80 == 0);
        r1.ok_or(PlainError::Silence(index))
    }

    /// Sends a command whose R1 must be `expected`.
    fn ask(&mut self, command: u8, argument: u32, crc: u8, expected: u8) -> Result<(), PlainError> {
        match self.command(command, argument, crc)? {
            r1 if r1 == expected => Ok(()),
            r1 => Err(PlainError::Refused { command, r1 }),
        }
    }

    fn four(&mut self) -> [u8; 4] {
        [(); 4].map(|()| self.byte())
    }

    /// Initialises a card of version 2, by figure 7-2.
    fn init(&mut self) -> Result<(), PlainError> {
        self.select(false);
        self.send(&[RELEASED; 10]);
        self.select(true);
        self.ask(0, 0, 0x95, 1)?;
        self.ask(8, 0x1AA, 0x87, 1)?;
        self.four();
        loop {
            self.command(55, 0, RELEASED)?;
            match self.command(41, 1 << 30, RELEASED)? {
                0 => break,
                1 => {}
                r1 => return Err(PlainError::Refused { command: 41, r1 }),
            }
        }
        self.ask(58, 0, RELEASED, 0)?;
        self.counts_blocks = self.four()[0] & 0x40 != 0;
        Ok(())
    }

    /// Writes the blocks of one turn and appends the start and end of each to the results.
    fn turn(
        &mut self,
        turn: Range<u32>,
        data: &mut dyn FnMut(u32, &mut Block),
        now_ns: impl Fn() -> u64,
        times: &mut Vec<(u64, u64)>,
    ) -> Result<(), PlainError> {
        let address = match self.counts_blocks {
            true => turn.start,
            false => turn.start.saturating_mul(BLOCK_BYTES as u32),
        };
        self.ask(25, address, RELEASED, 0)?;
        // NWR, at least one byte, precedes each token. Before all tokens except the first, the byte in which
        // busy ended serves as NWR.
        self.byte();
        let mut frame = [RELEASED; 1 + BLOCK_BYTES + 2];
        frame[0] = START_TOKEN;
        let mut made = [0; BLOCK_BYTES];
        for _ in turn {
            let block = times.len() as u32;
            data(block, &mut made);
            frame[1..=BLOCK_BYTES].copy_from_slice(&made);
            let start_ns = now_ns();
            self.send(&frame);
            let response = self.byte();
            if response & RESPONSE_BITS != ACCEPTED {
                return Err(PlainError::Block { block, response });
            }
            self.wait();
            times.push((start_ns, now_ns()));
        }
        // The byte after the stop token is undefined.
        self.send(&[STOP_TOKEN, RELEASED]);
        self.wait();
        self.ask(13, 0, RELEASED, 0)?;
        match self.byte() {
            0 => {}
            status => return Err(PlainError::Status(status)),
        }
        Ok(())
    }
}
