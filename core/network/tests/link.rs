//! The link against a simulated radio and router, in virtual time.

use cardiograph_network::{Action, Event, JoinFailure, Link, State};
use proptest::prelude::*;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
/// Time that the simulated radio takes for an attempt.
const ATTEMPT_MS: u64 = 3 * SECOND_MS;

/// A radio, and a router that is up at some times.
struct Radio {
    link: Link,
    now_ms: u64,
    is_up: fn(u64) -> bool,
    /// Reason why a router that is not up cannot be joined.
    failure: JoinFailure,
    attempt_end_ms: Option<u64>,
    joins_ms: Vec<u64>,
    opens_ms: Vec<u64>,
}

impl Radio {
    fn new(has_router: bool, is_up: fn(u64) -> bool) -> Radio {
        Radio {
            link: Link::new(has_router),
            now_ms: 0,
            is_up,
            failure: JoinFailure::NotFound,
            attempt_end_ms: None,
            joins_ms: Vec::new(),
            opens_ms: Vec::new(),
        }
    }

    fn is_router_up(&self) -> bool {
        (self.is_up)(self.now_ms)
    }

    fn run_until(&mut self, end_ms: u64) {
        while self.now_ms < end_ms {
            self.act();
            self.now_ms += 100;
            self.report();
        }
    }

    fn act(&mut self) {
        loop {
            match self.link.next(self.now_ms) {
                Action::Join => {
                    self.attempt_end_ms = Some(self.now_ms + ATTEMPT_MS);
                    self.joins_ms.push(self.now_ms);
                }
                Action::OpenAccessPoint => {
                    self.attempt_end_ms = None;
                    self.opens_ms.push(self.now_ms);
                }
                Action::Wait(until_ms) => {
                    assert!(until_ms.is_none_or(|until_ms| until_ms > self.now_ms));
                    return;
                }
            }
        }
    }

    fn report(&mut self) {
        if self
            .attempt_end_ms
            .is_some_and(|end_ms| self.now_ms >= end_ms)
        {
            self.attempt_end_ms = None;
            let event = match self.is_router_up() {
                true => Event::Joined,
                false => Event::JoinFailed(self.failure),
            };
            self.link.handle(event, self.now_ms);
        }
        if self.link.state() == State::Joined && !self.is_router_up() {
            self.link.handle(Event::RouterLost, self.now_ms);
        }
    }

    fn clients(&mut self, number: u8) {
        self.link.handle(Event::Clients(number), self.now_ms);
    }
}

#[test]
fn without_a_router_the_access_point_stays_open() {
    let mut radio = Radio::new(false, |_| false);
    radio.run_until(24 * 60 * MINUTE_MS);
    assert_eq!((radio.opens_ms, radio.joins_ms), (vec![0], Vec::new()));
}

#[test]
fn joins_a_router_that_is_up_and_stays() {
    let mut radio = Radio::new(true, |_| true);
    radio.run_until(60 * MINUTE_MS);
    assert_eq!(radio.joins_ms, [0]);
    assert_eq!(radio.link.state(), State::Joined);
}

#[test]
fn settings_that_name_a_router_later_are_used_once_no_client_is_connected() {
    for clients in [0, 1] {
        let mut radio = Radio::new(false, |_| true);
        radio.run_until(10 * MINUTE_MS);
        radio.clients(clients);
        radio
            .link
            .handle(Event::RouterChanged { has_router: true }, radio.now_ms);
        radio.run_until(20 * MINUTE_MS);
        if clients > 0 {
            assert_eq!(radio.joins_ms, []);
            radio.clients(0);
        }
        radio.run_until(30 * MINUTE_MS);
        // After the last client, the access point stays open for a minute.
        let join_ms = [10 * MINUTE_MS, 21 * MINUTE_MS][usize::from(clients)];
        assert_eq!(radio.joins_ms, [join_ms]);
        assert_eq!(radio.link.state(), State::Joined);
    }
}

