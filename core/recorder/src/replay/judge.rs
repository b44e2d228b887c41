//! Compares the files on the cards with the samples that were pushed. Reads files without the recorder's
//! code.

use super::card::Disk;
use super::check::{Listing, check};
use super::volume::volume;
use crate::fat::Error;
use crate::format::test_decoder;
use crate::{Event, StartError};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

/// One stream of one recorder, as its producer sees it.
#[derive(Clone, Debug)]
pub(super) struct Fed {
    pub(super) prefix: [u8; 3],
    pub(super) stream: u8,
    pub(super) is_text: bool,
    pub(super) bytes: usize,
    /// Time at which each sample was pushed, in us.
    pub(super) pushed_us: Vec<u64>,
    /// Session of each sample.
    pub(super) sessions: Vec<u32>,
    /// Session of the next sample.
    pub(super) session: u32,
    /// Samples with a lower index were reported durable.
    pub(super) claimed: u64,
    /// First index and number of the samples given up at the end.
    pub(super) given_up: Option<(u64, u64)>,
    /// Samples that a card may have kept although the recorder counts them as lost: first index and end.
    pub(super) unsure: Vec<(u64, u64)>,
    /// True if the oldest files may have been removed.
    pub(super) may_lack_oldest: bool,
}

impl Fed {
    pub(super) fn pushed(&self) -> u64 {
        self.pushed_us.len() as u64
    }

    pub(super) fn sample(&self, index: u64) -> Vec<u8> {
        if self.is_text {
            let line = format!("{index:011},");
            let fill = self.bytes - line.len() - 1;
            return format!("{line}{}\n", "x".repeat(fill)).into_bytes();
        }
        let words = (0..self.bytes as u64 / 8).map(|at| index ^ at << 32);
        words.flat_map(u64::to_le_bytes).collect()
    }
}

/// A stream in the files of a card.
#[derive(Default)]
struct Content {
    /// Samples of each file.
    files: Vec<Vec<u64>>,
    /// First index and number of samples of each gap.
    gaps: Vec<(u64, u64)>,
}

/// Files of a card after recovery.
pub(super) struct Judge {
    disk: Disk,
    listing: Listing,
    /// Prefix of a recording whose interrupted removal was completed.
    removed: Option<[u8; 3]>,
}

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a card in memory never waits"),
    }
}

impl Judge {
    /// Recovers a copy of a card. Returns `None` if the card has no room for that.
    pub(super) fn new(disk: &Disk) -> Result<Option<Judge>, String> {
        let mut disk = disk.clone();
        let mut removed = None;
        let report = |_: &mut Disk, event| {
            if let Event::Removed { id } = event {
                removed = Some(id.prefix);
            }
        };
        match done(crate::recover(&mut volume(), &mut disk, report)) {
            Ok(()) => (),
            Err(StartError::Volume(Error::NoSpace { .. })) => return Ok(None),
            Err(error) => return Err(format!("recovery failed: {error:?}")),
        }
        let listing = check(&disk, 0)?;
        Ok(Some(Judge {
            disk,
            listing,
            removed,
        }))
    }

    fn content(&self, fed: &Fed) -> Result<Content, String> {
        let mut content = Content::default();
        for (path, entry) in &self.listing.files {
            let (_, name) = path.split_once('/').unwrap_or(("", path));
            let extension = if fed.is_text { "CSV" } else { "BIN" };
            if name.as_bytes()[..3] != fed.prefix || !name.ends_with(extension) {
                continue;
            }
            let blocks: Vec<_> = entry
                .blocks
                .iter()
                .map(|at| *self.disk.block(*at))
                .collect();
            let size = entry.size as usize;
            let mut samples = Vec::new();
            if fed.is_text {
                let bytes = &blocks.concat()[..size];
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    take_line(fed, line, &mut samples, &mut content.gaps)
                        .map_err(|line| format!("{path}: {line:?}"))?;
                }
            } else {
                let word =
                    |at: usize| u32::from_le_bytes(blocks[0][at..at + 4].try_into().unwrap());
                let blocks = &blocks[..size / 512];
                let parts = test_decoder::decode(blocks, word(0), word(8));
                if let Some(part) = parts.get(&fed.stream) {
                    for (index, bytes) in &part.samples {
                        if *bytes != fed.sample(*index) {
                            return Err(format!(
                                "{path}: sample {index} differs from the one pushed"
                            ));
                        }
                        samples.push(*index);
                    }
                    content
                        .gaps
                        .extend(part.gaps.iter().map(|gap| (gap[0], gap[1])));
                }
            }
            content.files.push(samples);
        }
        Ok(content)
    }
}

