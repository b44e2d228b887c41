//! A server next to a recording in a directory.

use super::args::Record;
use crate::failure::{Failure, print_error};
use crate::serve::{Access, AccessArgs};
use cardiograph_record::Monitor;
use cardiograph_serve::{DirectoryStorage, LiveRecorder};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Space for a recording whose length nobody knows.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// A server for the directory of a recording.
pub struct Served {
    access: Access,
    storage: DirectoryStorage,
    recorder: LiveRecorder,
}

impl Served {
    /// Binds the address to listen on and reports it. `bytes` is the size of all samples, if it is known.
    pub fn open(
        args: &Record,
        listen: &str,
        monitor: &Arc<Monitor>,
        bytes: Option<u64>,
    ) -> Result<Served, Failure> {
        let storage = DirectoryStorage::open(Path::new(&args.target), monitor.files().clone())
            .map_err(|error| Failure::new(format!("{}: {error}", args.target)))?;
        let keep_free = args.keep_free.unwrap_or_else(|| needed_bytes(args, bytes));
        let storage = storage.keeping_free(Some(keep_free));
        let access = Access::new(&AccessArgs {
            listen: listen.to_string(),
            write: false,
            auth: args.auth.clone(),
            public: args.public.clone(),
            keep_free: None,
        })?;
        if !access.is_read_only() {
            storage.remove_leftovers();
        }
        print_error(&format!("Serving {} at {}\n", args.target, access.urls()));
        Ok(Served {
            access,
            storage,
            recorder: LiveRecorder::new(Arc::clone(monitor)),
        })
    }
}

/// Returns the space that a recording may need: its samples with marks or the heads of blocks, and the files that are
/// preallocated.
fn needed_bytes(args: &Record, bytes: Option<u64>) -> u64 {
    let files = args.file_size.saturating_mul(2 * u64::from(args.streams));
    match bytes {
        Some(bytes) => bytes.saturating_add(bytes / 8).saturating_add(files),
        None => UNKNOWN_BYTES,
    }
}

/// Runs the recording while a separate thread serves its files.
pub fn while_served<T>(server: Option<Served>, record: impl FnOnce() -> T) -> Result<T, Failure> {
    let Some(server) = server else {
        return Ok(record());
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        // The storage moves to the thread that serves the files.
        let serving = scope.spawn(move || {
            let is_stopped = || is_over.load(Ordering::Relaxed);
            server
                .access
                .serve(&server.storage, &server.recorder, &is_stopped)
        });
        let recorded = record();
        is_over.store(true, Ordering::Relaxed);
        let served = serving.join().unwrap_or_else(|panic| resume_unwind(panic));
        served.map(|()| recorded)
    })
}
