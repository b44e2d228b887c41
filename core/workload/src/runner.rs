//! Carries a workload out.
//!
//! ```text
//!   make the folders ──> each phase: prepare ──> passes ──> read back ──> remove its files ──┐
//!          ^                                                                                 │
//!          └── a name that is free                          remove the folders <─────────────┘
//! ```
//!
//! Whatever happens on the way, stop or error, the files and folders made are removed; nothing that
//! was there before is touched.

mod files;
mod payload;
mod prepared;
mod timed;

use crate::path::Names;
use crate::{
    Clock, Doing, Invalid, Observer, Operation, OperationKind, Order, Path, Phase, Span, Store,
    Workload,
};
use core::fmt;
use core::ops::ControlFlow;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The observer stopped it.
    pub stopped: bool,
    /// Bytes read back and found to be what was written.
    pub verified_bytes: u64,
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunError<E> {
    /// The workload cannot be run.
    Invalid(Invalid),
    /// Fewer bytes of buffer than [`Workload::buffer_bytes`].
    BufferTooSmall,
    /// No free folder name was left for the test files.
    NoFreeName,
    /// The store failed.
    Store {
        /// What was being done, as `writing to`.
        doing: &'static str,
        /// To which file or folder.
        path: Path,
        /// What the store said.
        source: E,
    },
    /// What was read back is not what was written.
    Differs {
        /// The file.
        path: Path,
        /// Offset of the first byte that differs, or where the file ends too early or too late.
        offset_bytes: u64,
    },
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RunError::Invalid(invalid) => invalid.fmt(f),
            RunError::BufferTooSmall => f.write_str("the buffer is too small for this workload"),
            RunError::NoFreeName => f.write_str(
                "no free name is left for the test files; remove old folders in writeTimeTemp",
            ),
            RunError::Store {
                doing,
                path,
                source,
            } => write!(f, "{doing} {path}: {source}"),
            RunError::Differs { path, offset_bytes } => write!(
                f,
                "{path}, byte {offset_bytes}: what was read back is not what was written; \
                 do not trust this medium"
            ),
        }
    }
}

/// Why the run does not go on.
enum Halt<E> {
    Stopped,
    Failed(RunError<E>),
}

type Step<E> = Result<(), Halt<E>>;

/// Tries to find a free name for the test folder.
const TESTS_MAX: u32 = 10_000;

/// Calls from one look of the observer to the next where calls are not operations of their own: few
/// enough to stop soon, and many enough not to show in the time of a file.
const CALLS_PER_WAIT: u32 = 16;

/// Pause from one look of the observer to the next.
const PAUSE_SLICE_NS: u64 = 50_000_000;

/// Alignment of the halves of the buffer, for stores that write past the page cache.
const ALIGNMENT: usize = 4096;

impl Workload<'_> {
    /// Bytes of buffer that [`run`] needs: one payload to write, one to compare with.
    pub fn buffer_bytes(&self) -> usize {
        2 * (self.bytes_per_call_max() as usize).next_multiple_of(ALIGNMENT)
    }
}

/// Carries `workload` out; `buffer` is at least [`Workload::buffer_bytes`] long.
///
/// # Errors
/// [`RunError`]; what was made is removed all the same, as far as the store lets it.
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
    let (payload, readback) = buffer.split_at_mut(workload.buffer_bytes() / 2);
    let (names, root_is_ours) = make_folders(store)?;
    let mut run = Run {
        store,
        clock,
        observer,
        payload,
        readback,
        names,
        first_file: 0,
        files_made: 0,
        folders_made: 0,
        verified_bytes: 0,
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
    let removed = remove_folders(store, names, root_is_ours);
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

fn make_folders<S: Store>(store: &mut S) -> Result<(Names, bool), RunError<S::Error>> {
    let long = store.has_long_names();
    let mkdir = |store: &mut S, path: Path| {
        store
            .mkdir(path.as_str())
            .map_err(|source| RunError::Store {
                doing: "making the folder",
                path,
                source,
            })
    };
    let root_is_ours = mkdir(store, Names { long, test: 0 }.root())?;
    for test in 0..TESTS_MAX {
        let names = Names { long, test };
        match mkdir(store, names.test()) {
            Ok(true) => return Ok((names, root_is_ours)),
            Ok(false) => {}
            Err(error) => {
                if root_is_ours {
                    // The first error is the one to report.
                    let _ = store.remove(names.root().as_str());
                }
                return Err(error);
            }
        }
    }
    Err(RunError::NoFreeName)
}

fn remove_folders<S: Store>(
    store: &mut S,
    names: Names,
    root_is_ours: bool,
) -> Result<(), RunError<S::Error>> {
    let path = names.test();
    let removed = store.remove(path.as_str());
    if root_is_ours {
        // Another run may have put its own folder there since.
        let _ = store.remove(names.root().as_str());
    }
    removed.map_err(|source| RunError::Store {
        doing: "removing the folder",
        path,
        source,
    })
}

struct Run<'a, S, C, O> {
    store: &'a mut S,
    clock: &'a mut C,
    observer: &'a mut O,
    payload: &'a mut [u8],
    readback: &'a mut [u8],
    names: Names,
    /// Number, through the workload, of the phase's first file.
    first_file: u32,
    files_made: u32,
    folders_made: u32,
    verified_bytes: u64,
    random: u64,
}

