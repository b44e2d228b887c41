//! The radio, as the link between router and access point demands it.

use crate::settings::ROUTER_CHANGED;
use cardiograph_network::{ADDRESS, Action, Event, JoinFailure, Link, Passphrase, Router, State};
use core::cell::Cell;
use critical_section::Mutex;
use embassy_futures::select::{Either, Either3, select, select3};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::watch::Watch;
use embassy_time::{Instant, Timer, with_deadline};
use esp_println::println;
use esp_radio::wifi::ap::AccessPointConfig;
use esp_radio::wifi::event::EventInfo;
use esp_radio::wifi::sta::StationConfig;
use esp_radio::wifi::{
    AuthenticationMethodConfig, Config, ConnectionError, DisconnectReason, WifiController,
    WifiError,
};

/// Tasks that follow the network: connections, responder, and the clock.
pub const FOLLOWERS: usize = crate::memory::CONNECTIONS + 2;

/// A network of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// None: the radio is busy.
    None,
    /// The router's network.
    Router,
    /// The board's own network.
    AccessPoint,
}

/// The reason why the router's network is not in use.
static FAILURE: Mutex<Cell<Option<JoinFailure>>> = Mutex::new(Cell::new(None));

/// Returns the reason why the router's network is not in use.
pub fn failure() -> Option<JoinFailure> {
    critical_section::with(|section| FAILURE.borrow(section).get())
}

/// The network in use.
pub static NETWORK: Watch<CriticalSectionRawMutex, Network, FOLLOWERS> = Watch::new();

/// The radio, and what it needs for either network.
pub struct Radio {
    pub controller: WifiController<'static>,
    pub router: Option<Router>,
    pub access_point_name: heapless::String<32>,
    pub passphrase: Passphrase,
}

/// Runs the radio.
#[embassy_executor::task]
pub async fn run(mut radio: Radio) {
    let mut link = Link::new(radio.router.is_some());
    let network = NETWORK.sender();
    let mut action = link.next(now_ms());
    loop {
        critical_section::with(|section| FAILURE.borrow(section).set(link.failure()));
        action = match action {
            Action::Join => {
                network.send(Network::None);
                radio.join(&mut link).await;
                link.next(now_ms())
            }
            Action::OpenAccessPoint => {
                radio.open(&mut link);
                link.next(now_ms())
            }
            Action::Wait(until_ms) => match link.state() {
                State::Joined => {
                    network.send(Network::Router);
                    radio.keep(&mut link).await;
                    link.next(now_ms())
                }
                State::AccessPoint { .. } => {
                    network.send(Network::AccessPoint);
                    radio.count_clients(&mut link).await
                }
                _ => {
                    network.send(Network::None);
                    let wait = select(wait_until(until_ms), ROUTER_CHANGED.wait());
                    if let Either::Second(router) = wait.await {
                        radio.change_router(&mut link, router);
                    }
                    link.next(now_ms())
                }
            },
        };
    }
}

impl Radio {
    /// Tries to join the router once, until the time for it is over.
    async fn join(&mut self, link: &mut Link) {
        let State::Joining { until_ms, .. } = link.state() else {
            return;
        };
        match with_deadline(Instant::from_millis(until_ms), self.try_to_join()).await {
            Ok(Ok(())) => {
                println!("joined the router's network");
                link.handle(Event::Joined, now_ms());
            }
            Ok(Err(error)) => {
                let failure = failure_of(&error);
                println!("{failure} ({error:?})");
                link.handle(Event::JoinFailed(failure), now_ms());
            }
            Err(_) => println!("{}", JoinFailure::NoAnswer),
        }
    }

    async fn try_to_join(&mut self) -> Result<(), ConnectionError> {
        if let Some(router) = &self.router {
            let authentication = match &router.password {
                Some(password) => {
                    AuthenticationMethodConfig::Wpa2Personal(password.as_str().try_into()?)
                }
                None => AuthenticationMethodConfig::Open,
            };
            let station = StationConfig::default()
                .with_ssid(router.ssid.as_str().try_into()?)
                .with_authentication(authentication);
            self.controller.set_config(&Config::Station(station))?;
            self.controller.connect_async().await?;
        }
        Ok(())
    }

