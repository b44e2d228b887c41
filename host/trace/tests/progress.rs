//! How far the reading of a file has come.

use cardiograph_trace::{
    About, Operation, OperationKind, ReadOptions, Trace, WriteError, read_with_progress, write_csv,
    write_parquet,
};
use std::path::Path;

/// What was told while a trace was read from a file that `write` made, and the file's length.
fn told(write: fn(&Trace, &Path) -> Result<(), WriteError>) -> (Vec<u64>, u64) {
    let mut trace = Trace::new(About::default());
    // One row more than a row group of Parquet has.
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
    let mut told = Vec::new();
    let options = ReadOptions::default();
    let loaded = read_with_progress(&path, &options, &mut |bytes| told.push(bytes));
    assert!(loaded.is_ok());
    (told, path.metadata().unwrap().len())
}

#[test]
fn text_is_told_up_to_its_end() {
    let (told, file_bytes) = told(write_csv);
    assert!(told.len() > 100 && told.is_sorted());
    assert_eq!(told.last(), Some(&file_bytes));
}

#[test]
fn parquet_is_told_by_row_groups() {
    let (told, file_bytes) = told(write_parquet);
    let [first, second] = told[..] else {
        panic!("{told:?}");
    };
    assert!(0 < first && first < second && second < file_bytes);
    // What no row group has is the footer.
    assert!(file_bytes - second < 4096);
}
