//! One unbroken write of many blocks by a minimal loop: what a card bears when nothing is in its way.
//!
//! Written from the SD Physical Layer Simplified Specification, version 9.00, chapter 7, and from nothing
//! else here, so that it stands for any firmware that streams. It polls busy byte by byte, and does
//! nothing beside.

use cardiograph_sim_card::wire::{ChipSelect, Kind, Options, OptionsError, SpiBus, SpiCard, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card, Clock};
use cardiograph_timing::sustained::sustained_rates_bytes_per_s;
use cardiograph_timing::{Latencies, buckets_below};
use embedded_hal::digital::OutputPin;
use embedded_hal::spi::SpiBus as _;
use std::fmt;
use std::ops::Range;

/// Clock until the card is ready, in Hz (6.4.1.1 allows 100 to 400 kHz).
const INIT_CLOCK_HZ: u32 = 400_000;
/// The largest card that counts in bytes.
const STANDARD_BYTES_MAX: u64 = 2 << 30;
/// Bytes within which an answer comes (NCR of 7.5.4), its own included.
const ANSWER_BYTES_MAX: u32 = 9;
/// Begins a block of CMD25 (7.3.3.2).
const START_TOKEN: u8 = 0xFC;
/// Ends them (7.3.3.2).
const STOP_TOKEN: u8 = 0xFD;
/// What the line is while nobody drives it.
const RELEASED: u8 = 0xFF;
/// Data response to a block that was taken (7.3.3.1), and the bits that say so.
const ACCEPTED: u8 = 0b0_0101;
const RESPONSE_BITS: u8 = 0x1F;

/// Why a plain stream came to no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainError {
    /// No bus has this clock.
    Options(OptionsError),
    /// The card gave no answer to this command.
    Silence(u8),
    /// The card refused a command.
    Refused {
        /// Its index.
        command: u8,
        /// The answer.
        r1: u8,
    },
    /// The card did not take a block.
    Block {
        /// Which of the stream, from 0.
        block: u32,
        /// What it said.
        response: u8,
    },
    /// The card says after the stop token that something went wrong: second byte of R2.
    Status(u8),
}

impl std::error::Error for PlainError {}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PlainError::Options(error) => error.fmt(f),
            PlainError::Silence(command) => write!(f, "no answer to CMD{command}"),
            PlainError::Refused { command, r1 } => write!(f, "CMD{command} refused: {r1:#04x}"),
            PlainError::Block { block, response } => {
                write!(f, "block {block} not taken: {response:#04x}")
            }
            PlainError::Status(status) => write!(f, "status after the stream: {status:#04x}"),
        }
    }
}

/// Writes `blocks` consecutive blocks from `start` by one CMD25 at this clock of the SPI bus, in Hz.
/// `data` makes each, by its number in the stream, and takes no time. Returns start and end of each in ns
/// of the card's time, and the card.
///
/// A block lasts from the start of its token to the end of its busy, which is the first byte that the card
/// leaves at 0xFF, so a block starts when the one before has ended.
///
/// # Errors
/// [`PlainError`]; the card is lost with it.
pub fn plain_stream(
    card: Card,
    clock_hz: u32,
    start: u32,
    blocks: u32,
    data: impl FnMut(u32, &mut Block),
) -> Result<(Vec<(u64, u64)>, Card), PlainError> {
    plain_turns(card, clock_hz, std::iter::once(start..start + blocks), data)
}

/// Writes `turns` of consecutive blocks, each by one CMD25, as [`plain_stream`] does for a single one. The
/// first block of a turn lasts from the end of the block before it, so that the stop token, its busy, CMD13 and
/// the next CMD25 count.
///
/// # Errors
/// [`PlainError`]; the card is lost with it.
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
    let card = card.unwrap_or_else(|| unreachable!("the loop alone held the wire, and it is gone"));
    Ok((times, card))
}

/// The highest constant rate in B/s that a ring of `ram_bytes` carries through these blocks without loss:
/// `cardiograph_timing`'s, exact to 0.1 %.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn lossless_rate_Bps(blocks: &[(u64, u64)], ram_bytes: u64) -> f64 {
    let writes: Vec<(u64, u64)> = blocks
        .iter()
        .map(|(start_ns, end_ns)| (end_ns - start_ns, BLOCK_BYTES as u64))
        .collect();
    let mut times = Latencies::<{ buckets_below(64) }>::default();
    writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
    sustained_rates_bytes_per_s(&writes[..], &times, &[ram_bytes])[0]
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

    /// Sends a command; returns R1. Checksums are off but for CMD0 and CMD8, and those are `crc`.
    fn command(&mut self, index: u8, argument: u32, crc: u8) -> Result<u8, PlainError> {
        let [a, b, c, d] = argument.to_be_bytes();
        self.send(&[RELEASED, 0x40 | index, a, b, c, d, crc]);
        let mut answers = (0..ANSWER_BYTES_MAX).map(|_| self.byte());
        let r1 = answers.find(|byte| byte & 0x80 == 0);
        r1.ok_or(PlainError::Silence(index))
    }

    /// A command that has to be answered with `due`.
    fn ask(&mut self, command: u8, argument: u32, crc: u8, due: u8) -> Result<(), PlainError> {
        match self.command(command, argument, crc)? {
            r1 if r1 == due => Ok(()),
            r1 => Err(PlainError::Refused { command, r1 }),
        }
    }

    fn four(&mut self) -> [u8; 4] {
        [(); 4].map(|()| self.byte())
    }

    /// Figure 7-2, for cards of version 2.
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

    /// Writes one turn of blocks, and adds their times.
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
        // NWR: a byte at least before the first token. Before the others it is that which ended busy.
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
        // The byte after the stop token is not defined.
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
