//! A virtual data logger: a simulated card and board that record in real time, and serve their files over real sockets.
//!
//! ```text
//!   clients ── TCP ──> Listener ──> cardiograph-server ──> ReadDesk ──> recorder ──> FAT ──> driver ──> simulated card
//!                         │                                                │
//!                         └── runs ──> Pace ── World: virtual time <───────┘
//! ```
//!
//! Recorder, file system, driver and server are those of a device. `pace.rs` lets virtual time follow the clock of
//! this computer; on a slow computer, it falls behind.

mod demo;
mod history;
mod magnetometer;
mod pace;

use cardiograph_record::{dos_time_now, unix_s_of_local};
use cardiograph_recorder::{Newest, NewestMemory, Session, StreamConfig, Window};
use cardiograph_serve::{Listener, Settings};
use cardiograph_server::{Actions, CardRecorder, CardStorage, LiveStream, Refusal, WriteLatency};
use cardiograph_sim_card::{Board, Bus, Card, Seed, Spi};
use cardiograph_sim_device::{Device, Outcome, StreamSetup};
use demo::{Demo, Shown};
use history::Latencies;
use magnetometer::Magnetometer;
use pace::Pace;
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// Capacity of the ring buffer, in bytes.
const RING_BYTES: usize = 64 << 10;
/// Blocks of a read buffer, and number of these buffers.
const READ_BLOCKS: usize = 128;
const READ_BUFFERS: usize = 4;
/// Number of newest samples that remain in memory, for about 1 s.
const NEWEST_SAMPLES: usize = 1024;
/// Length of a sample in this memory, in bytes.
const NEWEST_BYTES: usize = 64;
/// The files are served until the device is switched off.
const FOREVER_NS: u64 = u64::MAX / 4;

/// A simulated data logger.
pub struct VirtualLogger {
    card: Card,
    board: Board,
    spi: Spi,
    seed: Seed,
}

impl VirtualLogger {
    /// Creates a logger with a card, which is formatted at the start. Returns `None` if the board has an SD bus: the
    /// recorder drives cards over SPI.
    pub fn new(card: Card, board: Board, seed: Seed) -> Option<VirtualLogger> {
        let Bus::Spi(spi) = board.bus else {
            return None;
        };
        Some(VirtualLogger {
            card,
            board,
            spi,
            seed,
        })
    }

    /// Records 860 samples per second of a simulated magnetometer, and serves the files, until `is_stopped` returns
    /// true. The device is then switched off, and its card is discarded.
    ///
    /// # Errors
    /// A sentence, if the card cannot be formatted or the device did not start; errors of the operating system at the
    /// start of the server.
    ///
    /// # Panics
    /// If the response delay (NCR) of the bus exceeds the specification, which is not the case on any board.
    pub fn serve(
        self,
        listener: Listener,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        self.run(&listener, settings, is_stopped, |_, _, _| None)
    }

    /// Serves like [`serve`](VirtualLogger::serve), and runs two more devices, which log with simple sketches: same
    /// samples, same model of card. From the page, users can cut the power of all three devices and pull the card.
    ///
    /// # Errors
    /// Those of [`serve`](VirtualLogger::serve).
    ///
    /// # Panics
    /// As for [`serve`](VirtualLogger::serve).
    pub fn demonstrate(
        self,
        listener: Listener,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        self.run(&listener, settings, is_stopped, |card, volume, board| {
            Some(Demo::start(card, volume, board))
        })
    }

    fn run(
        mut self,
        listener: &Listener,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
        demo: impl FnOnce(&Card, Range<u64>, &Board) -> Option<Demo>,
    ) -> Result<(), String> {
        let spi = self.spi;
        let volume = cardiograph_store::format(&mut self.card, self.board.library.cluster_bytes)
            .map_err(|error| error.to_string())?;
        let demo = demo(&self.card, volume, &self.board);
        let mut device = Device::new(self.card, spi.ncr_bytes as u8, spi.clock_hz, self.seed);
        device.wire.set_gaps(spi.send_gap_ns, spi.receive_gap_ns);
        device.date = dos_time_now;
        device.read_blocks = READ_BLOCKS;
        device.read_buffers = READ_BUFFERS;
        device.serves_after_ns = FOREVER_NS;
        // As on a device, this memory is never freed.
        let newest: &NewestMemory<NEWEST_SAMPLES, NEWEST_BYTES> = Box::leak(Box::default());
        let newest = newest.handle();
        device.shown = vec![newest];
        let latencies = Rc::new(Latencies::default());
        let noted = Rc::clone(&latencies);
        device.watch = Some(Box::new(move |card| noted.observe(card)));
        let running = Running {
            device: &device,
            newest,
            settings,
            is_stopped,
            demo: demo.as_ref(),
            start: Start {
                session: Cell::default(),
                latencies,
            },
        };
        running.repeat(listener)
    }
}

