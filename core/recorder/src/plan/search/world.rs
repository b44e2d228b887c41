//! The planner's environment: rings, encoders, files, the volume, the card, and flush requests.

use super::Config;
use crate::plan::{
    Block, Card, Checkpoint, Conditions, File, Phase, State, StreamConditions, TrackConditions,
};

/// An item of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    None,
    Sample,
    Gap(u8),
    Session,
}

impl Item {
    fn count(self) -> u32 {
        match self {
            Item::Sample => 1,
            Item::Gap(count) => count.into(),
            Item::None | Item::Session => 0,
        }
    }
}

/// Maximum number of items in a ring.
const ITEMS_MAX: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ring {
    items: [Item; ITEMS_MAX],
    /// Number of items at the front that the pending checkpoint covers.
    pub(super) covered: u8,
    /// Number of items at the front that were pushed before the pending flush.
    pub(super) asked: u8,
}

impl Ring {
    const EMPTY: Ring = Ring {
        items: [Item::None; ITEMS_MAX],
        covered: 0,
        asked: 0,
    };

    pub(super) fn len(&self) -> usize {
        let mut items = self.items.iter();
        items
            .position(|item| *item == Item::None)
            .unwrap_or(ITEMS_MAX)
    }

    pub(super) fn samples(&self) -> usize {
        let items = self.items.iter();
        items.filter(|item| **item == Item::Sample).count()
    }

    fn gaps(&self) -> usize {
        let items = self.items.iter();
        items.filter(|item| matches!(item, Item::Gap(_))).count()
    }

    pub(super) fn has_session(&self) -> bool {
        self.items.contains(&Item::Session)
    }

    pub(super) fn first(&self) -> Item {
        self.items[0]
    }

    fn counts(&self) -> u32 {
        self.items.iter().map(|item| item.count()).sum()
    }

    fn is_waiting(&self) -> bool {
        self.counts() > 0
    }

    fn is_behind(&self) -> bool {
        let covered = &self.items[..self.covered.into()];
        covered.iter().any(|item| item.count() > 0)
    }

    fn has_asked(&self) -> bool {
        let asked = &self.items[..self.asked.into()];
        asked.iter().any(|item| item.count() > 0)
    }

    fn append(&mut self, item: Item) {
        let len = self.len();
        self.items[len] = item;
    }

    /// Pushes a sample, which is lost if there is no room, or no slot for the end of the last gap.
    fn push<const N: usize>(&mut self, config: &Config<N>) {
        let len = self.len();
        let last = len.checked_sub(1).map(|at| self.items[at]);
        let is_open = matches!(last, Some(Item::Gap(_)));
        let is_lost = self.samples() == config.ring || is_open && self.gaps() >= config.gaps;
        match (is_lost, last) {
            (false, _) => self.append(Item::Sample),
            (true, Some(Item::Gap(count))) => self.items[len - 1] = Item::Gap(count + 1),
            (true, _) => self.append(Item::Gap(1)),
        }
    }

    fn take(&mut self) -> Item {
        let first = self.items[0];
        self.items.rotate_left(1);
        self.items[ITEMS_MAX - 1] = Item::None;
        self.covered = self.covered.saturating_sub(1);
        self.asked = self.asked.saturating_sub(1);
        first
    }
}

/// Samples and lost samples somewhere between the ring and the durable part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) count: u8,
    /// Some of these samples were pushed before the pending flush.
    pub(super) is_asked: bool,
}

impl Held {
    const NONE: Held = Held {
        count: 0,
        is_asked: false,
    };

    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }

    fn counts(self) -> u32 {
        self.count.into()
    }

    pub(super) fn add(&mut self, other: Held) {
        self.count += other.count;
        self.is_asked |= other.is_asked;
    }

    /// Limits the count to one: no decision depends on more.
    fn saturate(&mut self) {
        self.count = self.count.min(1);
    }
}

/// State of the block that an encoder fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// It has room. The value is true if written blocks lack a mark.
    Open(bool),
    /// Ready to be written; ends with a mark.
    Marked,
    /// Ready to be written; a mark has to follow.
    Unmarked,
    /// Ready to be written; ends with the beginning of the ring's next sample. If the file has no room for
    /// the rest of that sample, the write omits it.
    Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    pub(super) ring: Ring,
    /// A gap that is not in a block yet, left by a card failure.
    pub(super) pending: Held,
    /// Content of the block.
    pub(super) block: Held,
    pub(super) layout: Layout,
    /// Written but not durable.
    pub(super) volatile: Held,
}

impl Stream {
    const NEW: Stream = Stream {
        ring: Ring::EMPTY,
        pending: Held::NONE,
        block: Held::NONE,
        layout: Layout::Open(false),
        volatile: Held::NONE,
    };

