//! The card as one end of an SPI bus, a byte at a time.

use super::command::{Answer, Frame};
use super::faults::Faults;
use super::transfer::{BUFFER_BYTES, Task};
use crate::wire::options::{Options, OptionsError, check_clock};
use crate::wire::pace::Pace;
use crate::wire::registers::Registers;
use crate::{Card, Clock};

/// What the host reads while the card drives nothing: the line is pulled up.
pub(super) const RELEASED: u8 = 0xFF;
/// What it reads while the card is busy.
const BUSY: u8 = 0;
/// Clocks with chip select high that a card wants after power came (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 74;

/// Bytes that went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All of them.
    pub bytes: u64,
    /// Those with chip select low.
    pub selected: u64,
    /// Those that the card answered with busy.
    pub busy: u64,
}

/// What a reset does away with.
#[derive(Default)]
pub(super) struct Session {
    /// Before the first CMD0 a card speaks the SD bus and leaves this one alone.
    pub(super) in_spi_mode: bool,
    pub(super) is_ready: bool,
    pub(super) crc_on: bool,
    /// The command before was CMD55.
    pub(super) app_command: bool,
    pub(super) knows_host: bool,
    pub(super) init_began_ns: Option<u64>,
    pub(super) block_bytes: u64,
    pub(super) erase_first: Option<u64>,
    pub(super) erase_last: Option<u64>,
    pub(super) erase_reset: bool,
    /// Second byte of R2.
    pub(super) status: u8,
    pub(super) blocks_written: u32,
}

/// A card on an SPI bus: it answers every byte as a card would, and never panics.
///
/// Exchanging a byte takes eight periods of the bus clock on the virtual [`Clock`]. Time that passes
/// between bytes is the host's; the card goes on with its work meanwhile.
pub struct SpiCard {
    pub(super) card: Card,
    pub(super) options: Options,
    pub(super) registers: Registers,
    pub(super) session: Session,
    pub(super) task: Task,
    pub(super) answer: Answer,
    /// The block under way, with what goes around it.
    pub(super) buffer: [u8; BUFFER_BYTES],
    pub(super) busy_until_ns: u64,
    pub(super) pace: Pace,
    pub(super) power_up_clocks: u32,
    pub(super) faults: Faults,
    frame: Frame,
    is_selected: bool,
    count: Count,
}

impl SpiCard {
    /// Puts a card on a bus of this clock, in Hz. Power has just come, chip select is high.
    ///
    /// # Errors
    /// [`OptionsError`] if no card has such options.
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
            task: Task::None,
            answer: Answer::default(),
            buffer: [0; BUFFER_BYTES],
            busy_until_ns: 0,
            pace: Pace::new(clock, clock_hz),
            power_up_clocks: 0,
            faults: Faults::default(),
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

    /// The card itself.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// [`Card::forget_data`] of the card behind this wire.
    pub fn forget_data(&mut self, start: u64, count: u64) {
        self.card.forget_data(start, count);
    }

    /// The clock that bytes move on.
    pub fn clock(&self) -> &Clock {
        self.pace.clock()
    }

    /// Changes the clock of the bus, in Hz.
    ///
    /// # Errors
    /// [`OptionsError`] if no bus has such a clock.
    pub fn set_clock_hz(&mut self, clock_hz: u32) -> Result<(), OptionsError> {
        check_clock(clock_hz)?;
        self.pace = Pace::new(self.clock().clone(), clock_hz);
        Ok(())
    }

    /// Bytes exchanged so far.
    pub fn count(&self) -> Count {
        self.count
    }

    /// When the card is no longer busy, in ns of the virtual clock; may have passed.
    pub fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// Pulls chip select low (`true`) or lets it go high.
    ///
    /// A command that was cut short is forgotten: commands are aligned to chip select (7.2). Answers,
    /// data and busy stay (7.2.4); drivers let go of the card between the bytes of one answer.
    pub fn select(&mut self, select: bool) {
        self.is_selected = select;
        self.frame.clear();
    }

