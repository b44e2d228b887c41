//! Traces that pandas, polars and DuckDB read and wrote again.

use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, ReadOptions, Trace, read, write_parquet,
};
use std::path::Path;
use std::process::Command;

/// Reads `trace.parquet` and writes one file for each program and kind of compression.
const SCRIPT: &str = r#"
import duckdb, pandas, polars
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
duckdb.sql("copy (from 'trace.parquet') to 'duckdb.parquet' (format parquet)")
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

#[test]
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
    for (name, remedy) in [
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
