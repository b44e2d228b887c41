//! A small SD card driver over SPI, written from the SD Physical Layer Simplified Specification for
//! these tests: chapter 7, figures 7-2 (initialisation), 7-3 to 7-7 (reading and writing).
//!
//! It keeps chip select asserted for a whole transfer, observes NWR, skips the byte after the stop token and
//! has no timeout except for a start token: in all these points it differs from embedded-sdmmc.
#![allow(dead_code, reason = "each crate that includes it uses some of it")]

use embedded_hal::digital::OutputPin;
use embedded_hal::spi::SpiBus;

pub type Block = [u8; 512];

/// Timeout for a start token, in bytes; a card without power never sends a token.
const TOKEN_BYTES_MAX: u32 = 20_000;

/// Error of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No response within eight bytes, or no start token before the timeout.
    NoResponse,
    /// The card sent an R1 that reports an error.
    Rejected(u8),
    /// The card sent a data response other than "accepted".
    Block(u8),
    /// The card sent a token other than the start token.
    Token(u8),
    /// The checksum does not match the data.
    Checksum,
    /// The card reported an error status; the value is the second byte of R2.
    Status(u8),
}

impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

pub struct Driver<Bus, Pin> {
    bus: Bus,
    pin: Pin,
    has_high_capacity: bool,
    crc: bool,
    /// Number of filler bytes between R1 and a start token.
    pub nwr: usize,
}

/// Returns a CRC computed bit by bit, as section 4.5 defines it; shares no code with the card.
fn crc(bits: u32, polynomial: u32, bytes: &[u8]) -> u32 {
    let mut sum = 0;
    for byte in bytes {
        for bit in (0..8).rev() {
            let carry = sum >> (bits - 1) & 1 ^ u32::from(byte >> bit & 1);
            let shifted = (sum << 1) & ((1 << bits) - 1);
            sum = if carry == 1 {
                shifted ^ polynomial
            } else {
                shifted
            };
        }
    }
    sum
}

impl<Bus: SpiBus, Pin: OutputPin> Driver<Bus, Pin> {
    pub fn new(bus: Bus, pin: Pin, crc: bool) -> Self {
        let (nwr, has_high_capacity) = (1, false);
        Driver {
            bus,
            pin,
            has_high_capacity,
            crc,
            nwr,
        }
    }

    fn byte(&mut self, out: u8) -> u8 {
        let mut byte = [out];
        self.bus.transfer_in_place(&mut byte).unwrap();
        byte[0]
    }

    /// Waits for the end of busy.
    pub fn wait(&mut self) {
        while self.byte(0xFF) != 0xFF {}
    }

