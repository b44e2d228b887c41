//! Runs of a workload on simulated cards and on directories.

use crate::arguments::{real, text, whole};
use crate::error::error;
use crate::progress::{Callback, Watch};
use crate::set_up::{OwnedWorkload, simulated_only};
use crate::table::Trace;
use cardiograph_sim_card::{Card, Seed};
use cardiograph_store::{Directory, HostClock, Io, run_on_card};
use cardiograph_trace::{About, Trace as Operations};
use cardiograph_workload::{Activity, Observer, Operation, Workload, run};
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Operations between two looks at the clock.
const OPERATIONS_PER_LOOK: u64 = 256;
/// Alignment of a buffer for O_DIRECT.
const ALIGNMENT: usize = 4096;

/// Collects the trace of a run.
struct Collector<'a> {
    trace: Operations,
    bytes: u64,
    operations: u64,
    stop_after_ns: Option<u64>,
    first_ns: Option<u64>,
    is_timed_out: bool,
    watch: Watch<'a>,
}

impl<'a> Collector<'a> {
    fn new(
        target: &str,
        workload: &Workload,
        stop_after_ns: Option<u64>,
        progress: &'a Callback,
    ) -> Collector<'a> {
        Collector {
            trace: Operations::new(About {
                target: target.to_string(),
                workload: workload.name.to_string(),
                ..About::default()
            }),
            bytes: 0,
            operations: 0,
            stop_after_ns,
            first_ns: None,
            is_timed_out: false,
            watch: Watch::new(progress, workload.bytes()),
        }
    }

    fn end(self, result: PyResult<()>, warnings: Vec<String>) -> PyResult<Trace> {
        self.watch.end(result)?;
        let mut warnings = warnings;
        if self.is_timed_out {
            warnings.push("stopped after stop_after_s; allow more time".to_string());
        }
        Ok(Trace::of(self.trace, &warnings))
    }
}

impl Observer for Collector<'_> {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        // The clock of a run is monotonic.
        let _ = self.trace.push(operation);
        self.bytes += operation.length_bytes;
        self.operations += 1;
        match self.operations.is_multiple_of(OPERATIONS_PER_LOOK) {
            true => self.poll(Activity::Measuring, operation.end_ns),
            false => ControlFlow::Continue(()),
        }
    }

    fn poll(&mut self, activity: Activity, now_ns: u64) -> ControlFlow<()> {
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let limit_ns = self
            .stop_after_ns
            .filter(|_| activity == Activity::Measuring);
        if limit_ns.is_some_and(|limit_ns| now_ns - first_ns >= limit_ns) {
            self.is_timed_out = true;
            return ControlFlow::Break(());
        }
        self.watch.show(self.bytes)
    }
}

/// Runs a workload on a new simulated card.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    target: &Bound<'_, PyAny>,
    workload: &Bound<'_, PyAny>,
    seed: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<Trace> {
    let target = text("target", target)?;
    let seed = whole("seed", seed, 0..=u64::MAX)?;
    let (profile, board) = simulated_only(&target)?;
    let workload = OwnedWorkload::named(&text("workload", workload)?)?;
    py.detach(|| {
        let workload = workload.borrow();
        let mut collector = Collector::new(&target, &workload, None, &progress);
        collector.trace.about.notes.push(format!(
            "Simulated in virtual time with seed {seed}. Card: {}. Board: {}.",
            profile.about, board.about
        ));
        let mut buffer = vec![0; workload.buffer_bytes()];
        let card = Card::new(&profile, Seed::new(seed));
        let run = run_on_card(card, &board, &workload, &mut collector, &mut buffer);
        let (run, _) = run.map_err(|failed| error(format!("{target}: {failed}")))?;
        let mut warnings = Vec::new();
        if run.timeouts > 0 {
            warnings.push(format!(
                "the card stayed busy beyond the driver's timeout {} times; Cardiograph retried, but a program that does \
                 not retry loses data there",
                run.timeouts
            ));
        }
        let result = run.result.map_err(|failed| error(format!("{target}: {failed}")));
        collector.end(result.map(drop), warnings)
    })
}

/// Runs a workload in a directory of this computer.
#[pyfunction]
pub fn bench(
    py: Python<'_>,
    path: PathBuf,
    workload: &Bound<'_, PyAny>,
    io: &Bound<'_, PyAny>,
    stop_after_s: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<Trace> {
    let name = path.display().to_string();
    let io = match text("io", io)?.as_str() {
        "buffered" => Io::Buffered,
        "direct" => Io::Direct,
        "dsync" => Io::Dsync,
        "fsync-write" => Io::FsyncWrite,
        "fsync-file" => Io::FsyncFile,
        other => {
            return Err(error(format!(
                "io: {other} is unknown; use buffered, direct, dsync, fsync-write or fsync-file"
            )));
        }
    };
    let stop_after_s = real("stop_after_s", stop_after_s, 0.001..=1e9)?;
    let workload = OwnedWorkload::named(&text("workload", workload)?)?;
    let mut directory = Directory::open(&path, io).map_err(|failed| {
        error(match failed.kind() {
            ErrorKind::NotFound => format!("{name}: no such directory; create it"),
            ErrorKind::NotADirectory => format!(
                "{name}: not a directory; name a directory on the storage device, or pass a trace to analyze"
            ),
            _ => format!("{name}: {failed}; use a directory with read and write permission"),
        })
    })?;
    py.detach(|| {
        let workload = workload.borrow();
        let stop_after_ns = Some((stop_after_s * 1e9) as u64);
        let mut collector = Collector::new(&name, &workload, stop_after_ns, &progress);
        let mut clock = HostClock::default();
        let (resolution_ns, overhead_ns) = clock.resolution_and_overhead_ns();
        collector.trace.about.clock_resolution_ns = Some(resolution_ns);
        collector.trace.about.clock_overhead_ns = Some(overhead_ns);
        let mut memory = vec![0; workload.bulk_buffer_bytes() + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let buffer = &mut memory[begin..];
        let result = run(
            &workload,
            &mut directory,
            &mut clock,
            &mut collector,
            buffer,
        );
        let warnings = directory
            .warnings(&workload)
            .into_iter()
            .map(str::to_string);
        let warnings = warnings.collect();
        let result = result.map_err(|failed| error(format!("{name}: {failed}")));
        collector.end(result.map(drop), warnings)
    })
}
