//! Runs a workload.
//!
//! ```text
//!   create folders ──> for each phase: prepare ──> passes ──> read back ──> remove its files ──┐
//!     (first free name)                                     remove folders <───────────────────┘
//! ```
//!
//! A run that is stopped reads back the data written so far, unless the observer stops this too. The run removes every
//! file and folder it created, even after a stop or an error, and never touches files that existed before. It shares no
//! folder with other runs, so that several runs on one store do not disturb each other.

mod files;
mod payload;
mod prepared;
mod timed;

use crate::path::{Names, ROOTS_MAX};
use crate::{
    Activity, Clock, Invalid, Observer, Operation, OperationKind, Order, Path, Phase, Span, Store,
    Workload,
};
use core::fmt;
use core::ops::ControlFlow;

/// Result of a run that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// True if the observer stopped the run.
    pub stopped: bool,
    /// Bytes read back and found identical to those written.
    pub verified_bytes: u64,
}

/// Failure of a run.
#[derive(Debug)]
pub enum RunError<E> {
    /// A value of the workload is out of range.
    Invalid(Invalid),
    /// The buffer is shorter than [`Workload::buffer_bytes`].
    BufferTooSmall,
    /// All names for the folder of the test files are taken.
    NoFreeName,
    /// The store failed.
    Store {
        /// The operation that failed, such as `writing to`.
        action: &'static str,
        /// File or folder that the operation was for.
        path: Path,
        /// Error of the store.
        source: E,
    },
    /// The data read back differs from the data written.
    Differs {
        /// File whose data differs.
        path: Path,
        /// Offset of the first byte that differs, or the end of the shorter file.
        offset_bytes: u64,
    },
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RunError::Invalid(invalid) => invalid.fmt(f),
            RunError::BufferTooSmall => f.write_str("buffer too small for this workload"),
            RunError::NoFreeName => f.write_str(
                "no free name for the test folder; remove old folders named writeTimeTemp",
            ),
            RunError::Store {
                action,
                path,
                source,
            } => write!(f, "{action} {path}: {source}"),
            RunError::Differs { path, offset_bytes } => write!(
                f,
                "{path}, byte {offset_bytes}: data read back differs from data written; \
                 do not use this card or disk"
            ),
        }
    }
}

/// Reason for ending a run early.
enum Halt<E> {
    Stopped,
    Failed(RunError<E>),
}

type Step<E> = Result<(), Halt<E>>;

/// Calls between two polls of the observer while calls are not timed one by one: few enough to stop soon,
/// and enough that polling adds nothing measurable to the time measured for a file.
const CALLS_PER_POLL: u32 = 16;

/// Longest pause between two polls of the observer.
const PAUSE_SLICE_NS: u64 = 50_000_000;

/// Longest call that prepares a file or reads it back, in bytes.
const BULK_BYTES_MAX: usize = 1 << 20;

/// Alignment of the two halves of the buffer, as required by stores that bypass the page cache.
const ALIGNMENT: usize = 4096;

impl Workload<'_> {
    /// Returns the size of the buffer that [`run`] needs, in bytes: one payload to write and one to compare
    /// it with.
    pub fn buffer_bytes(&self) -> usize {
        2 * (self.bytes_per_call_max() as usize).next_multiple_of(ALIGNMENT)
    }

    /// Returns the size of a buffer with which [`run`] can prepare files and read them back in the longest calls that
    /// any store permits ([`Store::bulk_bytes`]), in bytes.
    pub fn bulk_buffer_bytes(&self) -> usize {
        self.buffer_bytes().max(2 * BULK_BYTES_MAX)
    }
}

