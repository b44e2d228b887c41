//! Chooses the next action on the card, without I/O and without a clock: each choice maps a [`State`] and the current
//! [`Conditions`] to one [`Action`].
//!
//! ```text
//!            ┌──────────────────────────────────────────────────────────────┐
//!            v                                                              │
//!   Conditions ──> update ──> next_action ──> Action ──> shell ──> Outcome ──> apply
//!   (measured by the shell,    (pure)                    (card,     (pure)
//!    chosen by the search)                                encoder)
//! ```
//!
//! # The card
//!
//! ```text
//!              Acquire               Start(Mount), Step ...              Write
//!   Absent ───────────────> Unmounted ─────────────────────> Idle ─────────────────> Writing(track)
//!     ^                          │                            ^ │ <── Commit, Step ──────┘
//!     │                          │                            │ └─ Step, Read
//!     └───── any failure ────────┴────────────────────────────┘
//! ```
//!
//! # A file of a track
//!
//! ```text
//!               Reserve            Begin                   Leave               Close
//!   free space ─────────> ahead ──────────> file ────────────────> closing ─────────> closed
//!                                            │  Write: index + 1
//!                                            │  Commit: durable = index
//!                                            └─ Name: it gets its final name
//! ```
//!
//! A full file is committed and left at once, without waiting for its successor. A file with room is not left before
//! its successor is prepared, unless a session ends in it: samples of the next session must not follow in the same
//! file.
//!
//! # A checkpoint of a track
//!
//! ```text
//!   None ── window nearly over ──> Wanted ──┐  drained ──> at the end of a page, if the rings
//!     └──── flush, leave, end ───> Forced ──┘              absorb it (Wanted) ──> Mark ──> Commit
//! ```
//!
//! # Reads of other tasks
//!
//! ```text
//!   nobody reads ──> writes as blocks fill
//!   is_reading ────> Read, Read, ... ──> rings hold a page, or a checkpoint is ready ──> one page ──> Read, ...
//! ```
//!
//! While `is_reading`, no write begins unless a checkpoint needs it, and a read ends a write only between two pages.
//! After the end of a recording the phase stays `Ended`, and `is_serving` lets reads and changes continue.
//!
//! Jobs are file-system operations: sequences of steps, each of which is a few reads, a bounded write, or a write after
//! reads. The planner chooses again between any two steps, so samples take precedence whenever their ring needs it.

mod decide;
#[cfg(test)]
mod search;
#[cfg(test)]
mod tests;
mod update;

pub use decide::next_action;
pub use update::{apply, request, update};

/// Phase of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Samples are written as they arrive.
    Recording,
    /// No more samples arrive: pending ones are written and all files closed.
    Ending,
    /// Everything is done, or was given up. Other tasks may still use the card.
    Ended,
}

/// State of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Card {
    /// Absent or failed: it has to be acquired.
    Absent,
    /// Acquired; its file system is being mounted and repaired.
    Unmounted,
    /// Mounted, and no write is open.
    Idle,
    /// A write is open to the file of this track.
    Writing(u8),
}

/// Checkpoint of a track: makes everything pushed up to its request durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checkpoint {
    /// None is pending.
    None,
    /// Pending; waits for the end of a page, and until the rings can absorb it.
    Wanted,
    /// Pending, and not to be delayed.
    Forced,
}

/// Progress of a track towards its next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// Samples stay in this file.
    Stay,
    /// A new file is to begin once one is prepared. Until then samples go to the current one.
    Rotate,
    /// The next sample belongs to another session and must not go to this file.
    Session,
    /// A forced checkpoint of the remaining data of this file is pending.
    Sealing,
    /// The file is complete and durable.
    Sealed,
}

/// Room for files on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// There may be room.
    Unknown,
    /// The last attempt to prepare a file found no room, but the oldest recording may be removed.
    Tight,
    /// The last attempt to prepare a file found no room, and nothing may be removed.
    None,
}

