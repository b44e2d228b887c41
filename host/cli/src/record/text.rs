//! Text output of a recording.

use super::args::{DurabilityWindow, Record};
use super::checks::{RATE_HZ, SAMPLE_BYTES};
use crate::failure::BAD;
use cardiograph_compare::{Figures, GapFigures};
use cardiograph_report::table::{Section, section_text};
use cardiograph_report::units;

/// Maximum number of listed gaps.
const GAPS_SHOWN: usize = 10;
/// Gaps that follow each other within this time count as one stall, in us.
const STALLS_US: u64 = 1_000_000;
/// Average duration of files, in multiples of the requested one, from which the table states it. The last file is shorter,
/// and closing it takes time.
const LATE_FILE: f64 = 1.5;
/// The recommended buffer size is a multiple of this, in bytes.
const ADVISED_BYTES: u64 = 16 * 1024;

/// Formats the figures as a table.
pub fn text(args: &Record, figures: &Figures) -> String {
    let streams = match figures.streams {
        1 => String::new(),
        streams => format!(" · {streams} streams"),
    };
    let seed = figures.seed.map(|seed| format!(" · seed {seed}"));
    let seed = seed.unwrap_or_default();
    let mut out = format!(
        "{}{}\n\n{} · {}{streams}{seed}\n",
        headline(figures),
        rate_sentence(args, figures),
        args.target,
        figures.policy
    );
    if figures.interrupted {
        out.push_str(
            "warning: interrupted; the figures cover the samples before the interruption\n",
        );
    }
    let mut sections = vec![
        samples(args, figures),
        buffer(figures),
        rate(figures),
        durability(args, figures),
    ];
    if !figures.gaps.is_empty() {
        sections.push(gaps(figures));
    }
    for section in &sections {
        out.push_str(&section_text(section));
    }
    out
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_string(), value)
}

fn in_colour(is_bad: bool, text: String) -> String {
    match is_bad {
        true => format!("{BAD}{text}{BAD:#}"),
        false => text,
    }
}

fn samples(args: &Record, figures: &Figures) -> Section {
    let mut duration = units::time(figures.duration_us as f64);
    if figures.seed.is_some() {
        duration.push_str(" of virtual time");
    }
    let mut rows = vec![
        row("produced", units::count(figures.samples_pushed)),
        row("written", units::count(figures.samples_written)),
        row("lost", in_colour(figures.samples_lost > 0, lost(figures))),
    ];
    let known = figures.samples_written + figures.samples_lost;
    // Another program has removed or changed their files.
    if known < figures.samples_pushed {
        let unaccounted = units::count(figures.samples_pushed - known);
        rows.push(row("unaccounted for", in_colour(true, unaccounted)));
    }
    rows.push(row(
        "files",
        units::count(figures.files) + &late_files(args, figures),
    ));
    rows.push(row("elapsed", duration));
    Section {
        heading: "Samples",
        rows,
    }
}

/// Returns a clause for the table if files lasted clearly longer than requested; otherwise an empty string.
fn late_files(args: &Record, figures: &Figures) -> String {
    let tracks = match has_own_files(figures) {
        true => figures.streams,
        false => 1,
    };
    let file_us = figures.duration_us as f64 * f64::from(tracks) / figures.files.max(1) as f64;
    match args.rotate_every {
        Some(rotate)
            if figures.policy == "stream" && file_us > LATE_FILE * rotate.as_secs_f64() * 1e6 =>
        {
            let rotate = humantime::format_duration(rotate);
            let lasted = units::time(file_us);
            format!("; each lasted {lasted} on average, not {rotate}")
        }
        _ => String::new(),
    }
}

/// Returns true if each of several streams has files of its own.
fn has_own_files(figures: &Figures) -> bool {
    figures.streams > 1 && figures.format != "binary"
}

/// Formats the number of lost samples and their percentage.
pub fn lost(figures: &Figures) -> String {
    match figures.samples_lost {
        0 => "none".to_string(),
        lost => format!(
            "{} ({})",
            units::count(lost),
            units::percent(lost as f64 / figures.samples_pushed as f64)
        ),
    }
}

