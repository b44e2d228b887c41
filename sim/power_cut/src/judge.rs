//! The judge: checks that the recorder kept its promises.

use crate::content::{self, Progress};
use crate::disk::Disk;
use crate::fat;
use crate::foreign::{Files, Volume};
use crate::namespace::{self, Changed};
use crate::rules;
use crate::session::{End, Session, TimedEvent};
use cardiograph_recorder::{Cause, Event, FatError, FileId, Window};
use cardiograph_sim_card::{BLOCK_BYTES, Card};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::AddAssign;
use std::process::Command;
use std::sync::Arc;

/// Blocks of a folder for 1,000 recordings and of its index (docs/formats.md).
const FOLDER_BLOCKS: u64 = 335 + 250;

/// Contents of a card at the end of a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Number of recordings.
    pub files: u64,
    /// Number of samples in recordings.
    pub samples: u64,
    /// Number of samples in the gaps of recordings.
    pub lost: u64,
    /// Number of streams whose durability window was already exceeded at a power cut. Without the cut, the next
    /// checkpoint would have been reported as late.
    pub late: u64,
    /// Number of streams whose last durable sample is unknown, because the files that they shared were
    /// removed.
    pub unknown: u64,
    /// Number of uploaded files.
    pub uploads: u64,
    /// Number of uploads, renames and removals that a power cut interrupted.
    pub interrupted: u64,
}

impl AddAssign for Found {
    fn add_assign(&mut self, other: Found) {
        self.files += other.files;
        self.samples += other.samples;
        self.lost += other.lost;
        self.late += other.late;
        self.unknown += other.unknown;
        self.uploads += other.uploads;
        self.interrupted += other.interrupted;
    }
}

/// Complete history of a card.
pub struct History<'a> {
    /// Layout of the volume on the card.
    pub volume: Volume,
    /// Foreign files on the volume.
    pub foreign: &'a Files,
    /// Sessions of the devices into which the card was inserted, in order.
    pub sessions: &'a [Session],
    /// Reference runs by session number: for each interrupted session, the same session without the power
    /// cut.
    pub reference: &'a BTreeMap<usize, Arc<Session>>,
}

