//! Results of functions, with their sentences.

use cardiograph_recorder::StartError;
use core::ffi::CStr;

/// Result of a function; the numbers of `cardiograph_status` in the header.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    NullPointer = 1,
    WrongSize = 2,
    NotBegun = 3,
    AlreadyBegun = 4,
    NotReady = 5,
    SampleLost = 6,
    RingTooSmall = 7,
    LineTooLong = 8,
    FileTooSmall = 9,
    CardFailed = 10,
    NoFileSystem = 11,
    Ended = 12,
    Failed = 13,
    HeaderInvalid = 14,
}

impl<C, V> From<StartError<C, V>> for Status {
    fn from(error: StartError<C, V>) -> Status {
        match error {
            StartError::Card(_) => Status::CardFailed,
            StartError::Volume(_) => Status::NoFileSystem,
            StartError::RingTooSmall => Status::RingTooSmall,
            StartError::FileTooSmall => Status::FileTooSmall,
            StartError::LineTooLong => Status::LineTooLong,
            // Streams and prefixes: a recorder of this library always has one stream.
            _ => Status::Failed,
        }
    }
}

/// Returns the sentence of a status.
pub fn text(status: u32) -> &'static CStr {
    match status {
        0 => c"no error",
        1 => c"a required pointer or callback is NULL; set all of them",
        2 => c"options_bytes is wrong; set it to sizeof(cardiograph_options) and use the header of this library",
        3 => c"no recording has begun; call cardiograph_begin first",
        4 => c"this recorder has already begun; use one that is zero",
        5 => c"the recorder is not ready for samples; wait until cardiograph_is_ready returns true",
        6 => c"the sample is lost: the ring is full, or the line is too long; the file names the gap",
        7 => c"the ring is too small; provide at least 1024 bytes",
        8 => c"a line or the header may be too long; shorten it to 405 bytes, newline included",
        9 => c"files would be too short; allow at least 65536 bytes per file",
        10 => c"the card does not respond or failed; check the card and its wiring",
        11 => c"the card has no usable file system or no space; format it as FAT16 or FAT32, or free some space",
        12 => c"the recording has ended",
        13 => c"the recording has failed; the first failing call returned the reason",
        14 => c"the header is not UTF-8; use letters of ASCII or UTF-8",
        _ => c"unknown status",
    }
}
