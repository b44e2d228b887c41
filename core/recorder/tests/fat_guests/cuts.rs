//! Power cuts at every block written: the next mount finds each operation done or not begun, discards
//! uploads, and leaves the file system consistent.

use super::*;
use cardiograph_recorder::FileRecord;
use cardiograph_sim_world::Seed;

/// Interval of cuts that are checked with fsck.fat.
const CHECKED: u64 = 11;
/// Interval of cuts that are followed by the rest of the script.
const CONTINUED: u64 = 29;

#[derive(Clone, Copy, Debug)]
enum Step {
    Mount,
    /// Uploads this number of bytes in one piece.
    Put(&'static str, usize),
    /// Uploads them in pieces that alternate with those of another upload, which is discarded.
    PutPieces(&'static str, usize),
    MakeDirectory(&'static str),
    /// The target is replaced if it exists.
    Rename(&'static str, &'static str),
    Remove(&'static str),
    /// Makes a recording of this length.
    Record(u64),
    /// Prepares space for a recording.
    Reserve,
}

const LONG: &str = "docs/A file whose name takes several entries of its directory.html";

const SCRIPT: &[Step] = &[
    Step::Mount,
    Step::MakeDirectory("docs"),
    Step::Put(LONG, 5000),
    Step::PutPieces("short.bin", 6000),
    Step::Put(LONG, 900),
    Step::PutPieces(LONG, 7000),
    Step::Reserve,
    Step::Put("docs/empty", 0),
    Step::Put("docs/other", 600),
    Step::Rename("short.bin", "docs/Renamed and moved.bin"),
    Step::MakeDirectory("docs/inner directory"),
    Step::Put("docs/inner directory/x", 1000),
    Step::Rename("docs/inner directory", "a directory that moves"),
    Step::Record(9000),
    Step::Record(3000),
    Step::Record(600),
    Step::Rename(LONG, "docs/Renamed and moved.bin"),
    Step::Put("docs/other", 0),
    Step::Rename("docs/other", "docs/empty"),
    Step::Remove("REC00000/REC00001.CSV"),
    Step::Rename(
        "REC00000/REC00002.CSV",
        "a directory that moves/My flight.csv",
    ),
    Step::Put("REC00000/REC00003.CSV", 700),
    Step::Remove("docs/Renamed and moved.bin"),
    Step::Remove("docs/empty"),
    Step::Rename("docs", "Docs"),
    Step::Remove("Docs"),
    Step::Rename("a directory that moves/x", "x"),
    Step::Remove("x"),
];

/// Steps on files of other programs.
const FOREIGN: &[Step] = &[
    Step::Put("a long name of somebody.txt", 1000),
    Step::Rename("DSC00041.JPG", "Another name of the picture.jpg"),
    Step::Remove("another name of the picture.jpg"),
    Step::Rename(SEVERAL_BLOCKS[0], SEVERAL_BLOCKS[1]),
    Step::Remove(SEVERAL_BLOCKS[1]),
    Step::Rename(SEVERAL_BLOCKS[2], "y"),
    Step::Remove("Y"),
];

/// Names whose entries are in up to three blocks.
const SEVERAL_BLOCKS: [&str; 3] = [
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm",
    "oooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo",
];

impl Step {
    fn take(self, rig: &mut Rig) -> Result<(), Error> {
        match self {
            Step::Mount => rig.mount(),
            Step::Put(path, bytes) => rig.put(path, &data(bytes as u64, bytes), true),
            Step::PutPieces(path, bytes) => {
                let (mut one, mut two) = (rig.begin(0)?, rig.begin(0)?);
                for piece in (0..bytes).step_by(1300) {
                    rig.grow(&mut one, (piece + 1300) as u64)?;
                    rig.grow(&mut two, (piece + 700) as u64)?;
                }
                rig.write(&mut one, &data(bytes as u64, bytes))?;
                rig.commit(&mut one, path, bytes, true)?;
                rig.drop_upload(two)
            }
            Step::MakeDirectory(path) => rig.make_directory(path),
            Step::Rename(from, to) => rig.rename(from, to, true),
            Step::Remove(path) => rig.remove(path),
            Step::Record(bytes) => {
                let slot = rig.reserved()[0].slot;
                rig.reserve(REQUEST)?;
                let id = rig.next(REQUEST);
                rig.name(slot, id, "")?;
                rig.close(slot, FileRecord::of_length(id, bytes))
            }
            Step::Reserve => rig.reserve(REQUEST).map(drop),
        }
    }
}

/// State that has to be equal to the one before or after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// Attributes, length, long name and sum of the contents, by path. Without the recorder's own files.
    files: BTreeMap<String, (u8, u32, String, u64)>,
    reserved: usize,
}

fn state(rig: &Rig, image: &Image) -> Result<State, String> {
    let listing = check(&rig.disk, image.start)?;
    let is_own = |path: &str, file: &Entry| {
        // The folder is created together with the space for its first recording.
        file.attributes & 6 != 0 || path == "REC00000"
    };
    let uploads = listing
        .files
        .keys()
        .filter(|it| it.starts_with("CARDIOGRU"));
    if let Some(upload) = uploads.max() {
        return Err(format!("{upload} is still there"));
    }
    let mut files = BTreeMap::new();
    for (path, file) in listing
        .files
        .iter()
        .filter(|(path, file)| !is_own(path, file))
    {
        let bytes: Vec<u8> = file
            .blocks
            .iter()
            .flat_map(|block| *rig.disk.block(*block))
            .collect();
        let is_recording = path.starts_with("REC00000/REC") && file.size != 700;
        let is_data = file.attributes & 0x10 == 0 && !is_recording;
        let bytes = &bytes[..if is_data { file.size as usize } else { 0 }];
        let sum = bytes.iter().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte)
        });
        // Short names may be chosen differently when a step is repeated.
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let name = match file.long_name.as_str() {
            "" => path.clone(),
            long => format!("{folder}/{long}"),
        };
        let file = (file.attributes, file.size, file.long_name.clone(), sum);
        if files.insert(name.clone(), file).is_some() {
            return Err(format!("{name} exists twice"));
        }
    }
    let reserved = rig.reserved().len();
    Ok(State { files, reserved })
}

