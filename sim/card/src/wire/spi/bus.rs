//! The host's end of the wire, as the `embedded-hal` traits have it: blocking and async.
//!
//! Both exchange their bytes at once and move the clock on by them: the processor does nothing else
//! meanwhile, and timers of a world that fall due are late by as much. Between two calls of the async
//! ends a driver may wait as it likes.

use super::card::SpiCard;
use crate::{Card, Clock};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal::spi::{self, Operation, SpiBus as _};
use std::cell::{Cell, RefCell, RefMut};
use std::convert::Infallible;
use std::rc::Rc;

/// A card with the wires to it; clones lead to the same card.
#[derive(Clone)]
pub struct Wire(Rc<RefCell<SpiCard>>, Rc<Cell<Gaps>>);

/// CPU time that passes with each byte, in ns.
#[derive(Clone, Copy, Default)]
struct Gaps {
    send_ns: u64,
    receive_ns: u64,
}

/// The bus without chip select.
pub struct SpiBus(Wire);

/// Chip select: low is selected.
pub struct ChipSelect(Wire);

/// The bus with chip select pulled low for each transaction.
pub struct SpiDevice(SpiBus);

/// Waits in virtual time, by moving the clock on: a processor that spins.
///
/// Nothing else runs meanwhile, not even where the wait is async. Tasks of a
/// [`World`](cardiograph_sim_world::World) on this clock wait with its
/// [`Handle`](cardiograph_sim_world::Handle), which is a delay too and lets others run.
#[derive(Clone)]
pub struct Delay(Clock);

impl Wire {
    /// Connects a card.
    pub fn new(card: SpiCard) -> Wire {
        Wire(Rc::new(RefCell::new(card)), Rc::default())
    }

    /// CPU time that passes with each byte sent and with each received, in ns, on top of its clocks:
    /// what a slow CPU needs between bytes.
    pub fn set_gaps(&self, send_ns: u32, receive_ns: u32) {
        self.1.set(Gaps {
            send_ns: send_ns.into(),
            receive_ns: receive_ns.into(),
        });
    }

    fn pass_gaps(&self, bytes: usize, sends: bool) {
        let Gaps {
            send_ns,
            receive_ns,
        } = self.1.get();
        let gap_ns = if sends { send_ns } else { receive_ns };
        self.card().clock().advance_ns(gap_ns * bytes as u64);
    }

    /// The card's end of the wire.
    ///
    /// # Panics
    /// If it is held already.
    pub fn card(&self) -> RefMut<'_, SpiCard> {
        self.0.borrow_mut()
    }

    /// The bus, for drivers that move chip select themselves.
    pub fn bus(&self) -> SpiBus {
        SpiBus(self.clone())
    }

    /// The pin for such drivers.
    pub fn chip_select(&self) -> ChipSelect {
        ChipSelect(self.clone())
    }

    /// The bus, for drivers that do not.
    pub fn device(&self) -> SpiDevice {
        SpiDevice(self.bus())
    }

    /// A delay on the same clock.
    pub fn delay(&self) -> Delay {
        Delay(self.card().clock().clone())
    }

    /// The 80 clocks with chip select high that a card wants first. Drivers that see an `SpiDevice`
    /// cannot send them.
    pub fn power_up(&self) {
        let mut card = self.card();
        card.select(false);
        card.write(&[0xFF; 10]);
    }

    /// Takes the card off the wire, once nothing else holds it.
    pub fn into_card(self) -> Option<Card> {
        let card = Rc::into_inner(self.0)?;
        Some(card.into_inner().into_card())
    }
}

impl spi::ErrorType for SpiBus {
    type Error = Infallible;
}

impl spi::SpiBus for SpiBus {
    fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        words.fill(0xFF);
        self.transfer_in_place(words)
    }

    fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        self.0.card().write(words);
        self.0.pass_gaps(words.len(), true);
        Ok(())
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        let (both, rest) = read.split_at_mut(write.len().min(read.len()));
        both.copy_from_slice(&write[..both.len()]);
        self.transfer_in_place(both)?;
        self.read(rest)?;
        self.write(&write[both.len()..])
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        // Who only listens leaves the line high.
        let sends = words.iter().any(|&word| word != 0xFF);
        self.0.card().exchange_in_place(words);
        self.0.pass_gaps(words.len(), sends);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl embedded_hal_async::spi::SpiBus for SpiBus {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        spi::SpiBus::read(self, words)
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        spi::SpiBus::write(self, words)
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        spi::SpiBus::transfer(self, read, write)
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        spi::SpiBus::transfer_in_place(self, words)
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl digital::ErrorType for ChipSelect {
    type Error = Infallible;
}

impl OutputPin for ChipSelect {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.card().select(true);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.card().select(false);
        Ok(())
    }
}

impl spi::ErrorType for SpiDevice {
    type Error = Infallible;
}

impl spi::SpiDevice for SpiDevice {
    fn transaction(&mut self, operations: &mut [Operation<u8>]) -> Result<(), Infallible> {
        self.0.0.card().select(true);
        for operation in operations {
            match operation {
                Operation::Read(words) => self.0.read(words)?,
                Operation::Write(words) => self.0.write(words)?,
                Operation::Transfer(read, write) => self.0.transfer(read, write)?,
                Operation::TransferInPlace(words) => self.0.transfer_in_place(words)?,
                Operation::DelayNs(ns) => self.0.0.delay().delay_ns(*ns),
            }
        }
        self.0.0.card().select(false);
        Ok(())
    }
}

impl embedded_hal_async::spi::SpiDevice for SpiDevice {
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u8>],
    ) -> Result<(), Infallible> {
        spi::SpiDevice::transaction(self, operations)
    }
}

impl DelayNs for Delay {
    fn delay_ns(&mut self, ns: u32) {
        self.0.advance_ns(ns.into());
    }
}

impl embedded_hal_async::delay::DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        self.0.advance_ns(ns.into());
    }
}
