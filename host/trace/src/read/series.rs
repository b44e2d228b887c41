//! Samples in the order of their times: rows out of order, clocks that restart or are set back, sequence numbers.

use super::RecordingRun;
use super::calendar::HOUR_NS;
use super::error::{Fault, Problem};
use super::number::NUMBER_MAX;
use super::sequence::Sequence;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};

/// A row with a time.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub time_ns: u64,
    pub line: u64,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// Number of the sample, if a column counts them.
    pub number: Option<u64>,
}

/// Rows that are no samples.
#[derive(Default)]
pub(super) struct OddRows {
    pub without_time: u64,
    pub first_without_time: u64,
    others: u64,
    first: Option<(u64, String)>,
    /// Error for the first row whose time is no time.
    fault: Option<Fault>,
}

impl OddRows {
    /// Counts a row that has no time.
    pub(super) fn push_without_time(&mut self, line: u64) {
        if self.without_time == 0 {
            self.first_without_time = line;
        }
        self.without_time += 1;
    }

    /// Counts a row that cannot be read, with the reason.
    pub(super) fn push(&mut self, line: u64, reason: impl FnOnce() -> String) {
        self.others += 1;
        match &self.first {
            Some((first, _)) if *first <= line => {}
            _ => self.first = Some((line, reason())),
        }
    }

    /// Counts a row whose time is no time.
    pub(super) fn push_bad(&mut self, fault: Fault, line: u64, reason: impl FnOnce() -> String) {
        self.fault.get_or_insert(fault);
        self.push(line, reason);
    }

    /// Returns the error for a file of which too few rows are samples.
    pub(super) fn into_fault(self) -> Fault {
        match (self.fault, self.first) {
            (Some(fault), _) => fault,
            (None, Some((line, reason))) if self.others > 1 => {
                let rows = self.others;
                Problem::OddRows { rows, reason }.at_line(line)
            }
            _ => Problem::OneSample.in_file(),
        }
    }

    /// Returns true if there are too many such rows to trust the rest.
    pub(super) fn are_most(&self, samples: u64) -> bool {
        self.others > 1 + samples / 4
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((line, reason)) = &self.first {
            let rows = rows(self.others);
            notes.push(format!("Skipped {rows} (line {line}: {reason})."));
        }
        if self.without_time > 0 {
            let (rows, line) = (rows(self.without_time), self.first_without_time);
            notes.push(format!(
                "Skipped {rows} without a time (first in line {line})."
            ));
        }
        notes
    }
}

fn rows(count: u64) -> String {
    match count {
        1 => "1 row".to_owned(),
        count => format!("{count} rows"),
    }
}

/// Samples from the start of a clock to its next restart.
pub(super) struct ClockRun {
    /// Line of the first sample.
    pub line: u64,
    pub samples: u64,
}

/// Samples of one source. Each interval becomes an operation; its file is the number of the run.
pub(super) struct Series {
    /// Name of the source, if the file has several.
    pub label: Option<String>,
    pub trace: Trace,
    pub runs: Vec<ClockRun>,
    pub sequence: Sequence,
    pub jumps: Jumps,
    /// True if the times are dates or times of day, which daylight saving time changes.
    is_calendar: bool,
    /// The last sample in the trace.
    before: Option<Sample>,
    /// The sample after it, which the next rows may show to be wrong.
    latest: Option<Sample>,
    /// A sample that is earlier than the latest one.
    suspect: Option<Sample>,
    /// Time of the first sample of the run, and where it is in the trace.
    begin_ns: u64,
    at_ns: u64,
    /// Hours by which the clock was set back.
    shift_ns: u64,
    set_back: Option<u64>,
    /// Number of swapped rows, and the line of the first.
    swapped: u64,
    swapped_line: u64,
}

impl Series {
    pub(super) fn new(label: Option<String>, is_calendar: bool) -> Series {
        Series {
            label,
            trace: Trace::new(About::default()),
            runs: Vec::new(),
            sequence: Sequence::default(),
            jumps: Jumps::default(),
            is_calendar,
            before: None,
            latest: None,
            suspect: None,
            begin_ns: 0,
            at_ns: 0,
            shift_ns: 0,
            set_back: None,
            swapped: 0,
            swapped_line: 0,
        }
    }

