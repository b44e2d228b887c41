//! Power and energy from a scope's CSV, compared with hand-calculated values.

use cardiograph_trace::{EnergyTrace, PowerStep, Scope, read_scope_from};

fn read(text: &str, shunt_ohm: f64) -> Result<(Scope, Vec<PowerStep>), String> {
    let mut steps = Vec::new();
    let take = |step: &PowerStep| steps.push(*step);
    let scope = read_scope_from("scope.csv", text.as_bytes(), shunt_ohm, take);
    let scope = scope.map_err(|error| error.to_string())?;
    Ok((scope, steps))
}

fn energy(text: &str, shunt_ohm: f64) -> EnergyTrace {
    let (_, steps) = read(text, shunt_ohm).unwrap();
    let mut energy = EnergyTrace::from_ns(steps[0].start_ns);
    steps.iter().for_each(|step| energy.add(step));
    energy
}

fn assert_near(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= 1e-9 * expected.abs(), "{found}, due is {expected}");
}

/// Returns `count` samples of 0.1 ms, as in the study.
fn samples(count: u32, volts: impl Fn(u32) -> (f64, f64)) -> String {
    let mut text = String::from("time,V1,V2\n");
    for i in 0..count {
        let (v1, v2) = volts(i);
        text += &format!("{:.4},{v1},{v2}\n", f64::from(i) / 1e4);
    }
    text
}

#[test]
fn constant_power() {
    // 30 mA at 3.25 V are 97.5 mW, or 975 uJ per 10 ms.
    let text = samples(1000, |_| (3.28, 3.25));
    let energy = energy(&text, 1.0);
    assert_near(energy.total_uj(), 9750.0);
    assert_near(energy.end_ns(), 1e8);
    assert_near(energy.power_mw_mean().unwrap(), 97.5);
    assert_near(energy.power_mw_max().unwrap(), 97.5);
    for &uj in &energy.bins_uj()[..10] {
        assert_near(uj, 975.0);
    }
    // With half the shunt resistance, the current is twice as high.
    assert_near(self::energy(&text, 0.5).total_uj(), 19_500.0);
}

#[test]
fn eight_bit_resolution_does_not_bias_the_energy() {
    // The scope quantises in steps of 9.4 mV, an error of up to 4.7 mV, while the supply voltage moves over
    // many steps.
    let quantised = |volts: f64| (volts / 9.4e-3).round() * 9.4e-3;
    let v2 = |i: u32| 3.2 + 0.1 * (f64::from(i) * 0.613).sin();
    let current = 0.05;
    let text = samples(20_000, |i| (quantised(v2(i) + current), quantised(v2(i))));
    let due_uj: f64 = (0..20_000).map(|i| v2(i) * current * 100.0).sum();
    let error = energy(&text, 1.0).total_uj() / due_uj - 1.0;
    assert!(error.abs() < 0.01, "{error}");
    // A single sample may be off by the errors of both channels.
    let (_, steps) = read(&text, 1.0).unwrap();
    let off = steps.iter().map(|s| (s.power_mw - 160.0).abs());
    assert!(off.fold(0.0, f64::max) < 9.4 * 3.3 + 50.0 * 0.11);
}

#[test]
fn sampling_periods_of_the_file_are_used() {
    // Steps of 1, 3 and 3 ms at 10, 20 and 30 mW are 10 + 60 + 90 uJ.
    let text = "t (ms);V1 (mV);V2 (mV)\n-1;1010;1000\n0;1020;1000\n3,0;1030,0;1000\n";
    let (scope, steps) = read(text, 1.0).unwrap();
    assert_eq!((scope.samples, scope.step_ns_max), (3, 3e6));
    assert_eq!(scope.notes, [""; 0]);
    let spans: Vec<_> = steps.iter().map(|s| (s.start_ns, s.end_ns)).collect();
    assert_eq!(spans, [(-1e6, 0.0), (0.0, 3e6), (3e6, 6e6)]);
    assert_near(energy(text, 1.0).total_uj(), 160.0);
}

#[test]
fn exponents_signs_and_lines_above_the_header() {
    let text = "Model,A1\r\nVertical Units,V\r\n\r\nTIME,CH1,CH2,CH3\r\n\
        -2.0E-04,+3.31E+0,3.30E0,9.9E37\r\n-1.0E-04,3.31,3.30,0\r\n";
    let (scope, steps) = read(text, 1.0).unwrap();
    assert_eq!(
        scope.notes,
        ["The scope's time column names no unit; its times are read as seconds."]
    );
    assert_near(steps[0].power_mw, 33.0);
    assert_near(steps[1].end_ns.abs() + 1.0, 1.0);
}

#[test]
fn every_malformed_scope_file_has_its_message() {
    let cases = [
        ("", ": the file is empty; measure or record again"),
        (
            "write,0,0,512,0,272000\n",
            ": contains no rows of time, V1 and V2; export the time and both channels of the scope \
             as CSV",
        ),
        (
            "time,V1,V2\n0,1,1\n",
            ": fewer than two samples, so there is no interval between samples; record for longer",
        ),
        (
            "# a\nn,CH1,CH2\n0,1,1\n",
            ", line 2: cannot identify the columns of the time and of the voltages before and \
             after the shunt in \"n,CH1,CH2\"; name them time,V1,V2",
        ),
        (
            "t,V1,V2\n0,1,1\n0,1,1\n",
            ", line 3: the time 0 is the same as in the previous row; export the time with more \
             digits",
        ),
        (
            "t,V1,V2\n0.5,1,1\n0.25,1,1\n",
            ", line 3: the time 0.25 is earlier than the previous time (0.5); if the counter \
             wrapped or two runs were joined, split the file here",
        ),
        (
            "t,V1,V2\n0,1,1\n1,1,x\n",
            ", line 3: V2 is \"x\", not a number; correct the row, or split the file here if two \
             were joined",
        ),
        (
            "t,V1,V2\n0,1,1\n1,nan,1\n",
            ", line 3: V1 is \"nan\", a missing value; to leave out such rows, run grep -viw 'nan' scope.csv > \
             complete.csv",
        ),
        (
            "t,V1,V2\n0,1,1\n1,1",
            ", line 3: the last row is truncated (2 of 3 fields); delete this row to read the rows before it",
        ),
        (
            "t,V1,V2\n0,1,1\n1,9.9E37,1\n",
            ", line 3: V1 is 9.9E37, beyond 1000 V; scopes write such numbers for samples out of range, \
             so record again with a larger range, or delete the rows",
        ),
        (
            "t,V1,V2\n0,1,1\n1e10,1,1\n",
            ", line 3: the time is 1e10, more than 292 years from the scope's time 0; correct the \
             row",
        ),
        (
            "t,V1,V2\n0,1,1\n\0\0\0",
            ", line 3: NUL bytes, typical of a preallocated file after a power loss; to read the \
             data before them, keep only the first 14 bytes: head -c 14 scope.csv",
        ),
    ];
    for (text, expected) in cases {
        let error = read(text, 1.0).expect_err(text);
        assert_eq!(error, format!("scope.csv{expected}"));
    }
    let lines = "a\n".repeat(2000);
    assert!(read(&lines, 1.0).unwrap_err().contains("no rows"));
}
