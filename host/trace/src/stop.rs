//! Requests to end a computation.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end the computations over a trace, from another thread. Figures are computed in many passes over a trace
/// and have no partial values, so the pass that finds the flag raised unwinds its thread, as after a panic, but without a
/// message.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Requests the end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Unwinds the thread if the flag is raised.
    pub fn unwind_if_raised(&self) {
        if self.0.load(Ordering::Relaxed) {
            resume_unwind(Box::new("stopped"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Operation, OperationKind, Trace};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn every_pass_ends_once_the_flag_is_raised() {
        let mut trace = Trace::new(About::default());
        for start_ns in 0..200_000 {
            let operation = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: start_ns * 512,
                length_bytes: 512,
                start_ns,
                end_ns: start_ns + 1,
            };
            trace.push(&operation).unwrap();
        }
        let stop = StopFlag::default();
        trace.stop_with(stop.clone());
        let mut seen = 0;
        let mut see = || {
            seen += 1;
            // In the middle of the pass.
            if seen % 200_000 == 100_000 {
                stop.raise();
            }
        };
        let mut ends = |pass: &mut dyn FnMut(&mut dyn FnMut())| {
            catch_unwind(AssertUnwindSafe(|| pass(&mut see))).is_err()
        };
        assert!(ends(&mut |see| trace.replay(|_, ns| ns.for_each(|_| see()))));
        assert!(ends(&mut |see| trace.times(|_, _| see())));
        assert!(ends(&mut |see| trace.operations().for_each(|_| see())));
        // The first pass ends after the chunk in which the flag was raised, the others before their first one.
        assert!((100_000..200_000).contains(&seen), "{seen}");
    }
}