#[test]
fn a_corrected_password_is_used_at_once_and_its_failure_forgotten() {
    let mut radio = Radio::new(true, |now_ms| now_ms > 10 * MINUTE_MS);
    radio.failure = JoinFailure::WrongPassword;
    radio.run_until(10 * MINUTE_MS);
    assert_eq!(radio.link.failure(), Some(JoinFailure::WrongPassword));
    radio.joins_ms.clear();
    radio
        .link
        .handle(Event::RouterChanged { has_router: true }, radio.now_ms);
    assert_eq!(radio.link.failure(), None);
    radio.run_until(11 * MINUTE_MS);
    assert_eq!(radio.joins_ms, [10 * MINUTE_MS]);
    assert_eq!(radio.link.state(), State::Joined);
}

#[test]
fn another_router_replaces_the_one_in_use_and_no_router_opens_the_access_point() {
    let mut radio = Radio::new(true, |_| true);
    radio.run_until(MINUTE_MS);
    radio
        .link
        .handle(Event::RouterChanged { has_router: true }, radio.now_ms);
    radio.run_until(2 * MINUTE_MS);
    assert_eq!(radio.joins_ms, [0, MINUTE_MS]);
    radio
        .link
        .handle(Event::RouterChanged { has_router: false }, radio.now_ms);
    radio.run_until(60 * MINUTE_MS);
    assert_eq!(
        (radio.joins_ms.len(), &radio.opens_ms[..]),
        (2, &[2 * MINUTE_MS][..])
    );
}

#[test]
fn pauses_between_attempts_grow_until_the_access_point_opens() {
    let mut radio = Radio::new(true, |_| false);
    radio.run_until(MINUTE_MS);
    // Attempts take 3 s; the pauses between them 1, 2, 4 and 8 s.
    assert_eq!(radio.joins_ms, [0, 4000, 9000, 16_000, 27_000]);
    assert_eq!(radio.opens_ms, [30_000]);
}

#[test]
fn returns_to_the_router_more_and_more_rarely() {
    let mut radio = Radio::new(true, |_| false);
    radio.run_until(60 * MINUTE_MS);
    let gaps: Vec<_> = radio
        .opens_ms
        .windows(2)
        .map(|open| open[1] - open[0])
        .collect();
    let expected = [1, 2, 4, 8, 16, 16].map(|minutes| minutes * MINUTE_MS + 30 * SECOND_MS);
    assert_eq!(gaps, expected);
}

#[test]
fn a_router_that_comes_back_is_joined() {
    let mut radio = Radio::new(true, |now_ms| {
        !(MINUTE_MS..10 * MINUTE_MS).contains(&now_ms)
    });
    radio.run_until(9 * MINUTE_MS);
    assert!(matches!(radio.link.state(), State::AccessPoint { .. }));
    assert_eq!(radio.opens_ms[0], MINUTE_MS + 30 * SECOND_MS);
    radio.run_until(30 * MINUTE_MS);
    assert_eq!(radio.link.state(), State::Joined);
}

#[test]
fn a_client_keeps_the_access_point_open() {
    let mut radio = Radio::new(true, |now_ms| now_ms >= MINUTE_MS);
    radio.run_until(40 * SECOND_MS);
    radio.clients(2);
    radio.run_until(5 * 60 * MINUTE_MS);
    radio.clients(1);
    radio.run_until(10 * 60 * MINUTE_MS);
    assert!(matches!(
        radio.link.state(),
        State::AccessPoint { clients: 1, .. }
    ));
    radio.clients(0);
    let left_ms = radio.now_ms;
    radio.run_until(left_ms + 2 * MINUTE_MS);
    assert_eq!(radio.link.state(), State::Joined);
    assert_eq!(radio.joins_ms.last(), Some(&(left_ms + MINUTE_MS)));
}

/// The access point, which stays reachable, shows the reason; once the router accepts the password, it is joined.
#[test]
fn a_refused_password_is_shown_until_the_router_is_joined() {
    let mut radio = Radio::new(true, |now_ms| now_ms >= 100 * MINUTE_MS);
    radio.failure = JoinFailure::WrongPassword;
    assert_eq!(radio.link.failure(), None);
    radio.run_until(31 * SECOND_MS);
    assert!(matches!(radio.link.state(), State::AccessPoint { .. }));
    for minute in 1..100 {
        radio.run_until(minute * MINUTE_MS);
        assert_eq!(radio.link.failure(), Some(JoinFailure::WrongPassword));
    }
    let text = JoinFailure::WrongPassword.to_string();
    assert!(
        text.contains("password") && text.contains("CARDIOGR.TXT"),
        "{text}"
    );
    // The longest time between two attempts is 16 min.
    radio.run_until(118 * MINUTE_MS);
    assert_eq!(radio.link.state(), State::Joined);
    assert_eq!(radio.link.failure(), None);
}

