//! A deterministic simulation: virtual time, tasks, seeds and a network link, in a single thread.
//!
//! ```text
//!   test, sweep ── builds a World, spawns tasks, runs it, receives stuck tasks as errors
//!     │
//!   World ── polls one task at a time; advances time when none is ready              (world.rs)
//!     ├── Tasks:  named futures, polled in the order of waking                       (task.rs)
//!     ├── Timers: wakers, ordered by deadline and then by registration               (timer.rs)
//!     ├── Clock:  the only time source; a simulated card advances it too             (clock.rs)
//!     └── Seed:   the only source of randomness, with one stream per consumer        (seed.rs)
//!     ▲
//!   Handle ── access of a task to its world: sleep, timeouts, spawn, seed            (handle.rs)
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
//!     device.sender.send(&request).await.expect("the request fits the MTU too");
//! });
//! let mut answers = client.receiver;
//! let answer = world.block_on(async {
//!     client.sender.send(b"status").await?;
//!     Ok::<_, cardiograph_sim_world::link::SendError>(answers.recv().await)
//! })??;
//! assert_eq!(answer, b"status");
//! // 480 ns of transmission and 100 µs of delay in each direction, and 2 ms of work.
//! assert_eq!(world.now_ns(), 2 * (480 + 100_000) + 2_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Determinism
//!
//! A world has no global state, starts no thread and never reads the host's clock. The order of execution
//! depends only on what was spawned, what was woken and the timers, so the same seed gives the same trace
//! to the last bit, on any number of threads with any number of worlds. A world stays in the thread that
//! created it. Two things would break this: a task that depends on anything outside (the host's time, the
//! order of a `HashMap`, an address), and a waker called from another thread.
//!
//! # Time
//!
//! Time passes in two ways. When no task is ready, the clock advances to the next timer. A task may also
//! advance the clock while it runs, as a simulated card does for every byte on its bus: the processor is
//! busy for that time, and timers that become due during that time fire late, as on a device.
//!
//! # Power cuts
//!
//! Dropping a world drops its tasks and everything they own, in the order in which they were spawned:
//! volatile state is lost. State that the caller holds, such as the storage of a card, survives. A new world
//! [on the same clock](World::on_clock) simulates the restart; [`cut_at_every_poll`] tries all cuts.

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
pub use world::{POLLS_MAX, Run, Stuck, World};
