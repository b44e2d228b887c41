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

/// A server for the directory of a recording.
pub struct Served {
    access: Access,
    storage: DirectoryStorage,
    recorder: LiveRecorder,
}

impl Served {
    /// Binds the address to listen on and reports it.
    pub fn open(args: &Record, listen: &str, monitor: &Arc<Monitor>) -> Result<Served, Failure> {
        let storage = DirectoryStorage::open(Path::new(&args.target), monitor.files().clone())
            .map_err(|error| Failure::new(format!("{}: {error}", args.target)))?;
        let access = Access::new(&AccessArgs {
            listen: listen.to_string(),
            write: false,
            auth: args.auth.clone(),
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
