//! A host controller for the SD bus that acts like a hardware controller: it observes the minimum clocks
//! between transfers, checks responses and blocks, and applies timeouts. The caller decides what to send.

use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, SdBusCard, Width};
use cardiograph_sim_card::wire::{Options, crc};
use cardiograph_sim_card::{Block, Card, Clock, Profile, Seed};

/// Minimum number of clocks from a response to the next command (NRC) or to a block (NWR), from 4.12.4.
const NRC: u64 = 8;
const NWR: u32 = 2;
/// Maximum number of clocks from a command to its response (NCR).
const NCR_MAX: u32 = 64;
/// Timeouts in clocks at 50 MHz: 100 ms for a block to read; 20 s for busy, far more than the 250 ms of
/// 4.6.2.
const READ_CLOCKS_MAX: u32 = 5_000_000;
const BUSY_CLOCKS_MAX: u32 = 1_000_000_000;

pub const BLOCKS: u32 = (64 << 20) / 512;

pub struct Controller {
    pub card: SdBusCard,
    width: Width,
    next_command: u64,
}

/// Returns a card of 64 MiB; equal seeds give equal cards.
pub fn card(seed: u64) -> Card {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = u64::from(BLOCKS) * 512;
    Card::new(&profile, Seed::new(seed))
}

impl Controller {
    pub fn new(card: Card, options: Options, clock_hz: u32) -> Controller {
        let card = SdBusCard::new(card, options, Clock::default(), clock_hz).unwrap();
        Controller {
            card,
            width: Width::One,
            next_command: 0,
        }
    }

    /// Sends the clocks that a card needs after power-on.
    pub fn power_up(&mut self) {
        self.card.idle(80);
    }

    pub fn set_width(&mut self, width: Width) {
        self.width = width;
        self.card.set_width(width);
    }

    /// Sends a command after NRC, and waits for the response or its timeout.
    pub fn send(&mut self, command: Command) -> Response {
        let early = self.next_command.saturating_sub(self.card.clocks());
        self.card.idle(early as u32);
        let response = self.card.command(command);
        if response == Response::None {
            self.card.idle(NCR_MAX);
        }
        self.next_command = self.card.clocks() + NRC;
        response
    }

    /// Sends a command and checks the response; returns the 32 bits of a short response.
    pub fn command(&mut self, index: u8, argument: u32) -> Option<u32> {
        let response = self.send(Command::new(index, argument));
        if let Response::Short(bytes) = response {
            // R3 has ones in place of index and checksum.
            let is_bare = bytes[0] == 0x3F && bytes[5] == 0xFF;
            let sealed = bytes[0] == index && bytes[5] == crc::crc7(&bytes[..5]) << 1 | 1;
            assert!(is_bare || sealed, "{bytes:02X?}");
        }
        response.argument()
    }

    /// Sends an application command to the card with the given address.
    pub fn app(&mut self, rca: u16, index: u8, argument: u32) -> Option<u32> {
        self.command(55, u32::from(rca) << 16)?;
        self.command(index, argument)
    }

    /// Sends a block to the card, after NWR clocks.
    pub fn write(&mut self, data: &Block) -> Option<CrcStatus> {
        self.card.idle(NWR);
        self.card.write_block(data, self.width.sums(data))
    }

    /// Receives a block from the card and checks its checksums; returns false if no block arrived.
    pub fn read(&mut self, data: &mut [u8]) -> bool {
        let sums = self.card.read_block(data, READ_CLOCKS_MAX);
        if let Some(sums) = &sums {
            assert!(self.width.sums_match(data, sums));
        }
        sums.is_some()
    }

    /// Waits for the end of busy; returns false on timeout.
    pub fn wait(&mut self) -> bool {
        self.card.wait(BUSY_CLOCKS_MAX)
    }

    /// Initialises the card from power-on to `tran`, with the address 1 (4.2.3, figure 4-2).
    pub fn start(&mut self, width: Width) {
        self.power_up();
        self.command(0, 0);
        self.command(8, 0x1AA);
        self.app(0, 41, 0x40FF_8000).unwrap();
        self.card.clock().advance_ns(1_000_000_000);
        assert!(self.app(0, 41, 0x40FF_8000).unwrap() >> 31 == 1);
        self.send(Command::new(2, 0));
        assert_eq!(self.command(3, 0).unwrap() >> 16, 1);
        self.command(7, 1 << 16).unwrap();
        if width == Width::Four {
            self.app(1, 6, 2).unwrap();
            self.set_width(width);
        }
    }
}
