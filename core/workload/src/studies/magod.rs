//! Study 1: MagOD2, B.Sc. thesis, University of Twente, 2020. Figure numbers are those of the thesis.

use crate::{Fill, OperationKind, Phase, Span, Workload};

const STUDY: &str = "MagOD2 (thesis, 2020)";

/// 1000 lines of 100 B to each of ten files, 100 ms apart.
const LINES: Phase = Phase {
    files: 10,
    calls_per_file: 1000,
    bytes_per_call: 100,
    span: Span::OpenToClose,
    delay_us: 100_000,
    fill: Fill::Line,
    ..Phase::WRITE
};

const KEPT_OPEN: Phase = Phase {
    span: Span::Call,
    ..LINES
};

const KIB: u32 = 1024;

/// File sizes of the read sweep in KiB: the usual cluster sizes, and just above some of them.
const READ_KIB: [u32; 13] = [1, 2, 4, 5, 8, 9, 16, 32, 64, 128, 256, 512, 1024];

/// Buffer sizes in bytes, for a file of 1 MiB.
const READ_BUFFERS: [u32; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];

const READ_SWEEP: [Phase; READ_KIB.len() + READ_BUFFERS.len()] = {
    let mut phases = [Phase::WRITE; READ_KIB.len() + READ_BUFFERS.len()];
    let mut i = 0;
    while i < phases.len() {
        let (file, buffer) = if i < READ_KIB.len() {
            (READ_KIB[i] * KIB, 512)
        } else {
            (1024 * KIB, READ_BUFFERS[i - READ_KIB.len()])
        };
        phases[i] = Phase {
            operation: OperationKind::Read,
            calls_per_file: file / buffer,
            bytes_per_call: buffer,
            passes: 10,
            span: Span::File,
            ..Phase::WRITE
        };
        i += 1;
    }
    phases
};

/// A workload of this study.
const fn workload(
    name: &'static str,
    about: &'static str,
    phases: &'static [Phase],
) -> Workload<'static> {
    Workload {
        name,
        study: STUDY,
        about,
        phases,
    }
}

pub(super) const WORKLOADS: &[Workload<'static>] = &[
    workload(
        "magod2",
        "10 files of 1000 lines of 100 B, one line every 100 ms; open, append and close for each line (figures 4.6, 4.8)",
        &[LINES],
    ),
    workload(
        "magod2-kept-open",
        "10 files of 1000 lines of 100 B, one line every 100 ms; files kept open (figures 4.9, 4.10)",
        &[KEPT_OPEN],
    ),
    workload(
        "magod2-4.1",
        "one file of 1000 lines of 100 B, 125 ms apart; open, append and close for each line",
        &[Phase {
            files: 1,
            delay_us: 125_000,
            ..LINES
        }],
    ),
    workload(
        "magod2-4.1-kept-open",
        "one file of 1000 lines of 100 B, 125 ms apart; file kept open (table 4.2)",
        &[Phase {
            span: Span::Call,
            files: 1,
            delay_us: 125_000,
            ..LINES
        }],
    ),
    workload(
        "magod2-4.7",
        "one file of 2048 lines of 64 B; open, append and close for each line",
        &[Phase {
            files: 1,
            calls_per_file: 2048,
            bytes_per_call: 64,
            ..LINES
        }],
    ),
    workload(
        "magod2-4.11",
        "1000 files of 10 lines of 100 B in one folder; open, append and close for each line",
        &[Phase {
            files: 1000,
            calls_per_file: 10,
            ..LINES
        }],
    ),
    workload(
        "magod2-4.12",
        "one file of 20000 lines of 100 B; open, append and close for each line",
        &[Phase {
            files: 1,
            calls_per_file: 20_000,
            ..LINES
        }],
    ),
    workload(
        "magod2-4.13-1",
        "2 MB in lines of 100 B to one file, kept open",
        &[Phase {
            files: 1,
            calls_per_file: 20_000,
            ..KEPT_OPEN
        }],
    ),
    workload(
        "magod2-4.13-50",
        "2 MB in lines of 100 B to 50 files, kept open",
        &[Phase {
            files: 50,
            calls_per_file: 400,
            ..KEPT_OPEN
        }],
    ),
    workload(
        "magod2-4.13-250",
        "2 MB in lines of 100 B to 250 files, each in a folder of its own, kept open",
        &[Phase {
            files: 250,
            calls_per_file: 80,
            folder_per_file: true,
            ..KEPT_OPEN
        }],
    ),
    workload(
        "read-sweep",
        "files of 1 KiB to 1 MiB read ten times with a buffer of 512 B, and 1 MiB with buffers of 64 B to 8 KiB",
        &READ_SWEEP,
    ),
];
