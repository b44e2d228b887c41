//! The card's end of an SPI bus, one byte at a time.

use super::command::{Frame, Response};
use super::faults::FaultState;
use super::levels::{BUSY, RELEASED};
use super::state::{BUFFER_BYTES, Transfer};
use crate::wire::options::{Options, OptionsError, check_clock};
use crate::wire::pace::Pace;
use crate::wire::registers::Registers;
use crate::{Block, Card, Clock};

/// Clocks with chip select high that a card needs after power-on (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 74;

/// Numbers of bytes exchanged on the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of bytes exchanged, with chip select low or high.
    pub bytes: u64,
    /// Number of bytes exchanged with chip select low.
    pub selected: u64,
    /// Number of bytes during which the card signalled busy.
    pub busy: u64,
}

/// State that a reset clears.
#[derive(Default)]
pub(super) struct Session {
    /// True once a CMD0 has put the card into SPI mode; before, it is in SD mode and ignores the SPI bus.
    pub(super) in_spi_mode: bool,
    pub(super) is_ready: bool,
    pub(super) crc_on: bool,
    /// True if the previous command was CMD55.
    pub(super) app_command: bool,
    pub(super) cmd8_received: bool,
    /// Bus speed selected by CMD6.
    pub(super) high_speed: bool,
    pub(super) init_began_ns: Option<u64>,
    pub(super) block_bytes: u64,
    pub(super) erase_first: Option<u64>,
    pub(super) erase_last: Option<u64>,
    pub(super) erase_reset: bool,
    /// Status bits: the second byte of R2.
    pub(super) status: u8,
    pub(super) blocks_written: u32,
}

/// End of a byte on the bus.
#[derive(Clone, Copy)]
pub(super) enum ByteEnd {
    /// After eight periods of the bus clock.
    Paced,
    /// At a time of the host.
    At {
        /// Time in ns.
        ns: u64,
    },
}

/// A card on an SPI bus. Responds to any byte as a card would, and never panics.
///
/// Exchanging a byte takes eight bus periods on the virtual [`Clock`], unless the host keeps the time
/// ([`SpiCard::exchange_at`]). The host controls the time between bytes; the card keeps working meanwhile.
pub struct SpiCard {
    pub(super) card: Card,
    pub(super) options: Options,
    pub(super) registers: Registers,
    pub(super) session: Session,
    pub(super) transfer: Transfer,
    pub(super) response: Response,
    /// Block that is being transferred, with its token and checksum.
    pub(super) buffer: [u8; BUFFER_BYTES],
    pub(super) busy_until_ns: u64,
    pub(super) pace: Pace,
    pub(super) power_up_clocks: u32,
    pub(super) faults: FaultState,
    frame: Frame,
    is_selected: bool,
    count: Count,
}

impl SpiCard {
    /// Puts a card on a bus with a clock of `clock_hz`. The card has just been powered on; chip select is
    /// high.
    ///
    /// # Errors
    /// [`OptionsError`] if an option is out of range.
    pub fn new(
        card: Card,
        options: Options,
        clock: Clock,
        clock_hz: u32,
    ) -> Result<SpiCard, OptionsError> {
        options.check(card.blocks())?;
        check_clock(clock_hz)?;
        Ok(SpiCard {
            registers: Registers::new(&options, card.blocks()),
            card,
            options,
            session: Session::default(),
            transfer: Transfer::None,
            response: Response::default(),
            buffer: [0; BUFFER_BYTES],
            busy_until_ns: 0,
            pace: Pace::new(clock, clock_hz),
            power_up_clocks: 0,
            faults: FaultState::default(),
            frame: Frame::default(),
            is_selected: false,
            count: Count::default(),
        })
    }

    /// Takes the card off the bus.
    pub fn into_card(self) -> Card {
        self.card
    }

    pub(super) fn is_selected(&self) -> bool {
        self.is_selected
    }

    /// Returns the card.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Stores blocks directly; see [`Card::store`].
    pub fn store(&mut self, start: u64, data: &[Block]) {
        self.card.store(start, data);
    }

    /// Releases host memory for consecutive blocks; see [`Card::release_memory`].
    pub fn release_memory(&mut self, start: u64, count: u64) {
        self.card.release_memory(start, count);
    }

    /// Returns the virtual clock, which every byte on the bus advances.
    pub fn clock(&self) -> &Clock {
        self.pace.clock()
    }

    /// Changes the clock of the bus, in Hz.
    ///
    /// # Errors
    /// [`OptionsError`] if the clock is out of range.
    pub fn set_clock_hz(&mut self, clock_hz: u32) -> Result<(), OptionsError> {
        check_clock(clock_hz)?;
        self.pace = Pace::new(self.clock().clone(), clock_hz);
        Ok(())
    }

    /// Returns the number of bytes exchanged so far.
    pub fn count(&self) -> Count {
        self.count
    }

    /// Returns the end of the busy time, in ns of the virtual clock. The time may be in the past.
    pub fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// Asserts chip select (`true`) or deasserts it.
    ///
    /// Discards an incomplete command, because commands are aligned to chip select (7.2). Responses, data
    /// and busy remain (7.2.4): drivers may deselect the card between the bytes of a response.
    pub fn select(&mut self, select: bool) {
        self.is_selected = select;
        self.frame.clear();
    }

    /// Clocks one byte in each direction.
    pub fn exchange(&mut self, out: u8) -> u8 {
        self.exchange_until(ByteEnd::Paced, out)
    }