struct Run<'a> {
    image: &'a Image,
    script: Vec<Step>,
    /// State before each step, and after the last.
    states: Vec<State>,
    /// Card before each step.
    disks: Vec<Disk>,
    /// Blocks written by each step.
    writes: Vec<u64>,
    can_tear: [u32; 2],
    label: String,
}

impl Run<'_> {
    fn new<'a>(image: &'a Image, script: Vec<Step>, label: &str) -> Run<'a> {
        let mut rig = Rig::new(image.disk.clone());
        let mut run = Run {
            image,
            script,
            states: vec![state(&rig, image).unwrap()],
            disks: Vec::new(),
            writes: Vec::new(),
            can_tear: [0; 2],
            label: label.into(),
        };
        for step in &run.script {
            run.disks.push(rig.disk.powered_up());
            let before = rig.disk.writes;
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{label} {step:?}: {error}"));
            run.writes.push(rig.disk.writes - before);
            let now = state(&rig, image).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            run.states.push(now);
            if matches!(step, Step::Mount) {
                let listing = check(&rig.disk, image.start).unwrap();
                let journal = &listing.files["CARDIOGRJNL"].blocks;
                run.can_tear = [journal[0], journal[64]];
            }
        }
        run
    }

    /// Returns the steps of guests and the cuts in each.
    fn cuts(&self) -> impl Iterator<Item = (usize, u64)> {
        let is_guest = |step: &Step| !matches!(step, Step::Mount | Step::Record(_) | Step::Reserve);
        let steps = self.script.iter().enumerate();
        let steps = steps.filter(move |(_, step)| is_guest(step));
        steps.flat_map(|(step, _)| (0..self.writes[step]).map(move |cut| (step, cut)))
    }

    fn cut(&self, step: usize, after: u64, torn: Torn) -> Rig {
        let mut rig = Rig::new(self.disks[step].clone());
        rig.mount().unwrap();
        assert_eq!(rig.disk.writes, 0);
        rig.disk = rig.disk.cut_after(after, torn);
        rig.disk.can_tear = self.can_tear;
        let error = self.script[step].take(&mut rig).unwrap_err();
        assert_eq!(error, Error::Card(NoPower));
        rig
    }

    /// Checks the state after a mount. Returns true if the step was done.
    fn judge(&self, rig: &Rig, step: usize, number: u64, what: &str) -> bool {
        let wrong = |text: String| -> ! {
            let fsck = fsck(&rig.disk, self.image.start);
            panic!(
                "{}, {:?}, {what}: {text}\n{fsck:?}",
                self.label, self.script[step]
            );
        };
        let now = state(rig, self.image).unwrap_or_else(|text| wrong(text));
        let is_done = now == self.states[step + 1];
        if !is_done && now != self.states[step] {
            wrong(format!(
                "neither before nor after: {now:#?}\nbefore: {:#?}\nafter: {:#?}",
                self.states[step],
                self.states[step + 1]
            ));
        }
        if number.is_multiple_of(CHECKED)
            && let Err(text) = fsck(&rig.disk, self.image.start)
        {
            wrong(text);
        }
        is_done
    }

    fn run_rest(&self, mut rig: Rig, from: usize, what: &str) {
        for (step, due) in self.script.iter().zip(&self.states[1..]).skip(from) {
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{}, {what}, {step:?}: {error}", self.label));
            let now = state(&rig, self.image);
            assert_eq!(now.as_ref(), Ok(due), "{}, {what}, {step:?}", self.label);
        }
    }

    fn every_cut(&self, torn: Torn) {
        let mut number = 0;
        for (step, after) in self.cuts() {
            number += 1;
            let what = format!("{torn:?} after {after}");
            let mut rig = self.cut(step, after, torn);
            if number % 2 == 0 {
                // Mounts the same volume again, as after a card error.
                rig.disk = rig.disk.powered_up();
                rig.mount().unwrap();
            } else {
                rig.remount();
            }
            let is_done = self.judge(&rig, step, number, &what);
            if number.is_multiple_of(CONTINUED) {
                self.run_rest(rig, if is_done { step + 1 } else { step }, &what);
            }
        }
    }

    /// Makes some of the cuts, and mounts an image of the partition, and a card on which it begins later.
    fn cuts_elsewhere(&self, every: usize) -> usize {
        let mut number = 0;
        for (step, after) in self.cuts().step_by(every) {
            let cut = self.cut(step, after, Torn::Prefix);
            let what = format!("after {after}");
            let whole = Rig::mounted(cut.disk.powered_up());
            let is_done = self.judge(&whole, step, 0, &what);
            for (disk, start) in elsewhere(&cut.disk, self.image.start) {
                let rig = Rig::mounted(disk);
                let what = format!(
                    "{} {:?}, {what}, from {start}",
                    self.label, self.script[step]
                );
                fsck(&rig.disk, start).unwrap_or_else(|text| panic!("{what}: {text}"));
                let image = Image {
                    start,
                    ..self.image.clone()
                };
                let due = &self.states[step + usize::from(is_done)];
                assert_eq!(state(&rig, &image).as_ref(), Ok(due), "{what}");
            }
            number += 1;
        }
        number
    }

    /// Makes each cut, and further cuts in each mount that follows.
    fn every_cut_in_recovery(&self, torn: Torn, every: usize) {
        let mut number = 0;
        for (step, after) in self.cuts().step_by(every) {
            let cut = self.cut(step, after, torn);
            for again in 0.. {
                let mut rig = Rig::new(cut.disk.cut_after(again, torn));
                if rig.mount().is_ok() {
                    break;
                }
                rig.remount();
                number += 1;
                let what = format!("{torn:?} after {after}, {again}");
                self.judge(&rig, step, number, &what);
            }
        }
        assert!(number > 100, "only {number} mounts were interrupted");
    }
}

