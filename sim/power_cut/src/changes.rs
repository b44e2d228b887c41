//! Changes of files that another task requests while the recorder runs: uploads, renames and removals.

use cardiograph_recorder::{Change, FileError, ReadDesk};
use cardiograph_sim_card::wire::Wire;
use cardiograph_sim_world::{Handle, Random, Seed};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Number of files that are changed.
pub const SLOTS: usize = 3;
/// Directory of the new names of odd slots.
const DIRECTORY: &str = "Kept files";

/// One of the two names of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The name of the upload.
    Old,
    /// The name after a rename.
    New,
}

impl Side {
    /// Returns the other name.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Old => Side::New,
            Side::New => Side::Old,
        }
    }
}

/// A request to change files.
#[derive(Clone, Copy, Debug)]
pub enum FileChange {
    /// Make the directory of the new names.
    MakeDirectory,
    /// Upload a file, or replace the one of this slot.
    Upload(Upload),
    /// Begin an upload and discard it, or abandon it if its length is not announced.
    Discard(Upload),
    /// Rename the file of a slot from this name to the other.
    Rename(usize, Side),
    /// Remove the file of a slot with this name.
    Remove(usize, Side),
}

impl FileChange {
    /// Returns true if the change leaves an upload that the recorder has to discard later.
    pub fn abandons_upload(&self) -> bool {
        matches!(self, FileChange::Discard(upload) if !upload.is_announced)
    }
}

/// A file to be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Slot of the file.
    pub slot: usize,
    /// Seed of the contents.
    pub serial: u64,
    /// Length in bytes.
    pub bytes: usize,
    /// True if the length is announced, and space for it is reserved at once.
    pub is_announced: bool,
}

impl Upload {
    /// Returns the contents.
    pub fn contents(&self) -> Vec<u8> {
        let random = &mut Seed::new(self.serial).stream("upload");
        let mut bytes = vec![0; self.bytes];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&random.next_u64().to_le_bytes()[..part.len()]);
        }
        bytes
    }

    /// Returns the identity of the contents.
    pub fn identity(&self) -> u64 {
        identity_of(self.slot, &self.contents())
    }
}

/// Returns a number that identifies the contents of a slot's file.
pub fn identity_of(slot: usize, contents: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (slot, contents).hash(&mut hasher);
    hasher.finish()
}

/// A change that a task requested.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The change.
    pub change: FileChange,
    /// Bytes exchanged with the card before names could change; `None` if they could not.
    pub begun: Option<u64>,
    /// Bytes exchanged with the card before the result, and the result.
    pub done: Option<(u64, Result<(), FileError>)>,
}

impl Step {
    /// Returns the step as it would be if power were cut before this byte.
    #[must_use]
    pub fn until(self, byte: u64) -> Step {
        Step {
            change: self.change,
            begun: self.begun.filter(|begun| *begun <= byte),
            done: self.done.filter(|(done, _)| *done <= byte),
        }
    }
}

/// Returns the path of a file, without a leading slash.
pub fn path_of(slot: usize, side: Side) -> String {
    match side {
        Side::Old => format!("UPLOAD{slot}.BIN"),
        Side::New if needs_directory(slot) => format!("{DIRECTORY}/Renamed upload {slot}.bin"),
        Side::New => format!("Renamed upload {slot}.bin"),
    }
}

/// Returns true if the new name of a slot is in the directory.
pub fn needs_directory(slot: usize) -> bool {
    slot % 2 == 1
}

/// Returns true if the short name of a listing is that of the directory.
pub fn is_directory(name: &str) -> bool {
    name.starts_with("KEPT")
}

