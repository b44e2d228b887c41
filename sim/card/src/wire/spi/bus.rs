//! The host's end of the wire, as the `embedded-hal` traits have it: blocking and async.
//!
//! Both exchange their bytes at once and move the clock on by them: the processor does nothing else
//! meanwhile, and timers of a world that fall due are late by as much. Between two calls of the async
//! ends a driver may wait as it likes.

use super::card::SpiCard;
use crate::{Card, Clock};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal::spi::{self, Operation};
use std::cell::{Cell, RefCell, RefMut};
use std::convert::Infallible;
use std::rc::Rc;

/// A card with the wires to it; clones lead to the same card.
#[derive(Clone)]
pub struct Wire(Rc<RefCell<SpiCard>>, Rc<Cell<Gaps>>);

/// CPU time that passes with each byte, in ns.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
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

    /// The card, to exchange bytes with in one go.
    fn line(&self) -> Line<'_> {
        Line {
            card: self.card(),
            gaps: self.1.get(),
        }
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

/// A card that is held, and what time passes between its bytes.
struct Line<'a> {
    card: RefMut<'a, SpiCard>,
    gaps: Gaps,
}

impl Line<'_> {
    fn write(&mut self, words: &[u8]) {
        self.card.write(words);
        self.pass(self.gaps.send_ns, words.len());
    }

    fn read(&mut self, words: &mut [u8]) {
        words.fill(0xFF);
        self.card.exchange_in_place(words);
        self.pass(self.gaps.receive_ns, words.len());
    }

    fn exchange(&mut self, words: &mut [u8]) {
        // Who only listens leaves the line high.
        let gap_ns = match self.gaps == Gaps::default() || words.iter().all(|&word| word == 0xFF) {
            true => self.gaps.receive_ns,
            false => self.gaps.send_ns,
        };
        self.card.exchange_in_place(words);
        self.pass(gap_ns, words.len());
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) {
        let (both, rest) = read.split_at_mut(write.len().min(read.len()));
        let (sent, more) = write.split_at(both.len());
        both.copy_from_slice(sent);
        self.exchange(both);
        self.read(rest);
        self.write(more);
    }

    fn pass(&mut self, gap_ns: u64, bytes: usize) {
        if gap_ns > 0 {
            self.card.clock().advance_ns(gap_ns * bytes as u64);
        }
    }
}

impl spi::SpiBus for SpiBus {
    fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.0.line().read(words);
        Ok(())
    }

    fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        self.0.line().write(words);
        Ok(())
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.0.line().transfer(read, write);
        Ok(())
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.0.line().exchange(words);
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
        let mut line = self.0.0.line();
        line.card.select(true);
        for operation in operations {
            match operation {
                Operation::Read(words) => line.read(words),
                Operation::Write(words) => line.write(words),
                Operation::Transfer(read, write) => line.transfer(read, write),
                Operation::TransferInPlace(words) => line.exchange(words),
                Operation::DelayNs(ns) => line.card.clock().advance_ns((*ns).into()),
            }
        }
        line.card.select(false);
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
