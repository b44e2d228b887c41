//! All studies as one HTML file that works offline.

use crate::figures::Figure;
use crate::outcome::Outcome;
use crate::plot::escaped;
use crate::table::{number, shown_interval, shown_published, summary};
use std::fmt::Write;

/// A section of the page: one study.
pub struct Section<'a> {
    /// Title of the study.
    pub title: &'a str,
    /// Outcomes of the study's rows.
    pub outcomes: &'a [Outcome],
    /// Remarks to show below the rows.
    pub notes: &'a [String],
    /// Plots of the study's figures.
    pub figures: &'a [Figure],
}

/// Returns the HTML page.
pub fn html(sections: &[Section]) -> String {
    let all: Vec<Outcome> = sections
        .iter()
        .flat_map(|section| section.outcomes.to_vec())
        .collect();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Cardiograph: published studies, reproduced</title><style>\n{}</style></head><body>\n\
         <h1>Published studies, reproduced on simulated cards</h1>\n\
         <p>Cards and boards were tuned to rows with the role fit. Nothing was tuned to predictions.</p>\n",
        include_str!("page.css")
    );
    for line in summary(&all).lines() {
        let _ = writeln!(out, "<p>{}</p>", escaped(line));
    }
    for section in sections {
        write_section(&mut out, section);
    }
    out + "</body></html>\n"
}

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(section.title));
    for note in section.notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(note));
    }
    out.push_str(
        "<div class=\"scroll\"><table><tr><th>figure<th>quantity<th class=\"n\">published<th class=\"n\">simulated\
         <th>range<th>unit<th class=\"n\">ratio<th>role<th>verdict<th class=\"n\">driver time-outs</tr>\n",
    );
    for outcome in section.outcomes {
        write_row(out, outcome);
    }
    out.push_str("</table></div>\n<div class=\"plots\">\n");
    for figure in section.figures {
        let _ = writeln!(
            out,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escaped(&figure.title),
            figure.svg
        );
    }
    out.push_str("</div>\n");
}

fn write_row(out: &mut String, outcome: &Outcome) {
    let row = &outcome.row;
    let show = |value: Option<f64>| value.map_or("-".to_string(), number);
    let ratio = outcome
        .ratio()
        .map_or("-".to_string(), |ratio| format!("{ratio:.2}"));
    let class = if outcome.is_off() {
        " class=\"off\""
    } else {
        ""
    };
    let unit = if row.unit == "1" { "" } else { &row.unit };
    let _ = writeln!(
        out,
        "<tr{class}><td>{}<td class=\"q\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{unit}<td class=\"n\">{ratio}\
         <td>{}<td>{}<td class=\"n\">{}</tr>",
        escaped(&row.figure),
        escaped(&row.quantity),
        shown_published(row),
        show(outcome.median()),
        shown_interval(outcome),
        row.role.name(),
        outcome.verdict(),
        outcome.driver_timeouts,
    );
}
