//! A simulated card on a board, as the FAT library sees it: behind embedded-sdmmc's own driver, with
//! every byte on the wire.

use cardiograph_sim_card::wire::{Delay, Kind, Options, SpiCard, SpiDevice, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Clock};
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use embedded_sdmmc::{Block, BlockCount, BlockDevice, BlockIdx, SdCard, SdCardError};
use std::cell::Cell;
use std::rc::Rc;

/// Clock until a card is ready, in Hz (SD Physical Layer Simplified Specification, 4.2.1).
const INIT_CLOCK_HZ: u32 = 400_000;
/// The largest card that counts in bytes.
const STANDARD_BYTES_MAX: u64 = 2 << 30;

/// How often the driver is asked again when it gives up on a busy card: some 12 s in all.
const RETRIES_MAX: u32 = 100;

pub(crate) struct CardDevice {
    driver: SdCard<SpiDevice, Delay>,
    wire: Wire,
    clock: Clock,
    block_ns: u64,
    /// How often the driver gave up on a busy card.
    time_outs: Rc<Cell<u64>>,
}

impl CardDevice {
    /// Powers the card up and brings it to where it takes blocks, at the board's clock.
    pub(crate) fn new(card: Card, board: &Board, clock: Clock) -> Result<CardDevice, SdCardError> {
        let options = Options {
            kind: match card.blocks() * BLOCK_BYTES as u64 {
                0..=STANDARD_BYTES_MAX => Kind::Standard,
                _ => Kind::High,
            },
            // What it may be is checked when a board is read.
            ncr_bytes: board.spi.ncr_bytes.min(8) as u8,
            ..Options::default()
        };
        let card = SpiCard::new(card, options, clock.clone(), INIT_CLOCK_HZ);
        let wire = Wire::new(card.map_err(|_| SdCardError::CardNotFound)?);
        wire.power_up();
        // Checksums cost this computer more than all the rest, and the card's time nothing.
        let without_crc = AcquireOpts {
            use_crc: false,
            ..AcquireOpts::default()
        };
        let driver = SdCard::new_with_options(wire.device(), wire.delay(), without_crc);
        driver.num_bytes()?;
        wire.card()
            .set_clock_hz(board.spi.clock_hz)
            .map_err(|_| SdCardError::Transport)?;
        Ok(CardDevice {
            driver,
            wire,
            clock,
            block_ns: u64::from(board.driver.block_us) * 1000,
            time_outs: Rc::default(),
        })
    }

    /// How often the driver has given up on a busy card; goes on counting.
    pub(crate) fn time_outs(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.time_outs)
    }

    /// Takes the card off the board.
    pub(crate) fn into_card(self) -> Option<Card> {
        drop(self.driver);
        self.wire.into_card()
    }

    fn spend(&self, blocks: usize) {
        self.clock.advance_ns(self.block_ns * blocks as u64);
    }

    /// Asks the driver, and again while it gives up on a busy card: the stall is to be measured, not
    /// to end the run.
    fn insist<T>(&self, mut ask: impl FnMut() -> Result<T, SdCardError>) -> Result<T, SdCardError> {
        let mut result = ask();
        for _ in 0..RETRIES_MAX {
            let Err(SdCardError::TimeoutWaitNotBusy) = result else {
                break;
            };
            self.time_outs.set(self.time_outs.get() + 1);
            result = ask();
        }
        result
    }
}

impl BlockDevice for CardDevice {
    type Error = SdCardError;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), SdCardError> {
        self.spend(blocks.len());
        self.insist(|| self.driver.read(blocks, start))
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), SdCardError> {
        self.spend(blocks.len());
        self.insist(|| self.driver.write(blocks, start))
    }

    fn num_blocks(&self) -> Result<BlockCount, SdCardError> {
        self.driver.num_blocks()
    }
}
