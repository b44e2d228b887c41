//! `plan`: what a logger needs, and what is said of input that tells nothing.

mod common;

use common::{data, directory, done, json, names, refused, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LOGGER: [&str; 4] = ["--rate", "860", "--line", "100"];

fn plan<'a>(source: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", source][..], &LOGGER, more].concat()
}

/// Our CSV with a write of 512 B each: quick ones of 1 ms, and after every 50 of them a stall.
fn write_trace(path: &Path, stalls_us: impl IntoIterator<Item = u64>) {
    let mut text = "operation,file,offset,length,start_ns,end_ns\n".to_string();
    let (mut offset, mut now_ns) = (0, 0);
    for stall_us in stalls_us {
        for us in std::iter::repeat_n(1000, 50).chain([stall_us]) {
            let end_ns = now_ns + us * 1000;
            text += &format!("write,0,{offset},512,{now_ns},{end_ns}\n");
            (offset, now_ns) = (offset + 512, end_ns);
        }
    }
    fs::write(path, text).unwrap();
}

/// Stalls of 20 ms and more; the height is exceeded by a half, a third, a quarter ... of them.
fn falling_stalls() -> impl Iterator<Item = u64> {
    (1..=300u64).map(|i| 20_000 + (8000.0 * (300.5 / i as f64).ln()) as u64)
}

fn sizes(plan: &Value) -> &Vec<Value> {
    plan["sizes"].as_array().unwrap()
}

#[test]
fn a_simulated_card_is_planned_for() {
    let own = directory();
    let table = done(own.path(), &plan("sim:class10-16g@esp32", &[]));
    for words in [
        "860 samples/s of 100 B = 86 kB/s for 24 h",
        "keep one file open and write it as one stream (CMD25)",
        "RAM advised",
        "J a day",
        "erases a day",
        "64 KiB: less than 1 run of 24 h in",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    assert!(!table.contains("warning"), "{table}");
    let figures = json(own.path(), &plan("sim:class10-16g@esp32", &[]));
    assert_eq!(figures["schema"], 1);
    assert_eq!(figures["rate_Bps"], 86_000.0);
    assert_eq!(sizes(&figures).len(), 11);
    assert!(figures["energy_J_per_day"].as_f64() > Some(0.0));
    assert!(figures["wear"]["years"].as_f64() > Some(0.0));
    let advised = figures["ram_advised_bytes"].as_u64();
    assert!(advised.unwrap() as f64 > figures["ram_needed_bytes"].as_f64().unwrap());
    assert!(names(own.path()).is_empty());
}

#[test]
fn a_trace_is_planned_for_and_does_not_tell_of_energy() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let table = done(own.path(), &plan("t.csv", &["--json", "p.json"]));
    for words in [
        "write as the trace does, 512 B at a time",
        "energy              cannot be told from a trace",
        "a generalized Pareto law fits",
        "64 KiB: less than 1 run of 24 h in",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    let figures: Value =
        serde_json::from_slice(&fs::read(own.path().join("p.json")).unwrap()).unwrap();
    assert!(figures["energy_J_per_day"].is_null() && figures["wear"].is_null());
    // 20 ms and more at 86 kB/s and the block that was waiting: the fit begins above 2232 B.
    assert!(figures["tail"]["threshold_bytes"].as_f64() >= Some(2232.0));
    let risks: Vec<f64> = sizes(&figures)
        .iter()
        .map(|size| size["risk"]["high"].as_f64().unwrap())
        .collect();
    assert!(risks[0] == 1.0 && risks[10] < 1e-3, "{risks:?}");
    assert!(risks.is_sorted_by(|a, b| a >= b), "{risks:?}");

    // A longer run risks more, and a size of interest has a row of its own.
    let args = ["--for", "30days", "--ram", "5000"];
    let longer = json(own.path(), &plan("t.csv", &args));
    assert_eq!(sizes(&longer).len(), 12);
    let risk = |of: &Value| {
        sizes(of).iter().find(|s| s["ram_bytes"] == 8192).unwrap()["risk"]["likely"].as_f64()
    };
    assert!(risk(&longer) > risk(&figures));
    assert!(done(own.path(), &plan("t.csv", &args)).contains("\n5000 B: "));
    refused(
        own.path(),
        &plan("t.csv", &["--json", "p.json"]),
        &["p.json", "exists"],
    );
}

#[test]
fn few_writes_say_how_many_it_takes() {
    let own = directory();
    let writes = "operation,file,offset,length,start_ns,end_ns\n\
        write,0,0,512,0,1000000\nwrite,0,512,512,1000000,3000000\n";
    fs::write(own.path().join("t.csv"), writes).unwrap();
    let table = done(own.path(), &plan("t.csv", &[]));
    let words = "it holds 2 busy periods, and a forecast takes 33; measure at least 16.9 kB";
    assert!(table.contains(words), "{table}");
}

/// The rule of three is all there is.
#[test]
fn stalls_without_spread_forecast_nothing() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), [30_000; 600]);
    let table = done(own.path(), &plan("t.csv", &[]));
    for words in [
        "no forecast of a longer run",
        "all alike",
        "64 KiB: enough for what was measured",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    let figures = json(own.path(), &plan("t.csv", &[]));
    assert!(figures["tail"].is_null() && figures["ram_advised_bytes"].is_null());
    // 1 - exp(-3 T), T the run over the measured time.
    let times = 86_400.0 / figures["measured"]["run_s"].as_f64().unwrap();
    let high = sizes(&figures)[10]["risk"]["high"].as_f64().unwrap();
    assert!((high - (1.0 - (-3.0 * times).exp())).abs() < 1e-9);
}