/// Returns true if the path of a listing is that of a file that tasks change.
pub fn is_upload(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    // The short name of a long one contains a hash if its simple form was taken: `RED8B8~1BIN`.
    let has_hash = name.strip_prefix("RE").is_some_and(|rest| {
        let (hash, tail) = rest.split_at_checked(4).unwrap_or_default();
        tail.starts_with('~') && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    name.starts_with("UPLOAD") || name.starts_with("RENAME") || has_hash
}

/// Returns random changes, each with its delay after the previous one, in ns.
pub fn random_changes(random: &mut Random, most_bytes: u64) -> Vec<(u64, FileChange)> {
    let count = 2 + random.below(14);
    let mut changes = Vec::new();
    let mut push = |random: &mut Random, change| {
        let most_ns = [1_000, 5_000_000, 60_000_000][random.below(3) as usize];
        changes.push((random.below(most_ns), change));
    };
    if random.below(4) > 0 {
        push(random, FileChange::MakeDirectory);
    }
    for _ in 0..count {
        let change = random_change(random, most_bytes);
        push(random, change);
    }
    changes
}

/// Returns changes of every kind, among them some that fail, each with its delay after the previous one, in ns.
pub fn all_kinds() -> Vec<(u64, FileChange)> {
    let upload = |slot, bytes, is_announced| Upload {
        slot,
        serial: bytes as u64,
        bytes,
        is_announced,
    };
    let changes = [
        FileChange::MakeDirectory,
        FileChange::Upload(upload(0, 3000, true)),
        FileChange::Upload(upload(1, 20_000, false)),
        FileChange::Rename(1, Side::Old),
        FileChange::Rename(0, Side::Old),
        FileChange::Upload(upload(0, 6001, true)),
        // Fails, because a file with the new name exists.
        FileChange::Rename(0, Side::Old),
        FileChange::Upload(upload(0, 1200, false)),
        FileChange::Upload(upload(2, 0, false)),
        FileChange::Discard(upload(2, 5000, false)),
        FileChange::Remove(0, Side::Old),
        FileChange::Rename(0, Side::New),
        FileChange::Upload(upload(1, 9000, true)),
        FileChange::Remove(1, Side::New),
        FileChange::Rename(1, Side::Old),
        // Fails, because no file has this name any more.
        FileChange::Remove(1, Side::Old),
    ];
    changes.map(|change| (1_000_000, change)).to_vec()
}

fn random_change(random: &mut Random, most_bytes: u64) -> FileChange {
    let slot = random.below(SLOTS as u64) as usize;
    let side = match random.below(2) {
        0 => Side::Old,
        _ => Side::New,
    };
    let kind = random.below(10);
    let most_bytes = [1, 1500, 20_000, most_bytes][random.below(4) as usize].min(most_bytes);
    let upload = Upload {
        slot,
        serial: random.next_u64(),
        bytes: random.below(most_bytes) as usize,
        is_announced: random.below(2) == 0,
    };
    match kind {
        0..4 => FileChange::Upload(upload),
        4 => FileChange::Discard(upload),
        5..8 => FileChange::Rename(slot, side),
        _ => FileChange::Remove(slot, side),
    }
}

/// Returns the same changes in quicker succession, with other contents, for a short further recording.
pub fn repeated(changes: &[(u64, FileChange)], serial: u64) -> Vec<(u64, FileChange)> {
    let other = |upload: Upload| Upload {
        serial: upload.serial ^ serial,
        ..upload
    };
    let changes = changes.iter().map(|(after_ns, change)| {
        let change = match *change {
            FileChange::Upload(upload) => FileChange::Upload(other(upload)),
            FileChange::Discard(upload) => FileChange::Discard(other(upload)),
            change => change,
        };
        (after_ns / 20, change)
    });
    changes.collect()
}

/// The task that changes files.
pub(crate) struct Changer<'b> {
    pub(crate) desk: &'b ReadDesk<'b>,
    pub(crate) handle: Handle,
    pub(crate) wire: Wire,
    /// The changes so far.
    pub(crate) steps: Rc<RefCell<Vec<Step>>>,
}

impl Changer<'_> {
    /// Carries out changes, one after the other.
    pub(crate) async fn run(self, changes: Vec<(u64, FileChange)>) {
        for (after_ns, change) in changes {
            self.handle.sleep_ns(after_ns).await;
            self.steps.borrow_mut().push(Step {
                change,
                begun: None,
                done: None,
            });
            let result = self.carry_out(change).await;
            let done = Some((self.wire.card().count().bytes, result));
            self.change_last(|step| step.done = done);
        }
    }

    fn change_last(&self, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.steps.borrow_mut().last_mut() {
            change(step);
        }
    }

    async fn carry_out(&self, change: FileChange) -> Result<(), FileError> {
        match change {
            FileChange::MakeDirectory => {
                let path = path(DIRECTORY);
                let change = Change::MakeDirectory { path: &path };
                self.change_names(change).await
            }
            FileChange::Upload(upload) => self.upload(upload, true).await,
            FileChange::Discard(upload) => self.upload(upload, false).await,
            FileChange::Rename(slot, side) => {
                let (from, to) = (path_of(slot, side), path_of(slot, side.other()));
                let (from, to) = (path(&from), path(&to));
                let change = Change::Rename {
                    from: &from,
                    to: &to,
                };
                self.change_names(change).await
            }
            FileChange::Remove(slot, side) => {
                let path = path(&path_of(slot, side));
                self.change_names(Change::Remove { path: &path }).await
            }
        }
    }

    /// Requests a change after which files may have other names or contents.
    async fn change_names(&self, change: Change<'_>) -> Result<(), FileError> {
        let begun = Some(self.wire.card().count().bytes);
        self.change_last(|step| step.begun = begun);
        self.desk.change(change, None).await.map(|_| ())
    }

    async fn upload(&self, upload: Upload, commits: bool) -> Result<(), FileError> {
        let bytes = if upload.is_announced {
            upload.bytes as u64
        } else {
            0
        };
        let number = self
            .desk
            .change(Change::BeginUpload { bytes }, None)
            .await?;
        let result = match self.write(number, &upload).await {
            Ok(()) if commits => {
                let path = path(&path_of(upload.slot, Side::Old));
                let commit = Change::CommitUpload {
                    upload: number,
                    path: &path,
                    bytes: upload.bytes as u32,
                };
                self.change_names(commit).await
            }
            Ok(()) if upload.is_announced => {
                let discard = Change::DiscardUpload { upload: number };
                return self.desk.change(discard, None).await.map(|_| ());
            }
            result => result,
        };
        if result.is_err() || !commits {
            self.desk.abandon_upload(number);
        }
        result
    }

    /// Writes the contents of an upload.
    async fn write(&self, number: u8, upload: &Upload) -> Result<(), FileError> {
        let contents = upload.contents();
        let mut written = 0;
        while written < contents.len() {
            let mut buffer = self.desk.write_buffer().await?;
            let bytes = buffer.bytes();
            let count = bytes.len().min(contents.len() - written);
            bytes[..count].copy_from_slice(&contents[written..written + count]);
            let write = Change::WriteUpload {
                upload: number,
                block: (written / 512) as u32,
                blocks: count.div_ceil(512) as u32,
            };
            self.desk.change(write, Some(buffer)).await?;
            written += count;
        }
        Ok(())
    }
}

fn path(name: &str) -> String {
    format!("/{name}")
}