    /// Returns the number of pushed samples that are not durable, lost ones included.
    pub(super) fn counts(&self) -> u32 {
        let held = [self.pending, self.block, self.volatile];
        self.ring.counts() + held.iter().map(|held| held.counts()).sum::<u32>()
    }

    /// Returns true if some data is not in blocks yet.
    fn is_waiting(&self) -> bool {
        self.ring.is_waiting() || !self.pending.is_empty()
    }

    pub(super) fn state_of_block(&self) -> Block {
        match self.layout {
            Layout::Marked | Layout::Unmarked | Layout::Split => Block::Full,
            Layout::Open(false) if self.block.is_empty() => Block::Clean,
            Layout::Open(_) => Block::Partial,
        }
    }

    /// Returns true if samples taken from the ring are in a block that is not written.
    pub(super) fn holds_samples(&self) -> bool {
        !self.block.is_empty()
    }

    fn has_asked(&self) -> bool {
        let held = [self.pending, self.block, self.volatile];
        self.ring.has_asked() || held.iter().any(|held| held.is_asked)
    }

    fn ask(&mut self) {
        self.ring.asked = self.ring.len() as u8;
        for held in self.held() {
            held.is_asked = !held.is_empty();
        }
    }

    fn forget_asked(&mut self) {
        self.ring.asked = 0;
        for held in self.held() {
            held.is_asked = false;
        }
    }

    fn held(&mut self) -> [&mut Held; 3] {
        [&mut self.pending, &mut self.block, &mut self.volatile]
    }

    /// Drops and returns everything that was taken from the ring and is not durable.
    fn drop_taken(&mut self) -> Held {
        let mut dropped = Held::default();
        for held in self.held() {
            dropped.add(core::mem::take(held));
        }
        self.layout = Layout::Open(false);
        dropped
    }
}

/// Facts about the files of a track that the planner does not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Files {
    /// Prepared files.
    pub(super) ahead: u8,
    /// Complete files that still have their preallocated size.
    pub(super) closing: u8,
    /// The file being written has its name.
    pub(super) is_named: bool,
    /// The running job names the previous file.
    pub(super) is_naming_previous: bool,
    /// The lack of room was reported.
    pub(super) is_full_reported: bool,
    /// A new file was requested.
    pub(super) is_rotation_asked: bool,
}

/// State of the flush request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    None,
    Open,
    /// Some of its samples were lost.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct World<const N: usize> {
    pub(super) plan: State<N>,
    pub(super) streams: [Stream; N],
    pub(super) files: [Files; N],
    /// Track that the card's open write belongs to.
    pub(super) open: Option<u8>,
    /// The running job has made a step.
    pub(super) is_midway: bool,
    /// The volume has room for files.
    pub(super) has_room: bool,
    /// There is a recording that may be removed.
    pub(super) removable: bool,
    /// The last attempt found no room, and nothing has freed any since.
    pub(super) is_known_full: bool,
    pub(super) asked: Asked,
}

/// Changes of the sample counts in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) pushed: u32,
    pub(super) durable: u32,
    pub(super) given_up: u32,
}

impl<const N: usize> World<N> {
    pub(super) fn new(config: &Config<N>) -> World<N> {
        World {
            plan: State::new(config.track_count),
            streams: [Stream::NEW; N],
            files: [Files {
                ahead: 0,
                closing: 0,
                is_named: false,
                is_naming_previous: false,
                is_full_reported: false,
                is_rotation_asked: false,
            }; N],
            open: None,
            is_midway: false,
            has_room: false,
            removable: false,
            is_known_full: false,
            asked: Asked::None,
        }
    }

    pub(super) fn counts(&self) -> u32 {
        self.streams.iter().map(Stream::counts).sum()
    }

