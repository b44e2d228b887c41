//! Unmodified card drivers on the simulated SPI bus, with a FAT file system on top.

use crate::reference;
use cardiograph_sim_card::wire::{Kind, Options, SpiCard, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Clock, Profile, Seed};
use cardiograph_store::{FatCard, FatFile, StoreError, format};
use cardiograph_workload::Store;
use embedded_sdmmc::{
    Block, BlockCount, BlockDevice, BlockIdx, Mode, SdCard, SdCardError, TimeSource, Timestamp,
    VolumeIdx, VolumeManager,
};
use std::cell::RefCell;
use std::io::{Read, Seek, SeekFrom, Write};

const CAPACITY: u64 = 256 << 20;

struct Midnight;

impl TimeSource for Midnight {
    fn get_timestamp(&self) -> Timestamp {
        Timestamp::from_calendar(2026, 1, 1, 0, 0, 0).unwrap()
    }
}

fn profile() -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = CAPACITY;
    profile
}

/// Returns a formatted card on a bus, and the first block of its partition.
fn formatted(options: Options) -> (Wire, u64) {
    let mut card = Card::new(&profile(), Seed::new(1));
    let partition = format(&mut card, 4096).unwrap();
    let card = SpiCard::new(card, options, Clock::default(), 10_000_000).unwrap();
    (Wire::new(card), partition.start)
}

fn content() -> Vec<u8> {
    (0..50_000u32).map(|i| ((i * i) >> 7) as u8).collect()
}

/// Writes a file and reads it back.
fn write_and_read<D: BlockDevice>(device: D)
where
    D::Error: std::fmt::Debug,
{
    let manager = VolumeManager::new(device, Midnight);
    let volume = manager.open_volume(VolumeIdx(0)).unwrap();
    let root = volume.open_root_dir().unwrap();
    let file = root.open_file_in_dir("DATA.BIN", Mode::ReadWriteCreate);
    let file = file.unwrap();
    for piece in content().chunks(777) {
        file.write(piece).unwrap();
    }
    file.flush().unwrap();
    file.seek_from_start(0).unwrap();
    let mut back = vec![0; content().len()];
    let mut at = 0;
    while at < back.len() {
        at += file.read(&mut back[at..]).unwrap();
    }
    assert!(back == content());
}

/// The card's partition as a byte stream, read without the bus.
struct Image {
    card: Card,
    start: u64,
    at: u64,
}

