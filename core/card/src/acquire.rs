//! Card initialisation: from power-on to a card that can be read and written (figure 7-2).

use crate::csd::{self, Csd};
use crate::limits::{ACQUIRE_CLOCK_HZ, ACQUIRE_MS_MAX, ACQUIRE_STEP_MS};
use crate::transport::{R1_CRC_ERROR, R1_IDLE, R1_ILLEGAL_COMMAND, Transport, TransportError};
use crate::{BLOCK_BYTES, Error, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// CMD8 argument: 2.7 to 3.6 V, and the check pattern that the card echoes (4.3.13).
const INTERFACE: u32 = 0x1AA;
/// ACMD41 argument: the host supports high capacity (4.2.3.1).
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// OCR: the card has high capacity (5.1).
const OCR_HIGH_CAPACITY: u8 = 0x40;

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Transport<Bus, Pin, Delay, Clock>
{
    /// Initialises a card from any state, then deselects it.
    pub(crate) async fn initialise(&mut self) -> Result<Csd, TransportError<Bus, Pin>> {
        self.set_clock_hz(ACQUIRE_CLOCK_HZ);
        self.power_up().await?;
        self.select()?;
        let done = self.initialise_selected().await;
        self.deselect().await?;
        done
    }

    async fn initialise_selected(&mut self) -> Result<Csd, TransportError<Bus, Pin>> {
        self.go_idle().await?;
        let argument = match self.is_version_2().await? {
            true => HOST_HIGH_CAPACITY,
            false => 0,
        };
        self.enable_checksums().await?;
        self.wait_initialised(argument).await?;
        self.command_ok(58, 0).await?;
        let mut ocr = [0; 4];
        self.read_bytes(&mut ocr).await?;
        self.command_ok(9, 0).await?;
        let mut csd = [0; 16];
        self.receive_data(&mut csd).await?;
        let csd = csd::parse(&csd).ok_or(Error::Unsupported)?;
        // The CSD determines the addressing, because it is protected by a checksum and the OCR is not. If the two
        // contradict each other, the initialisation is retried.
        if csd.has_high_capacity != (ocr[0] & OCR_HIGH_CAPACITY != 0) {
            return Err(Error::Garbled);
        }
        if !csd.has_high_capacity {
            self.command_ok(16, BLOCK_BYTES as u32).await?;
        }
        Ok(csd)
    }

    /// Sends CMD0. An interrupted card takes the first CMD0 for data, and a busy card ignores it, so the
    /// command is repeated after draining a block and waiting for busy to end.
    async fn go_idle(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        if let Ok(R1_IDLE) = self.command(0, 0).await {
            return Ok(());
        }
        self.drain().await?;
        self.wait_ready().await?;
        match self.command(0, 0).await? {
            R1_IDLE => Ok(()),
            _ => Err(Error::Garbled),
        }
    }

    /// Sends CMD8, which version 1 cards reject; returns true if the card accepts it.
    async fn is_version_2(&mut self) -> Result<bool, TransportError<Bus, Pin>> {
        let mut r1 = self.command(8, INTERFACE).await?;
        if r1 == R1_IDLE | R1_ILLEGAL_COMMAND {
            // CMD8 is sent twice: if a corrupted response made a version 2 card pass for version 1,
            // ACMD41 without the high-capacity bit would never initialise it.
            r1 = self.command(8, INTERFACE).await?;
        }
        if r1 == R1_IDLE | R1_ILLEGAL_COMMAND {
            return Ok(false);
        }
        let mut echo = [0; 4];
        self.read_bytes(&mut echo).await?;
        match (r1, echo) {
            (R1_IDLE, [.., 1, 0xAA]) => Ok(true),
            (R1_IDLE, [.., 0, 0xAA]) => Err(Error::Unsupported),
            _ => Err(Error::Garbled),
        }
    }

    /// Sends CMD59. CMD59 itself is not protected by a checksum, so the driver then sends a command with a
    /// bad checksum and checks that the card rejects it.
    async fn enable_checksums(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        match self.command(59, 1).await? {
            R1_IDLE => (),
            r1 => return Err(Error::Refused(r1)),
        }
        match self.command_with_bad_crc(58).await? {
            r1 if r1 & R1_CRC_ERROR != 0 => Ok(()),
            _ => Err(Error::Garbled),
        }
    }

    /// Repeats ACMD41 until the card has initialised.
    async fn wait_initialised(&mut self, argument: u32) -> Result<(), TransportError<Bus, Pin>> {
        for _ in 0..ACQUIRE_MS_MAX / ACQUIRE_STEP_MS {
            let r1 = self.command(55, 0).await?;
            if r1 & !R1_IDLE != 0 {
                return Err(Error::Refused(r1));
            }
            match self.command(41, argument).await? {
                0 => return Ok(()),
                R1_IDLE => self.delay.delay_ms(ACQUIRE_STEP_MS).await,
                r1 => return Err(Error::Refused(r1)),
            }
        }
        Err(Error::Busy)
    }
}