#[test]
fn the_reason_of_the_latest_attempt_counts() {
    let mut link = Link::new(true);
    assert_eq!(link.next(0), Action::Join);
    link.handle(Event::JoinFailed(JoinFailure::WrongPassword), 100);
    assert_eq!(link.next(1100), Action::Join);
    link.handle(Event::JoinFailed(JoinFailure::NotFound), 1200);
    assert_eq!(link.failure(), Some(JoinFailure::NotFound));
    // A connection that ends later is no failure to join.
    assert_eq!(link.next(3200), Action::Join);
    link.handle(Event::Joined, 3300);
    link.handle(Event::RouterLost, 3400);
    assert_eq!(link.failure(), None);
}

#[test]
fn an_attempt_without_an_answer_ends() {
    let mut link = Link::new(true);
    assert_eq!(link.next(0), Action::Join);
    assert_eq!(link.next(1), Action::Wait(Some(30_000)));
    assert_eq!(link.next(30_000), Action::OpenAccessPoint);
    assert_eq!(link.failure(), Some(JoinFailure::NoAnswer));
    // The radio answers late.
    link.handle(Event::Joined, 30_001);
    link.handle(Event::RouterLost, 30_002);
    assert!(matches!(
        link.state(),
        State::AccessPoint { clients: 0, .. }
    ));
}

#[test]
fn an_access_point_that_does_not_open_is_tried_again() {
    let mut link = Link::new(false);
    assert_eq!(link.next(0), Action::OpenAccessPoint);
    link.handle(Event::AccessPointClosed, 10);
    assert_eq!(link.next(10), Action::Wait(Some(8010)));
    assert_eq!(link.next(8010), Action::OpenAccessPoint);
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Joined),
        Just(Event::JoinFailed(JoinFailure::WrongPassword)),
        Just(Event::JoinFailed(JoinFailure::Other)),
        Just(Event::RouterLost),
        Just(Event::AccessPointClosed),
        (0..4_u8).prop_map(Event::Clients),
        any::<bool>().prop_map(|has_router| Event::RouterChanged { has_router }),
    ]
}

proptest! {
    /// Any events at any times: the radio is never taken from a client, the device is always reachable after 30 s of
    /// vain attempts, and waits end.
    #[test]
    fn any_events_in_any_state(
        has_router: bool,
        steps in proptest::collection::vec((proptest::option::of(event()), 0..40_000_u64), 1..200),
    ) {
        let (mut link, mut has_router) = (Link::new(has_router), has_router);
        let (mut now_ms, mut clients, mut is_open, mut since_ms) = (0, 0, false, 0);
        for (event, pause_ms) in steps {
            loop {
                match link.next(now_ms) {
                    Action::Join => {
                        prop_assert!(has_router);
                        prop_assert!(!is_open || clients == 0, "a client is disconnected");
                        if is_open {
                            since_ms = now_ms;
                        }
                        is_open = false;
                    }
                    Action::OpenAccessPoint => {
                        (is_open, clients) = (true, 0);
                    }
                    Action::Wait(until_ms) => {
                        prop_assert!(until_ms.is_none_or(|until_ms| until_ms > now_ms));
                        break;
                    }
                }
            }
            match link.state() {
                State::Joining { .. } => prop_assert!(now_ms - since_ms < 30_000),
                State::Joined | State::Resting { .. } => (),
                State::AccessPoint { .. } => prop_assert!(is_open),
                State::Start => prop_assert!(false, "an action left the state Start"),
            }
            now_ms += pause_ms;
            if let Some(event) = event {
                link.handle(event, now_ms);
                match event {
                    Event::Clients(number) if is_open => clients = number,
                    Event::AccessPointClosed if is_open => (is_open, clients) = (false, 0),
                    Event::RouterChanged { has_router: now } => has_router = now,
                    _ => (),
                }
            }
            if matches!(link.state(), State::Joined | State::Resting { .. } | State::Start) {
                since_ms = now_ms;
            }
            if let State::Resting { until_ms } = link.state() {
                // The next start follows when the pause is over.
                since_ms = until_ms.max(now_ms);
                now_ms = since_ms;
            }
        }
    }
}
