//! Names the sources that results depend on, so that results of other sources are recognised between releases.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders with these sources, relative to the root of the repository.
const FOLDERS: [&str; 7] = [
    "core",
    "sim",
    "host/compare",
    "host/plan",
    "host/record",
    "host/store",
    "host/sweep",
];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let folder = Path::new("../..").join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::default();
    for path in files {
        hash.add(path.to_string_lossy().as_bytes());
        hash.add(&fs::read(&path)?);
    }
    let version = env!("CARGO_PKG_VERSION");
    println!(
        "cargo::rustc-env=SWEEP_VERSION={version}-{:08x}",
        hash.0 >> 32
    );
    Ok(())
}

/// Adds the sources below a folder, without tests and examples.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_source = |end: &str| path.extension().is_some_and(|extension| extension == end);
        let is_test = path.ends_with("tests") || path.ends_with("examples");
        if path.is_dir() && !is_test {
            collect(&path, files)?;
        } else if is_source("rs") || is_source("toml") {
            files.push(path);
        }
    }
    Ok(())
}

/// The hash FNV-1a with 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xCBF2_9CE4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}
