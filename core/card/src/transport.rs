//! The SPI transport: bytes, commands, blocks and busy waits.

use crate::crc::{crc7_and_end, crc16};
use crate::error::Error;
use crate::limits::{
    BUDGET_BYTES_PER_BLOCK, BUSY_NS_MAX, DRAIN_BYTES, LONG_WAIT_DIVISOR, NCR_BYTES_MAX,
    PAUSE_BYTES_MIN, PAUSE_DIVISOR, PAUSE_NS_MAX, POWER_UP_BYTES, READ_NS_MAX, STALL_DIVISOR,
    STALL_NS,
};
use crate::{Block, SetClock};
use embedded_hal::digital::{self, OutputPin};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{self, SpiBus};

/// Byte sent while receiving. `SpiBus::read` may send any value, so the driver does not use it.
const FILLER: u8 = 0xFF;
const BUSY: u8 = 0;
/// Starts a block of any command other than CMD25 (7.3.3.2).
pub(crate) const START_BLOCK: u8 = 0xFE;
/// Starts a block of CMD25.
pub(crate) const START_MULTIPLE_WRITE: u8 = 0xFC;
/// Ends the blocks of CMD25.
const STOP_TRANSMISSION: u8 = 0xFD;
/// Bits that are clear in every error token (7.3.3.3).
const ERROR_TOKEN_ZEROS: u8 = 0xF0;
/// R1: the card is not initialised (7.3.2.1).
pub(crate) const R1_IDLE: u8 = 1;
/// R1: the card does not support this command, or not in its current state.
pub(crate) const R1_ILLEGAL_COMMAND: u8 = 1 << 2;
/// R1: the checksum of the command is wrong.
pub(crate) const R1_CRC_ERROR: u8 = 1 << 3;

/// Driver error with the error types of this bus and pin.
pub(crate) type TransportError<Bus, Pin> =
    Error<<Bus as spi::ErrorType>::Error, <Pin as digital::ErrorType>::Error>;

pub(crate) struct Transport<Bus, Pin, Delay, Clock> {
    bus: Bus,
    pin: Pin,
    pub(crate) delay: Delay,
    clock: Clock,
    byte_ns: u32,
    /// Budget for overshooting the end of busy, in ns, which limits the pauses. Each block of a stream
    /// adds to it, and each wait subtracts its last pause.
    budget_ns: u32,
}

impl<Bus, Pin, Delay, Clock> Transport<Bus, Pin, Delay, Clock> {
    pub(crate) fn new(bus: Bus, pin: Pin, delay: Delay, clock: Clock) -> Self {
        Transport {
            bus,
            pin,
            delay,
            clock,
            byte_ns: 0,
            budget_ns: 0,
        }
    }

