//! A small SD card driver over SPI, written from the SD Physical Layer Simplified Specification for
//! these tests: chapter 7, figures 7-2 (initialisation), 7-3 to 7-7 (reading and writing).
//!
//! It holds chip select for a whole transfer, keeps NWR, skips the byte after the stop token and has
//! no limit of time but for a start token: in all of these it differs from embedded-sdmmc.
#![allow(dead_code)]

use embedded_hal::digital::OutputPin;
use embedded_hal::spi::SpiBus;

pub type Block = [u8; 512];

/// Bytes to wait for a start token; without power none comes.
const TOKEN_BYTES_MAX: u32 = 20_000;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer within eight bytes, or no start token within very many.
    Silence,
    /// An R1 that is not clear.
    Refused(u8),
    /// A data response that is not "accepted".
    Block(u8),
    /// Not a start token.
    Token(u8),
    /// The data do not fit their checksum.
    Checksum,
    /// Second byte of R2.
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
    /// Bytes between R1 and a start token.
    pub nwr: usize,
}

/// Bit by bit, as 4.5 defines it: nothing shared with the card.
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

    /// Bytes until the card is no longer busy.
    pub fn wait(&mut self) {
        while self.byte(0xFF) != 0xFF {}
    }

    /// Selects the card, acts, and lets it go with the eight clocks it may need.
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

    fn answer(&mut self) -> Result<u8, Failure> {
        (0..9)
            .map(|_| self.byte(0xFF))
            .find(|byte| byte & 0x80 == 0)
            .ok_or(Failure::Silence)
    }

    fn command(&mut self, index: u8, argument: u32) -> Result<u8, Failure> {
        self.send(index, argument);
        self.answer()
    }

    fn clear(&mut self, index: u8, argument: u32) -> Result<(), Failure> {
        match self.command(index, argument)? {
            0 => Ok(()),
            r1 => Err(Failure::Refused(r1)),
        }
    }

    fn app_command(&mut self, index: u8, argument: u32) -> Result<u8, Failure> {
        self.command(55, 0)?;
        self.command(index, argument)
    }

    fn four(&mut self) -> [u8; 4] {
        [(); 4].map(|()| self.byte(0xFF))
    }

    /// Figure 7-2.
    pub fn init(&mut self) -> Result<(), Failure> {
        self.pin.set_high().unwrap();
        self.bus.write(&[0xFF; 10]).unwrap();
        self.selected(|card| {
            let r1 = card.command(0, 0)?;
            if r1 != 1 {
                return Err(Failure::Refused(r1));
            }
            let is_version_2 = card.command(8, 0x15A)? & 4 == 0;
            if is_version_2 && card.four() != [0, 0, 1, 0x5A] {
                return Err(Failure::Status(8));
            }
            card.clear_in_idle(59, u32::from(card.crc))?;
            let argument = if is_version_2 { 1 << 30 } else { 0 };
            while card.app_command(41, argument)? & 1 == 1 {}
            card.clear(58, 0)?;
            card.has_high_capacity = card.four()[0] & 0x40 != 0;
            card.clear(16, 512)
        })
    }

    fn clear_in_idle(&mut self, index: u8, argument: u32) -> Result<(), Failure> {
        match self.command(index, argument)? {
            1 => Ok(()),
            r1 => Err(Failure::Refused(r1)),
        }
    }

    fn place(&self, block: u32) -> u32 {
        if self.has_high_capacity {
            block
        } else {
            block * 512
        }
    }

    fn receive(&mut self, data: &mut [u8]) -> Result<(), Failure> {
        let mut line = (0..TOKEN_BYTES_MAX).map(|_| self.byte(0xFF));
        let token = line.find(|byte| *byte != 0xFF);
        let token = token.ok_or(Failure::Silence)?;
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

    fn transmit(&mut self, token: u8, data: &Block) -> Result<(), Failure> {
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

    /// CSD (9), CID (10), or after CMD55 the SCR (51).
    pub fn register<const N: usize>(&mut self, index: u8) -> Result<[u8; N], Failure> {
        self.selected(|card| {
            if index == 51 {
                card.command(55, 0)?;
            }
            let mut data = [0; N];
            card.clear(index, 0)?;
            card.receive(&mut data)?;
            Ok(data)
        })
    }

    /// ACMD13.
    pub fn sd_status(&mut self) -> Result<[u8; 64], Failure> {
        self.selected(|card| {
            let mut data = [0; 64];
            card.command(55, 0)?;
            card.status(13)?;
            card.receive(&mut data)?;
            Ok(data)
        })
    }

    /// ACMD22.
    pub fn blocks_written(&mut self) -> Result<u32, Failure> {
        self.selected(|card| {
            let mut data = [0; 4];
            card.app_command(22, 0)?;
            card.receive(&mut data)?;
            Ok(u32::from_be_bytes(data))
        })
    }

    fn status(&mut self, index: u8) -> Result<(), Failure> {
        self.clear(index, 0)?;
        match self.byte(0xFF) {
            0 => Ok(()),
            status => Err(Failure::Status(status)),
        }
    }

    /// CMD13.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.selected(|card| card.status(13))
    }

    pub fn read(&mut self, block: u32, data: &mut [Block]) -> Result<(), Failure> {
        let place = self.place(block);
        self.selected(|card| {
            if let [data] = data {
                card.clear(17, place)?;
                return card.receive(data);
            }
            card.clear(18, place)?;
            let result = data.iter_mut().try_for_each(|data| card.receive(data));
            card.send(12, 0);
            card.byte(0xFF);
            card.answer()?;
            card.wait();
            result
        })
    }

    /// CMD24 without anything after the data response: the card is still busy.
    pub fn begin_write(&mut self, block: u32, data: &Block) -> Result<(), Failure> {
        let place = self.place(block);
        self.pin.set_low().unwrap();
        self.clear(24, place)?;
        self.transmit(0xFE, data)
    }

    pub fn write(&mut self, block: u32, data: &[Block]) -> Result<(), Failure> {
        let place = self.place(block);
        self.selected(|card| {
            if let [data] = data {
                card.clear(24, place)?;
                card.transmit(0xFE, data)?;
                card.wait();
                return card.status(13);
            }
            card.clear(25, place)?;
            let result = data.iter().try_for_each(|data| {
                card.transmit(0xFC, data)?;
                card.wait();
                Ok(())
            });
            card.byte(0xFD);
            // Not defined: skipped before busy is looked for.
            card.byte(0xFF);
            card.wait();
            result.and(card.status(13))
        })
    }

    /// The burst of embedded-sdmmc: a look at the line before all that is sent, ACMD23 first, and the
    /// end of busy not waited for. That driver does so from two blocks on, this one from one.
    pub fn burst(&mut self, block: u32, data: &[Block]) -> Result<(), Failure> {
        let place = self.place(block);
        self.nwr = 0;
        self.pin.set_low().unwrap();
        for (index, argument) in [(55, 0), (23, data.len() as u32)] {
            self.wait();
            self.clear(index, argument)?;
        }
        self.wait();
        self.wait();
        self.clear(25, place)?;
        for data in data {
            self.wait();
            self.transmit(0xFC, data)?;
        }
        self.wait();
        self.byte(0xFD);
        Ok(())
    }

    pub fn erase(&mut self, first: u32, last: u32) -> Result<(), Failure> {
        let (first, last) = (self.place(first), self.place(last));
        self.selected(|card| {
            card.clear(32, first)?;
            card.clear(33, last)?;
            card.clear(38, 0)?;
            card.wait();
            card.status(13)
        })
    }
}
