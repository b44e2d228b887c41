//! Power from a scope's two channels around a shunt in the card's supply.

use super::columns::{cells, pointed, unquoted};
use super::error::{Fault, Problem, ReadError, shown};
use super::lines::{Line, Lines};
use super::number::Field;
use super::progress::Counted;
use super::scope_header::{Above, Columns, Voltage, is_row};
use crate::energy::PowerStep;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum number of lines above the first row of numbers.
const LINES_ABOVE_MAX: u64 = 1000;

/// Maximum voltage, far above any card supply; scopes write 9.9E37 for samples out of range.
const VOLTS_MAX: f64 = 1000.0;

/// Smallest time in ns that does not fit in 64 bits.
const TIME_NS_MAX: f64 = 9.223_372_036_854_775e18;

/// Description of a scope's samples, apart from the power itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// Number of samples, at least two.
    pub samples: u64,
    /// Longest interval between two samples in ns.
    pub step_ns_max: f64,
    /// Remarks that readers of the figures need to know.
    pub notes: Vec<String>,
}

/// Reads a scope's CSV of time, V1 before and V2 after a shunt; passes the power `V2 (V1 - V2) / shunt` from
/// each sample until the next to `take`. The last step is as long as the previous one. `progress` receives
/// the number of bytes read so far from time to time.
///
/// # Errors
/// One sentence that names the file, the line and the remedy.
pub fn read_scope(
    path: &Path,
    shunt_ohm: f64,
    progress: &mut dyn FnMut(u64),
    take: impl FnMut(&PowerStep),
) -> Result<Scope, ReadError> {
    let name = path.display().to_string();
    let open = || {
        let file = File::open(path).map_err(|error| Problem::Open(error).in_file())?;
        let metadata = file.metadata();
        match metadata.map_err(|error| Problem::Open(error).in_file())? {
            metadata if metadata.is_dir() => Err(Problem::Directory.in_file()),
            _ => Ok(file),
        }
    };
    let file = open().map_err(|fault| ReadError::new(&name, fault))?;
    read_scope_from(&name, Counted::new(file, progress), shunt_ohm, take)
}

/// Reads from any source, such as a pipe; `name` replaces the file name in errors.
///
/// # Errors
/// As [`read_scope`].
pub fn read_scope_from(
    name: &str,
    reader: impl Read,
    shunt_ohm: f64,
    take: impl FnMut(&PowerStep),
) -> Result<Scope, ReadError> {
    Lines::new(reader)
        .and_then(|mut lines| read(&mut lines, shunt_ohm, take))
        .map_err(|fault| ReadError::new(name, fault))
}

/// A sample, and the power from this sample until the next one.
struct Sample {
    time_ns: f64,
    power_mw: f64,
}

fn read<R: Read>(
    lines: &mut Lines<R>,
    shunt_ohm: f64,
    mut take: impl FnMut(&PowerStep),
) -> Result<Scope, Fault> {
    if lines.in_memory().trim_ascii().is_empty() {
        return Err(Problem::Empty.in_file());
    }
    let (columns, mut before) = first_sample(lines, shunt_ohm)?;
    let mut scope = Scope {
        samples: 1,
        step_ns_max: 0.0,
        notes: columns.notes.clone(),
    };
    let mut step_ns = 0.0;
    while let Some(line) = lines.next_row()? {
        let sample = columns.sample(&line, shunt_ohm)?;
        step_ns = sample.time_ns - before.time_ns;
        if step_ns <= 0.0 {
            return Err(columns.not_up(&line, before.time_ns, step_ns));
        }
        take(&PowerStep {
            start_ns: before.time_ns,
            end_ns: sample.time_ns,
            power_mw: before.power_mw,
        });
        scope.step_ns_max = scope.step_ns_max.max(step_ns);
        scope.samples += 1;
        before = sample;
    }
    if scope.samples < 2 {
        return Err(Problem::OneSample.in_file());
    }
    take(&PowerStep {
        start_ns: before.time_ns,
        end_ns: before.time_ns + step_ns,
        power_mw: before.power_mw,
    });
    Ok(scope)
}

/// Skips the lines above the rows and reads the first sample.
fn first_sample<R: Read>(lines: &mut Lines<R>, shunt_ohm: f64) -> Result<(Columns, Sample), Fault> {
    let mut above = Above::default();
    for _ in 0..LINES_ABOVE_MAX {
        let Some(line) = lines.next_row()? else {
            break;
        };
        if is_row(line.text) {
            let columns = above.columns(&line)?;
            let sample = columns.sample(&line, shunt_ohm)?;
            return Ok((columns, sample));
        }
        above.push(&line);
    }
    Err(Problem::NoSamples.in_file())
}

impl Columns {
    fn sample(&self, line: &Line<'_>, shunt_ohm: f64) -> Result<Sample, Fault> {
        let [first, second] = self.voltages;
        let time_ns = self.number(line, self.time, "the time")? * self.ns_per_unit();
        if time_ns.abs() >= TIME_NS_MAX {
            let time = self.text(line, self.time);
            return Err(Problem::TimeTooFar { time }.at_line(line.number));
        }
        let (v1, v2) = (
            self.volts(line, first, "V1")?,
            self.volts(line, second, "V2")?,
        );
        Ok(Sample {
            time_ns,
            power_mw: v2 * (v1 - v2) / shunt_ohm * 1e3,
        })
    }

    fn ns_per_unit(&self) -> f64 {
        10_f64.powi(self.time_unit.power)
    }

    fn cell<'a>(&self, line: &Line<'a>, column: usize) -> Option<&'a [u8]> {
        // Numbers contain no separator, so quotes can be ignored here.
        let mut cells = line.text.split(|&byte| byte == self.separator);
        cells.nth(column).map(unquoted)
    }

    fn text(&self, line: &Line<'_>, column: usize) -> String {
        shown(self.cell(line, column).unwrap_or_default())
    }

    fn number(&self, line: &Line<'_>, column: usize, name: &str) -> Result<f64, Fault> {
        let Some(text) = self.cell(line, column) else {
            let last = self.voltages.map(|v| v.column).into_iter().max();
            let expected = last.unwrap_or(0).max(self.time) + 1;
            let found = cells(line.text, self.separator).count();
            return Err(line.wrong_fields(expected, found));
        };
        let number = Field {
            column: name,
            text: if self.separator == b',' {
                text
            } else {
                &pointed(text)
            },
            line,
        };
        number.signed_float()
    }

    fn volts(&self, line: &Line<'_>, voltage: Voltage, name: &str) -> Result<f64, Fault> {
        let volts = self.number(line, voltage.column, name)? * voltage.volts_per_unit;
        if volts.abs() > VOLTS_MAX {
            let (column, text) = (name.to_string(), self.text(line, voltage.column));
            return Err(Problem::NoVoltage { column, text }.at_line(line.number));
        }
        Ok(volts)
    }

    fn not_up(&self, line: &Line<'_>, before_ns: f64, step_ns: f64) -> Fault {
        let time = self.text(line, self.time);
        if step_ns == 0.0 {
            return Problem::SameTime { time }.at_line(line.number);
        }
        let before = (before_ns / self.ns_per_unit()).to_string();
        Problem::Backward { time, before }.at_line(line.number)
    }
}