impl History<'_> {
    /// Judges a card after a session that ended normally.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn judge(&self, card: &mut Card) -> Result<Found, String> {
        match self.sessions.last().map(|session| &session.end) {
            None | Some(End::Done(_)) => (),
            // The device mounted the volume, but then found no space for the first files.
            Some(End::Refused(why)) if is_full(why) && self.is_full(card)? => (),
            Some(end) => return Err(format!("the last session ended with {end:?}")),
        }
        self.judge_cards(&mut [card])
    }

    /// Judges a card after a recovery without a subsequent recording.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn judge_recovered(&self, card: &mut Card) -> Result<Found, String> {
        self.judge_cards(&mut [card])
    }

    /// Returns true if the volume was created nearly full, or a recording has filled it.
    pub(crate) fn may_be_full(&self) -> bool {
        self.volume.free_bytes.is_some() || self.sessions.iter().any(Session::is_full)
    }

    /// Returns true if no free run has room for a file of each stream of the last session, and for the folder of each.
    fn is_full(&self, card: &Card) -> Result<bool, String> {
        let longest_blocks = fat::longest_free_run(card, self.volume.start)?;
        let cluster_blocks = u64::from(self.volume.cluster_bytes) / BLOCK_BYTES as u64;
        let folder_blocks = FOLDER_BLOCKS + 2 * cluster_blocks;
        let needed =
            |session: &Session| session.plans.len() as u64 * (session.file_blocks + folder_blocks);
        let is_short = |session| longest_blocks < needed(session);
        Ok(self.sessions.last().is_some_and(is_short))
    }

    /// Judges cards that were exchanged for one another, after sessions that ended normally.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn judge_cards(&self, cards: &mut [&mut Card]) -> Result<Found, String> {
        let mut found = Found::default();
        let mut files = Vec::new();
        for (number, card) in cards.iter_mut().enumerate() {
            let (recordings, changed) = self.recordings(card, number)?;
            found.files += recordings.len() as u64;
            found.uploads += changed.files;
            found.interrupted += changed.interrupted;
            files.push(recordings);
        }
        let removed = self.removed();
        let mut opened = BTreeSet::new();
        for (number, session) in self.sessions.iter().enumerate() {
            rules::judge_card(session).map_err(|why| format!("session {number}: {why}"))?;
            for stream in 0..session.plans.len() {
                self.judge_stream(number, stream, &files, &mut opened, &removed, &mut found)
                    .map_err(|why| format!("session {number}, stream {stream}: {why}"))?;
            }
        }
        let mut left = (0..).zip(&files).flat_map(|(card, files)| {
            let paths = files.keys().map(move |path| (card, path.clone()));
            paths.collect::<Vec<_>>()
        });
        match left.find(|path| !opened.contains(path)) {
            Some((card, path)) => Err(format!(
                "no session reported that it opened {path} on card {card}"
            )),
            None => Ok(found),
        }
    }

    /// Returns the recordings on a card after checking that its volume is consistent, its foreign files are
    /// unchanged, and uploads are whole.
    fn recordings(&self, card: &mut Card, number: usize) -> Result<(Files, Changed), String> {
        let listing = fat::check(card, self.volume.start)?;
        let read = self.volume.read(card);
        let mut files = read.map_err(|error| format!("fatfs: {error}"))?;
        for (path, bytes) in self.foreign {
            match files.remove(path) {
                Some(found) if found == *bytes => (),
                Some(_) => return Err(format!("foreign file {path} has changed")),
                None => return Err(format!("foreign file {path} is missing")),
            }
        }
        let is_roomy = !self.may_be_full();
        let changed = namespace::judge(self.sessions, number, is_roomy, &listing, &mut files)?;
        // A device that is switched off leaves its uploads to the next mount.
        let mut sessions = self.sessions.iter().rev();
        let last = sessions.find(|session| session.card_of_changes() == number);
        let may_leave = last.is_some_and(Session::may_leave_upload);
        let is_left = |name: &str| may_leave && name.starts_with("CARDIOGRU");
        files.retain(|path, _| !may_leave || !path.starts_with("CARDIOGR.U"));
        let unfinished = |(_, entry): &(&String, &fat::Entry)| entry.attributes & 4 != 0;
        let mut ours = listing
            .iter()
            .filter(|(name, _)| *name != "CARDIOGRJNL" && !name.ends_with("CARDIOGRIDX"))
            .filter(|(name, _)| !is_left(name));
        if let Some((name, _)) = ours.find(unfinished) {
            let end = self.sessions.last().map(|session| &session.end);
            return Err(format!(
                "{name} is unfinished although the last session ended with {end:?}"
            ));
        }
        files.retain(|path, _| !path.ends_with("/CARDIOGR.IDX"));
        match files.remove("CARDIOGR.JNL") {
            Some(_) => {
                let files: Result<Files, String> = files.into_iter().map(strip_session).collect();
                Ok((files?, changed))
            }
            None => Err(format!("there is no journal among {:?}", files.keys())),
        }
    }

    /// Returns the index after a stream's last sample in a removed file, if the stream has files of its own:
    /// only closed files are removed, and the report of closing a file states the number of its samples.
    fn end_of_closed(&self, number: usize, of: usize, id: FileId) -> Result<Option<u64>, String> {
        let session = &self.sessions[number];
        let (track, streams) = session.track_of(of);
        let closed = |timed: &TimedEvent| matches!(timed.event, Event::Closed { record, .. } | Event::Recovered { record } if record.id == id);
        let later = self.sessions[number..].iter();
        if !later.flat_map(|session| &session.events).any(closed) {
            return Err(format!("{id} was removed before it was closed"));
        }
        let mut end = 0;
        for timed in &session.events {
            match timed.event {
                Event::Closed { track: of, record } if usize::from(of) == track => {
                    end += record.samples + record.lost;
                    if record.id == id {
                        return Ok((streams == 1 && !session.lost_card()).then_some(end));
                    }
                }
                _ => (),
            }
        }
        Ok(None)
    }

    fn removed(&self) -> BTreeSet<FileId> {
        let events = self.sessions.iter().flat_map(|session| &session.events);
        let removed = events.filter_map(|timed| match timed.event {
            Event::Removed { id } => Some(id),
            _ => None,
        });
        removed.collect()
    }

    fn judge_stream(
        &self,
        number: usize,
        stream: usize,
        files: &[Files],
        opened: &mut BTreeSet<(usize, String)>,
        removed: &BTreeSet<FileId>,
        found: &mut Found,
    ) -> Result<(), String> {
        let session = &self.sessions[number];
        let plan = &session.plans[stream];
        let (_, streams) = session.track_of(stream);
        let is_broken = session.end == End::PowerCut || session.lost_card();
        let mut progress = Progress {
            next: Some(0),
            gaps: Vec::new(),
            may_overlap: session.lost_card(),
        };
        for (card, id) in session.files(stream) {
            let mut later = self.sessions[number + 1..].iter();
            if later.any(|later| later.files(stream).contains(&(card, id))) {
                // A later session reused the file's number, so nothing in the file was durable.
                continue;
            }
            let path = id.to_string();
            opened.insert((card, path.clone()));
            match files[card].get(&path) {
                Some(bytes) => content::read(
                    plan,
                    (stream as u8, streams),
                    bytes,
                    is_broken,
                    &mut progress,
                )
                .and_then(|()| rules::judge_end(session, stream, bytes))
                .map_err(|why| format!("{path}: {why}"))?,
                None if removed.contains(&id) => {
                    progress.next = self.end_of_closed(number, stream, id)?;
                }
                None => (),
            }
        }
        rules::judge_checkpoints(session, stream)?;
        rules::judge_causes(session, stream)?;
        let Some(end) = progress.next else {
            found.unknown += 1;
            return Ok(());
        };
        found.samples += end - progress.lost().min(end);
        found.lost += progress.lost();
        let pushed = session.pushed[stream];
        if end > pushed {
            return Err(format!(
                "files contain {end} samples, but only {pushed} were pushed"
            ));
        }
        match &session.end {
            End::Done(summaries) => {
                rules::judge_counts(session, stream, summaries[stream], &progress)
            }
            End::PowerCut => self.judge_cut(number, stream, end, found),
            End::Refused(_) if pushed == 0 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Checks that a power cut lost no more than promised.
    fn judge_cut(
        &self,
        number: usize,
        stream: usize,
        end: u64,
        found: &mut Found,
    ) -> Result<(), String> {
        let session = &self.sessions[number];
        let plan = &session.plans[stream];
        let Some(started_ns) = session.started_ns else {
            return Ok(());
        };
        // Samples for which a full card had no space cannot be in files, but samples pushed after them must
        // be.
        let no_room = self.no_room(number, stream);
        let before = |ns: u64| {
            let due = plan.due_before(ns.saturating_sub(started_ns));
            let is_in = |gap: &&(u64, u64)| gap.0 < due && due <= gap.0 + gap.1;
            no_room.iter().find(is_in).map_or(due, |gap| gap.0)
        };
        let mut last_us = 0;
        for checkpoint in session.checkpoints(stream) {
            if end < checkpoint.samples {
                return Err(format!(
                    "files contain {end} samples, fewer than a checkpoint reported as durable: {checkpoint:?}"
                ));
            }
            last_us = checkpoint.done_us;
        }
        for (asked_ns, done_ns) in &session.flushes {
            let due = before(*asked_ns);
            if done_ns.is_some() && end < due {
                return Err(format!(
                    "files contain {end} samples, but a flush made {due} samples durable"
                ));
            }
        }
        let reference = self
            .reference
            .get(&number)
            .ok_or("this session has no reference run")?;
        let due = match plan.config.window {
            Window::Us(window_us) => before(session.ended_ns.saturating_sub(window_us * 1000)),
            // Only the newest sample may be missing.
            Window::Sample => before(session.ended_ns).saturating_sub(1),
        };
        if end >= due {
            return Ok(());
        }
        // Without the power cut, a late checkpoint would have reported that the window was exceeded.
        let next = reference
            .checkpoints(stream)
            .find(|checkpoint| checkpoint.done_us > last_us);
        if next.is_some_and(|checkpoint| checkpoint.is_late) {
            found.late += 1;
            return Ok(());
        }
        Err(format!(
            "files contain {end} samples, but {due} are older than the durability window; next checkpoint: {next:?}"
        ))
    }
}

impl History<'_> {
    /// Returns the samples of a stream for which a full card had no space.
    fn no_room(&self, number: usize, stream: usize) -> Vec<(u64, u64)> {
        let reference = self.reference.get(&number);
        let events = reference.iter().flat_map(|session| &session.events);
        let no_room = events.filter_map(|timed| match timed.event {
            Event::Lost { stream: of, gap } => {
                let is_full = usize::from(of) == stream && gap.cause == Cause::CardFull;
                is_full.then_some((gap.first, gap.count))
            }
            _ => None,
        });
        let mut no_room: Vec<(u64, u64)> = no_room.collect();
        no_room.sort_unstable();
        rules::merged(&no_room)
    }

    /// Judges a card after a power cut, before recovery: foreign files are unchanged, and no file contains
    /// free clusters or clusters of another file.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn judge_before(
        &self,
        card: &Card,
        original: &impl Disk,
        listing: &fat::Listing,
    ) -> Result<(), String> {
        let wrong = |why| format!("before recovery: {why}");
        let found = fat::check_unrecovered(card, self.volume.start).map_err(wrong)?;
        for (path, entry) in listing {
            if found.get(path) != Some(entry) {
                return Err(wrong(format!(
                    "foreign file {path} is {:?}, expected {entry:?}",
                    found.get(path)
                )));
            }
            let is_changed = |block: &&u64| card.block(**block) != original.block(**block);
            if let Some(block) = entry.blocks.iter().find(is_changed) {
                return Err(wrong(format!(
                    "block {block} of foreign file {path} has changed"
                )));
            }
        }
        Ok(())
    }
}