    /// Clocks one byte in each direction.
    pub fn exchange(&mut self, out: u8) -> u8 {
        if self.count.bytes >= self.faults.next_byte {
            return self.exchange_struck(out);
        }
        self.exchange_unharmed(out)
    }

    pub(super) fn exchange_unharmed(&mut self, out: u8) -> u8 {
        let start_ns = self.pace.now_ns();
        self.pace.byte();
        self.count_bytes(1);
        if !self.is_selected {
            self.power_up_clocks = self.power_up_clocks.saturating_add(8);
            return RELEASED;
        }
        if self.power_up_clocks < POWER_UP_CLOCKS {
            return RELEASED;
        }
        // While it answers or is busy a card takes no commands (7.2.4).
        if let Some(byte) = self.answer.next() {
            return byte;
        }
        if start_ns < self.busy_until_ns {
            self.count.busy += 1;
            return BUSY;
        }
        let byte = self.drive(start_ns);
        self.hear(out);
        byte
    }

    /// Clocks bytes out of the host; what comes back is lost.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            let many = self.receive_run(bytes);
            if many == 0 {
                self.exchange(first);
            }
            bytes = &bytes[many.max(1)..];
        }
    }

    /// Clocks bytes in each direction; what comes back takes the place of what went out.
    pub fn exchange_in_place(&mut self, mut bytes: &mut [u8]) {
        // Hosts that poll ask for one byte after the other.
        if let [byte] = bytes {
            *byte = self.exchange(*byte);
            return;
        }
        while let Some(&first) = bytes.first() {
            let many = self.run_in_place(bytes);
            if many == 0 {
                bytes[0] = self.exchange(first);
            }
            bytes = &mut bytes[many.max(1)..];
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

    /// The inside of a block received, all bytes at once; returns how many.
    fn receive_run(&mut self, bytes: &[u8]) -> usize {
        let Task::Receive { write, at } = self.task else {
            return 0;
        };
        // The last byte has consequences.
        let many = self
            .unharmed(bytes.len())
            .min(Task::RECEIVED_BYTES - 1 - at);
        if !self.is_selected || !self.answer.is_empty() {
            return 0;
        }
        self.buffer[at..at + many].copy_from_slice(&bytes[..many]);
        self.task = Task::Receive {
            write,
            at: at + many,
        };
        self.pass(many);
        many
    }

    /// The inside of a block sent, all bytes at once; returns how many.
    fn send_run(&mut self, bytes: &mut [u8]) -> usize {
        let Task::Send(mut send) = self.task else {
            return 0;
        };
        let is_quiet = self.is_selected && self.answer.is_empty() && self.frame.is_empty();
        if !is_quiet || send.at == 0 {
            return 0;
        }
        let many = self.unharmed(bytes.len()).min(send.end - 1 - send.at);
        if bytes[..many].iter().any(|&byte| byte != RELEASED) {
            return 0;
        }
        bytes[..many].copy_from_slice(&self.buffer[send.at..send.at + many]);
        send.at += many;
        self.task = Task::Send(send);
        self.pass(many);
        many
    }

    /// How many of so many bytes pass before a strike.
    fn unharmed(&self, bytes: usize) -> usize {
        let left = self.faults.next_byte.saturating_sub(self.count.bytes);
        bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    pub(super) fn pass(&mut self, bytes: usize) {
        self.pace.bytes(bytes);
        self.count_bytes(bytes);
    }

    fn count_bytes(&mut self, bytes: usize) {
        self.count.bytes += bytes as u64;
        if self.is_selected {
            self.count.selected += bytes as u64;
        }
    }

    /// What the host says; the task decides what it means.
    fn hear(&mut self, byte: u8) {
        if let Task::Receive { write, at } = self.task {
            return self.receive(write, at, byte);
        }
        if let Task::Await(write) = self.task
            && self.frame.is_empty()
            && self.begin_block(write, byte)
        {
            return;
        }
        if let Some(command) = self.frame.push(byte)
            && !self.faults.lose_command()
        {
            self.obey(command);
        }
    }
}
