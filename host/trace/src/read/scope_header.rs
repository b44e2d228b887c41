//! Identification of the time and voltage columns of a scope's CSV, and of their units.
//!
//! Above the rows there may be a line of names, or a line of names and a line of units, or neither. Above these lines,
//! the scope may describe itself.

use super::columns::{SECOND, Unit, cells, pointed, time_column, unit_named, unquoted};
use super::error::{Fault, Problem, shown};
use super::lines::Line;

/// Minimum number of columns: the time and two voltages.
const COLUMNS_MIN: usize = 3;

/// Columns that hold time, V1 and V2.
#[derive(Debug, PartialEq)]
pub(super) struct Columns {
    pub separator: u8,
    pub time: usize,
    pub time_unit: Unit,
    /// V1 before the shunt and V2 after it.
    pub voltages: [Voltage; 2],
    /// Assumptions made about the columns, as sentences.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Voltage {
    pub column: usize,
    pub volts_per_unit: f64,
}

/// The two lines directly above the rows of numbers; the lower line is last.
#[derive(Default)]
pub(super) struct Above([Option<(u64, Vec<u8>)>; 2]);

impl Above {
    /// Stores a line that is not a row, and forgets all but the last two.
    pub(super) fn push(&mut self, line: &Line<'_>) {
        self.0.swap(0, 1);
        self.0[1] = Some((line.number, line.text.to_vec()));
    }

    /// Identifies the columns from the stored lines.
    pub(super) fn columns(&self, first: &Line<'_>) -> Result<Columns, Fault> {
        let separator = separator(first.text);
        let count = numbers(first.text);
        let names_in = |line: &Option<(u64, Vec<u8>)>| match line {
            Some((_, line)) => names(without_mark(line), separator),
            None => Vec::new(),
        };
        let [upper, lower] = [names_in(&self.0[0]), names_in(&self.0[1])];
        let found = if lower.len() < COLUMNS_MIN {
            (count == COLUMNS_MIN).then(|| unnamed(separator))
        } else if let Some(columns) = named(separator, &lower, &[]) {
            Some(columns)
        } else {
            named(separator, &upper, &lower).or_else(|| by_units(separator, &upper, &lower))
        };
        found.ok_or_else(|| {
            let (number, text) = match &self.0[1] {
                Some((number, text)) => (*number, text.as_slice()),
                None => (first.number, first.text),
            };
            let found = shown(text.trim_ascii());
            Problem::ScopeColumns { found }.at_line(number)
        })
    }
}

/// Returns true if the line is a row: a time, two voltages and possibly more, all numbers.
pub(super) fn is_row(line: &[u8]) -> bool {
    numbers(line) >= COLUMNS_MIN
}

/// Returns the number of numbers in a line, or 0 if it contains anything else.
fn numbers(line: &[u8]) -> usize {
    let mut count = 0;
    for cell in cells(line, separator(line)).map(unquoted) {
        let number = std::str::from_utf8(&pointed(cell)).map(str::parse::<f64>);
        match number {
            Ok(Ok(_)) => count += 1,
            // Some scopes end every row with a separator.
            _ if cell.is_empty() => {}
            _ => return 0,
        }
    }
    count
}

/// Returns the separator: a semicolon or tab if there is one, because the comma may then be a decimal comma.
fn separator(line: &[u8]) -> u8 {
    let is_there = |separator: &u8| line.contains(separator);
    [b';', b'\t'].into_iter().find(is_there).unwrap_or(b',')
}

/// Removes the comment mark that a header may have.
fn without_mark(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    match line {
        [b'#' | b'%', rest @ ..] => rest.trim_ascii(),
        _ => line,
    }
}

fn names(line: &[u8], separator: u8) -> Vec<String> {
    let cells = cells(line, separator).map(unquoted);
    let names = cells.map(|cell| String::from_utf8_lossy(cell).to_lowercase());
    let mut names: Vec<_> = names.collect();
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    names
}

fn unnamed(separator: u8) -> Columns {
    let volts = |column| Voltage {
        column,
        volts_per_unit: 1.0,
    };
    Columns {
        separator,
        time: 0,
        time_unit: SECOND,
        voltages: [volts(1), volts(2)],
        notes: vec![
            "The scope's columns are unnamed; they are read as time in s, V1 and V2 in V."
                .to_string(),
        ],
    }
}

/// Identifies the columns by their names; a line of units, if present, overrides the units in the names.
fn named(separator: u8, names: &[String], units: &[String]) -> Option<Columns> {
    let mut columns = names.iter().enumerate();
    let (time, time_unit) =
        columns.find_map(|(i, name)| Some((i, time_column(name.as_bytes())?.1)))?;
    let is_channel = |wanted: usize| {
        let of = move |name: &String| channel(name).filter(|(which, _)| *which == wanted);
        let found = names.iter().position(|name| of(name).is_some())?;
        Some((found, of(&names[found])?.1))
    };
    let others = || (0..names.len()).filter(|&column| column != time);
    let voltages = match (is_channel(0), is_channel(1)) {
        (Some(v1), Some(v2)) => [v1, v2],
        // If there are exactly two columns besides the time, the first is V1.
        _ if others().count() == 2 => {
            let mut pair = others().map(|i| Some((i, volts_in(&names[i])?)));
            [pair.next()??, pair.next()??]
        }
        _ => return None,
    };
    let unit_of = |column: usize| units.get(column).map(|unit| bare(unit));
    let below = match unit_of(time) {
        Some(unit) => Some(unit_named(unit)?),
        None => None,
    };
    let notes = match below.or(time_unit) {
        Some(_) => Vec::new(),
        None => vec![
            "The scope's time column names no unit; its times are read as seconds.".to_string(),
        ],
    };
    let voltage = |(column, volts_per_unit): (usize, f64)| {
        Some(Voltage {
            column,
            volts_per_unit: match unit_of(column) {
                Some(unit) => volts(unit)?,
                None => volts_per_unit,
            },
        })
    };
    Some(Columns {
        separator,
        time,
        time_unit: below.or(time_unit).unwrap_or(SECOND),
        voltages: [voltage(voltages[0])?, voltage(voltages[1])?],
        notes,
    })
}

