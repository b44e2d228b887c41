//! The exit code of `record`.

use super::figures::Figures;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use cardiograph_record::{Problem, StreamError};

const UNACCOUNTED: u8 = 1;
const INPUT_OR_MEDIUM: u8 = 2;
const LOSSY: u8 = 3;
const FULL: u8 = 4;

/// Everything that the exit code depends on.
#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    is_unaccounted: bool,
    is_input_or_medium: bool,
    is_full: bool,
    is_lossy: bool,
    /// Exit code of the signal that ended the recording.
    signal: Option<u8>,
}

impl Ending {
    fn of(figures: &Figures, interrupt: &Interrupt) -> Ending {
        let mut ending = Ending {
            is_unaccounted: figures.pushed != figures.written + figures.lost,
            is_lossy: figures.lost > 0,
            signal: interrupt.exit_code(),
            ..Ending::default()
        };
        for problem in &figures.problems {
            match problem {
                Problem::FilesGone(_) => ending.is_unaccounted = true,
                Problem::Medium(_) | Problem::Input(_) => ending.is_input_or_medium = true,
                Problem::Full => ending.is_full = true,
            }
        }
        ending
    }

    /// Returns the code of the gravest matter; a signal is none, as somebody wanted it.
    fn code(self) -> u8 {
        let codes = [
            (self.is_unaccounted, UNACCOUNTED),
            (self.is_input_or_medium, INPUT_OR_MEDIUM),
            (self.is_full, FULL),
            (self.is_lossy, LOSSY),
        ];
        let gravest = codes.into_iter().find(|(applies, _)| *applies);
        gravest.map_or(self.signal.unwrap_or(0), |(_, code)| code)
    }
}

/// Ends the command with the exit code of a recording that was shown, and says what went wrong.
pub fn of_recording(target: &str, figures: &Figures, interrupt: &Interrupt) -> Result<(), Failure> {
    let ending = Ending::of(figures, interrupt);
    let mut why: Vec<_> = figures.problems.iter().map(Problem::to_string).collect();
    if figures.pushed != figures.written + figures.lost {
        let Figures {
            pushed,
            written,
            lost,
            ..
        } = figures;
        why.push(format!(
            "{pushed} lines were pushed, but {written} written and {lost} lost; report it"
        ));
    }
    match (ending.code(), why.as_slice()) {
        (0, _) => Ok(()),
        (code, []) => Err(Failure::AlreadyPrinted(code)),
        (code, why) => Err(Failure::with_code(
            format!("{target}: {}", why.join("; ")),
            code,
        )),
    }
}

/// Ends the command after a comparison, of which losses are a result.
pub fn of_comparison(interrupt: &Interrupt) -> Result<(), Failure> {
    interrupt
        .exit_code()
        .map_or(Ok(()), |code| Err(Failure::AlreadyPrinted(code)))
}

/// Returns the failure of a recording that has no figures; the sentence begins with the target.
pub fn of_error(target: &str, sentence: &str, error: Option<&StreamError>) -> Failure {
    let sentence = match sentence.starts_with(target) {
        true => sentence.to_string(),
        false => format!("{target}: {sentence}"),
    };
    match error {
        Some(StreamError::Unaccounted { .. }) => Failure::with_code(sentence, UNACCOUNTED),
        _ => Failure::with_code(sentence, INPUT_OR_MEDIUM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_matter_decides_in_every_combination() {
        for bits in 0..64_u8 {
            let has = |bit: u8| bits & 1 << bit != 0;
            let signal = [None, Some(130), Some(143), Some(129)][usize::from(bits >> 4)];
            let ending = Ending {
                is_unaccounted: has(0),
                is_input_or_medium: has(1),
                is_full: has(2),
                is_lossy: has(3),
                signal,
            };
            // As the help lists them: 1, 2, 4, 3, signal.
            let expected = match (has(0), has(1), has(2), has(3), signal) {
                (true, ..) => 1,
                (_, true, ..) => 2,
                (_, _, true, ..) => 4,
                (_, _, _, true, _) => 3,
                (.., Some(code)) => code,
                (.., None) => 0,
            };
            assert_eq!(ending.code(), expected, "{ending:?}");
        }
    }
}
