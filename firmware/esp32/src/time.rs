//! The time from a server in the network of the router.

use crate::clock;
use crate::network::Stacks;
use crate::wifi::{NETWORK, Network};
use cardiograph_network::{SNTP_BYTES, SNTP_PORT, Settings, TimeError, TimeRequest};
use embassy_net::dns::DnsQueryType;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, Stack};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use esp_hal::rng::Rng;
use esp_println::println;

/// Time between requests after a reply, in s.
const INTERVAL_S: u64 = 3600;
/// First time between requests without a reply, in s; it doubles up to [`INTERVAL_S`].
const RETRY_S: u64 = 16;
/// Time for a reply. The codec accepts one within 2 s.
const REPLY: Duration = Duration::from_secs(3);

/// Reason why the time is unknown.
enum Failure {
    NotFound,
    NoReply,
    Refused(TimeError),
}

/// Asks the time server of the settings, as long as the router's network is in use.
#[embassy_executor::task]
pub async fn keep(stacks: Stacks, settings: &'static Settings) {
    let Some(server) = settings.time_server.as_deref() else {
        println!("no time server in the settings: files have no date");
        return;
    };
    let mut network = NETWORK.receiver().expect("one receiver for each task");
    let mut pause_s = RETRY_S;
    loop {
        network.get_and(|network| *network == Network::Router).await;
        stacks.router.wait_config_up().await;
        match ask(stacks.router, server).await {
            Ok(unix_ms) => {
                clock::set_unix_ms(unix_ms);
                pause_s = INTERVAL_S;
            }
            Err(failure) => {
                match failure {
                    Failure::NotFound => println!("{server}: no address; check time-server"),
                    Failure::NoReply => println!("{server}: no reply within {} s", REPLY.as_secs()),
                    Failure::Refused(error) => println!("{server}: {error}"),
                }
                pause_s = match failure {
                    Failure::Refused(TimeError::Refused(_)) => INTERVAL_S,
                    _ => (2 * pause_s).min(INTERVAL_S),
                };
            }
        }
        Timer::after_secs(pause_s).await;
    }
}

async fn ask(stack: Stack<'static>, server: &str) -> Result<u64, Failure> {
    let found = stack.dns_query(server, DnsQueryType::A).await;
    let address = found.ok().and_then(|found| found.first().copied());
    let address = address.ok_or(Failure::NotFound)?;
    let reply = with_timeout(REPLY, exchange(stack, address)).await;
    reply.unwrap_or(Err(Failure::NoReply))
}

async fn exchange(stack: Stack<'static>, address: IpAddress) -> Result<u64, Failure> {
    let (mut received, mut sent) = ([PacketMetadata::EMPTY; 2], [PacketMetadata::EMPTY; 1]);
    let (mut receive, mut send) = ([0; 2 * SNTP_BYTES], [0; SNTP_BYTES]);
    let mut socket = UdpSocket::new(stack, &mut received, &mut receive, &mut sent, &mut send);
    let random = Rng::new();
    // A random port, too, is harder to guess.
    let port = 49_152 | random.random() as u16;
    socket.bind(port).map_err(|_| Failure::NoReply)?;
    let nonce = u64::from(random.random()) << 32 | u64::from(random.random());
    let request = TimeRequest::new(nonce, Instant::now().as_millis());
    let sent = socket
        .send_to(&request.packet(), (address, SNTP_PORT))
        .await;
    sent.map_err(|_| Failure::NoReply)?;
    let mut packet = [0; SNTP_BYTES];
    loop {
        let Ok((bytes, _)) = socket.recv_from(&mut packet).await else {
            continue;
        };
        match request.unix_ms(&packet[..bytes], Instant::now().as_millis()) {
            Ok(unix_ms) => return Ok(unix_ms),
            // Not the reply, which may still come.
            Err(TimeError::NoReply | TimeError::OtherRequest) => continue,
            Err(error) => return Err(Failure::Refused(error)),
        }
    }
}