fn take_line(
    fed: &Fed,
    line: &[u8],
    samples: &mut Vec<u64>,
    gaps: &mut Vec<(u64, u64)>,
) -> Result<(), String> {
    let text = String::from_utf8_lossy(line);
    if let Some(gap) = text.strip_prefix("#gap ") {
        let fields = gap.split(' ').filter_map(|field| field.split_once('='));
        let numbers: Vec<u64> = fields.filter_map(|(_, value)| value.parse().ok()).collect();
        gaps.push((numbers[0], numbers[1]));
        return Ok(());
    }
    let index = text.get(..11).and_then(|index| index.parse().ok());
    match index.filter(|index| fed.sample(*index) == line) {
        Some(index) => samples.push(index),
        None if text.starts_with('#') => (),
        None => return Err(text.to_string()),
    }
    Ok(())
}

/// Requirements on the contents of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// Every pushed sample has to be in the files, not only those reported durable.
    pub(super) everything: bool,
    /// Every sample pushed before this time, in us, has to be in the files.
    pub(super) before_us: u64,
}

/// Checks one stream on all cards. Returns the number of samples in the files and the number in gaps.
pub(super) fn judge(cards: &[Judge], fed: &Fed, demand: Demand) -> Result<(u64, u64), String> {
    let pushed = fed.pushed();
    let mut places = vec![0_u32; fed.pushed_us.len()];
    let (mut written, mut lost) = (0, 0);
    let mut samples_seen: Vec<u64> = Vec::new();
    for card in cards {
        let content = card.content(fed)?;
        let samples: Vec<u64> = content.files.concat();
        if !samples.is_sorted_by(|one, next| one < next) {
            return Err(format!("samples are out of order: {samples:?}"));
        }
        for file in &content.files {
            let sessions = |index: &u64| fed.sessions.get(*index as usize);
            if file.first().map(sessions) != file.last().map(sessions) {
                return Err("a file contains samples of two sessions".into());
            }
        }
        if samples.iter().any(|index| samples_seen.contains(index)) {
            return Err("a sample was written twice".into());
        }
        samples_seen.extend(&samples);
        written += samples.len() as u64;
        lost += content.gaps.iter().map(|gap| gap.1).sum::<u64>();
        let gaps = content.gaps.into_iter();
        for index in samples
            .into_iter()
            .chain(gaps.flat_map(|(first, count)| first..first + count))
        {
            let place = places.get_mut(index as usize);
            *place.ok_or(format!("sample {index} was never pushed"))? += 1;
        }
    }
    if let Some((first, count)) = fed.given_up {
        for place in &mut places[first as usize..(first + count) as usize] {
            *place += 1;
        }
    }
    let oldest = places.iter().position(|places| *places > 0);
    let wanted = match demand.everything {
        true => pushed,
        false => {
            let is_due = |us: &&u64| **us < demand.before_us;
            let due = fed.pushed_us.iter().take_while(is_due).count() as u64;
            fed.claimed.max(due)
        }
    };
    let was_removing = cards.iter().any(|card| card.removed == Some(fed.prefix));
    let may_lack_oldest = fed.may_lack_oldest || was_removing;
    for (index, places) in (0..).zip(&places) {
        let is_removed = may_lack_oldest && oldest.is_none_or(|oldest| index < oldest as u64);
        if index < wanted && *places == 0 && !is_removed {
            return Err(format!(
                "sample {index} of {pushed} is missing: {} reported durable, {} required (pushed before {} us)",
                fed.claimed, wanted, demand.before_us
            ));
        }
        let is_unsure = |(first, end): &(u64, u64)| (*first..*end).contains(&index);
        if *places > 1 && !fed.unsure.iter().any(is_unsure) {
            return Err(format!(
                "sample {index} of {pushed} is in {places} files or gaps"
            ));
        }
    }
    Ok((written, lost))
}
