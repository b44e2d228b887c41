//! Tables whose columns have unknown names.

use super::columns::{Top, cells, is_number, pointed, unquoted};
use super::error::{Problem, shown};
use super::recording::{SAMPLE_ROWS, is_note, rows_in};
use super::remedy::ANALYZE;
use super::role::{
    Role, is_about_writes, is_bin, is_counter, is_of_reads, is_rate, may_be_writes, role,
};
use crate::shell::quoted;

/// Maximum number of columns that a message names.
const COLUMNS_MAX: usize = 8;

struct Column {
    /// Value for an option: the name, quoted for a shell, or the number if the column has no name.
    name: String,
    first: String,
    is_number: bool,
    rises: bool,
}

/// Returns the problem of a table with columns of numbers; `None` if the text is not a table.
pub(super) fn table(head: &[u8]) -> Option<Problem> {
    let mut rows = rows_in(head).filter(|row| !is_note(row));
    let line = rows.next()?;
    let below = rows.clone();
    let top = Top::of(line, below.clone().next()?);
    let names = top.names();
    let is_named = !names.iter().any(|name| is_number(name));
    let rows: Vec<Vec<&[u8]>> = below
        .take(SAMPLE_ROWS)
        .map(|row| cells(row, top.separator()).map(unquoted).collect())
        .collect();
    // The last row may be incomplete, because `head` is the beginning of a file.
    let whole = &rows[..rows.len().max(2) - 1];
    let is_table = whole.len() > 1 && whole.iter().all(|row| row.len() == names.len());
    if !is_table {
        return None;
    }
    let columns: Vec<Column> = (0..names.len())
        .map(|index| {
            let texts = || whole.iter().map(|row| row[index]);
            let number = |text: &[u8]| str::from_utf8(&pointed(text)).ok()?.parse::<f64>().ok();
            let numbers: Vec<f64> = texts().filter_map(number).collect();
            Column {
                name: match is_named && names[index].iter().all(|byte| !byte.is_ascii_control()) {
                    true => quoted(String::from_utf8_lossy(names[index]).as_ref().as_ref()),
                    false => (index + 1).to_string(),
                },
                first: shown(whole[0][index]),
                is_number: texts().all(is_number),
                rises: numbers.len() == whole.len()
                    && numbers.windows(2).all(|pair| pair[0] <= pair[1])
                    && numbers.first() < numbers.last(),
            }
        })
        .collect();
    if let Some(problem) = histogram(&names) {
        return Some(problem);
    }
    let numeric = || {
        columns
            .iter()
            .zip(&names)
            .filter(|(column, _)| column.is_number)
    };
    let named_rate = names.iter().find(|name| is_rate(name));
    // If there are several such columns, only the user knows which one contains the latencies.
    let may_be_latency =
        |column: &Column, name: &[u8]| !column.rises && !is_rate(name) && !is_of_reads(name);
    let only = |is: &dyn Fn(&[u8]) -> bool| {
        let mut found = numeric().filter(|(column, name)| may_be_latency(column, name) && is(name));
        found.next().filter(|_| found.next().is_none())
    };
    let latency = only(&|name| is_about_writes(name) || may_be_writes(name)).or(only(&|_| true));
    // Next to a latency, a column that numbers rows or blocks is not the time.
    let time =
        numeric().find(|(column, name)| column.rises && !(latency.is_some() && is_counter(name)));
    let (time, latency) = (
        time.map(|(column, _)| column),
        latency.map(|(column, _)| column),
    );
    if let (Some(rate), None) = (named_rate, latency) {
        return Some(Problem::Rates {
            column: shown(rate),
        });
    }
    numeric().next()?;
    let mut shown = columns
        .iter()
        .map(|column| format!("{} ({})", column.name, column.first));
    let mut list: Vec<String> = shown.by_ref().take(COLUMNS_MAX).collect();
    if shown.next().is_some() {
        list.push("others".to_owned());
    }
    Some(Problem::UnknownTable {
        columns: list.join(", "),
        time: time.map(|column| column.name.clone()),
        latency: latency.map(|column| column.name.clone()),
    })
}

/// Returns the problem of a histogram whose column of latencies has an unknown name.
fn histogram(names: &[&[u8]]) -> Option<Problem> {
    let has_counts = names.iter().any(|name| role(name).0 == Role::Count);
    let bin = names.iter().position(|name| is_bin(name))?;
    let renamed = names.iter().enumerate().map(|(index, name)| match index {
        _ if index != bin => String::from_utf8_lossy(name).into_owned(),
        _ => match role(name).1 {
            Some(unit) => format!("latency_{}", unit.name),
            None => "latency_us".to_owned(),
        },
    });
    let header = renamed.collect::<Vec<_>>().join(",");
    let is_safe = !header.contains(['\'', '\\', '&', '/']);
    (has_counts && is_safe).then(|| Problem::Prose {
        what: "a histogram whose column of bins is not named as a latency with a unit, such as latency_us,",
        command: format!("sed '1s/.*/{header}/' FILE | {ANALYZE}"),
    })
}
