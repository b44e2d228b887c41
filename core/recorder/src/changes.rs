//! Changes of files that other tasks request: uploads, renames, removals, new directories.
//!
//! ```text
//!   task ── change ──> Waiting ──> UnderWay ──> Done ──> Free
//!                         │           │ task dropped
//!                         │           └───────────> Abandoned ──> Free
//!                         └── no card, closed ──> Done(error)
//! ```
//!
//! One change is carried out at a time, as a job of the planner: step by step, when the rings can absorb a step. The
//! desk owns the inputs, so the task that requested a change may be dropped: the change is still completed, and an
//! upload whose owner was dropped is discarded.

use crate::buffers::Buffer;
use crate::fat::{UPLOADS_MAX, Upload};
use crate::guest::FileError;
use crate::reads::{ReadDesk, ReadError};
use crate::waker_queue::WakerQueue;
use core::cell::{Cell, RefCell, RefMut};
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use heapless::String;

/// Maximum length of a path that a change names, in bytes.
pub const CHANGE_PATH_BYTES_MAX: usize = 255;

/// Memory for the path of a change.
pub type ChangePath = String<CHANGE_PATH_BYTES_MAX, u8>;

/// A change of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'p> {
    /// Begins an upload with room for this many bytes (0 if the length is unknown). The result is the upload's number.
    BeginUpload {
        /// Length in bytes.
        bytes: u64,
    },
    /// Writes the first blocks of the task's buffer to an upload, which grows if it has no room.
    WriteUpload {
        /// Number of the upload.
        upload: u8,
        /// Number of the first block in the file.
        block: u32,
        /// Number of blocks.
        blocks: u32,
    },
    /// Gives an upload its name and length; replaces an existing file.
    CommitUpload {
        /// Number of the upload.
        upload: u8,
        /// Final path.
        path: &'p str,
        /// Length in bytes.
        bytes: u32,
    },
    /// Removes an upload.
    DiscardUpload {
        /// Number of the upload.
        upload: u8,
    },
    /// Renames a file or directory.
    Rename {
        /// Current path.
        from: &'p str,
        /// New path, which must be free.
        to: &'p str,
    },
    /// Removes a file or an empty directory.
    Remove {
        /// Path.
        path: &'p str,
    },
    /// Creates an empty directory.
    MakeDirectory {
        /// Path.
        path: &'p str,
    },
}

impl Change<'_> {
    fn paths(&self) -> [&str; 2] {
        match self {
            Change::BeginUpload { .. }
            | Change::WriteUpload { .. }
            | Change::DiscardUpload { .. } => [""; 2],
            Change::CommitUpload { path, .. }
            | Change::Remove { path }
            | Change::MakeDirectory { path } => [path, ""],
            Change::Rename { from, to } => [from, to],
        }
    }

    /// Returns the same change with other paths.
    fn with_paths<'q>(&self, first: &'q str, second: &'q str) -> Change<'q> {
        match *self {
            Change::BeginUpload { bytes } => Change::BeginUpload { bytes },
            Change::WriteUpload {
                upload,
                block,
                blocks,
            } => Change::WriteUpload {
                upload,
                block,
                blocks,
            },
            Change::CommitUpload { upload, bytes, .. } => Change::CommitUpload {
                upload,
                path: first,
                bytes,
            },
            Change::DiscardUpload { upload } => Change::DiscardUpload { upload },
            Change::Rename { .. } => Change::Rename {
                from: first,
                to: second,
            },
            Change::Remove { .. } => Change::Remove { path: first },
            Change::MakeDirectory { .. } => Change::MakeDirectory { path: first },
        }
    }

    /// Returns true if the change may free blocks that readers have located.
    fn frees_blocks(&self) -> bool {
        matches!(
            self,
            Change::CommitUpload { .. } | Change::Rename { .. } | Change::Remove { .. }
        )
    }
}

/// A change with memory for its paths.
pub(crate) struct StoredChange {
    /// The change, with empty paths.
    change: Change<'static>,
    paths: [ChangePath; 2],
}

