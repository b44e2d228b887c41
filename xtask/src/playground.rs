//! Builds the playground: analysis, simulator and planner as WebAssembly, in one folder of static files.

use crate::packages;
use crate::page::tools;
use crate::run::{build_command, capture, cargo, check, output_of, root, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WASM_TARGET: &str = "wasm32-unknown-unknown";
/// Vector instructions, which Chromium, Firefox and Safari have had since 2023 at the latest.
const WASM_FLAGS: &str = "-Ctarget-feature=+simd128";
/// Files of `web/playground` that are copied as they are.
const FILES: [&str; 4] = ["page.css", "page.js", "chart.js", "worker.js"];
/// An example trace: a simulated card with stalls.
const EXAMPLE: [&str; 4] = [
    "bench",
    "sim:generic-16g-class10@esp32",
    "--workload",
    "magod2",
];
/// Limit on the compressed size of all files, in bytes.
const COMPRESSED_BYTES_MAX: u64 = 3_000_000;
/// Time limit of the tests, in s; a normal run takes a minute.
const NODE_S_MAX: &str = "600";

/// Builds the folder and prints its size. Returns its path and its compressed size, in bytes.
pub fn build() -> Result<(PathBuf, u64), String> {
    packages::add_target(WASM_TARGET)?;
    packages::install(packages::FOR_PLAYGROUND)?;
    let folder = target().join("playground");
    let _ = fs::remove_dir_all(&folder);
    make_folder(&folder)?;
    let source = root().join("web/playground");
    for name in FILES {
        copy(&source.join(name), &folder.join(name))?;
    }
    let mut wasm = cargo(&["build", "--quiet", "--profile", "page"]);
    wasm.args(["--package", "cardiograph-wasm", "--features", "playground"]);
    wasm.env("RUSTFLAGS", WASM_FLAGS);
    check(wasm.args(["--target", WASM_TARGET]))?;
    let module = target()
        .join(WASM_TARGET)
        .join("page/cardiograph_wasm.wasm");
    copy(&module, &folder.join("cardiograph.wasm"))?;
    let report = write_example(&folder)?;
    let page = read(&source.join("index.html"))?;
    let page = page
        .replace("REPORT_SCRIPT", &hash_of(&report, "<script>", "</script>")?)
        .replace("REPORT_STYLE", &hash_of(&report, "<style>", "</style>")?);
    let index = folder.join("index.html");
    fs::write(&index, page).map_err(|error| format!("{}: {error}", index.display()))?;
    let (plain, compressed) = size(&folder)?;
    println!(
        "{}: {plain} B, {compressed} B compressed. To use it, serve the folder, for example with \
         `python3 -m http.server --directory {}`",
        folder.display(),
        folder.display()
    );
    match compressed <= COMPRESSED_BYTES_MAX {
        true => Ok((folder, compressed)),
        false => Err(format!(
            "the playground has {compressed} B compressed; the limit is {COMPRESSED_BYTES_MAX} B"
        )),
    }
}

/// Builds the playground, compares its results with those of the command, and uses it in Chromium. Returns the number
/// of tests passed.
pub fn test() -> Result<usize, String> {
    let (folder, _) = build()?;
    // The workspace was checked without the feature; only what it changes is checked again.
    let mut clippy = cargo(&["clippy", "--quiet", "--workspace", "--all-targets"]);
    let feature = "cardiograph-wasm/playground";
    check(clippy.args(["--features", feature, "--", "-Dwarnings"]))?;
    let tools = tools()?;
    let mut passed = 0;
    for script in ["agrees.mjs", "playground.mjs"] {
        let mut node = Command::new("timeout");
        node.args([NODE_S_MAX, "node"]).current_dir(root());
        node.arg(root().join("web/tests").join(script));
        node.args([&tools, &folder, &program()]);
        let (succeeded, text) = capture(&mut node)?;
        if !succeeded {
            return Err(format!("{script} failed; see the output above"));
        }
        passed += text.lines().filter(|line| line.starts_with("ok: ")).count();
    }
    Ok(passed)
}

/// Returns the path of the command.
pub fn program() -> PathBuf {
    target().join("release/cardiograph")
}

/// Writes the example trace; returns its report.
fn write_example(folder: &Path) -> Result<String, String> {
    build_command()?;
    let report = target().join("example.html");
    let mut bench = Command::new(program());
    bench.args(EXAMPLE).args(["--quiet", "--force", "--trace"]);
    bench.arg(folder.join("example.parquet"));
    output_of(bench.arg("--html").arg(&report))?;
    read(&report)
}

/// Returns the hash of the only element between two tags, as in a content security policy.
fn hash_of(page: &str, begin: &str, end: &str) -> Result<String, String> {
    let (_, rest) = page
        .split_once(begin)
        .ok_or(format!("the report has no {begin}"))?;
    let (text, rest) = rest
        .split_once(end)
        .ok_or(format!("the report has no {end}"))?;
    if rest.contains(begin) {
        return Err(format!("the report has more than one {begin}"));
    }
    let path = target().join("hashed");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    let sum = output_of(Command::new("sha256sum").arg(&path))?;
    let hex = sum.split_whitespace().next().unwrap_or_default();
    Ok(format!("'sha256-{}'", base64_of_hex(hex)?))
}

/// Converts hexadecimal digits to base64.
fn base64_of_hex(hex: &str) -> Result<String, String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = hex.chars().map(|digit| digit.to_digit(16));
    let digits: Option<Vec<u32>> = digits.collect();
    let digits = digits.ok_or(format!("{hex} is not hexadecimal"))?;
    // Three hexadecimal digits are two of base64.
    let mut text = String::new();
    for three in digits.chunks(3) {
        let bits = three.iter().fold(0, |bits, digit| bits << 4 | digit) << (4 * (3 - three.len()));
        for shift in [6, 0] {
            text.push(char::from(DIGITS[(bits >> shift & 63) as usize]));
        }
    }
    // A hash of 32 bytes leaves a single digit, which is one of base64, and one of padding.
    if digits.len() % 3 == 1 {
        text.pop();
    }
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    Ok(text)
}

/// Returns the sum of the sizes of the files, and the sum of their compressed sizes, in bytes.
fn size(folder: &Path) -> Result<(u64, u64), String> {
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (mut plain, mut compressed) = (0, 0);
    for file in files {
        let path = file.map_err(|error| error.to_string())?.path();
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        plain += fs::metadata(&path).map_err(at)?.len();
        let gzip = Command::new("gzip")
            .args(["-9", "--stdout"])
            .arg(&path)
            .output();
        compressed += gzip.map_err(at)?.stdout.len() as u64;
    }
    Ok((plain, compressed))
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_a_known_hash() {
        // SHA-256 of the empty text.
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(base64_of_hex(hex).as_deref(), Ok(expected));
    }
}
