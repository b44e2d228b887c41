//! Varying one physical value changes latencies as theory predicts.

use cardiograph_reproduce::{Experiment, Measure, Query, evaluate};

fn experiment(workload: &str, set: &[(&str, &str)]) -> Experiment {
    let set = set.iter();
    Experiment {
        set: set
            .map(|(path, value)| (path.to_string(), value.to_string()))
            .collect(),
        ..Experiment::new("class10-16g", "esp32", workload)
    }
}

/// Returns the mean of a measure over a few seeds.
fn number(workload: &str, set: &[(&str, &str)], measure: Measure, threshold_ms: u64) -> f64 {
    let experiment = experiment(workload, set);
    let query = Query {
        experiment: experiment.clone(),
        measure,
        threshold_ns: threshold_ms * 1_000_000,
        offsets_bytes: None,
        phase: None,
        trace: None,
    };
    let numbers = (1..=SEEDS).map(|seed| {
        let operations = experiment.run(seed).unwrap();
        evaluate(&query, &operations).expect("the run has this number")
    });
    numbers.sum::<f64>() / SEEDS as f64
}

fn assert_near(actual: f64, expected: f64, tolerance: f64) {
    let ratio = actual / expected;
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{actual} instead of {expected}, a factor of {ratio}"
    );
}

const SEEDS: u64 = 2;
const LOG_BLOCKS: &str = "card.controller.log_blocks";
const PAGES: &str = "card.flash.pages_per_block";

#[test]
fn stall_spacing_grows_with_the_number_of_log_blocks() {
    let spacing = |blocks| {
        number(
            "magod2",
            &[(LOG_BLOCKS, blocks)],
            Measure::StallSpacingMedian,
            50,
        )
    };
    assert_near(spacing("40") / spacing("20"), 2.0, 0.1);
}

#[test]
fn stall_spacing_grows_with_the_pages_per_block() {
    let spacing = |pages| {
        let set = [
            (PAGES, pages),
            ("card.capacity_bytes", "16_106_127_360"),
            (LOG_BLOCKS, "20"),
        ];
        number("magod2", &set, Measure::StallSpacingMedian, 60)
    };
    assert_near(spacing("128") / spacing("64"), 2.0, 0.1);
}

#[test]
fn stall_latency_grows_with_the_pages_per_block() {
    // A merge copies 64 more pages, each read and programmed: 64 * 750 µs.
    let latency = |pages| {
        let set = [(PAGES, pages), ("card.capacity_bytes", "16_106_127_360")];
        number("magod2", &set, Measure::StallLatencyMedian, 60)
    };
    assert_near(latency("128") - latency("64"), 64.0 * 750e3, 0.05);
}

#[test]
fn stall_latency_grows_with_the_program_time() {
    let latency = |times| {
        let set = [("card.flash.program_us", times)];
        number("magod2", &set, Measure::StallLatencyMedian, 50)
    };
    let longer = latency("[700, 1300]") - latency("[400, 1000]");
    assert_near(longer, 64.0 * 300e3, 0.05);
}

#[test]
fn stall_latency_grows_with_the_erase_time() {
    let latency = |us| {
        let set = [("card.flash.erase_us", us)];
        number("magod2", &set, Measure::StallLatencyMedian, 50)
    };
    // A merge erases the unit's old block and the log block.
    assert_near(latency("9000") - latency("3000"), 2.0 * 6e6, 0.1);
}

#[test]
fn slow_writes_grow_with_the_program_time_of_a_log_page() {
    let slow = |us| {
        let set = [("card.flash.log_program_us", us)];
        number("magod2-kept-open", &set, Measure::Median, 1).max(number(
            "magod2-kept-open",
            &set,
            Measure::SlowMean,
            1,
        ))
    };
    // Slow writes write one block. Program times of the flash's blocks differ by 5 %.
    let longer_us = (slow("1500") - slow("500")) / 1e3;
    assert!(
        (950.0..1050.0).contains(&longer_us),
        "{longer_us} µs longer"
    );
}

#[test]
fn base_latency_is_bytes_over_the_clock() {
    let median = |hz| {
        let set = [("board.spi.clock_hz", hz)];
        number("magod2", &set, Measure::Median, 50)
    };
    let (slow, middle, quick) = (
        median("4_000_000"),
        median("8_000_000"),
        median("16_000_000"),
    );
    // The clock-dependent part of the latency halves with each doubling of the clock; the other part is
    // constant.
    assert_near((slow - middle) / (middle - quick), 2.0, 0.05);
}

#[test]
fn read_latency_has_a_clock_dependent_and_a_constant_share() {
    let mean = |hz| {
        let set = [("board.spi.clock_hz", hz)];
        number("read-sweep", &set, Measure::Mean, 50)
    };
    let (slow, middle, quick) = (mean("4_000_000"), mean("8_000_000"), mean("16_000_000"));
    assert_near((slow - middle) / (middle - quick), 2.0, 0.05);
}