fn buffer(figures: &Figures) -> Section {
    let ring_bytes = figures.buffer_bytes / u64::from(figures.streams);
    let (each, fullest, each_by) = match figures.streams {
        1 => (String::new(), "", ""),
        _ => (
            format!(", {} per stream", units::binary_bytes(ring_bytes)),
            " in the fullest stream",
            " of a stream",
        ),
    };
    let mut rows = vec![
        row("size", units::binary_bytes(figures.buffer_bytes) + &each),
        row(
            "peak",
            format!(
                "{}{fullest} ({})",
                units::binary_bytes(figures.buffer_peak_bytes),
                units::percent(figures.buffer_peak_bytes as f64 / ring_bytes as f64)
            ),
        ),
    ];
    if let Some(excess_bytes) = excess_bytes(figures) {
        let needed_bytes = (ring_bytes + excess_bytes) * u64::from(figures.streams);
        rows.push(row(
            "to lose none",
            format!(
                "about {}; stalls exceeded the buffer{each_by} by up to {}",
                units::binary_bytes(needed_bytes.next_multiple_of(ADVISED_BYTES)),
                units::binary_bytes(excess_bytes)
            ),
        ));
    }
    Section {
        heading: "Buffer",
        rows,
    }
}

/// Returns the most bytes that a stream lost in one stall, if the recorder lost a small part of the samples to stalls at a rate
/// that the card sustains. Gaps that follow each other within [`STALLS_US`] count as one stall.
fn excess_bytes(figures: &Figures) -> Option<u64> {
    let is_recorder = figures.policy == "stream";
    let is_part = figures.samples_lost < figures.samples_pushed / 10;
    let is_below = arrival_rate_bytes_per_s(figures) < figures.sustained_bound_bytes_per_s?;
    (is_recorder && is_part && is_below).then_some(())?;
    let payload_bytes = figures.payload_rate_bytes_per_s? * figures.duration_us as f64 / 1e6;
    let sample_bytes = payload_bytes / figures.samples_written.max(1) as f64;
    let samples_max = (0..=figures.streams).map(|stream| {
        let of_stream = |gap: &&GapFigures| gap.stream.unwrap_or(0) == stream;
        most_in_a_stall(figures.gaps.iter().filter(of_stream))
    });
    let samples_max = samples_max.max().unwrap_or(0);
    (samples_max > 0).then_some((samples_max as f64 * sample_bytes).ceil() as u64)
}

fn most_in_a_stall<'a>(gaps: impl Iterator<Item = &'a GapFigures>) -> u64 {
    let (mut most, mut samples, mut last_us) = (0, 0, 0);
    for gap in gaps.filter(|gap| gap.cause == "busy") {
        if gap.at_us > last_us + STALLS_US {
            samples = 0;
        }
        (samples, last_us) = (samples + gap.samples, gap.at_us);
        most = samples.max(most);
    }
    most
}

fn rate(figures: &Figures) -> Section {
    let mut rows = vec![row(
        "file data",
        format!(
            "{} ({})",
            units::rate(figures.file_rate_bytes_per_s),
            figures.format
        ),
    )];
    if let Some(payload) = figures.payload_rate_bytes_per_s {
        rows.push(row("payload", units::rate(payload)));
    }
    if let Some(bound) = figures.sustained_bound_bytes_per_s {
        rows.push(row(
            "highest rate",
            format!(
                "{} {}{}",
                units::rate(bound),
                bound_of(figures),
                lost_below(figures, bound)
            ),
        ));
    }
    Section {
        heading: "Rate",
        rows,
    }
}

/// Returns a clause for the table if samples were lost at a rate clearly below the bound; otherwise an empty string.
fn lost_below(figures: &Figures, bound: f64) -> String {
    match figures.samples_lost {
        1.. if arrival_rate_bytes_per_s(figures) * 1.1 < bound => {
            let remedy = match has_own_files(figures) {
                true => {
                    "; with --format binary, all streams share one file, which cards write faster"
                }
                false => "",
            };
            format!("; this run lost samples{remedy}")
        }
        _ => String::new(),
    }
}

/// Returns the rate at which the files would have grown if no sample had been lost.
fn arrival_rate_bytes_per_s(figures: &Figures) -> f64 {
    let kept = figures.samples_written.max(1) as f64 / figures.samples_pushed.max(1) as f64;
    figures.file_rate_bytes_per_s / kept
}

