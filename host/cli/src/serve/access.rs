//! Address, permissions and credentials of the server.

use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cardiograph_report::values::bytes;
use cardiograph_serve::{Listener, ServedCard, Settings};
#[cfg(target_os = "linux")]
use cardiograph_server::{Instrument, Storage};
use cardiograph_virtual::VirtualLogger;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Port if the address has none.
const PORT: u16 = 8080;

/// Options of commands that serve.
#[derive(clap::Args)]
pub struct AccessArgs {
    /// Address to listen on (IP address and port); port 0 selects a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Allow other computers to change files and to control the recorder
    #[arg(long)]
    pub write: bool,

    /// User name and password that every request needs; also allows what --write allows [default: none]
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,

    #[command(flatten)]
    pub public: PublicArgs,

    /// Space that uploads leave free for recorders and other programs [default: 64MiB, or an eighth of a small storage]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub keep_free: Option<u64>,
}

/// Options for names and proxies.
#[derive(clap::Args, Clone, Default)]
pub struct PublicArgs {
    /// Name by which clients know this server, in addition to its address and to the name of this computer; may be repeated.
    /// Clients can then only read unless --write or --auth is given [default: none]
    #[arg(long = "host", value_name = "NAME", value_parser = host_of_clients)]
    pub hosts: Vec<String>,

    /// IP address of a proxy whose X-Forwarded-Host and X-Forwarded-Proto, or Forwarded, are believed; may be repeated. Clients
    /// can then only read unless --write or --auth is given [default: none]
    #[arg(long = "trusted-proxy", value_name = "ADDR")]
    pub proxies: Vec<IpAddr>,
}

/// A bound socket, and the permissions of its clients.
pub struct Access {
    listener: Listener,
    address: SocketAddr,
    host_name: String,
    settings: Settings,
}

impl Access {
    /// Binds the address.
    pub fn new(args: &AccessArgs) -> Result<Access, Failure> {
        let listen = &args.listen;
        let auth = args.auth.as_deref();
        let address = parse(listen)?;
        if auth.is_some_and(|auth| auth.starts_with(':') || !auth.contains(':')) {
            return Err(Failure::new(
                "--auth: expected a user name, a colon and a password, such as ada:secret",
            ));
        }
        let listener = Listener::bind(address).map_err(|error| {
            Failure::new(format!(
                "{listen}: {error}; use an address of this computer and a free port"
            ))
        })?;
        let address = listener.address().map_err(Failure::new)?;
        let host_name = host_name();
        let PublicArgs { hosts, proxies } = &args.public;
        // Clients of a proxy on this computer seem to be on this computer.
        let is_private = address.ip().is_loopback() && hosts.is_empty() && proxies.is_empty();
        let mut names = vec![host_name.clone(), format!("{host_name}.local")];
        names.extend_from_slice(hosts);
        let settings = Settings {
            is_read_only: !is_private && !args.write && auth.is_none(),
            basic_auth: auth.map(|auth| BASE64_STANDARD.encode(auth)),
            names,
            proxies: proxies.clone(),
            keep_free_bytes: args.keep_free,
        };
        Ok(Access {
            listener,
            address,
            host_name,
            settings,
        })
    }

    /// Returns the address for browsers, and the permission of other computers.
    pub fn urls(&self) -> String {
        let port = self.address.port();
        let url = match self.address.ip().is_unspecified() {
            true => format!("http://{}:{port}/", self.host_name),
            false => format!("http://{}/", self.address),
        };
        match self.settings.is_read_only {
            true => format!("{url} (read-only; --auth allows changes)"),
            false => url,
        }
    }

    /// Lets even this computer make changes only with `may_write` or credentials.
    pub fn protect(&mut self, may_write: bool) {
        self.settings.is_read_only |= !may_write && self.settings.basic_auth.is_none();
    }

    /// Returns true if nobody may make changes.
    pub fn is_read_only(&self) -> bool {
        self.settings.is_read_only
    }

    /// Serves a card until `is_stopped` returns true.
    pub fn serve_card(
        self,
        card: ServedCard,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let served = self.listener.serve_card(card, &self.settings, is_stopped);
        served.map_err(Failure::new)
    }

    /// Runs a virtual data logger until `is_stopped` returns true.
    pub fn serve_virtual(
        self,
        logger: VirtualLogger,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let served = logger.serve(self.listener, &self.settings, is_stopped);
        served.map_err(Failure::new)
    }

    /// Runs the demo of a virtual data logger until `is_stopped` returns true.
    pub fn demonstrate(
        self,
        logger: VirtualLogger,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let served = logger.demonstrate(self.listener, &self.settings, is_stopped);
        served.map_err(Failure::new)
    }

    /// Serves until `is_stopped` returns true.
    #[cfg(target_os = "linux")]
    pub fn serve<S: Storage, I: Instrument>(
        self,
        storage: &S,
        instrument: &I,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let served = self
            .listener
            .serve(storage, instrument, &self.settings, is_stopped);
        served.map_err(|error| Failure::new(format!("{}: {error}", self.address)))
    }
}

/// Parses an address with or without a port, or a port of this computer only.
fn parse(listen: &str) -> Result<SocketAddr, Failure> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let name = listen.replace("localhost", "127.0.0.1");
    if let Ok(address) = name.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    match name.trim_start_matches(':').parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(loopback, port)),
        Err(_) => Err(Failure::new(format!(
            "{listen}: expected an IP address and a port, such as 127.0.0.1:8080 or 0.0.0.0:8080"
        ))),
    }
}

/// Parses a host name, in lower case and without a port.
fn host_of_clients(text: &str) -> Result<String, String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    match !text.is_empty() && text.chars().all(is_part) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("use a name without scheme, port and path, such as logger.example.org".into()),
    }
}

/// Returns the name of this computer in lower case, without a domain.
fn host_name() -> String {
    let name = cardiograph_system::computer().name.to_lowercase();
    name.split('.').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_defaults() {
        let parsed = |text| parse(text).ok().map(|address| address.to_string());
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("[::1]:81", "[::1]:81"),
            ("::", "[::]:8080"),
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(address), "{text}");
        }
        for text in ["", "example", "127.0.0.1:70000", "1.2.3"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