/// A device that is switched on.
struct Running<'a> {
    device: &'a Device,
    newest: Newest<'static>,
    settings: &'a Settings,
    is_stopped: &'a dyn Fn() -> bool,
    demo: Option<&'a Demo>,
    start: Start,
}

impl Running<'_> {
    /// Records until `is_stopped` returns true, again after each restart.
    fn repeat(&self, listener: &Listener) -> Result<(), String> {
        let mut session = None;
        loop {
            let again = listener.try_clone().map_err(|error| error.to_string())?;
            self.record(session, again)?;
            let cut = self.demo.filter(|demo| demo.is_cut());
            if let Some(demo) = cut {
                demo.restore(&self.device.wire, listener, self.is_stopped);
            }
            session = match (self.start.session.take(), cut) {
                _ if (self.is_stopped)() => return Ok(()),
                (Some(next), _) => next,
                (None, Some(_)) => None,
                (None, None) => return Ok(()),
            };
        }
    }

    /// Records and serves until `is_stopped` returns true, a client asks for another recording, or the power is cut.
    fn record(&self, session: Option<Session>, listener: Listener) -> Result<(), String> {
        let stream = StreamSetup {
            config: StreamConfig {
                prefix: *b"REC",
                format: magnetometer::FORMAT,
                window: Window::default(),
            },
            ring_bytes: RING_BYTES,
            samples: Box::new(Magnetometer { session }),
        };
        let live = [LiveStream {
            format: magnetometer::FORMAT,
            newest: self.newest,
        }];
        let note = |_, event| {
            if let Some(demo) = self.demo {
                demo.note(&event);
            }
        };
        let (mut served, mut figures) = (Ok(()), None);
        let run = self.device.log_with(
            [stream],
            note,
            |_, _, _| None,
            |world, running, control, desk| {
                let storage = CardStorage::new(desk)
                    .with_zone(unix_s_of_local)
                    .keeping_free(self.settings.keep_free_bytes);
                let instrument = Shown {
                    recorder: CardRecorder::new(desk, control, &live, &self.start),
                    demo: self.demo,
                    wire: &self.device.wire,
                };
                let mut pace = Pace::new(world, running);
                // Nobody has to wait until the card is mounted.
                pace.skip_until(|| control.is_ready());
                if pace.has_ended() {
                    return pace.end();
                }
                let is_ending = || (self.is_stopped)() || self.start.is_due();
                served =
                    listener.serve_with(&storage, &instrument, self.settings, &is_ending, async {
                        pace.run(|| !self.is_cut()).await;
                        io::Error::other("the virtual device has stopped")
                    });
                figures = Some(desk.figures());
                pace.end()
            },
        );
        if let (Some(demo), Some(figures)) = (self.demo, figures) {
            demo.end_run(run.pushed[0], figures);
        }
        match (run.outcome, served) {
            (Outcome::Refused(why) | Outcome::Stuck(why), _) => Err(why),
            _ if self.is_cut() => Ok(()),
            (Outcome::Done(_) | Outcome::PowerCut, served) => {
                served.map_err(|error| error.to_string())
            }
        }
    }

    /// Returns true after a power cut.
    fn is_cut(&self) -> bool {
        self.demo.is_some_and(Demo::is_cut)
    }
}

/// A request to record again, with a session: the device restarts with its card.
struct Start {
    session: Cell<Option<Option<Session>>>,
    latencies: Rc<Latencies>,
}

impl Start {
    fn is_due(&self) -> bool {
        let requested = self.session.take();
        let is_due = requested.is_some();
        self.session.set(requested);
        is_due
    }
}

impl Actions for Start {
    fn start(&self, session: Option<cardiograph_server::Session>) -> Result<(), Refusal> {
        let session = session
            .map(|it| Session::new(it.name, None, it.settings, &magnetometer::FORMAT))
            .transpose()?;
        self.session.set(Some(session));
        Ok(())
    }

    fn latency(&self, number: u64) -> Option<WriteLatency> {
        self.latencies.get(number)
    }

    fn has_clock(&self) -> bool {
        true
    }
}
