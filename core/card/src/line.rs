//! The wires: bytes, commands, blocks, and waiting for the card.

use crate::crc::{crc7_and_end, crc16};
use crate::error::Error;
use crate::limits::{
    BUSY_NS_MAX, DRAIN_BYTES, LONG_WAIT_PART, LOOK_BYTES, NCR_BYTES_MAX, PAUSE_NS_MAX, PAUSE_PART,
    POWER_UP_BYTES, READ_NS_MAX, SPARE_BYTES, STALL_NS, STALL_PART,
};
use crate::{Block, SetClock};
use embedded_hal::digital::{self, OutputPin};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{self, SpiBus};

/// What the host sends while it listens. Not left to `SpiBus::read`, which may send anything.
const SILENCE: u8 = 0xFF;
const BUSY: u8 = 0;
/// Before a block, other than of CMD25 (7.3.3.2).
pub(crate) const START: u8 = 0xFE;
/// Before a block of CMD25.
pub(crate) const START_OF_MANY: u8 = 0xFC;
/// After the last block of CMD25.
const STOP: u8 = 0xFD;
/// Error tokens have these bits clear (7.3.3.3).
const NOT_OF_ERROR_TOKEN: u8 = 0xF0;
/// R1: the card is not initialised (7.3.2.1).
pub(crate) const IDLE: u8 = 1;
/// R1: the card does not take this command, or not now.
pub(crate) const ILLEGAL: u8 = 1 << 2;
/// R1: the command's checksum is wrong.
pub(crate) const CRC_ERROR: u8 = 1 << 3;

/// The error of an operation on these wires.
pub(crate) type Failure<Bus, Pin> =
    Error<<Bus as spi::ErrorType>::Error, <Pin as digital::ErrorType>::Error>;

pub(crate) struct Line<Bus, Pin, Delay, Clock> {
    bus: Bus,
    pin: Pin,
    pub(crate) delay: Delay,
    clock: Clock,
    byte_ns: u32,
    /// What pauses may last beyond the shortest one; blocks of a stream add to it.
    spare_ns: u32,
}

impl<Bus, Pin, Delay, Clock> Line<Bus, Pin, Delay, Clock> {
    pub(crate) fn new(bus: Bus, pin: Pin, delay: Delay, clock: Clock) -> Self {
        Line {
            bus,
            pin,
            delay,
            clock,
            byte_ns: 0,
            spare_ns: 0,
        }
    }

