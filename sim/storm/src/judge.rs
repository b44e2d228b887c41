//! Whether the recorder kept its word.

use crate::content::{self, Reached};
use crate::disk::Disk;
use crate::fat;
use crate::others::{Files, Volume};
use crate::session::{End, Session};
use cardiograph_recorder::{Event, Name, Window};
use cardiograph_sim_card::Card;
use std::collections::BTreeSet;
use std::process::Command;

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
}

/// Everything that happened to a card.
pub struct History<'a> {
    /// Its volume.
    pub volume: Volume,
    /// What others have on it.
    pub others: &'a Files,
    /// The devices it was in, one after the other.
    pub sessions: &'a [Session],
    /// What the session of this number does if its power is not cut.
    pub uncut: Option<(usize, &'a Session)>,
}

impl History<'_> {
    /// Judges a card after a session that ended by itself.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, card: &mut Card) -> Result<Found, String> {
        if let Some(session) = self.sessions.last()
            && !matches!(session.end, End::Done(_))
        {
            return Err(format!("the last session ended with {:?}", session.end));
        }
        let listing = fat::check(card, self.volume.start)?;
        let mut files = self
            .volume
            .read(card)
            .map_err(|error| format!("fatfs: {error}"))?;
        for (path, bytes) in self.others {
            match files.remove(path) {
                Some(found) if found == *bytes => (),
                Some(_) => return Err(format!("{path} of others has changed")),
                None => return Err(format!("{path} of others is gone")),
            }
        }
        let unfinished = |(_, entry): &(&String, &fat::Entry)| entry.attributes & 4 != 0;
        if let Some((name, _)) = listing
            .iter()
            .filter(|(name, _)| *name != "CARDIOGRJNL")
            .find(unfinished)
        {
            return Err(format!("{name} is unfinished"));
        }
        if files.remove("CARDIOGR.JNL").is_none() {
            return Err(format!("there is no journal among {:?}", files.keys()));
        }
        let mut found = Found {
            files: files.len() as u64,
            ..Found::default()
        };
        let mut removed = self.removed();
        for (number, session) in self.sessions.iter().enumerate() {
            for stream in 0..session.plans.len() {
                self.judge_stream(number, stream, &mut files, &mut removed, &mut found)
                    .map_err(|why| format!("session {number}, stream {stream}: {why}"))?;
            }
        }
        match files.keys().next() {
            Some(path) => Err(format!("nobody opened {path}")),
            None => Ok(found),
        }
    }

    fn removed(&self) -> BTreeSet<Name> {
        let said = self.sessions.iter().flat_map(|session| &session.said);
        let removed = said.filter_map(|said| match said.event {
            Event::Removed { name } => Some(name),
            _ => None,
        });
        removed.collect()
    }

    fn judge_stream(
        &self,
        number: usize,
        stream: usize,
        files: &mut Files,
        removed: &mut BTreeSet<Name>,
        found: &mut Found,
    ) -> Result<(), String> {
        let session = &self.sessions[number];
        let plan = &session.plans[stream];
        let is_broken = session.end == End::PowerCut || session.lost_card();
        let mut reached = Reached {
            next: Some(0),
            gaps: Vec::new(),
            may_overlap: session.lost_card(),
        };
        for name in session.files(stream) {
            let path = path_of(&name);
            match files.remove(&path) {
                Some(bytes) => content::read(plan, &bytes, is_broken, &mut reached)
                    .map_err(|why| format!("{path}: {why}"))?,
                None if removed.contains(&name) => reached.next = None,
                None => (),
            }
        }
        let Some(end) = reached.next else {
            return Ok(());
        };
        found.samples += end - reached.lost().min(end);
        found.lost += reached.lost();
        let pushed = session.pushed[stream];
        if end > pushed {
            return Err(format!("{end} samples of {pushed} that were pushed"));
        }
        match &session.end {
            End::Done(summaries) => judge_done(session, stream, summaries[stream], &reached),
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
        let before = |ns: u64| plan.due_before(ns.saturating_sub(started_ns));
        let mut last_us = 0;
        for covered in session.checkpoints(stream) {
            if end < covered.samples {
                return Err(format!(
                    "{end} samples, and a checkpoint was made: {covered:?}"
                ));
            }
            let due = before(covered.pushed_before_us * 1000);
            if covered.samples < due && !self.is_gap_open(number, stream, covered.samples) {
                return Err(format!(
                    "{due} samples are older than this checkpoint: {covered:?}"
                ));
            }
            last_us = covered.done_us;
        }
        for (asked_ns, done_ns) in &session.flushes {
            let due = before(*asked_ns);
            if done_ns.is_some() && end < due && !self.is_gap_open(number, stream, end) {
                return Err(format!(
                    "{end} samples, and {due} before a flush that was done"
                ));
            }
        }
        let (Window::Us(window_us), Some((_, uncut))) = (
            plan.config.window,
            self.uncut.filter(|(uncut, _)| *uncut == number),
        ) else {
            return Ok(());
        };
        let due = before(session.ended_ns.saturating_sub(window_us * 1000));
        if end >= due || self.is_gap_open(number, stream, end) {
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

/// Nothing is lost in silence: what is not in the files is in gaps that were told.
fn judge_done(
    session: &Session,
    stream: usize,
    (written, lost): (u64, u64),
    reached: &Reached,
) -> Result<(), String> {
    let (end, pushed) = (reached.next.unwrap_or(0), session.pushed[stream]);
    let told = session.lost_samples(stream);
    let is_told = |first, count| (first..first + count).all(|index| told.contains(&index));
    let mut missing = reached.gaps.clone();
    missing.push((end, pushed - end));
    let wrong = || {
        format!(
            "{end} samples in the files but {:?}; {pushed} were pushed, {written} written, {lost} lost, {} told",
            reached.gaps,
            told.len()
        )
    };
    // A recorder that had its card all the time writes down all gaps; a full card takes no more.
    let is_whole =
        session.lost_card() || session.is_full() || end == pushed && lost == reached.lost();
    let is_counted = written + lost == pushed && lost == told.len() as u64;
    match is_whole && is_counted && missing.iter().all(|(first, count)| is_told(*first, *count)) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

impl History<'_> {
    /// Whether samples found no room from this one on. A gap is handed over with the first sample that
    /// finds room again: until then nobody knows how long it is.
    fn is_gap_open(&self, number: usize, stream: usize, sample: u64) -> bool {
        self.uncut.is_none_or(|(uncut, session)| {
            uncut != number
                || session.said.iter().any(|said| match said.event {
                    Event::Lost { stream: of, gap } => {
                        usize::from(of) == stream && gap.first == sample
                    }
                    _ => false,
                })
        })
    }
}

/// Eight and three characters as a path.
pub fn path_of(name: &Name) -> String {
    let (base, extension) = name.split_at(8);
    let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_string();
    format!("{}.{}", text(base), text(extension))
}

/// What fsck.fat has to say against a volume. `name` is that of a file to put it into.
///
/// # Errors
/// What it says.
pub fn fsck(disk: &impl Disk, volume: &Volume, name: &str) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("storm-{}-{name}.img", std::process::id()));
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
