//! Energy of writes, compared with hand-calculated values.

use cardiograph_report::{Report, figures_of, table};
use cardiograph_trace::{
    About, EnergyCounter, Loaded, Operation, OperationKind, PowerStep, Scope, Trace,
};

const MS_NS: u64 = 1_000_000;

/// Writes of 500 B, each given by its start and end in ms.
fn report(writes: &[(u64, u64)], threshold_ms: u64) -> Report {
    let mut trace = Trace::new(About::default());
    for (i, &(start_ms, end_ms)) in writes.iter().enumerate() {
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: i as u64 * 500,
            length_bytes: 500,
            // The clock of a trace may start at any value.
            start_ns: (start_ms + 77) * MS_NS,
            end_ns: (end_ms + 77) * MS_NS,
        };
        trace.push(&operation).unwrap();
    }
    figures_of(Loaded::Trace(trace), Some(threshold_ms * MS_NS))
}

/// Steps of 0.1 ms between two times, with the power at the middle of each step.
fn steps(from_ms: i32, until_ms: i32, power_mw: impl Fn(f64) -> f64) -> Vec<PowerStep> {
    let steps = (from_ms * 10..until_ms * 10).map(|i| PowerStep {
        start_ns: f64::from(i) * 1e5,
        end_ns: f64::from(i + 1) * 1e5,
        power_mw: power_mw((f64::from(i) + 0.5) / 10.0),
    });
    steps.collect()
}

fn with_energy(mut report: Report, steps: &[PowerStep], offset_ns: Option<i64>) -> Report {
    let mut meter = report.energy_meter(offset_ns.unwrap_or(0));
    steps.iter().for_each(|step| meter.add(step));
    let energy = meter.finish().unwrap();
    let widths = steps.iter().map(|step| step.end_ns - step.start_ns);
    let scope = Scope {
        samples: steps.len() as u64,
        step_ns_max: widths.fold(0.0, f64::max),
        notes: Vec::new(),
    };
    report.add_energy(energy, &scope, offset_ns);
    report
}

/// Returns the power at a time: 100 mW during writes, 10 mW between them.
fn in_step(writes: &[(u64, u64)]) -> impl Fn(f64) -> f64 {
    let writes = writes.to_vec();
    move |ms| {
        let inside = |&(start, end): &(u64, u64)| start as f64 <= ms && ms < end as f64;
        if writes.iter().any(inside) {
            100.0
        } else {
            10.0
        }
    }
}

const WRITES: [(u64, u64); 4] = [(0, 2), (10, 12), (20, 24), (30, 42)];

#[test]
fn a_square_wave_aligned_with_the_writes() {
    let steps = steps(-5, 50, in_step(&WRITES));
    let report = with_energy(report(&WRITES, 10), &steps, None);
    let energy = report.summary.energy.as_ref().unwrap();
    // The card draws 100 mW for 20 ms and 10 mW for 35 ms.
    assert_eq!(energy.total_uj, 2350.0);
    assert_eq!(energy.duration_us, 55_000.0);
    assert_eq!(energy.power_mw.in_writes, Some(100.0));
    assert_eq!(energy.power_mw.between_writes, Some(10.0));
    // Bins begin at -5 ms. The bin from 25 to 35 ms contains 5 ms of each power, the next bin 7 ms of 100 mW
    // and 3 ms of 10 mW.
    assert_eq!(energy.power_mw.max, Some(73.0));
    assert_eq!(energy.per_write_uj, Some(500.0));
    assert_eq!(energy.per_kb_uj, Some(1000.0));
    assert_eq!(energy.trace_covered_ratio, Some(1.0));
    // Within the 42 ms of the trace, the writes take 2000 uJ and the time between them 220 uJ.
    assert_eq!(energy.in_writes.energy_ratio, Some(0.900901));
    assert_eq!(energy.in_writes.time_ratio, Some(0.47619));
    assert_eq!(energy.in_stalls.energy_ratio, Some(0.540541));
    assert_eq!(energy.in_stalls.time_ratio, Some(0.285714));
    let note = "The scope's time 0 is aligned with the start of the trace; use --scope-offset to shift it. \
        The scope's recording covers 100.0 % of the trace, including 4 of 4 writes completely.";
    assert_eq!(report.about.notes, [note]);
    assert_eq!(report.warnings, [""; 0]);
}