impl StoredChange {
    const NONE: StoredChange = StoredChange {
        change: Change::DiscardUpload { upload: 0 },
        paths: [const { ChangePath::new() }; 2],
    };

    /// Stores a change; an error if a path is too long.
    fn set(&mut self, change: &Change) -> Result<(), FileError> {
        for (stored, path) in self.paths.iter_mut().zip(change.paths()) {
            stored.clear();
            stored.push_str(path).map_err(|_| FileError::NameInvalid)?;
        }
        self.change = change.with_paths("", "");
        Ok(())
    }

    /// Returns the change with its paths.
    #[cfg(any(test, feature = "serving"))]
    pub(crate) fn get(&self) -> Change<'_> {
        let [first, second] = &self.paths;
        self.change.with_paths(first, second)
    }
}

/// The change under way, with everything that it needs.
pub struct ChangeTask<'a> {
    pub(crate) change: StoredChange,
    /// Uploads in progress, by number.
    pub(crate) uploads: [Option<Upload>; UPLOADS_MAX],
    /// Data of a write.
    pub(crate) data: Option<Buffer<'a>>,
    /// Number of the upload that was begun.
    pub(crate) begun: u8,
}

/// The changes of a desk.
pub(crate) struct Changes<'a> {
    stage: Cell<Stage>,
    task: RefCell<ChangeTask<'a>>,
    /// Uploads whose owner was dropped.
    abandoned: Cell<[bool; UPLOADS_MAX]>,
    waker: Cell<Option<Waker>>,
    /// Wakers of tasks that wait to request a change.
    next: RefCell<WakerQueue>,
    /// True if no more changes are accepted.
    is_closed: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Waiting,
    UnderWay,
    /// The task of the change under way was dropped.
    Abandoned,
    Done(Result<(), FileError>),
}

impl<'a> Changes<'a> {
    pub(crate) const fn new() -> Changes<'a> {
        Changes {
            stage: Cell::new(Stage::Free),
            task: RefCell::new(ChangeTask {
                change: StoredChange::NONE,
                uploads: [const { None }; UPLOADS_MAX],
                data: None,
                begun: 0,
            }),
            abandoned: Cell::new([false; UPLOADS_MAX]),
            waker: Cell::new(None),
            next: RefCell::new(WakerQueue::new()),
            is_closed: Cell::new(false),
        }
    }

    /// Returns true if a change waits for the recorder.
    pub(crate) fn is_pending(&self) -> bool {
        match self.stage.get() {
            Stage::Waiting => true,
            Stage::Free => self.abandoned.get().contains(&true),
            _ => false,
        }
    }

    /// Begins the pending change.
    pub(crate) fn begin(&self) {
        let mut task = self.task.borrow_mut();
        if self.stage.replace(Stage::UnderWay) == Stage::Waiting {
            return;
        }
        let mut abandoned = self.abandoned.get();
        if let Some(number) = abandoned.iter().position(|is_abandoned| *is_abandoned) {
            abandoned[number] = false;
            let upload = number as u8;
            task.change.change = Change::DiscardUpload { upload };
        }
        self.abandoned.set(abandoned);
        self.stage.set(Stage::Abandoned);
    }

    /// Returns true if the change under way may free blocks that readers have located.
    pub(crate) fn frees_blocks(&self) -> bool {
        let task = self.task.try_borrow();
        task.is_ok_and(|task| task.change.change.frees_blocks())
    }

    /// Returns the change under way.
    pub(crate) fn task(&self) -> RefMut<'_, ChangeTask<'a>> {
        self.task.borrow_mut()
    }

    /// Ends the change under way.
    pub(crate) fn end(&self, result: Result<(), FileError>) {
        match self.stage.get() {
            Stage::UnderWay => self.finish(result),
            Stage::Abandoned => {
                self.stage.set(Stage::Free);
                let task = self.task.borrow();
                if matches!(task.change.change, Change::BeginUpload { .. }) && result.is_ok() {
                    self.abandon(task.begun);
                }
                self.wake_next();
            }
            Stage::Free | Stage::Waiting | Stage::Done(_) => (),
        }
    }

    /// Fails the pending change, or the one under way, because there is no card, and forgets all uploads.
    pub(crate) fn refuse(&self, error: ReadError) {
        match self.stage.get() {
            Stage::Waiting | Stage::UnderWay => self.finish(Err(FileError::Read(error))),
            Stage::Abandoned => self.stage.set(Stage::Free),
            Stage::Free | Stage::Done(_) => (),
        }
        self.is_closed.set(error == ReadError::Closed);
        self.abandoned.set([false; UPLOADS_MAX]);
        // If the operation still borrows the task, it is dropped soon, and its uploads are unknown to the volume.
        if let Ok(mut task) = self.task.try_borrow_mut() {
            task.uploads = [const { None }; UPLOADS_MAX];
        }
        self.wake_next();
    }

    fn finish(&self, result: Result<(), FileError>) {
        self.stage.set(Stage::Done(result));
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    fn wake_next(&self) {
        let next = self.next.borrow_mut().take();
        next.for_each(Waker::wake);
    }

    /// Notes that an upload's owner was dropped.
    pub(crate) fn abandon(&self, upload: u8) {
        let mut abandoned = self.abandoned.get();
        if let Some(place) = abandoned.get_mut(usize::from(upload)) {
            *place = true;
        }
        self.abandoned.set(abandoned);
    }

    fn poll_place(
        &self,
        context: &Context,
        change: &Change,
        data: &mut Option<Buffer<'a>>,
    ) -> Poll<Result<(), FileError>> {
        if self.is_closed.get() {
            return Poll::Ready(Err(ReadError::Closed.into()));
        }
        if self.stage.get() != Stage::Free || self.abandoned.get().contains(&true) {
            self.next.borrow_mut().push(context);
            return Poll::Pending;
        }
        let mut task = self.task.borrow_mut();
        if let Err(error) = task.change.set(change) {
            return Poll::Ready(Err(error));
        }
        task.data = data.take();
        self.stage.set(Stage::Waiting);
        Poll::Ready(Ok(()))
    }
}

