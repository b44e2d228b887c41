//! The files that other tasks change: the states in which a card may hold them.

use crate::changes::{
    FileChange, SLOTS, Side, Step, identity_of, is_directory, needs_directory, path_of,
};
use crate::fat::Listing;
use crate::foreign::Files;
use crate::session::Session;
use cardiograph_recorder::FileError;
use std::collections::BTreeSet;

/// The uploaded files on a card, each identified by its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    has_directory: bool,
    /// The file under each of the two names of a slot.
    slots: [[Option<u64>; 2]; SLOTS],
}

impl State {
    /// Returns the state after a change, or the error with which it fails.
    fn after(&self, change: FileChange) -> Result<State, FileError> {
        let mut state = self.clone();
        match change {
            FileChange::MakeDirectory if self.has_directory => return Err(FileError::Exists),
            FileChange::MakeDirectory => state.has_directory = true,
            FileChange::Upload(upload) => {
                state.slots[upload.slot][Side::Old as usize] = Some(upload.identity());
            }
            FileChange::Discard(_) => (),
            FileChange::Rename(slot, from) => {
                let file = state.slots[slot][from as usize].take();
                let file = file.ok_or(FileError::NotFound)?;
                if needs_directory(slot) && !self.has_directory {
                    return Err(FileError::NotFound);
                }
                let other = &mut state.slots[slot][from.other() as usize];
                if other.replace(file).is_some() {
                    return Err(FileError::Exists);
                }
            }
            FileChange::Remove(slot, side) => {
                let file = state.slots[slot][side as usize].take();
                file.ok_or(FileError::NotFound)?;
            }
        }
        Ok(state)
    }
}

/// All states in which a card may be.
struct States(BTreeSet<State>);

impl States {
    /// Adds the results of a step. A step without a result, or with a read error, was carried out entirely or not
    /// at all.
    fn take(&mut self, step: &Step, may_fail: impl Fn(FileError) -> bool) -> Result<(), String> {
        let after = |state: &State| state.after(step.change);
        let states: BTreeSet<State> = match step.done {
            Some((_, Ok(()))) => self.0.iter().filter_map(|it| after(it).ok()).collect(),
            None if step.begun.is_none() => return Ok(()),
            Some((_, Err(FileError::Read(_)))) if step.begun.is_none() => return Ok(()),
            None | Some((_, Err(FileError::Read(_)))) => {
                let carried_out = self.0.iter().filter_map(|it| after(it).ok());
                carried_out.chain(self.0.iter().cloned()).collect()
            }
            Some((_, Err(error))) => {
                let fails = |state: &&State| may_fail(error) || after(state) == Err(error);
                self.0.iter().filter(fails).cloned().collect()
            }
        };
        if states.is_empty() {
            return Err(format!("{step:?} cannot follow {:?}", self.0));
        }
        self.0 = states;
        Ok(())
    }
}

/// Number of uploaded files on a card, and of changes that a power cut interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    /// Files.
    pub files: u64,
    /// Interrupted changes.
    pub interrupted: u64,
}

/// Removes the uploaded files from the files of a card after checking that each is whole, and that all changes
/// that were reported done are there.
///
/// # Errors
/// The first violation.
pub fn judge(
    sessions: &[Session],
    card: usize,
    is_roomy: bool,
    listing: &Listing,
    files: &mut Files,
) -> Result<Changed, String> {
    let on_card = |session: &&Session| session.card_of_changes() == card;
    let mut states = States(BTreeSet::from([State::default()]));
    let mut changed = Changed::default();
    for session in sessions.iter().filter(on_card) {
        // Faults may occur between the steps of a change.
        let may_fail = |error| session.has_faults || error == FileError::Full && !is_roomy;
        for step in &session.steps {
            states.take(step, may_fail)?;
            let is_interrupted = step.begun.is_some() && step.done.is_none();
            changed.interrupted += u64::from(is_interrupted);
        }
    }
    let found = found(listing, files);
    changed.files = found.slots.iter().flatten().flatten().count() as u64;
    match states.0.contains(&found) {
        true => Ok(changed),
        false => {
            let last: Vec<_> = sessions.iter().flat_map(|it| &it.steps).collect();
            Err(format!(
                "the uploaded files are {found:?}, expected one of {:?} after {last:?}",
                states.0
            ))
        }
    }
}

