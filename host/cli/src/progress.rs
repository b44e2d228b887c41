//! A progress bar for anything that takes longer than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// Delay before a bar is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Template of a bar with the bytes done, the total, and the remaining time.
const OF_BYTES: &str = "[{bar:40}] {bytes} of {total_bytes}, {eta} left";
/// Template of a bar whose text the caller provides.
const OF_LINES: &str = "[{bar:40}] {msg}";

/// A bar on standard error; invisible if that is not a terminal.
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

    fn of(total: u64, template: &'static str) -> Progress {
        Progress {
            begun: Instant::now(),
            total,
            template,
            bar: None,
        }
    }

    /// Shows the number of bytes done.
    pub fn show(&mut self, bytes: u64) {
        if self.bar.is_none() && self.begun.elapsed() > SHOWN_AFTER {
            let bar = ProgressBar::new(self.total).with_style(style(self.template));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    /// Shows the number of lines done, with a message.
    pub fn show_samples(&mut self, lines: u64, message: impl FnOnce() -> String) {
        self.show(lines);
        if let Some(bar) = &self.bar {
            bar.set_message(message());
        }
    }

    /// Removes the bar.
    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
