//! The answer as one HTML file that works offline: a plot and a table for each card, board and policy.

use crate::answer::{Answer, Cell};
use crate::check::{Checked, PlanDifference};
use crate::text::{blocks, duration, notes, probability, tasks, title};
use cardiograph_report::units;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Number of colours in the style sheet, and of dashes that distinguish further rates.
const COLOURS: usize = 6;
const DASHES: usize = 4;
/// Distance between the marks of two rates, and width for those of all rates, in px.
const STEP: f64 = 5.0;
const SPREAD: f64 = 40.0;
/// Half of the length of an interval's end mark, in px.
const CAP: f64 = 3.0;

/// Returns the page.
pub fn html(answer: &Answer, checked: Option<&Checked>, plan: Option<&[PlanDifference]>) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Cardiograph: sweep</title><style>\n{}</style></head><body>\n\
         <h1>Probability of loss</h1>\n<p>{}</p>\n\
         <p>Simulated, mode {}: {}, {} of card time, recordings of {}, samples of {} B. Bars are exact 95 % \
         intervals; an arrow is an upper bound without any loss. Click a rate to hide it.</p>\n",
        include_str!("page.css"),
        escaped(&answer.about),
        answer.mode,
        tasks(answer.tasks),
        duration(answer.simulated_s as f64),
        duration(answer.run_s as f64),
        answer.sample_bytes
    );
    for note in notes(checked, plan) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&note));
    }
    for cells in blocks(&answer.cells) {
        write_block(&mut out, cells);
    }
    let _ = write!(
        out,
        "<script>{}</script>\n</body></html>\n",
        include_str!("page.js")
    );
    out
}

fn write_block(out: &mut String, cells: &[Cell]) {
    let _ = writeln!(out, "<section><h2>{}</h2>\n<p>", escaped(&title(&cells[0])));
    let rates = || cells.chunk_by(|a, b| a.rate_hz == b.rate_hz).enumerate();
    for (at, of_rate) in rates() {
        let _ = write!(
            out,
            "<button type=\"button\" aria-pressed=\"true\" class=\"{}\" data-rate=\"{at}\">{} Hz</button> ",
            style(at),
            of_rate[0].rate_hz
        );
    }
    out.push_str("</p>\n");
    let plot = Plot::of(cells);
    plot.write_axes(out);
    let step = STEP.min(SPREAD / rates().count() as f64);
    for (at, of_rate) in rates() {
        plot.write_rate(out, at, step * at as f64, of_rate);
    }
    out.push_str(
        "</svg>\n<table><tr><th class=\"n\">rate<th class=\"n\">buffer<th class=\"n\">runs<th class=\"n\">losses\
         <th>recordings that lose samples</tr>\n",
    );
    for cell in cells {
        let runs: u64 = cell.members.iter().map(|member| member.risk.runs).sum();
        let losses: u64 = cell.members.iter().map(|member| member.risk.losses).sum();
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{} Hz<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}</tr>",
            cell.rate_hz,
            units::binary_bytes(cell.buffer_bytes),
            units::count(runs),
            units::count(losses),
            probability(cell)
        );
    }
    out.push_str("</table></section>\n");
}

/// A plot of probability against buffer size, both logarithmic.
struct Plot {
    buffers: (f64, f64),
    lowest: f64,
    ticks: Vec<u64>,
}

impl Plot {
    fn of(cells: &[Cell]) -> Plot {
        let mut ticks: Vec<u64> = cells.iter().map(|cell| cell.buffer_bytes).collect();
        ticks.sort_unstable();
        ticks.dedup();
        let ends = |bytes: Option<&u64>| bytes.map_or(1.0, |&bytes| bytes as f64);
        let (least, most) = (ends(ticks.first()), ends(ticks.last()));
        // The lowest limits would stretch the axis without end if they were 0.
        let limits = cells.iter().flat_map(|cell| {
            let (low, high) = cell.range();
            [low, high].into_iter().filter(|&limit| limit > 0.0)
        });
        let lowest = limits.fold(0.1, f64::min).max(1e-9);
        Plot {
            buffers: (least / 1.2, most * 1.2),
            lowest: 10f64.powf(lowest.log10().floor()),
            ticks,
        }
    }

    fn x(&self, bytes: f64) -> f64 {
        let share = (bytes / self.buffers.0).ln() / (self.buffers.1 / self.buffers.0).ln();
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, probability: f64) -> f64 {
        let share = (probability.max(self.lowest) / self.lowest).ln() / (1.0 / self.lowest).ln();
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn write_axes(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Probability of loss over buffer size\">"
        );
        let mut probability = 1.0;
        while probability > self.lowest * 0.99 {
            let y = self.y(probability);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"y\" x=\"{}\" y=\"{:.1}\">{} %</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                probability * 100.0
            );
            probability = (probability * 1e9 / 10.0).round() / 1e9;
            if probability == 0.0 {
                break;
            }
        }
        for &bytes in &self.ticks {
            let _ = writeln!(
                out,
                "<text class=\"x\" x=\"{:.1}\" y=\"{}\">{}</text>",
                self.x(bytes as f64),
                HEIGHT - BOTTOM + 16.0,
                units::binary_bytes(bytes)
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"x\" x=\"{}\" y=\"{}\">buffer</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 4.0
        );
    }

    fn write_rate(&self, out: &mut String, at: usize, shift: f64, cells: &[Cell]) {
        let _ = writeln!(out, "<g class=\"{}\" data-rate=\"{at}\">", style(at));
        for cell in cells {
            let (low, high) = cell.range();
            // Rates next to each other, so that equal intervals stay visible.
            let x = self.x(cell.buffer_bytes as f64) + shift;
            let (top, bottom) = (self.y(high), self.y(low));
            let mark = match cell.median {
                None if !cell.has_losses() => format!(
                    "<path d=\"M{0} {top:.1}H{1}M{x:.1} {top:.1}v14m-3 -4l3 4l3 -4\"/>",
                    x - CAP,
                    x + CAP
                ),
                // The median member loses nothing, but another one does: a bar to the bottom, without a dot.
                None => format!(
                    "<path d=\"M{x:.1} {top:.1}V{bottom:.1}M{0} {top:.1}H{1}\"/>",
                    x - CAP,
                    x + CAP
                ),
                Some(median) => format!(
                    "<path d=\"M{x:.1} {top:.1}V{bottom:.1}M{0} {top:.1}H{1}M{0} {bottom:.1}H{1}\"/>\
                     <circle cx=\"{x:.1}\" cy=\"{2:.1}\" r=\"3.5\"/>",
                    x - CAP,
                    x + CAP,
                    self.y(median)
                ),
            };
            let _ = writeln!(
                out,
                "<g><title>{} Hz, {}: {}</title>{mark}</g>",
                cell.rate_hz,
                units::binary_bytes(cell.buffer_bytes),
                probability(cell)
            );
        }
        out.push_str("</g>\n");
    }
}

/// Returns the classes of a rate: its colour, and dashes if it shares the colour.
fn style(at: usize) -> String {
    format!("s{} d{}", at % COLOURS, at / COLOURS % DASHES)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
