//! Interprets arbitrary bytes as actions of a host on the SD bus: correct, wrong or random.

use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, SdBusCard, Width};
use cardiograph_sim_card::wire::{Kind, Options, crc};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Clock, Profile, Seed};
use std::sync::LazyLock;

/// Reads the bytes of the script one at a time; returns zeros after the end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }
}

/// Commands that the card supports, so that a random choice is often a supported command; after CMD55, some
/// numbers have another meaning.
const COMMANDS: [u8; 22] = [
    0, 2, 3, 6, 7, 8, 9, 10, 12, 13, 16, 17, 18, 22, 23, 24, 25, 32, 33, 38, 41, 51,
];
const CLOCKS_HZ: [u32; 4] = [400_000, 23_000_000, 25_000_000, 50_000_000];
/// Timeout of the host for a block or for busy, in clocks.
const WAIT_CLOCKS: u32 = 10_000_000;

/// Outcome of a script.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of commands that got a response.
    pub responses: u32,
    /// Number of blocks that the card accepted.
    pub written: u32,
    /// Number of blocks that the card sent.
    pub read: u32,
}

struct Host {
    card: SdBusCard,
    width: Width,
    clock_hz: u32,
    outcome: Outcome,
}

fn card(options: Options) -> SdBusCard {
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        let mut profile = Profile::named("class10-16g").expect("class10-16g is a bundled card");
        // Use as few pages as possible, because creating pages takes time.
        profile.capacity_bytes = 64 << 20;
        profile.flash.page_bytes = 16 << 10;
        profile
    });
    let mut card = Card::new(&PROFILE, Seed::new(1));
    card.make_unreadable(13);
    SdBusCard::new(card, options, Clock::default(), CLOCKS_HZ[2]).expect("the options are in range")
}

/// Plays the script; asserts that the elapsed time is the sum of all clocks, and that responses are
/// well-formed.
pub fn play(bytes: &[u8]) -> Outcome {
    let mut bytes = Bytes(bytes);
    let first = bytes.next();
    let options = Options {
        kind: [Kind::Version1, Kind::Standard, Kind::High][usize::from(first) % 3],
        ncr_clocks: 2 + first % 63,
        nac_clocks: 2 + first / 2,
        write_protected: first > 240,
        ..Options::default()
    };
    let mut host = Host {
        card: card(options),
        width: Width::One,
        clock_hz: CLOCKS_HZ[2],
        outcome: Outcome::default(),
    };
    while !bytes.0.is_empty() {
        let (clocks, now_ns) = (host.card.clocks(), host.card.clock().now_ns());
        let pause_ns = host.step(&mut bytes);
        let clocks = u128::from(host.card.clocks() - clocks);
        let took_ns = u128::from(host.card.clock().now_ns() - now_ns - pause_ns);
        // The clock may have carried over a fraction of a nanosecond.
        let exact_ns = clocks * 1_000_000_000 / u128::from(host.clock_hz);
        assert!(took_ns == exact_ns || took_ns == exact_ns + 1);
    }
    host.outcome
}

