//! Study 2: Flash Benchmark, an Italian wiki page. `dd` of zeros, then `sync`; MB means 10^6 bytes there.
//!
//! The study wrote to random offsets of a raw 2 GB device; here the offsets are in one large file, so
//! transfers overlap more often. The remount in the study, which needs root, is replaced by a sync that
//! waits. `cardiograph flash-benchmark` does both as in the study.

use crate::{Fill, Phase, Span, Sync, Workload};

const STUDY: &str = "Flash Benchmark (wiki)";

const MB: u32 = 1_000_000;

/// A 1 MB file in one call, with the sync inside the measured time.
const FILE: Phase = Phase {
    calls_per_file: 1,
    bytes_per_call: MB,
    span: Span::File,
    sync_file: Sync::Wait,
    fill: Fill::Zeros,
    ..Phase::WRITE
};

const fn file_of_mb(mb: u32, passes: u32) -> Phase {
    Phase {
        calls_per_file: mb,
        passes,
        ..FILE
    }
}

/// Transfers of `mb` MB each to random offsets in a 200 MB file.
const fn transfers_of_mb(mb: u32, passes: u32) -> Phase {
    Phase {
        calls_per_file: mb,
        passes,
        jump_within_bytes: 200 * MB as u64,
        jump_every_calls: mb,
        ..FILE
    }
}

/// A total of 1 MiB, written as chunks of `kib` KiB at random offsets in a 64 MiB file.
const fn chunks_of_kib(kib: u32) -> Phase {
    Phase {
        calls_per_file: 1024 / kib,
        bytes_per_call: kib * 1024,
        passes: 20,
        jump_within_bytes: 64 << 20,
        ..FILE
    }
}

/// A 1 MB file rewritten ten times.
const REWRITTEN: Phase = Phase {
    passes: 10,
    sync_file: Sync::Never,
    ..FILE
};

const fn scenario(sync_file: Sync, sync_end: Sync, write_through: bool) -> Phase {
    Phase {
        sync_file,
        sync_end,
        write_through,
        ..REWRITTEN
    }
}

pub(super) const WORKLOADS: &[Workload<'static>] = &[
    Workload {
        name: "file-size",
        study: STUDY,
        about: "10, 10, 3 and 1 files of 1, 10, 100 and 1000 MB, each synced",
        phases: &[
            file_of_mb(1, 10),
            file_of_mb(10, 10),
            file_of_mb(100, 3),
            file_of_mb(1000, 1),
        ],
    },
    Workload {
        name: "filesystems",
        study: STUDY,
        about: "1, 10 and 100 MB at random offsets within 200 MB, then files of 1 to 1000 MB, each synced; run it once per file system",
        phases: &[
            transfers_of_mb(1, 20),
            transfers_of_mb(10, 20),
            transfers_of_mb(100, 20),
            file_of_mb(1, 20),
            file_of_mb(10, 20),
            file_of_mb(100, 3),
            file_of_mb(1000, 1),
        ],
    },
    Workload {
        name: "cache-size",
        study: STUDY,
        about: "transfers of 25 to 100 MB at random offsets within 200 MB; throughput drops once a card's fast area is full",
        phases: &[
            transfers_of_mb(25, 5),
            transfers_of_mb(32, 5),
            transfers_of_mb(33, 5),
            transfers_of_mb(35, 5),
            transfers_of_mb(38, 5),
            transfers_of_mb(50, 5),
            transfers_of_mb(100, 5),
        ],
    },
    Workload {
        name: "chunk-sweep",
        study: STUDY,
        about: "1 MiB at random offsets within 64 MiB, in chunks of 1 MiB to 1 KiB",
        phases: &[
            chunks_of_kib(1024),
            chunks_of_kib(512),
            chunks_of_kib(32),
            chunks_of_kib(8),
            chunks_of_kib(1),
        ],
    },
    Workload {
        name: "fs-block",
        study: STUDY,
        about: "100 MiB in chunks of 1 MiB and 128 KiB, then 100 files of 1 MiB in chunks of 8 KiB and 1 MiB",
        phases: &[
            Phase {
                calls_per_file: 100,
                bytes_per_call: 1 << 20,
                ..FILE
            },
            Phase {
                calls_per_file: 800,
                bytes_per_call: 1 << 17,
                ..FILE
            },
            Phase {
                files: 100,
                calls_per_file: 128,
                bytes_per_call: 1 << 13,
                ..FILE
            },
            Phase {
                files: 100,
                calls_per_file: 1,
                bytes_per_call: 1 << 20,
                ..FILE
            },
        ],
    },
    Workload {
        name: "sync-scenarios",
        study: STUDY,
        about: "a 1 MB file rewritten ten times in each of nine published sync scenarios",
        phases: &[
            scenario(Sync::Start, Sync::Wait, false),
            scenario(Sync::Never, Sync::Wait, false),
            scenario(Sync::Wait, Sync::Never, false),
            scenario(Sync::Wait, Sync::Wait, true),
            scenario(Sync::Never, Sync::Never, true),
            scenario(Sync::Never, Sync::Wait, false),
            scenario(Sync::Never, Sync::Wait, false),
            scenario(Sync::Never, Sync::Wait, false),
            scenario(Sync::Start, Sync::Wait, false),
        ],
    },
];
