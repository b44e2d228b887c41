//! Power cuts at every block written: the next mount finds the volume as it was before or after the
//! operation, and all other files unchanged.

use crate::fat_rig;

use cardiograph_recorder::{FileId, FileRecord, Request, Reserved};
use cardiograph_sim_world::Seed;
use fat_rig::*;
use std::collections::BTreeMap;

/// Interval of cuts that are checked with fsck.fat and the crate fatfs.
const CHECKED: u64 = 17;
/// Interval of cuts that are followed by the rest of the script.
const CONTINUED: u64 = 13;

/// Blocks of a new folder.
const FOLDER_BLOCKS: u64 = 585;
/// Number of blocks before and after the folder's that may be written with it.
const EDGE: u64 = 24;

/// An operation, with its slot if it has one.
#[derive(Clone, Copy, Debug)]
enum Step {
    Mount,
    Reserve(u32, [u8; 3]),
    /// Slot, name, and name of the session.
    Name(u8, FileId, &'static str),
    Close(u8, FileId, u64),
    Discard(u8),
    RemoveOldest,
}

const fn bin(number: u32) -> FileId {
    FileId {
        extension: *b"BIN",
        ..rec(number)
    }
}

const SCRIPT: &[Step] = &[
    Step::Mount,
    Step::Reserve(200, *b"CSV"),
    Step::Reserve(700, *b"BIN"),
    Step::Name(0, rec(1), ""),
    Step::Close(0, rec(1), 100 * 512 + 17),
    // Discard an unnamed file, and later a named one.
    Step::Discard(1),
    Step::Reserve(64, *b"CSV"),
    Step::Reserve(130, *b"BIN"),
    Step::Name(1, bin(2), "a-session"),
    Step::Close(0, rec(998), 0),
    Step::Close(1, bin(2), 130 * 512),
    Step::RemoveOldest,
    Step::Reserve(64, *b"CSV"),
    Step::Name(0, rec(999), "the_longest-name_of_a_session_32"),
    // Goes to the next folder.
    Step::Reserve(500, *b"BIN"),
    Step::Discard(0),
    Step::Close(1, bin(1000), 3 * 512),
    Step::RemoveOldest,
    // The first folder is removed together with its last recording.
    Step::RemoveOldest,
    Step::RemoveOldest,
];

impl Step {
    fn take(self, rig: &mut Rig) -> Result<(), Error> {
        match self {
            Step::Mount => rig.mount(),
            Step::Reserve(blocks, extension) => {
                let request = Request {
                    blocks,
                    extension,
                    note: blocks,
                    ..REQUEST
                };
                rig.reserve(request).map(drop)
            }
            Step::Name(slot, id, session) => rig.name(slot, id, session),
            Step::Close(slot, id, bytes) => rig.close(slot, FileRecord::of_length(id, bytes)),
            Step::Discard(slot) => rig.discard(slot),
            Step::RemoveOldest => rig.remove_oldest().map(drop),
        }
    }
}

/// State that has to be equal to the one before or after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// Without folders that contain no recording, and without the root directory's length.
    files: BTreeMap<String, Entry>,
    reserved: Vec<Reserved>,
    listed: Vec<FileRecord>,
    next: u32,
}

fn state(rig: &mut Rig, image: &Image) -> Result<State, String> {
    let listing = check(&rig.disk, image.start)?;
    let has_recording = |folder: &str| {
        let path = format!("{folder}/");
        let mut names = listing.files.keys().filter(|name| name.starts_with(&path));
        names.any(|name| !name.ends_with("IDX"))
    };
    let is_kept = |name: &str| {
        let folder = name.split('/').next().unwrap();
        !listing.files.contains_key(&format!("{folder}/CARDIOGRIDX")) || has_recording(folder)
    };
    let files = listing.files.iter().filter(|(name, _)| is_kept(name));
    let mut listed = Vec::new();
    for folder in 0..2 {
        listed.extend(rig.list(folder).iter().map(|listed| listed.record));
    }
    Ok(State {
        files: files
            .map(|(name, file)| (name.clone(), file.clone()))
            .collect(),
        reserved: rig.reserved(),
        listed,
        next: rig.next(REQUEST).number,
    })
}

/// Returns the blocks that must not change: all except FATs, root directory, FSInfo and free clusters.
fn others(image: &Image) -> Vec<u32> {
    let listing = check(&image.disk, image.start).unwrap();
    let files = listing.files.into_values().flat_map(|file| file.blocks);
    (0..=image.start).chain(files).collect()
}