/// State of a flush request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flush {
    /// There is no request.
    None,
    /// This request is pending.
    Pending(u32),
    /// This request is ready to be answered: true if everything pushed before it is durable.
    Answer(u32, bool),
}

/// The file that a track writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File {
    /// Its length, in blocks.
    pub blocks: u32,
    /// Number of blocks written.
    pub index: u32,
    /// Number of blocks known to be durable.
    pub durable: u32,
}

impl File {
    fn is_full(self) -> bool {
        self.index >= self.blocks
    }

    fn is_durable(self) -> bool {
        self.durable == self.index
    }
}

/// A sequence of files, written one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Track {
    /// The file being written.
    pub file: Option<File>,
    /// Prepared files.
    pub ahead: u8,
    /// Complete files that still have their preallocated size.
    pub closing: u8,
    /// Pending checkpoint.
    pub checkpoint: Checkpoint,
    /// Progress towards the next file.
    pub leave: Leave,
    /// True if the lack of room for this track was reported.
    pub is_full: bool,
}

impl Track {
    const NEW: Track = Track {
        file: None,
        ahead: 0,
        closing: 0,
        checkpoint: Checkpoint::None,
        leave: Leave::Stay,
        is_full: false,
    };

    /// Returns the file if samples may still go to its blocks.
    pub fn open_file(&self) -> Option<File> {
        let file = self.file.filter(|file| !file.is_full());
        file.filter(|_| self.leave != Leave::Sealed)
    }

    /// Returns true if there is no file for the next block, and none is prepared.
    pub fn is_starved(&self) -> bool {
        self.ahead == 0 && self.file.is_none_or(File::is_full)
    }

    /// Returns true if there is no room for the next block, and that was reported.
    pub fn is_hopeless(&self) -> bool {
        self.is_full && self.is_starved()
    }
}

/// A file-system operation, carried out in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Mounts the volume, repairs the results of a power loss, and closes interrupted files.
    Mount,
    /// Prepares a file of a track.
    Reserve(u8),
    /// Gives the file being written its name.
    Name(u8),
    /// Trims a complete file to its actual length.
    Close(u8),
    /// Discards a prepared file.
    Discard(u8),
    /// Removes the oldest recording.
    Remove,
    /// Carries out a change that another task requested.
    Change,
}

/// Next action of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing to do: sleep until something may have changed.
    Rest,
    /// Powers up and identifies the card.
    Acquire,
    /// Starts a file-system operation; needs no card time.
    Start(Job),
    /// Carries out the next step of the running job. Ends an open write first.
    Step,
    /// Writes the full block of a stream to the file of its track. Opens a write if none is open there.
    Write(u8),
    /// Completes the partial blocks of a track with marks.
    Mark(u8),
    /// Ends the open write if it is this track's: its blocks are then durable.
    Commit(u8),
    /// Begins the next prepared file of a track, and the sessions whose boundaries are next.
    Begin(u8),
    /// Puts the file of a track aside: to be closed, or to be reused if it is empty.
    Leave(u8),
    /// Carries out a read that another task requested.
    Read,
    /// Answers a flush request.
    AnswerFlush(u32, bool),
    /// Reports that a track has no room left.
    ReportFull(u8),
    /// Gives up the pending data of a track: there is no room, and no more time.
    GiveUp(u8),
    /// Gives up all pending data: the card does not come back.
    Abandon,
    /// The recording has ended.
    End,
}

/// Result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done. For a step: the job has more steps.
    Done,
    /// The job is done.
    JobDone,
    /// The job ended and found no room; or a removal found nothing to remove.
    NoRoom,
    /// The card or its file system failed.
    Failed,
}

/// Request from outside the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Makes everything pushed so far durable, and answers.
    Flush(u32),
    /// Continues in new files.
    Rotate,
    /// Ends the recording.
    Stop,
}

