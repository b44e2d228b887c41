//! Errors as guests see them.

use super::*;
use crate::fat::error::refusal_of;
use crate::fat::{Error, Refusal};
use crate::guest::FileError;
use std::collections::BTreeSet;
use std::string::ToString;

const REFUSALS: [Refusal; 6] = [
    Refusal::Root,
    Refusal::Hidden,
    Refusal::Unfinished,
    Refusal::ReadOnly,
    Refusal::Recordings,
    Refusal::IntoItself,
];

/// The error's text, without a type of its own for the card's.
fn text_of(refusal: Refusal) -> String {
    Error::<core::fmt::Error>::Forbidden(refusal).to_string()
}

#[test]
fn every_refusal_says_what_to_do() {
    let texts: BTreeSet<String> = REFUSALS.into_iter().map(text_of).collect();
    assert_eq!(texts.len(), REFUSALS.len());
    for text in texts {
        let (what, remedy) = text.split_once("; ").unwrap();
        assert!(what.len() > 15 && remedy.len() > 10, "{text}");
    }
}

#[test]
fn a_guest_learns_why_a_change_was_refused() {
    for (error, due) in [
        (Error::NoSpace { longest_blocks: 7 }, FileError::Full),
        (Error::DirectoryFull(SHORT), FileError::Full),
        (Error::TooLong, FileError::TooLong),
        (Error::TooManyUploads, FileError::Busy),
        (Error::NotFound, FileError::NotFound),
        (Error::NotDirectory, FileError::NotDirectory),
        (Error::IsDirectory, FileError::IsDirectory),
        (Error::NameInvalid, FileError::NameInvalid),
        (Error::Exists, FileError::Exists),
        (Error::NotEmpty, FileError::NotEmpty),
        (Error::NoSuchUpload, FileError::Changed),
        (Error::Forbidden(Refusal::Hidden), FileError::Hidden),
        (Error::Forbidden(Refusal::Unfinished), FileError::Recording),
        (Error::Forbidden(Refusal::Recordings), FileError::Recording),
        (Error::Forbidden(Refusal::Root), FileError::ReadOnly),
        (Error::Forbidden(Refusal::ReadOnly), FileError::ReadOnly),
        (Error::DamagedDirectory, FileError::Damaged),
        (Error::DamagedChain, FileError::Damaged),
    ] {
        assert_eq!(refusal_of::<NoPower>(&error), Some(due));
    }
    // The card or the volume has failed.
    for error in [Error::Card(NoPower), Error::NotMounted, Error::DamagedRoot] {
        assert_eq!(refusal_of(&error), None);
    }
}