/// Volumes, and the number of free entries in their root directories.
const VOLUMES: [(Spec, usize); 5] = [
    (FAT16, 60),
    (
        Spec {
            blocks: 24_000,
            cluster_blocks: 4,
            fats: 1,
            ..FAT16
        },
        60,
    ),
    (FAT32, 2),
    (Spec { fats: 1, ..FAT32 }, 0),
    (
        Spec {
            blocks: 40_000,
            cluster_blocks: 8,
            has_files: false,
            ..FAT32
        },
        3,
    ),
];

/// Volumes on which every run of the tests makes all cuts: one of each type of FAT, the second one without room.
const USUAL_VOLUMES: [(Spec, usize); 2] = [VOLUMES[0], VOLUMES[3]];

fn on_every(volumes: &[(Spec, usize)], test: impl Fn(&Run)) {
    for &(spec, room) in volumes {
        let mut image = spec.make();
        let mut script = SCRIPT.to_vec();
        if spec.has_files {
            for name in SEVERAL_BLOCKS {
                image.disk = with_file(&image.disk, image.start, name, &data(9, 900));
            }
            script.extend(FOREIGN);
        }
        put_root_entries(&mut image, room);
        image.add_stale_data();
        test(&Run::new(
            &image,
            script,
            &format!("{spec:?}, room for {room}"),
        ));
    }
}

