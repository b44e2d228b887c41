//! What a recorder said of a recording, held against what it was given and what is in its files.

use crate::content::Reached;
use crate::session::{Covered, Session};
use cardiograph_recorder::{Cause, Event, Format, Gap, Window};

/// Checkpoints cover what they say, never go back, and are late if and only if the window was exceeded.
///
/// # Errors
/// The first that is wrong.
pub fn judge_checkpoints(session: &Session, stream: usize) -> Result<(), String> {
    let Some(started_ns) = session.started_ns else {
        return match session.checkpoints(stream).next() {
            Some(covered) => Err(format!("nothing was sampled before {covered:?}")),
            None => Ok(()),
        };
    };
    let plan = &session.plans[stream];
    let pushed_before = |us: u64| plan.due_before((us * 1000).saturating_sub(started_ns));
    let pushed_us = |sample| (started_ns + plan.due_ns(sample)) / 1000;
    // Sampling may begin once the last file is open; nothing tells the recorder when it does.
    let opened = session.said.iter().filter_map(|said| match said.event {
        Event::Opened { .. } => Some(said.at_us),
        _ => None,
    });
    let ready_us = opened.take_while(|us| *us <= started_ns / 1000).last();
    let mut before = Covered {
        done_us: started_ns / 1000,
        samples: 0,
        pushed_before_us: ready_us.unwrap_or(started_ns / 1000),
        is_late: false,
    };
    for covered in session.checkpoints(stream) {
        let wrong = |why: &str| Err(format!("{why}: {covered:?} after {before:?}"));
        let due = pushed_before(covered.pushed_before_us);
        if covered.samples < due {
            return wrong(&format!("{due} samples are older than this checkpoint"));
        }
        if covered.samples < before.samples {
            return wrong("what was durable is not any more");
        }
        let (must_be_late, may_be_late) = match plan.config.window {
            Window::Us(window_us) => {
                let has_unsaved = before.samples < pushed_before(covered.done_us);
                let oldest_us = pushed_us(before.samples).max(before.pushed_before_us);
                (
                    has_unsaved && covered.done_us.saturating_sub(oldest_us) > window_us + 1,
                    covered.done_us - before.pushed_before_us > window_us,
                )
            }
            Window::Sample => {
                let unsaved = |us| pushed_before(us).saturating_sub(before.samples);
                // The recorder's clock has whole microseconds.
                (
                    unsaved(covered.done_us) > 1,
                    unsaved(covered.done_us + 1) > 1,
                )
            }
        };
        if must_be_late && !covered.is_late {
            return wrong("the window was exceeded, and the checkpoint is not called late");
        }
        if covered.is_late && !may_be_late {
            return wrong("the window was met, and the checkpoint is called late");
        }
        before = covered;
    }
    Ok(())
}

/// Returns the gaps that a stream reported, in the order of the reports.
fn reported(session: &Session, wanted: usize) -> impl Iterator<Item = Gap> {
    session
        .said
        .iter()
        .filter_map(move |said| match said.event {
            Event::Lost { stream, gap } if usize::from(stream) == wanted => Some(gap),
            _ => None,
        })
}

/// Each gap has a cause that there was, and lies in the time in which its samples came.
///
/// # Errors
/// The first that is wrong.
pub fn judge_causes(session: &Session, stream: usize) -> Result<(), String> {
    for gap in reported(session, stream) {
        let can_be = match gap.cause {
            Cause::Busy | Cause::FileNotReady => true,
            Cause::NoCard | Cause::CardFailed => session.lost_card(),
            Cause::CardFull => session.is_full(),
            Cause::Read => session.has_reads,
            // All samples are good ones.
            Cause::BadSample => false,
        };
        if !can_be {
            return Err(format!("nothing of the kind happened: {gap:?}"));
        }
        if gap.count == 0 {
            return Err(format!("a gap of nothing: {gap:?}"));
        }
    }
    Ok(())
}

/// A card that nothing happens to does not fail.
///
/// # Errors
/// That it was said to.
pub fn judge_card(session: &Session) -> Result<(), String> {
    match session.lost_card() && !session.was_struck {
        true => Err("the card is called lost, and nothing happened to it".into()),
        false => Ok(()),
    }
}

/// Nothing is lost in silence, and nothing is called lost that is there.
///
/// # Errors
/// What does not fit.
pub fn judge_counts(
    session: &Session,
    stream: usize,
    (written, lost): (u64, u64),
    reached: &Reached,
) -> Result<(), String> {
    let (end, pushed) = (reached.next.unwrap_or(0), session.pushed[stream]);
    let mut told: Vec<(u64, u64)> = reported(session, stream)
        .map(|gap| (gap.first, gap.count))
        .collect();
    told.sort_unstable();
    let told = told;
    let wrong = |why: &str| {
        let files = &reached.gaps;
        Err(format!(
            "{why}: {end} samples in the files but {files:?}; {pushed} were pushed, {written} written, \
             {lost} lost, {told:?} reported"
        ))
    };
    if written + lost != pushed {
        return wrong("written and lost are not what was pushed");
    }
    let mut missing = reached.gaps.clone();
    if end < pushed {
        missing.push((end, pushed - end));
    }
    let in_files = end - reached.lost().min(end);
    if session.lost_card() {
        let is_told = |first: u64, count: u64| {
            let is_in =
                |index, (first, count): &(u64, u64)| (*first..first + count).contains(&index);
            (first..first + count).all(|index| told.iter().any(|gap| is_in(index, gap)))
        };
        // What a card took with it may be there after all.
        return match written <= in_files
            && missing.iter().all(|(first, count)| is_told(*first, *count))
        {
            true => Ok(()),
            false => wrong("samples are missing, and no gap was reported"),
        };
    }
    if written != in_files {
        return wrong("written is not what is in the files");
    }
    if merged(&told) != merged(&missing) {
        return wrong("the gaps are not what is missing");
    }
    if told.iter().map(|(_, count)| count).sum::<u64>() != lost {
        return wrong("the gaps overlap");
    }
    if end < pushed {
        return judge_full(session, stream, end);
    }
    Ok(())
}

/// What no file has room for is one gap, of a card that is full.
fn judge_full(session: &Session, stream: usize, end: u64) -> Result<(), String> {
    let last: Vec<Gap> = reported(session, stream)
        .filter(|gap| gap.first >= end)
        .collect();
    match &last[..] {
        [gap] if gap.cause == Cause::CardFull && session.is_full() => Ok(()),
        _ => Err(format!(
            "{end} samples are in the files, and what follows is {last:?}"
        )),
    }
}

/// Gaps in order, with those joined that touch.
pub fn merged(gaps: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (first, count) in gaps {
        match joined.last_mut() {
            Some(last) if last.0 + last.1 >= *first => last.1 = last.1.max(first + count - last.0),
            _ => joined.push((*first, *count)),
        }
    }
    joined
}

/// The last mark of a file that is closed was cut off.
///
/// # Errors
/// That it was not.
pub fn judge_end(session: &Session, stream: usize, bytes: &[u8]) -> Result<(), String> {
    let plan = &session.plans[stream];
    if let Format::Binary(_) = plan.config.format {
        return Ok(());
    }
    let last = bytes.split_inclusive(|byte| *byte == b'\n').next_back();
    let last = String::from_utf8_lossy(last.unwrap_or_default());
    let note = last.trim_start_matches(',').strip_prefix('#');
    match note.is_some_and(|note| note.trim_start_matches(' ').starts_with('@')) {
        true => Err(format!("its last mark is left: {last:?}")),
        false => Ok(()),
    }
}
