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

mod latencies;
mod magnetometer;
mod pace;

use cardiograph_record::dos_time_now;
use cardiograph_recorder::{Newest, NewestMemory, Session, StreamConfig, Window};
use cardiograph_serve::{Listener, Settings};
use cardiograph_server::{Actions, CardRecorder, CardStorage, LiveStream, Refusal, WriteLatency};
use cardiograph_sim_card::{Card, Seed, Spi};
use cardiograph_sim_device::{Device, Outcome, StreamSetup};
use latencies::Latencies;
use magnetometer::Magnetometer;
use pace::Pace;
use std::cell::Cell;
use std::io;
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
    /// The card; it is formatted at the start.
    pub card: Card,
    /// Bus between processor and card.
    pub spi: Spi,
    /// Cluster size of the file system, in bytes.
    pub cluster_bytes: u32,
    /// Seed of the device.
    pub seed: Seed,
}

impl VirtualLogger {
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
        mut self,
        listener: Listener,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        cardiograph_store::format(&mut self.card, self.cluster_bytes)
            .map_err(|error| error.to_string())?;
        let spi = &self.spi;
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
        let mut session = None;
        loop {
            let again = listener.try_clone().map_err(|error| error.to_string())?;
            let start = Start {
                session: Cell::default(),
                latencies: Rc::clone(&latencies),
            };
            record(
                &device, newest, session, again, settings, is_stopped, &start,
            )?;
            match start.session.take() {
                Some(next) if !is_stopped() => session = next,
                _ => return Ok(()),
            }
        }
    }
}

/// Records and serves until `is_stopped` returns true, or a client asks for another recording.
fn record(
    device: &Device,
    newest: Newest<'static>,
    session: Option<Session>,
    listener: Listener,
    settings: &Settings,
    is_stopped: &dyn Fn() -> bool,
    start: &Start,
) -> Result<(), String> {
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
        newest,
    }];
    let mut served = Ok(());
    let run = device.log_with(
        [stream],
        |_, _| (),
        |_, _, _| None,
        |world, running, control, desk| {
            let storage = CardStorage::new(desk);
            let recorder = CardRecorder::new(desk, control, &live, start);
            let mut pace = Pace::new(world, running);
            // Nobody has to wait until the card is mounted.
            pace.skip_until(|| control.is_ready());
            if pace.has_ended() {
                return pace.end();
            }
            let is_ending = || is_stopped() || start.is_due();
            served = listener.serve_with(&storage, &recorder, settings, &is_ending, async {
                pace.run().await;
                io::Error::other("the virtual device has stopped")
            });
            pace.end()
        },
    );
    match (run.outcome, served) {
        (Outcome::Refused(why) | Outcome::Stuck(why), _) => Err(why),
        (Outcome::Done(_) | Outcome::PowerCut, served) => served.map_err(|error| error.to_string()),
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
