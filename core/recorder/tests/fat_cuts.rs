//! Power that goes at every block that is written: a mount afterwards finds the volume as it was before
//! the operation or as it is after it, and other files as they were.

mod fat_rig;

use cardiograph_recorder::{Request, Reserved};
use cardiograph_sim_world::Seed;
use fat_rig::*;

/// One cut in so many is shown to fsck.fat and the crate fatfs.
const JUDGED: u64 = 17;
/// One cut in so many is followed by the rest of the script.
const GONE_ON: u64 = 13;

/// What is done, slot by slot.
#[derive(Clone, Copy, Debug)]
enum Step {
    Mount,
    Reserve(u32, [u8; 3]),
    Close(u8, u64),
    Discard(u8),
    RemoveOldest,
}

const SCRIPT: &[Step] = &[
    Step::Mount,
    Step::Reserve(200, *b"CSV"),
    Step::Reserve(700, *b"BIN"),
    Step::Close(0, 100 * 512 + 17),
    Step::Discard(1),
    Step::Reserve(64, *b"CSV"),
    Step::Reserve(130, *b"BIN"),
    Step::Close(0, 0),
    Step::Close(1, 130 * 512),
    Step::RemoveOldest,
    Step::Reserve(500, *b"BIN"),
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
            Step::Close(slot, bytes) => rig.close(slot, bytes),
            Step::Discard(slot) => rig.discard(slot),
            Step::RemoveOldest => rig.remove_oldest().map(drop),
        }
    }
}

/// What is to be the same after a cut, root directory's length apart.
type State = (std::collections::BTreeMap<String, Entry>, Vec<Reserved>);

fn state(rig: &Rig, image: &Image) -> Result<State, String> {
    let listing = check(&rig.disk, image.start)?;
    Ok((listing.files, rig.reserved()))
}

/// What must not be touched: all but FATs, root directory, FSInfo and free clusters.
fn others(image: &Image) -> Vec<u32> {
    let listing = check(&image.disk, image.start).unwrap();
    let files = listing.files.into_values().flat_map(|file| file.blocks);
    (0..=image.start).chain(files).collect()
}

struct Run<'a> {
    image: &'a Image,
    others: Vec<u32>,
    /// What there was after so many steps.
    states: Vec<State>,
    /// Blocks that had been written after so many steps.
    writes: Vec<u64>,
    can_tear: [u32; 2],
    label: String,
}

impl Run<'_> {
    /// The script without a cut.
    fn new<'a>(image: &'a Image, label: &str) -> Run<'a> {
        let mut rig = Rig::new(image.disk.clone());
        let mut run = Run {
            image,
            others: others(image),
            states: Vec::new(),
            writes: vec![0],
            can_tear: [0; 2],
            label: label.into(),
        };
        for step in SCRIPT {
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{step:?}: {error}"));
            let now = state(&rig, image).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            run.states.push(now);
            run.writes.push(rig.disk.writes);
            fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{label} {step:?}: {text}"));
            if matches!(step, Step::Mount) {
                let journal = &run.states[0].0["CARDIOGRJNL"].blocks;
                run.can_tear = [journal[0], journal[64]];
            }
        }
        run
    }

    fn writes(&self) -> u64 {
        *self.writes.last().unwrap()
    }

    /// The script until power goes after so many blocks. The step in which it did, and the card.
    fn cut(&self, after: u64, torn: Torn) -> (usize, Disk) {
        let mut disk = self.image.disk.cut_after(after, torn);
        disk.can_tear = self.can_tear;
        let mut rig = Rig::new(disk);
        let step = SCRIPT.iter().position(|step| step.take(&mut rig).is_err());
        assert!(
            rig.disk.is_off(),
            "{} {after}: something else went wrong",
            self.label
        );
        (step.unwrap(), rig.disk)
    }

    /// Holds what a mount has left against what there was before and after the step.
    fn judge(&self, rig: &Rig, step: usize, number: u64, what: &str) -> bool {
        let wrong = |text: String| -> ! {
            let fsck = fsck(&rig.disk, self.image.start);
            panic!(
                "{}, step {:?}, {what}: {text}\n{fsck:?}",
                self.label, SCRIPT[step]
            );
        };
        let now = state(rig, self.image).unwrap_or_else(|text| wrong(text));
        let is_after = now == self.states[step];
        // The journal is there after any mount.
        if !is_after && (step == 0 || now != self.states[step - 1]) {
            wrong(format!("neither before nor after: {:?}", now.1));
        }
        for block in &self.others {
            if rig.disk.block(*block) != self.image.disk.block(*block) {
                wrong(format!("block {block} is another's"));
            }
        }
        if number.is_multiple_of(JUDGED) {
            if let Err(text) = fsck(&rig.disk, self.image.start) {
                wrong(text);
            }
            if self.image.is_for_fatfs {
                let theirs: Vec<u64> = self
                    .image
                    .names_and_sizes(&rig.disk)
                    .into_values()
                    .collect();
                assert_eq!(theirs.len(), now.0.len());
                let sum: u64 = now.0.values().map(|file| u64::from(file.size)).sum();
                assert_eq!(theirs.iter().sum::<u64>(), sum);
            }
        }
        is_after
    }

    /// The rest of the script comes to the same, places apart: where to look for free clusters is a hint.
    fn go_on(&self, mut rig: Rig, from: usize, what: &str) {
        let files = |(files, reserved): &State| -> Vec<String> {
            let file = |(name, file): (&String, &Entry)| {
                format!("{name} {} {}", file.attributes, file.size)
            };
            let unfinished = |it: &Reserved| format!("{:?} {} {}", it.name, it.epoch, it.note);
            files
                .iter()
                .map(file)
                .chain(reserved.iter().map(unfinished))
                .collect()
        };
        for (step, state_due) in SCRIPT.iter().zip(&self.states).skip(from) {
            step.take(&mut rig)
                .unwrap_or_else(|error| panic!("{}, {what}, {step:?}: {error}", self.label));
            let now = state(&rig, self.image)
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
        for after in 0..self.writes() {
            let what = format!("{torn:?} after {after}");
            let (step, disk) = self.cut(after, torn);
            let rig = Rig::mounted(disk.back());
            let is_after = self.judge(&rig, step, after, &what);
            if after.is_multiple_of(GONE_ON) {
                self.go_on(rig, if is_after { step + 1 } else { step }, &what);
            }
        }
    }

    /// Cuts, and other cuts in each mount that follows.
    fn every_cut_in_recovery(&self, torn: Torn, every: usize) {
        let mut number = 0;
        for after in (0..self.writes()).step_by(every) {
            let (step, disk) = self.cut(after, torn);
            for again in 0.. {
                let mut rig = Rig::new(disk.cut_after(again, torn));
                if rig.mount().is_ok() {
                    break;
                }
                assert!(rig.disk.is_off());
                rig.again();
                number += 1;
                self.judge(
                    &rig,
                    step,
                    number,
                    &format!("{torn:?} after {after}, {again}"),
                );
            }
        }
        assert!(
            number > self.writes() / every as u64,
            "{number} mounts were cut off"
        );
    }
}

