//! Study 3: ESP32-S3 library comparison, a Qiita article, November 2024.
//!
//! The study states pauses of 3 s and 5 s; here a run pauses 3 s after each file, and 5 s after the last of
//! the three files of an iteration.

use crate::{Phase, Workload};

/// A file of `kib` KiB in 512 B calls, followed by a pause.
const fn file_of_kib(kib: u32, pause_s: u32) -> Phase {
    Phase {
        calls_per_file: kib * 2,
        pause_us: pause_s * 1_000_000,
        ..Phase::WRITE
    }
}

const ITERATION: [Phase; 3] = [
    file_of_kib(64, 3),
    file_of_kib(256, 3),
    file_of_kib(1024, 5),
];

const ITERATIONS: usize = 10;

const ALL: [Phase; ITERATIONS * ITERATION.len()] = {
    let mut phases = [Phase::WRITE; ITERATIONS * ITERATION.len()];
    let mut i = 0;
    while i < phases.len() {
        phases[i] = ITERATION[i % ITERATION.len()];
        i += 1;
    }
    phases
};

pub(super) const WORKLOADS: &[Workload<'static>] = &[Workload {
    name: "library-comparison",
    study: "ESP32-S3 library comparison (Qiita, 2024)",
    about: "files of 64 KiB, 256 KiB and 1 MiB in 512 B writes, ten times, with pauses of 3 s and 5 s",
    phases: &ALL,
}];