impl<'a> ReadDesk<'a> {
    /// Changes the file system: waits for the recorder to carry the change out, and returns when it is durable. Returns
    /// the number of the upload for [`Change::BeginUpload`], otherwise 0. `data` contains the blocks of a
    /// [`Change::WriteUpload`].
    ///
    /// # Errors
    /// [`FileError`]. Nothing has changed then, unless the card failed, in which case the result is unknown.
    pub async fn change(
        &self,
        change: Change<'_>,
        data: Option<WriteBuffer<'_, 'a>>,
    ) -> Result<u8, FileError> {
        let mut buffer = data.and_then(WriteBuffer::into_buffer);
        if self.file_system().is_none() {
            buffer.into_iter().for_each(|buffer| self.give_back(buffer));
            return Err(ReadError::NoCard.into());
        }
        let mut leave = LeaveChange {
            desk: self,
            is_placed: false,
        };
        let placed = poll_fn(|context| self.changes.poll_place(context, &change, &mut buffer));
        let placed = placed.await;
        buffer.into_iter().for_each(|buffer| self.give_back(buffer));
        placed?;
        leave.is_placed = true;
        self.wake_recorder();
        poll_fn(|context| match self.changes.stage.get() {
            Stage::Done(result) => Poll::Ready(result),
            _ => {
                self.changes.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await?;
        Ok(self.changes.task.borrow().begun)
    }

    /// Ends the change under way.
    pub(crate) fn end_change(&self, result: Result<(), FileError>) {
        if self.changes.frees_blocks() {
            self.note_change();
        }
        self.changes.end(result);
        self.reclaim();
    }

    /// Returns the data of a change to the pool once its task is gone.
    pub(crate) fn reclaim(&self) {
        if self.changes.stage.get() == Stage::Free
            && let Ok(mut task) = self.changes.task.try_borrow_mut()
            && let Some(buffer) = task.data.take()
        {
            self.give_back(buffer);
        }
    }

    /// Discards an upload that will not be committed.
    pub fn abandon_upload(&self, upload: u8) {
        self.changes.abandon(upload);
        self.wake_recorder();
    }
}

/// Frees the change when its task ends or is dropped.
struct LeaveChange<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    is_placed: bool,
}

impl Drop for LeaveChange<'_, '_> {
    fn drop(&mut self) {
        if !self.is_placed {
            return;
        }
        let changes = &self.desk.changes;
        let stage = match changes.stage.get() {
            Stage::UnderWay => Stage::Abandoned,
            _ => Stage::Free,
        };
        changes.stage.set(stage);
        // An operation under way may still read the data.
        self.desk.reclaim();
        changes.wake_next();
    }
}

/// A buffer of a desk for data to be written. Dropping it returns the memory to the desk.
pub struct WriteBuffer<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    buffer: Option<Buffer<'a>>,
}

impl<'d, 'a> WriteBuffer<'d, 'a> {
    pub(crate) fn new(desk: &'d ReadDesk<'a>, buffer: Buffer<'a>) -> Self {
        let buffer = Some(buffer);
        WriteBuffer { desk, buffer }
    }

