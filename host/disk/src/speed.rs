//! Figures behind the classes on a card's label.
//!
//! The speed classes C, U and V promise a sequential write rate that the card never falls below; the application
//! classes A1 and A2 promise reads and writes of 4 KiB at random places. The specification measures them in a defined
//! state of the card and over its native bus. These figures are those of this disk, as it is, through this reader.

use crate::error::Failed;
use crate::medium::{Aligned, Medium};
use crate::pattern::{fill, splitmix64};
use crate::store::FailedBlock;
use cardiograph_system::{is_of_medium, is_of_whole_device};
use cardiograph_workload::Clock;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;

/// Payload of a sequential call.
const CALL_BYTES: u64 = 512 << 10;

/// Payload of a stretch whose rate is compared with a class: an allocation unit.
const STRETCH_BYTES: u64 = 4 << 20;

/// Bytes written sequentially.
const SEQUENTIAL_BYTES: u64 = 128 << 20;

/// Bytes within which random calls are made, as in the specification of the application classes.
const WITHIN_BYTES: u64 = 256 << 20;

/// Payload of a random call.
const RANDOM_BYTES: u64 = 4 << 10;

/// Most calls, and longest time, of each random measurement.
const RANDOM_CALLS: u64 = 20_000;
const RANDOM_NS: u64 = 5_000_000_000;

/// Longest time of each sequential measurement.
const SEQUENTIAL_NS: u64 = 20_000_000_000;

/// Longest list of addresses at which calls failed; later ones are only counted.
const FAILED_MAX: usize = 64;

/// Measured figures; null where nothing may be written, or the disk is too small.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Speed {
    /// Mean rate of sequential writes in calls of 512 KiB.
    pub write_bytes_per_s: Option<f64>,
    /// Rate of the slowest 4 MiB among these writes.
    pub slowest_write_bytes_per_s: Option<f64>,
    /// Mean rate of sequential reads in calls of 512 KiB.
    pub read_bytes_per_s: Option<f64>,
    /// Reads of 4 KiB per second, at random places within 256 MiB.
    pub random_reads_per_s: Option<f64>,
    /// Writes of 4 KiB per second, at random places within 256 MiB.
    pub random_writes_per_s: Option<f64>,
    /// Number of calls that failed; their time counts, and their payload does not.
    pub failed_calls: u64,
    /// The first 64 addresses at which a call that failed began.
    #[serde(skip)]
    pub failed: Vec<FailedBlock>,
}

/// A class on a label, and the least figures it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Name on the label.
    pub name: &'static str,
    /// Least sequential write rate.
    pub write_bytes_per_s: f64,
    /// Least random reads and writes per second.
    pub random_per_s: Option<(f64, f64)>,
}

const fn speed_class(name: &'static str, megabytes_per_s: u32) -> Class {
    Class {
        name,
        write_bytes_per_s: megabytes_per_s as f64 * 1e6,
        random_per_s: None,
    }
}

/// The classes of the SD physical layer specification.
pub const CLASSES: [Class; 13] = [
    speed_class("C2", 2),
    speed_class("C4", 4),
    speed_class("C6", 6),
    speed_class("C10", 10),
    speed_class("U1", 10),
    speed_class("U3", 30),
    speed_class("V6", 6),
    speed_class("V10", 10),
    speed_class("V30", 30),
    speed_class("V60", 60),
    speed_class("V90", 90),
    Class {
        name: "A1",
        write_bytes_per_s: 10e6,
        random_per_s: Some((1500.0, 500.0)),
    },
    Class {
        name: "A2",
        write_bytes_per_s: 10e6,
        random_per_s: Some((4000.0, 2000.0)),
    },
];

impl Class {
    /// Returns true if the figures reach those of the class, and `None` if one of them was not measured.
    pub fn is_reached(&self, speed: &Speed) -> Option<bool> {
        let Some((reads, writes)) = self.random_per_s else {
            return Some(speed.slowest_write_bytes_per_s? >= self.write_bytes_per_s);
        };
        // The application classes ask for a sustained rate, not for the slowest unit.
        Some(
            speed.write_bytes_per_s? >= self.write_bytes_per_s
                && speed.random_reads_per_s? >= reads
                && speed.random_writes_per_s? >= writes,
        )
    }
}

