//! Statistics and plots of arbitrary bytes that parse as a trace: no panics, no absurd results.

#![no_main]

use cardiograph_report::{figures_of, page, table};
use cardiograph_trace::{ReadOptions, read_from};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(loaded) = read_from("fuzz", bytes, &ReadOptions::default()) else {
        return;
    };
    let report = figures_of(loaded, None);
    let times = &report.summary.write_time_us;
    if let (Some(min), Some(mean), Some(max)) = (times.min, times.mean, times.max) {
        assert!(min <= max);
        assert!(mean.is_finite() && mean >= 0.0);
    }
    let mut rates = report.summary.frontier.windows(2);
    assert!(rates.all(|pair| pair[0].lossless_bps <= pair[1].lossless_bps));
    assert!(!table::text(&report).is_empty());
    assert!(!table::markdown(&report).is_empty());
    assert!(page::html(&[report]).is_ok());
});