/// A volume, and how many entries its root directory has room for.
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

fn on_every_volume(test: impl Fn(&Run)) {
    for (spec, room) in VOLUMES {
        let mut image = spec.make();
        put_root_entries(&mut image, room);
        image.soil();
        let run = Run::new(&image, &format!("{spec:?}, room for {room}"));
        test(&run);
    }
}

#[test]
fn a_mount_brings_every_cut_in_order() {
    on_every_volume(|run| run.every_cut(Torn::Prefix));
}

#[test]
fn any_part_of_a_burst_may_be_there() {
    let seed = 20_261_121;
    println!("seed {seed}");
    on_every_volume(|run| {
        run.every_cut(Torn::Any(Seed::new(seed)));
    });
}

#[test]
fn a_torn_record_leaves_the_one_before() {
    on_every_volume(|run| run.every_cut(Torn::Within));
}

/// Its long name takes two entries before its own.
const PHOTO: &str = "a photo of the site.jpg";

/// A computer repairs the card in between, in its way, and writes a file where there is room: one that
/// takes the clusters of what was under way, or one that takes its place in the directory alone.
#[test]
fn what_a_computer_did_in_between_is_kept() {
    for (volume, every, bytes) in [(0, 1, 60_000), (0, 1, 2_000), (2, 11, 60_000)] {
        let mut data = vec![0; bytes];
        let mut random = Seed::new(20_261_123).stream("file");
        data.fill_with(|| random.next_u64() as u8);
        let mut image = VOLUMES[volume].0.make();
        image.files.insert(PHOTO.into(), data.clone());
        let run = Run::new(
            &image,
            &format!("volume {volume}, {bytes} bytes in between"),
        );
        for after in (0..run.writes()).step_by(every) {
            let (step, disk) = run.cut(after, Torn::Prefix);
            let rig = Rig::mounted(repaired(&disk, image.start, PHOTO, &data));
            let wrong = |text| panic!("{} {after}, {:?}: {text}", run.label, SCRIPT[step]);
            fsck(&rig.disk, image.start).unwrap_or_else(wrong);
            check(&rig.disk, image.start)
                .map(drop)
                .unwrap_or_else(wrong);
            // Compares the contents as well.
            let files = image.names_and_sizes(&rig.disk);
            assert_eq!(files["APHOTO~1.JPG"], data.len() as u64);
        }
    }
}

#[test]
fn a_mount_can_be_cut_off_itself() {
    let seed = 20_261_122;
    println!("seed {seed}");
    on_every_volume(|run| {
        run.every_cut_in_recovery(Torn::Prefix, 2);
        run.every_cut_in_recovery(Torn::Any(Seed::new(seed)), 5);
    });
}