    pub(crate) fn into_parts(self) -> (Bus, Pin, Delay, Clock) {
        (self.bus, self.pin, self.delay, self.clock)
    }
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Transport<Bus, Pin, Delay, Clock>
{
    pub(crate) fn set_clock_hz(&mut self, hz: u32) {
        self.clock.set_clock_hz(&mut self.bus, hz);
        self.byte_ns = 1_000_000_000 / (hz / 8).max(1);
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), TransportError<Bus, Pin>> {
        self.bus.write(bytes).await.map_err(Error::Bus)
    }

    /// Fills `bytes` from the card while sending 0xFF.
    pub(crate) async fn read_bytes(
        &mut self,
        bytes: &mut [u8],
    ) -> Result<(), TransportError<Bus, Pin>> {
        bytes.fill(FILLER);
        self.bus.transfer_in_place(bytes).await.map_err(Error::Bus)
    }

    async fn read_byte(&mut self) -> Result<u8, TransportError<Bus, Pin>> {
        let mut byte = [FILLER];
        self.read_bytes(&mut byte).await?;
        Ok(byte[0])
    }

    pub(crate) fn select(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.pin.set_low().map_err(Error::Pin)
    }

    /// Deselects the card, then clocks eight cycles so that it releases MISO.
    pub(crate) async fn deselect(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.bus.flush().await.map_err(Error::Bus)?;
        self.pin.set_high().map_err(Error::Pin)?;
        self.write(&[FILLER]).await?;
        self.bus.flush().await.map_err(Error::Bus)
    }

    /// Sends the clocks that a card needs after power-on.
    pub(crate) async fn power_up(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.deselect().await?;
        self.write(&[FILLER; POWER_UP_BYTES]).await
    }

    /// Sends a command; returns its R1.
    ///
    /// A filler byte goes first: it is the NRC of 7.5.4, and it terminates an interrupted command.
    pub(crate) async fn command(
        &mut self,
        index: u8,
        argument: u32,
    ) -> Result<u8, TransportError<Bus, Pin>> {
        self.send(index, argument, 0).await?;
        self.response().await
    }

    /// Sends a command with a wrong checksum; returns its R1.
    pub(crate) async fn command_with_bad_crc(
        &mut self,
        index: u8,
    ) -> Result<u8, TransportError<Bus, Pin>> {
        self.send(index, 0, 1 << 1).await?;
        self.response().await
    }

    async fn send(
        &mut self,
        index: u8,
        argument: u32,
        flip: u8,
    ) -> Result<(), TransportError<Bus, Pin>> {
        let [a, b, c, d] = argument.to_be_bytes();
        let mut frame = [FILLER, 0x40 | index, a, b, c, d, 0];
        frame[6] = crc7_and_end(&frame[1..6]) ^ flip;
        self.write(&frame).await
    }

    async fn response(&mut self) -> Result<u8, TransportError<Bus, Pin>> {
        for _ in 0..=NCR_BYTES_MAX {
            let byte = self.read_byte().await?;
            if byte & 0x80 == 0 {
                return Ok(byte);
            }
        }
        Err(Error::NoCard)
    }

    /// Sends a command and requires that its R1 reports no error.
    pub(crate) async fn command_ok(
        &mut self,
        index: u8,
        argument: u32,
    ) -> Result<(), TransportError<Bus, Pin>> {
        match self.command(index, argument).await? {
            0 => Ok(()),
            r1 => Err(Error::Refused(r1)),
        }
    }

    /// Sends CMD12; returns its R1.
    pub(crate) async fn stop_command(&mut self) -> Result<u8, TransportError<Bus, Pin>> {
        self.send(12, 0, 0).await?;
        // A stuff byte precedes the response (7.3.1.3).
        self.read_byte().await?;
        self.response().await
    }

    /// Sends CMD13; returns the second byte of R2. Reading the status clears it in the card.
    pub(crate) async fn status(&mut self) -> Result<u8, TransportError<Bus, Pin>> {
        self.command_ok(13, 0).await?;
        match self.read_byte().await? {
            // 0xFF is not a status: the card lost power, or the byte read as R1 was something else.
            FILLER => Err(Error::NoCard),
            status => Ok(status),
        }
    }

    /// Sends ACMD22; returns the number of blocks that the card wrote in the last write command.
    pub(crate) async fn blocks_written(&mut self) -> Result<u32, TransportError<Bus, Pin>> {
        self.command_ok(55, 0).await?;
        self.command_ok(22, 0).await?;
        let mut count = [0; 4];
        self.receive_data(&mut count).await?;
        Ok(u32::from_be_bytes(count))
    }

    /// Sends the stop token and the undefined byte after it (7.3.3.2).
    pub(crate) async fn stop_token(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.write(&[STOP_TRANSMISSION, FILLER]).await
    }

    /// Waits for a block or a register and verifies its checksum.
    pub(crate) async fn receive_data(
        &mut self,
        data: &mut [u8],
    ) -> Result<(), TransportError<Bus, Pin>> {
        let token = self.poll_until(|byte| byte != FILLER, READ_NS_MAX).await?;
        let token = token.ok_or(Error::NoData)?;
        if token != START_BLOCK {
            return Err(match token & ERROR_TOKEN_ZEROS {
                0 => Error::ReadFailed(token),
                _ => Error::Garbled,
            });
        }
        self.read_bytes(data).await?;
        let mut sum = [0; 2];
        self.read_bytes(&mut sum).await?;
        if u16::from_be_bytes(sum) != crc16(data) {
            return Err(Error::Garbled);
        }
        Ok(())
    }

    /// Sends a block to a card that the caller has just polled as ready: that poll was NWR.
    pub(crate) async fn send_block(
        &mut self,
        token: u8,
        data: &Block,
    ) -> Result<(), TransportError<Bus, Pin>> {
        self.write(&[token]).await?;
        self.write(data).await?;
        let [high, low] = crc16(data).to_be_bytes();
        let mut end = [high, low, FILLER];
        let sent = self.bus.transfer_in_place(&mut end).await;
        sent.map_err(Error::Bus)?;
        let added_ns = self.byte_ns.saturating_mul(BUDGET_BYTES_PER_BLOCK);
        self.budget_ns = self.budget_ns.saturating_add(added_ns).min(PAUSE_NS_MAX);
        // Data response (7.3.3.1); its upper three bits are undefined.
        match end[2] & 0x1F {
            0b00101 => Ok(()),
            0b01101 => Err(Error::WriteFailed),
            _ => Err(Error::Garbled),
        }
    }

    /// Waits until the card is ready. Takes a single poll if it already is.
    pub(crate) async fn wait_ready(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        let seen = self.poll_until(|byte| byte == FILLER, BUSY_NS_MAX).await?;
        seen.map(|_| ()).ok_or(Error::Busy)
    }

    /// Polls bytes, with growing pauses, until one satisfies the predicate; returns `None` on timeout.
    async fn poll_until(
        &mut self,
        is_match: impl Fn(u8) -> bool,
        ns_max: u32,
    ) -> Result<Option<u8>, TransportError<Bus, Pin>> {
        let (mut waited_ns, mut pause_ns) = (0, 0);
        while waited_ns < ns_max {
            let byte = self.read_byte().await?;
            if is_match(byte) {
                self.budget_ns = self.budget_ns.saturating_sub(pause_ns);
                return Ok(Some(byte));
            }
            waited_ns += self.byte_ns;
            // Any other value is the byte in which busy ended: poll again without a pause.
            if byte == BUSY || byte == FILLER {
                pause_ns = self.pause_ns(waited_ns);
                self.delay.delay_ns(pause_ns).await;
                waited_ns += pause_ns;
            }
        }
        Ok(None)
    }

    /// Returns the next pause, in ns, after a wait of `waited_ns`. If busy ends at the start of a
    /// pause, the whole pause is overshoot. A pause is therefore limited to the budget earned by
    /// previous blocks or to a fraction of the wait so far, whichever is larger.
    fn pause_ns(&self, waited_ns: u32) -> u32 {
        let shortest_ns = self
            .byte_ns
            .saturating_mul(PAUSE_BYTES_MIN)
            .min(PAUSE_NS_MAX);
        let stalled_ns = waited_ns.saturating_sub(STALL_NS);
        let allowed_ns = (waited_ns / LONG_WAIT_DIVISOR).max(stalled_ns / STALL_DIVISOR);
        let longest_ns = self
            .budget_ns
            .max(allowed_ns)
            .clamp(shortest_ns, PAUSE_NS_MAX);
        (waited_ns / PAUSE_DIVISOR).clamp(shortest_ns, longest_ns)
    }

    /// Completes the block that an interrupted card is waiting for with filler bytes. The checksum does not
    /// match, so the card discards the block.
    pub(crate) async fn drain(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        let mut bytes = [0; DRAIN_CHUNK_BYTES];
        for _ in 0..DRAIN_BYTES.div_ceil(DRAIN_CHUNK_BYTES) {
            self.read_bytes(&mut bytes).await?;
        }
        Ok(())
    }
}

/// Bytes per transfer of a drain: the buffer is part of the future.
const DRAIN_CHUNK_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use core::convert::Infallible;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    /// A clock at which a byte takes as long as the longest pause: 1 ms.
    const SLOW_HZ: u32 = 8_000;

