//! Study 5: microSD performance on memory-constrained devices, blinky101 on an LPC43xx, 2019.

use crate::{Order, Phase, Span, Workload};

const STUDY: &str = "MicroSD on memory-constrained devices (blinky101, 2019)";

/// 8 MiB in 512 B blocks.
const BLOCKS_512: Phase = Phase::WRITE;

/// 32 MiB in 2048 B blocks.
const BLOCKS_2048: Phase = Phase {
    bytes_per_call: 2048,
    ..Phase::WRITE
};

const fn naive(phase: Phase) -> Phase {
    Phase {
        span: Span::OpenToClose,
        ..phase
    }
}

pub(super) const WORKLOADS: &[Workload<'static>] = &[
    Workload {
        name: "blinky-naive",
        study: STUDY,
        about: "8 MiB in 512 B blocks; open, append and close for each block",
        phases: &[naive(BLOCKS_512)],
    },
    Workload {
        name: "blinky-stream-512",
        study: STUDY,
        about: "8 MiB in 512 B blocks to one file, kept open",
        phases: &[BLOCKS_512],
    },
    Workload {
        name: "blinky-stream-2048",
        study: STUDY,
        about: "32 MiB in 2048 B blocks to one file, kept open",
        phases: &[BLOCKS_2048],
    },
    Workload {
        name: "blinky-naive-2048",
        study: STUDY,
        about: "32 MiB in 2048 B blocks; open, append and close for each block",
        phases: &[naive(BLOCKS_2048)],
    },
    Workload {
        name: "blinky-stream-32768",
        study: STUDY,
        about: "4096 blocks of 32 KiB to one file, kept open",
        phases: &[Phase {
            calls_per_file: 4096,
            bytes_per_call: 32_768,
            ..Phase::WRITE
        }],
    },
    Workload {
        name: "blinky-interleaved",
        study: STUDY,
        about: "8 MiB in 512 B blocks to each of two files in turn, both kept open",
        phases: &[Phase {
            files: 2,
            order: Order::RoundRobin,
            ..BLOCKS_512
        }],
    },
];
