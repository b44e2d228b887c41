//! A sweep on the cores of this computer.

use crate::SweepError;
use crate::folder::ResultFolder;
use crate::sweep::Sweep;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Longest time between two calls of `watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of tasks done, including those of earlier runs.
    pub done: u64,
    /// Number of tasks.
    pub tasks: u64,
}

/// Way in which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// All results are in the folder.
    Complete,
    /// `watch` stopped the run; a later run continues.
    Stopped(Progress),
}

enum Event {
    Task,
    Failed(SweepError),
}

/// Runs the parts of a sweep that the folder lacks, on `threads` threads. Calls `watch` with the progress at least every
/// 50 ms, on the calling thread; if it returns `Break`, the run stops and keeps what is done.
///
/// # Errors
/// The first error of a task or of writing; the files of other parts are kept.
pub fn run(
    sweep: &Sweep,
    folder: &ResultFolder,
    threads: usize,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Finished, SweepError> {
    let missing = folder.missing(sweep);
    let tasks_of = |part: &u64| {
        let tasks = sweep.tasks_of_part(*part);
        tasks.end - tasks.start
    };
    let mut progress = Progress {
        done: sweep.tasks() - missing.iter().map(tasks_of).sum::<u64>(),
        tasks: sweep.tasks(),
    };
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (events, received) = mpsc::channel();
    let mut result = Ok(Finished::Complete);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, missing.len().max(1)) {
            let worker = Worker {
                sweep,
                folder,
                missing: &missing,
                next: &next,
                is_stopped: &is_stopped,
                events: events.clone(),
            };
            scope.spawn(move || worker.work());
        }
        drop(events);
        loop {
            match received.recv_timeout(WATCH_INTERVAL) {
                Ok(Event::Task) => progress.done += 1,
                Ok(Event::Failed(error)) => {
                    is_stopped.store(true, Ordering::Relaxed);
                    result = Err(error);
                }
                Err(RecvTimeoutError::Timeout) => (),
                // All workers have ended.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if watch(progress).is_break() && !is_stopped.swap(true, Ordering::Relaxed) {
                result = Ok(Finished::Stopped(progress));
            }
        }
    });
    match (result, folder.missing(sweep).is_empty()) {
        (Ok(_), true) => Ok(Finished::Complete),
        (result, _) => result,
    }
}

struct Worker<'a> {
    sweep: &'a Sweep,
    folder: &'a ResultFolder,
    missing: &'a [u64],
    next: &'a AtomicUsize,
    is_stopped: &'a AtomicBool,
    events: Sender<Event>,
}

impl Worker<'_> {
    /// Computes one part after the other.
    fn work(self) {
        let is_stopped = || self.is_stopped.load(Ordering::Relaxed);
        while let Some(&part) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // The receiver outlives the workers.
            let mut done = || drop(self.events.send(Event::Task));
            let computed = self.sweep.run_part(part, &is_stopped, &mut done);
            let written = computed.and_then(|bytes| match bytes {
                Some(bytes) => self.folder.write(self.sweep, part, &bytes),
                None => Ok(()),
            });
            if let Err(error) = written {
                drop(self.events.send(Event::Failed(error)));
                return;
            }
            if is_stopped() {
                return;
            }
        }
    }
}
