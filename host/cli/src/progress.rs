//! A progress bar for operations that take longer than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// Duration of an operation before its bar appears.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Template with bytes done, total and remaining time.
const OF_BYTES: &str = "[{bar:40}] {bytes} of {total_bytes}, {eta} left";
/// Template with a message of the caller.
const OF_SAMPLES: &str = "[{bar:40}] {msg}";

/// A bar on standard error; invisible if standard error is not a terminal.
pub struct Progress {
    begun: Instant,
    total: u64,
    template: &'static str,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts progress through a file.
    pub fn over_file(file: &Path) -> Progress {
        Progress::over(std::fs::metadata(file).map_or(0, |metadata| metadata.len()))
    }

    /// Starts progress towards a number of bytes.
    pub fn over(bytes_total: u64) -> Progress {
        Progress::of(bytes_total, OF_BYTES)
    }

    /// Starts progress towards a number of samples.
    pub fn over_samples(samples_total: u64) -> Progress {
        Progress::of(samples_total, OF_SAMPLES)
    }

    fn of(total: u64, template: &'static str) -> Progress {
        Progress {
            begun: Instant::now(),
            total,
            template,
            bar: None,
        }
    }

    /// Updates the number of bytes done.
    pub fn show(&mut self, bytes: u64) {
        if self.bar.is_none() && self.begun.elapsed() > SHOWN_AFTER {
            let bar = ProgressBar::new(self.total).with_style(style(self.template));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    /// Updates the number of samples done and the message.
    pub fn show_samples(&mut self, samples: u64, message: impl FnOnce() -> String) {
        self.show(samples);
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
