//! Fitting recovers a profile from a simulated trace.

use cardiograph_reproduce::{Experiment, Host, Measure, Query, evaluate, fit};
use cardiograph_sim_card::Profile;
use cardiograph_workload::Operation;

fn run(workload: &str) -> (Experiment, Vec<Operation>) {
    let experiment = Experiment::new("generic-16g-class10", "esp32", workload);
    let operations = experiment.run(1).unwrap();
    let all = operations.all().to_vec();
    (experiment, all)
}

/// A card with the same kind of cells: the search takes nothing else from it.
fn another() -> Profile {
    Profile::named("kingston-8g-class10").unwrap()
}

#[test]
fn stall_spacing_stall_latency_and_median_are_recovered() {
    let (experiment, writes) = run("magod2");
    let found = fit(&writes, &another(), 600, |_| ()).unwrap();
    assert_eq!(found.host, Host::OpensAndCloses);
    let measured = experiment.run(1).unwrap();
    let refit = cardiograph_reproduce::Operations::from(found.refit);
    for (measure, tolerance) in [
        (Measure::Median, 0.02),
        (Measure::StallSpacingMedian, 0.25),
        (Measure::StallLatencyMedian, 0.25),
    ] {
        let query = Query {
            experiment: experiment.clone(),
            measure,
            threshold_ns: 50_000_000,
            offsets_bytes: None,
            phase: None,
            trace: None,
        };
        let ratio = evaluate(&query, &refit).unwrap() / evaluate(&query, &measured).unwrap();
        assert!((ratio - 1.0).abs() < tolerance, "{measure:?}: {ratio}");
    }
}

#[test]
fn no_writes_or_one_huge_write_give_no_fit() {
    assert!(fit(&[], &another(), 10, |_| ()).is_none());
    let write = |length_bytes| Operation {
        kind: cardiograph_workload::OperationKind::Write,
        file: 0,
        offset_bytes: 0,
        length_bytes,
        start_ns: 0,
        end_ns: 1_000_000,
    };
    assert!(fit(&[write(9 << 59)], &another(), 10, |_| ()).is_none());
    // A file that reaches the end of the card continues at its own first block.
    let mut small = another();
    small.capacity_bytes = 64 << 20;
    assert!(fit(&[write(100 << 20)], &small, 4, |_| ()).is_some());
}
