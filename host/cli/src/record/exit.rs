//! The exit code of `record`.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use cardiograph_compare::Figures;
use cardiograph_record::{Problem, REPORT_BUG, StreamError};

const UNACCOUNTED: u8 = 1;
const INPUT_OR_DEVICE: u8 = 2;
const LOSSY: u8 = 3;
const FULL: u8 = 4;

/// Conditions that determine the exit code.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    is_unaccounted: bool,
    is_input_or_device: bool,
    is_full: bool,
    is_lossy: bool,
    /// Exit code of the signal that ended the recording.
    signal: Option<u8>,
}

impl Conditions {
    fn of(figures: &Figures, interrupt: &Interrupt) -> Conditions {
        let mut conditions = Conditions {
            is_unaccounted: figures.samples_pushed
                != figures.samples_written + figures.samples_lost,
            is_lossy: figures.samples_lost > 0,
            signal: interrupt.exit_code(),
            ..Conditions::default()
        };
        for problem in &figures.problems {
            match problem {
                Problem::FilesGone(_) | Problem::Unaccounted(_) => conditions.is_unaccounted = true,
                Problem::Differs(_) | Problem::Device(_) | Problem::Input(_) | Problem::NoLines => {
                    conditions.is_input_or_device = true;
                }
                Problem::Full => conditions.is_full = true,
            }
        }
        conditions
    }

    /// Returns the code of the most severe condition. A signal is the least severe, because the user sent it.
    fn code(self) -> u8 {
        let codes = [
            (self.is_unaccounted, UNACCOUNTED),
            (self.is_input_or_device, INPUT_OR_DEVICE),
            (self.is_full, FULL),
            (self.is_lossy, LOSSY),
        ];
        let most_severe = codes.into_iter().find(|(applies, _)| *applies);
        most_severe.map_or(self.signal.unwrap_or(0), |(_, code)| code)
    }
}

/// Returns the result of the command after a recording whose figures have been printed, with its problems and
/// exit code.
pub fn of_recording(target: &str, figures: &Figures, interrupt: &Interrupt) -> Result<(), Failure> {
    let conditions = Conditions::of(figures, interrupt);
    let mut problems: Vec<_> = figures.problems.iter().map(Problem::to_string).collect();
    let is_explained =
        |problem: &Problem| matches!(problem, Problem::FilesGone(_) | Problem::Unaccounted(_));
    if figures.samples_pushed != figures.samples_written + figures.samples_lost
        && !figures.problems.iter().any(is_explained)
    {
        let Figures {
            samples_pushed: pushed,
            samples_written: written,
            samples_lost: lost,
            ..
        } = figures;
        problems.push(format!(
            "{pushed} samples arrived, but the {written} written and {lost} lost ones do not add up to that; \
             {REPORT_BUG}"
        ));
    }
    match (conditions.code(), problems.as_slice()) {
        (0, _) => Ok(()),
        (code, []) => Err(Failure::AlreadyPrinted(code)),
        (code, problems) => Err(Failure::with_code(
            format!("{target}: {}", problems.join("; ")),
            code,
        )),
    }
}

/// Returns the result of the command after a comparison, in which losses are not failures.
pub fn of_comparison(interrupt: &Interrupt) -> Result<(), Failure> {
    interrupt
        .exit_code()
        .map_or(Ok(()), |code| Err(Failure::AlreadyPrinted(code)))
}

/// Returns the failure of a recording without figures; the message begins with the target.
pub fn of_error(target: &str, sentence: &str, error: Option<&StreamError>) -> Failure {
    let sentence = match sentence.starts_with(target) {
        true => sentence.to_string(),
        false => format!("{target}: {sentence}"),
    };
    match error {
        Some(StreamError::Unaccounted { .. }) => Failure::with_code(sentence, UNACCOUNTED),
        _ => Failure::with_code(sentence, INPUT_OR_DEVICE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_severe_condition_determines_the_code() {
        for bits in 0..64_u8 {
            let has = |bit: u8| bits & 1 << bit != 0;
            let signal = [None, Some(130), Some(143), Some(129)][usize::from(bits >> 4)];
            let conditions = Conditions {
                is_unaccounted: has(0),
                is_input_or_device: has(1),
                is_full: has(2),
                is_lossy: has(3),
                signal,
            };
            // The help states the precedence of the exit codes: 1, 2, 4, 3, signal.
            let expected = match (has(0), has(1), has(2), has(3), signal) {
                (true, ..) => 1,
                (_, true, ..) => 2,
                (_, _, true, ..) => 4,
                (_, _, _, true, _) => 3,
                (.., Some(code)) => code,
                (.., None) => 0,
            };
            assert_eq!(conditions.code(), expected, "{conditions:?}");
        }
    }
}
