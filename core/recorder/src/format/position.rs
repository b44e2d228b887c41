//! Position of the next block in a file that streams may share.

/// Position in a file. The owner of the file advances it; encoders only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePosition {
    /// Epoch of the file.
    pub(crate) epoch: u32,
    /// Number of the recording.
    pub(crate) number: u32,
    /// Index of the next block.
    pub(crate) index: u32,
    /// Number of blocks known to be durable.
    pub(crate) durable: u32,
    /// Length of the file in blocks.
    pub(crate) blocks: u32,
    /// Interval in blocks of the places where a wanted checkpoint may end, at the ends of pages; 0 for none.
    pub(crate) step: u32,
    /// Unfinished blocks of the other streams, which a checkpoint pushes as well.
    pub(crate) others: u8,
    /// Number of streams that share the file; at least 1.
    pub(crate) streams: u8,
    /// Time at which the file began, in us.
    pub(crate) begun_us: u64,
    /// Time since then, in ms.
    pub(crate) age_ms: u32,
}

impl FilePosition {
    /// Returns the position at the beginning of a file.
    pub(crate) fn new(epoch: u32, number: u32, blocks: u32, streams: u8, begun_us: u64) -> Self {
        FilePosition {
            epoch,
            number,
            index: 0,
            durable: 0,
            blocks,
            step: 0,
            others: 0,
            streams: streams.max(1),
            begun_us,
            age_ms: 0,
        }
    }

    /// Sets the age of the file.
    pub(crate) fn set_age(&mut self, now_us: u64) {
        let age_ms = now_us.saturating_sub(self.begun_us) / 1000;
        self.age_ms = u32::try_from(age_ms).unwrap_or(u32::MAX);
    }

    /// Returns the number of blocks that are not pushed yet.
    pub(crate) fn left(&self) -> u32 {
        self.blocks.saturating_sub(self.index)
    }

    /// Returns true if the file is full.
    pub(crate) fn is_full(&self) -> bool {
        self.left() == 0
    }

    /// Returns true if a stream without an unfinished block may begin `count` blocks. The last blocks of a
    /// shared file are reserved for unfinished samples and blocks: one per stream.
    pub(crate) fn may_begin(&self, count: u32) -> bool {
        self.left() >= u32::from(self.streams) + count - 1
    }

    /// Returns true if a sample may continue after the next block: then there has to be one block for it and
    /// one for each of the other streams.
    pub(crate) fn may_split(&self) -> bool {
        self.left() > u32::from(self.streams)
    }

    /// Returns true if a wanted checkpoint may end with the next block, provided that nothing continues after it.
    pub(crate) fn ends_step(&self) -> bool {
        // Without a step, the only multiple is 0.
        (self.index + u32::from(self.others) + 1).is_multiple_of(self.step)
    }

    /// Returns the field `durable` of the next block: in block 0, which has nothing before it, the file's
    /// number.
    pub(crate) fn durable_or_number(&self) -> u32 {
        match self.index {
            0 => self.number,
            _ => self.durable,
        }
    }
}
