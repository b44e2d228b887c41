//! The host's end of the SPI bus as `embedded-hal` traits, blocking and async.
//!
//! Both kinds exchange their bytes at once and advance the clock accordingly: the processor does nothing
//! else during a transfer, and timers of a world that are due during the transfer fire late. Between two
//! calls, an async driver may wait for as long as it likes.

use super::card::SpiCard;
use crate::{Card, Clock};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal::spi::{self, Operation};
use std::cell::{Cell, RefCell, RefMut};
use std::convert::Infallible;
use std::rc::Rc;

/// A card with its bus; clones share the card.
#[derive(Clone)]
pub struct Wire(Rc<RefCell<SpiCard>>, Rc<Cell<Gaps>>);

/// CPU time per byte that the host adds, in ns.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Gaps {
    send_ns: u64,
    receive_ns: u64,
}

/// The bus without chip select.
pub struct SpiBus(Wire);

/// Chip select: low is selected.
pub struct ChipSelect(Wire);

/// The bus with chip select asserted for each transaction.
pub struct SpiDevice(SpiBus);

/// A delay in virtual time that advances the clock, like a processor in a busy loop.
///
/// Nothing else runs during the delay, not even in its async form. Tasks of a
/// [`World`](cardiograph_sim_world::World) on this clock use its [`Handle`](cardiograph_sim_world::Handle)
/// instead, which is a delay too and lets other tasks run.
#[derive(Clone)]
pub struct Delay(Clock);

impl Wire {
    /// Connects a card to the host.
    pub fn new(card: SpiCard) -> Wire {
        Wire(Rc::new(RefCell::new(card)), Rc::default())
    }

    /// Sets the CPU time per byte sent and per byte received, in ns, in addition to the clocks of the byte:
    /// the overhead of a slow CPU.
    pub fn set_gaps(&self, send_ns: u32, receive_ns: u32) {
        self.1.set(Gaps {
            send_ns: send_ns.into(),
            receive_ns: receive_ns.into(),
        });
    }

    /// Borrows the card for a series of transfers.
    fn bus_transfer(&self) -> BusTransfer<'_> {
        BusTransfer {
            card: self.card(),
            gaps: self.1.get(),
        }
    }

    /// Borrows the card, the other end of the bus.
    ///
    /// # Panics
    /// If the card is borrowed already.
    pub fn card(&self) -> RefMut<'_, SpiCard> {
        self.0.borrow_mut()
    }

    /// Returns the bus, for drivers that control chip select themselves.
    pub fn bus(&self) -> SpiBus {
        SpiBus(self.clone())
    }

    /// Returns the chip select pin, for drivers that control it themselves.
    pub fn chip_select(&self) -> ChipSelect {
        ChipSelect(self.clone())
    }

    /// Returns the bus with chip select, for drivers that do not control chip select.
    pub fn device(&self) -> SpiDevice {
        SpiDevice(self.bus())
    }

    /// Returns a delay on the card's virtual clock.
    pub fn delay(&self) -> Delay {
        Delay(self.card().clock().clone())
    }

    /// Sends the 80 clocks with chip select high that a card needs after power-on. Drivers with an
    /// `SpiDevice` cannot send them.
    pub fn power_up(&self) {
        let mut card = self.card();
        card.select(false);
        card.write(&[0xFF; 10]);
    }

    /// Takes the card off the bus; returns `None` if the bus is still shared.
    pub fn into_card(self) -> Option<Card> {
        let card = Rc::into_inner(self.0)?;
        Some(card.into_inner().into_card())
    }
}

impl spi::ErrorType for SpiBus {
    type Error = Infallible;
}

/// A borrowed card with the CPU time between its bytes.
struct BusTransfer<'a> {
    card: RefMut<'a, SpiCard>,
    gaps: Gaps,
}

impl BusTransfer<'_> {
    fn write(&mut self, words: &[u8]) {
        self.card.write(words);
        self.advance(self.gaps.send_ns, words.len());
    }

    fn read(&mut self, words: &mut [u8]) {
        words.fill(0xFF);
        self.card.exchange_in_place(words);
        self.advance(self.gaps.receive_ns, words.len());
    }

    fn exchange(&mut self, words: &mut [u8]) {
        // A host that only receives keeps MOSI high.
        let gap_ns = match self.gaps == Gaps::default() || words.iter().all(|&word| word == 0xFF) {
            true => self.gaps.receive_ns,
            false => self.gaps.send_ns,
        };
        self.card.exchange_in_place(words);
        self.advance(gap_ns, words.len());
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) {
        let (both, rest) = read.split_at_mut(write.len().min(read.len()));
        let (sent, more) = write.split_at(both.len());
        both.copy_from_slice(sent);
        self.exchange(both);
        self.read(rest);
        self.write(more);
    }

    fn advance(&mut self, gap_ns: u64, bytes: usize) {
        if gap_ns > 0 {
            self.card.clock().advance_ns(gap_ns * bytes as u64);
        }
    }
}

impl spi::SpiBus for SpiBus {
    fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.0.bus_transfer().read(words);
        Ok(())
    }

    fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        self.0.bus_transfer().write(words);
        Ok(())
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.0.bus_transfer().transfer(read, write);
        Ok(())
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.0.bus_transfer().exchange(words);
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
        let mut bus_transfer = self.0.0.bus_transfer();
        bus_transfer.card.select(true);
        for operation in operations {
            match operation {
                Operation::Read(words) => bus_transfer.read(words),
                Operation::Write(words) => bus_transfer.write(words),
                Operation::Transfer(read, write) => bus_transfer.transfer(read, write),
                Operation::TransferInPlace(words) => bus_transfer.exchange(words),
                Operation::DelayNs(ns) => bus_transfer.card.clock().advance_ns((*ns).into()),
            }
        }
        bus_transfer.card.select(false);
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
