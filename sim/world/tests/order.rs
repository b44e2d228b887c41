//! The order of execution, compared with traces written by hand.

use cardiograph_sim_world::{Clock, Handle, Seed, TimedOut, World};
use embedded_hal_async::delay::DelayNs;
use std::cell::RefCell;
use std::rc::Rc;

/// Events of the tasks: time in ns, and name.
#[derive(Clone, Default)]
struct Trace(Rc<RefCell<Vec<(u64, &'static str)>>>);

impl Trace {
    fn add(&self, handle: &Handle, who: &'static str) {
        self.0.borrow_mut().push((handle.now_ns(), who));
    }

    fn events(&self) -> Vec<(u64, &'static str)> {
        self.0.borrow().clone()
    }
}

fn world() -> (World, Handle, Trace) {
    let world = World::new(Seed::new(1));
    let handle = world.handle();
    (world, handle, Trace::default())
}

#[test]
fn tasks_run_in_the_order_they_were_spawned_and_woken() {
    let (mut world, handle, trace) = world();
    for (name, rounds) in [("a", 3), ("b", 1), ("c", 2)] {
        let (handle, trace) = (handle.clone(), trace.clone());
        world.spawn(name, async move {
            for _ in 0..rounds {
                trace.add(&handle, name);
                handle.yield_now().await;
            }
        });
    }
    world.run_until_idle().unwrap();
    let expected = ["a", "b", "c", "a", "c", "a"].map(|name| (0, name));
    assert_eq!(trace.events(), expected);
}

#[test]
fn a_spawned_task_runs_after_those_that_were_ready_before_it() {
    let (mut world, handle, trace) = world();
    let (inner, inner_trace) = (handle.clone(), trace.clone());
    world.spawn("parent", async move {
        let (child, child_trace) = (inner.clone(), inner_trace.clone());
        inner.spawn("child", async move { child_trace.add(&child, "child") });
        inner_trace.add(&inner, "parent");
    });
    let (second, second_trace) = (handle.clone(), trace.clone());
    world.spawn("second", async move { second_trace.add(&second, "second") });
    world.run_until_idle().unwrap();
    assert_eq!(trace.events(), [(0, "parent"), (0, "second"), (0, "child")]);
}

#[test]
fn equal_deadlines_fire_in_the_order_of_registration() {
    let (mut world, handle, trace) = world();
    for (name, naps) in [("late", [20, 10]), ("twice", [10, 20]), ("first", [5, 25])] {
        let (handle, trace) = (handle.clone(), trace.clone());
        world.spawn(name, async move {
            for nap_ns in naps {
                handle.sleep_ns(nap_ns).await;
                trace.add(&handle, name);
            }
        });
    }
    world.run_until_idle().unwrap();
    // For the deadline of 30 ns, `first` registered at 5 ns, `twice` at 10 ns and `late` at 20 ns.
    let expected = [
        (5, "first"),
        (10, "twice"),
        (20, "late"),
        (30, "first"),
        (30, "twice"),
        (30, "late"),
    ];
    assert_eq!(trace.events(), expected);
}

#[test]
fn a_task_that_advances_the_clock_makes_others_late() {
    let (mut world, handle, trace) = world();
    let (busy, busy_trace) = (handle.clone(), trace.clone());
    world.spawn("busy", async move {
        busy.sleep_ns(10).await;
        busy.clock().advance_ns(100);
        busy_trace.add(&busy, "busy");
        busy.yield_now().await;
        busy_trace.add(&busy, "busy again");
    });
    let (late, late_trace) = (handle.clone(), trace.clone());
    world.spawn("late", async move {
        late.sleep_ns(50).await;
        late_trace.add(&late, "late");
    });
    world.run_until_idle().unwrap();
    // `busy` was queued again while it ran, before the timers were checked.
    assert_eq!(
        trace.events(),
        [(110, "busy"), (110, "busy again"), (110, "late")]
    );
}

#[test]
fn run_until_stops_at_the_time_and_can_be_continued() {
    let (mut world, handle, trace) = world();
    let (inner, inner_trace) = (handle.clone(), trace.clone());
    world.spawn("ticks", async move {
        loop {
            inner.sleep_ns(10).await;
            inner_trace.add(&inner, "tick");
        }
    });
    world.run_until(20).unwrap();
    assert_eq!(trace.events(), [(10, "tick"), (20, "tick")]);
    world.run_until(25).unwrap();
    assert_eq!((world.now_ns(), trace.events().len()), (25, 2));
    world.run_until(30).unwrap();
    assert_eq!((world.now_ns(), trace.events().len()), (30, 3));
}

#[test]
fn a_timeout_drops_the_future_and_leaves_no_timer() {
    let (mut world, handle, _) = world();
    let owned = Rc::new(());
    let inside = Rc::clone(&owned);
    let slow = handle.clone();
    let result = world.block_on(handle.with_timeout(50, async move {
        let _inside = inside;
        slow.sleep_ns(1_000).await;
    }));
    assert_eq!(result, Ok(Err(TimedOut)));
    assert_eq!(Rc::strong_count(&owned), 1);
    world.run_until_idle().unwrap();
    assert_eq!(world.now_ns(), 50);

    let quick = handle.clone();
    let result = world.block_on(handle.with_timeout(1_000, async move {
        quick.sleep_ns(7).await;
        "done"
    }));
    assert_eq!(result, Ok(Ok("done")));
    world.run_until_idle().unwrap();
    assert_eq!(world.now_ns(), 57, "waited for a timeout that was dropped");
}

#[test]
fn completing_exactly_at_the_deadline_is_in_time() {
    let (mut world, handle, _) = world();
    let result = world.block_on(handle.with_timeout(50, handle.sleep_ns(50)));
    assert_eq!(result, Ok(Ok(())));
}

#[test]
fn block_on_may_borrow_and_leaves_other_tasks_waiting() {
    let (mut world, handle, trace) = world();
    let (server, server_trace) = (handle.clone(), trace.clone());
    world.spawn("server", async move {
        loop {
            server.sleep_ns(10).await;
            server_trace.add(&server, "server");
        }
    });
    let mut buffer = [0_u8; 4];
    world
        .block_on(async {
            handle.sleep_ns(25).await;
            buffer[0] = 1;
        })
        .unwrap();
    assert_eq!(buffer, [1, 0, 0, 0]);
    assert_eq!(trace.events(), [(10, "server"), (20, "server")]);
}

#[test]
fn delays_of_embedded_hal_are_virtual_and_exact() {
    let (mut world, mut handle, _) = world();
    world
        .block_on(async {
            handle.delay_ns(7).await;
            handle.delay_us(u32::MAX).await;
            handle.delay_ms(u32::MAX).await;
        })
        .unwrap();
    assert_eq!(
        world.now_ns(),
        7 + 4_294_967_295_000 + 4_294_967_295_000_000
    );
}

#[test]
fn a_stale_waker_does_not_wake_the_next_task_in_its_slot() {
    let (mut world, handle, trace) = world();
    let kept = Rc::new(RefCell::new(None));
    let keeper = Rc::clone(&kept);
    world.spawn("gone", async move {
        std::future::poll_fn(|context| {
            *keeper.borrow_mut() = Some(context.waker().clone());
            std::task::Poll::Ready(())
        })
        .await;
    });
    world.run_until_idle().unwrap();
    let inner = trace.clone();
    world.spawn(
        "next",
        std::future::poll_fn(move |_| {
            inner.add(&handle, "next");
            std::task::Poll::Pending
        }),
    );
    world.run_until(1).unwrap();
    kept.borrow().as_ref().unwrap().wake_by_ref();
    world.run_until(2).unwrap();
    assert_eq!(trace.events(), [(0, "next")]);
}

#[test]
fn a_restart_continues_at_the_same_time() {
    let clock = Clock::default();
    let mut world = World::on_clock(Seed::new(1), clock.clone());
    world.run_until(500).unwrap();
    drop(world);
    let restarted = World::on_clock(Seed::new(1), clock);
    assert_eq!(restarted.now_ns(), 500);
}