#[test]
fn a_mount_repairs_every_cut() {
    on_every(&USUAL_VOLUMES, |run| run.every_cut(Torn::Prefix));
}

#[test]
fn any_subset_of_a_burst_may_be_written() {
    let seed = 20_261_122;
    println!("seed {seed}");
    on_every(&USUAL_VOLUMES, |run| {
        run.every_cut(Torn::Any(Seed::new(seed)))
    });
}

#[test]
fn a_torn_record_leaves_the_previous_one() {
    on_every(&USUAL_VOLUMES, |run| run.every_cut(Torn::Within));
}

#[test]
fn a_mount_can_be_interrupted_itself() {
    let seed = 20_261_124;
    println!("seed {seed}");
    on_every(&USUAL_VOLUMES, |run| {
        run.every_cut_in_recovery(Torn::Prefix, 5);
        run.every_cut_in_recovery(Torn::Any(Seed::new(seed)), 11);
    });
}

#[test]
fn a_volume_is_repaired_wherever_it_begins() {
    on_every(&USUAL_VOLUMES, |run| {
        let cuts = run.cuts_elsewhere(7);
        assert!(cuts > 50, "only {cuts} cuts");
    });
}

/// A file name that needs two long-name entries in addition to the short one.
const PHOTO: &str = "a photo of the site.jpg";

/// A computer repairs the card after the cut in its own way and writes a file, which may take clusters and
/// directory entries of the interrupted operation.
#[test]
#[ignore = "needs fsck.fat"]
fn changes_made_by_a_computer_are_kept() {
    change_after_cuts([(FAT16, 5), (FAT32, 37)]);
}

/// Changes a card after one in a number of cuts.
fn change_after_cuts(volumes: [(Spec, usize); 2]) {
    for (spec, every) in volumes {
        for bytes in [60_000, 700] {
            let photo = data(20_261_125, bytes);
            let mut image = spec.make();
            image.add_stale_data();
            let run = Run::new(&image, SCRIPT.to_vec(), &format!("{spec:?}, {bytes} bytes"));
            for (step, after) in run.cuts().step_by(every) {
                let cut = run.cut(step, after, Torn::Prefix);
                let disk = repaired(&cut.disk, image.start, PHOTO, &photo);
                // fsck.fat leaves garbage in a cluster that it appends to the root directory of FAT32.
                let is_repaired = spec.fat_bits == 16 || fsck(&disk, image.start).is_ok();
                let rig = Rig::mounted(disk);
                let wrong =
                    |text: String| panic!("{} {after}, {:?}: {text}", run.label, run.script[step]);
                if is_repaired {
                    fsck(&rig.disk, image.start).unwrap_or_else(wrong);
                    check(&rig.disk, image.start)
                        .map(drop)
                        .unwrap_or_else(wrong);
                }
                let found = tree(&rig.disk, image.start);
                assert!(
                    found[PHOTO].as_ref() == Some(&photo),
                    "{} {after}",
                    run.label
                );
            }
        }
    }
}

#[test]
#[ignore = "takes minutes: cargo xtask lane states"]
fn lane_all_cuts_on_all_volumes() {
    let seed = 20_261_122;
    println!("seed {seed}");
    on_every(&VOLUMES, |run| {
        for torn in [Torn::Prefix, Torn::Within, Torn::Any(Seed::new(seed))] {
            run.every_cut(torn);
        }
        run.every_cut_in_recovery(Torn::Prefix, 5);
        run.every_cut_in_recovery(Torn::Any(Seed::new(seed)), 11);
    });
    change_after_cuts([(FAT16, 1), (FAT32, 17)]);
}
