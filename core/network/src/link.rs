//! Decides between the router and the logger's own access point.
//!
//! ```text
//!            ┌─ no router in the settings ──────────────────────┐
//!   Start ───┤                                                  │
//!            └─ router ──> Joining ── no success in 30 s ──> AccessPoint
//!                           │ ^  ^                            │   │
//!                    Joined │  │  └── no client, retry due ────┘   │
//!                           v  │ RouterLost                       │ AccessPointClosed
//!                          Joined                                 v
//!                                            Start <── 8 s ── Resting
//! ```
//!
//! Settings that were read again and name another router restart the search for it: from `Joining` and `Joined` in `Start`,
//! from `AccessPoint` as soon as no client is connected.
//!
//! In `Joining`, attempts are separated by pauses of 1, 2, 4 and then 8 s. In `AccessPoint`, the router is tried again
//! after 1, 2, 4, 8 and then 16 min, but never while a client is connected and not in the minute after the last one
//! left. Every join resets both. The access point is closed during the attempts, because its channel would have to
//! follow that of the router.
//!
//! The link keeps the reason for the last failure until it joins the router, so that the server can show it in the access point.
//!
//! The machine neither waits nor reads a clock: the caller asks for the next [`Action`], carries it out, and reports
//! each [`Event`]. Events that do not fit the state are late ones, and are ignored.

use crate::settings::FILE_NAME;
use core::fmt;

/// Time for joining the router, in ms, before the access point opens.
pub(crate) const JOIN_MS: u64 = 30_000;
/// First and longest pause between attempts, in ms.
pub(crate) const PAUSE_MS: [u64; 2] = [1_000, 8_000];
/// First and longest time of the access point before the router is tried again, in ms.
pub(crate) const RETRY_MS: [u64; 2] = [60_000, 16 * 60_000];
/// Time after the last client left in which it may come back, in ms.
pub(crate) const CLIENT_MS: u64 = 60_000;

/// Reason why the router could not be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinFailure {
    /// The router refused the password.
    WrongPassword,
    /// No network of this name is in range.
    NotFound,
    /// The router did not answer in time.
    NoAnswer,
    /// The radio reported another reason.
    Other,
}

/// A sentence for a serial port or a page.
impl fmt::Display for JoinFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            JoinFailure::WrongPassword => write!(
                f,
                "the router refuses the password; correct it in {FILE_NAME} on the card"
            ),
            JoinFailure::NotFound => write!(
                f,
                "the router's network is not in range; check its name in {FILE_NAME}, and the router"
            ),
            JoinFailure::NoAnswer => f.write_str("the router does not answer; check it"),
            JoinFailure::Other => {
                f.write_str("the router's network cannot be joined; check the router")
            }
        }
    }
}

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has been done yet.
    Start,
    /// Joining the router.
    Joining {
        /// Time at which the access point opens instead, in ms.
        until_ms: u64,
        /// The current attempt.
        attempt: Attempt,
        /// Pause after the attempt, if it fails, in ms.
        pause_ms: u64,
    },
    /// Connected to the router.
    Joined,
    /// The own access point is open.
    AccessPoint {
        /// Number of connected clients.
        clients: u8,
        /// Time at which the router is tried again, in ms; `None` without a router.
        retry_ms: Option<u64>,
    },
    /// The access point did not open.
    Resting {
        /// Time of the next start, in ms.
        until_ms: u64,
    },
}

/// An attempt to join the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The radio is joining.
    Running,
    /// The next attempt begins at this time, in ms.
    Pausing(u64),
}

/// Next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Close the access point if it is open, and try to join the router once. Report `Joined` or `JoinFailed`.
    Join,
    /// Abandon an attempt that is running, and open the access point.
    OpenAccessPoint,
    /// Wait for an event or for this time, in ms.
    Wait(Option<u64>),
}

/// Report of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The router accepted the device.
    Joined,
    /// The attempt failed.
    JoinFailed(JoinFailure),
    /// The connection to the router ended.
    RouterLost,
    /// Number of clients of the access point.
    Clients(u8),
    /// The access point did not open, or closed.
    AccessPointClosed,
    /// The settings were read again, and name another router or password, or no router any more.
    RouterChanged {
        /// False if they name no router.
        has_router: bool,
    },
}

/// Chooses between the router and the access point.
#[derive(Clone, Debug)]
pub struct Link {
    has_router: bool,
    state: State,
    /// Time of the access point before the next retry, in ms.
    interval_ms: u64,
    /// Reason of the last failure, until the router is joined.
    failure: Option<JoinFailure>,
}