fn name_in_path(id: FileId) -> String {
    String::from_utf8(id.short_name().to_vec()).unwrap()
}

struct Run<'a> {
    image: &'a Image,
    others: Vec<u32>,
    /// State after each step.
    states: Vec<State>,
    /// Number of blocks written before each step, and after the last.
    writes: Vec<u64>,
    /// Card before each step.
    disks: Vec<Disk>,
    can_tear: [u32; 2],
    label: String,
}

impl Run<'_> {
    /// Runs the script without a cut.
    fn new<'a>(image: &'a Image, label: &str) -> Run<'a> {
        let mut rig = Rig::new(image.disk.clone());
        let mut run = Run {
            image,
            others: others(image),
            states: Vec::new(),
            writes: vec![0],
            disks: Vec::new(),
            can_tear: [0; 2],
            label: label.into(),
        };
        for step in SCRIPT {
            run.disks.push(rig.disk.powered_up());
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{step:?}: {error}"));
            let now =
                state(&mut rig, image).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            run.states.push(now);
            run.writes.push(rig.disk.writes);
            fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            if matches!(step, Step::Mount) {
                let journal = &run.states[0].files["CARDIOGRJNL"].blocks;
                run.can_tear = [journal[0], journal[64]];
            }
        }
        run
    }

    /// Returns the cuts to make. While a new folder is filled, which changes nothing visible, a few suffice.
    fn cuts(&self) -> impl Iterator<Item = u64> {
        let steps = self.writes.windows(2);
        steps.flat_map(|step| {
            let (begin, end) = (step[0], step[1]);
            let is_long = end - begin > FOLDER_BLOCKS;
            (begin..end).filter(move |after| {
                let at = after - begin;
                !is_long || at < EDGE || after + 4 * EDGE > end || at.is_multiple_of(EDGE - 1)
            })
        })
    }

    /// Returns the step that a cut after this many blocks of the script interrupts, and the volume. The step
    /// starts from the state left by the previous steps, whose cuts are tested separately.
    fn cut(&self, after: u64, torn: Torn) -> (usize, Rig) {
        let step = self.writes.partition_point(|writes| *writes <= after) - 1;
        let mut rig = Rig::new(self.disks[step].clone());
        if step > 0 {
            rig.mount().unwrap();
            assert_eq!(rig.disk.writes, 0);
        }
        rig.disk = rig.disk.cut_after(after - self.writes[step], torn);
        rig.disk.can_tear = self.can_tear;
        let error = SCRIPT[step].take(&mut rig).unwrap_err();
        assert_eq!(error, Error::Card(NoPower), "{} {after}", self.label);
        (step, rig)
    }

    /// Compares the state after a mount with the states before and after the step.
    fn judge(&self, rig: &mut Rig, step: usize, number: u64, what: &str) -> bool {
        let disk = rig.disk.clone();
        let wrong = |text: String| -> ! {
            let fsck = fsck(&disk, self.image.start);
            panic!(
                "{}, step {:?}, {what}: {text}\n{fsck:?}",
                self.label, SCRIPT[step]
            );
        };
        let now = state(rig, self.image).unwrap_or_else(|text| wrong(text));
        let is_after = now == self.states[step];
        // After any mount the journal exists.
        if !is_after && (step == 0 || !self.is_before(&now, step)) {
            wrong(format!("neither before nor after: {now:#?}"));
        }
        // The mount reports which removal it has completed.
        let gone = self.states[step.saturating_sub(1)]
            .listed
            .iter()
            .find(|it| {
                let is_removal = matches!(SCRIPT[step], Step::RemoveOldest);
                is_removal && is_after && !now.listed.contains(it)
            });
        let removed = rig.take_removed();
        // The mount cannot know of the removal if the very last block was written just as power failed.
        let is_known = removed.is_some() || !what.starts_with("Any");
        if is_known && removed != gone.map(|it| it.id) {
            wrong(format!(
                "{removed:?} was reported as removed, expected {gone:?}"
            ));
        }
        for block in &self.others {
            if rig.disk.block(*block) != self.image.disk.block(*block) {
                wrong(format!("block {block} of another file was changed"));
            }
        }
        if number.is_multiple_of(CHECKED) {
            if let Err(text) = fsck(&rig.disk, self.image.start) {
                wrong(text);
            }
            if self.image.is_for_fatfs {
                let theirs = self.image.as_fatfs_sees(&rig.disk);
                for (name, file) in &now.files {
                    let (long, size) = &theirs[name];
                    assert_eq!(*size, u64::from(file.size), "{name}");
                    if !file.long_name.is_empty() {
                        assert_eq!(*long, file.long_name);
                    }
                }
            }
        }
        is_after
    }

    /// Returns true if the step has no visible effect, except that the file to be closed may have been named.
    fn is_before(&self, now: &State, step: usize) -> bool {
        let before = &self.states[step - 1];
        let Step::Close(slot, id, _) = SCRIPT[step] else {
            return now == before;
        };
        let named = now.reserved.iter().find(|file| file.slot == slot);
        if named.is_none_or(|file| file.id != Some(id)) {
            return now == before;
        }
        let is_same = |one: &Reserved, other: &Reserved| {
            Reserved {
                id: other.id,
                ..*one
            } == *other
        };
        let all = now.reserved.iter().zip(&before.reserved);
        let path = now
            .files
            .keys()
            .find(|name| name.ends_with(&name_in_path(id)));
        path.is_some_and(|path| now.files[path].attributes == 0x24)
            && all.into_iter().all(|(one, other)| is_same(one, other))
            && now.listed == before.listed
            && now.next == before.next.max(id.number + 1)
    }

    /// Checks that the rest of the script leads to the same states, except for positions: the start of the
    /// search for free clusters is only a hint.
    fn run_rest(&self, mut rig: Rig, from: usize, what: &str) {
        let files = |state: &State| -> Vec<String> {
            let file = |(name, file): (&String, &Entry)| {
                format!("{name} {} {}", file.attributes, file.size)
            };
            let unfinished = |it: &Reserved| format!("{:?} {} {}", it.id, it.epoch, it.note);
            let listed = |it: &FileRecord| format!("{it:?}");
            let all = state.files.iter().map(file);
            all.chain(state.reserved.iter().map(unfinished))
                .chain(state.listed.iter().map(listed))
                .collect()
        };
        for (step, state_due) in SCRIPT.iter().zip(&self.states).skip(from) {
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{}, {what}, {step:?}: {error}", self.label));
            let now = state(&mut rig, self.image)
                .unwrap_or_else(|text| panic!("{}, {what}, {step:?}: {text}", self.label));
            assert_eq!(
                files(&now),
                files(state_due),
                "{}, {what}, {step:?}",
                self.label
            );
        }
    }

    fn every_cut(&self, torn: Torn) {
        for after in self.cuts() {
            let what = format!("{torn:?} after {after}");
            let (step, mut rig) = self.cut(after, torn);
            if after.is_multiple_of(2) {
                // Mounts the same volume again, as after a card error.
                rig.disk = rig.disk.powered_up();
                rig.mount().unwrap();
            } else {
                rig.remount();
            }
            let is_after = self.judge(&mut rig, step, after, &what);
            if after.is_multiple_of(CONTINUED) {
                self.run_rest(rig, if is_after { step + 1 } else { step }, &what);
            }
        }
    }

    /// Makes each cut, and further cuts in each mount that follows.
    fn every_cut_in_recovery(&self, torn: Torn, every: usize) {
        let mut number = 0;
        for after in self.cuts().step_by(every) {
            let (step, cut) = self.cut(after, torn);
            for again in 0.. {
                let mut rig = Rig::new(cut.disk.cut_after(again, torn));
                if rig.mount().is_ok() {
                    break;
                }
                assert!(rig.disk.is_off());
                rig.remount();
                number += 1;
                self.judge(
                    &mut rig,
                    step,
                    number,
                    &format!("{torn:?} after {after}, {again}"),
                );
            }
        }
        assert!(
            3 * number > self.cuts().count() as u64 / every as u64,
            "only {number} mounts were interrupted"
        );
    }
}