    /// Number of samples in the trace.
    pub(super) fn samples(&self) -> u64 {
        self.runs.iter().map(|run| run.samples).sum()
    }

    /// Adds a sample. The trace gets it one or two samples later, when its place is certain.
    pub(super) fn push(&mut self, mut new: Sample, odd: &mut OddRows) -> Result<(), Fault> {
        new.time_ns = new.time_ns.saturating_add(self.shift_ns);
        let Some(latest) = self.latest else {
            self.latest = Some(new);
            return Ok(());
        };
        if let Some(suspect) = self.suspect.take() {
            return self.decide(latest, suspect, new, odd);
        }
        if new.time_ns < latest.time_ns {
            if !self.is_set_back(latest, new) {
                self.suspect = Some(new);
                return Ok(());
            }
            self.set_back.get_or_insert(new.line);
            self.shift_ns += HOUR_NS;
            new.time_ns += HOUR_NS;
        }
        self.latest = Some(new);
        self.accept(latest)
    }

    /// Finds out why a sample is earlier than the one before, from the sample after it.
    fn decide(
        &mut self,
        latest: Sample,
        suspect: Sample,
        new: Sample,
        odd: &mut OddRows,
    ) -> Result<(), Fault> {
        let out_of_order =
            || "its time does not fit between those of the rows around it".to_owned();
        let follows = self
            .before
            .is_none_or(|before| suspect.time_ns >= before.time_ns);
        if new.time_ns >= latest.time_ns {
            self.latest = Some(new);
            match follows && self.before.is_some() {
                true => self.accept_swapped(suspect)?,
                false => odd.push(suspect.line, out_of_order),
            }
            return self.accept(latest);
        }
        if new.time_ns < suspect.time_ns {
            self.accept(latest)?;
            self.end_run();
            self.latest = Some(suspect);
            self.suspect = Some(new);
            return Ok(());
        }
        self.latest = Some(new);
        if follows {
            odd.push(latest.line, out_of_order);
        } else {
            self.accept(latest)?;
            self.end_run();
        }
        self.accept(suspect)
    }

    fn accept_swapped(&mut self, sample: Sample) -> Result<(), Fault> {
        if self.swapped == 0 {
            self.swapped_line = sample.line;
        }
        self.swapped += 1;
        self.accept(sample)
    }

    /// Returns true if the clock seems to have been set back by an hour between two samples.
    fn is_set_back(&self, latest: Sample, new: Sample) -> bool {
        let step_ns = self
            .before
            .map_or(0, |before| latest.time_ns - before.time_ns);
        let longest_ns = step_ns.saturating_mul(2).max(HOUR_NS / 60);
        let set_forward_ns = new.time_ns.saturating_add(HOUR_NS);
        self.is_calendar
            && (latest.time_ns..=latest.time_ns.saturating_add(longest_ns))
                .contains(&set_forward_ns)
    }

    fn end_run(&mut self) {
        self.before = None;
        self.sequence.restart();
    }

    /// Appends a sample to the trace.
    fn accept(&mut self, sample: Sample) -> Result<(), Fault> {
        let Some(before) = self.before.replace(sample) else {
            self.begin_ns = sample.time_ns;
            self.at_ns = match self.runs.is_empty() {
                true => sample.time_ns,
                false => self.trace.last_end_ns(),
            };
            self.runs.push(ClockRun {
                line: sample.line,
                samples: 1,
            });
            self.sequence.push(sample.number);
            return Ok(());
        };
        let in_trace = |time_ns: u64| {
            self.at_ns
                .checked_add(time_ns - self.begin_ns)
                .filter(|ns| *ns <= NUMBER_MAX)
        };
        let (Some(start_ns), Some(end_ns)) = (in_trace(before.time_ns), in_trace(sample.time_ns))
        else {
            return Err(Problem::TotalTooLarge.at_line(sample.line));
        };
        let operation = Operation {
            kind: OperationKind::Write,
            file: self.runs.len() as u32 - 1,
            offset_bytes: sample.offset_bytes,
            length_bytes: sample.length_bytes,
            start_ns,
            end_ns,
        };
        let pushed = self.trace.push(&operation);
        pushed.map_err(|_| Problem::TotalTooLarge.at_line(sample.line))?;
        self.jumps.push(end_ns - start_ns, sample.line);
        self.sequence.push(sample.number);
        if let Some(run) = self.runs.last_mut() {
            run.samples += 1;
        }
        Ok(())
    }

