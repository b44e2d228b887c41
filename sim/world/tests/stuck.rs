//! Deadlocks and livelocks are reported with the name of the task that caused them.

use cardiograph_sim_world::{POLLS_MAX, Seed, Stuck, World};
use std::future::pending;

#[test]
fn a_deadlock_reports_the_waiting_tasks() {
    let mut world = World::new(Seed::new(1));
    let handle = world.handle();
    world.spawn("done", async {});
    world.spawn("card", pending());
    world.spawn("recorder", async move {
        handle.sleep_ns(30).await;
        pending::<()>().await;
    });
    let stuck = world.run_until_idle().unwrap_err();
    let tasks = vec!["card".to_string(), "recorder".to_string()];
    assert_eq!(stuck, Stuck::Deadlock { at_ns: 30, tasks });
    assert_eq!(
        stuck.to_string(),
        "deadlock at 30 ns: nothing will wake the tasks `card`, `recorder`"
    );
}

#[test]
fn a_deadlock_includes_the_future_of_block_on() {
    let mut world = World::new(Seed::new(1));
    world.spawn("idle", pending());
    let tasks = vec!["idle".to_string(), "block_on".to_string()];
    assert_eq!(
        world.block_on(pending::<()>()),
        Err(Stuck::Deadlock { at_ns: 0, tasks })
    );
    // The slot of the `block_on` is free again.
    let tasks = vec!["idle".to_string()];
    assert_eq!(
        world.run_until_idle(),
        Err(Stuck::Deadlock { at_ns: 0, tasks })
    );
}

#[test]
fn a_livelock_reports_the_task_that_spins() {
    let mut world = World::new(Seed::new(1));
    for name in ["sleeper", "spinner", "bystander"] {
        let handle = world.handle();
        world.spawn(name, async move {
            handle.sleep_ns(5).await;
            if name == "spinner" {
                loop {
                    handle.yield_now().await;
                }
            }
            handle.sleep_ns(5).await;
        });
    }
    let stuck = world.run_until(1_000).unwrap_err();
    let task = "spinner".to_string();
    assert_eq!(stuck, Stuck::Livelock { at_ns: 5, task });
    assert_eq!(
        stuck.to_string(),
        "livelock at 5 ns: task `spinner` keeps running; time did not advance in 1000000 polls"
    );
}

#[test]
fn a_loop_of_zero_sleeps_is_detected_too() {
    let mut world = World::new(Seed::new(1));
    let handle = world.handle();
    let spin = async {
        loop {
            handle.sleep_ns(0).await;
        }
    };
    let stuck: Result<(), Stuck> = world.block_on(spin);
    let task = "block_on".to_string();
    assert_eq!(stuck, Err(Stuck::Livelock { at_ns: 0, task }));
}

/// As long as time passes, however slowly, a task may run forever.
#[test]
fn a_slow_loop_is_no_livelock() {
    let mut world = World::new(Seed::new(1));
    let handle = world.handle();
    world.spawn("slow", async move {
        loop {
            for _ in 0..POLLS_MAX / 4 {
                handle.yield_now().await;
            }
            handle.sleep_ns(1).await;
        }
    });
    assert_eq!(world.run_until(8), Ok(()));
}
