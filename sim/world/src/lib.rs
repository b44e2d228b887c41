//! A world of its own: virtual time, tasks, seeds and a network link, in one thread.
//!
//! ```text
//!   test, sweep ── builds a World, spawns tasks, runs it, asks who is stuck
//!     │
//!   World ── polls one task after the other; lets time pass when none can run        (world.rs)
//!     ├── Tasks:  futures with names, woken first come first served                  (task.rs)
//!     ├── Timers: who wakes when, ordered by time, then by who asked first           (timer.rs)
//!     ├── Clock:  the only time there is; a simulated card moves it too              (clock.rs)
//!     └── Seed:   where all chance comes from, one stream for every consumer         (seed.rs)
//!     ▲
//!   Handle ── what a task holds of its world: sleep, time-outs, spawn, seed          (handle.rs)
//!     ▲
//!   Link ── packets between two ends: bandwidth, delay, loss, reordering             (link.rs)
//! ```
//!
//! ```
//! use cardiograph_sim_world::{Link, Seed, World};
//!
//! let mut world = World::new(Seed::new(1));
//! let handle = world.handle();
//! let (client, mut device) = Link::default().connect(&handle, "wifi")?;
//! world.spawn("device", async move {
//!     let request = device.receiver.recv().await;
//!     handle.sleep_ns(2_000_000).await;
//!     device.sender.send(&request).await.expect("no longer than the request");
//! });
//! let mut answers = client.receiver;
//! let answer = world.block_on(async {
//!     client.sender.send(b"status").await?;
//!     Ok::<_, cardiograph_sim_world::link::SendError>(answers.recv().await)
//! })??;
//! assert_eq!(answer, b"status");
//! // Twice 480 ns on the wire and 100 µs on the way, and 2 ms of work.
//! assert_eq!(world.now_ns(), 2 * (480 + 100_000) + 2_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Determinism
//!
//! A world has no global state, starts no thread and never looks at the computer's clock. What runs
//! next follows from what was spawned, what was woken and the timers alone, so the same seed gives the
//! same trace to the last bit, on any number of threads with as many worlds. A world stays in the
//! thread that built it. Two things would break this: a task that looks outside (the computer's time,
//! the order of a `HashMap`, an address), and a waker called from another thread.
//!
//! # Time
//!
//! Time passes in two ways. When no task can run, the clock moves to the next timer. A task may move
//! the clock itself while it runs, as a simulated card does for every byte on its wire: the processor
//! is busy so long, and timers that fell due meanwhile are late by as much, as on a device.
//!
//! # Power cuts
//!
//! Dropping a world drops its tasks and all they own, in the order they were spawned: volatile state
//! is gone. What outlives it is what the caller holds on to, such as a card's medium. A new world
//! [on the same clock](World::on_clock) is the restart; [`cut_at_every_poll`] enumerates the cuts.

mod clock;
mod cut;
mod handle;
pub mod link;
mod seed;
mod task;
mod timer;
mod world;

pub use clock::Clock;
pub use cut::cut_at_every_poll;
pub use handle::{Handle, TimedOut};
pub use link::Link;
pub use seed::{Random, Seed};
pub use timer::Sleep;
pub use world::{POLLS_MAX, Stuck, World};