/// Removes the session name from a path, after checking that the file's first header or line names the same
/// session.
fn strip_session((path, bytes): (String, Vec<u8>)) -> Result<(String, Vec<u8>), String> {
    let holds = |word: &str, until: usize| {
        let begin = &bytes[..bytes.len().min(until)];
        begin
            .windows(word.len())
            .any(|bytes| bytes == word.as_bytes())
    };
    let is_text = path.ends_with(".CSV");
    let has_session = |name: &str, end: &str| match is_text {
        true => holds(&format!(" session={name}"), 1024),
        false => holds(&format!("\nsession {name}{end}"), BLOCK_BYTES),
    };
    let Some((stem, rest)) = path.split_once(' ') else {
        return match has_session("run-", "") {
            true => Err(format!(
                "the name of {path} lacks the session name that the file contains"
            )),
            false => Ok((path, bytes)),
        };
    };
    let (session, extension) = rest.split_once('.').unwrap_or_default();
    match has_session(session, "\n") {
        true => Ok((format!("{stem}.{extension}"), bytes)),
        false => Err(format!(
            "the name of {path} contains a session name, but the beginning of the file does not"
        )),
    }
}

/// Returns true if a device refused a card for lack of space.
pub(crate) fn is_full(why: &str) -> bool {
    let message = FatError::<Infallible>::NoSpace { longest_blocks: 0 }.to_string();
    let beginning = message.split('0').next();
    beginning.is_some_and(|beginning| why.contains(beginning))
}