    pub(crate) fn into_parts(self) -> (Bus, Pin, Delay, Clock) {
        (self.bus, self.pin, self.delay, self.clock)
    }
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Line<Bus, Pin, Delay, Clock>
{
    pub(crate) fn set_clock_hz(&mut self, hz: u32) {
        self.clock.set_clock_hz(&mut self.bus, hz);
        self.byte_ns = 1_000_000_000 / (hz / 8).max(1);
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure<Bus, Pin>> {
        self.bus.write(bytes).await.map_err(Error::Bus)
    }

    /// Fills `bytes` with what the card says.
    pub(crate) async fn listen(&mut self, bytes: &mut [u8]) -> Result<(), Failure<Bus, Pin>> {
        bytes.fill(SILENCE);
        self.bus.transfer_in_place(bytes).await.map_err(Error::Bus)
    }

    async fn look(&mut self) -> Result<u8, Failure<Bus, Pin>> {
        let mut byte = [SILENCE];
        self.listen(&mut byte).await?;
        Ok(byte[0])
    }

    pub(crate) fn select(&mut self) -> Result<(), Failure<Bus, Pin>> {
        self.pin.set_low().map_err(Error::Pin)
    }

    /// Lets go of the card, and gives it the eight clocks after which it lets go of the line.
    pub(crate) async fn release(&mut self) -> Result<(), Failure<Bus, Pin>> {
        self.bus.flush().await.map_err(Error::Bus)?;
        self.pin.set_high().map_err(Error::Pin)?;
        self.write(&[SILENCE]).await?;
        self.bus.flush().await.map_err(Error::Bus)
    }

    /// The clocks that a card wants after power came.
    pub(crate) async fn power_up(&mut self) -> Result<(), Failure<Bus, Pin>> {
        self.release().await?;
        self.write(&[SILENCE; POWER_UP_BYTES]).await
    }

    /// Sends a command; returns its R1.
    ///
    /// A byte of silence goes first: it is NRC of 7.5.4 and ends a command that was cut off.
    pub(crate) async fn command(
        &mut self,
        index: u8,
        argument: u32,
    ) -> Result<u8, Failure<Bus, Pin>> {
        self.send(index, argument, 0).await?;
        self.answer().await
    }

    /// Sends a command with a wrong checksum; returns its R1.
    pub(crate) async fn wrong_command(&mut self, index: u8) -> Result<u8, Failure<Bus, Pin>> {
        self.send(index, 0, 1 << 1).await?;
        self.answer().await
    }

    async fn send(&mut self, index: u8, argument: u32, flip: u8) -> Result<(), Failure<Bus, Pin>> {
        let [a, b, c, d] = argument.to_be_bytes();
        let mut frame = [SILENCE, 0x40 | index, a, b, c, d, 0];
        frame[6] = crc7_and_end(&frame[1..6]) ^ flip;
        self.write(&frame).await
    }

    async fn answer(&mut self) -> Result<u8, Failure<Bus, Pin>> {
        for _ in 0..=NCR_BYTES_MAX {
            let byte = self.look().await?;
            if byte & 0x80 == 0 {
                return Ok(byte);
            }
        }
        Err(Error::NoCard)
    }

    /// Sends a command whose R1 has to be clear.
    pub(crate) async fn clear(
        &mut self,
        index: u8,
        argument: u32,
    ) -> Result<(), Failure<Bus, Pin>> {
        match self.command(index, argument).await? {
            0 => Ok(()),
            r1 => Err(Error::Refused(r1)),
        }
    }

    /// CMD12; returns its R1.
    pub(crate) async fn stop_command(&mut self) -> Result<u8, Failure<Bus, Pin>> {
        self.send(12, 0, 0).await?;
        // A byte of stuff comes first (7.3.1.3).
        self.look().await?;
        self.answer().await
    }

    /// CMD13; returns the second byte of R2. The card forgets it by this.
    pub(crate) async fn status(&mut self) -> Result<u8, Failure<Bus, Pin>> {
        self.clear(13, 0).await?;
        match self.look().await? {
            // Not a status: power went, or it was the R1 before that was taken for one.
            SILENCE => Err(Error::NoCard),
            status => Ok(status),
        }
    }

    /// ACMD22: blocks of the last write that the card has written.
    pub(crate) async fn blocks_written(&mut self) -> Result<u32, Failure<Bus, Pin>> {
        self.clear(55, 0).await?;
        self.clear(22, 0).await?;
        let mut count = [0; 4];
        self.receive(&mut count).await?;
        Ok(u32::from_be_bytes(count))
    }

    /// The stop token, and the byte after it, which means nothing (7.3.3.2).
    pub(crate) async fn stop_token(&mut self) -> Result<(), Failure<Bus, Pin>> {
        self.write(&[STOP, SILENCE]).await
    }

    /// Waits for a block, or a register, and checks it.
    pub(crate) async fn receive(&mut self, data: &mut [u8]) -> Result<(), Failure<Bus, Pin>> {
        let token = self.look_until(|byte| byte != SILENCE, READ_NS_MAX).await?;
        let token = token.ok_or(Error::NoData)?;
        if token != START {
            return Err(match token & NOT_OF_ERROR_TOKEN {
                0 => Error::ReadFailed(token),
                _ => Error::Garbled,
            });
        }
        self.listen(data).await?;
        let mut sum = [0; 2];
        self.listen(&mut sum).await?;
        if u16::from_be_bytes(sum) != crc16(data) {
            return Err(Error::Garbled);
        }
        Ok(())
    }

    /// Sends a block to a card that was just seen not busy: that look was NWR.
    pub(crate) async fn transmit(
        &mut self,
        token: u8,
        data: &Block,
    ) -> Result<(), Failure<Bus, Pin>> {
        self.write(&[token]).await?;
        self.write(data).await?;
        let [high, low] = crc16(data).to_be_bytes();
        let mut end = [high, low, SILENCE];
        let sent = self.bus.transfer_in_place(&mut end).await;
        sent.map_err(Error::Bus)?;
        let earned_ns = self.byte_ns.saturating_mul(SPARE_BYTES);
        self.spare_ns = self.spare_ns.saturating_add(earned_ns).min(PAUSE_NS_MAX);
        // 7.3.3.1; the upper three bits are not defined.
        match end[2] & 0x1F {
            0b00101 => Ok(()),
            0b01101 => Err(Error::WriteFailed),
            _ => Err(Error::Garbled),
        }
    }

    /// Waits until the card is not busy. One look if it is not.
    pub(crate) async fn wait(&mut self) -> Result<(), Failure<Bus, Pin>> {
        let seen = self.look_until(|byte| byte == SILENCE, BUSY_NS_MAX).await?;
        seen.map(|_| ()).ok_or(Error::Busy)
    }

    /// Looks at a byte again and again, with growing pauses, until it is one of those; `None` if it never
    /// is.
    async fn look_until(
        &mut self,
        is_it: impl Fn(u8) -> bool,
        ns_max: u32,
    ) -> Result<Option<u8>, Failure<Bus, Pin>> {
        let (mut waited_ns, mut pause_ns) = (0, 0);
        while waited_ns < ns_max {
            let byte = self.look().await?;
            if is_it(byte) {
                self.spare_ns = self.spare_ns.saturating_sub(pause_ns);
                return Ok(Some(byte));
            }
            waited_ns += self.byte_ns;
            // Busy that ends within a byte has ended.
            if byte == BUSY || byte == SILENCE {
                pause_ns = self.pause_ns(waited_ns);
                self.delay.delay_ns(pause_ns).await;
                waited_ns += pause_ns;
            }
        }
        Ok(None)
    }

    /// How long to sleep after so long a wait. The last pause is what a wait may cost too much: it is
    /// part of the wait so far, and no longer than the blocks before have earned.
    fn pause_ns(&self, waited_ns: u32) -> u32 {
        let shortest_ns = self.byte_ns.saturating_mul(LOOK_BYTES).min(PAUSE_NS_MAX);
        let stalled_ns = waited_ns.saturating_sub(STALL_NS);
        let allowed_ns = (waited_ns / LONG_WAIT_PART).max(stalled_ns / STALL_PART);
        let longest_ns = self
            .spare_ns
            .max(allowed_ns)
            .clamp(shortest_ns, PAUSE_NS_MAX);
        (waited_ns / PAUSE_PART).clamp(shortest_ns, longest_ns)
    }

    /// Lets a card that was cut off have the rest of a block; what it takes does not fit its checksum.
    pub(crate) async fn drain(&mut self) -> Result<(), Failure<Bus, Pin>> {
        let mut bytes = [0; DRAIN_CHUNK_BYTES];
        for _ in 0..DRAIN_BYTES.div_ceil(DRAIN_CHUNK_BYTES) {
            self.listen(&mut bytes).await?;
        }
        Ok(())
    }
}

/// Bytes of one piece of a drain: they are in the future's memory.
const DRAIN_CHUNK_BYTES: usize = 32;
