//! Recording numbers: consecutive per prefix.
//!
//! The journal stores the next number of each prefix. If the journal was lost, or a computer has written to
//! the card, the number is determined again from the names in the highest folder.

use super::folder::Found;
use super::names::number_of;
use super::record::Series;
use super::{Error, FatVolume};
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, NUMBER_LAST, RESERVED_MAX};
use hadris_fat_raw::ATTR_DIRECTORY;

/// Returns the first name in this folder.
pub(super) fn in_folder(prefix: [u8; 3], folder: u32) -> FileId {
    FileId {
        prefix,
        extension: *b"   ",
        number: folder * FOLDER_RECORDINGS_MAX,
    }
}

impl FatVolume {
    pub(super) fn series(&self, prefix: [u8; 3]) -> Option<&Series> {
        let mut all = self.record.series.iter().flatten();
        all.find(|series| series.prefix == prefix)
    }

    pub(super) fn series_mut(&mut self, prefix: [u8; 3]) -> Option<&mut Series> {
        let mut all = self.record.series.iter_mut().flatten();
        all.find(|series| series.prefix == prefix)
    }

    /// Marks a number as used.
    pub(super) fn use_number(&mut self, id: FileId) {
        if let Some(series) = self.series_mut(id.prefix) {
            series.next = series.next.max(id.number + 1);
        }
    }

    /// Frees a number: if it was the last, the next recording gets it.
    pub(super) fn free_number(&mut self, id: FileId) {
        if let Some(series) = self.series_mut(id.prefix)
            && series.next == id.number + 1
        {
            series.next = id.number;
        }
    }

    /// Returns the number of unfinished files with this prefix that are not named yet.
    pub(super) fn unnamed(&self, prefix: [u8; 3]) -> u32 {
        let files = self.record.reserved.iter().flatten();
        files
            .filter(|file| file.prefix == prefix && file.id().is_none())
            .count() as u32
    }