/// Checks a volume with fsck.fat, through a temporary image file with `name` in its name.
///
/// # Errors
/// The output of fsck.fat, or the reason why it could not run.
pub fn fsck(disk: &impl Disk, volume: &Volume, name: &str) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("power-cut-{}-{name}.img", std::process::id()));
    let made = std::fs::File::create(&path).and_then(|file| {
        let blocks = volume.blocks();
        file.set_len((blocks.end - blocks.start) * 512)?;
        for (number, block) in blocks.enumerate() {
            let data = disk.block(block);
            if data != [0; 512] {
                file.write_all_at(&data, number as u64 * 512)?;
            }
        }
        let paths = format!(
            "{}:/usr/sbin:/sbin",
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("fsck.fat");
        command.arg("-n").arg(&path).env("PATH", paths).output()
    });
    let _ = std::fs::remove_file(&path);
    let output = made.map_err(|error| format!("fsck.fat: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_card_with_room_must_not_be_refused_as_full() {
        let full = FatError::<Infallible>::NoSpace { longest_blocks: 7 };
        let mut judged = 0;
        for number in 0..8 {
            let scene = Scene::random(number).unwrap();
            let mut card = scene.card();
            let reference = scene.reference_run().unwrap();
            let refused = Session {
                end: End::Refused(full.to_string()),
                ..reference.until(0, 0)
            };
            let (sessions, cuts) = ([refused], BTreeMap::new());
            let history = scene.history(&sessions, &cuts);
            if history.may_be_full() {
                continue;
            }
            let why = history.judge(&mut card).unwrap_err();
            assert!(why.starts_with("the last session ended"), "{number}: {why}");
            judged += 1;
        }
        assert!(judged > 0);
    }
}
