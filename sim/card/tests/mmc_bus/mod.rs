//! The host controller as an implementation of `MmcBus` of the crate sdio. The driver decides which commands
//! to send, and evaluates the responses.

use crate::controller::Controller;
use cardiograph_sim_card::Clock;
use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response as Bits, Width};
use embedded_hal_async::delay::DelayNs;
use sdio::{
    BlockReadCommand, BlockWriteCommand, BusWidth, ByteReadCommand, ByteWriteCommand,
    ControlCommand, MmcBus, MmcError, Response, ResponseLen,
};
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A controller shared between the driver and the test.
#[derive(Clone)]
pub struct Bus {
    pub controller: Rc<RefCell<Controller>>,
    pub width: BusWidth,
    pub clock_hz_max: u32,
}

/// A delay in virtual time.
pub struct Delay(pub Clock);

impl DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        self.0.advance_ns(ns.into());
    }
}

/// Polls a future until it completes: only the future itself advances time.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

impl Bus {
    fn exchange<R: Response>(&self, index: u8, argument: u32) -> Result<R, MmcError> {
        let bits = self
            .controller
            .borrow_mut()
            .send(Command::new(index, argument));
        let mut words = [0; 4];
        match (R::LEN, bits) {
            (ResponseLen::Zero, _) => (),
            (ResponseLen::R48, Bits::Short([_, a, b, c, d, _])) => {
                words[0] = u32::from_be_bytes([a, b, c, d]);
            }
            (ResponseLen::R136, Bits::Long(_)) => {
                // The driver expects the lowest word first.
                let register = bits.register().unwrap_or_default();
                let parts = register.as_chunks::<4>().0.iter().rev();
                for (word, part) in words.iter_mut().zip(parts) {
                    *word = u32::from_be_bytes(*part);
                }
            }
            _ => return Err(MmcError::Timeout),
        }
        Ok(R::from_words(&words))
    }
}

impl MmcBus for Bus {
    async fn send_command<'a, C>(&mut self, cmd: C) -> Result<C::Resp<'a>, MmcError>
    where
        C: ControlCommand + 'a,
    {
        self.exchange(cmd.index(), cmd.arg())
    }

    async fn read_blocks<'a, C>(
        &mut self,
        mut cmd: C,
        auto_stop: bool,
    ) -> Result<C::Resp<'a>, MmcError>
    where
        C: BlockReadCommand + 'a,
    {
        assert!(!auto_stop, "the controller does not claim to support it");
        let response = self.exchange(cmd.index(), cmd.arg())?;
        let bytes = cmd.block_size().len();
        for block in cmd.buf().chunks_mut(bytes) {
            if !self.controller.borrow_mut().read(block) {
                return Err(MmcError::Timeout);
            }
        }
        Ok(response)
    }

    async fn write_blocks<'a, C>(
        &mut self,
        cmd: C,
        auto_stop: bool,
    ) -> Result<C::Resp<'a>, MmcError>
    where
        C: BlockWriteCommand + 'a,
    {
        assert!(!auto_stop, "the controller does not claim to support it");
        let response = self.exchange(cmd.index(), cmd.arg())?;
        let mut controller = self.controller.borrow_mut();
        for block in cmd.buf().as_chunks().0 {
            // The controller waits for busy between blocks; the driver waits after the last block, using
            // CMD13.
            if !controller.wait() {
                return Err(MmcError::Busy);
            }
            match controller.write(block) {
                Some(CrcStatus::Positive) => (),
                Some(CrcStatus::Negative) => return Err(MmcError::Crc),
                Some(CrcStatus::Failed) => return Err(MmcError::Io),
                None => return Err(MmcError::Timeout),
            }
        }
        Ok(response)
    }

    async fn read_bytes<'a, C>(&mut self, _cmd: C) -> Result<C::Resp<'a>, MmcError>
    where
        C: ByteReadCommand + 'a,
    {
        Err(MmcError::Unsupported)
    }

    async fn write_bytes<'a, C>(&mut self, _cmd: C) -> Result<C::Resp<'a>, MmcError>
    where
        C: ByteWriteCommand + 'a,
    {
        Err(MmcError::Unsupported)
    }

    async fn init_idle(&mut self, hz: u32) -> Result<(), MmcError> {
        self.set_bus(BusWidth::W1, hz)?;
        self.controller.borrow_mut().power_up();
        Ok(())
    }

    fn set_bus(&mut self, width: BusWidth, hz: u32) -> Result<(), MmcError> {
        let mut controller = self.controller.borrow_mut();
        controller.set_width(match width {
            BusWidth::W1 => Width::One,
            BusWidth::W4 => Width::Four,
            BusWidth::W8 => return Err(MmcError::BusWidth),
        });
        let set = controller.card.set_clock_hz(hz);
        set.map_err(|_| MmcError::Unsupported)
    }

    fn supports_mmc(&self) -> bool {
        true
    }

    fn supports_bus_width(&self) -> BusWidth {
        self.width
    }

    fn supports_frequency(&self) -> u32 {
        self.clock_hz_max
    }
}
