//! Rules that compare the reports of a recorder with the samples it received and with the contents of its
//! files.

use crate::content::Progress;
use crate::session::{CheckpointReport, Session};
use cardiograph_recorder::{Cause, Event, Format, Gap, Window};
use std::collections::BTreeMap;

/// Checks that checkpoints cover the samples that they report, never move backwards, and are late if and only
/// if the window was exceeded.
///
/// # Errors
/// The first checkpoint that violates one of these rules.
pub fn judge_checkpoints(session: &Session, stream: usize) -> Result<(), String> {
    let Some(started_ns) = session.started_ns else {
        return match session.checkpoints(stream).next() {
            Some(checkpoint) => Err(format!("checkpoint before sampling began: {checkpoint:?}")),
            None => Ok(()),
        };
    };
    let plan = &session.plans[stream];
    let pushed_before = |us: u64| plan.due_before((us * 1000).saturating_sub(started_ns));
    let pushed_us = |sample| (started_ns + plan.due_ns(sample)) / 1000;
    // Sampling may begin once every track has a file, but the recorder does not know when it does begin. So checkpoints
    // count from the time at which the last track got its first file. Files that are opened after that but before the
    // first sample are those of a session that begins with that sample.
    let mut tracks = BTreeMap::new();
    for timed in &session.events {
        if let Event::Opened { track, .. } = timed.event
            && timed.at_us <= started_ns / 1000
        {
            tracks.entry(track).or_insert(timed.at_us);
        }
    }
    let ready_us = tracks.into_values().max();
    let mut before = CheckpointReport {
        done_us: started_ns / 1000,
        samples: 0,
        pushed_before_us: ready_us.unwrap_or(started_ns / 1000),
        is_late: false,
    };
    for checkpoint in session.checkpoints(stream) {
        let wrong = |why: &str| Err(format!("{why}: {checkpoint:?} after {before:?}"));
        let due = pushed_before(checkpoint.pushed_before_us);
        if checkpoint.samples < due {
            return wrong(&format!(
                "the checkpoint does not cover all {due} samples that were pushed before it was taken"
            ));
        }
        if checkpoint.samples < before.samples {
            return wrong("fewer samples are durable than at the previous checkpoint");
        }
        let (must_be_late, may_be_late) = match plan.config.window {
            Window::Us(window_us) => {
                let has_unsaved = before.samples < pushed_before(checkpoint.done_us);
                let oldest_us = pushed_us(before.samples).max(before.pushed_before_us);
                (
                    has_unsaved && checkpoint.done_us.saturating_sub(oldest_us) > window_us + 1,
                    checkpoint.done_us - before.pushed_before_us > window_us,
                )
            }
            Window::Sample => {
                let unsaved = |us| pushed_before(us).saturating_sub(before.samples);
                // The recorder's clock counts whole microseconds.
                (
                    unsaved(checkpoint.done_us) > 1,
                    unsaved(checkpoint.done_us + 1) > 1,
                )
            }
        };
        if must_be_late && !checkpoint.is_late {
            return wrong(
                "the durability window was exceeded, but the checkpoint is not reported as late",
            );
        }
        if checkpoint.is_late && !may_be_late {
            return wrong("the durability window was met, but the checkpoint is reported as late");
        }
        before = checkpoint;
    }
    Ok(())
}

/// Returns the gaps that a stream reported, in the order of the reports.
fn reported(session: &Session, wanted: usize) -> impl Iterator<Item = Gap> {
    session
        .events
        .iter()
        .filter_map(move |timed| match timed.event {
            Event::Lost { stream, gap } if usize::from(stream) == wanted => Some(gap),
            _ => None,
        })
}

/// Checks that each gap has samples, and a cause that occurred.
///
/// # Errors
/// The first gap that violates one of these rules.
pub fn judge_causes(session: &Session, stream: usize) -> Result<(), String> {
    for gap in reported(session, stream) {
        let can_be = match gap.cause {
            Cause::Busy | Cause::FileNotReady => true,
            Cause::NoCard | Cause::CardFailed => session.lost_card(),
            Cause::CardFull => session.is_full(),
            Cause::Read => session.has_reads,
            // This test pushes only valid samples, so that there is no other cause.
            _ => false,
        };
        if !can_be {
            return Err(format!("the cause of a gap did not occur: {gap:?}"));
        }
        if gap.count == 0 {
            return Err(format!("a gap without samples: {gap:?}"));
        }
    }
    Ok(())
}