/// Runs `workload`. `buffer` must be at least [`Workload::buffer_bytes`] long; with [`Workload::bulk_buffer_bytes`],
/// calls that are not timed may be longer.
///
/// # Errors
/// [`RunError`]. Files and folders created are removed even then, as far as the store permits.
pub fn run<S: Store>(
    workload: &Workload,
    store: &mut S,
    clock: &mut impl Clock,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<Outcome, RunError<S::Error>> {
    workload.check().map_err(RunError::Invalid)?;
    if buffer.len() < workload.buffer_bytes() {
        return Err(RunError::BufferTooSmall);
    }
    let half_bytes = buffer.len() / 2 / ALIGNMENT * ALIGNMENT;
    let (payload, readback) = buffer.split_at_mut(half_bytes);
    let names = make_folders(store)?;
    let mut run = Run {
        store,
        clock,
        observer,
        payload,
        readback,
        names,
        first_file: 0,
        files_created: 0,
        folders_created: 0,
        verified_bytes: 0,
        last: None,
        random: 1,
    };
    let mut result = Ok(());
    for phase in workload.phases {
        result = run.phase(phase);
        let removed = run.remove_files(phase.folder_per_file);
        result = result.and(removed);
        if result.is_err() {
            break;
        }
        run.first_file = run.first_file.saturating_add(phase.files);
    }
    let verified_bytes = run.verified_bytes;
    let removed = remove_folders(store, names);
    let stopped = match result {
        Ok(()) => false,
        Err(Halt::Stopped) => true,
        Err(Halt::Failed(error)) => return Err(error),
    };
    removed.map(|()| Outcome {
        stopped,
        verified_bytes,
    })
}

/// Creates the folders of the run, under the first name that is free.
fn make_folders<S: Store>(store: &mut S) -> Result<Names, RunError<S::Error>> {
    let long = store.has_long_names();
    for root in 0..ROOTS_MAX {
        let names = Names { long, root };
        if !make_folder(store, names.root())? {
            continue;
        }
        return match make_folder(store, names.test()) {
            Ok(_) => Ok(names),
            Err(error) => {
                // Errors of the cleanup are ignored: the caller gets the first error.
                let _ = store.remove(names.root().as_str());
                Err(error)
            }
        };
    }
    Err(RunError::NoFreeName)
}

fn make_folder<S: Store>(store: &mut S, path: Path) -> Result<bool, RunError<S::Error>> {
    let made = store.mkdir(path.as_str());
    made.map_err(|source| RunError::Store {
        action: "creating the folder",
        path,
        source,
    })
}

/// Removes the folders of the run, continuing after an error; returns the first error.
fn remove_folders<S: Store>(store: &mut S, names: Names) -> Result<(), RunError<S::Error>> {
    let mut result = Ok(());
    for path in [names.test(), names.root()] {
        let removed = store.remove(path.as_str());
        result = result.and(removed.map_err(|source| RunError::Store {
            action: "removing the folder",
            path,
            source,
        }));
    }
    result
}

struct Run<'a, S, C, O> {
    store: &'a mut S,
    clock: &'a mut C,
    observer: &'a mut O,
    payload: &'a mut [u8],
    readback: &'a mut [u8],
    names: Names,
    /// Number of the phase's first file, counted over the whole workload.
    first_file: u32,
    files_created: u32,
    folders_created: u32,
    verified_bytes: u64,
    /// File and end offset, in bytes, of the last timed write of the phase.
    last: Option<(u32, u64)>,
    random: u64,
}

