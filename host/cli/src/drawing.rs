//! Drawings of cards and boards for a terminal of 100 columns: structure on the left, derived figures on the right.

mod board;
mod card;
mod endurance;
mod theory;

pub use board::board;
pub use card::card;

use cardiograph_report::units;
use std::iter;
use theory::Derived;

/// Width of a box including its frame, in characters.
const BOX_WIDTH: usize = 48;
/// Width of the derived figures, in characters.
const THEORY_WIDTH: usize = 50;
const GAP: &str = "  ";
const NAME_WIDTH: usize = 18;

/// Lays out the page: a title above both columns.
fn page(name: &str, about: &str, left: &[String], theory: &[Derived]) -> String {
    let width = BOX_WIDTH + GAP.len() + THEORY_WIDTH;
    let mut out = String::new();
    for line in wrapped(&plain(&format!("{name}: {about}")), width) {
        out += &format!("{line}\n");
    }
    out.push('\n');
    let right = theory_lines(theory);
    for at in 0..left.len().max(right.len()) {
        let cell = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
        let line = format!("{}{GAP}{}", padded(&cell(left), BOX_WIDTH), cell(&right));
        out += &format!("{}\n", line.trim_end());
    }
    out
}

fn theory_lines(theory: &[Derived]) -> Vec<String> {
    let note = "Theory: calculated from the values on the left alone, without spread. None of these figures was measured.";
    let mut lines = wrapped(note, THEORY_WIDTH);
    for Derived {
        name,
        value,
        formula,
    } in theory
    {
        lines.push(String::new());
        let room = THEORY_WIDTH.saturating_sub(value.chars().count() + 1);
        lines.push(format!("{} {value}", padded(name, room)));
        let formula = wrapped(&format!("= {formula}"), THEORY_WIDTH - 4);
        let indents = iter::once("  ").chain(iter::repeat("    "));
        lines.extend(
            indents
                .zip(formula)
                .map(|(indent, line)| indent.to_string() + &line),
        );
    }
    lines
}

/// Draws a box, with an arrow from the middle of its bottom edge if another box follows.
fn framed(title: &str, rows: &[String], has_next: bool) -> Vec<String> {
    let inner = BOX_WIDTH - 2;
    let title = format!("─ {title} ");
    let mut lines = vec![format!("┌{title:─<inner$}┐")];
    let room = inner - 2;
    lines.extend(rows.iter().map(|row| format!("│ {} │", padded(row, room))));
    let middle = BOX_WIDTH / 2 - 1;
    let (before, after) = ("─".repeat(middle), "─".repeat(inner - middle - 1));
    let foot = if has_next { "┬" } else { "─" };
    lines.push(format!("└{before}{foot}{after}┘"));
    if has_next {
        lines.push(arrow(""));
    }
    lines
}

/// Draws an arrow between two boxes.
fn arrow(label: &str) -> String {
    format!("{}▼ {label}", " ".repeat(BOX_WIDTH / 2))
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<NAME_WIDTH$}{value}")
}

/// Repeats a symbol `count` times, but no more often than fits in `room`.
fn symbols(symbol: &str, count: u32, room: usize) -> String {
    match count as usize {
        count if count <= room => symbol.repeat(count),
        _ => symbol.repeat(room.saturating_sub(1)) + "…",
    }
}

/// Formats a time in us; 0 becomes `none`.
fn time(us: f64) -> String {
    match us {
        0.0 => "none".to_string(),
        us => units::time(us),
    }
}

/// Formats a count, as `1 block` or `2 blocks`.
fn plural(count: u32, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", units::count(count.into()))
}

/// Pads or truncates text to an exact width.
fn padded(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// Replaces control characters, which could change the state of the terminal.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map(std::mem::take).unwrap_or_default();
        let together = format!("{line} {word}");
        let together = together.trim_start();
        lines.pop();
        if line.is_empty() || together.chars().count() <= width {
            lines.push(padded(together, width).trim_end().to_string());
        } else {
            lines.extend([line, padded(word, width).trim_end().to_string()]);
        }
    }
    lines
}
