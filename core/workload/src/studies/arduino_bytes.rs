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
        about: "4096 writes of one byte to one file",
        phases: &[SINGLE],
    },
    Workload {
        name: "byte-single-read",
        study: STUDY,
        about: "4096 reads of one byte from one file",
        phases: &[read(SINGLE)],
    },
    Workload {
        name: "byte-multi-write",
        study: STUDY,
        about: "4096 writes of one byte to each of four files, in turn",
        phases: &[MULTI],
    },
    Workload {
        name: "byte-multi-read",
        study: STUDY,
        about: "4096 reads of one byte from each of four files, in turn",
        phases: &[read(MULTI)],
    },
];