    /// Determines the numbers of a prefix, if they are not known.
    pub(super) async fn know_series<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
    ) -> Result<(), Error<B::Error>> {
        if self.series(prefix).is_some() {
            return Ok(());
        }
        let next = self.find_next(card, prefix).await?;
        self.add_series(prefix, next)
    }

    fn add_series<E>(&mut self, prefix: [u8; 3], next: u32) -> Result<(), Error<E>> {
        let is_in_use = |series: &Series| {
            let mut files = self.record.reserved.iter().flatten();
            files.any(|file| file.prefix == series.prefix)
        };
        // Replaces the oldest series without unfinished files. There is one, because a slot is free.
        let all = &self.record.series;
        let free = all.iter().position(Option::is_none).or_else(|| {
            let is_idle = |series: &Option<Series>| series.is_some_and(|it| !is_in_use(&it));
            all.iter().rposition(is_idle)
        });
        let Some(free) = free else {
            return Err(Error::TooManyUnfinished);
        };
        let all = &mut self.record.series;
        all[free] = Some(Series {
            prefix,
            has_folder: false,
            next,
            low: 0,
            folder: (0, 0),
        });
        all[..=free].rotate_right(1);
        Ok(())
    }

    /// Returns the number after the highest in the folders of a prefix.
    async fn find_next<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
    ) -> Result<u32, Error<B::Error>> {
        let Some(number) = self.find_highest(card, prefix).await? else {
            return Ok(1);
        };
        self.count_epochs(card, prefix, number).await?;
        Ok((number + 1).min(NUMBER_LAST + 1))
    }

    /// Returns the highest number in the folders of a prefix.
    async fn find_highest<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
    ) -> Result<Option<u32>, Error<B::Error>> {
        let mut below = u32::MAX;
        while let Some((folder, first)) = self.folder_below(card, prefix, below).await? {
            below = folder;
            if !self.is_own_folder(card, first).await? {
                continue;
            }
            let highest = self.highest_in(card, prefix, folder, first).await?;
            if highest.is_some() {
                return Ok(highest);
            }
        }
        Ok(None)
    }

    /// Raises the next number above one that another program has used, and above all others in its folder. If
    /// the folder is foreign, numbering continues in the next folder.
    pub(super) async fn pass_taken<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<(), Error<B::Error>> {
        self.know_series(card, id.prefix).await?;
        let folder = id.number / FOLDER_RECORDINGS_MAX;
        let next = match self.find_folder(card, id).await? {
            Found::Own(first) => {
                let highest = self.highest_in(card, id.prefix, folder, first).await?;
                highest.unwrap_or(0).max(id.number) + 1
            }
            Found::Foreign | Found::Nothing => (folder + 1) * FOLDER_RECORDINGS_MAX,
        };
        if let Some(series) = self.series_mut(id.prefix) {
            series.next = series.next.max(next);
        }
        Ok(())
    }

    /// Raises the epoch count to the one implied by a recording's index record, so that no epoch recurs.
    async fn count_epochs<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        number: u32,
    ) -> Result<(), Error<B::Error>> {
        let found = self.next_indexed(card, prefix, number..number + 1).await?;
        if let Some(found) = found {
            let epochs = found.order.saturating_add(RESERVED_MAX as u32);
            self.record.epochs = self.record.epochs.max(epochs);
        }
        Ok(())
    }

    /// Returns number and first cluster of the directory with the highest number below `below`.
    async fn folder_below<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        below: u32,
    ) -> Result<Option<(u32, u32)>, Error<B::Error>> {
        let kind = self.layout.kind;
        let mut highest: Option<(u32, u32)> = None;
        self.scan_folders(card, &mut |found, number, first| {
            if found == prefix && number < below && highest.is_none_or(|(it, _)| it < number) {
                highest = Some((number, first.first_cluster(kind)));
            }
        })
        .await?;
        Ok(highest)
    }

    /// Returns the lowest directory number that is at least `from`.
    pub(super) async fn folder_from<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        from: u32,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let mut lowest: Option<u32> = None;
        self.scan_folders(card, &mut |found, number, _| {
            if found == prefix && number >= from && lowest.is_none_or(|it| it > number) {
                lowest = Some(number);
            }
        })
        .await?;
        Ok(lowest)
    }

    /// Calls `show` with prefix, number and entry of every directory whose name has the form of a folder.
    async fn scan_folders<B: Blocks>(
        &mut self,
        card: &mut B,
        show: &mut dyn FnMut([u8; 3], u32, &hadris_fat_raw::ShortEntry),
    ) -> Result<(), Error<B::Error>> {
        self.scan_root(card, &mut |_, slot| {
            if let hadris_fat_raw::Slot::Short(entry) = slot
                && entry.attributes() & ATTR_DIRECTORY != 0
                && entry.name().ends_with(b"   ")
                && let Some(number) = number_of(&entry.name())
            {
                let name = entry.name();
                show([name[0], name[1], name[2]], number, &entry);
            }
            true
        })
        .await
        .map(drop)
    }

    /// Determines the prefixes on a card whose journal stores none.
    pub(super) async fn discover_series<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        let mut prefixes = [None; RESERVED_MAX];
        self.scan_folders(card, &mut |prefix, _, _| {
            let place = prefixes
                .iter_mut()
                .find(|known| known.is_none_or(|it| it == prefix));
            if let Some(place) = place {
                *place = Some(prefix);
            }
        })
        .await?;
        for prefix in prefixes.into_iter().flatten() {
            let next = self.find_next(card, prefix).await?;
            // Do not store prefixes without recordings.
            if next > 1 {
                self.add_series(prefix, next)?;
            }
        }
        Ok(())
    }

    /// Raises the next numbers above those that another program has used.
    pub(super) async fn check_series<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        for at in 0..self.record.series.len() {
            let Some(series) = self.record.series[at] else {
                continue;
            };
            let folder = series.next / FOLDER_RECORDINGS_MAX;
            let id = in_folder(series.prefix, folder);
            if let Found::Own(first) = self.find_folder(card, id).await? {
                let highest = self.highest_in(card, series.prefix, folder, first).await?;
                if let (Some(number), Some(series)) = (highest, &mut self.record.series[at]) {
                    series.next = series.next.max(number + 1);
                }
            }
        }
        Ok(())
    }

    /// Creates the folder for the file being reserved, whose number follows those of all prepared files.
    pub(super) async fn prepare_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
    ) -> Result<(), Error<B::Error>> {
        self.know_series(card, prefix).await?;
        loop {
            let next = self.series(prefix).map_or(1, |series| series.next);
            let number = next.saturating_add(self.unnamed(prefix));
            if number > NUMBER_LAST {
                return Err(Error::NumbersUsedUp(prefix));
            }
            let folder = number / FOLDER_RECORDINGS_MAX;
            let taken = self.folder_for(card, in_folder(prefix, folder)).await;
            match taken {
                // A foreign folder has this name: numbering continues in the next one.
                Err(Error::NameTaken(_)) => {
                    if let Some(series) = self.series_mut(prefix) {
                        series.next = (folder + 1) * FOLDER_RECORDINGS_MAX;
                    }
                }
                result => return result.map(drop),
            }
        }
    }
}
