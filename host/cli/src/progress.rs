//! A progress bar for whatever takes longer than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long something takes before a bar is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Bytes done, of how many, and how long the rest will take.
const OF_BYTES: &str = "[{bar:40}] {bytes} of {total_bytes}, {eta} left";
/// Whoever shows it says what is done.
const OF_LINES: &str = "[{bar:40}] {msg}";

/// A bar on standard error; nothing where that is no terminal.
pub struct Progress {
    begun: Instant,
    total: u64,
    template: &'static str,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress through a file, from now on.
    pub fn over_file(file: &Path) -> Progress {
        Progress::over(std::fs::metadata(file).map_or(0, |metadata| metadata.len()))
    }

    /// Progress towards so many bytes, from now on.
    pub fn over(bytes_total: u64) -> Progress {
        Progress::of(bytes_total, OF_BYTES)
    }

    /// Progress towards so many lines.
    pub fn over_lines(lines_total: u64) -> Progress {
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

    /// Shows how many bytes are done.
    pub fn show(&mut self, bytes: u64) {
        if self.bar.is_none() && self.begun.elapsed() > SHOWN_AFTER {
            let bar = ProgressBar::new(self.total).with_style(style(self.template));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    /// Shows how many lines are done, and what else there is to say.
    pub fn show_lines(&mut self, lines: u64, said: impl FnOnce() -> String) {
        self.show(lines);
        if let Some(bar) = &self.bar {
            bar.set_message(said());
        }
    }

    /// Takes the bar away.
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