impl Read for Image {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut block = [[0; BLOCK_BYTES]];
        self.card
            .load(self.start + self.at / BLOCK_BYTES as u64, &mut block);
        let within = (self.at % BLOCK_BYTES as u64) as usize;
        let count = buffer.len().min(BLOCK_BYTES - within);
        buffer[..count].copy_from_slice(&block[0][within..within + count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for Image {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Image {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(by) => CAPACITY.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

fn check_with_fatfs(wire: Wire, start: u64) {
    let card = wire.into_card().expect("a driver still uses the bus");
    let image = Image { card, start, at: 0 };
    let volume = fatfs::FileSystem::new(image, fatfs::FsOptions::new()).unwrap();
    let mut back = Vec::new();
    let mut file = volume.root_dir().open_file("DATA.BIN").unwrap();
    file.read_to_end(&mut back).unwrap();
    assert!(back == content());
}

fn every_card() -> impl Iterator<Item = Options> {
    [Kind::Version1, Kind::Standard, Kind::High]
        .into_iter()
        .flat_map(|kind| {
            [1, 2, 8].map(|ncr_bytes| Options {
                kind,
                ncr_bytes,
                ..Options::default()
            })
        })
}

#[test]
fn embedded_sdmmc_works_unmodified() {
    for options in every_card() {
        let (wire, start) = formatted(options);
        wire.power_up();
        let card = SdCard::new(wire.device(), wire.delay());
        assert_eq!(card.num_bytes().unwrap(), CAPACITY);
        write_and_read(card);
        check_with_fatfs(wire, start);
    }
}

/// The reference driver as a block device.
struct Reference<Bus, Pin>(RefCell<reference::Driver<Bus, Pin>>);

impl<Bus, Pin> BlockDevice for Reference<Bus, Pin>
where
    Bus: embedded_hal::spi::SpiBus,
    Pin: embedded_hal::digital::OutputPin,
{
    type Error = reference::Failure;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), Self::Error> {
        let mut data = vec![[0; BLOCK_BYTES]; blocks.len()];
        self.0.borrow_mut().read(start.0, &mut data)?;
        for (block, data) in blocks.iter_mut().zip(data) {
            block.contents = data;
        }
        Ok(())
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), Self::Error> {
        let data: Vec<_> = blocks.iter().map(|block| block.contents).collect();
        self.0.borrow_mut().write(start.0, &data)
    }

    fn num_blocks(&self) -> Result<BlockCount, Self::Error> {
        Ok(BlockCount((CAPACITY / BLOCK_BYTES as u64) as u32))
    }
}

#[test]
fn the_reference_driver_works() {
    for options in every_card() {
        let (wire, start) = formatted(options);
        let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
        driver.init().unwrap();
        let csd: [u8; 16] = driver.register(9).unwrap();
        let scr: [u8; 8] = driver.register(51).unwrap();
        assert_eq!(csd[0] >> 6, u8::from(options.kind == Kind::High));
        assert_eq!(scr[1] & 0xF, 0b0101);
        // The card reports speed class 10 and an allocation unit of 4 MiB.
        let status = driver.sd_status().unwrap();
        assert_eq!((status[8], status[10] >> 4), (4, 9));
        let data: Vec<_> = (0..20).map(|i| [i; 512]).collect();
        driver.write(300_000, &data).unwrap();
        assert_eq!(driver.blocks_written(), Ok(20));
        let mut back = vec![[0; 512]; 20];
        driver.read(300_000, &mut back).unwrap();
        assert_eq!(back, data);
        driver.erase(300_005, 300_009).unwrap();
        driver.read(300_000, &mut back).unwrap();
        assert_eq!(
            (back[4], back[5], back[9], back[10]),
            ([4; 512], [0; 512], [0; 512], [10; 512])
        );
        write_and_read(Reference(RefCell::new(driver)));
        check_with_fatfs(wire, start);
    }
}

#[test]
fn embedded_sdmmc_takes_busy_after_a_stop_token_for_a_response() {
    let (wire, _) = formatted(Options::default());
    wire.power_up();
    let card = SdCard::new(wire.device(), wire.delay());
    card.num_bytes().unwrap();
    let mut blocks = [const { Block { contents: [1; 512] } }; 2];
    // Two blocks are less than a page, so the card is busy after the stop token. The driver checks only the
    // undefined byte after the token, sends its next command while the busy card ignores commands, and reads
    // the busy signal first as R1 and then as a wrong token.
    card.write(&blocks, BlockIdx(0)).unwrap();
    assert!(matches!(
        card.read(&mut blocks[..1], BlockIdx(0)),
        Err(SdCardError::ReadError)
    ));
    card.write(&blocks, BlockIdx(0)).unwrap();
    assert!(matches!(
        card.write(&blocks[..1], BlockIdx(0)),
        Err(SdCardError::WriteError)
    ));
    // If time passes in between, the same write succeeds.
    wire.card().clock().advance_ns(1_000_000_000);
    card.write(&blocks[..1], BlockIdx(0)).unwrap();
}

/// Writes a file block by block until `stop` returns true, at most 20,000 blocks; returns the number of
/// blocks.
fn write_until(
    store: &mut FatCard,
    file: &mut FatFile,
    stop: impl Fn(&FatCard) -> bool,
) -> Result<u64, StoreError> {
    for i in 0..20_000u64 {
        if stop(store) {
            return Ok(i);
        }
        store.write(file, i * 512, &[i as u8; 512])?;
    }
    panic!("no stall within 20,000 writes");
}

#[test]
fn a_stall_longer_than_the_drivers_timeout_is_counted_and_no_data_is_lost() {
    let mut profile = profile();
    // A merge takes 64 * 20 ms in one stall.
    profile.flash.program_us = vec![20_000];
    profile.controller.stall_limit_us = u32::MAX;
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(&profile, &board, 1).unwrap();
    let mut file = store.create("SLOW.BIN").unwrap();
    let blocks = write_until(&mut store, &mut file, |store| store.timeouts() > 0).unwrap();
    store.close(file).unwrap();

    let mut file = store.open("SLOW.BIN", false).unwrap();
    let mut read = [0; 512];
    for i in 0..blocks {
        assert_eq!(store.read(&mut file, i * 512, &mut read).unwrap(), 512);
        assert_eq!(read, [i as u8; 512], "block {i}");
    }
    assert_eq!(store.read(&mut file, blocks * 512, &mut read).unwrap(), 0);
}

#[test]
fn a_card_that_stays_busy_is_an_error_with_a_remedy() {
    let mut profile = profile();
    // A merge takes 256 * 100 ms in one stall.
    profile.flash.pages_per_block = 256;
    profile.flash.program_us = vec![100_000];
    profile.controller.stall_limit_us = u32::MAX;
    let board = Board::named("esp32").unwrap();
    let mut store = FatCard::new(&profile, &board, 1).unwrap();
    let mut file = store.create("STUCK.BIN").unwrap();
    let failed = write_until(&mut store, &mut file, |_| false).unwrap_err();
    assert!(failed.to_string().contains("shorter stalls"), "{failed}");
}
