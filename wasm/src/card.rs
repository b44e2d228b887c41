//! A card on the bus of an emulated board, and its record of stalls.

use cardiograph_sim_card::wire::{Options, SpiCard};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Clock, Profile, Seed};

/// Nominal clock of the bus, in Hz. The host states the time of each byte, so that it has no effect.
const BUS_HZ: u32 = 25_000_000;
/// Shortest busy time that counts as a stall, in ns.
const STALL_NS: u64 = 50_000_000;

/// A card on the bus of an emulated board.
pub struct BoardCard {
    card: SpiCard,
    busy_until_ns: u64,
    pub stalls: u32,
    pub stall_ns_max: u64,
}

impl BoardCard {
    /// Creates a card of a bundled profile with another capacity.
    pub fn new(profile: &str, seed: u64, capacity_bytes: u64) -> Result<BoardCard, String> {
        let profile = profile_of(profile, capacity_bytes)?;
        BoardCard::with(Card::new(&profile, Seed::new(seed)))
    }

    /// Continues with a saved card of the same profile and capacity.
    pub fn from_state(
        profile: &str,
        capacity_bytes: u64,
        state: &[u8],
    ) -> Result<BoardCard, String> {
        let profile = profile_of(profile, capacity_bytes)?;
        let card = Card::from_state(&profile, state).map_err(|error| error.to_string())?;
        BoardCard::with(card)
    }

    fn with(card: Card) -> Result<BoardCard, String> {
        let card = SpiCard::new(card, Options::default(), Clock::default(), BUS_HZ);
        Ok(BoardCard {
            card: card.map_err(|error| error.to_string())?,
            busy_until_ns: 0,
            stalls: 0,
            stall_ns_max: 0,
        })
    }

    pub fn exchange_at(&mut self, start_ns: u64, end_ns: u64, byte: u8) -> u8 {
        let received = self.card.exchange_at(start_ns, end_ns, byte);
        let busy_until_ns = self.card.busy_until_ns();
        if busy_until_ns > self.busy_until_ns {
            self.busy_until_ns = busy_until_ns;
            let busy_ns = busy_until_ns.saturating_sub(end_ns);
            self.stalls += u32::from(busy_ns >= STALL_NS);
            self.stall_ns_max = self.stall_ns_max.max(busy_ns);
        }
        received
    }

    pub fn select(&mut self, is_selected: bool) {
        self.card.select(is_selected);
    }

    pub fn set_power(&mut self, now_ns: u64, is_on: bool) {
        self.card.clock().advance_to_ns(now_ns);
        match is_on {
            true => self.card.power_on(),
            false => self.card.power_cut(),
        }
    }

    /// Stores whole blocks, bypassing the bus.
    pub fn store(&mut self, start: u64, bytes: &[u8]) {
        self.card.store(start, bytes.as_chunks::<BLOCK_BYTES>().0);
    }

    /// Reads whole blocks, bypassing the bus.
    pub fn load(&self, start: u64, bytes: &mut [u8]) {
        let blocks = bytes.as_chunks_mut::<BLOCK_BYTES>().0;
        self.card.card().load(start, blocks);
    }
}

fn profile_of(name: &str, capacity_bytes: u64) -> Result<Profile, String> {
    let mut profile = Profile::named(name).map_err(|error| error.to_string())?;
    profile.capacity_bytes = capacity_bytes;
    let checked = profile.check("the card");
    checked.map_err(|error| error.to_string())?;
    Ok(profile)
}