    pub(super) fn streams_of<'a>(
        &'a mut self,
        config: &'a Config<N>,
        at: u8,
    ) -> impl Iterator<Item = &'a mut Stream> {
        let streams = self.streams.iter_mut().zip(config.tracks);
        streams.filter_map(move |(stream, track)| (track == at).then_some(stream))
    }

    pub(super) fn file(&self, at: u8) -> Option<File> {
        self.plan.tracks[usize::from(at)].file
    }

    /// Returns true if the pending data of this track have no file to go to.
    pub(super) fn is_starved(&self, at: u8) -> bool {
        let track = &self.plan.tracks[usize::from(at)];
        let has_room = track.file.is_some_and(|file| file.index < file.blocks);
        track.ahead == 0 && !has_room
    }

    /// Returns true if a track is starved, and this was reported.
    pub(super) fn is_hopeless(&self, at: u8) -> bool {
        self.is_starved(at) && self.files[usize::from(at)].is_full_reported
    }

    /// Returns the number of a track's files that occupy slots of the volume.
    pub(super) fn slots(&self, at: u8) -> u8 {
        let track = &self.plan.tracks[usize::from(at)];
        track.ahead + track.closing + u8::from(track.file.is_some())
    }

    pub(super) fn needs_name(&self, config: &Config<N>, at: u8) -> bool {
        let is_marked = self.file(at).is_some_and(|file| file.durable > 0);
        config.has_names_and_ages && is_marked && !self.files[usize::from(at)].is_named
    }

    pub(super) fn is_ring_full(&self, config: &Config<N>, stream: usize) -> bool {
        self.streams[stream].ring.samples() == config.ring
    }

    /// Returns the conditions that follow from the world; free predicates are false.
    pub(super) fn facts(&self, config: &Config<N>) -> Conditions<N> {
        Conditions {
            streams: core::array::from_fn(|at| self.facts_of_stream(config, at)),
            tracks: core::array::from_fn(|at| self.facts_of_track(config, at as u8)),
            absorbs_commit: false,
            absorbs_step: false,
            absorbs_read: false,
            is_reading: false,
            is_serving: config.has_reads,
            is_patience_over: false,
            is_read_pending: false,
            is_change_pending: false,
            is_retry_due: false,
            may_retry: true,
            may_remove: config.may_remove,
        }
    }

    fn facts_of_stream(&self, config: &Config<N>, at: usize) -> StreamConditions {
        let stream = &self.streams[at];
        StreamConditions {
            track: config.tracks[at],
            block: stream.state_of_block(),
            is_waiting: stream.is_waiting(),
            is_behind: stream.ring.is_behind() || !stream.pending.is_empty(),
            is_at_session: stream.ring.first() == Item::Session,
            has_turn: false,
            level: if self.is_ring_full(config, at) {
                1000
            } else {
                0
            },
        }
    }

    fn facts_of_track(&self, config: &Config<N>, at: u8) -> TrackConditions {
        let track = &self.plan.tracks[usize::from(at)];
        TrackConditions {
            is_checkpoint_due: false,
            is_page_end: false,
            is_checkpoint_ready: false,
            is_used_up: self.is_used_up(config, at),
            is_checkpoint_new: false,
            is_rotation_due: false,
            is_short: false,
            needs_name: at < config.track_count && self.needs_name(config, at),
            is_name_due: false,
            may_reserve: config.limits().may_reserve(
                track.ahead,
                track.closing,
                config.track_count,
            ),
            next_blocks: config.blocks,
        }
    }

    /// Calls a function that may request a checkpoint, and updates the rings accordingly.
    pub(super) fn update_with(
        &mut self,
        mut now: Conditions<N>,
        function: impl FnOnce(&mut State<N>, &mut Conditions<N>),
    ) {
        function(&mut self.plan, &mut now);
        for (stream, facts) in self.streams.iter_mut().zip(now.streams) {
            if now.tracks[usize::from(facts.track)].is_checkpoint_new {
                stream.ring.covered = stream.ring.len() as u8;
            }
        }
    }

    pub(super) fn push(&mut self, config: &Config<N>, stream: u8, tally: &mut Tally) {
        self.streams[usize::from(stream)].ring.push(config);
        tally.pushed += 1;
    }

    pub(super) fn begin_session(&mut self, stream: u8) {
        self.streams[usize::from(stream)].ring.append(Item::Session);
    }

    pub(super) fn ask(&mut self) {
        if self.asked == Asked::None {
            self.asked = Asked::Open;
        }
        self.streams.iter_mut().for_each(Stream::ask);
    }

    pub(super) fn has_asked(&self) -> bool {
        self.streams.iter().any(Stream::has_asked)
    }

    pub(super) fn forget_asked(&mut self) {
        self.asked = Asked::None;
        self.streams.iter_mut().for_each(Stream::forget_asked);
    }

    /// Returns true if a stream of a track may begin a block. The last blocks of a shared file are reserved
    /// for unfinished blocks.
    pub(super) fn may_begin(&self, config: &Config<N>, at: u8) -> bool {
        let file = self.file(at);
        file.is_some_and(|file| file.blocks - file.index >= config.sharing(at))
    }

    pub(super) fn is_used_up(&self, config: &Config<N>, at: u8) -> bool {
        let mut streams = self.streams.iter().zip(config.tracks);
        self.file(at).is_some()
            && !self.may_begin(config, at)
            && streams.any(|(stream, track)| {
                track == at && stream.is_waiting() && stream.state_of_block() == Block::Clean
            })
    }

    /// Returns true if the shell may move the next item of a stream to its block.
    pub(super) fn may_fill(&self, config: &Config<N>, at: usize) -> bool {
        let stream = &self.streams[at];
        let track = &self.plan.tracks[usize::from(config.tracks[at])];
        let has_room = match stream.state_of_block() {
            Block::Clean => self.may_begin(config, config.tracks[at]),
            Block::Partial => true,
            Block::Full => false,
        };
        if !has_room || track.open_file().is_none() {
            return false;
        }
        if !stream.pending.is_empty() {
            return true;
        }
        let is_held = track.checkpoint == Checkpoint::Forced && stream.ring.covered == 0;
        stream.ring.first().count() > 0 && !is_held
    }

    /// Moves one item to the block. The beginning of a split sample stays in the ring.
    pub(super) fn fill(&mut self, at: usize, layout: Layout) {
        if layout != Layout::Split {
            self.take_item(at);
        }
        self.streams[at].layout = layout;
    }

    fn take_item(&mut self, at: usize) {
        let is_asking = self.asked == Asked::Open;
        let stream = &mut self.streams[at];
        let item = if stream.pending.is_empty() {
            let is_asked = is_asking && stream.ring.asked > 0;
            let count = stream.ring.take().count() as u8;
            Held { count, is_asked }
        } else {
            core::mem::take(&mut stream.pending)
        };
        stream.block.add(item);
    }

    /// Writes the block of a stream.
    pub(super) fn write(&mut self, config: &Config<N>, at: usize) {
        let track = config.tracks[at];
        let file = self.file(track);
        let left = file.map_or(0, |file| file.blocks - file.index);
        let stream = &mut self.streams[at];
        let block = core::mem::take(&mut stream.block);
        stream.volatile.add(block);
        self.open = Some(track);
        let layout = stream.layout;
        let goes_on = layout == Layout::Split && left > config.sharing(track);
        stream.layout = Layout::Open(goes_on || layout == Layout::Unmarked);
        if goes_on {
            self.take_item(at);
        }
    }

    /// Ends the open write, if it is this track's.
    pub(super) fn end_write(&mut self, at: u8) {
        self.open = self.open.filter(|open| *open != at);
    }

    /// Makes the blocks written to the file of a track durable.
    pub(super) fn commit(&mut self, config: &Config<N>, at: u8, tally: &mut Tally) {
        self.end_write(at);
        for stream in self.streams_of(config, at) {
            tally.durable += core::mem::take(&mut stream.volatile).counts();
        }
    }

    /// Takes the sessions that are next in their rings. Returns false if a block still holds samples of the
    /// previous session.
    pub(super) fn take_sessions(&mut self, config: &Config<N>, at: u8) -> bool {
        for stream in self.streams_of(config, at) {
            if stream.ring.first() != Item::Session {
                continue;
            }
            if stream.holds_samples() {
                return false;
            }
            stream.ring.take();
        }
        true
    }

    /// The card fails, and everything that is not durable is lost.
    pub(super) fn fail(&mut self) {
        for stream in &mut self.streams {
            let dropped = stream.drop_taken();
            if dropped.is_asked {
                self.asked = Asked::Lost;
            }
            stream.pending = Held {
                count: dropped.count,
                is_asked: false,
            };
            stream.ring.covered = 0;
        }
        for files in &mut self.files {
            (files.ahead, files.closing) = (0, 0);
            (files.is_named, files.is_naming_previous) = (false, false);
            (files.is_full_reported, files.is_rotation_asked) = (false, false);
        }
        (self.open, self.is_midway, self.is_known_full) = (None, false, false);
        (self.has_room, self.removable) = (false, false);
    }

    /// Gives up all pending data of a track.
    pub(super) fn give_up(&mut self, config: &Config<N>, at: u8, tally: &mut Tally) {
        let mut is_asked = false;
        for stream in self.streams_of(config, at) {
            is_asked |= stream.has_asked();
            tally.given_up += stream.drop_taken().counts();
            while stream.ring.first() != Item::None {
                tally.given_up += stream.ring.take().count();
            }
        }
        if is_asked {
            self.asked = Asked::Lost;
        }
    }

    /// Maps states that are indistinguishable to the same representative.
    pub(super) fn canonical(mut self, config: &Config<N>) -> World<N> {
        for (stream, track) in self.streams.iter_mut().zip(config.tracks) {
            stream.held().into_iter().for_each(Held::saturate);
            for item in &mut stream.ring.items {
                if let Item::Gap(count) = item {
                    *count = (*count).min(1);
                }
            }
            if self.plan.tracks[usize::from(track)].checkpoint == Checkpoint::None {
                stream.ring.covered = 0;
            }
        }
        if self.asked != Asked::Open {
            self.streams.iter_mut().for_each(Stream::forget_asked);
        }
        if self.plan.phase == Phase::Ended || self.plan.card == Card::Absent {
            (self.has_room, self.removable) = (false, false);
        }
        self
    }
}