/// Describes the write loop whose sustained rate is the upper bound of the recorder's.
fn bound_of(figures: &Figures) -> &'static str {
    match has_own_files(figures) {
        false => "for a plain CMD25 loop with this buffer",
        true => {
            "for a plain CMD25 loop that switches between one file per stream every 16 KiB, with this buffer"
        }
    }
}

fn durability(args: &Record, figures: &Figures) -> Section {
    let mut rows = Vec::new();
    if let Some(breaches) = figures.durability_window_exceeded {
        let window = match args.durability_window {
            DurabilityWindow::Time(time) => humantime::format_duration(time).to_string(),
            DurabilityWindow::Sample => "the newest sample".to_string(),
        };
        rows.push(row("window", window));
        rows.push(row("exceeded", times(breaches)));
    }
    rows.push(row("power cut loses", at_risk(figures)));
    if figures.worst_case_write_us > 0.0 {
        rows.push(row(
            "worst-case write",
            units::time(figures.worst_case_write_us),
        ));
    }
    Section {
        heading: "Durability",
        rows,
    }
}

fn times(count: u64) -> String {
    match count {
        0 => "never".to_string(),
        1 => "once".to_string(),
        count => format!("{} times", units::count(count)),
    }
}

/// Formats the data that a power cut would have lost at the worst moment.
pub fn at_risk(figures: &Figures) -> String {
    match figures.at_risk_max_us >= figures.duration_us {
        true => "everything".to_string(),
        false => format!(
            "at most the last {}",
            units::time(figures.at_risk_max_us as f64)
        ),
    }
}

fn gaps(figures: &Figures) -> Section {
    let shown = |gap: &GapFigures| {
        let stream = gap.stream.map(|stream| format!("stream {stream}: "));
        let value = format!(
            "{}{} lost, starting at sample {}; cause: {}",
            stream.unwrap_or_default(),
            units::count(gap.samples),
            gap.first_sample,
            cause(gap.cause)
        );
        (format!("at {}", units::time(gap.at_us as f64)), value)
    };
    let mut rows: Vec<_> = figures.gaps.iter().take(GAPS_SHOWN).map(shown).collect();
    if let Some(more @ 1..) = figures.gaps_total.checked_sub(rows.len() as u64) {
        rows.push(row("and", format!("{} more", units::count(more))));
    }
    Section {
        heading: "Gaps",
        rows,
    }
}

/// Describes the cause of a gap; its keyword is in the JSON.
fn cause(word: &str) -> &str {
    match word {
        "busy" => "the card was busy",
        "no-card" => "there was no card",
        "card-failed" => "the card failed",
        "card-full" => "the card was full",
        "file-not-ready" => "the next file was not ready",
        "read" => "a read was in progress",
        "bad-sample" => "the sample had a wrong length",
        "session" => "the buffer was full before the end of the session",
        word => word,
    }
}

/// Returns a sentence with the highest rate, next to that of generated samples, with a space before it; nothing if the
/// highest rate is not known.
fn rate_sentence(args: &Record, figures: &Figures) -> String {
    let Some(bound) = figures.sustained_bound_bytes_per_s else {
        return String::new();
    };
    let bound = units::rate(bound);
    match args.samples {
        None => {
            let sample_bytes = args.sample_bytes.unwrap_or(SAMPLE_BYTES) as f64;
            let rate_hz = f64::from(args.rate.unwrap_or(RATE_HZ).get());
            let needed = units::rate(rate_hz * sample_bytes * f64::from(args.streams));
            format!(
                " The samples need {needed}; with this buffer, the card sustains up to {bound}."
            )
        }
        Some(_) => format!(" With this buffer, the card sustains up to {bound}."),
    }
}

fn headline(figures: &Figures) -> String {
    if let Some(why) = figures.unverified {
        return format!("Not verified: {why}.");
    }
    let verified = match figures.samples_written {
        0 => "Verified: no samples written",
        _ if figures.samples_lost > 0 => "Verified: every written sample read back",
        _ => "Verified: every sample read back",
    };
    match figures.samples_lost {
        0 => format!("{verified}, none lost."),
        lost => format!(
            "{verified}; the gaps account for the {} lost.",
            units::count(lost)
        ),
    }
}
