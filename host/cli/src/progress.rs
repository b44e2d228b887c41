//! A progress bar for whatever takes longer than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long something takes before a bar is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// A bar over bytes, on standard error; nothing where that is no terminal.
pub struct Progress {
    begun: Instant,
    bytes_total: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress through a file, from now on.
    pub fn over_file(file: &Path) -> Progress {
        Progress::over(std::fs::metadata(file).map_or(0, |metadata| metadata.len()))
    }

    /// Progress towards so many bytes, from now on.
    pub fn over(bytes_total: u64) -> Progress {
        Progress {
            begun: Instant::now(),
            bytes_total,
            bar: None,
        }
    }

    /// Shows how many bytes are done.
    pub fn show(&mut self, bytes: u64) {
        if self.bar.is_none() && self.begun.elapsed() > SHOWN_AFTER {
            self.bar = Some(ProgressBar::new(self.bytes_total).with_style(style()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    /// Takes the bar away.
    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "[{bar:40}] {bytes} of {total_bytes}, {eta} left";
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
