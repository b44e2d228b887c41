//! A simulated card with the driver on its SPI bus.

use cardiograph_card::{Block, Card};
use cardiograph_sim_card::wire::{self, ChipSelect, Fault, Kind, Options, SpiBus, SpiCard, Wire};
use cardiograph_sim_card::{Card as Flash, Clock, Defects, Profile, Seed};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

pub const CLOCK_HZ: u32 = cardiograph_card::CLOCK_HZ;
pub const BYTE_NS: u64 = 320;

pub type Error = cardiograph_card::Error<Infallible, Infallible>;
pub type SetClock = Box<dyn FnMut(&mut SpiBus, u32)>;
pub type Driver<Delay = wire::Delay> = Card<SpiBus, ChipSelect, Delay, SetClock>;

/// A card with eight blocks per page and as few pages as possible, because creating pages takes time.
pub static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 16 << 20;
    profile
});

pub const OPTIONS: Options = Options {
    kind: Kind::High,
    ncr_bytes: 1,
    nac_bytes: 1,
    ncr_clocks: 2,
    nac_clocks: 2,
    init_us: 0,
    write_protected: false,
    speed_class: 10,
    au_bytes: 4 << 20,
    serial: 1,
};

pub fn flash() -> Flash {
    Flash::with_defects(&PROFILE, Defects::default(), Seed::new(1))
}

pub struct Rig {
    pub wire: Wire,
    pub driver: Driver,
}

pub fn driver<Delay>(wire: &Wire, delay: Delay) -> Driver<Delay> {
    let (card, bus, pin) = (wire.clone(), wire.bus(), wire.chip_select());
    let set_clock: SetClock = Box::new(move |_, hz| card.card().set_clock_hz(hz).unwrap());
    Card::new(bus, pin, delay, set_clock, CLOCK_HZ)
}

/// Polls a future until it completes: no future in these tests waits for another task.
pub fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

impl Rig {
    pub fn with(flash: Flash, options: Options) -> Rig {
        let card = SpiCard::new(flash, options, Clock::default(), CLOCK_HZ);
        let wire = Wire::new(card.unwrap());
        let driver = driver(&wire, wire.delay());
        Rig { wire, driver }
    }

    pub fn new() -> Rig {
        Rig::with(flash(), OPTIONS)
    }

    /// Returns a rig with an initialised card.
    pub fn ready() -> Rig {
        let mut rig = Rig::new();
        rig.acquire().unwrap();
        rig
    }

    pub fn acquire(&mut self) -> Result<(), Error> {
        done(self.driver.acquire())
    }

    pub fn read(&mut self, start: u32, blocks: usize) -> Result<Vec<Block>, Error> {
        let mut data = vec![[0; 512]; blocks];
        done(self.driver.read(start, &mut data)).map(|()| data)
    }

    pub fn write(&mut self, start: u32, data: &[Block]) -> Result<(), Error> {
        done(self.driver.write(start, data)).map_err(|error| error.cause)
    }

    pub fn begin(&mut self, start: u32, hint: u32) -> Result<(), Error> {
        done(self.driver.begin(start, hint)).map_err(|error| error.cause)
    }

    pub fn push(&mut self, data: &Block) -> Result<(), Error> {
        done(self.driver.push(data)).map_err(|error| error.cause)
    }

    pub fn end(&mut self) -> Result<(), Error> {
        done(self.driver.end()).map_err(|error| error.cause)
    }

    pub fn bytes(&self) -> u64 {
        self.wire.card().count().bytes
    }

    /// Injects a fault after `after` more bytes.
    pub fn inject(&self, after: u64, fault: Fault) {
        let byte = self.bytes() + after;
        self.wire.card().inject(byte, fault);
    }

    pub fn stored(&self, block: u32) -> Block {
        let mut data = [[0; 512]];
        self.wire.card().card().load(block.into(), &mut data);
        data[0]
    }
}

/// Returns the test data of a block: no two blocks or versions agree at any byte.
pub fn data(version: u8, block: u32) -> Block {
    std::array::from_fn(|at| {
        (at as u8)
            .wrapping_add(version.wrapping_mul(61))
            .wrapping_add(block as u8)
    })
}

pub fn run(version: u8, start: u32, blocks: u32) -> Vec<Block> {
    (start..start + blocks)
        .map(|block| data(version, block))
        .collect()
}
