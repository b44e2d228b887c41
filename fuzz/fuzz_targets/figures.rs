//! Statistics and plots of arbitrary bytes that parse as a trace: no panics, no absurd results.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_report::{figures_of, page, table};
use cardiograph_trace::{ReadOptions, read_from};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let Ok(loaded) = read_from("fuzz", bytes, &ReadOptions::default()) else {
        return;
    };
    let report = figures_of(loaded, None);
    let latency = &report.summary.latency_us;
    if let (Some(min), Some(mean), Some(max)) = (latency.min, latency.mean, latency.worst_case) {
        assert!(min <= max);
        assert!(mean.is_finite() && mean >= 0.0);
    }
    let mut rates = report.summary.sustained_rates.windows(2);
    assert!(rates.all(|pair| pair[0].rate_bytes_per_s <= pair[1].rate_bytes_per_s));
    assert!(!table::text(&report).is_empty());
    assert!(!table::markdown(&report).is_empty());
    assert!(page::html(&[report], None, None).is_ok());
});