/// Checks that a card without faults is not reported as lost.
///
/// # Errors
/// If the card was reported as lost.
pub fn judge_card(session: &Session) -> Result<(), String> {
    match session.lost_card() && !session.has_faults {
        true => Err("the card was reported lost without any fault".into()),
        false => Ok(()),
    }
}

/// Checks that every missing sample was reported as lost, and that no other sample was.
///
/// # Errors
/// The first difference between the counts, the files and the reports.
pub fn judge_counts(
    session: &Session,
    stream: usize,
    (written, lost): (u64, u64),
    progress: &Progress,
) -> Result<(), String> {
    let (end, pushed) = (progress.next.unwrap_or(0), session.pushed[stream]);
    let mut gaps: Vec<(u64, u64)> = reported(session, stream)
        .map(|gap| (gap.first, gap.count))
        .collect();
    gaps.sort_unstable();
    let gaps = gaps;
    let wrong = |why: &str| {
        let files = &progress.gaps;
        Err(format!(
            "{why}: files contain the samples before {end} except {files:?}; {pushed} samples were pushed, \
             {written} written and {lost} lost; reported gaps: {gaps:?}"
        ))
    };
    if written + lost != pushed {
        return wrong("the numbers of written and lost samples do not add up to the number pushed");
    }
    let mut missing = progress.gaps.clone();
    if end < pushed {
        missing.push((end, pushed - end));
    }
    let in_files = end - progress.lost().min(end);
    if session.lost_card() {
        let is_reported = |first: u64, count: u64| {
            let is_in =
                |index, (first, count): &(u64, u64)| (*first..first + count).contains(&index);
            (first..first + count).all(|index| gaps.iter().any(|gap| is_in(index, gap)))
        };
        // Samples that were reported as lost with the card may be present nevertheless.
        return match written <= in_files
            && missing
                .iter()
                .all(|(first, count)| is_reported(*first, *count))
        {
            true => Ok(()),
            false => wrong("samples are missing, and no gap was reported"),
        };
    }
    if written != in_files {
        return wrong("the number of written samples differs from the number in the files");
    }
    if merged(&gaps) != merged(&missing) {
        return wrong("the reported gaps differ from the missing samples");
    }
    if gaps.iter().map(|(_, count)| count).sum::<u64>() != lost {
        return wrong("the reported gaps overlap");
    }
    if end < pushed {
        return judge_full(session, stream, end);
    }
    Ok(())
}

/// Checks that the samples after the end of the last file were reported as a single gap, caused by a full
/// card.
fn judge_full(session: &Session, stream: usize, end: u64) -> Result<(), String> {
    let last: Vec<Gap> = reported(session, stream)
        .filter(|gap| gap.first >= end)
        .collect();
    match &last[..] {
        [gap] if gap.cause == Cause::CardFull && session.is_full() => Ok(()),
        _ => Err(format!(
            "expected a single gap from sample {end} on, caused by a full card, found {last:?}"
        )),
    }
}

/// Merges adjacent and overlapping gaps; `gaps` are sorted.
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

/// Checks that a closed text file does not end with a checkpoint mark.
///
/// # Errors
/// If the file ends with a checkpoint mark.
pub fn judge_end(session: &Session, stream: usize, bytes: &[u8]) -> Result<(), String> {
    let plan = &session.plans[stream];
    if let Format::Binary(_) = plan.config.format {
        return Ok(());
    }
    let last = bytes.split_inclusive(|byte| *byte == b'\n').next_back();
    let last = String::from_utf8_lossy(last.unwrap_or_default());
    let note = last.trim_start_matches(',').strip_prefix('#');
    match note.is_some_and(|note| note.trim_start_matches(' ').starts_with('@')) {
        true => Err(format!(
            "the checkpoint mark at the end of the file was not removed: {last:?}"
        )),
        false => Ok(()),
    }
}
