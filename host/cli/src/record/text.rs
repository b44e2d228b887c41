//! What came of a recording, as people read it.

use super::args::{Durability, Record};
use super::figures::{Figures, GapFigures};
use cardiograph_report::table::{Section, section_text};
use cardiograph_report::units;

/// Gaps that are listed.
const GAPS_SHOWN: usize = 10;

/// The table.
pub fn text(args: &Record, figures: &Figures) -> String {
    let streams = match figures.streams {
        1 => String::new(),
        streams => format!(" · {streams} streams"),
    };
    let seed = figures.seed.map(|seed| format!(" · seed {seed}"));
    let seed = seed.unwrap_or_default();
    let mut out = format!("{} · {}{streams}{seed}\n", args.target, figures.policy);
    if figures.interrupted {
        out.push_str("warning: interrupted; these are the lines until then\n");
    }
    let mut sections = vec![
        lines(figures),
        ram(figures),
        rate(figures),
        durability(args, figures),
    ];
    if !figures.gaps.is_empty() {
        sections.push(gaps(figures));
    }
    for section in &sections {
        out.push_str(&section_text(section));
    }
    out.push_str(&format!("\n{}\n", headline(figures)));
    out
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_string(), value)
}

fn lines(figures: &Figures) -> Section {
    let mut duration = units::time(figures.duration_us as f64);
    if figures.seed.is_some() {
        duration.push_str(" of virtual time");
    }
    Section {
        heading: "Lines",
        rows: vec![
            row("pushed", units::count(figures.pushed)),
            row("written", units::count(figures.written)),
            row("lost", lost(figures)),
            row("files", units::count(figures.files)),
            row("elapsed", duration),
        ],
    }
}

/// Lines lost, and their part.
pub fn lost(figures: &Figures) -> String {
    match figures.lost {
        0 => "none".to_string(),
        lost => format!(
            "{} ({})",
            units::count(lost),
            units::percent(lost as f64 / figures.pushed as f64)
        ),
    }
}

fn ram(figures: &Figures) -> Section {
    let ring_bytes = figures.ram_bytes / u64::from(figures.streams);
    let each = match figures.streams {
        1 => String::new(),
        _ => format!(", {} per stream", units::binary_bytes(ring_bytes)),
    };
    Section {
        heading: "RAM",
        rows: vec![
            row("size", units::binary_bytes(figures.ram_bytes) + &each),
            row(
                "highest level",
                format!(
                    "{} ({})",
                    units::bytes(figures.ring_peak_bytes as f64),
                    units::percent(figures.ring_peak_bytes as f64 / ring_bytes as f64)
                ),
            ),
        ],
    }
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
            "sustained bound",
            format!("{}, {}", units::rate(bound), bound_of(figures)),
        ));
    }
    Section {
        heading: "Rate",
        rows,
    }
}

/// Describes the write loop whose rate bounds the recording.
fn bound_of(figures: &Figures) -> &'static str {
    match (figures.streams, figures.format) {
        (1, _) | (_, "binary") => "a plain CMD25 loop with this buffer",
        _ => "a plain CMD25 loop over as many files, in turns of 16 KiB, with this buffer",
    }
}

fn durability(args: &Record, figures: &Figures) -> Section {
    let mut rows = Vec::new();
    if let Some(breaches) = figures.window_breaches {
        let window = match args.durability {
            Durability::Time(time) => humantime::format_duration(time).to_string(),
            Durability::Sample => "the newest line".to_string(),
        };
        rows.push(row("window", window));
        rows.push(row("not kept", format!("{} times", units::count(breaches))));
    }
    rows.push(row("a power cut takes", at_risk(figures)));
    if figures.longest_write_us > 0.0 {
        rows.push(row("longest write", units::time(figures.longest_write_us)));
    }
    Section {
        heading: "Durability",
        rows,
    }
}

/// What a power cut would have taken at the worst moment.
pub fn at_risk(figures: &Figures) -> String {
    match figures.at_risk_us_max >= figures.duration_us {
        true => "all of it".to_string(),
        false => format!(
            "at most the last {}",
            units::time(figures.at_risk_us_max as f64)
        ),
    }
}

fn gaps(figures: &Figures) -> Section {
    let shown = |gap: &GapFigures| {
        let stream = gap.stream.map(|stream| format!(", stream {stream}"));
        let value = format!(
            "{} lines from {} on, {}{}",
            units::count(gap.count),
            gap.first,
            gap.cause,
            stream.unwrap_or_default()
        );
        (format!("at {}", units::time(gap.at_us as f64)), value)
    };
    let mut rows: Vec<_> = figures.gaps.iter().take(GAPS_SHOWN).map(shown).collect();
    if let Some(more @ 1..) = figures.gap_count.checked_sub(rows.len() as u64) {
        rows.push(row("and", format!("{} more", units::count(more))));
    }
    Section {
        heading: "Gaps",
        rows,
    }
}

fn headline(figures: &Figures) -> String {
    if let Some(why) = figures.unread {
        return format!("Not read back, as {why}.");
    }
    let verified = match figures.written {
        0 => "verified: no line was written",
        _ => "verified: every line read back",
    };
    match figures.lost {
        0 => format!("{verified}, none lost."),
        lost => format!(
            "{verified}; the {} lost are those of the gaps.",
            units::count(lost)
        ),
    }
}
