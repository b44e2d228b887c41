//! Timers against a reference model using lists.

use cardiograph_sim_world::{Seed, World};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

type Events = Rc<RefCell<Vec<(u64, usize)>>>;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Timers registered together fire in the order of a stable sort by deadline; dropped timers do not fire.
    #[test]
    fn timers_fire_as_sorted(deadlines in prop::collection::vec((0_u64..50, any::<bool>()), 0..200)) {
        let mut world = World::new(Seed::new(0));
        let handle = world.handle();
        let events = Events::default();
        for (who, &(deadline_ns, dropped)) in deadlines.iter().enumerate() {
            let (handle, events) = (handle.clone(), events.clone());
            world.spawn(format!("{who}"), async move {
                let mut sleep = handle.sleep_until_ns(deadline_ns);
                // Register the timer, even if it is dropped afterwards.
                let mut context = Context::from_waker(Waker::noop());
                assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
                if !dropped {
                    sleep.await;
                    events.borrow_mut().push((handle.now_ns(), who));
                }
            });
        }
        world.run_until_idle().unwrap();

        let mut expected: Vec<(u64, usize)> = deadlines
            .iter()
            .enumerate()
            .filter(|(_, deadline)| !deadline.1)
            .map(|(who, deadline)| (deadline.0, who))
            .collect();
        expected.sort_by_key(|event| event.0);
        prop_assert_eq!(&*events.borrow(), &expected);
        prop_assert_eq!(world.now_ns(), expected.last().map_or(0, |last| last.0));
    }

    /// Tasks that sleep repeatedly, sometimes interrupted by a timeout, compared with a list that is
    /// searched from end to end for the next task to wake.
    #[test]
    fn sleepers_wake_as_in_a_list(
        naps in prop::collection::vec(prop::collection::vec((0_u64..30, 0_u64..30), 1..12), 1..12)
    ) {
        let mut world = World::new(Seed::new(0));
        let handle = world.handle();
        let events = Events::default();
        for (who, naps) in naps.iter().cloned().enumerate() {
            let (handle, events) = (handle.clone(), events.clone());
            world.spawn(format!("{who}"), async move {
                for (nap_ns, limit_ns) in naps {
                    let _ = handle.with_timeout(limit_ns, handle.sleep_ns(nap_ns)).await;
                    events.borrow_mut().push((handle.now_ns(), who));
                }
            });
        }
        world.run_until_idle().unwrap();
        prop_assert_eq!(&*events.borrow(), &in_a_list(&naps));
    }
}

/// Reference model: keeps each sleeper's next deadline and registration, and wakes the sleeper with the
/// smallest pair first.
fn in_a_list(naps: &[Vec<(u64, u64)>]) -> Vec<(u64, usize)> {
    let mut asked = 0;
    let mut list = Vec::new();
    let mut left: Vec<_> = naps.iter().map(|naps| naps.iter()).collect();
    let mut ask = |who: usize, now_ns: u64, list: &mut Vec<(u64, u64, usize)>| {
        if let Some(&(nap_ns, limit_ns)) = left[who].next() {
            list.push((now_ns + nap_ns.min(limit_ns), asked, who));
            asked += 1;
        }
    };
    for who in 0..naps.len() {
        ask(who, 0, &mut list);
    }
    let mut events = Vec::new();
    while let Some(first) = (0..list.len()).min_by_key(|&index| (list[index].0, list[index].1)) {
        let (now_ns, _, who) = list.remove(first);
        events.push((now_ns, who));
        ask(who, now_ns, &mut list);
    }
    events
}
