//! A target with limits.

use crate::{Target, TargetError};
use std::ops::ControlFlow;

/// Limits of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of bytes to write.
    pub bytes: u64,
    /// Longest duration, in ns.
    pub ns: u64,
}

impl Limits {
    /// 4 GB and 10 minutes.
    pub const MAX: Limits = Limits {
        bytes: 4_000_000_000,
        ns: 600_000_000_000,
    };
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The page size.
    Page,
    /// The unit.
    Unit,
    /// The number of open units.
    OpenUnits,
    /// The log, the FAT zone and garbage collection while idle.
    Rewrites,
}

/// Reason why an experiment ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A limit was reached; the sentence says which one.
    Limit(String),
    Caller,
    Target(TargetError),
}

/// Length of a write that only gives data to the card.
const FILL_BYTES: u64 = 1 << 20;
/// Alignment of the base.
const BASE_BYTES: u64 = 64 << 20;

fn base(region_bytes: u64) -> u64 {
    if region_bytes >= 4 * BASE_BYTES {
        BASE_BYTES
    } else {
        0
    }
}

pub(crate) struct Session<'a> {
    target: &'a mut dyn Target,
    limits: Limits,
    progress: &'a mut dyn FnMut(Stage, f64) -> ControlFlow<()>,
    stage: Stage,
    written_bytes: u64,
    /// End of the part of the region that holds data from [`Session::base`] on.
    filled_to: u64,
    random: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        target: &'a mut dyn Target,
        limits: Limits,
        progress: &'a mut dyn FnMut(Stage, f64) -> ControlFlow<()>,
    ) -> Session<'a> {
        let base = base(target.bytes());
        let filled_to = match target.is_filled() {
            true => target.bytes(),
            false => base,
        };
        Session {
            target,
            limits,
            progress,
            stage: Stage::Page,
            written_bytes: 0,
            filled_to,
            random: 1,
        }
    }

    pub(crate) fn enter(&mut self, stage: Stage) {
        self.stage = stage;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.target.bytes()
    }

    /// Returns the start of the part that the experiments use: past the FAT, aligned to any unit.
    pub(crate) fn base(&self) -> u64 {
        base(self.bytes())
    }

    /// Returns the size of the part from the base on that holds data.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.filled_to - self.base()
    }

    /// Writes what holds no data yet of the first `bytes` bytes from the base on, as far as the region reaches.
    pub(crate) fn fill(&mut self, bytes: u64) -> Result<(), Stop> {
        let end = self.bytes().min(self.base() + bytes);
        while self.filled_to < end {
            let length = FILL_BYTES.min(end - self.filled_to);
            self.write(self.filled_to, length)?;
            self.filled_to += length;
        }
        Ok(())
    }

    pub(crate) fn begins_at_the_card(&self) -> bool {
        self.target.begins_at_the_card()
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    pub(crate) fn elapsed_ns(&mut self) -> u64 {
        self.target.elapsed_ns()
    }

    /// Returns a number below `end` (SplitMix64), the same ones in every run.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % end.max(1)
    }

    /// Writes; returns the latency in ns.
    pub(crate) fn write(&mut self, offset: u64, length: u64) -> Result<f64, Stop> {
        if self.written_bytes + length > self.limits.bytes {
            let megabytes = self.limits.bytes / 1_000_000;
            return Err(Stop::Limit(format!(
                "the limit of {megabytes} MB written was reached"
            )));
        }
        self.check()?;
        self.written_bytes += length;
        let ns = self.target.write(offset, length).map_err(Stop::Target)?;
        Ok(ns as f64)
    }

    /// Reads; returns the latency in ns.
    pub(crate) fn read(&mut self, offset: u64, length: u64) -> Result<f64, Stop> {
        self.check()?;
        let ns = self.target.read(offset, length).map_err(Stop::Target)?;
        Ok(ns as f64)
    }

    pub(crate) fn pause(&mut self, ns: u64) -> Result<(), Stop> {
        self.check()?;
        self.target.pause(ns);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Stop> {
        let elapsed_ns = self.target.elapsed_ns();
        if elapsed_ns > self.limits.ns {
            let s = self.limits.ns / 1_000_000_000;
            return Err(Stop::Limit(format!("the limit of {s} s was reached")));
        }
        let time = elapsed_ns as f64 / self.limits.ns as f64;
        let bytes = self.written_bytes as f64 / self.limits.bytes as f64;
        match (self.progress)(self.stage, time.max(bytes)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Caller),
        }
    }
}
