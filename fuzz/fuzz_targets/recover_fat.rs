//! A small FAT card with unfinished recordings and arbitrary changes: recovery must terminate without a panic,
//! and must not write past the end of the card.
//!
//! Every six bytes of input describe one change: a flag byte, the index of a non-empty block, the offset of a
//! byte in it, and the new value. If bit 0 of the flags is set and the block belongs to the journal, its
//! checksum is corrected afterwards.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_recorder::{Blocks, DosTime, Event, FatVolume, Request, Volume, recover};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

mod crc {
    include!("../crc32.rs");
}

type Block = [u8; 512];

/// Number of blocks on the card: just enough clusters for FAT16.
const BLOCKS: u32 = 4300;
/// Maximum number of reads and writes, far above what recovery of two files needs.
const STEPS_MAX: u32 = 1_000_000;

/// A card that stores changes separately from its initial contents.
struct Card<'a> {
    base: &'a [Block],
    changed: BTreeMap<u32, Block>,
    steps: u32,
}

impl Card<'_> {
    fn block(&self, number: u32) -> Block {
        *self
            .changed
            .get(&number)
            .unwrap_or(&self.base[number as usize])
    }
}

impl Blocks for Card<'_> {
    type Error = ();

    fn blocks(&self) -> u32 {
        BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), ()> {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "recovery does not terminate");
        for (number, block) in (start..).zip(blocks) {
            *block = self.block(number);
        }
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), ()> {
        self.steps += 1;
        assert!(start + count <= BLOCKS, "write past the end of the card");
        for index in 0..count {
            let mut block = [0; 512];
            make(index, &mut block);
            self.changed.insert(start + index, block);
        }
        Ok(())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a future on this card must not wait"),
    }
}

fn volume() -> FatVolume {
    FatVolume::new(|| DosTime::NO_CLOCK, 1)
}

/// A card formatted by another library, with a journal and two unfinished files.
fn base() -> &'static (Vec<Block>, Vec<u32>) {
    static BASE: OnceLock<(Vec<Block>, Vec<u32>)> = OnceLock::new();
    BASE.get_or_init(|| {
        let mut bytes = vec![0; BLOCKS as usize * 512];
        let options = fatfs::FormatVolumeOptions::new()
            .bytes_per_cluster(512)
            .fat_type(fatfs::FatType::Fat16);
        fatfs::format_volume(Cursor::new(&mut bytes[..]), options).expect("formatted");
        let blank = bytes.as_chunks::<512>().0;
        let mut card = Card {
            base: blank,
            changed: BTreeMap::new(),
            steps: 0,
        };
        let mut volume = volume();
        block_on(volume.mount(&mut card)).expect("mounted");
        for note in [0, 1] {
            let request = Request {
                prefix: *b"REC",
                extension: *b"CSV",
                blocks: 200,
                blocks_min: 128,
                shares: 1,
                note,
            };
            let file = block_on(volume.reserve(&mut card, request)).expect("reserved");
            card.changed
                .insert(file.extent.start, first_block(file.epoch, note == 1));
        }
        let blocks: Vec<_> = (0..BLOCKS).map(|number| card.block(number)).collect();
        let full = (0..BLOCKS)
            .filter(|number| blocks[*number as usize] != [0; 512])
            .collect();
        (blocks, full)
    })
}

/// Returns the first block of a recording: a text file's block with only a checkpoint mark, or a binary
/// file's header.
fn first_block(epoch: u32, is_binary: bool) -> Block {
    let mut block = [b' '; 512];
    if is_binary {
        let header =
            b"cardiograph recording 2\nprefix REC\nnumber 2\nstreams 1\nfirst 0\nat_us 0\n\
            sample_bytes 4\ncolumns 1\na u32\n";
        block.fill(0);
        block[..4].copy_from_slice(&epoch.to_le_bytes());
        block[8] = 2;
        block[14] = header.len() as u8;
        block[36..36 + header.len()].copy_from_slice(header);
        let crc = crc::crc32(&block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
        return block;
    }
    block[..3].copy_from_slice(b"a\n#");
    let zero = "00000000 ";
    let mark = format!("@{epoch:08X} {zero}00000001 {}", zero.repeat(4));
    block[438..502].copy_from_slice(mark.as_bytes());
    let crc = crc::crc32(&block[..502]);
    block[502..].copy_from_slice(format!("{crc:08X}\r\n").as_bytes());
    block
}

fn recovered(card: &mut Card) -> Result<u32, ()> {
    let mut files = 0;
    let done = block_on(recover(&mut volume(), card, |_, event| {
        files += u32::from(matches!(event, Event::Recovered { .. }));
    }));
    done.map(|()| files).map_err(|_| ())
}

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let (base, full) = base();
    let mut card = Card {
        base,
        changed: BTreeMap::new(),
        steps: 0,
    };
    for change in bytes.as_chunks::<6>().0 {
        let [flags, block, block_high, at, at_high, value] = *change;
        let number = full[usize::from(u16::from_le_bytes([block, block_high])) % full.len()];
        let mut block = card.block(number);
        block[usize::from(u16::from_le_bytes([at, at_high])) % 512] = value;
        if flags & 1 != 0 && block.starts_with(b"CARDIOJ") {
            block[16..20].fill(0);
            let crc = crc::crc32(&block);
            block[16..20].copy_from_slice(&crc.to_le_bytes());
        }
        card.changed.insert(number, block);
    }
    if bytes.len() < 6 {
        assert_eq!(recovered(&mut card), Ok(2));
    }
    if recovered(&mut card).is_ok() {
        card.steps = 0;
        let _ = recovered(&mut card);
    }
});
