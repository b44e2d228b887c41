//! Varying one physical value moves the effect as theory says.

use cardiograph_reproduce::{Experiment, Measure, Take, take};

fn experiment(workload: &str, set: &[(&str, &str)]) -> Experiment {
    let set = set.iter();
    Experiment {
        set: set
            .map(|(path, value)| (path.to_string(), value.to_string()))
            .collect(),
        ..Experiment::new("class10-16g", "esp32", workload)
    }
}

/// Mean over a few seeds.
fn number(workload: &str, set: &[(&str, &str)], measure: Measure, threshold_ms: u64) -> f64 {
    let experiment = experiment(workload, set);
    let what = Take {
        experiment: experiment.clone(),
        measure,
        threshold_ns: threshold_ms * 1_000_000,
        offsets_bytes: None,
        phase: None,
    };
    let numbers = (1..=SEEDS).map(|seed| {
        let operations = experiment.run(seed).unwrap();
        take(&what, &operations).expect("the run has this number")
    });
    numbers.sum::<f64>() / SEEDS as f64
}

fn assert_near(actual: f64, expected: f64, tolerance: f64) {
    let ratio = actual / expected;
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{actual} instead of {expected}, {ratio} times"
    );
}

const SEEDS: u64 = 2;
const LOG_BLOCKS: &str = "card.controller.log_blocks";
const PAGES: &str = "card.flash.pages_per_block";

#[test]
fn spacing_grows_with_the_log() {
    let spacing = |blocks| {
        number(
            "magod2",
            &[(LOG_BLOCKS, blocks)],
            Measure::SpacingMedian,
            50,
        )
    };
    assert_near(spacing("40") / spacing("20"), 2.0, 0.1);
}

#[test]
fn spacing_grows_with_the_pages_of_a_block() {
    let spacing = |pages| {
        let set = [
            (PAGES, pages),
            ("card.capacity_bytes", "16_106_127_360"),
            (LOG_BLOCKS, "20"),
        ];
        number("magod2", &set, Measure::SpacingMedian, 60)
    };
    assert_near(spacing("128") / spacing("64"), 2.0, 0.1);
}

#[test]
fn height_grows_with_the_pages_of_a_block() {
    // 64 more pages, each read and programmed: 64 * 750 us.
    let height = |pages| {
        let set = [(PAGES, pages), ("card.capacity_bytes", "16_106_127_360")];
        number("magod2", &set, Measure::HeightMedian, 60)
    };
    assert_near(height("128") - height("64"), 64.0 * 750e3, 0.05);
}

#[test]
fn height_grows_with_the_time_to_program_a_page() {
    let height = |times| {
        let set = [("card.flash.program_us", times)];
        number("magod2", &set, Measure::HeightMedian, 50)
    };
    let longer = height("[700, 1300]") - height("[400, 1000]");
    assert_near(longer, 64.0 * 300e3, 0.05);
}

#[test]
fn height_grows_with_the_time_to_erase_a_block() {
    let height = |us| {
        let set = [("card.flash.erase_us", us)];
        number("magod2", &set, Measure::HeightMedian, 50)
    };
    // The unit's old block, and the block of the log.
    assert_near(height("9000") - height("3000"), 2.0 * 6e6, 0.1);
}

#[test]
fn slow_writes_grow_with_the_time_to_program_a_log_page() {
    let slow = |us| {
        let set = [("card.flash.log_program_us", us)];
        number("magod2-kept-open", &set, Measure::Median, 1).max(number(
            "magod2-kept-open",
            &set,
            Measure::SlowMean,
            1,
        ))
    };
    // Most slow writes write one block, some the FAT and the directory as well.
    let longer_us = (slow("1500") - slow("500")) / 1e3;
    assert!(
        (1000.0..2000.0).contains(&longer_us),
        "{longer_us} us longer"
    );
}

#[test]
fn the_base_time_is_bytes_over_the_clock() {
    let median = |hz| {
        let set = [("board.spi.clock_hz", hz)];
        number("magod2", &set, Measure::Median, 50)
    };
    let (slow, middle, quick) = (
        median("4_000_000"),
        median("8_000_000"),
        median("16_000_000"),
    );
    // What depends on the clock halves with each doubling; the rest stays.
    assert_near((slow - middle) / (middle - quick), 2.0, 0.05);
}

#[test]
fn reading_takes_a_part_that_is_the_clock_and_a_part_that_is_not() {
    let mean = |hz| {
        let set = [("board.spi.clock_hz", hz)];
        number("read-sweep", &set, Measure::Mean, 50)
    };
    let (slow, middle, quick) = (mean("4_000_000"), mean("8_000_000"), mean("16_000_000"));
    assert_near((slow - middle) / (middle - quick), 2.0, 0.05);
}
