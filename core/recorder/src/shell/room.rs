//! Room for the next files: what the volume is asked for, and how many recordings may be removed for it.

use super::Shell;
use crate::Clock;
use crate::event::Event;
use crate::limits::{CARD_LENGTHS, FILE_BLOCKS_MIN, HALVINGS_MAX, VAIN_LENGTHS};
use crate::plan::{self, Room};
use crate::recorder::WhenFull;
use crate::units::whole_units;
use crate::volume;
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use embedded_hal_async::delay::DelayNs;

impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    /// Returns the request to the volume for a file of a track.
    pub(super) fn request(&self, at: u8) -> volume::Request {
        let encoder = &self.first_of_track(at).encoder;
        volume::Request {
            prefix: encoder.prefix(),
            extension: encoder.format().extension(),
            blocks: whole_units(self.config.file_bytes / BLOCK_BYTES as u32),
            blocks_min: self.blocks_min(at),
            shares: self.shares(),
            note: encoder.format().note(),
        }
    }

    /// Returns the number of tracks that have no file yet, at least one: the first must not take the room of the others.
    fn shares(&self) -> u8 {
        let tracks = &self.state.tracks[..usize::from(self.state.track_count)];
        let has_none = |track: &&plan::Track| track.file.is_none() && track.ahead == 0;
        tracks.iter().filter(has_none).count().max(1) as u8
    }

    /// Returns the least length of the next file, in blocks. If recordings can be removed to make room, it holds what arrives
    /// until the file after it is prepared: otherwise a card full of short files would give room for a moment each time.
    fn blocks_min(&self, at: u8) -> u32 {
        let least = self.limits().file_blocks_min;
        let may_remove = self.config.when_full == WhenFull::RemoveOldest;
        if !may_remove || self.state.room == Room::None {
            return least;
        }
        let us = u32::try_from(2 * self.urgent_us()).unwrap_or(u32::MAX);
        let rates = self.of_track(at).map(|stream| stream.rate);
        let bytes: u64 = rates.map(|rate| rate.bytes_in(us)).sum();
        let most = self.config.file_bytes / 2 / BLOCK_BYTES as u32;
        // Several such files of each track must fit, or all recordings would be removed for one.
        let most =
            most.min(self.medium.blocks() / (CARD_LENGTHS * u32::from(self.state.track_count)));
        let blocks =
            u32::try_from(bytes / BLOCK_BYTES as u64).map_or(most, |blocks| blocks.min(most));
        (blocks >> self.halvings).max(least)
    }

    /// Takes note of a recording that was removed. Where other files divide the free space, no removal may make room for a
    /// file of the least length, and all recordings would be lost. So half of it is enough after several times that length
    /// was removed: tracks take turns in the folders, so that the room for one is made together with that for the others.
    pub(super) fn note_removed(&mut self, blocks: u32) {
        let units = blocks.div_ceil(FILE_BLOCKS_MIN);
        self.removed = self
            .removed
            .saturating_add(u16::try_from(units).unwrap_or(u16::MAX));
        let least = (0..self.state.track_count).map(|at| self.blocks_min(at));
        let least = least.max().unwrap_or(0).div_ceil(FILE_BLOCKS_MIN);
        let enough = VAIN_LENGTHS * u32::from(self.state.track_count) * least;
        if u32::from(self.removed) >= enough.min(u16::MAX.into()) {
            self.removed = 0;
            self.halvings = (self.halvings + 1).min(HALVINGS_MAX);
        }
    }
}

#[cfg(test)]
mod tests;
