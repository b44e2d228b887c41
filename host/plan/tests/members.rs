//! Plans of ensembles, compared with separate plans of their members.

use cardiograph_plan::{
    Logger, Plan, Ranking, Spread, StreamError, plan_member, plan_simulated,
    plan_simulated_with_progress, text,
};
use cardiograph_sim_card::{Board, Profile};
use std::ops::ControlFlow;

const TARGET: &str = "sim:ensemble@esp32";
const BUFFER_BYTES: u64 = 16 << 10;

fn logger(sample_rate_hz: f64) -> Logger {
    Logger {
        sample_rate_hz,
        sample_bytes: 100,
        run_s: 86_400.0,
        buffer_bytes: BUFFER_BYTES,
    }
}

/// An ensemble of three, whose members need different times.
fn ensemble() -> Profile {
    let mut profile = Profile::named("generic-16g-class10").unwrap();
    profile.member.truncate(2);
    profile
}

fn spread(members: &[Plan], figure: impl Fn(&Plan) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = members.iter().map(figure).collect();
    values.sort_unstable_by(f64::total_cmp);
    [values[0], values[1], values[2]]
}

fn numbers(spread: Spread) -> [f64; 3] {
    [spread.low, spread.median, spread.high]
}

#[test]
fn median_and_range_are_those_of_the_members() {
    let (profile, board) = (ensemble(), Board::named("esp32").unwrap());
    let logger = logger(860.0);
    let plan = plan_simulated(TARGET, (&profile, &board), &logger).unwrap();
    let all = plan.ensemble.as_ref().unwrap();
    let members = profile.members(TARGET).unwrap();
    let members = members
        .iter()
        .map(|member| plan_member(TARGET, (member, &board), &logger));
    let members: Vec<Plan> = members.map(Result::unwrap).collect();

    assert_eq!((all.members, members.len()), (3, 3));
    let latency = spread(&members, |plan| plan.measured.worst_case_latency_us);
    assert!(
        latency[0] < latency[2],
        "the members are alike: {latency:?}"
    );
    assert_eq!(numbers(all.worst_case_latency_us), latency);
    let throughput = spread(&members, |plan| plan.measured.mean_throughput_bytes_per_s);
    assert_eq!(numbers(all.mean_throughput_bytes_per_s), throughput);
    let backlog = spread(&members, |plan| plan.peak_backlog_bytes.unwrap());
    assert_eq!(numbers(all.peak_backlog_bytes.unwrap()), backlog);
    let needed = spread(&members, |plan| {
        plan.recommended_buffer_bytes.map_or(f64::MAX, |b| b as f64)
    });
    let known = |bytes: Option<u64>| bytes.map_or(f64::MAX, |bytes| bytes as f64);
    assert_eq!(known(all.recommended_buffer_bytes), needed[1]);
    assert_eq!(known(all.largest_recommended_buffer_bytes), needed[2]);
    for row in &all.buffers {
        let of = |plan: &Plan| plan.buffer(row.buffer_bytes).unwrap().clone();
        let risk = spread(&members, |plan| of(plan).risk.high);
        assert_eq!(numbers(row.risk_high), risk);
        let rate = spread(&members, |plan| of(plan).sustained_bytes_per_s);
        assert_eq!(numbers(row.sustained_bytes_per_s), rate);
    }

    // The figures outside `ensemble` are those of the first member.
    let first = &members[0];
    assert_eq!(
        plan.measured.worst_case_latency_us,
        first.measured.worst_case_latency_us
    );
    assert_eq!(
        plan.recommended_buffer_bytes,
        first.recommended_buffer_bytes
    );
    assert!(first.ensemble.is_none());
    let table = text::text(&plan, BUFFER_BYTES);
    assert!(
        table.contains("Median and range of all 3 members"),
        "{table}"
    );
}

#[test]
fn a_rate_that_no_member_sustains_has_no_backlog() {
    let (profile, board) = (ensemble(), Board::named("esp32").unwrap());
    let plan = plan_simulated(TARGET, (&profile, &board), &logger(1e6)).unwrap();
    let all = plan.ensemble.as_ref().unwrap();
    assert!(all.peak_backlog_bytes.is_none() && all.energy_j_per_day.is_none());
    assert!(all.recommended_buffer_bytes.is_none() && all.lifetime_years.is_none());
    let table = text::text(&plan, BUFFER_BYTES);
    assert!(
        table.starts_with("No buffer is enough for 100 MB/s"),
        "{table}"
    );
    let ranking = Ranking::of(vec![(plan, true)], BUFFER_BYTES);
    assert!(
        ranking.text().contains("all, with any buffer"),
        "{}",
        ranking.text()
    );
}

#[test]
fn a_plan_counts_its_members_and_stops_on_request() {
    let (profile, board) = (ensemble(), Board::named("esp32").unwrap());
    let plan = |watch: &mut dyn FnMut(usize) -> ControlFlow<()>| {
        plan_simulated_with_progress(TARGET, (&profile, &board), &logger(860.0), watch)
    };
    let mut counts = Vec::new();
    plan(&mut |planned| {
        counts.push(planned);
        ControlFlow::Continue(())
    })
    .unwrap();
    counts.dedup();
    assert_eq!(counts, [0, 1, 2, 3]);

    let stopped = plan(&mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(StreamError::Stopped)));
}
