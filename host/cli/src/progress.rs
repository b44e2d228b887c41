//! A progress bar for anything that takes longer than a second.

use crate::shared;
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// Delay before a bar is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Template of a bar with the bytes done, the total, and the remaining time.
const OF_BYTES: &str = "[{bar:WIDTH}] {bytes} of {total_bytes}{wide_msg}";
/// Template of a bar with the steps done, the total, and the remaining time.
const OF_STEPS: &str = "[{bar:WIDTH}] {pos} of {len}{wide_msg}";
/// Template of a bar whose text the caller provides.
const OF_LINES: &str = "[{bar:WIDTH}] {wide_msg}";

/// Longest bar, in columns.
const WIDTH_MAX: u16 = 40;
/// Columns for the text next to a bar.
const TEXT_WIDTH: u16 = 36;

/// A bar on standard error; invisible if that is not a terminal, or with --quiet.
pub struct Progress {
    begun: Instant,
    total: u64,
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

    /// Starts a bar for the given number of lines.
    pub fn over_samples(lines_total: u64) -> Progress {
        Progress::of(lines_total, OF_LINES)
    }

    /// Starts a bar for the given number of steps, such as the trials of a search.
    pub fn over_steps(steps_total: u64) -> Progress {
        Progress::of(steps_total, OF_STEPS)
    }

    fn of(total: u64, template: &'static str) -> Progress {
        Progress {
            begun: Instant::now(),
            total,
            template,
            bar: None,
        }
    }

    /// Shows the number of bytes or steps done.
    pub fn show(&mut self, done: u64) {
        let elapsed = self.begun.elapsed();
        if self.bar.is_none() && elapsed > SHOWN_AFTER && !shared::is_quiet() {
            let bar = ProgressBar::new(self.total).with_style(style(self.template));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(left(elapsed, done, self.total));
        }
    }

    /// Shows the number of steps done, and a total that was not known before.
    pub fn show_of(&mut self, steps: u64, steps_total: u64) {
        self.total = steps_total;
        self.show(steps);
    }

    /// Shows the number of lines done, with a message.
    pub fn show_samples(&mut self, lines: u64, message: impl FnOnce() -> String) {
        self.show(lines);
        if let Some(bar) = &self.bar {
            let left = left(self.begun.elapsed(), lines, self.total);
            // The terminal may cut the end of the line.
            bar.set_message(match left.strip_prefix(", ") {
                Some(left) => format!("{left}, {}", message()),
                None => message(),
            });
        }
    }

    /// Removes the bar.
    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns the remaining time as the end of a line. The mean speed since the start decides: it varies less than that of
/// the last seconds, so that the remaining time falls.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || total < done {
        return String::new();
    }
    let left_s = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    // 100 years; a fraction of it is done too slowly for an estimate.
    if left_s > 3e9 {
        return String::new();
    }
    let left = Duration::from_secs(left_s.round() as u64);
    format!(", {} left", humantime::format_duration(left))
}

fn style(template: &str) -> ProgressStyle {
    let (_, columns) = Term::stderr().size();
    let width = columns.saturating_sub(TEXT_WIDTH).clamp(4, WIDTH_MAX);
    ProgressStyle::with_template(&template.replace("WIDTH", &width.to_string()))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::left;
    use std::time::Duration;

    #[test]
    fn the_remaining_time_falls_at_constant_speed() {
        let at = |s| left(Duration::from_secs(s), s * 10, 6000);
        assert_eq!(at(1), ", 9m 59s left");
        assert_eq!(at(60), ", 9m left");
        assert_eq!(at(600), ", 0s left");
        assert_eq!(left(Duration::from_secs(1), 0, 100), "");
        assert_eq!(left(Duration::from_secs(2), 3, 0), "");
        assert_eq!(left(Duration::from_secs(9), 1, u64::MAX), "");
    }
}
