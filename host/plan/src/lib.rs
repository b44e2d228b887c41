//! What a data logger needs, from a trace or on a simulated card.
//!
//! ```text
//!   Profile, Board ── stream ── LongStream ──┐
//!             (the recorder's driver)          ├─ plan ── busy periods ── Tail ── risk ──> Plan
//!                                 any trace ───┘   └───── lossless rates ────────────────┘
//! ```
//!
//! # The risk
//!
//! The measured writes are played at the logger's rate, as for the lossless rate. Each time that a backlog
//! builds up and is gone again is one busy period ([`cardiograph_timing::tail`]), and its greatest backlog
//! one height. The greatest heights follow a generalized Pareto distribution over a threshold
//! (`pareto.rs`), if one passes a test of fit; how many there are in a time is a Poisson variable. So a RAM
//! of `B` bytes above the threshold `u` overflows in a run `T` times as long with the probability
//!
//! ```text
//! 1 - exp(-n T (1 + xi (B - u) / sigma)^(-1/xi))       n heights above u
//! ```
//!
//! Its 95 % interval is that of the profile likelihood over all of `n`, `xi` and `sigma`. Below the
//! threshold, and where no law fits, heights are counted: where none was higher, with 95 % confidence fewer
//! than three would be in as long a run (the rule of three).

mod figures;
mod long;
mod pareto;
mod plan;
mod risk;
mod simulated;
mod stream;
pub mod text;
mod warnings;

pub use figures::{Measured, Plan, Risk, Size, TailFigures, Wear};
pub use long::{LongStream, Taken};
pub use plan::{Logger, NoPlan, RISK_MAX, Source, plan};
pub use risk::{HEIGHTS_MAX, Interval, Tail};
pub use simulated::plan_simulated;
pub use stream::{StreamError, Streamed, stream};
