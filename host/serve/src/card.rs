//! A card or a card image on this computer, served through the recorder's file system without being mounted.

use crate::listener::{Listener, Settings};
use cardiograph_card::{BLOCK_BYTES, Block, BlockDevice, WriteError};
use cardiograph_record::{CardFile, CardFileError, dos_time_now, unix_s_of_local};
use cardiograph_recorder::{
    Blocks, Config, Control, FatError, FatVolume, Format, Parts, RING_BYTES_MIN, ReadDesk,
    Recorder, Ring, StreamConfig, Volume, Window,
};
use cardiograph_server::{CardStorage, NoInstrument};
use embedded_hal_async::delay::DelayNs;
use futures_util::FutureExt;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

/// Blocks of a read buffer.
const READ_BLOCKS: usize = 128;
/// Number of read buffers.
const READ_BUFFERS: usize = 4;

/// A card or an image with a FAT file system.
pub struct ServedCard {
    card: CardFile,
    /// First block after the tables of the volume.
    data_start: u32,
}

impl ServedCard {
    /// Opens a card or an image that no other program uses; several read-only servers may share an image. If
    /// `is_read_only`, nothing is ever written to it.
    ///
    /// # Errors
    /// A sentence with path and remedy.
    pub fn open(path: &Path, is_read_only: bool) -> Result<ServedCard, String> {
        let mut card = CardFile::open(path, is_read_only).map_err(|error| error.to_string())?;
        let mut volume = FatVolume::new(dos_time_now, 0);
        // Reads and writes of the file block the thread, so the future completes at its first poll.
        match volume.mount(&mut card).now_or_never() {
            Some(Err(FatError::Card(error))) => Err(error.to_string()),
            Some(Err(error)) => {
                // Remedies for a device, such as formatting the card, do not apply.
                let text = error.to_string();
                let reason = text.split("; ").next().unwrap_or_default();
                Err(format!(
                    "{}: {reason}; use a card or an image with FAT16 or FAT32, or mount the card and name its mount point",
                    path.display()
                ))
            }
            _ => Ok(ServedCard {
                card,
                data_start: volume.data_start(),
            }),
        }
    }
}

impl Listener {
    /// Serves the files of a card or an image until `is_stopped` returns true. A read-only server writes nothing to
    /// it, not even repairs: interrupted recordings look as if they were trimmed.
    ///
    /// # Errors
    /// Errors of the operating system, at the start only.
    pub fn serve_card(
        self,
        card: ServedCard,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut buffers: Vec<Block> = vec![[0; BLOCK_BYTES]; READ_BLOCKS * READ_BUFFERS];
        let desk = ReadDesk::with_buffers(&mut buffers, READ_BUFFERS);
        let control = Control::new();
        let begun = Instant::now();
        let parts = Parts {
            medium: Medium {
                card: card.card,
                data_start: card.data_start,
                has_pending: false,
                start: 0,
                written: Vec::new(),
            },
            volume: FatVolume::new(dos_time_now, 0),
            clock: move || begun.elapsed().as_micros() as u64,
            delay: Sleep,
            events: |_| (),
            control: &control,
            reads: Some(&desk),
        };
        // A recorder needs a stream, even if it only serves.
        let stream = StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "",
                line_bytes_max: 1,
            },
            window: Window::default(),
        };
        let mut ring: Ring<[AtomicU8; RING_BYTES_MIN]> = Ring::new();
        let (_, consumer) = ring.split(stream.format);
        let mut recorder = Recorder::new(parts, Config::default(), [(stream, consumer)]);
        let serving = async {
            match recorder.serve(|| false).await {
                Ok(()) => io::Error::other("the card is no longer served"),
                Err(error) => io::Error::other(error.to_string()),
            }
        };
        let storage = CardStorage::new(&desk)
            .with_zone(unix_s_of_local)
            .keeping_free(settings.keep_free_bytes);
        self.serve_with(&storage, &NoInstrument, settings, is_stopped, serving)
    }
}

/// A card as the recorder's block device.
struct Medium {
    card: CardFile,
    /// First block after the tables of the volume.
    data_start: u32,
    /// Blocks have been written that may not be durable yet.
    has_pending: bool,
    /// First block of the open write.
    start: u32,
    /// Blocks of the open write, which are written at its end.
    written: Vec<Block>,
}

impl Medium {
    fn put(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<CardFileError>> {
        let durable_blocks = 0;
        let written = self.write_in_order(start, blocks);
        written.map_err(|cause| WriteError {
            cause,
            durable_blocks,
        })
    }

    /// Writes blocks. Contents of files become durable before the tables, entries and journal records that follow them:
    /// every record is a single block, and a change ends with one. A sync per write would limit uploads to the rate of syncs.
    fn write_in_order(&mut self, start: u32, blocks: &[Block]) -> Result<(), CardFileError> {
        let is_contents = start >= self.data_start && blocks.len() > 1;
        if self.has_pending && !is_contents {
            self.card.sync()?;
            self.has_pending = false;
        }
        let mut make = |at: u32, block: &mut Block| *block = blocks[at as usize];
        self.card
            .write_later(start, blocks.len() as u32, &mut make)?;
        self.has_pending |= is_contents;
        match is_contents {
            true => Ok(()),
            false => self.card.sync(),
        }
    }
}

impl BlockDevice for Medium {
    type Error = CardFileError;

    async fn acquire(&mut self) -> Result<(), CardFileError> {
        Ok(())
    }

    fn blocks(&self) -> u32 {
        self.card.blocks()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), CardFileError> {
        self.card.read(start, blocks).await
    }

    async fn write(
        &mut self,
        start: u32,
        blocks: &[Block],
    ) -> Result<(), WriteError<CardFileError>> {
        self.put(start, blocks)
    }

    async fn begin(&mut self, start: u32, _: u32) -> Result<(), WriteError<CardFileError>> {
        self.start = start;
        self.written.clear();
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<CardFileError>> {
        self.written.push(*block);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<CardFileError>> {
        let blocks = std::mem::take(&mut self.written);
        self.put(self.start, &blocks)
    }
}

/// Delays of the server's runtime.
struct Sleep;

impl DelayNs for Sleep {
    async fn delay_ns(&mut self, ns: u32) {
        tokio::time::sleep(Duration::from_nanos(ns.into())).await;
    }
}
