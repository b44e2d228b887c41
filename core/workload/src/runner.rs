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

use crate::path::Names;
use crate::{
    Clock, Fill, Flush, Invalid, Observer, Operation, OperationKind, Order, Path, Phase, Span,
    Store, Sync, Workload,
};
use core::fmt;
use core::ops::ControlFlow;

/// How a run is carried out.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Read everything written back and compare.
    pub verify: bool,
}

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
    options: Options,
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
        result = run.phase(phase, options.verify);
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
    fn phase(&mut self, phase: &Phase, verify: bool) -> Step<S::Error> {
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
        if verify && phase.operation == OperationKind::Write {
            for file in 0..phase.files {
                self.verify(phase, file)?;
            }
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
        self.pause_us(phase.pause_us);
        Ok(())
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

    /// [`Span::Call`]: the call alone.
    #[inline]
    fn timed_call(
        &mut self,
        phase: &Phase,
        handle: &mut S::File,
        file: u32,
        call: u32,
    ) -> Step<S::Error> {
        let offset_bytes = self.place(phase, call);
        self.stamp(phase, call);
        let start_ns = self.clock.now_ns();
        self.call(phase, handle, file, offset_bytes)?;
        let end_ns = self.clock.now_ns();
        let length_bytes = u64::from(phase.bytes_per_call);
        self.observe(phase, file, offset_bytes, length_bytes, start_ns, end_ns)?;
        self.pause_us(phase.delay_us);
        Ok(())
    }

    /// [`Span::OpenToClose`]: open, call and close.
    fn opened_and_closed(
        &mut self,
        phase: &Phase,
        pass: u32,
        file: u32,
        call: u32,
    ) -> Step<S::Error> {
        let offset_bytes = self.place(phase, call);
        self.stamp(phase, call);
        let writes_anew = pass > 0 && call == 0 && is_made_by_its_calls(phase);
        if writes_anew {
            self.remove_file(phase, file)?;
        }
        if call == 0 {
            self.make_folder(phase, file)?;
        }
        let start_ns = self.clock.now_ns();
        let mut handle = if is_made_by_its_calls(phase) {
            self.append(phase, file)?
        } else {
            self.open(phase, pass, file)?
        };
        let result = self.call(phase, &mut handle, file, offset_bytes);
        let last = call + 1 == phase.calls_per_file;
        let sync = if last {
            self.sync_after(phase, pass, file)
        } else {
            Sync::Never
        };
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
        result.and(self.close(handle, phase, file))?;
        let end_ns = self.clock.now_ns();
        let length_bytes = u64::from(phase.bytes_per_call);
        self.observe(phase, file, offset_bytes, length_bytes, start_ns, end_ns)?;
        self.pause_us(phase.delay_us);
        Ok(())
    }

    /// [`Span::File`]: open, every call, sync and close.
    fn whole(&mut self, phase: &Phase, pass: u32, file: u32) -> Step<S::Error> {
        self.make_folder(phase, file)?;
        let start_ns = self.clock.now_ns();
        let mut handle = self.open(phase, pass, file)?;
        let mut result = Ok(());
        for call in 0..phase.calls_per_file {
            let offset_bytes = self.place(phase, call);
            self.stamp(phase, call);
            result = self.call(phase, &mut handle, file, offset_bytes);
            result = result.and_then(|()| self.wait(call));
            if result.is_err() {
                break;
            }
        }
        let sync = self.sync_after(phase, pass, file);
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
        result.and(self.close(handle, phase, file))?;
        let end_ns = self.clock.now_ns();
        self.observe(phase, file, 0, phase.bytes_per_pass(), start_ns, end_ns)
    }

    /// Writes the files that a phase reads, or jumps within.
    fn prepare(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        self.make_folder(phase, file)?;
        let mut handle = self.create(phase, file)?;
        self.fill(phase.fill, phase.bytes_per_call, file);
        let mut result = Ok(());
        let (mut call, mut offset_bytes) = (0, 0);
        while offset_bytes < phase.file_bytes() && result.is_ok() {
            self.stamp(phase, call);
            let left = phase.file_bytes() - offset_bytes;
            let length = left.min(u64::from(phase.bytes_per_call)) as usize;
            let written = self
                .store
                .write(&mut handle, offset_bytes, &self.payload[..length]);
            result = self.done(written, "writing to", phase, file);
            result = result.and_then(|()| self.wait(call));
            call += 1;
            offset_bytes += length as u64;
        }
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, Sync::Wait));
        result.and(self.close(handle, phase, file))
    }

    fn verify(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        let path = self.path(phase, file);
        let opened = self.store.open(path.as_str(), false);
        let mut handle = self.done(opened, "opening", phase, file)?;
        let result = self.compare(phase, &mut handle, file);
        result.and(self.close(handle, phase, file))
    }

    fn compare(&mut self, phase: &Phase, handle: &mut S::File, file: u32) -> Step<S::Error> {
        self.fill(phase.fill, phase.bytes_per_call, file);
        let (mut call, mut offset_bytes) = (0, 0);
        loop {
            self.stamp(phase, call);
            let length = phase.bytes_per_call as usize;
            let expected = (phase.file_bytes() - offset_bytes).min(length as u64) as usize;
            let read = self
                .store
                .read(handle, offset_bytes, &mut self.readback[..length]);
            let read = self.done(read, "reading back", phase, file)?;
            let (read_back, written) = (&self.readback[..read], &self.payload[..expected]);
            if read_back != written {
                let same = read_back.iter().zip(written).take_while(|(r, w)| r == w);
                let offset_bytes = offset_bytes + same.count() as u64;
                let path = self.path(phase, file);
                return Err(Halt::Failed(RunError::Differs { path, offset_bytes }));
            }
            self.wait(call)?;
            self.verified_bytes += read as u64;
            offset_bytes += read as u64;
            call += 1;
            // The last read finds the end where it should be.
            if read == 0 {
                return Ok(());
            }
        }
    }

    #[inline]
    fn call(
        &mut self,
        phase: &Phase,
        handle: &mut S::File,
        file: u32,
        offset_bytes: u64,
    ) -> Step<S::Error> {
        let length = phase.bytes_per_call as usize;
        match phase.operation {
            OperationKind::Write => {
                let written = self
                    .store
                    .write(handle, offset_bytes, &self.payload[..length]);
                self.done(written, "writing to", phase, file)?;
                if phase.write_through {
                    self.sync(handle, file, phase, Sync::Wait)?;
                }
                Ok(())
            }
            OperationKind::Read => {
                let read = self
                    .store
                    .read(handle, offset_bytes, &mut self.readback[..length]);
                let read = self.done(read, "reading from", phase, file)?;
                if read < length {
                    let path = self.path(phase, file);
                    let offset_bytes = offset_bytes + read as u64;
                    return Err(Halt::Failed(RunError::Differs { path, offset_bytes }));
                }
                Ok(())
            }
        }
    }

    fn open(&mut self, phase: &Phase, pass: u32, file: u32) -> Result<S::File, Halt<S::Error>> {
        if is_made_by_its_calls(phase) {
            if pass > 0 {
                self.remove_file(phase, file)?;
            }
            self.make_folder(phase, file)?;
            return self.create(phase, file);
        }
        let writable = phase.operation == OperationKind::Write;
        let opened = self.store.open(self.path(phase, file).as_str(), writable);
        self.done(opened, "opening", phase, file)
    }

    fn create(&mut self, phase: &Phase, file: u32) -> Result<S::File, Halt<S::Error>> {
        let created = self.store.create(self.path(phase, file).as_str());
        let handle = self.done(created, "creating", phase, file)?;
        self.files_made = self.files_made.max(file + 1);
        Ok(handle)
    }

    fn append(&mut self, phase: &Phase, file: u32) -> Result<S::File, Halt<S::Error>> {
        let opened = self.store.append(self.path(phase, file).as_str());
        let handle = self.done(opened, "opening", phase, file)?;
        self.files_made = self.files_made.max(file + 1);
        Ok(handle)
    }

    fn close(&mut self, handle: S::File, phase: &Phase, file: u32) -> Step<S::Error> {
        let closed = self.store.close(handle);
        self.done(closed, "closing", phase, file)
    }

    fn sync_after(&self, phase: &Phase, pass: u32, file: u32) -> Sync {
        let last = pass + 1 == phase.passes && file + 1 == phase.files;
        match (last, phase.sync_end) {
            (true, Sync::Start | Sync::Wait) => phase.sync_end,
            _ => phase.sync_file,
        }
    }

    fn sync(
        &mut self,
        handle: &mut S::File,
        file: u32,
        phase: &Phase,
        sync: Sync,
    ) -> Step<S::Error> {
        let how = match sync {
            Sync::Never => return Ok(()),
            Sync::Start => Flush::Start,
            Sync::Wait => Flush::Wait,
        };
        let flushed = self.store.flush(handle, how);
        self.done(flushed, "syncing", phase, file)
    }

    fn make_folder(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        if !phase.folder_per_file || file < self.folders_made {
            return Ok(());
        }
        let path = self.names.folder(file);
        let made = self.store.mkdir(path.as_str());
        self.done(made, "making a folder for", phase, file)?;
        self.folders_made = file + 1;
        Ok(())
    }

    fn remove_file(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        let removed = self.store.remove(self.path(phase, file).as_str());
        self.done(removed, "removing", phase, file)
    }

    /// Removes all that the phase made, also after an error; reports the first failure.
    fn remove_files(&mut self, folder_per_file: bool) -> Step<S::Error> {
        let mut result = Ok(());
        let files = (0..self.files_made).map(|file| self.names.file(file, folder_per_file));
        let folders = (0..self.folders_made).map(|file| self.names.folder(file));
        for path in files.chain(folders) {
            let removed = self.store.remove(path.as_str());
            result = result.and(removed.map_err(|source| {
                Halt::Failed(RunError::Store {
                    doing: "removing",
                    path,
                    source,
                })
            }));
        }
        (self.files_made, self.folders_made) = (0, 0);
        result
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
    fn wait(&mut self, call: u32) -> Step<S::Error> {
        if !call.is_multiple_of(CALLS_PER_WAIT) {
            return Ok(());
        }
        match self.observer.wait(self.clock.now_ns()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }

    #[inline]
    fn pause_us(&mut self, us: u32) {
        if us > 0 {
            self.clock.pause_ns(u64::from(us) * 1000);
        }
    }

    /// Where a call goes, in bytes.
    #[inline]
    fn place(&mut self, phase: &Phase, call: u32) -> u64 {
        let payload = u64::from(phase.bytes_per_call);
        if phase.jump_within_bytes == 0 {
            return u64::from(call) * payload;
        }
        let within_run = call % phase.jump_every_calls;
        if within_run == 0 {
            self.random = splitmix64(self.random);
        }
        let run_bytes = payload * u64::from(phase.jump_every_calls);
        let places = (phase.jump_within_bytes - run_bytes) / payload + 1;
        (self.random % places + u64::from(within_run)) * payload
    }

    fn fill(&mut self, fill: Fill, bytes_per_call: u32, file: u32) {
        let payload = &mut self.payload[..bytes_per_call as usize];
        match fill {
            Fill::Line => {
                payload.fill(b'~');
                let end = payload.len();
                if let Some(line_end) = end.checked_sub(2).map(|at| &mut payload[at..]) {
                    line_end.copy_from_slice(b"\r\n");
                }
            }
            Fill::Zeros => payload.fill(0),
            Fill::Letter | Fill::Numbered => payload.fill(b'A' + (file % 26) as u8),
        }
    }

    #[inline]
    fn stamp(&mut self, phase: &Phase, call: u32) {
        if phase.fill == Fill::Numbered && phase.bytes_per_call >= 8 {
            self.payload[..8].copy_from_slice(&u64::from(call).to_le_bytes());
        }
    }
}

/// Whether the timed calls make the file, rather than go to one that was prepared.
fn is_made_by_its_calls(phase: &Phase) -> bool {
    phase.operation == OperationKind::Write && phase.jump_within_bytes == 0
}

/// The next number of a fixed sequence (Steele, Lea and Flood, 2014).
fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