/// Measures a disk. Without `writes`, nothing is written; with them, data is overwritten. `progress` may end the
/// measurement; figures measured so far are returned.
///
/// # Errors
/// Errors of the disk as a whole, and those that are not of the disk.
pub fn measure_speed(
    medium: &mut impl Medium,
    writes: bool,
    clock: &mut impl Clock,
    mut progress: impl FnMut() -> ControlFlow<()>,
) -> Result<Speed, Box<Failed<Speed>>> {
    let mut meter = Meter {
        medium,
        clock,
        buffer: Aligned::zeros(CALL_BYTES as usize),
        failed_calls: 0,
        failed: Vec::new(),
    };
    let mut speed = Speed::default();
    let ended = meter.all(writes, &mut speed, &mut progress);
    speed.failed_calls = meter.failed_calls;
    speed.failed = meter.failed;
    match ended {
        Ok(()) => Ok(speed),
        Err((offset_bytes, source)) => Err(Box::new(Failed {
            so_far: speed,
            offset_bytes: Some(offset_bytes),
            source,
        })),
    }
}

/// Address and error of a call that ends the measurement.
type Ending = (u64, io::Error);

struct Meter<'a, M, C> {
    medium: &'a mut M,
    clock: &'a mut C,
    buffer: Aligned,
    failed_calls: u64,
    failed: Vec<FailedBlock>,
}