impl<S: Store, C: Clock, O: Observer> Run<'_, S, C, O> {
    fn phase(&mut self, phase: &Phase) -> Step<S::Error> {
        if phase.operation == OperationKind::Read || phase.jump_within_bytes > 0 {
            for file in 0..phase.files {
                self.prepare(phase, file)?;
            }
        }
        for pass in 0..phase.passes {
            match phase.order {
                Order::RoundRobin if phase.span == Span::Call => self.in_turn(phase, pass)?,
                Order::RoundRobin => self.opened_in_turn(phase, pass)?,
                Order::FileByFile => {
                    for file in 0..phase.files {
                        self.file(phase, pass, file)?;
                    }
                }
            }
        }
        for file in 0..phase.files {
            self.verify(phase, file)?;
        }
        Ok(())
    }

    fn file(&mut self, phase: &Phase, pass: u32, file: u32) -> Step<S::Error> {
        self.fill(phase.fill, phase.bytes_per_call, file);
        match phase.span {
            Span::Call => self.kept_open(phase, pass, file)?,
            Span::File => self.whole(phase, pass, file)?,
            Span::OpenToClose => {
                for call in 0..phase.calls_per_file {
                    self.opened_and_closed(phase, pass, file, call)?;
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

    fn in_turn(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        let mut handles: [Option<S::File>; Phase::OPEN_FILES_MAX as usize] = Default::default();
        let mut result = Ok(());
        for file in 0..phase.files {
            match self.open(phase, pass, file) {
                Ok(handle) => handles[file as usize] = Some(handle),
                Err(halt) => result = result.and(Err(halt)),
            }
        }
        if result.is_ok() {
            result = self.calls_in_turn(phase, &mut handles);
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

    fn calls_in_turn(&mut self, phase: &Phase, handles: &mut [Option<S::File>]) -> Step<S::Error> {
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

    fn opened_in_turn(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        for call in 0..phase.calls_per_file {
            for file in 0..phase.files {
                self.fill(phase.fill, phase.bytes_per_call, file);
                self.opened_and_closed(phase, pass, file, call)?;
            }
        }
        Ok(())
    }

    fn path(&self, phase: &Phase, file: u32) -> Path {
        self.names.file(file, phase.folder_per_file)
    }

    #[inline]
    fn done<T>(
        &self,
        result: Result<T, S::Error>,
        doing: &'static str,
        phase: &Phase,
        file: u32,
    ) -> Result<T, Halt<S::Error>> {
        result.map_err(|source| {
            let path = self.path(phase, file);
            Halt::Failed(RunError::Store {
                doing,
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

    /// Lets the observer look up between calls that are not operations of their own.
    fn wait(&mut self, doing: Doing, call: u32) -> Step<S::Error> {
        if call.is_multiple_of(CALLS_PER_WAIT) {
            self.look_up(doing)
        } else {
            Ok(())
        }
    }

    fn look_up(&mut self, doing: Doing) -> Step<S::Error> {
        match self.observer.wait(doing, self.clock.now_ns()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }

    /// Pauses in slices, so that the observer can end a long one.
    fn pause_us(&mut self, us: u32) -> Step<S::Error> {
        let mut left_ns = u64::from(us) * 1000;
        while left_ns > 0 {
            let slice_ns = left_ns.min(PAUSE_SLICE_NS);
            self.clock.pause_ns(slice_ns);
            left_ns -= slice_ns;
            self.look_up(Doing::Measuring)?;
        }
        Ok(())
    }
}