    /// Returns the bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        let blocks = self.buffer.as_mut().map(|buffer| &mut *buffer.blocks);
        blocks.unwrap_or_default().as_flattened_mut()
    }

    fn into_buffer(mut self) -> Option<Buffer<'a>> {
        self.buffer.take()
    }
}

impl Drop for WriteBuffer<'_, '_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.desk.give_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::waker_queue::tests::Wakes;
    use core::pin::{Pin, pin};
    use std::boxed::Box;
    use std::sync::Arc;

    #[test]
    fn a_stored_change_is_the_one_that_was_requested() {
        let changes = [
            Change::BeginUpload { bytes: 7 },
            Change::WriteUpload {
                upload: 1,
                block: 2,
                blocks: 3,
            },
            Change::CommitUpload {
                upload: 1,
                path: "/a",
                bytes: 2,
            },
            Change::DiscardUpload { upload: 1 },
            Change::Rename {
                from: "/a",
                to: "/b",
            },
            Change::Remove { path: "/c" },
            Change::MakeDirectory { path: "/d" },
        ];
        let mut stored = StoredChange::NONE;
        for change in changes {
            stored.set(&change).unwrap();
            assert_eq!(stored.get(), change);
        }
        let path = "x".repeat(CHANGE_PATH_BYTES_MAX + 1);
        let long = Change::Remove { path: &path };
        assert_eq!(stored.set(&long), Err(FileError::NameInvalid));
    }

    #[test]
    fn tasks_that_wait_for_a_change_wake_when_it_ends() {
        let changes = Changes::new();
        let change = Change::DiscardUpload { upload: 0 };
        let tasks = [(); 4].map(|()| Arc::new(Wakes::default()));
        let wakers = tasks.clone().map(Waker::from);
        let place = |waker| {
            let placed = changes.poll_place(&Context::from_waker(waker), &change, &mut None);
            placed.is_ready()
        };
        assert!(place(&wakers[0]));
        changes.begin();
        for waker in wakers.iter().chain(&wakers[1..]) {
            assert!(!place(waker));
        }
        let woken = || tasks.each_ref().map(|task| task.count());
        assert_eq!(woken(), [0; 4]);
        changes.stage.set(Stage::Abandoned);
        changes.end(Ok(()));
        assert_eq!(woken(), [1; 4]);
        assert!(place(&wakers[2]));
    }

    /// Carries out what is pending; returns it.
    fn carried_out(changes: &Changes) -> Option<Change<'static>> {
        if !changes.is_pending() {
            return None;
        }
        changes.begin();
        assert!(!changes.is_pending(), "it is under way");
        let change = changes.task().change.change;
        changes.end(Ok(()));
        Some(change)
    }

    #[test]
    fn abandoned_uploads_are_discarded_in_turn_and_before_the_next_change() {
        let changes = Changes::new();
        assert_eq!(carried_out(&changes), None);
        changes.abandon(1);
        changes.abandon(0);
        let make = Change::MakeDirectory { path: "/a" };
        let place = || changes.poll_place(&Context::from_waker(Waker::noop()), &make, &mut None);
        assert!(place().is_pending());
        for upload in [0, 1] {
            let discard = Change::DiscardUpload { upload };
            assert_eq!(carried_out(&changes), Some(discard));
        }
        assert_eq!(carried_out(&changes), None);
        assert!(place().is_ready() && changes.is_pending());
        changes.begin();
        assert_eq!(changes.task().change.get(), make);
        changes.end(Ok(()));
        assert!(changes.stage.get() == Stage::Done(Ok(())));
    }

    /// A task that is dropped while its upload begins cannot discard it.
    #[test]
    fn an_upload_that_begins_after_its_task_is_gone_is_discarded() {
        for result in [Ok(()), Err(FileError::Full)] {
            let changes = Changes::new();
            let begin = Change::BeginUpload { bytes: 7 };
            let context = Context::from_waker(Waker::noop());
            assert!(changes.poll_place(&context, &begin, &mut None).is_ready());
            changes.begin();
            changes.stage.set(Stage::Abandoned);
            changes.task().begun = 1;
            changes.end(result);
            let discard = result
                .is_ok()
                .then_some(Change::DiscardUpload { upload: 1 });
            assert_eq!(carried_out(&changes), discard);
        }
    }

    /// Readers have to locate files again only if their blocks may have become free.
    #[test]
    fn blocks_become_free_when_files_are_replaced_renamed_or_removed() {
        let (upload, path) = (0, "/a");
        let (from, to) = ("/a", "/b");
        for (change, frees_blocks) in [
            (Change::BeginUpload { bytes: 1 }, false),
            (Change::DiscardUpload { upload }, false),
            (Change::MakeDirectory { path }, false),
            (Change::Remove { path }, true),
            (Change::Rename { from, to }, true),
        ] {
            let changes = Changes::new();
            let context = Context::from_waker(Waker::noop());
            assert!(changes.poll_place(&context, &change, &mut None).is_ready());
            assert_eq!(changes.frees_blocks(), frees_blocks, "{change:?}");
        }
    }

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Calls `test` with a desk of two buffers, and a mounted card.
    fn with_desk(test: impl FnOnce(&ReadDesk)) {
        let mut blocks = [[0; 512]; 8];
        let desk = ReadDesk::with_buffers(&mut blocks, 2);
        desk.set_mounted(Some(crate::replay::mounted().0));
        test(&desk);
    }

    fn buffer<'d, 'a>(desk: &'d ReadDesk<'a>) -> Option<WriteBuffer<'d, 'a>> {
        match poll(pin!(desk.write_buffer())) {
            Poll::Ready(buffer) => buffer.ok(),
            Poll::Pending => None,
        }
    }

    const BEGIN: Change = Change::BeginUpload { bytes: 7 };
    const WRITE: Change = Change::WriteUpload {
        upload: 1,
        block: 2,
        blocks: 3,
    };

    #[test]
    fn a_change_returns_its_result_and_the_number_of_the_upload() {
        with_desk(|desk| {
            for (begun, result) in [(2, Ok(())), (1, Err(FileError::Full)), (0, Ok(()))] {
                let mut change = Box::pin(desk.change(BEGIN, None));
                assert!(poll(change.as_mut()).is_pending() && desk.changes.is_pending());
                desk.changes.begin();
                desk.changes.task().begun = begun;
                assert!(poll(change.as_mut()).is_pending());
                desk.end_change(result);
                assert_eq!(poll(change.as_mut()), Poll::Ready(result.map(|()| begun)));
            }
        });
    }

    /// The other buffer is reserved for short reads.
    #[test]
    fn the_data_of_a_change_returns_to_the_desk_when_the_change_has_ended() {
        let place = |desk: &ReadDesk| assert!(desk.changes.is_pending() && buffer(desk).is_none());
        with_desk(|desk| {
            // The change is carried out.
            let mut change = Box::pin(desk.change(WRITE, buffer(desk)));
            assert!(poll(change.as_mut()).is_pending());
            place(desk);
            desk.changes.begin();
            assert!(desk.changes.task().data.is_some());
            desk.end_change(Ok(()));
            assert!(poll(change.as_mut()).is_ready());
            assert!(buffer(desk).is_some());

            // Its task is dropped before.
            let mut change = Box::pin(desk.change(WRITE, buffer(desk)));
            assert!(poll(change.as_mut()).is_pending());
            place(desk);
            drop(change);
            assert!(buffer(desk).is_some() && !desk.changes.is_pending());

            // Its task is dropped meanwhile.
            let mut change = Box::pin(desk.change(WRITE, buffer(desk)));
            assert!(poll(change.as_mut()).is_pending());
            place(desk);
            desk.changes.begin();
            drop(change);
            assert!(buffer(desk).is_none() && !desk.changes.is_pending());
            let mut next = Box::pin(desk.change(BEGIN, None));
            assert!(poll(next.as_mut()).is_pending() && !desk.changes.is_pending());
            desk.end_change(Ok(()));
            assert!(buffer(desk).is_some());
            assert!(poll(next.as_mut()).is_pending() && desk.changes.is_pending());
        });
    }

    #[test]
    fn a_change_that_cannot_be_requested_gives_its_data_back() {
        let path = "x".repeat(CHANGE_PATH_BYTES_MAX + 1);
        let long = Change::Remove { path: &path };
        with_desk(|desk| {
            let mut change = Box::pin(desk.change(long, buffer(desk)));
            let result = poll(change.as_mut());
            assert_eq!(result, Poll::Ready(Err(FileError::NameInvalid)));
            assert!(buffer(desk).is_some() && !desk.changes.is_pending());
            desk.refuse();
            let mut change = Box::pin(desk.change(WRITE, buffer(desk)));
            let result = poll(change.as_mut());
            let no_card = FileError::Read(ReadError::NoCard);
            assert_eq!(result, Poll::Ready(Err(no_card)));
            assert!(buffer(desk).is_some());
        });
    }

    /// Another task that is dropped while it waits for its turn changes nothing.
    #[test]
    fn a_task_that_is_dropped_before_its_turn_leaves_the_change_under_way() {
        with_desk(|desk| {
            let mut first = Box::pin(desk.change(BEGIN, None));
            assert!(poll(first.as_mut()).is_pending());
            desk.changes.begin();
            let mut second = Box::pin(desk.change(BEGIN, None));
            assert!(poll(second.as_mut()).is_pending());
            drop(second);
            desk.changes.task().begun = 1;
            desk.end_change(Ok(()));
            assert_eq!(poll(first.as_mut()), Poll::Ready(Ok(1)));
        });
    }

    #[test]
    fn without_a_card_a_change_fails_and_after_the_end_none_is_accepted() {
        for is_under_way in [false, true] {
            with_desk(|desk| {
                let system = desk.file_system();
                for (error, is_closed) in [(ReadError::NoCard, false), (ReadError::Closed, true)] {
                    desk.set_mounted(system);
                    let mut change = Box::pin(desk.change(WRITE, buffer(desk)));
                    assert!(poll(change.as_mut()).is_pending());
                    if is_under_way {
                        desk.changes.begin();
                    }
                    match is_closed {
                        true => desk.close(),
                        false => desk.refuse(),
                    }
                    let error = FileError::Read(error);
                    assert_eq!(poll(change.as_mut()), Poll::Ready(Err(error)));
                    let next = poll(pin!(desk.change(BEGIN, None)));
                    // A card may come back.
                    assert_eq!(next, Poll::Ready(Err(error)));
                    if !is_closed {
                        assert!(buffer(desk).is_some());
                    }
                }
                desk.reopen();
                desk.set_mounted(system);
                let mut change = Box::pin(desk.change(BEGIN, None));
                assert!(poll(change.as_mut()).is_pending() && desk.changes.is_pending());
            });
        }
    }
}