    /// A bus from which the same byte comes each time.
    struct Bus {
        byte: u8,
        polls: u32,
    }

    impl spi::ErrorType for Bus {
        type Error = Infallible;
    }

    impl SpiBus for Bus {
        async fn read(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!()
        }

        async fn write(&mut self, _: &[u8]) -> Result<(), Infallible> {
            unreachable!()
        }

        async fn transfer(&mut self, _: &mut [u8], _: &[u8]) -> Result<(), Infallible> {
            unreachable!()
        }

        async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            self.polls += 1;
            bytes.fill(self.byte);
            Ok(())
        }

        async fn flush(&mut self) -> Result<(), Infallible> {
            unreachable!()
        }
    }

    struct Pin;

    impl digital::ErrorType for Pin {
        type Error = Infallible;
    }

    impl OutputPin for Pin {
        fn set_low(&mut self) -> Result<(), Infallible> {
            unreachable!()
        }

        fn set_high(&mut self) -> Result<(), Infallible> {
            unreachable!()
        }
    }

    struct Pauses(u32);

    impl DelayNs for Pauses {
        async fn delay_ns(&mut self, ns: u32) {
            assert_eq!(ns, PAUSE_NS_MAX);
            self.0 += 1;
        }
    }

    fn done<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => unreachable!("neither bus nor delay waits"),
        }
    }

    /// Each poll and each pause takes 1 ms, so that a limit of a whole number of them is met exactly.
    #[test]
    fn polls_and_pauses_add_up_to_the_limit() {
        for (byte, has_pauses) in [(BUSY, true), (FILLER, true), (0x0F, false), (1, false)] {
            let bus = Bus { byte, polls: 0 };
            let set_clock = |_: &mut Bus, _: u32| ();
            let mut transport = Transport::new(bus, Pin, Pauses(0), set_clock);
            transport.set_clock_hz(SLOW_HZ);
            let polled = done(transport.poll_until(|_| false, 10 * PAUSE_NS_MAX));
            assert_eq!(polled, Ok(None));
            let counts = (transport.bus.polls, transport.delay.0);
            let expected = if has_pauses { (5, 5) } else { (10, 0) };
            assert_eq!(counts, expected, "byte {byte:#x}");
        }
    }
}
