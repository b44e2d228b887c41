//! Whether the recorder kept its word.

use crate::content::{self, Reached};
use crate::disk::Disk;
use crate::fat;
use crate::others::{Files, Volume};
use crate::rules;
use crate::session::{End, Said, Session};
use cardiograph_recorder::{Cause, Event, FileId, Window};
use cardiograph_sim_card::Card;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::process::Command;
use std::sync::Arc;

/// What was on the card in the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Files of recordings.
    pub files: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples that they say are missing.
    pub lost: u64,
    /// Streams whose window was not kept when power was cut, which a late checkpoint would have told.
    pub late: u64,
    /// Streams of which nothing tells where they ended, since the files that they shared were removed.
    pub unknown: u64,
}

impl AddAssign for Found {
    fn add_assign(&mut self, other: Found) {
        self.files += other.files;
        self.samples += other.samples;
        self.lost += other.lost;
        self.late += other.late;
        self.unknown += other.unknown;
    }
}

/// Everything that happened to a card.
pub struct History<'a> {
    /// Its volume.
    pub volume: Volume,
    /// What others have on it.
    pub others: &'a Files,
    /// The devices it was in, one after the other.
    pub sessions: &'a [Session],
    /// What sessions whose power was cut, by their number, do otherwise.
    pub uncut: &'a BTreeMap<usize, Arc<Session>>,
}

