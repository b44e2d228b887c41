//! Arbitrary bytes as CSV from an oscilloscope: errors are fine, panics and decreasing times are not.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_trace::{EnergyTrace, read_scope_from};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let mut energy: Option<EnergyTrace> = None;
    let mut sum_uj = 0.0;
    let mut size_uj = 0.0;
    let read = read_scope_from("fuzz", bytes, 1.0, |step| {
        let energy = energy.get_or_insert_with(|| EnergyTrace::from_ns(step.start_ns));
        assert_eq!(energy.end_ns(), step.start_ns);
        assert!(step.start_ns < step.end_ns);
        energy.add(step);
        let uj = step.power_mw * (step.end_ns - step.start_ns) / 1e6;
        sum_uj += uj;
        size_uj += uj.abs();
    });
    match (read, energy) {
        (Ok(scope), Some(energy)) => {
            assert!(scope.samples >= 2);
            // Differences at the borders of bins are rounding errors.
            assert!((energy.total_uj() - sum_uj).abs() <= 1e-3 * size_uj);
        }
        (Ok(_), None) => panic!("samples without a step"),
        (Err(error), _) => {
            let sentence = error.to_string();
            assert!(sentence.starts_with("fuzz"), "{sentence}");
            assert!(!sentence.contains(char::is_control), "{sentence}");
        }
    }
});
