//! Gaps while a stream has no file: in the ring alone, or on a full card.

use crate::logger_rig::{Input, line, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Cause, Control, Event, Session, Window};

#[test]
fn a_gap_alone_in_the_ring_is_written_when_the_card_is_back() {
    let control = Control::new();
    let mut case = case(&control, 512 << 10, 20_000);
    case.faults.gone = Some(3_000_000..4_000_000);
    let window = Window::Us(100_000);
    // The last sample of `silent` is not a line, so it becomes a gap. By then, `other` has noticed that the card is
    // away.
    let silent = Input {
        window,
        make: Box::new(|index| match index {
            0 => line(0, LINE_BYTES.into()),
            _ => Vec::new(),
        }),
        ..lines(4_096, LINE_BYTES, 3_400_000, 2)
    };
    let other = Input {
        window,
        ..lines(4_096, LINE_BYTES, 100_000, 35)
    };
    let outcome = record(case, [silent, other], |_| ());
    (0..2).for_each(|stream| assert_kept(&outcome, stream));
    assert_eq!(files(&outcome.disk, 0).gaps, [(1, 1)]);
    assert_eq!(reported_gaps(&outcome, 0), [(1, 1)]);
    let summary = outcome.summaries.unwrap()[0];
    assert!(summary.at_risk_us_max > 300_000, "{summary:?}");
}

#[test]
fn samples_lost_on_a_full_card_have_cause_card_full() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, SMALL_BLOCKS);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 32_000),
        lines(16_384, LINE_BYTES, 20_000, 1_600),
    ];
    // The second stream leaves its file after the first one has filled its own: there is room again.
    let session = Session::new("next", None, "", &inputs[1].format).unwrap();
    case.sessions = vec![(1, 1_500, session)];
    let outcome = record(case, inputs, |_| ());
    assert_kept(&outcome, 0);
    assert_eq!(files(&outcome.disk, 0).causes, ["card-full"]);
    let lost = outcome.events.iter().filter_map(|(_, event)| match event {
        Event::Lost { stream: 0, gap } => Some(gap.cause),
        _ => None,
    });
    assert_eq!(Vec::from_iter(lost), [Cause::CardFull]);
}
