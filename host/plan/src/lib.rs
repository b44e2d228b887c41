//! Buffer size, risk, energy and wear of a data logger, from a trace or a simulated card.
//!
//! ```text
//!   Profile, Board ── stream ── LongStream ──┐
//!             (the recorder's driver)          ├─ plan ── busy periods ── Tail ── risk ──> Plan
//!                                 any trace ───┘   └───── sustained rates ───────────────┘
//! ```
//!
//! # Risk
//!
//! The measured writes are replayed at the logger's rate, as for the sustained rate. A busy period
//! ([`cardiograph_timing::tail`]) lasts while a backlog builds up and drains again; its maximum is one peak backlog.
//! The greatest peak backlogs follow a generalised Pareto distribution above a threshold (`pareto.rs`) if it passes a
//! goodness-of-fit test; their number in a given time is a Poisson variable. A buffer of `B` bytes, above the threshold
//! `u`, therefore overflows in a run `T` times as long with the probability
//!
//! ```text
//! 1 - exp(-n T (1 + xi (B - u) / sigma)^(-1/xi))       n peak backlogs above u
//! ```
//!
//! The 95 % interval is derived from the profile likelihood over `n`, `xi` and `sigma`. Below the threshold,
//! and where no distribution fits, peak backlogs are counted: if none exceeded `B`, then with 95 %
//! confidence fewer than three such backlogs are expected in a run of the same length (the rule of three).

pub mod comparison;
mod ensemble;
mod figures;
mod file;
mod long;
mod pareto;
mod plan;
mod ranking;
mod risk;
mod simulated;
mod specification;
mod stream;
pub mod text;
mod warnings;

pub use figures::{
    BufferRow, Ensemble, EnsembleRow, Measured, Plan, Risk, Spread, TIMES_MAX, TailFigures, Wear,
};
pub use file::plan_file;
pub use long::{Consumption, LongStream};
pub use plan::{Logger, PlanError, RISK_MAX, Source, plan};
pub use ranking::{Ranked, Ranking};
pub use risk::{Interval, PEAKS_MAX, Tail};
pub use simulated::{plan_member, plan_simulated, plan_simulated_with_progress};
pub use specification::{Specification, Unmeasured};
pub use stream::{StreamError, Streamed, stream};
