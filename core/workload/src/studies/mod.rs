//! Every published experiment that writes or reads files, one module per study.

mod arduino_bytes;
mod blinky;
mod flash_benchmark;
mod library_comparison;
mod magod;

use crate::Workload;

/// Default workload of `bench`: one file written without pauses, like a logger at its highest rate.
pub const DEFAULT: &str = "blinky-stream-512";

/// All workloads, grouped by study.
pub const WORKLOADS: &[&[Workload<'static>]] = &[
    magod::WORKLOADS,
    flash_benchmark::WORKLOADS,
    library_comparison::WORKLOADS,
    arduino_bytes::WORKLOADS,
    blinky::WORKLOADS,
];

/// Returns the workload with this name.
pub fn workload(name: &str) -> Option<&'static Workload<'static>> {
    WORKLOADS.iter().copied().flatten().find(|w| w.name == name)
}

const fn valid(workloads: &[Workload]) -> bool {
    let mut w = 0;
    while w < workloads.len() {
        let mut p = 0;
        while p < workloads[w].phases.len() {
            if workloads[w].phases[p].check().is_err() {
                return false;
            }
            p += 1;
        }
        w += 1;
    }
    true
}

const _: () = {
    let mut study = 0;
    while study < WORKLOADS.len() {
        assert!(valid(WORKLOADS[study]));
        study += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn names_are_unique_and_include_the_default() {
        let names: Vec<_> = WORKLOADS
            .iter()
            .copied()
            .flatten()
            .map(|w| w.name)
            .collect();
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        assert!(workload(DEFAULT).is_some());
        assert!(workload("no such").is_none());
    }

    #[test]
    fn every_published_experiment_has_a_workload() {
        let published = "magod2 magod2-kept-open read-sweep file-size filesystems cache-size \
            chunk-sweep fs-block sync-scenarios library-comparison byte-single-write \
            byte-single-read byte-multi-write byte-multi-read blinky-naive blinky-stream-512 \
            blinky-stream-2048";
        for name in published.split_whitespace() {
            assert!(workload(name).is_some(), "{name}");
        }
    }

    /// Study 1 pauses between writes, study 3 between files, and no other study pauses.
    #[test]
    fn only_studies_with_pauses_have_any() {
        for workloads in WORKLOADS {
            let phases = || workloads.iter().flat_map(|workload| workload.phases);
            let delays = phases().any(|phase| phase.delay_us > 0);
            let pauses = phases().any(|phase| phase.pause_us > 0);
            let name = workloads[0].name;
            assert_eq!(delays, name == "magod2", "{name}");
            assert_eq!(pauses, name == "library-comparison", "{name}");
        }
    }

    #[test]
    fn magod2_has_the_published_parameters() {
        let phase = workload("magod2").unwrap().phases[0];
        assert_eq!(
            (phase.files, phase.calls_per_file, phase.bytes_per_call),
            (10, 1000, 100)
        );
        assert_eq!((phase.delay_us, phase.bytes()), (100_000, 1_000_000));
    }
}