    /// Opens the access point, and prints its password: whoever reads the serial port holds the board.
    fn open(&mut self, link: &mut Link) {
        let opened = self.try_to_open();
        let (name, passphrase) = (&self.access_point_name, &self.passphrase);
        match opened {
            Ok(()) => println!("access point {name}, password {passphrase}, http://{ADDRESS}"),
            Err(error) => {
                println!("the access point {name} cannot be opened: {error:?}");
                link.handle(Event::AccessPointClosed, now_ms());
            }
        }
    }

    fn try_to_open(&mut self) -> Result<(), WifiError> {
        let password = self.passphrase.as_str().try_into()?;
        let access_point = AccessPointConfig::default()
            .with_ssid(self.access_point_name.as_str().try_into()?)
            .with_authentication(AuthenticationMethodConfig::Wpa2Personal(password));
        self.controller
            .set_config(&Config::AccessPoint(access_point))
    }

    /// Waits until the connection to the router ends, or until the settings name another router.
    async fn keep(&mut self, link: &mut Link) {
        let end = self.controller.wait_for_disconnect_async();
        match select(end, ROUTER_CHANGED.wait()).await {
            Either::First(_) => {
                println!("the connection to the router ended");
                link.handle(Event::RouterLost, now_ms());
            }
            Either::Second(router) => self.change_router(link, router),
        }
    }

    fn change_router(&mut self, link: &mut Link, router: Option<Router>) {
        let has_router = router.is_some();
        self.router = router;
        link.handle(Event::RouterChanged { has_router }, now_ms());
    }

    /// Counts the clients of the access point until it has to close. Listens without a pause: a client whose
    /// departure is missed would keep the access point open for good.
    async fn count_clients(&mut self, link: &mut Link) -> Action {
        let Ok(mut events) = self.controller.subscribe() else {
            link.handle(Event::AccessPointClosed, now_ms());
            return link.next(now_ms());
        };
        // One bit for each number that the radio gives to a client.
        let mut clients = 0_u32;
        loop {
            let until_ms = match link.next(now_ms()) {
                Action::Wait(until_ms) => until_ms,
                action => return action,
            };
            let wait = select3(
                wait_until(until_ms),
                events.next_event_pure(),
                ROUTER_CHANGED.wait(),
            );
            match wait.await {
                Either3::Second(EventInfo::AccessPointStationConnected { aid, .. }) => {
                    clients |= 1 << (u32::from(aid) % u32::BITS);
                }
                Either3::Second(EventInfo::AccessPointStationDisconnected { aid, .. }) => {
                    clients &= !(1 << (u32::from(aid) % u32::BITS));
                }
                Either3::Third(router) => {
                    self.router = router;
                    let has_router = self.router.is_some();
                    link.handle(Event::RouterChanged { has_router }, now_ms());
                    continue;
                }
                _ => continue,
            }
            link.handle(Event::Clients(clients.count_ones() as u8), now_ms());
        }
    }
}

/// Returns the reason for a failed attempt. Routers report a wrong password as a handshake that is not completed.
fn failure_of(error: &ConnectionError) -> JoinFailure {
    let ConnectionError::Failed(info) = error else {
        return JoinFailure::Other;
    };
    match info.reason {
        DisconnectReason::FourWayHandshakeTimeout
        | DisconnectReason::HandshakeTimeout
        | DisconnectReason::MicFailure
        | DisconnectReason::AuthenticationFailed => JoinFailure::WrongPassword,
        DisconnectReason::NoAccessPointFound => JoinFailure::NotFound,
        DisconnectReason::Timeout | DisconnectReason::BeaconTimeout => JoinFailure::NoAnswer,
        _ => JoinFailure::Other,
    }
}

async fn wait_until(until_ms: Option<u64>) {
    match until_ms {
        Some(until_ms) => Timer::at(Instant::from_millis(until_ms)).await,
        None => core::future::pending().await,
    }
}

fn now_ms() -> u64 {
    Instant::now().as_millis()
}