/// Volumes, and the number of free entries in their root directories.
const VOLUMES: [(Spec, usize); 7] = [
    (spec(6000, 16, 2, 1), 40),
    (with_table(spec(24_000, 16, 1, 4)), 40),
    (spec(70_000, 32, 2, 1), 2),
    (with_table(spec(70_000, 32, 1, 1)), 0),
    (bare(spec(40_000, 32, 2, 8)), 3),
    (with_table(bare(spec(40_000, 32, 2, 8))), 0),
    (bare(spec(40_000, 32, 2, 128)), 1),
];

const fn spec(blocks: u32, fat_bits: u32, fats: u32, cluster_blocks: u32) -> Spec {
    Spec {
        blocks,
        fat_bits,
        fats,
        cluster_blocks,
        has_table: false,
        has_files: true,
    }
}

const fn with_table(spec: Spec) -> Spec {
    Spec {
        has_table: true,
        ..spec
    }
}

const fn bare(spec: Spec) -> Spec {
    Spec {
        has_files: false,
        ..spec
    }
}

/// Volumes on which every run of the tests makes all cuts: one of each type of FAT, the second one without room.
const USUAL_VOLUMES: [(Spec, usize); 2] = [VOLUMES[0], VOLUMES[3]];

fn on_every(volumes: &[(Spec, usize)], test: impl Fn(&Run)) {
    for &(spec, room) in volumes {
        let mut image = spec.make();
        put_root_entries(&mut image, room);
        image.add_stale_data();
        let run = Run::new(&image, &format!("{spec:?}, room for {room}"));
        test(&run);
    }
}