/// Removes the uploaded files from the files of a card, and returns their state.
fn found(listing: &Listing, files: &mut Files) -> State {
    let mut state = State {
        has_directory: listing.keys().any(|name| is_directory(name)),
        ..State::default()
    };
    for (slot, names) in state.slots.iter_mut().enumerate() {
        for side in [Side::Old, Side::New] {
            let contents = files.remove(&path_of(slot, side));
            names[side as usize] = contents.map(|contents| identity_of(slot, &contents));
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::{Changed, judge};
    use crate::changes::{FileChange, Side, Step, Upload, path_of};
    use crate::fat::Listing;
    use crate::foreign::Files;
    use crate::session::Session;
    use cardiograph_recorder::FileError;
    use std::slice::from_ref;

    const UPLOAD: Upload = Upload {
        slot: 0,
        serial: 1,
        bytes: 1000,
        is_announced: true,
    };

    fn step(change: FileChange, result: Option<Result<(), FileError>>) -> Step {
        Step {
            change,
            begun: Some(1),
            done: result.map(|result| (2, result)),
        }
    }

    /// Judges a card with uploads of slot 0 under these names.
    fn judged(steps: &[Step], files: &[(Side, Vec<u8>)]) -> Result<Changed, String> {
        let mut session = Session::of_recovery([]);
        session.steps = steps.to_vec();
        let files = files
            .iter()
            .map(|(side, bytes)| (path_of(0, *side), bytes.clone()));
        judge(
            &[session],
            0,
            true,
            &Listing::new(),
            &mut files.collect::<Files>(),
        )
    }

    #[test]
    fn an_interrupted_upload_is_whole_or_absent() {
        let steps = [step(FileChange::Upload(UPLOAD), None)];
        let whole = UPLOAD.contents();
        assert!(judged(&steps, &[]).is_ok());
        assert!(judged(&steps, &[(Side::Old, whole.clone())]).is_ok());
        assert!(judged(&steps, &[(Side::Old, whole[..999].to_vec())]).is_err());
        assert!(judged(&steps, &[(Side::New, whole.clone())]).is_err());
        let mut damaged = whole;
        damaged[500] ^= 1;
        assert!(judged(&steps, &[(Side::Old, damaged)]).is_err());
        // Nothing has a name before it is requested.
        let step = Step {
            begun: None,
            ..steps[0]
        };
        assert!(judged(&[step], &[(Side::Old, UPLOAD.contents())]).is_err());
    }

    #[test]
    fn a_renamed_file_has_exactly_one_name() {
        let upload = step(FileChange::Upload(UPLOAD), Some(Ok(())));
        let rename = FileChange::Rename(0, Side::Old);
        let [old, new] = [Side::Old, Side::New].map(|side| (side, UPLOAD.contents()));
        for (result, holds) in [
            (None, [false, true, true]),
            (Some(Ok(())), [false, false, true]),
        ] {
            let steps = [upload, step(rename, result)];
            let files: [&[_]; 3] = [&[], from_ref(&old), from_ref(&new)];
            let are_right = files.map(|files| judged(&steps, files).is_ok());
            assert_eq!(are_right, holds, "{result:?}");
            assert!(judged(&steps, &[old.clone(), new.clone()]).is_err());
        }
    }

    #[test]
    fn a_change_fails_only_for_a_reason() {
        let remove = FileChange::Remove(0, Side::Old);
        let upload = step(FileChange::Upload(UPLOAD), Some(Ok(())));
        let missing = step(remove, Some(Err(FileError::NotFound)));
        assert!(judged(&[missing], &[]).is_ok());
        assert!(judged(&[upload, missing], &[(Side::Old, UPLOAD.contents())]).is_err());
        assert!(judged(&[step(remove, Some(Ok(())))], &[]).is_err());
        let full = step(FileChange::Upload(UPLOAD), Some(Err(FileError::Full)));
        assert!(judged(&[full], &[]).is_err());
    }
}
