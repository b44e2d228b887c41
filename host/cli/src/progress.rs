//! A progress bar for anything that takes longer than a second.

use crate::shared;
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// Delay before a bar is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Template of a bar with the bytes done, the total, and the remaining time.
const OF_BYTES: &str = "[{bar:WIDTH}] {bytes} of {total_bytes}{wide_msg}";
/// Template of a bar with the steps done, the total, and the remaining time.
const OF_STEPS: &str = "[{bar:WIDTH}] {pos} of {len}{wide_msg}";
/// Template of a bar whose text the caller provides.
const OF_LINES: &str = "[{bar:NARROW}] {wide_msg}";

/// Longest bar, in columns.
const WIDTH_MAX: u16 = 40;
/// Columns for a total and the remaining time next to a bar.
const TEXT_WIDTH: u16 = 36;
/// Columns for a text that the caller provides.
const MESSAGE_WIDTH: u16 = 72;

/// A bar on standard error; invisible if that is not a terminal, or with --quiet.
pub struct Progress {
    begun: Instant,
    total: u64,
    /// Steps that were done before the first report.
    before: Option<u64>,
    /// Estimated time of all steps, which counts until the first of them is done.
    expected: Option<Duration>,
    template: &'static str,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a bar for reading a file.
    pub fn over_file(file: &Path) -> Progress {
        Progress::over(std::fs::metadata(file).map_or(0, |metadata| metadata.len()))
    }

    /// Starts a bar for the given number of bytes.
    pub fn over(bytes_total: u64) -> Progress {
        Progress::of(bytes_total, OF_BYTES)
    }

    /// Starts a bar for the given number of samples.
    pub fn over_samples(lines_total: u64) -> Progress {
        Progress::of(lines_total, OF_LINES)
    }

    /// Starts a bar for the given number of steps, such as the trials of a search.
    pub fn over_steps(steps_total: u64) -> Progress {
        Progress::of(steps_total, OF_STEPS)
    }

    /// Uses an estimate of the remaining time until the first step is done.
    pub fn expecting(self, expected: Duration) -> Progress {
        Progress {
            expected: Some(expected),
            ..self
        }
    }

    fn of(total: u64, template: &'static str) -> Progress {
        Progress {
            begun: Instant::now(),
            total,
            before: None,
            expected: None,
            template,
            bar: None,
        }
    }

    /// Shows the number of bytes or steps done, and the remaining time.
    pub fn show(&mut self, done: u64) {
        self.update(done, |left| {
            left.map_or(String::new(), |left| format!(", {left}"))
        });
    }

    /// Shows the number of steps done, and a total that was not known before.
    pub fn show_of(&mut self, steps: u64, steps_total: u64) {
        self.total = steps_total;
        self.show(steps);
    }

    /// Shows the number of samples done, with a message.
    pub fn show_samples(&mut self, lines: u64, message: impl FnOnce() -> String) {
        // A narrow terminal cuts off the end of the message.
        self.update(lines, |left| match left {
            Some(left) => format!("{left}, {}", message()),
            None => message(),
        });
    }

    /// Moves the bar; `message` gets the remaining time if it can be estimated.
    fn update(&mut self, done: u64, message: impl FnOnce(Option<String>) -> String) {
        let elapsed = self.begun.elapsed();
        let before = *self.before.get_or_insert(done);
        if self.bar.is_none() && elapsed > SHOWN_AFTER && !shared::is_quiet() {
            let bar = ProgressBar::new(self.total).with_style(style(self.template));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_length(self.total);
            bar.set_position(done);
            let steps = done.saturating_sub(before);
            let steps_total = self.total.saturating_sub(before);
            let expected = self.expected.filter(|_| steps == 0);
            let left = match expected {
                Some(expected) => Some(words(expected.saturating_sub(elapsed))),
                None => left(elapsed, steps, steps_total),
            };
            bar.set_message(message(left));
        }
    }

    /// Removes the bar.
    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A file that shows how much of it has been read.
pub struct Watched {
    file: File,
    bytes: u64,
    progress: Option<Progress>,
}

impl Watched {
    /// Watches a file that will be read the given number of times.
    pub fn new(file: File, times: u64) -> Watched {
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        Watched {
            file,
            bytes: 0,
            progress: Some(Progress::over(bytes.saturating_mul(times))),
        }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.bytes += bytes as u64;
        if let Some(progress) = &mut self.progress {
            progress.show(self.bytes);
        }
        Ok(bytes)
    }
}

impl Seek for Watched {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.clear();
        }
    }
}

/// Returns the remaining time, from the mean speed since the start: this speed varies less than that of the last
/// seconds, so the remaining time falls steadily.
fn left(elapsed: Duration, done: u64, total: u64) -> Option<String> {
    if done == 0 || total < done {
        return None;
    }
    let left_s = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    // At 100 years or more, progress is too slow for an estimate.
    if left_s > 3e9 {
        return None;
    }
    Some(words(Duration::from_secs_f64(left_s)))
}

fn words(left: Duration) -> String {
    let left = Duration::from_secs(left.as_secs_f64().round() as u64);
    format!("{} left", humantime::format_duration(left))
}

fn style(template: &str) -> ProgressStyle {
    let (_, columns) = Term::stderr().size();
    ProgressStyle::with_template(&sized(template, columns))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// Fits a template to the width of the terminal.
fn sized(template: &str, columns: u16) -> String {
    let width = |text: u16| columns.saturating_sub(text).clamp(4, WIDTH_MAX).to_string();
    template
        .replace("WIDTH", &width(TEXT_WIDTH))
        .replace("NARROW", &width(MESSAGE_WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_leave_room_for_their_text() {
        for (columns, of_bytes, of_lines) in [(40, 4, 4), (80, 40, 8), (200, 40, 40)] {
            for (template, width) in [
                (OF_BYTES, of_bytes),
                (OF_STEPS, of_bytes),
                (OF_LINES, of_lines),
            ] {
                let sized = sized(template, columns);
                assert!(sized.starts_with(&format!("[{{bar:{width}}}] ")), "{sized}");
                assert!(ProgressStyle::with_template(&sized).is_ok());
            }
        }
    }

    #[test]
    fn the_remaining_time_falls_at_constant_speed() {
        let at = |s| left(Duration::from_secs(s), s * 10, 6000).unwrap();
        assert_eq!(at(1), "9m 59s left");
        assert_eq!(at(60), "9m left");
        assert_eq!(at(600), "0s left");
        assert_eq!(left(Duration::from_secs(1), 0, 100), None);
        assert_eq!(left(Duration::from_secs(2), 3, 0), None);
        assert_eq!(left(Duration::from_secs(9), 1, u64::MAX), None);
    }
}