impl<S: Store, C: Clock, O: Observer> Run<'_, S, C, O> {
    fn phase(&mut self, phase: &Phase) -> Step<S::Error> {
        if phase.operation == OperationKind::Read || phase.jump_within_bytes > 0 {
            for file in 0..phase.files {
                self.prepare(phase, file)?;
            }
        }
        self.last = None;
        for pass in 0..phase.passes {
            match self.pass(phase, pass) {
                Err(Halt::Stopped) => {
                    self.verify_written(phase, pass)?;
                    return Err(Halt::Stopped);
                }
                result => result?,
            }
        }
        for file in 0..phase.files {
            self.verify(phase, file, phase.file_bytes())?;
        }
        Ok(())
    }

    fn pass(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        match phase.order {
            Order::RoundRobin if phase.span == Span::Call => self.round_robin(phase, pass),
            Order::RoundRobin => self.round_robin_opened(phase, pass),
            Order::FileByFile => {
                for file in 0..phase.files {
                    self.file(phase, pass, file)?;
                }
                Ok(())
            }
        }
    }

    fn file(&mut self, phase: &Phase, pass: u32, file: u32) -> Step<S::Error> {
        self.fill(phase.fill, phase.bytes_per_call, file);
        match phase.span {
            Span::Call => self.kept_open(phase, pass, file)?,
            Span::File => self.whole_file(phase, pass, file)?,
            Span::OpenToClose => {
                for call in 0..phase.calls_per_file {
                    self.open_call_close(phase, pass, file, call)?;
                }
            }
        }
        self.pause_us(phase.pause_us)
    }

    fn kept_open(&mut self, phase: &Phase, pass: u32, file: u32) -> Step<S::Error> {
        let mut handle = self.open(phase, pass, file)?;
        let mut result = Ok(());
        for call in 0..phase.calls_per_file {
            result = self.timed_call(phase, &mut handle, file, call);
            if result.is_err() {
                break;
            }
        }
        let sync = self.sync_after(phase, pass, file);
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
        result.and(self.close(handle, phase, file))
    }

    fn round_robin(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        let mut handles: [Option<S::File>; Phase::OPEN_FILES_MAX as usize] = Default::default();
        let mut result = Ok(());
        for file in 0..phase.files {
            match self.open(phase, pass, file) {
                Ok(handle) => handles[file as usize] = Some(handle),
                Err(halt) => result = result.and(Err(halt)),
            }
        }
        if result.is_ok() {
            result = self.round_robin_calls(phase, &mut handles);
        }
        for (file, handle) in (0..).zip(handles) {
            if let Some(mut handle) = handle {
                let sync = self.sync_after(phase, pass, file);
                result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
                result = result.and(self.close(handle, phase, file));
            }
        }
        result
    }

    fn round_robin_calls(
        &mut self,
        phase: &Phase,
        handles: &mut [Option<S::File>],
    ) -> Step<S::Error> {
        for call in 0..phase.calls_per_file {
            for (file, handle) in (0..).zip(handles.iter_mut()) {
                if let Some(handle) = handle {
                    self.fill(phase.fill, phase.bytes_per_call, file);
                    self.timed_call(phase, handle, file, call)?;
                }
            }
        }
        Ok(())
    }

    fn round_robin_opened(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        for call in 0..phase.calls_per_file {
            for file in 0..phase.files {
                self.fill(phase.fill, phase.bytes_per_call, file);
                self.open_call_close(phase, pass, file, call)?;
            }
        }
        Ok(())
    }

    fn path(&self, phase: &Phase, file: u32) -> Path {
        self.names.file(file, phase.folder_per_file)
    }

    #[inline]
    fn check<T>(
        &self,
        result: Result<T, S::Error>,
        action: &'static str,
        phase: &Phase,
        file: u32,
    ) -> Result<T, Halt<S::Error>> {
        result.map_err(|source| {
            let path = self.path(phase, file);
            Halt::Failed(RunError::Store {
                action,
                path,
                source,
            })
        })
    }

    #[inline]
    fn observe(
        &mut self,
        phase: &Phase,
        file: u32,
        offset_bytes: u64,
        length_bytes: u64,
        start_ns: u64,
        end_ns: u64,
    ) -> Step<S::Error> {
        let operation = Operation {
            kind: phase.operation,
            file: self.first_file.saturating_add(file),
            offset_bytes,
            length_bytes,
            start_ns,
            end_ns,
        };
        match self.observer.observe(&operation) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }

    /// Polls the observer after some of the calls that are not timed one by one.
    fn poll_every_few_calls(&mut self, activity: Activity, call: u32) -> Step<S::Error> {
        if call.is_multiple_of(CALLS_PER_POLL) {
            self.poll(activity)
        } else {
            Ok(())
        }
    }

    fn poll(&mut self, activity: Activity) -> Step<S::Error> {
        match self.observer.poll(activity, self.clock.now_ns()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }

    /// Waits until the next operation is due, if the observer paces the run.
    #[inline]
    fn wait_until_due(&mut self) -> Step<S::Error> {
        match self.observer.is_paced() {
            true => self.wait(),
            false => Ok(()),
        }
    }

    fn wait(&mut self) -> Step<S::Error> {
        let mut now_ns = self.clock.now_ns();
        let Some(due_ns) = self.observer.due_ns(now_ns) else {
            return Ok(());
        };
        while now_ns < due_ns {
            self.clock.pause_ns((due_ns - now_ns).min(PAUSE_SLICE_NS));
            self.poll(Activity::Measuring)?;
            now_ns = self.clock.now_ns();
        }
        Ok(())
    }

    /// Pauses in slices, so that the observer can end a long pause.
    fn pause_us(&mut self, us: u32) -> Step<S::Error> {
        let mut left_ns = u64::from(us) * 1000;
        while left_ns > 0 {
            let slice_ns = left_ns.min(PAUSE_SLICE_NS);
            self.clock.pause_ns(slice_ns);
            left_ns -= slice_ns;
            self.poll(Activity::Measuring)?;
        }
        Ok(())
    }
}
