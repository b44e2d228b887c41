//! Traces that pandas, polars and DuckDB read and wrote again.

use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, ReadOptions, Trace, read, write_parquet,
};
use std::path::Path;
use std::process::Command;

/// Reads `trace.parquet` and writes one file for each program and kind of compression.
const SCRIPT: &str = r#"
import duckdb, pandas, polars, pyarrow.parquet
frame = pandas.read_parquet("trace.parquet")
frame.to_parquet("pandas.parquet")
frame.to_parquet("pandas_plain.parquet", compression=None)
frame.to_parquet("pandas_zstd.parquet", compression="zstd")
frame.to_parquet("pandas_gzip.parquet", compression="gzip")
frame[frame["length"] > 0].to_parquet("pandas_index.parquet")
frame[["end_ns", "start_ns", "length", "offset", "file", "operation"]].to_parquet("pandas_order.parquet")
broken = frame.copy()
broken["end_ns"] = broken["end_ns"].astype("Int64")
broken.loc[5000, "end_ns"] = None
broken.to_parquet("pandas_null.parquet")
polars.read_parquet("trace.parquet").write_parquet("polars.parquet")
polars.read_parquet("trace.parquet").write_parquet("polars_snappy.parquet", compression="snappy")
for kind in ["datetime64", "timedelta64"]:
    for unit in ["s", "ms", "us", "ns"]:
        timed = frame.copy()
        for name in ["start_ns", "end_ns"]:
            timed[name] = (frame[name] // 1000 * 10**9).astype(f"{kind}[ns]").astype(f"{kind}[{unit}]")
        timed.to_parquet(f"{kind}_{unit}.parquet")
polars.from_pandas(timed).write_parquet("polars_timedelta.parquet")
frame.astype({"operation": "int64", "file": "int64"}).to_parquet("pandas_int64.parquet")
pyarrow.parquet.write_table(
    pyarrow.Table.from_pandas(frame), "pandas_split.parquet", use_dictionary=False,
    use_byte_stream_split=["end_ns"])
duckdb.sql("copy (from 'trace.parquet') to 'duckdb.parquet' (format parquet)")
table = pandas.DataFrame({
    "time": pandas.to_datetime(frame["start_ns"], unit="ns"),
    "latency": pandas.to_timedelta(frame["end_ns"] - frame["start_ns"], unit="ns"),
    "bytes": frame["length"].astype("uint32"),
    "op": frame["operation"].map({0: "write", 1: "read"}),
})
table.to_parquet("table_times.parquet")
plain = table.assign(time=frame["start_ns"], latency=(frame["end_ns"] - frame["start_ns"]) / 1000)
plain = plain.rename(columns={"time": "time_ns", "latency": "latency_us"})
plain.to_parquet("table_plain.parquet", compression=None)
polars.from_pandas(plain).write_parquet("table_polars.parquet")
duckdb.sql("copy plain to 'table_duckdb.parquet' (format parquet)")
plain.loc[300, "latency_us"] = None
plain.to_parquet("table_null.parquet")
duckdb.sql("copy (from 'trace.parquet') to 'duckdb_v2.parquet' (format parquet, parquet_version v2, compression zstd)")
"#;

fn trace() -> Trace {
    let mut trace = Trace::new(About::default());
    let mut now_ns = 7;
    for index in 0..20_000_u64 {
        let operation = Operation {
            kind: match index % 9 {
                8 => OperationKind::Read,
                _ => OperationKind::Write,
            },
            file: (index / 1000) as u32,
            offset_bytes: index * 512,
            length_bytes: 512 + index % 3,
            start_ns: now_ns,
            end_ns: now_ns + 1000 * (index * index % 977) + index % 7,
        };
        now_ns = operation.end_ns + index % 5;
        trace.push(&operation).unwrap();
    }
    trace
}

fn loaded(path: &Path) -> Trace {
    match read(path, &ReadOptions::default()) {
        Ok(Loaded::Trace(trace)) => trace,
        Ok(_) => panic!("not a trace"),
        Err(error) => panic!("{error}"),
    }
}

/// Returns starts and ends in ns.
fn times_ns(operations: impl Iterator<Item = Operation>) -> impl Iterator<Item = (u64, u64)> {
    operations.map(|o| (o.start_ns, o.end_ns))
}

/// Returns starts and ends in ns, stretched so that 1 us becomes 1 s, as the script writes them.
fn seconds_in_ns(trace: &Trace) -> impl Iterator<Item = (u64, u64)> {
    const FACTOR: u64 = 1_000_000_000;
    times_ns(trace.operations()).map(|(start, end)| (start / 1000 * FACTOR, end / 1000 * FACTOR))
}

#[test]
#[ignore = "needs python3 and its packages"]
fn files_of_other_programs_contain_the_same_operations() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    assert!(
        python.exists(),
        "Python packages are missing; run `cargo xtask test`, which installs them"
    );
    let directory = tempfile::tempdir().unwrap();
    let trace = trace();
    write_parquet(&trace, &directory.path().join("trace.parquet")).unwrap();
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for name in [
        "pandas",
        "pandas_plain",
        "pandas_zstd",
        "pandas_index",
        "pandas_order",
        "polars",
        "polars_snappy",
        "duckdb",
        "duckdb_v2",
    ] {
        let again = loaded(&directory.path().join(format!("{name}.parquet")));
        assert!(again.operations().eq(trace.operations()), "{name}");
    }
    for kind in ["datetime64", "timedelta64"] {
        for unit in ["s", "ms", "us", "ns"] {
            let name = format!("{kind}_{unit}.parquet");
            let again = loaded(&directory.path().join(&name));
            assert!(
                times_ns(again.operations()).eq(seconds_in_ns(&trace)),
                "{name}"
            );
        }
    }
    let again = loaded(&directory.path().join("polars_timedelta.parquet"));
    assert!(
        again
            .operations()
            .map(|o| o.end_ns)
            .eq(seconds_in_ns(&trace).map(|(_, end_ns)| end_ns))
    );
    for name in ["times", "plain", "polars", "duckdb"] {
        let again = loaded(&directory.path().join(format!("table_{name}.parquet")));
        let expected = trace
            .operations()
            .map(|o| (o.kind, o.length_bytes, o.end_ns - o.start_ns));
        let found = again
            .operations()
            .map(|o| (o.kind, o.length_bytes, o.end_ns - o.start_ns));
        for (row, (found, expected)) in found.zip(expected).enumerate() {
            assert_eq!(found, expected, "{name}, row {row}");
        }
        assert_eq!(again.len(), trace.len(), "{name}");
    }
    for (name, remedy) in [
        (
            "table_null",
            "row 301: latency_us is \"null\", a missing value",
        ),
        (
            "pandas_int64",
            "df.astype({'operation': 'int32', 'file': 'int32'})",
        ),
        (
            "pandas_split",
            "the Parquet encoding BYTE_STREAM_SPLIT is not supported",
        ),
        (
            "pandas_gzip",
            "write it with snappy or zstd, or uncompressed",
        ),
        ("pandas_null", "the column end_ns has a missing value"),
    ] {
        let path = directory.path().join(format!("{name}.parquet"));
        match read(&path, &ReadOptions::default()) {
            Ok(_) => panic!("{name} was read"),
            Err(error) => assert!(error.to_string().contains(remedy), "{error}"),
        }
    }
}
