//! The registers that identify a card: CID (5.2) and CSD (5.3).

use crate::card::{Operation, State};
use crate::limits::RETRIES;
use crate::transport::TransportError;
use crate::{Card, Error, SetClock};
use core::fmt;
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// Bytes of a CID or CSD.
pub const REGISTER_BYTES: usize = 16;

/// The CID register: manufacturer, product and serial number of a card (5.2). The field holds the bytes as the card
/// sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cid(pub [u8; REGISTER_BYTES]);

impl Cid {
    /// Returns the manufacturer's number (MID), which the SD Association assigns.
    pub fn manufacturer(&self) -> u8 {
        self.0[0]
    }

    /// Returns the two characters of the brand (OID).
    pub fn brand(&self) -> [u8; 2] {
        [self.0[1], self.0[2]]
    }

    /// Returns the five characters of the product's name (PNM).
    pub fn product(&self) -> [u8; 5] {
        core::array::from_fn(|at| self.0[3 + at])
    }

    /// Returns the product's revision (PRV): major and minor number.
    pub fn revision(&self) -> (u8, u8) {
        (self.0[8] >> 4, self.0[8] & 15)
    }

    /// Returns the serial number (PSN).
    pub fn serial(&self) -> u32 {
        u32::from_be_bytes(core::array::from_fn(|at| self.0[9 + at]))
    }

    /// Returns year and month of manufacture (MDT).
    pub fn made(&self) -> (u16, u8) {
        let date = u16::from_be_bytes([self.0[13], self.0[14]]);
        (2000 + (date >> 4 & 0xFF), (date & 15) as u8)
    }
}

/// One line, such as `manufacturer 0x03, SD SC16G 8.0, serial 0x1b2c3d4e, made 2019-07`.
impl fmt::Display for Cid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ((major, minor), (year, month)) = (self.revision(), self.made());
        write!(
            f,
            "manufacturer {:#04x}, {} {} {major}.{minor}, serial {:#010x}, made {year}-{month:02}",
            self.manufacturer(),
            self.brand().escape_ascii(),
            self.product().escape_ascii(),
            self.serial(),
        )
    }
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Card<Bus, Pin, Delay, Clock>
{
    /// Reads the CID register. Stops an open stream first, as [`read`](Card::read) does.
    ///
    /// # Errors
    /// [`Error::NotReady`], or the last error once all retries have failed.
    pub async fn read_cid(&mut self) -> Result<Cid, TransportError<Bus, Pin>> {
        self.read_register(10).await.map(Cid)
    }

    /// Reads the CSD register, as the card sends it; [`blocks`](Card::blocks) states the capacity that it contains. Stops
    /// an open stream first, as [`read`](Card::read) does.
    ///
    /// # Errors
    /// [`Error::NotReady`], or the last error once all retries have failed.
    pub async fn read_csd(&mut self) -> Result<[u8; REGISTER_BYTES], TransportError<Bus, Pin>> {
        self.read_register(9).await
    }

    async fn read_register(
        &mut self,
        command: u8,
    ) -> Result<[u8; REGISTER_BYTES], TransportError<Bus, Pin>> {
        if self.state == State::Absent {
            return Err(Error::NotReady);
        }
        let mut retries = RETRIES;
        loop {
            match self.read_register_once(command).await {
                Ok(register) => return Ok(register),
                Err(error) => self.consume_retry(error, &mut retries)?,
            }
        }
    }

    async fn read_register_once(
        &mut self,
        command: u8,
    ) -> Result<[u8; REGISTER_BYTES], TransportError<Bus, Pin>> {
        self.resynchronise().await?;
        self.state = State::Unknown(Operation::Read);
        self.transport.select()?;
        self.transport.command_ok(command, 0).await?;
        let mut register = [0; REGISTER_BYTES];
        self.transport.receive_data(&mut register).await?;
        self.transport.deselect().await?;
        self.state = State::Idle;
        Ok(register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_cid_is_decoded_field_by_field() {
        let cid = Cid(*b"\x03SDSC16G\x80\x1B\x2C\x3D\x4E\x01\x37\xFF");
        assert_eq!(
            cid.to_string(),
            "manufacturer 0x03, SD SC16G 8.0, serial 0x1b2c3d4e, made 2019-07"
        );
        // Reserved bits before the date do not count, and a name may hold any byte.
        let odd = Cid(*b"\0\0\0\x07ab\xFF \x1F\0\0\0\x01\xF1\xA1\x01");
        assert_eq!(
            odd.to_string(),
            "manufacturer 0x00, \\x00\\x00 \\x07ab\\xff  1.15, serial 0x00000001, made 2026-01"
        );
    }
}