impl Link {
    /// Creates a link; `has_router` is false if the settings name no router.
    pub const fn new(has_router: bool) -> Link {
        Link {
            has_router,
            state: State::Start,
            interval_ms: RETRY_MS[0],
            failure: None,
        }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the reason why the router's network is not in use, if an attempt to join it has failed.
    pub fn failure(&self) -> Option<JoinFailure> {
        self.failure
    }

    /// Returns the next action, which the caller carries out once.
    pub fn next(&mut self, now_ms: u64) -> Action {
        match self.state {
            State::Start => match self.has_router {
                true => self.join(now_ms),
                false => self.open(now_ms),
            },
            State::Joining {
                until_ms, attempt, ..
            } if now_ms >= until_ms => {
                if attempt == Attempt::Running {
                    self.failure.get_or_insert(JoinFailure::NoAnswer);
                }
                self.open(now_ms)
            }
            State::Joining {
                until_ms,
                attempt,
                pause_ms,
            } => match attempt {
                Attempt::Running => Action::Wait(Some(until_ms)),
                Attempt::Pausing(end_ms) if now_ms < end_ms => {
                    Action::Wait(Some(end_ms.min(until_ms)))
                }
                Attempt::Pausing(_) => {
                    self.state = State::Joining {
                        until_ms,
                        attempt: Attempt::Running,
                        pause_ms,
                    };
                    Action::Join
                }
            },
            State::Joined => Action::Wait(None),
            State::AccessPoint {
                clients: 0,
                retry_ms: Some(retry_ms),
            } => match now_ms >= retry_ms {
                true => self.join(now_ms),
                false => Action::Wait(Some(retry_ms)),
            },
            State::AccessPoint { .. } => Action::Wait(None),
            State::Resting { until_ms } if now_ms < until_ms => Action::Wait(Some(until_ms)),
            State::Resting { .. } => {
                self.state = State::Start;
                self.next(now_ms)
            }
        }
    }

    /// Takes note of an event.
    pub fn handle(&mut self, event: Event, now_ms: u64) {
        match (self.state, event) {
            (_, Event::RouterChanged { has_router }) => self.change_router(has_router, now_ms),
            (State::Joining { .. }, Event::Joined) => {
                self.state = State::Joined;
                self.interval_ms = RETRY_MS[0];
                self.failure = None;
            }
            (
                State::Joining {
                    until_ms,
                    attempt: Attempt::Running,
                    pause_ms,
                },
                Event::JoinFailed(_) | Event::RouterLost,
            ) => {
                if let Event::JoinFailed(failure) = event {
                    self.failure = Some(failure);
                }
                self.state = State::Joining {
                    until_ms,
                    attempt: Attempt::Pausing(now_ms + pause_ms),
                    pause_ms: (2 * pause_ms).min(PAUSE_MS[1]),
                };
            }
            (State::Joined, Event::RouterLost) => self.state = State::Start,
            (State::AccessPoint { clients, retry_ms }, Event::Clients(now)) => {
                let was_last = clients > 0 && now == 0;
                let earliest_ms = if was_last { now_ms + CLIENT_MS } else { 0 };
                self.state = State::AccessPoint {
                    clients: now,
                    retry_ms: retry_ms.map(|retry_ms| retry_ms.max(earliest_ms)),
                };
            }
            (State::AccessPoint { .. }, Event::AccessPointClosed) => {
                self.state = State::Resting {
                    until_ms: now_ms + PAUSE_MS[1],
                };
            }
            _ => (),
        }
    }

    fn change_router(&mut self, has_router: bool, now_ms: u64) {
        self.has_router = has_router;
        self.failure = None;
        self.interval_ms = RETRY_MS[0];
        self.state = match self.state {
            State::Joining { .. } | State::Joined => State::Start,
            State::AccessPoint { clients, .. } => State::AccessPoint {
                clients,
                retry_ms: has_router.then_some(now_ms),
            },
            state => state,
        };
    }

    fn join(&mut self, now_ms: u64) -> Action {
        self.state = State::Joining {
            until_ms: now_ms + JOIN_MS,
            attempt: Attempt::Running,
            pause_ms: PAUSE_MS[0],
        };
        Action::Join
    }

    fn open(&mut self, now_ms: u64) -> Action {
        self.state = State::AccessPoint {
            clients: 0,
            retry_ms: self.has_router.then_some(now_ms + self.interval_ms),
        };
        self.interval_ms = (2 * self.interval_ms).min(RETRY_MS[1]);
        Action::OpenAccessPoint
    }
}