impl Host {
    /// Runs one step; returns its additional pause, in ns.
    fn step(&mut self, bytes: &mut Bytes) -> u64 {
        match bytes.next() % 16 {
            0 => {
                let pause_ns = u64::from(bytes.next()) * 1_000_000;
                self.card.clock().advance_ns(pause_ns);
                return pause_ns;
            }
            1 => {
                let four = bytes.next() % 4 == 1;
                self.width = if four { Width::Four } else { Width::One };
                self.card.set_width(self.width);
            }
            2 => {
                self.clock_hz = CLOCKS_HZ[usize::from(bytes.next()) % CLOCKS_HZ.len()];
                self.card
                    .set_clock_hz(self.clock_hz)
                    .expect("the clock is in range");
            }
            3 => self.card.idle(u32::from(bytes.next()) * 8),
            4 => self.begin(),
            // Two steps complete the initialisation and select the card, with time in between.
            5 => {
                self.card.clock().advance_ns(1_000_000_000);
                self.identify();
                return 1_000_000_000;
            }
            6 | 7 => {
                let index = COMMANDS[usize::from(bytes.next()) % COMMANDS.len()];
                let argument = argument(index, bytes);
                self.send(Command::new(index, argument));
            }
            8 => {
                self.send(Command::new(55, 1 << 16));
                let index = COMMANDS[usize::from(bytes.next()) % COMMANDS.len()];
                self.send(Command::new(index, bytes.next().into()));
            }
            9 => {
                let frame = std::array::from_fn(|_| bytes.next());
                self.send(Command { bytes: frame });
            }
            10 => self.write(bytes),
            11 => self.read(bytes),
            12 | 13 => {
                let index = 24 + bytes.next() % 2;
                self.send(Command::new(index, argument(index, bytes)));
                self.write(bytes);
            }
            14 => {
                let index = 17 + bytes.next() % 2;
                self.send(Command::new(index, argument(index, bytes)));
                self.read(bytes);
            }
            _ => {
                self.card.wait(WAIT_CLOCKS);
            }
        }
        0
    }

    /// Resets the card and starts its initialisation.
    fn begin(&mut self) {
        self.card.idle(74);
        for (index, argument) in [(0, 0), (8, 0x1AA), (55, 0), (41, 0x40FF_8000)] {
            self.send(Command::new(index, argument));
        }
    }

    /// Completes the initialisation and selects the card by its relative address.
    fn identify(&mut self) {
        let all = [(55, 0), (41, 0x40FF_8000), (2, 0), (3, 0), (7, 1 << 16)];
        for (index, argument) in all {
            self.send(Command::new(index, argument));
        }
    }

    fn send(&mut self, command: Command) {
        match self.card.command(command) {
            Response::None => return,
            Response::Short(bytes) => {
                let sealed = bytes[5] == crc::crc7(&bytes[..5]) << 1 | 1;
                assert!(sealed || bytes[0] == 0x3F && bytes[5] == 0xFF);
            }
            Response::Long(bytes) => assert_eq!(bytes[16], crc::crc7(&bytes[1..16]) << 1 | 1),
        }
        self.outcome.responses += 1;
    }

    /// Sends a block of equal bytes, usually with the right checksums.
    fn write(&mut self, bytes: &mut Bytes) {
        let data = [bytes.next(); BLOCK_BYTES];
        let mut sums = self.width.sums(&data);
        let with_bad_crc = bytes.next();
        sums[usize::from(with_bad_crc) % 4] ^= u16::from(with_bad_crc / 224);
        let was_busy = self.card.is_busy();
        let status = self.card.write_block(&data, sums);
        assert!(!was_busy || status.is_none());
        self.outcome.written += u32::from(status == Some(CrcStatus::Positive));
    }

    /// Receives a block, usually of the right length.
    fn read(&mut self, bytes: &mut Bytes) {
        let mut data = [0; BLOCK_BYTES];
        let length = match bytes.next() {
            length @ 0..16 => usize::from(length),
            16..64 => 64,
            _ => BLOCK_BYTES,
        };
        if self
            .card
            .read_block(&mut data[..length], WAIT_CLOCKS)
            .is_some()
        {
            self.outcome.read += 1;
        }
    }
}

/// Returns a command argument: a low card address, or a block near the start of the card or sometimes past
/// its end.
fn argument(index: u8, bytes: &mut Bytes) -> u32 {
    match index {
        7 | 9 | 10 | 13 => u32::from(bytes.next() / 86) << 16,
        6 => u32::from_be_bytes([bytes.next(), 0xFF, 0xFF, bytes.next()]),
        _ => u32::from_be_bytes([bytes.next() / 224, 0, bytes.next(), bytes.next()]),
    }
}
