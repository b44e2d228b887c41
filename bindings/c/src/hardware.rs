//! The callbacks of C as bus, chip select, delay and clock.

use cardiograph_card::SetClock;
use core::convert::Infallible;
use core::ffi::{c_int, c_void};
use core::future::poll_fn;
use core::ptr::{null, null_mut};
use core::task::Poll;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{self, SpiBus};

/// Callbacks as C passes them; `cardiograph_hardware` in the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Callbacks {
    context: *mut c_void,
    spi_transfer: Option<extern "C" fn(*mut c_void, *const u8, *mut u8, usize) -> c_int>,
    select: Option<extern "C" fn(*mut c_void, bool)>,
    set_clock_hz: Option<extern "C" fn(*mut c_void, u32)>,
    now_us: Option<extern "C" fn(*mut c_void) -> u64>,
    panic: Option<extern "C" fn()>,
}

/// Callbacks that are all there.
#[derive(Clone, Copy)]
pub struct Hardware {
    context: *mut c_void,
    spi_transfer: extern "C" fn(*mut c_void, *const u8, *mut u8, usize) -> c_int,
    select: extern "C" fn(*mut c_void, bool),
    set_clock_hz: extern "C" fn(*mut c_void, u32),
    now_us: extern "C" fn(*mut c_void) -> u64,
    pub panic: extern "C" fn(),
}

impl Hardware {
    /// Returns `None` if a callback is missing.
    pub fn of(callbacks: &Callbacks) -> Option<Hardware> {
        Some(Hardware {
            context: callbacks.context,
            spi_transfer: callbacks.spi_transfer?,
            select: callbacks.select?,
            set_clock_hz: callbacks.set_clock_hz?,
            now_us: callbacks.now_us?,
            panic: callbacks.panic?,
        })
    }

    pub fn now_us(&self) -> u64 {
        (self.now_us)(self.context)
    }

    fn exchange(&self, send: *const u8, receive: *mut u8, bytes: usize) -> Result<(), BusError> {
        match (self.spi_transfer)(self.context, send, receive, bytes) {
            0 => Ok(()),
            _ => Err(BusError),
        }
    }
}

/// The callback of the bus reported a failure.
#[derive(Clone, Copy, Debug)]
pub struct BusError;

impl spi::Error for BusError {
    fn kind(&self) -> spi::ErrorKind {
        spi::ErrorKind::Other
    }
}

pub struct Bus(pub Hardware);

impl spi::ErrorType for Bus {
    type Error = BusError;
}

impl SpiBus for Bus {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<(), BusError> {
        self.0.exchange(null(), bytes.as_mut_ptr(), bytes.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), BusError> {
        self.0.exchange(bytes.as_ptr(), null_mut(), bytes.len())
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), BusError> {
        let both = read.len().min(write.len());
        self.0.exchange(write.as_ptr(), read.as_mut_ptr(), both)?;
        if read.len() > both {
            self.read(&mut read[both..]).await?;
        }
        if write.len() > both {
            self.write(&write[both..]).await?;
        }
        Ok(())
    }

    async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), BusError> {
        let at = bytes.as_mut_ptr();
        self.0.exchange(at, at, bytes.len())
    }

    async fn flush(&mut self) -> Result<(), BusError> {
        Ok(())
    }
}

pub struct SetHz;

impl SetClock<Bus> for SetHz {
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32) {
        (bus.0.set_clock_hz)(bus.0.context, hz);
    }
}

pub struct Select(pub Hardware);

impl digital::ErrorType for Select {
    type Error = Infallible;
}

impl OutputPin for Select {
    fn set_low(&mut self) -> Result<(), Infallible> {
        (self.0.select)(self.0.context, true);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        (self.0.select)(self.0.context, false);
        Ok(())
    }
}

/// Delays by the clock; the main loop polls.
pub struct Delay(pub Hardware);

impl DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        let end_us = self.0.now_us() + u64::from(ns.div_ceil(1000));
        poll_fn(|_| match self.0.now_us() >= end_us {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

pub struct Clock(pub Hardware);

impl cardiograph_recorder::Clock for Clock {
    fn now_us(&self) -> u64 {
        self.0.now_us()
    }
}