/// Identifies the columns by a line of units alone, for headers without a name for the time, such as
/// `x-axis,1,2`.
fn by_units(separator: u8, names: &[String], units: &[String]) -> Option<Columns> {
    let time = units
        .iter()
        .position(|unit| unit_named(bare(unit)).is_some())?;
    let mut names: Vec<String> = units
        .iter()
        .enumerate()
        .map(|(i, _)| names.get(i).cloned().unwrap_or_default())
        .collect();
    names[time] = "time".to_string();
    named(separator, &names, units)
}

/// Returns the channel of a column, 0 or 1, and volts per unit: `V1`, `CH2 (mV)`, `Channel A`.
fn channel(name: &str) -> Option<(usize, f64)> {
    const WORDS: &[&str] = &["channel", "chan", "ch", "voltage", "volt", "v", "u", "c"];
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let rest = WORDS.iter().find_map(|word| name.strip_prefix(word))?;
    let mut rest = rest.chars();
    let which = match rest.next()? {
        '1' | 'a' => 0,
        '2' | 'b' => 1,
        _ => return None,
    };
    let unit = rest.as_str().trim_start_matches("voltage");
    Some((which, if unit.is_empty() { 1.0 } else { volts(unit)? }))
}

/// Returns the volts per unit according to the last word of a column's name; 1 if this word is not a unit.
fn volts_in(name: &str) -> Option<f64> {
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    let last = words.rfind(|word| !word.is_empty());
    // A column with a second time, or with a current or power computed by the scope, is not a voltage.
    match last {
        Some("s" | "ms" | "us" | "ns" | "a" | "ma" | "ua" | "w" | "mw") => None,
        unit => Some(unit.and_then(volts).unwrap_or(1.0)),
    }
}

fn volts(unit: &str) -> Option<f64> {
    match unit {
        "v" | "volt" | "volts" => Some(1.0),
        "mv" | "millivolt" | "millivolts" => Some(1e-3),
        "uv" | "\u{b5}v" | "\u{3bc}v" => Some(1e-6),
        _ => None,
    }
}

/// Removes brackets around a unit.
fn bare(unit: &str) -> &str {
    unit.trim_matches(|c: char| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::super::columns::MILLISECOND;
    use super::super::lines::Lines;
    use super::*;

    /// Column and unit of the time; column and volts per unit of V1 and V2.
    type Found = (usize, &'static str, [(usize, f64); 2]);

    fn columns(text: &str) -> Option<Found> {
        let mut lines = Lines::new(text.as_bytes()).unwrap();
        let mut above = Above::default();
        loop {
            let line = lines.next_row().unwrap()?;
            if is_row(line.text) {
                let found = above.columns(&line).ok()?;
                let voltages = found.voltages.map(|v| (v.column, v.volts_per_unit));
                return Some((found.time, found.time_unit.name, voltages));
            }
            above.push(&line);
        }
    }

    #[test]
    fn common_scope_headers_are_recognised() {
        let plain = Some((0, "s", [(1, 1.0), (2, 1.0)]));
        for text in [
            "time,V1,V2\n0,3.3,3.2\n",
            "TIME,CH1,CH2\n0,3.3,3.2\n",
            "Time(s),CH1V,CH2V\n0,3.3,3.2\n",
            "\"t [s]\",\"Channel A\",\"Channel B\"\n0,3.3,3.2\n",
            "# t;V1;V2\n0;3,3;3,2\n",
            "x-axis,1,2\nsecond,Volt,Volt\n-1E-3,3.3E+0,3.2E+0\n",
            "Source,CH1,CH2\nSecond,Volt,Volt\n0,3.3,3.2\n",
            "Time,Vin,Vout\n0,3.3,3.2\n",
            "0,3.3,3.2,\n",
            "Model,X\nSample Interval,1e-4\n\n0,3.3,3.2\n",
        ] {
            assert_eq!(columns(text), plain, "{text}");
        }
        let millis = [(1, 1e-3), (2, 1e-3)];
        assert_eq!(
            columns("Time,Channel A,Channel B\n(ms),(mV),(mV)\n\n0,3300,3200\n"),
            Some((0, MILLISECOND.name, millis))
        );
        assert_eq!(
            columns("n\tt_us\tCH2 (V)\tCH3 (V)\tCH1 (mV)\n0\t0\t3.2\t0\t3300\n"),
            Some((1, "us", [(4, 1e-3), (2, 1.0)]))
        );
    }

    #[test]
    fn ambiguous_headers_are_rejected() {
        for text in [
            "index,start_us,end_us\n0,0,272\n",
            "X,CH1,CH2,Start,Increment\nSequence,Volt,Volt,0.0,1e-6\n0,1.0,1.0,\n",
            "time,V1,I (mA),T\n0,3.3,12,20\n",
            "time,V1,I (mA)\n0,3.3,12\n",
            "0,1,2,3\n",
            "time,V1\n0,1\n",
        ] {
            assert_eq!(columns(text), None, "{text}");
        }
    }
}
