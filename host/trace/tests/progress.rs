//! Progress reports while a file is read.

use cardiograph_trace::{
    About, Operation, OperationKind, ReadOptions, Trace, WriteError, read_with_progress, write_csv,
    write_parquet,
};
use std::path::Path;

/// Returns the progress reported while reading a trace that `write` wrote, and the file's length.
fn reported(write: fn(&Trace, &Path) -> Result<(), WriteError>) -> (Vec<u64>, u64) {
    let mut trace = Trace::new(About::default());
    // Write one row more than a Parquet row group holds.
    for index in 0..=1 << 20 {
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: 512 * index,
            length_bytes: 512,
            start_ns: 1000 * index,
            end_ns: 1000 * index + index * index % 1000,
        };
        trace.push(&operation).expect("times go forward");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&trace, &path).unwrap();
    let mut reported = Vec::new();
    let options = ReadOptions::default();
    let loaded = read_with_progress(&path, &options, &mut |bytes| reported.push(bytes));
    assert!(loaded.is_ok());
    (reported, path.metadata().unwrap().len())
}

#[test]
fn text_is_reported_up_to_its_end() {
    let (reported, file_bytes) = reported(write_csv);
    assert!(reported.len() > 100 && reported.is_sorted());
    assert_eq!(reported.last(), Some(&file_bytes));
}

#[test]
fn parquet_is_reported_by_row_groups() {
    let (reported, file_bytes) = reported(write_parquet);
    let [first, second] = reported[..] else {
        panic!("{reported:?}");
    };
    assert!(0 < first && first < second && second < file_bytes);
    // The last progress report is below the file length, because the footer belongs to no row group.
    assert!(file_bytes - second < 4096);
}