/// Content of a stream's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// Everything taken from the ring is in written blocks that end with a mark.
    Clean,
    /// Some data is not in a written block, or has no mark yet.
    Partial,
    /// The block is full and ready to be written.
    Full,
}

/// Conditions of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamConditions {
    /// Track of the stream.
    pub track: u8,
    /// Content of its block.
    pub block: Block,
    /// Samples or a gap are not in blocks yet, including those after a session boundary.
    pub is_waiting: bool,
    /// The ring still holds data that the pending checkpoint covers.
    pub is_behind: bool,
    /// The next item in the ring is a session boundary.
    pub is_at_session: bool,
    /// Enough data is buffered to take the card from another track.
    pub has_turn: bool,
    /// Fill level of the ring, from 0 to 1000.
    pub level: u16,
}

impl StreamConditions {
    const NEW: StreamConditions = StreamConditions {
        track: 0,
        block: Block::Clean,
        is_waiting: false,
        is_behind: false,
        is_at_session: false,
        has_turn: false,
        level: 0,
    };
}

/// Conditions of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrackConditions {
    /// The durability window ends soon, and some data is not durable.
    pub is_checkpoint_due: bool,
    /// The file position is at the end of a page, where stopping the write costs the card least, or the checkpoint
    /// cannot wait for such a position.
    pub is_page_end: bool,
    /// The rings hold enough to end the pending checkpoint at the end of a page, or it cannot wait for that. Readers
    /// wait for such a checkpoint.
    pub is_checkpoint_ready: bool,
    /// A stream has data to write, but the rest of the file is reserved for unfinished blocks of other
    /// streams.
    pub is_used_up: bool,
    /// The file has reached its maximum age.
    pub is_rotation_due: bool,
    /// The files will soon be used up, and those that are prepared are short.
    pub is_short: bool,
    /// The file has a durable mark, but not its name yet.
    pub needs_name: bool,
    /// The file should have had its name for some time: naming it precedes all jobs but urgent ones.
    pub is_name_due: bool,
    /// Another file may be prepared for this track.
    pub may_reserve: bool,
    /// Length of the next prepared file, in blocks.
    pub next_blocks: u32,
    /// Set by [`update`] and [`request`]: the pending checkpoint now covers everything in the rings.
    pub is_checkpoint_new: bool,
}

impl TrackConditions {
    const NEW: TrackConditions = TrackConditions {
        is_checkpoint_due: false,
        is_page_end: false,
        is_checkpoint_ready: false,
        is_used_up: false,
        is_rotation_due: false,
        is_short: false,
        needs_name: false,
        is_name_due: false,
        may_reserve: false,
        next_blocks: 0,
        is_checkpoint_new: false,
    };
}

/// All inputs of a decision other than the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conditions<const N: usize> {
    /// Conditions of each stream.
    pub streams: [StreamConditions; N],
    /// Conditions of each track; entries from `State::track_count` on are ignored.
    pub tracks: [TrackConditions; N],
    /// All rings absorb a checkpoint.
    pub absorbs_commit: bool,
    /// All rings absorb a step of a job.
    pub absorbs_step: bool,
    /// A read requested by another task may be carried out now: the rings absorb it, and it interrupts no write
    /// within a page.
    pub absorbs_read: bool,
    /// Other tasks are reading, and all rings absorb the wait: no write begins unless a checkpoint needs it.
    pub is_reading: bool,
    /// Other tasks are served after the end of the recording.
    pub is_serving: bool,
    /// An urgent job has waited for the rings for as long as it may.
    pub is_patience_over: bool,
    /// Another task waits for a read.
    pub is_read_pending: bool,
    /// Another task waits for a change of the file system.
    pub is_change_pending: bool,
    /// A failed or full card may be tried again now.
    pub is_retry_due: bool,
    /// A failed card may still be tried again at all.
    pub may_retry: bool,
    /// The oldest recording may be removed to make room.
    pub may_remove: bool,
}

