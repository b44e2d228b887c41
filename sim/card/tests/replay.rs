//! A record of what a controller was asked, asked again.

use cardiograph_sim_card::{Card, Controller, Profile, Seed};

#[test]
fn the_same_calls_on_the_same_card_take_the_same_time() {
    let profile = Profile::named("class10-16g").unwrap();
    let mut card = Card::new(&profile, Seed::new(3));
    card.controller_mut().record();
    let mut random = Seed::new(4).stream("places");
    let mut now_ns = 0;
    for _ in 0..2000 {
        let block = random.below(10_000);
        now_ns += 1000 + card.write(now_ns, block, &[1; 512]).unwrap();
        now_ns += card.read(now_ns, block + 8, true, &mut [0; 512]).unwrap();
    }
    card.erase(now_ns, 0, 1000).unwrap();
    let record = card.controller_mut().take_record();
    let mut again = Controller::new(&profile, Seed::new(3));
    for call in &record {
        assert_eq!(again.call(call.at_ns, call.ask), call.busy_ns);
    }
    assert_eq!(again.busy_ns(), card.controller().busy_ns());
    assert_eq!(again.erases(), card.controller().erases());
}
