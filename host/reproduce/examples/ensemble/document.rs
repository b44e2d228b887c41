//! An ensemble as a profile whose comments say where each value comes from.

use cardiograph_reproduce::{Row, fitting};
use cardiograph_sim_card::Profile;
use std::fmt::Write;

/// A member, and the ratio of the simulated to the published number for each row.
pub struct Fitted {
    /// The card.
    pub profile: Profile,
    /// Simulated divided by published numbers.
    pub ratios: Vec<f64>,
}

/// Comments on values that were not fitted, by key. A key that is missing here was fitted.
fn sources(profile: &Profile) -> Vec<(&'static str, &'static str)> {
    let chip = match profile.flash.program_us.len() {
        1 => "data sheet of Samsung K9K8G08U0A",
        2 => "data sheet of Samsung K9GAG08U0M",
        _ => "AnandTech, Understanding TLC NAND, 2012",
    };
    let page = match profile.flash.program_us.len() {
        1 | 2 => chip,
        _ => "assumed",
    };
    vec![
        ("page_bytes", page),
        ("read_us", chip),
        ("log_program_us", "as the fastest page"),
        ("spread_percent", "assumed"),
        ("endurance_cycles", "assumed"),
        ("endurance_spread_percent", "assumed"),
        ("erase_wear_percent", "assumed"),
        ("cycles_used", "assumed: hardly used"),
        ("ram_pages", "assumed"),
        ("log_blocks", "no limit but spare_blocks"),
        ("log_used_pages", "the seed draws it"),
        (
            "gc_log_blocks",
            "assumed: the oldest one, as in FAST (Lee et al., 2007)",
        ),
        ("stall_limit_us", "SD specification, 4.6.2.2"),
        ("idle_after_us", "assumed"),
        ("idle_free_blocks", "assumed"),
        ("wear_levelling_erases", "assumed"),
        ("mapping", "assumed"),
        ("victim", "assumed"),
        ("map_journal_entries", "assumed"),
        (
            "receive_pages",
            "not fitted; 1 means a second buffer (SanDisk SD Card Product Manual 2.2, 2004, page 4-45)",
        ),
        ("part_blocks", "not shown by these rows"),
        ("refresh_reads", "assumed"),
        ("read_retry_percent", "assumed"),
        ("fill_percent", "assumed: the seed draws it between these"),
        ("log_percent", "the seed draws it"),
    ]
}

/// Returns the text of the profile.
pub fn document(card: &str, rows: &[Row], args: &[String], fitted: &[Fitted]) -> String {
    let Some(first) = fitted.first() else {
        return String::new();
    };
    let mut out = header(card, rows, args, fitted);
    let toml = first.profile.to_toml().unwrap_or_default();
    let sources = sources(&first.profile);
    let mut is_power = false;
    for line in toml.lines() {
        is_power |= line == "[power]";
        if line == "[ftl]" {
            is_power = false;
        }
        let key = line.split(" = ").next().unwrap_or_default();
        let source = sources.iter().find(|(known, _)| *known == key);
        let _ = match source.filter(|_| !is_power) {
            Some((_, source)) => writeln!(out, "{line} # {source}"),
            None => writeln!(out, "{line}"),
        };
    }
    let of_first = fitting::lines(&first.profile);
    for member in &fitted[1..] {
        out.push_str("\n[[member]]\n");
        let lines = fitting::lines(&member.profile);
        for line in lines.iter().filter(|line| !of_first.contains(line)) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn header(card: &str, rows: &[Row], args: &[String], fitted: &[Fitted]) -> String {
    let first = match args.last().map(String::as_str) {
        Some("keep") => "that of an earlier search, with the erase time of the data sheet",
        _ => "the closest that a search found",
    };
    let mut out = format!(
        "# Written by `cargo run --release -p cardiograph-reproduce --example ensemble -- {card} {}`:\n\
         # {} cards within the bounds of host/reproduce/src/bounds.rs. The first, the profile itself, is\n\
         # {first}. Each other member is the end of a\n\
         # random walk through cards that explain these rows of studies/ within 25 %, or the closest card if a walk\n\
         # found none, on a board with times of its own. Ratios of simulated to published numbers of all members,\n\
         # medians of five states of the card:\n",
        args.join(" "),
        fitted.len(),
    );
    for (at, row) in rows.iter().enumerate() {
        let ratios = || fitted.iter().map(|member| member.ratios[at]);
        let least = ratios().fold(f64::INFINITY, f64::min);
        let most = ratios().fold(0.0, f64::max);
        let unit = if row.unit == "1" { "" } else { &row.unit };
        let published = row.published.unwrap_or_default();
        let _ = writeln!(
            out,
            "#   {}: {}, {published} {unit}: {least:.2} to {most:.2}",
            row.figure, row.quantity
        );
    }
    out.push_str(
        "# No prediction was used. Values without a comment in [flash], [controller] and [ftl] were fitted. Power is assumed,\n\
         # about as measured in the MagOD2 thesis (study 1), because no published time depends on it.\n\n",
    );
    out
}
