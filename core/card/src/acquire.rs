//! From power to a card that can be read and written (figure 7-2).

use crate::csd::{self, Csd};
use crate::limits::{ACQUIRE_CLOCK_HZ, ACQUIRE_MS_MAX, ACQUIRE_STEP_MS};
use crate::line::{CRC_ERROR, Failure, IDLE, ILLEGAL, Line};
use crate::{BLOCK_BYTES, Error, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// 2.7 to 3.6 V, and a pattern to come back (4.3.13).
const INTERFACE: u32 = 0x1AA;
/// ACMD41: this host knows of high capacity (4.2.3.1).
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// OCR: so does the card (5.1).
const OCR_HIGH_CAPACITY: u8 = 0x40;

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Line<Bus, Pin, Delay, Clock>
{
    /// Initialises a card in whatever state it is; it is let go of afterwards.
    pub(crate) async fn initialise(&mut self) -> Result<Csd, Failure<Bus, Pin>> {
        self.set_clock_hz(ACQUIRE_CLOCK_HZ);
        self.power_up().await?;
        self.select()?;
        let done = self.initialise_selected().await;
        self.release().await?;
        done
    }

    async fn initialise_selected(&mut self) -> Result<Csd, Failure<Bus, Pin>> {
        self.go_idle().await?;
        let argument = match self.is_version_2().await? {
            true => HOST_HIGH_CAPACITY,
            false => 0,
        };
        self.switch_checksums_on().await?;
        self.get_ready(argument).await?;
        self.clear(58, 0).await?;
        let mut ocr = [0; 4];
        self.listen(&mut ocr).await?;
        self.clear(9, 0).await?;
        let mut csd = [0; 16];
        self.receive(&mut csd).await?;
        let csd = csd::parse(&csd).ok_or(Error::Unusable)?;
        // The CSD decides how blocks are counted, since a checksum guards it and not the OCR. A card that
        // contradicts itself is asked again.
        if csd.has_high_capacity != (ocr[0] & OCR_HIGH_CAPACITY != 0) {
            return Err(Error::Garbled);
        }
        if !csd.has_high_capacity {
            self.clear(16, BLOCK_BYTES as u32).await?;
        }
        Ok(csd)
    }

    /// CMD0. A card that was cut off takes it for data, and a busy one does not hear it.
    async fn go_idle(&mut self) -> Result<(), Failure<Bus, Pin>> {
        if let Ok(IDLE) = self.command(0, 0).await {
            return Ok(());
        }
        self.drain().await?;
        self.wait().await?;
        match self.command(0, 0).await? {
            IDLE => Ok(()),
            _ => Err(Error::Garbled),
        }
    }

    /// CMD8, which cards of version 1 do not know.
    async fn is_version_2(&mut self) -> Result<bool, Failure<Bus, Pin>> {
        let mut r1 = self.command(8, INTERFACE).await?;
        if r1 == IDLE | ILLEGAL {
            // Not believed at once: a card that is taken for an older one never gets ready.
            r1 = self.command(8, INTERFACE).await?;
        }
        if r1 == IDLE | ILLEGAL {
            return Ok(false);
        }
        let mut echo = [0; 4];
        self.listen(&mut echo).await?;
        match (r1, echo) {
            (IDLE, [.., 1, 0xAA]) => Ok(true),
            (IDLE, [.., 0, 0xAA]) => Err(Error::Unusable),
            _ => Err(Error::Garbled),
        }
    }

    /// CMD59. Nothing guards it either: a wrong checksum has to be refused afterwards.
    async fn switch_checksums_on(&mut self) -> Result<(), Failure<Bus, Pin>> {
        match self.command(59, 1).await? {
            IDLE => (),
            r1 => return Err(Error::Refused(r1)),
        }
        match self.wrong_command(58).await? {
            r1 if r1 & CRC_ERROR != 0 => Ok(()),
            _ => Err(Error::Garbled),
        }
    }

    /// ACMD41 until the card is ready.
    async fn get_ready(&mut self, argument: u32) -> Result<(), Failure<Bus, Pin>> {
        for _ in 0..ACQUIRE_MS_MAX / ACQUIRE_STEP_MS {
            let r1 = self.command(55, 0).await?;
            if r1 & !IDLE != 0 {
                return Err(Error::Refused(r1));
            }
            match self.command(41, argument).await? {
                0 => return Ok(()),
                IDLE => self.delay.delay_ms(ACQUIRE_STEP_MS).await,
                r1 => return Err(Error::Refused(r1)),
            }
        }
        Err(Error::Busy)
    }
}
