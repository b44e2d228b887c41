//! Study 3: ESP32-S3 library comparison, a Qiita article, November 2024.

use crate::{Phase, Workload};

/// A file of some KiB in 512 B calls, ten times, with a pause after each.
const fn file_of_kib(kib: u32, pause_s: u32) -> Phase {
    Phase {
        calls_per_file: kib * 2,
        passes: 10,
        pause_us: pause_s * 1_000_000,
        ..Phase::WRITE
    }
}

pub(super) const WORKLOADS: &[Workload<'static>] = &[Workload {
    name: "library-comparison",
    study: "ESP32-S3 library comparison (Qiita, 2024)",
    about: "files of 64 KiB, 256 KiB and 1 MiB in 512 B writes, ten times, 3 s and then 5 s apart",
    phases: &[
        file_of_kib(64, 3),
        file_of_kib(256, 3),
        file_of_kib(1024, 3),
        file_of_kib(64, 5),
        file_of_kib(256, 5),
        file_of_kib(1024, 5),
    ],
}];