#[test]
fn a_mount_repairs_every_cut() {
    on_every(&USUAL_VOLUMES, |run| run.every_cut(Torn::Prefix));
}

#[test]
fn any_subset_of_a_burst_may_be_written() {
    let seed = 20_261_121;
    println!("seed {seed}");
    on_every(&USUAL_VOLUMES, |run| {
        run.every_cut(Torn::Any(Seed::new(seed)));
    });
}

#[test]
fn a_torn_record_leaves_the_previous_one() {
    on_every(&USUAL_VOLUMES, |run| run.every_cut(Torn::Within));
}

/// A file name that needs two long-name entries in addition to the short one.
const PHOTO: &str = "a photo of the site.jpg";

/// A computer repairs the card after the cut in its own way and writes a file: one that takes the clusters of
/// the interrupted operation, or one that takes only its directory entry.
#[test]
#[ignore = "needs fsck.fat"]
fn changes_made_by_a_computer_are_kept() {
    change_after_cuts(&[(0, 4, 60_000), (0, 3, 2_000), (2, 23, 60_000)]);
}

/// Cases: a volume, one in a number of cuts, and the length of the computer's file, in bytes.
fn change_after_cuts(cases: &[(usize, usize, usize)]) {
    for &(volume, every, bytes) in cases {
        let mut data = vec![0; bytes];
        let mut random = Seed::new(20_261_123).stream("file");
        data.fill_with(|| random.next_u64() as u8);
        let mut image = VOLUMES[volume].0.make();
        image.files.insert(PHOTO.into(), data.clone());
        let run = Run::new(
            &image,
            &format!("volume {volume}, {bytes} bytes in between"),
        );
        for after in run.cuts().step_by(every) {
            let (step, cut) = run.cut(after, Torn::Prefix);
            let rig = Rig::mounted(repaired(&cut.disk, image.start, PHOTO, &data));
            let wrong = |text| panic!("{} {after}, {:?}: {text}", run.label, SCRIPT[step]);
            fsck(&rig.disk, image.start).unwrap_or_else(wrong);
            check(&rig.disk, image.start)
                .map(drop)
                .unwrap_or_else(wrong);
            // Also compares the contents.
            let files = image.as_fatfs_sees(&rig.disk);
            assert_eq!(files["APHOTO~1JPG"].1, data.len() as u64);
        }
    }
}

#[test]
fn a_mount_can_be_interrupted_itself() {
    let seed = 20_261_122;
    println!("seed {seed}");
    on_every(&USUAL_VOLUMES, |run| {
        run.every_cut_in_recovery(Torn::Prefix, 2);
        run.every_cut_in_recovery(Torn::Any(Seed::new(seed)), 5);
    });
}

#[test]
#[ignore = "takes minutes: cargo xtask lane states"]
fn lane_all_cuts_on_all_volumes() {
    let seed = 20_261_121;
    println!("seed {seed}");
    on_every(&VOLUMES, |run| {
        for torn in [Torn::Prefix, Torn::Within, Torn::Any(Seed::new(seed))] {
            run.every_cut(torn);
        }
        run.every_cut_in_recovery(Torn::Prefix, 2);
        run.every_cut_in_recovery(Torn::Any(Seed::new(seed)), 5);
    });
    change_after_cuts(&[(0, 1, 60_000), (0, 1, 2_000), (2, 11, 60_000)]);
}
