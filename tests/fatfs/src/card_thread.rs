//! A simulated card in a thread of its own: FatFs requires a driver that can move between threads, and a card on a bus cannot.

use crate::reference::Driver;
use cardiograph_sim_card::wire::{Options, SpiCard, Wire};
use cardiograph_sim_card::{Card, Clock};
use fatfs_embedded::fatfs::diskio::{DiskResult, FatFsDriver, IoctlCommand};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const CLOCK_HZ: u32 = 10_000_000;
const BLOCK_BYTES: usize = 512;

enum Request {
    Initialise,
    Read {
        block: u32,
        blocks: usize,
    },
    Write {
        block: u32,
        data: Vec<[u8; BLOCK_BYTES]>,
    },
}

/// A block that FatFs read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read(u32),
    Write(u32),
}

/// Blocks that were read; none after other requests.
type Answer = Result<Vec<[u8; BLOCK_BYTES]>, ()>;

pub struct CardThread {
    thread: JoinHandle<Card>,
    requests: Sender<(Request, Sender<Answer>)>,
    blocks: u32,
    accesses: Arc<Mutex<Vec<Access>>>,
}

impl CardThread {
    pub fn start(card: Card, options: Options) -> CardThread {
        let blocks = card.blocks() as u32;
        let (requests, received) = channel();
        let thread = std::thread::spawn(move || serve(card, options, &received));
        CardThread {
            thread,
            requests,
            blocks,
            accesses: Arc::default(),
        }
    }

    /// Returns the accesses since the last call.
    pub fn take_accesses(&self) -> Vec<Access> {
        std::mem::take(&mut self.accesses.lock().unwrap())
    }

    pub fn driver(&self) -> ThreadDriver {
        ThreadDriver {
            requests: Mutex::new(self.requests.clone()),
            blocks: self.blocks,
            accesses: Arc::clone(&self.accesses),
        }
    }

    /// Returns the card once the last driver is gone.
    pub fn stop(self) -> Card {
        // FatFs keeps the driver that was installed last.
        embassy_futures::block_on(fatfs_embedded::fatfs::diskio::install(NoCard));
        drop(self.requests);
        self.thread.join().unwrap()
    }
}

/// Answers requests until their senders are gone.
fn serve(card: Card, options: Options, requests: &Receiver<(Request, Sender<Answer>)>) -> Card {
    let card = SpiCard::new(card, options, Clock::default(), CLOCK_HZ).unwrap();
    let wire = Wire::new(card);
    let mut driver = Driver::new(wire.bus(), wire.chip_select(), true);
    for (request, answer) in requests {
        let mut data = Vec::new();
        let done = match request {
            Request::Initialise => driver.init(),
            Request::Read { block, blocks } => {
                data = vec![[0; BLOCK_BYTES]; blocks];
                driver.read(block, &mut data)
            }
            Request::Write { block, data } => driver.write(block, &data),
        };
        let _ = answer.send(done.map(|()| data).map_err(drop));
    }
    drop(driver);
    wire.into_card().expect("a driver still uses the bus")
}

pub struct ThreadDriver {
    requests: Mutex<Sender<(Request, Sender<Answer>)>>,
    blocks: u32,
    accesses: Arc<Mutex<Vec<Access>>>,
}

impl ThreadDriver {
    fn note(&self, kind: fn(u32) -> Access, start: u32, blocks: usize) {
        let blocks = start..start + blocks as u32;
        self.accesses.lock().unwrap().extend(blocks.map(kind));
    }

    fn ask(&self, request: Request) -> Answer {
        let (answer, answered) = channel();
        let requests = self.requests.lock().unwrap();
        requests.send((request, answer)).map_err(drop)?;
        answered.recv().map_err(drop)?
    }
}

impl FatFsDriver for ThreadDriver {
    fn disk_status(&self, _: u8) -> u8 {
        0
    }

    fn disk_initialize(&mut self, _: u8) -> u8 {
        /// `STA_NOINIT` of FatFs.
        const NOT_INITIALISED: u8 = 1;
        match self.ask(Request::Initialise) {
            Ok(_) => 0,
            Err(()) => NOT_INITIALISED,
        }
    }

    fn disk_read(&mut self, _: u8, buffer: &mut [u8], sector: u32) -> DiskResult {
        let blocks = buffer.len() / BLOCK_BYTES;
        self.note(Access::Read, sector, blocks);
        match self.ask(Request::Read {
            block: sector,
            blocks,
        }) {
            Ok(data) => {
                buffer.copy_from_slice(data.as_flattened());
                DiskResult::Ok
            }
            Err(()) => DiskResult::Error,
        }
    }

    fn disk_write(&mut self, _: u8, buffer: &[u8], sector: u32) -> DiskResult {
        let (data, _) = buffer.as_chunks();
        let data = data.to_vec();
        self.note(Access::Write, sector, data.len());
        match self.ask(Request::Write {
            block: sector,
            data,
        }) {
            Ok(_) => DiskResult::Ok,
            Err(()) => DiskResult::Error,
        }
    }

    fn disk_ioctl(&self, data: &mut IoctlCommand) -> DiskResult {
        match data {
            // The driver waits for the card at the end of each write.
            IoctlCommand::CtrlSync(()) => {}
            IoctlCommand::GetSectorCount(count) => *count = self.blocks,
            IoctlCommand::GetSectorSize(bytes) => *bytes = BLOCK_BYTES as u16,
            IoctlCommand::GetBlockSize(blocks) => *blocks = 8192,
        }
        DiskResult::Ok
    }
}

/// Takes the place of a driver whose card is needed elsewhere.
struct NoCard;

impl FatFsDriver for NoCard {
    fn disk_status(&self, _: u8) -> u8 {
        1
    }

    fn disk_initialize(&mut self, _: u8) -> u8 {
        1
    }

    fn disk_read(&mut self, _: u8, _: &mut [u8], _: u32) -> DiskResult {
        DiskResult::NotReady
    }

    fn disk_write(&mut self, _: u8, _: &[u8], _: u32) -> DiskResult {
        DiskResult::NotReady
    }

    fn disk_ioctl(&self, _: &mut IoctlCommand) -> DiskResult {
        DiskResult::NotReady
    }
}
