//! Replays the trace of a controller.

use cardiograph_sim_card::{Card, Controller, Profile, Seed};

#[test]
fn replaying_a_trace_on_the_same_card_takes_the_same_time() {
    let profile = Profile::named("class10-16g").unwrap();
    let mut card = Card::new(&profile, Seed::new(3));
    card.controller_mut().start_trace();
    let mut random = Seed::new(4).stream("places");
    let mut now_ns = 0;
    for _ in 0..2000 {
        let block = random.below(10_000);
        now_ns += 1000 + card.write(now_ns, block, &[1; 512]).unwrap();
        now_ns += card.read(now_ns, block + 8, true, &mut [0; 512]).unwrap();
    }
    card.erase(now_ns, 0, 1000).unwrap();
    let trace = card.controller_mut().take_trace();
    let mut again = Controller::new(&profile, Seed::new(3));
    for step in &trace {
        assert_eq!(
            again.run_operation(step.start_ns, step.operation),
            step.busy_ns
        );
    }
    assert_eq!(again.busy_ns(), card.controller().busy_ns());
    assert_eq!(again.erases(), card.controller().erases());
}