#[test]
fn an_offset_shifts_the_scope() {
    let moved = steps(-25, 30, |ms| in_step(&WRITES)(ms + 20.0));
    let report = with_energy(report(&WRITES, 10), &moved, Some(20 * MS_NS as i64));
    let energy = report.summary.energy.as_ref().unwrap();
    assert_eq!(energy.power_mw.in_writes, Some(100.0));
    assert_eq!(energy.power_mw.between_writes, Some(10.0));
    assert!(report.about.notes[0].contains("is 20 ms after the start"));
}

#[test]
fn only_what_the_scope_covers_counts() {
    // The steps from 11 to 35 ms cover half of the second write, the whole third write, and 5 of the 12 ms
    // of the fourth.
    let steps = steps(11, 35, in_step(&WRITES));
    let report = with_energy(report(&WRITES, 10), &steps, None);
    let energy = report.summary.energy.as_ref().unwrap();
    assert_eq!(energy.per_write_uj, Some(400.0));
    assert_eq!(energy.power_mw.in_writes, Some(100.0));
    assert_eq!(energy.trace_covered_ratio, Some(0.571429));
    assert!(report.about.notes[0].contains("57.1 % of the trace, including 1 of 4 writes"));

    let after = self::steps(60, 70, |_| 10.0);
    let report = with_energy(self::report(&WRITES, 10), &after, None);
    let energy = report.summary.energy.as_ref().unwrap();
    assert_eq!(energy.total_uj, 100.0);
    assert_eq!(energy.trace_covered_ratio, Some(0.0));
    assert_eq!(energy.power_mw.in_writes, None);
    assert_eq!(energy.power_mw.between_writes, None);
    assert_eq!(energy.per_write_uj, None);
    assert_eq!(energy.in_writes.energy_ratio, None);
    assert!(report.warnings[0].contains("covers no part of the trace"));
}

#[test]
fn gaps_and_swapped_channels_are_reported() {
    let mut steps = steps(0, 40, |_| -5.0);
    steps.push(PowerStep {
        start_ns: 40e6,
        end_ns: 50e6,
        power_mw: -5.0,
    });
    let report = with_energy(report(&WRITES, 10), &steps, None);
    assert!(report.about.notes[0].contains("has gaps"));
    assert!(report.warnings[0].contains("swapped"));
}

#[test]
fn the_section_of_the_table() {
    let steps = steps(-5, 50, in_step(&WRITES));
    let report = with_energy(report(&WRITES, 10), &steps, None);
    let expected = "
  Energy
    total                  2.35 mJ in 55 ms
    mean power             42.7 mW
    peak over 10 ms        73 mW
    during writes          100 mW
    between writes         10 mW
    per write              500 µJ
    per kB of payload      1 mJ
    share of writes        90.1 % of the energy in 47.6 % of the time
    share of stalls        54.1 % of the energy in 28.6 % of the time

";
    let table = table::text(&report);
    assert!(table.contains(expected), "{table}");
    assert!(table::markdown(&report).contains("| per write | 500 µJ |"));
}

#[test]
fn a_counter_read_at_every_write_agrees_with_a_scope() {
    let power_mw = in_step(&WRITES);
    let mut readings = vec![(0, 0)];
    let mut total_pj = 0;
    for ms in 0..42u64 {
        total_pj += (power_mw(ms as f64) * 1e6) as u64;
        let at_ms = ms + 1;
        if WRITES
            .iter()
            .any(|&(start, end)| at_ms == start || at_ms == end)
        {
            readings.push((at_ms * MS_NS, total_pj));
        }
    }
    let mut counter = EnergyCounter::new(0, 0);
    let counted: Vec<_> = readings
        .iter()
        .filter_map(|&(at_ns, pj)| counter.read(at_ns, pj))
        .collect();
    let by_counter = with_energy(report(&WRITES, 10), &counted, None);
    let by_scope = with_energy(report(&WRITES, 10), &steps(0, 42, power_mw), None);
    let json = |report: &Report| serde_json::to_string(&report.summary.energy).unwrap();
    assert_eq!(json(&by_counter), json(&by_scope));
}