impl History<'_> {
    /// Judges a card after a session that ended by itself.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, card: &mut Card) -> Result<Found, String> {
        match self.sessions.last().map(|session| &session.end) {
            None | Some(End::Done(_)) => (),
            // The volume was mounted before there was no room for a file.
            Some(End::Refused(why)) if self.may_be_full() && is_full(why) => (),
            Some(end) => return Err(format!("the last session ended with {end:?}")),
        }
        self.judge_cards(&mut [card])
    }

    /// Judges a card after a recovery that no recording followed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge_recovered(&self, card: &mut Card) -> Result<Found, String> {
        self.judge_cards(&mut [card])
    }

    /// Returns true if the volume was made nearly full, or a recording has filled it.
    pub(crate) fn may_be_full(&self) -> bool {
        self.volume.free_bytes.is_some() || self.sessions.iter().any(Session::is_full)
    }

    /// Judges cards of which one was exchanged for the other, after sessions that ended by themselves.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge_cards(&self, cards: &mut [&mut Card]) -> Result<Found, String> {
        let files: Result<Vec<Files>, String> =
            cards.iter_mut().map(|card| self.recordings(card)).collect();
        let files = files?;
        let mut found = Found {
            files: files.iter().map(|files| files.len() as u64).sum(),
            ..Found::default()
        };
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
            Some((card, path)) => Err(format!("nobody opened {path} of card {card}")),
            None => Ok(found),
        }
    }

    /// Files of recordings on a card whose volume is whole, with all files of others.
    fn recordings(&self, card: &mut Card) -> Result<Files, String> {
        let listing = fat::check(card, self.volume.start)?;
        let read = self.volume.read(card);
        let mut files = read.map_err(|error| format!("fatfs: {error}"))?;
        for (path, bytes) in self.others {
            match files.remove(path) {
                Some(found) if found == *bytes => (),
                Some(_) => return Err(format!("{path} of others has changed")),
                None => return Err(format!("{path} of others is gone")),
            }
        }
        let unfinished = |(_, entry): &(&String, &fat::Entry)| entry.attributes & 4 != 0;
        let mut ours = listing
            .iter()
            .filter(|(name, _)| *name != "CARDIOGRJNL" && !name.ends_with("CARDIOGRIDX"));
        if let Some((name, _)) = ours.find(unfinished) {
            let end = self.sessions.last().map(|session| &session.end);
            return Err(format!(
                "{name} is unfinished, and the last session ended with {end:?}"
            ));
        }
        files.retain(|path, _| !path.ends_with("/CARDIOGR.IDX"));
        match files.remove("CARDIOGR.JNL") {
            Some(_) => files.into_iter().map(without_session).collect(),
            None => Err(format!("there is no journal among {:?}", files.keys())),
        }
    }

    /// Where a stream was at the end of a file that was removed, if the files are its own: only those that are
    /// closed are removed, and what they held was reported.
    fn end_of_closed(&self, number: usize, of: usize, id: FileId) -> Result<Option<u64>, String> {
        let session = &self.sessions[number];
        let (track, streams) = session.track_of(of);
        let closed = |said: &Said| matches!(said.event, Event::Closed { record, .. } | Event::Recovered { record } if record.id == id);
        let later = self.sessions[number..].iter();
        if !later.flat_map(|session| &session.said).any(closed) {
            return Err(format!("{id} was removed and had not been closed"));
        }
        let mut end = 0;
        for said in &session.said {
            match said.event {
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
        let said = self.sessions.iter().flat_map(|session| &session.said);
        let removed = said.filter_map(|said| match said.event {
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
        let mut reached = Reached {
            next: Some(0),
            gaps: Vec::new(),
            may_overlap: session.lost_card(),
        };
        for (card, id) in session.files(stream) {
            let mut later = self.sessions[number + 1..].iter();
            if later.any(|later| later.files(stream).contains(&(card, id))) {
                // Nothing of it was durable: its number was given again.
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
                    &mut reached,
                )
                .and_then(|()| rules::judge_end(session, stream, bytes))
                .map_err(|why| format!("{path}: {why}"))?,
                None if removed.contains(&id) => {
                    reached.next = self.end_of_closed(number, stream, id)?;
                }
                None => (),
            }
        }
        rules::judge_checkpoints(session, stream)?;
        rules::judge_causes(session, stream)?;
        let Some(end) = reached.next else {
            found.unknown += 1;
            return Ok(());
        };
        found.samples += end - reached.lost().min(end);
        found.lost += reached.lost();
        let pushed = session.pushed[stream];
        if end > pushed {
            return Err(format!("{end} samples of {pushed} that were pushed"));
        }
        match &session.end {
            End::Done(summaries) => {
                rules::judge_counts(session, stream, summaries[stream], &reached)
            }
            End::PowerCut => self.judge_cut(number, stream, end, found),
            End::Refused(_) if pushed == 0 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// What a power cut may have cost.
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
        // What a full card has no room for cannot be there; what follows it has to be.
        let no_room = self.no_room(number, stream);
        let before = |ns: u64| {
            let due = plan.due_before(ns.saturating_sub(started_ns));
            let is_in = |gap: &&(u64, u64)| gap.0 < due && due <= gap.0 + gap.1;
            no_room.iter().find(is_in).map_or(due, |gap| gap.0)
        };
        let mut last_us = 0;
        for covered in session.checkpoints(stream) {
            if end < covered.samples {
                return Err(format!(
                    "{end} samples, and a checkpoint was made: {covered:?}"
                ));
            }
            last_us = covered.done_us;
        }
        for (asked_ns, done_ns) in &session.flushes {
            let due = before(*asked_ns);
            if done_ns.is_some() && end < due {
                return Err(format!(
                    "{end} samples, and {due} before a flush that was done"
                ));
            }
        }
        let uncut = self
            .uncut
            .get(&number)
            .ok_or("nobody knows it without its cut")?;
        let due = match plan.config.window {
            Window::Us(window_us) => before(session.ended_ns.saturating_sub(window_us * 1000)),
            // The newest may be missing.
            Window::Sample => before(session.ended_ns).saturating_sub(1),
        };
        if end >= due {
            return Ok(());
        }
        // Had power not been cut, it would have said so.
        let next = uncut
            .checkpoints(stream)
            .find(|covered| covered.done_us > last_us);
        if next.is_some_and(|covered| covered.is_late) {
            found.late += 1;
            return Ok(());
        }
        Err(format!(
            "{end} samples, and {due} are older than the window; next is {next:?}"
        ))
    }
}

impl History<'_> {
    /// Samples of a stream that a full card has no room for.
    fn no_room(&self, number: usize, stream: usize) -> Vec<(u64, u64)> {
        let uncut = self.uncut.get(&number);
        let said = uncut.iter().flat_map(|session| &session.said);
        let no_room = said.filter_map(|said| match said.event {
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

    /// Judges a card whose power was cut, before any recorder has seen it again: files of others are as they
    /// were, and no file leads into clusters of another or into free ones.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge_before(
        &self,
        card: &Card,
        original: &impl Disk,
        listing: &fat::Listing,
    ) -> Result<(), String> {
        let wrong = |why| format!("before it was mounted again: {why}");
        let found = fat::check_unrecovered(card, self.volume.start).map_err(wrong)?;
        for (path, entry) in listing {
            if found.get(path) != Some(entry) {
                return Err(wrong(format!(
                    "{path} of others is {:?}, not {entry:?}",
                    found.get(path)
                )));
            }
            let is_changed = |block: &&u64| card.block(**block) != original.block(**block);
            if let Some(block) = entry.blocks.iter().find(is_changed) {
                return Err(wrong(format!(
                    "block {block} of {path} of others has changed"
                )));
            }
        }
        Ok(())
    }
}

/// A file by its path without the name of a session, which has to be that of a session in it.
fn without_session((path, bytes): (String, Vec<u8>)) -> Result<(String, Vec<u8>), String> {
    let holds = |word: &str, until: usize| {
        let begin = &bytes[..bytes.len().min(until)];
        begin
            .windows(word.len())
            .any(|bytes| bytes == word.as_bytes())
    };
    let Some((stem, rest)) = path.split_once(' ') else {
        return match path.ends_with(".CSV") && holds(" session=run-", 1024) {
            true => Err(format!("{path} is not named for its session")),
            false => Ok((path, bytes)),
        };
    };
    let (session, extension) = rest.split_once('.').unwrap_or_default();
    let in_text = holds(&format!(" session={session}"), 1024);
    let in_header = holds(&format!("\nsession {session}\n"), usize::MAX);
    match in_text || in_header {
        true => Ok((format!("{stem}.{extension}"), bytes)),
        false => Err(format!("{path} is named for a session that is not in it")),
    }
}

/// Returns true if a card was refused because it has no room.
pub(crate) fn is_full(why: &str) -> bool {
    why.contains("longest free run has")
}

/// What fsck.fat has to say against a volume. `name` is that of a file to put it into.
///
/// # Errors
/// What it says.
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
