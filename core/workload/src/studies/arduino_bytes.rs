//! Study 4: Arduino Mega 2560 and SdFat, one byte at a time.

use crate::{Fill, OperationKind, Order, Phase, Workload};

const STUDY: &str = "Arduino Mega 2560, byte by byte (wiki)";

const SINGLE: Phase = Phase {
    calls_per_file: 4096,
    bytes_per_call: 1,
    fill: Fill::Letter,
    ..Phase::WRITE
};

const MULTI: Phase = Phase {
    files: 4,
    order: Order::RoundRobin,
    ..SINGLE
};

const fn read(phase: Phase) -> Phase {
    Phase {
        operation: OperationKind::Read,
        ..phase
    }
}

pub(super) const WORKLOADS: &[Workload<'static>] = &[
    Workload {
        name: "byte-single-write",
        study: STUDY,
        about: "4096 bytes to one file, one at a time",
        phases: &[SINGLE],
    },
    Workload {
        name: "byte-single-read",
        study: STUDY,
        about: "4096 bytes from one file, one at a time",
        phases: &[read(SINGLE)],
    },
    Workload {
        name: "byte-multi-write",
        study: STUDY,
        about: "4096 bytes to each of four files, one byte to each in turn",
        phases: &[MULTI],
    },
    Workload {
        name: "byte-multi-read",
        study: STUDY,
        about: "4096 bytes from each of four files, one byte from each in turn",
        phases: &[read(MULTI)],
    },
];