/// State of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State<const N: usize> {
    /// Phase of the recording.
    pub phase: Phase,
    /// State of the card.
    pub card: Card,
    /// The running job.
    pub job: Option<Job>,
    /// Room for files.
    pub room: Room,
    /// The pending flush request.
    pub flush: Flush,
    /// Tracks; entries from `track_count` on are not used.
    pub tracks: [Track; N],
    /// Number of tracks.
    pub track_count: u8,
    /// Track whose jobs come first.
    pub turn: u8,
    /// The running job comes before the next read of another task.
    pub is_job_next: bool,
}

impl<const N: usize> State<N> {
    /// Returns the state before the card is acquired.
    pub const fn new(track_count: u8) -> State<N> {
        State {
            phase: Phase::Recording,
            card: Card::Absent,
            job: None,
            room: Room::Unknown,
            flush: Flush::None,
            tracks: [Track::NEW; N],
            track_count,
            turn: 0,
            is_job_next: false,
        }
    }

    fn tracks(&self) -> &[Track] {
        &self.tracks[..usize::from(self.track_count)]
    }

    fn indices(&self) -> core::ops::Range<u8> {
        0..self.track_count
    }

    /// Returns true if a forced checkpoint is pending.
    pub fn is_forced(&self) -> bool {
        let mut tracks = self.tracks().iter();
        tracks.any(|track| track.checkpoint == Checkpoint::Forced)
    }

    /// Returns true if a forced checkpoint is pending that can still be written.
    fn is_forced_with_room(&self) -> bool {
        let mut tracks = self.tracks().iter();
        tracks.any(|track| track.checkpoint == Checkpoint::Forced && !track.is_hopeless())
    }
}

impl<const N: usize> Conditions<N> {
    /// Returns the conditions of a recording about which nothing is known yet.
    pub const fn new() -> Conditions<N> {
        Conditions {
            streams: [StreamConditions::NEW; N],
            tracks: [TrackConditions::NEW; N],
            absorbs_commit: false,
            absorbs_step: false,
            absorbs_read: false,
            is_reading: false,
            is_serving: false,
            is_patience_over: false,
            is_read_pending: false,
            is_change_pending: false,
            is_retry_due: false,
            may_retry: false,
            may_remove: false,
        }
    }

    fn of_track(&self, track: u8) -> impl Iterator<Item = (u8, &StreamConditions)> {
        let streams = (0..).zip(&self.streams);
        streams.filter(move |(_, stream)| stream.track == track)
    }

    /// Returns true if some data of this track are not in a durable block.
    fn has_unsaved(&self, track: u8, file: Option<File>) -> bool {
        let is_written = file.is_some_and(|file| !file.is_durable());
        is_written
            || self
                .of_track(track)
                .any(|(_, stream)| stream.is_waiting || stream.block != Block::Clean)
    }

    /// Returns true if a ring holds data that the pending checkpoint of this track covers.
    fn is_behind(&self, track: u8) -> bool {
        self.of_track(track).any(|(_, stream)| stream.is_behind)
    }

    /// Returns true if everything that a pending checkpoint covers is in blocks, except for data that has to go to the
    /// next file.
    fn is_drained(&self, track: u8) -> bool {
        let is_used_up = self.tracks[usize::from(track)].is_used_up;
        self.of_track(track).all(|(_, stream)| {
            let is_next_file = is_used_up && stream.block == Block::Clean;
            !stream.is_behind || stream.is_at_session || is_next_file
        })
    }

    /// Returns true if a session boundary stops a stream of this track.
    fn is_at_session(&self, track: u8) -> bool {
        self.of_track(track).any(|(_, stream)| stream.is_at_session)
    }

    /// Returns true if all blocks of this track have their marks.
    fn is_marked(&self, track: u8) -> bool {
        self.of_track(track)
            .all(|(_, stream)| stream.block == Block::Clean)
    }
}
