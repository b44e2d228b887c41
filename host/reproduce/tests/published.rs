//! Accuracy of the simulated cards against published figures.

use cardiograph_reproduce::{
    MEMBERS, Outcome, Role, Row, STUDIES, SetAside, reproduce, study, table,
};

fn outcomes() -> Vec<Outcome> {
    let rows: Vec<Row> = STUDIES
        .iter()
        .flat_map(|name| study(name).unwrap().rows)
        // The accuracy of rows that are measured on the host is not tested.
        .filter(|row| row.query.needs_card())
        .collect();
    reproduce(&rows, 2, MEMBERS.into(), |_, _| ()).unwrap()
}

/// Returns true for rows that were added when the bounds of this test had been set.
fn is_later(outcome: &Outcome) -> bool {
    outcome.row.set_aside == Some(SetAside::Later)
}

fn factors(outcomes: &[Outcome], role: Role) -> Vec<f64> {
    let of_role = outcomes.iter().filter(|outcome| outcome.row.role == role);
    let published = of_role
        .filter(|outcome| outcome.row.published.is_some())
        .filter(|outcome| !is_later(outcome));
    let mut factors: Vec<f64> = published
        .map(|outcome| outcome.factor().unwrap_or(f64::INFINITY))
        .collect();
    factors.sort_by(f64::total_cmp);
    factors
}

#[test]
fn fits_are_close_and_the_median_prediction_is_near() {
    let outcomes = outcomes();
    let fits = factors(&outcomes, Role::Fit);
    let close = fits.iter().filter(|factor| **factor <= 1.25).count();
    assert!(close * 100 >= fits.len() * 80, "{close} of {}", fits.len());
    let farthest = fits.last().copied().unwrap_or_default();
    assert!(farthest <= 2.0, "{farthest}");
    let predictions = factors(&outcomes, Role::Prediction);
    let median = predictions[predictions.len() / 2];
    assert!(median <= 1.5, "{median}");
    println!("{}", table::summary(&outcomes));
    // Table 4.2, the sweep of the piece size and figure 4.1: every row is close.
    for outcome in &outcomes {
        let is_served = outcome.row.query.experiment.server.is_some();
        if let Some(factor) = outcome.factor().filter(|_| is_served && !is_later(outcome)) {
            assert!(factor <= 1.25, "{}: {factor}", outcome.row.quantity);
        }
    }
    // Every row has results, and every maximum has an interval over twenty seeds.
    for outcome in &outcomes {
        let seeds = outcome.simulated.len();
        let least = if outcome.row.query.measure.is_maximum() {
            20
        } else {
            5
        };
        assert!(seeds >= least, "{}: {seeds} seeds", outcome.row.quantity);
    }
}
