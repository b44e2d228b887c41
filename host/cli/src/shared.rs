//! Options of every command that writes files or shows progress.

use cardiograph_system::identity;
use cardiograph_trace::Existing;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options that such commands share.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Shared {
    /// Replace existing output files; without it, they are never overwritten
    #[arg(long)]
    pub force: bool,

    /// Hide progress and the names of files written; errors and warnings are still shown
    #[arg(short, long)]
    pub quiet: bool,
}

// One process runs one command, and its outputs are opened in many places.
static REPLACES: AtomicBool = AtomicBool::new(false);
static IS_QUIET: AtomicBool = AtomicBool::new(false);
static INPUTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
static BEHIND: OnceLock<(String, Vec<PathBuf>)> = OnceLock::new();

impl Shared {
    /// Applies the options to the whole process. Not even --force replaces one of the inputs.
    pub fn apply<I: AsRef<Path>>(self, inputs: impl IntoIterator<Item = I>) {
        let inputs = inputs
            .into_iter()
            .filter_map(|path| path.as_ref().canonicalize().ok());
        INPUTS.get_or_init(|| inputs.collect());
        REPLACES.store(self.force, Ordering::Relaxed);
        IS_QUIET.store(self.quiet, Ordering::Relaxed);
    }
}

/// Returns the treatment of existing files that the command line asks for.
pub fn existing() -> Existing {
    match REPLACES.load(Ordering::Relaxed) {
        true => Existing::Replace,
        false => Existing::Keep,
    }
}

/// Keeps outputs from replacing files behind a disk. Not even --force replaces one of them.
pub fn protect(device: &str, behind: Vec<PathBuf>) {
    BEHIND.get_or_init(|| (device.to_string(), behind));
}

/// Returns the reason why the command needs this file, so that it cannot be an output.
pub fn use_of(path: &Path) -> Option<String> {
    let inputs = INPUTS.get().map(Vec::as_slice).unwrap_or_default();
    if path.canonicalize().is_ok_and(|path| inputs.contains(&path)) {
        return Some(String::from("is an input of this command"));
    }
    let identity = |path: &Path| path.metadata().ok().map(|file| identity(&file));
    let (device, behind) = BEHIND.get()?;
    let output = identity(path)?;
    let mut behind = behind.iter();
    behind
        .any(|file| identity(file) == Some(output))
        .then(|| format!("stores the data of {device}, which this command measures"))
}

/// Returns true if progress and notes are not to be shown.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}