#[test]
fn a_rate_above_the_average_has_no_ram() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let args = ["plan", "t.csv", "--rate", "10000", "--line", "100"];
    let table = done(own.path(), &args);
    assert!(table.contains("1 MB/s is above the average of"), "{table}");
    assert!(
        table.contains("no RAM is enough; lower the rate"),
        "{table}"
    );
    let figures = json(own.path(), &args);
    assert!(figures["ram_needed_bytes"].is_null());
    assert!(
        sizes(&figures)
            .iter()
            .all(|size| size["risk"]["low"] == 1.0)
    );
}

#[test]
fn a_workload_that_opens_and_closes_is_not_what_a_recorder_does() {
    let own = directory();
    let bench = ["bench", "sim:class10-16g@esp32", "--workload", "magod2-4.7"];
    done(
        own.path(),
        &[&bench[..], &["--trace", "t.parquet"]].concat(),
    );
    let args = ["plan", "t.parquet", "--rate", "8", "--line", "81"];
    let table = done(own.path(), &args);
    assert!(table.contains("each open and close their file"), "{table}");
}

#[test]
fn what_tells_nothing_is_refused() {
    let own = directory();
    let header = "operation,file,offset,length,start_ns,end_ns\n";
    fs::write(own.path().join("empty.csv"), header).unwrap();
    fs::write(
        own.path().join("reads.csv"),
        format!("{header}read,0,0,512,0,1000\n"),
    )
    .unwrap();
    fs::write(
        own.path().join("instant.csv"),
        format!("{header}write,0,0,512,5,5\n"),
    )
    .unwrap();
    let recording = data("magod/f2_1.csv").display().to_string();
    for (source, words) in [
        (
            "none.csv",
            &["none.csv: there is no such file", "check"][..],
        ),
        ("empty.csv", &["empty.csv"]),
        (
            "reads.csv",
            &["reads.csv: holds reads only", "give a trace of writes"],
        ),
        (
            "instant.csv",
            &["instant.csv: no write in it took any time"],
        ),
        (
            &recording,
            &["f2_1.csv: no single write times", "give a trace of writes"],
        ),
        ("sim:best@esp32", &["no card named best", "class10-16g"]),
        (
            "sim:class10-16g@lpc43xx",
            &["SD bus", "name one with SPI, such as esp32"],
        ),
    ] {
        refused(own.path(), &plan(source, &[]), words);
    }
    for line in [
        "--rate 0 --line 100",
        "--rate -1 --line 100",
        "--rate nan --line 100",
        "--rate 860 --line 0",
        "--rate 860 --line 1048577",
        "--rate 860",
        "--rate 860 --line 100 --for 0s",
        "--rate 860 --line 100 --for soon",
        "--rate 860 --line 100 --ram 0",
        "--rate 860 --line 100 --ram 64Kb",
        "--rate 860 --line 100 --ram 99999999999MiB",
    ] {
        let args = [
            &["plan", "sim:class10-16g@esp32"][..],
            &line.split(' ').collect::<Vec<_>>(),
        ]
        .concat();
        let run = run(own.path(), &args);
        assert_eq!(run.code, Some(2), "{line}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("error: ") && run.stdout.is_empty(),
            "{line}: {}",
            run.stderr
        );
    }
}
