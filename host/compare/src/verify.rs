//! Verification of a recording.

use crate::{Gap, LoggerError};
use cardiograph_workload::Store;

/// Samples per read.
const LINES_PER_READ: usize = 64;

/// Generates samples exactly as they appear in the file.
pub(crate) struct Line<L> {
    make: L,
    bytes: Vec<u8>,
}

impl<L: FnMut(u64, &mut [u8])> Line<L> {
    pub(crate) fn new(line_bytes: u32, make: L) -> Line<L> {
        let mut bytes = vec![0; line_bytes as usize];
        let end = bytes.len() - LINE_END.len();
        bytes[end..].copy_from_slice(LINE_END);
        Line { make, bytes }
    }

    pub(crate) fn of(&mut self, line: u64) -> &[u8] {
        let end = self.bytes.len() - LINE_END.len();
        (self.make)(line, &mut self.bytes[..end]);
        &self.bytes
    }
}

const LINE_END: &[u8] = b"\r\n";

/// Compares a file with the samples before `pushed` that are in no gap; returns the length of the file in
/// bytes.
pub(crate) fn compare<S: Store>(
    store: &mut S,
    path: &str,
    pushed: u64,
    gaps: &[Gap],
    line: &mut Line<impl FnMut(u64, &mut [u8])>,
) -> Result<u64, LoggerError<S::Error>> {
    let doing = |doing| move |source| LoggerError::Store { doing, source };
    let mut file = store.open(path, false).map_err(doing("opening"))?;
    let (mut at, mut held) = (0, Vec::new());
    let mut buffer = vec![0; LINES_PER_READ * line.bytes.len()];
    for number in samples_in_no_gap(pushed, gaps) {
        let expected = line.of(number);
        if held.is_empty() {
            let read = store.read(&mut file, at, &mut buffer);
            held = buffer[..read.map_err(doing("reading"))?].to_vec();
        }
        let same = held
            .iter()
            .zip(expected)
            .take_while(|(a, b)| a == b)
            .count();
        at += same as u64;
        if same < expected.len() {
            return Err(LoggerError::Differs { offset_bytes: at });
        }
        held.drain(..same);
    }
    let beyond = store.read(&mut file, at, &mut [0]);
    if beyond.map_err(doing("reading"))? > 0 || !held.is_empty() {
        return Err(LoggerError::Differs { offset_bytes: at });
    }
    store.close(file).map_err(doing("closing"))?;
    Ok(at)
}

/// Returns the samples that are in no gap.
fn samples_in_no_gap(pushed: u64, gaps: &[Gap]) -> impl Iterator<Item = u64> {
    let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.first + gap.count));
    let ends = gaps.iter().map(|gap| gap.first).chain([pushed]);
    starts.zip(ends).flat_map(|(start, end)| start..end)
}
