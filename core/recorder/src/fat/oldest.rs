//! Removes the oldest recording.
//!
//! The index lists which files are recordings of this recorder. A recording is removed only if its entry is
//! at the position in the index, has the same name, first cluster and length, is neither system nor
//! read-only, and its clusters are consecutive: files that a computer has changed, renamed or protected stay.
//! The search begins where the last one ended.

use super::folder::Found;
use super::index::IndexRecord;
use super::record::{ENTRIES_OF_BLOCK, File, Intent, Kind, Place, Series};
use super::series::in_folder;
use super::{Error, FatVolume};
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, Removed};
use hadris_fat_raw::{ATTR_READ_ONLY, ATTR_SYSTEM};

/// Index data of a recording's file.
pub(super) struct Listed {
    id: FileId,
    bytes: u64,
    place: u16,
    first: u32,
    order: u32,
}

impl Listed {
    pub(super) fn of(listed: &IndexRecord) -> Listed {
        Listed {
            id: listed.record.id,
            bytes: listed.record.bytes,
            place: listed.place,
            first: listed.first,
            order: listed.order,
        }
    }
}

impl FatVolume {
    /// Removes the recording that was finished first among those with the lowest number of each prefix.
    pub(super) async fn remove_one<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Option<Removed>, Error<B::Error>> {
        let mut oldest: Option<(u32, File)> = None;
        for at in 0..self.record.series.len() {
            let Some(series) = self.record.series[at] else {
                continue;
            };
            if let Some((order, file)) = self.lowest(card, series).await?
                && oldest.is_none_or(|(least, _)| order < least)
            {
                oldest = Some((order, file));
            }
        }
        let Some((_, file)) = oldest else {
            return Ok(None);
        };
        self.remove_recording(card, file).await?;
        let blocks = file.clusters * self.layout.cluster_blocks;
        Ok(file.id().map(|id| Removed { id, blocks }))
    }

    /// Removes a finished recording.
    pub(super) async fn remove_recording<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<(), Error<B::Error>> {
        self.begin(card, Intent::Remove(file)).await?;
        self.erase(card, file).await?;
        self.unlist(card, file).await?;
        self.done_freeing(card, file, 0).await
    }

    /// Removes a recording from the index.
    pub(super) async fn unlist<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<(), Error<B::Error>> {
        match file.id() {
            Some(id) if file.kind == Kind::Named => self.write_index(card, id, None).await,
            _ => Ok(()),
        }
    }

    /// Returns the finished recording with the lowest number of a series, and its closing order. Removes
    /// folders found empty.
    async fn lowest<B: Blocks>(
        &mut self,
        card: &mut B,
        series: Series,
    ) -> Result<Option<(u32, File)>, Error<B::Error>> {
        let prefix = series.prefix;
        let mut low = series.low;
        loop {
            let from = low / FOLDER_RECORDINGS_MAX;
            let Some(folder) = self.folder_from(card, prefix, from).await? else {
                return Ok(None);
            };
            let begin = folder * FOLDER_RECORDINGS_MAX;
            let end = begin + FOLDER_RECORDINGS_MAX;
            low = low.max(begin);
            loop {
                let next = self.next_indexed(card, prefix, low..end).await?;
                let Some(listed) = next.map(|record| Listed::of(&record)) else {
                    break;
                };
                low = listed.id.number;
                self.set_low(prefix, low);
                if let Some(file) = self.listed_file(card, &listed).await? {
                    return Ok(Some((listed.order, file)));
                }
                low += 1;
            }
            let is_used = self.is_folder_used(prefix, folder);
            if !is_used {
                self.remove_folder(card, in_folder(prefix, folder)).await?;
            }
            low = end;
            // A folder still in use will get more recordings, with numbers lower than those of the next one.
            if !is_used {
                self.set_low(prefix, low);
            }
        }
    }

    fn set_low(&mut self, prefix: [u8; 3], low: u32) {
        if let Some(series) = self.series_mut(prefix) {
            series.low = low;
        }
    }

    /// Returns true if an unfinished or future recording belongs in the folder.
    pub(super) fn is_folder_used(&self, prefix: [u8; 3], folder: u32) -> bool {
        let next = self.series(prefix).map_or(0, |series| series.next);
        let is_in = |id: FileId| id.prefix == prefix && id.number / FOLDER_RECORDINGS_MAX == folder;
        let mut unfinished = self.record.reserved.iter().flatten();
        next / FOLDER_RECORDINGS_MAX <= folder
            || unfinished.any(|file| file.id().is_some_and(is_in))
    }

    /// Returns the file of an index record, if it is unchanged since it was closed.
    pub(super) async fn listed_file<B: Blocks>(
        &mut self,
        card: &mut B,
        listed: &Listed,
    ) -> Result<Option<File>, Error<B::Error>> {
        let id = listed.id;
        let Found::Own(folder) = self.find_folder(card, id).await? else {
            return Ok(None);
        };
        let at = u32::from(listed.place);
        let block = at / ENTRIES_OF_BLOCK as u32;
        if block >= self.layout.directory_clusters() * self.layout.cluster_blocks {
            return Ok(None);
        }
        let file = File {
            kind: Kind::Named,
            prefix: id.prefix,
            extension: id.extension,
            number: id.number,
            place: Place {
                block: self.layout.block_of(folder) + block,
                index: (at % ENTRIES_OF_BLOCK as u32) as u8,
            },
            first: listed.first,
            clusters: self.clusters_of(listed.bytes),
            epoch: 0,
            note: 0,
        };
        let entry = self.entry_of(card, &file, file.first).await?;
        let is_same = entry.is_some_and(|entry| {
            u64::from(entry.size()) == listed.bytes
                && entry.attributes() & (ATTR_SYSTEM | ATTR_READ_ONLY) == 0
        });
        Ok((is_same && self.is_consecutive(card, file).await?).then_some(file))
    }
}
