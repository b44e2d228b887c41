//! Any bytes as what a host does to a card, right, wrong or random, and as what befalls the card.

use cardiograph_sim_card::wire::{Count, Kind, Options, SpiCard, Strike, crc};
use cardiograph_sim_card::{Card, Clock, Profile, Seed};
use std::sync::LazyLock;

/// Takes bytes one by one; zeros when there are none left.
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

/// Commands there are, so that a random number is often one of them.
const COMMANDS: [u8; 19] = [
    0, 8, 9, 10, 12, 13, 16, 17, 18, 22, 23, 24, 25, 32, 33, 38, 41, 51, 55,
];

/// Bytes that one script may take on the wire: quick scripts find more.
const BYTES_MAX: u64 = 6000;

fn card(options: Options) -> (SpiCard, Clock) {
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        let mut profile = Profile::named("class10-16g").expect("it comes along");
        // As few pages as can be: a new card takes time for each.
        profile.capacity_bytes = 64 << 20;
        profile.flash.page_bytes = 16 << 10;
        profile
    });
    let clock = Clock::default();
    let card = SpiCard::new(
        Card::new(&PROFILE, Seed::new(1)),
        options,
        clock.clone(),
        26_000_000,
    );
    (card.expect("these options are possible"), clock)
}

/// Plays the bytes to two cards, one byte at a time and many at a time; both must say the same at
/// the same time. Returns what went over the wire.
pub fn play(bytes: &[u8]) -> Count {
    let mut bytes = Bytes(bytes);
    let first = bytes.next();
    let options = Options {
        kind: [Kind::Version1, Kind::Standard, Kind::High][usize::from(first) % 3],
        ncr_bytes: first / 3 % 9,
        write_protected: first > 240,
        ..Options::default()
    };
    let (mut slow, slow_clock) = card(options);
    let (mut quick, quick_clock) = card(options);
    while !bytes.0.is_empty() && slow.count().bytes < BYTES_MAX {
        let mut step = step(&mut bytes);
        for (card, clock) in [(&mut slow, &slow_clock), (&mut quick, &quick_clock)] {
            clock.advance_ns(step.delay_ns);
            if let Some(select) = step.select {
                card.select(select);
            }
            if let Some(fault) = step.fault {
                suffer(card, fault);
            }
        }
        let said: Vec<u8> = step.sent.iter().map(|&byte| slow.exchange(byte)).collect();
        quick.exchange_in_place(&mut step.sent);
        assert_eq!(said, step.sent);
        assert_eq!(slow_clock.now_ns(), quick_clock.now_ns());
        assert_eq!(slow.count(), quick.count());
        assert_eq!(slow.is_powered(), quick.is_powered());
    }
    let held = |card: &SpiCard| {
        let mut data = [[0; 512]; 64];
        card.card().load(0, &mut data);
        data
    };
    assert!(held(&slow) == held(&quick));
    slow.count()
}

/// One thing that a host does, or that befalls the card.
#[derive(Default)]
struct Step {
    select: Option<bool>,
    delay_ns: u64,
    fault: Option<Fault>,
    sent: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Fault {
    PowerCut,
    PowerOn,
    /// So many bytes from now.
    Strike(u64, Strike),
}

fn step(bytes: &mut Bytes) -> Step {
    let mut step = Step::default();
    let sent = &mut step.sent;
    match bytes.next() % 14 {
        0 => step.select = Some(!bytes.next().is_multiple_of(4)),
        1 => step.delay_ns = u64::from(bytes.next()) * 1_000_000,
        2 => sent.push(bytes.next()),
        // Resets and begins to initialise; 12 ends it.
        3 => {
            for (index, argument) in [(0, 0), (8, 0x1AA), (55, 0), (41, 1 << 30)] {
                command(sent, index, argument);
                sent.extend([0xFF; 16]);
            }
        }
        4 | 5 => {
            let known = COMMANDS[usize::from(bytes.next()) % COMMANDS.len()];
            any_command(sent, known, bytes);
        }
        6 => {
            let many = bytes.next() % 2 == 1;
            any_command(sent, if many { 25 } else { 24 }, bytes);
            block(sent, if many { 0xFC } else { 0xFE }, bytes);
        }
        7 => command(sent, bytes.next(), u32::from(bytes.next()) << 24),
        8 | 9 => {
            let token = [0xFE, 0xFC][usize::from(bytes.next()) % 2];
            block(sent, token, bytes);
        }
        10 => sent.extend([0xFD, 0xFF]),
        11 => sent.extend(std::iter::repeat_n(0xFF, usize::from(bytes.next()) * 8)),
        12 => {
            step.delay_ns = 1_000_000_000;
            for (index, argument) in [(55, 0), (41, 1 << 30)] {
                command(sent, index, argument);
                sent.extend([0xFF; 16]);
            }
        }
        _ => step.fault = Some(fault(bytes)),
    }
    step
}

fn fault(bytes: &mut Bytes) -> Fault {
    let (kind, number) = (bytes.next() % 16, bytes.next());
    // Up to a block and a half from now.
    let after = u64::from(number) * 3;
    let bit = number % 8;
    Fault::Strike(
        after,
        match kind {
            0 => return Fault::PowerCut,
            1 => return Fault::PowerOn,
            2 => Strike::PowerCut,
            3 => Strike::Pull {
                out_ns: u64::from(bytes.next()) * 1_000,
            },
            4 => Strike::LoseCommand,
            5..8 => Strike::FlipToCard { bit },
            8..13 => Strike::FlipToHost { bit },
            _ => Strike::Busy {
                extra_ns: u64::MAX >> (bytes.next() % 64),
            },
        },
    )
}

fn suffer(card: &mut SpiCard, fault: Fault) {
    match fault {
        Fault::PowerCut => card.power_cut(),
        Fault::PowerOn => card.power_on(),
        Fault::Strike(after, strike) => card.strike(card.count().bytes + after, strike),
    }
}

/// A block of one value, its checksum right more often than not.
fn block(sent: &mut Vec<u8>, token: u8, bytes: &mut Bytes) {
    let data = [bytes.next(); 512];
    sent.push(token);
    sent.extend(data);
    let sum = crc::crc16(&data) ^ u16::from(bytes.next() / 128);
    sent.extend(sum.to_be_bytes());
}

/// A command near the start of the card, now and then past its end, with time for the answer.
fn any_command(sent: &mut Vec<u8>, index: u8, bytes: &mut Bytes) {
    let argument = u32::from_be_bytes([bytes.next() / 224, 0, bytes.next(), bytes.next()]);
    command(sent, index, argument);
    sent.extend([0xFF; 10]);
}

fn command(sent: &mut Vec<u8>, index: u8, argument: u32) {
    let mut frame = [0x40 | index & 0x3F, 0, 0, 0, 0, 0];
    frame[1..5].copy_from_slice(&argument.to_be_bytes());
    frame[5] = crc::crc7(&frame[..5]) << 1 | 1;
    sent.extend(frame);
}
