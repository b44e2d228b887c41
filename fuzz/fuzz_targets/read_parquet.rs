//! Arbitrary bytes as a Parquet file: errors are fine, panics and huge allocations are not.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_trace::{ReadOptions, read_from};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    // Without the magic number at both ends, the parser rejects the file at once.
    let body = bytes.strip_prefix(b"PAR1").unwrap_or(bytes);
    let body = body.strip_suffix(b"PAR1").unwrap_or(body);
    let file = [b"PAR1", body, b"PAR1"].concat();
    if let Err(error) = read_from("fuzz", &file[..], &ReadOptions::default()) {
        assert!(error.to_string().starts_with("fuzz"));
    }
});