    /// Runs `act` with the card selected, then sends the eight clocks that the card may need.
    fn selected<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.pin.set_low().unwrap();
        let result = act(self);
        self.pin.set_high().unwrap();
        self.byte(0xFF);
        result
    }

    fn send(&mut self, index: u8, argument: u32) {
        let mut frame = [0x40 | index, 0, 0, 0, 0, 0];
        frame[1..5].copy_from_slice(&argument.to_be_bytes());
        frame[5] = (crc(7, 0x09, &frame[..5]) << 1 | 1) as u8;
        self.bus.write(&frame).unwrap();
    }

    fn response(&mut self) -> Result<u8, Failure> {
        (0..9)
            .map(|_| self.byte(0xFF))
            .find(|byte| byte & 0x80 == 0)
            .ok_or(Failure::NoResponse)
    }

    fn command(&mut self, index: u8, argument: u32) -> Result<u8, Failure> {
        self.send(index, argument);
        self.response()
    }

    fn command_ok(&mut self, index: u8, argument: u32) -> Result<(), Failure> {
        match self.command(index, argument)? {
            0 => Ok(()),
            r1 => Err(Failure::Rejected(r1)),
        }
    }

    fn app_command(&mut self, index: u8, argument: u32) -> Result<u8, Failure> {
        self.command(55, 0)?;
        self.command(index, argument)
    }

    fn read_four(&mut self) -> [u8; 4] {
        [(); 4].map(|()| self.byte(0xFF))
    }

    /// Initialises the card (figure 7-2).
    pub fn init(&mut self) -> Result<(), Failure> {
        self.pin.set_high().unwrap();
        self.bus.write(&[0xFF; 10]).unwrap();
        self.selected(|card| {
            let r1 = card.command(0, 0)?;
            if r1 != 1 {
                return Err(Failure::Rejected(r1));
            }
            let is_version_2 = card.command(8, 0x15A)? & 4 == 0;
            if is_version_2 && card.read_four() != [0, 0, 1, 0x5A] {
                return Err(Failure::Status(8));
            }
            card.command_ok_in_idle(59, u32::from(card.crc))?;
            let argument = if is_version_2 { 1 << 30 } else { 0 };
            while card.app_command(41, argument)? & 1 == 1 {}
            card.command_ok(58, 0)?;
            card.has_high_capacity = card.read_four()[0] & 0x40 != 0;
            card.command_ok(16, 512)
        })
    }

    fn command_ok_in_idle(&mut self, index: u8, argument: u32) -> Result<(), Failure> {
        match self.command(index, argument)? {
            1 => Ok(()),
            r1 => Err(Failure::Rejected(r1)),
        }
    }

    fn block_address(&self, block: u32) -> u32 {
        if self.has_high_capacity {
            block
        } else {
            block * 512
        }
    }

    fn receive_data(&mut self, data: &mut [u8]) -> Result<(), Failure> {
        let mut line = (0..TOKEN_BYTES_MAX).map(|_| self.byte(0xFF));
        let token = line.find(|byte| *byte != 0xFF);
        let token = token.ok_or(Failure::NoResponse)?;
        if token != 0xFE {
            return Err(Failure::Token(token));
        }
        self.bus.read(data).unwrap();
        let sum = u32::from(self.byte(0xFF)) << 8 | u32::from(self.byte(0xFF));
        if self.crc && sum != crc(16, 0x1021, data) {
            return Err(Failure::Checksum);
        }
        Ok(())
    }

    fn send_block(&mut self, token: u8, data: &Block) -> Result<(), Failure> {
        self.bus.write(&[0xFF; 4][..self.nwr]).unwrap();
        self.byte(token);
        self.bus.write(data).unwrap();
        let sum = if self.crc {
            crc(16, 0x1021, data) as u16
        } else {
            0
        };
        self.bus.write(&sum.to_be_bytes()).unwrap();
        match self.byte(0xFF) & 0x1F {
            0b00101 => Ok(()),
            response => Err(Failure::Block(response)),
        }
    }

    /// Reads the CSD (9), the CID (10) or, after CMD55, the SCR (51).
    pub fn register<const N: usize>(&mut self, index: u8) -> Result<[u8; N], Failure> {
        self.selected(|card| {
            if index == 51 {
                card.command(55, 0)?;
            }
            let mut data = [0; N];
            card.command_ok(index, 0)?;
            card.receive_data(&mut data)?;
            Ok(data)
        })
    }

    /// Reads the SD status (ACMD13).
    pub fn sd_status(&mut self) -> Result<[u8; 64], Failure> {
        self.selected(|card| {
            let mut data = [0; 64];
            card.command(55, 0)?;
            card.status(13)?;
            card.receive_data(&mut data)?;
            Ok(data)
        })
    }

    /// Selects high speed as section 4.3.10.4.1 describes: checks that the card has the function and is not busy with
    /// it, then switches. Returns false if the card lacks it.
    pub fn select_high_speed(&mut self) -> Result<bool, Failure> {
        let check = self.switch(0x00FF_FFF1)?;
        let has_function = check[13] & 2 != 0 && check[16] & 0xF == 1;
        if !has_function {
            return Ok(false);
        }
        let result = self.switch(0x80FF_FFF1)?;
        Ok(result[16] & 0xF == 1)
    }

    fn switch(&mut self, argument: u32) -> Result<[u8; 64], Failure> {
        self.selected(|card| {
            let mut status = [0; 64];
            card.command_ok(6, argument)?;
            card.receive_data(&mut status)?;
            // The new function applies after eight clocks (4.3.10.3).
            card.byte(0xFF);
            Ok(status)
        })
    }

    /// Reads the number of written blocks (ACMD22).
    pub fn blocks_written(&mut self) -> Result<u32, Failure> {
        self.selected(|card| {
            let mut data = [0; 4];
            card.app_command(22, 0)?;
            card.receive_data(&mut data)?;
            Ok(u32::from_be_bytes(data))
        })
    }

    fn status(&mut self, index: u8) -> Result<(), Failure> {
        self.command_ok(index, 0)?;
        match self.byte(0xFF) {
            0 => Ok(()),
            status => Err(Failure::Status(status)),
        }
    }

    /// Checks the status (CMD13).
    pub fn check(&mut self) -> Result<(), Failure> {
        self.selected(|card| card.status(13))
    }

    pub fn read(&mut self, block: u32, data: &mut [Block]) -> Result<(), Failure> {
        let address = self.block_address(block);
        self.selected(|card| {
            if let [data] = data {
                card.command_ok(17, address)?;
                return card.receive_data(data);
            }
            card.command_ok(18, address)?;
            let result = data.iter_mut().try_for_each(|data| card.receive_data(data));
            card.send(12, 0);
            card.byte(0xFF);
            card.response()?;
            card.wait();
            result
        })
    }

    /// Sends CMD24 and a block up to the data response; the card is then still busy.
    pub fn begin_write(&mut self, block: u32, data: &Block) -> Result<(), Failure> {
        let address = self.block_address(block);
        self.pin.set_low().unwrap();
        self.command_ok(24, address)?;
        self.send_block(0xFE, data)
    }

    pub fn write(&mut self, block: u32, data: &[Block]) -> Result<(), Failure> {
        let address = self.block_address(block);
        self.selected(|card| {
            if let [data] = data {
                card.command_ok(24, address)?;
                card.send_block(0xFE, data)?;
                card.wait();
                return card.status(13);
            }
            card.command_ok(25, address)?;
            let result = data.iter().try_for_each(|data| {
                card.send_block(0xFC, data)?;
                card.wait();
                Ok(())
            });
            card.byte(0xFD);
            // Skip the undefined byte after the stop token before polling for busy.
            card.byte(0xFF);
            card.wait();
            result.and(card.status(13))
        })
    }

    /// Writes a burst like embedded-sdmmc: polls before each transfer, sends ACMD23 first, and does not wait
    /// for the end of busy. embedded-sdmmc uses bursts from two blocks on, this driver from one block on.
    pub fn burst(&mut self, block: u32, data: &[Block]) -> Result<(), Failure> {
        let address = self.block_address(block);
        self.nwr = 0;
        self.pin.set_low().unwrap();
        for (index, argument) in [(55, 0), (23, data.len() as u32)] {
            self.wait();
            self.command_ok(index, argument)?;
        }
        self.wait();
        self.wait();
        self.command_ok(25, address)?;
        for data in data {
            self.wait();
            self.send_block(0xFC, data)?;
        }
        self.wait();
        self.byte(0xFD);
        Ok(())
    }

    pub fn erase(&mut self, first: u32, last: u32) -> Result<(), Failure> {
        let (first, last) = (self.block_address(first), self.block_address(last));
        self.selected(|card| {
            card.command_ok(32, first)?;
            card.command_ok(33, last)?;
            card.command_ok(38, 0)?;
            card.wait();
            card.status(13)
        })
    }
}
