//! Interprets arbitrary bytes as actions of a host, correct, wrong or random, and as faults of a card.

use cardiograph_sim_card::wire::{Count, Fault, Kind, Options, SpiCard, crc};
use cardiograph_sim_card::{Card, Clock, Profile, Seed};
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

/// Commands that the card supports, so that a random choice is often a supported command.
const COMMANDS: [u8; 20] = [
    0, 8, 9, 10, 12, 13, 16, 17, 18, 22, 23, 24, 25, 32, 33, 38, 41, 51, 55, 6,
];

/// Maximum number of bytes that a script sends over the bus; many short scripts find more than a few
/// long ones.
const BYTES_MAX: u64 = 6000;

fn card(options: Options) -> (SpiCard, Clock) {
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        let mut profile = Profile::named("class10-16g").expect("class10-16g is a bundled card");
        // Use as few pages as possible, because creating pages takes time.
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
    (card.expect("the options are in range"), clock)
}

/// Plays the script on three cards: byte by byte, in runs of bytes, and byte by byte at the times of the first card.
/// All must send the same bytes at the same time. Returns the number of bytes exchanged.
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
    let (mut fast, fast_clock) = card(options);
    let (mut timed, timed_clock) = card(options);
    while !bytes.0.is_empty() && slow.count().bytes < BYTES_MAX {
        let mut step = step(&mut bytes);
        for (card, clock) in [(&mut slow, &slow_clock), (&mut fast, &fast_clock)] {
            clock.advance_ns(step.delay_ns);
            if let Some(select) = step.select {
                card.select(select);
            }
            if let Some(event) = step.event {
                apply(card, event);
            }
        }
        // Between the bytes, only an event sets the clock of this card.
        if let Some(select) = step.select {
            timed.select(select);
        }
        if let Some(event) = step.event {
            timed_clock.advance_to_ns(slow_clock.now_ns());
            apply(&mut timed, event);
        }
        let exchange = |&byte: &u8| {
            let start_ns = slow_clock.now_ns();
            let received = slow.exchange(byte);
            let end_ns = slow_clock.now_ns();
            assert_eq!(timed.exchange_at(start_ns, end_ns, byte), received);
            assert_eq!(timed_clock.now_ns(), end_ns);
            received
        };
        let received: Vec<u8> = step.sent.iter().map(exchange).collect();
        fast.exchange_in_place(&mut step.sent);
        assert_eq!(received, step.sent);
        assert_eq!(slow_clock.now_ns(), fast_clock.now_ns());
        assert_eq!(slow.count(), fast.count());
        assert_eq!(slow.count(), timed.count());
        assert_eq!(slow.is_powered(), fast.is_powered());
    }
    let stored = |card: &SpiCard| {
        let mut data = [[0; 512]; 64];
        card.card().load(0, &mut data);
        data
    };
    assert!(stored(&slow) == stored(&fast));
    assert!(stored(&slow) == stored(&timed));
    slow.count()
}

/// One step of the script.
#[derive(Default)]
struct Step {
    select: Option<bool>,
    delay_ns: u64,
    event: Option<Event>,
    sent: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Event {
    PowerCut,
    PowerOn,
    /// A fault, with the number of bytes from now until it happens.
    Fault(u64, Fault),
}

fn step(bytes: &mut Bytes) -> Step {
    let mut step = Step::default();
    let sent = &mut step.sent;
    match bytes.next() % 14 {
        0 => step.select = Some(!bytes.next().is_multiple_of(4)),
        1 => step.delay_ns = u64::from(bytes.next()) * 1_000_000,
        2 => sent.push(bytes.next()),
        // Resets the card and starts the initialisation; step 12 completes it.
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
            let is_multiple = bytes.next() % 2 == 1;
            any_command(sent, if is_multiple { 25 } else { 24 }, bytes);
            block(sent, if is_multiple { 0xFC } else { 0xFE }, bytes);
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
        _ => step.event = Some(event(bytes)),
    }
    step
}

fn event(bytes: &mut Bytes) -> Event {
    let (kind, number) = (bytes.next() % 16, bytes.next());
    // The fault happens up to one and a half blocks from now.
    let after = u64::from(number) * 3;
    let bit = number % 8;
    Event::Fault(
        after,
        match kind {
            0 => return Event::PowerCut,
            1 => return Event::PowerOn,
            2 => Fault::PowerCut,
            3 => Fault::Pull {
                out_ns: u64::from(bytes.next()) * 1_000,
            },
            4 => Fault::LoseCommand,
            5..8 => Fault::FlipToCard { bit },
            8..13 => Fault::FlipToHost { bit },
            _ => Fault::Busy {
                extra_ns: u64::MAX >> (bytes.next() % 64),
            },
        },
    )
}

fn apply(card: &mut SpiCard, event: Event) {
    match event {
        Event::PowerCut => card.power_cut(),
        Event::PowerOn => card.power_on(),
        Event::Fault(after, fault) => card.inject(card.count().bytes + after, fault),
    }
}

/// Sends a block of equal bytes, usually with the right checksum.
fn block(sent: &mut Vec<u8>, token: u8, bytes: &mut Bytes) {
    let data = [bytes.next(); 512];
    sent.push(token);
    sent.extend(data);
    let sum = crc::crc16(&data) ^ u16::from(bytes.next() / 128);
    sent.extend(sum.to_be_bytes());
}

/// Sends a command for a block near the start of the card, or sometimes past the end of the card, with
/// filler for the response.
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