impl<M: Medium, C: Clock> Meter<'_, M, C> {
    fn all(
        &mut self,
        writes: bool,
        speed: &mut Speed,
        progress: &mut impl FnMut() -> ControlFlow<()>,
    ) -> Result<(), Ending> {
        if writes {
            let (mean, slowest) = self.sequential(true, progress)?;
            (speed.write_bytes_per_s, speed.slowest_write_bytes_per_s) = (mean, slowest);
        }
        speed.read_bytes_per_s = self.sequential(false, progress)?.0;
        speed.random_reads_per_s = self.random(false, progress)?;
        if writes {
            speed.random_writes_per_s = self.random(true, progress)?;
        }
        Ok(())
    }

    /// Returns the mean rate, and that of the slowest stretch.
    fn sequential(
        &mut self,
        writes: bool,
        progress: &mut impl FnMut() -> ControlFlow<()>,
    ) -> Result<(Option<f64>, Option<f64>), Ending> {
        let end_bytes =
            SEQUENTIAL_BYTES.min(self.medium.capacity_bytes() / STRETCH_BYTES * STRETCH_BYTES);
        let begun_ns = self.clock.now_ns();
        let (mut total_ns, mut done_bytes) = (0, 0);
        let mut slowest: Option<f64> = None;
        for stretch in (0..end_bytes).step_by(STRETCH_BYTES as usize) {
            let (mut stretch_ns, mut stretch_bytes) = (0, 0);
            for offset in (stretch..stretch + STRETCH_BYTES).step_by(CALL_BYTES as usize) {
                let (call_bytes, ns) = self.call(writes, offset, CALL_BYTES)?;
                stretch_bytes += call_bytes;
                stretch_ns += ns;
            }
            total_ns += stretch_ns;
            done_bytes += stretch_bytes;
            let of_stretch = rate(stretch_bytes, stretch_ns).into_iter();
            slowest = slowest.into_iter().chain(of_stretch).reduce(f64::min);
            let is_over = self.clock.now_ns() - begun_ns > SEQUENTIAL_NS;
            if is_over || progress().is_break() {
                break;
            }
        }
        Ok((rate(done_bytes, total_ns), slowest))
    }

    /// Returns calls per second at random places.
    fn random(
        &mut self,
        writes: bool,
        progress: &mut impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<f64>, Ending> {
        let places = WITHIN_BYTES.min(self.medium.capacity_bytes()) / RANDOM_BYTES;
        if places == 0 {
            return Ok(None);
        }
        let begun_ns = self.clock.now_ns();
        let (mut total_ns, mut done_bytes, mut random) = (0, 0, 1);
        for _ in 0..RANDOM_CALLS {
            random = splitmix64(random);
            let offset_bytes = random % places * RANDOM_BYTES;
            let (call_bytes, ns) = self.call(writes, offset_bytes, RANDOM_BYTES)?;
            total_ns += ns;
            done_bytes += call_bytes;
            let is_over = self.clock.now_ns() - begun_ns >= RANDOM_NS;
            if is_over || progress().is_break() {
                break;
            }
        }
        Ok(rate(done_bytes / RANDOM_BYTES, total_ns))
    }

    /// Returns the payload of a call, or 0 if it failed, and its time.
    fn call(
        &mut self,
        writes: bool,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(u64, u64), Ending> {
        let data = &mut self.buffer.bytes()[..length_bytes as usize];
        if writes {
            fill(0, offset_bytes, data);
        }
        let start_ns = self.clock.now_ns();
        let done = match writes {
            true => self.medium.write_at(offset_bytes, data),
            false => self.medium.read_at(offset_bytes, data),
        };
        let ns = self.clock.now_ns() - start_ns;
        match done {
            Ok(()) => Ok((length_bytes, ns)),
            Err(error) => {
                self.record(offset_bytes, error)?;
                Ok((0, ns))
            }
        }
    }

    #[cold]
    fn record(&mut self, offset_bytes: u64, error: io::Error) -> Result<(), Ending> {
        if !is_of_medium(&error) || is_of_whole_device(&error) {
            return Err((offset_bytes, error));
        }
        self.failed_calls += 1;
        let mut addresses = self.failed.iter().map(|block| block.offset_bytes);
        if self.failed.len() < FAILED_MAX && !addresses.any(|address| address == offset_bytes) {
            self.failed.push(FailedBlock {
                offset_bytes,
                error: error.to_string(),
            });
        }
        Ok(())
    }
}

/// Returns an amount per second; 0 if every call failed, and `None` if there was none.
fn rate(amount: u64, time_ns: u64) -> Option<f64> {
    (time_ns > 0).then(|| (amount as f64 * 1e12 / time_ns as f64).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk whose calls take a fixed time, and one of them much longer.
    struct Timed {
        now_ns: std::rc::Rc<std::cell::Cell<u64>>,
        writes: u64,
    }

    struct Hands(std::rc::Rc<std::cell::Cell<u64>>);

    impl Clock for Hands {
        fn now_ns(&mut self) -> u64 {
            self.0.get()
        }

        fn pause_ns(&mut self, ns: u64) {
            self.0.set(self.0.get() + ns);
        }
    }

    impl Medium for Timed {
        fn capacity_bytes(&self) -> u64 {
            1 << 30
        }

        fn block_bytes(&self) -> u32 {
            512
        }

        fn read_at(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
            self.now_ns.set(self.now_ns.get() + 500_000);
            Ok(())
        }

        fn write_at(&mut self, _: u64, data: &[u8]) -> io::Result<()> {
            self.writes += 1;
            let stall_ns = if self.writes == 100 { 300_000_000 } else { 0 };
            let call_ns = 1_000_000 + data.len() as u64 * 50 + stall_ns;
            self.now_ns.set(self.now_ns.get() + call_ns);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rates_are_those_of_the_disk() {
        let now_ns = std::rc::Rc::<std::cell::Cell<u64>>::default();
        let mut disk = Timed {
            now_ns: now_ns.clone(),
            writes: 0,
        };
        let go_on = || ControlFlow::Continue(());
        let speed = measure_speed(&mut disk, true, &mut Hands(now_ns.clone()), go_on).unwrap();
        // 4 MiB in 8 calls of 1 ms + 524288 * 50 ns, one stretch with a stall of 200 ms.
        let slowest_s = 8.0 * (0.001 + 524_288.0 * 50e-9) + 0.3;
        let expected = f64::from(4 << 20) / slowest_s;
        assert!((speed.slowest_write_bytes_per_s.unwrap() - expected).abs() < 1.0);
        assert!((speed.random_reads_per_s.unwrap() - 2000.0).abs() < 0.01);
        let per_s = 1.0 / (0.001 + 4096.0 * 50e-9);
        assert!((speed.random_writes_per_s.unwrap() - per_s).abs() < 0.01);
        let reached = |name: &str| {
            let class = CLASSES.iter().find(|class| class.name == name).unwrap();
            class.is_reached(&speed)
        };
        assert_eq!((reached("C6"), reached("C10")), (Some(true), Some(false)));
        assert_eq!((reached("A1"), reached("A2")), (Some(true), Some(false)));
        let writes = disk.writes;
        let speed = measure_speed(&mut disk, false, &mut Hands(now_ns), go_on).unwrap();
        assert_eq!((disk.writes, speed.write_bytes_per_s), (writes, None));
        assert_eq!(CLASSES[0].is_reached(&speed), None);
    }
}