    /// Appends the samples whose place was open.
    pub(super) fn finish(&mut self, odd: &mut OddRows) -> Result<(), Fault> {
        if let Some(suspect) = self.suspect.take() {
            match self.before {
                Some(before) if suspect.time_ns >= before.time_ns => {
                    self.accept_swapped(suspect)?
                }
                _ => odd.push(suspect.line, || {
                    "its time is earlier than that of the row before".to_owned()
                }),
            }
        }
        match self.latest.take() {
            Some(latest) => self.accept(latest),
            None => Ok(()),
        }
    }

    /// Refuses times of which most are equal to the one before.
    pub(super) fn refuse_coarse(&self) -> Result<(), Fault> {
        let samples = self.samples();
        if self.jumps.equal <= self.trace.len() as u64 / 2 {
            return Ok(());
        }
        let times = samples - self.jumps.equal;
        Err(Problem::Coarse { samples, times }.in_file())
    }

    /// Returns the runs with a name each; a single run of a single source needs none.
    pub(super) fn labelled_runs(&self) -> impl Iterator<Item = RecordingRun> {
        (1..).zip(&self.runs).map(|(number, run)| {
            let of_run =
                (self.runs.len() > 1).then(|| format!("run {number} (from line {})", run.line));
            let parts = self.label.iter().cloned().chain(of_run);
            RecordingRun {
                label: parts.collect::<Vec<_>>().join(", "),
                samples: run.samples,
            }
        })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.runs.len() > 1 {
            let times = match self.runs.len() {
                2 => "once".to_owned(),
                runs => format!("{} times", runs - 1),
            };
            let line = self.runs[1].line;
            notes.push(format!(
                "The clock begins again {times} (first in line {line}), as after a restart of the logger; each run is counted \
                 alone, and the time between two runs is unknown."
            ));
        }
        if let Some(line) = self.set_back {
            notes.push(format!(
                "The clock was set back by an hour in line {line}, as at the end of daylight saving time; the times from there \
                 on are read as an hour later. If the logger was restarted there instead, pass both parts alone."
            ));
        }
        if self.swapped > 0 {
            let (rows, line) = (rows(self.swapped), self.swapped_line);
            notes.push(format!(
                "Put {rows} in order, which came after a later one (first in line {line})."
            ));
        }
        notes.extend(self.jumps.note_of_equal());
        notes.extend(self.jumps.note().filter(|_| self.is_calendar));
        notes
    }
}

/// Intervals that are suspicious in a recording.
#[derive(Default)]
pub(super) struct Jumps {
    /// Number of samples with the same time as the previous sample.
    pub equal: u64,
    /// Line of the first interval of about an hour.
    of_an_hour: Option<u64>,
    /// Intervals of about an hour.
    hours: u64,
    steps: u64,
}

impl Jumps {
    /// Returns a note about samples with the same time as the previous sample.
    fn note_of_equal(&self) -> Option<String> {
        (self.equal > 0).then(|| {
            format!(
                "{} samples have the time of the sample before; if several sensors share the file, --group-by COLUMN counts \
                 each alone.",
                self.equal
            )
        })
    }

    fn push(&mut self, step_ns: u64, line: u64) {
        self.equal += u64::from(step_ns == 0);
        self.steps += 1;
        if (HOUR_NS..HOUR_NS + HOUR_NS / 60).contains(&step_ns) {
            self.of_an_hour.get_or_insert(line);
            self.hours += 1;
        }
    }

    /// Returns a note if daylight saving time may have begun within an interval.
    fn note(&self) -> Option<String> {
        // Two per year; more are the interval of the samples.
        let line = self
            .of_an_hour
            .filter(|_| self.hours * 10 < self.steps || self.hours == 1)?;
        Some(format!(
            "The time jumps by an hour at line {line}; if daylight saving time began there, no samples are missing."
        ))
    }
}
