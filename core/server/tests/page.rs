//! The page: its compressed files contain its sources, and are small.
#![cfg(feature = "page")]

use std::path::Path;
use std::process::Command;

/// Maximum size of all compressed files together, in bytes.
const PAGE_BYTES_MAX: usize = 24 << 10;

#[test]
fn compressed_files_match_their_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut total_bytes = 0;
    for name in ["page.js", "live.js", "page.css"] {
        let compressed = root.join("src/page").join(format!("{name}.gz"));
        total_bytes += std::fs::read(&compressed).unwrap().len();
        let output = Command::new("gzip").arg("-dc").arg(&compressed).output();
        let source = std::fs::read(root.join("../../web").join(name)).unwrap();
        assert!(
            output.unwrap().stdout == source,
            "{name}: run gzip -9nc web/{name} > core/server/src/page/{name}.gz"
        );
    }
    println!("{total_bytes} bytes compressed");
    assert!(total_bytes <= PAGE_BYTES_MAX);
}