    /// Clocks one byte in each direction on a bus whose host keeps the time, such as an emulated processor. The byte
    /// begins and ends at the given times, in ns, whatever the clock of the bus. The card's clock follows the host's and
    /// advances at no other point; times that it has passed count as now.
    pub fn exchange_at(&mut self, start_ns: u64, end_ns: u64, out: u8) -> u8 {
        self.clock().advance_to_ns(start_ns);
        self.exchange_until(ByteEnd::At { ns: end_ns }, out)
    }

    fn exchange_until(&mut self, end: ByteEnd, out: u8) -> u8 {
        if self.count.bytes >= self.faults.next_byte {
            return self.exchange_with_faults(end, out);
        }
        self.exchange_without_faults(end, out)
    }

    pub(super) fn exchange_without_faults(&mut self, end: ByteEnd, out: u8) -> u8 {
        let start_ns = self.pace.now_ns();
        self.pass_byte(end);
        if !self.is_selected {
            self.power_up_clocks = self.power_up_clocks.saturating_add(8);
            return RELEASED;
        }
        if self.power_up_clocks < POWER_UP_CLOCKS {
            return RELEASED;
        }
        // The card ignores commands while it responds or is busy (7.2.4).
        if let Some(byte) = self.response.next() {
            return byte;
        }
        if start_ns < self.busy_until_ns {
            self.count.busy += 1;
            return BUSY;
        }
        let byte = self.next_data_byte(start_ns);
        self.receive_byte(out);
        byte
    }

    /// Clocks bytes out of the host and discards the received bytes.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            let run_bytes = self.receive_run(bytes);
            if run_bytes == 0 {
                self.exchange(first);
            }
            bytes = &bytes[run_bytes.max(1)..];
        }
    }

    /// Clocks bytes in each direction; the received bytes replace the sent bytes.
    pub fn exchange_in_place(&mut self, mut bytes: &mut [u8]) {
        // Hosts that poll exchange single bytes.
        if let [byte] = bytes {
            *byte = self.exchange(*byte);
            return;
        }
        while let Some(&first) = bytes.first() {
            let run_bytes = self.run_in_place(bytes);
            if run_bytes == 0 {
                bytes[0] = self.exchange(first);
            }
            bytes = &mut bytes[run_bytes.max(1)..];
        }
    }

    fn run_in_place(&mut self, bytes: &mut [u8]) -> usize {
        let received = self.receive_run(bytes);
        if received > 0 {
            bytes[..received].fill(RELEASED);
            return received;
        }
        self.send_run(bytes)
    }

    /// Receives the inner bytes of a block at once; returns their number.
    fn receive_run(&mut self, bytes: &[u8]) -> usize {
        let Transfer::Receive { write, at } = self.transfer else {
            return 0;
        };
        // The last byte completes the block and is handled separately.
        let run_bytes = self
            .bytes_before_fault(bytes.len())
            .min(Transfer::RECEIVED_BYTES - 1 - at);
        if !self.is_selected || !self.response.is_empty() {
            return 0;
        }
        self.buffer[at..at + run_bytes].copy_from_slice(&bytes[..run_bytes]);
        self.transfer = Transfer::Receive {
            write,
            at: at + run_bytes,
        };
        self.advance(run_bytes);
        run_bytes
    }

    /// Sends the inner bytes of a block at once; returns their number.
    fn send_run(&mut self, bytes: &mut [u8]) -> usize {
        let Transfer::Sending(mut send) = self.transfer else {
            return 0;
        };
        let is_quiet = self.is_selected && self.response.is_empty() && self.frame.is_empty();
        if !is_quiet || send.at == 0 {
            return 0;
        }
        let run_bytes = self
            .bytes_before_fault(bytes.len())
            .min(send.end - 1 - send.at);
        if bytes[..run_bytes].iter().any(|&byte| byte != RELEASED) {
            return 0;
        }
        bytes[..run_bytes].copy_from_slice(&self.buffer[send.at..send.at + run_bytes]);
        send.at += run_bytes;
        self.transfer = Transfer::Sending(send);
        self.advance(run_bytes);
        run_bytes
    }

    /// Returns how many of `bytes` bytes can be exchanged before the next fault.
    fn bytes_before_fault(&self, bytes: usize) -> usize {
        let left = self.faults.next_byte.saturating_sub(self.count.bytes);
        bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Advances the clock to the end of a byte.
    pub(super) fn pass_byte(&mut self, end: ByteEnd) {
        match end {
            ByteEnd::Paced => self.pace.byte(),
            ByteEnd::At { ns } => self.clock().advance_to_ns(ns),
        }
        self.count_bytes(1);
    }

    fn advance(&mut self, bytes: usize) {
        self.pace.bytes(bytes);
        self.count_bytes(bytes);
    }

    fn count_bytes(&mut self, bytes: usize) {
        self.count.bytes += bytes as u64;
        if self.is_selected {
            self.count.selected += bytes as u64;
        }
    }

    /// Handles a byte from the host, according to the transfer state.
    fn receive_byte(&mut self, byte: u8) {
        if let Transfer::Receive { write, at } = self.transfer {
            return self.receive_data_byte(write, at, byte);
        }
        if let Transfer::AwaitToken(write) = self.transfer
            && self.frame.is_empty()
            && self.begin_block(write, byte)
        {
            return;
        }
        if let Some(command) = self.frame.push(byte)
            && !self.faults.lose_command()
        {
            self.execute(command);
        }
    }
}
