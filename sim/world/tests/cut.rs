//! Power cuts at every poll boundary.

use cardiograph_sim_world::{Handle, Seed, World, cut_at_every_poll};
use std::cell::RefCell;
use std::rc::Rc;

const ENTRIES: u32 = 20;

/// Storage with a list of numbers, and the number of entries that were reported as durable.
#[derive(Default)]
struct Storage {
    log: RefCell<Vec<u32>>,
    durable: RefCell<u32>,
}

/// Takes numbers into RAM and stores three at a time; reports them as durable once they are stored.
async fn record(handle: Handle, storage: Rc<Storage>) {
    let mut ram = Vec::new();
    let first = storage.log.borrow().len() as u32;
    for number in first..ENTRIES {
        ram.push(number);
        handle.sleep_ns(1_000).await;
        if ram.len() == 3 || number + 1 == ENTRIES {
            for number in ram.drain(..) {
                storage.log.borrow_mut().push(number);
                handle.sleep_ns(50).await;
            }
            *storage.durable.borrow_mut() = number + 1;
        }
    }
}

#[test]
fn durable_entries_survive_every_cut_and_a_restart_completes() {
    let seed = Seed::new(1);
    let mut lengths = Vec::new();
    let cuts = cut_at_every_poll(
        seed,
        |_| Rc::new(Storage::default()),
        |world, storage| world.spawn("recorder", record(world.handle(), storage.clone())),
        |polls, clock, storage: Rc<Storage>| {
            assert_eq!(Rc::strong_count(&storage), 1, "cut {polls}: a task is left");
            let left = storage.log.borrow().len() as u32;
            assert!(left >= *storage.durable.borrow(), "cut {polls}");
            lengths.push(left);

            let cut_ns = clock.now_ns();
            let mut world = World::on_clock(seed, clock);
            world.spawn("recorder", record(world.handle(), storage.clone()));
            world.run_until_idle().unwrap();
            let expected: Vec<u32> = (0..ENTRIES).collect();
            assert_eq!(*storage.log.borrow(), expected, "cut {polls}");
            assert!(world.now_ns() >= cut_ns, "cut {polls}");
        },
    );
    // The recorder takes one poll to start, and one for each of 20 samples and 20 stores. Power is cut
    // before each poll and after the last.
    assert_eq!(cuts, Ok(1 + 20 + 20 + 1));
    let mut all = lengths.clone();
    all.dedup();
    assert_eq!(
        all,
        (0..=ENTRIES).collect::<Vec<_>>(),
        "no cut left this state"
    );
}

/// A value that records when it is dropped.
struct Owned(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[test]
fn a_cut_drops_tasks_in_the_order_of_spawning_and_accepts_no_new_ones() {
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let world = World::new(Seed::new(1));
    for name in ["a", "b"] {
        let owned = Owned(name, dropped.clone());
        world.spawn(name, async move {
            let _owned = owned;
            std::future::pending::<()>().await;
        });
    }
    let handle = world.handle();
    drop(world);
    assert_eq!(*dropped.borrow(), ["a", "b"]);
    let owned = Owned("late", dropped.clone());
    handle.spawn("late", async move { drop(owned) });
    assert_eq!(*dropped.borrow(), ["a", "b", "late"]);
}
