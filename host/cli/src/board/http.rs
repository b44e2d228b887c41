//! `cardiograph bench board:http://ADDRESS`: starts a test on a board's server, which responds with the trace.

use super::{End, Received, TEXT_BYTES_MAX, Test, failure};
use crate::bench::Args;
use crate::failure::Failure;
use crate::get::client::{Client, PATIENCE};
use crate::get::url::Url;
use crate::interrupt::Interrupt;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which signals and the end of the time are noticed.
const POLL: Duration = Duration::from_millis(100);

/// Starts the test, and receives its trace.
pub fn receive(
    address: &str,
    args: &Args,
    test: &Test,
    received: &mut Received,
    limit: Option<Instant>,
    interrupt: &Interrupt,
) -> Result<End, Failure> {
    let url = Url::parse(address).map_err(Failure::new)?;
    if url.path() != "/" {
        return Err(failure(
            address,
            "has a path; name the server alone, such as board:http://192.168.4.1",
        ));
    }
    if args.baud.is_some() {
        return Err(Failure::new(
            "--baud applies to serial ports only; remove it",
        ));
    }
    let client = Client::new(url.origin(), args.auth.as_deref(), PATIENCE, interrupt);
    let request = url.at("/bench").with(&test.arguments());
    let response = client.post(&request);
    let response = response.map_err(|error| failure(address, &error.to_string()))?;
    let pieces = read_in_background(response.into_body().into_reader());
    collect(&pieces, received, limit, interrupt).map_err(|why| failure(address, &why))
}

/// Reads on a thread of its own, so that the command can end while the board is silent.
fn read_in_background(mut body: impl Read + Send + 'static) -> Receiver<Result<Vec<u8>, String>> {
    let (sender, pieces) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let piece = match body.read(&mut buffer) {
                Ok(0) => return,
                Ok(bytes) => Ok(buffer[..bytes].to_vec()),
                Err(error) => Err(error.to_string()),
            };
            let is_last = piece.is_err();
            if sender.send(piece).is_err() || is_last {
                return;
            }
        }
    });
    pieces
}

fn collect(
    pieces: &Receiver<Result<Vec<u8>, String>>,
    received: &mut Received,
    limit: Option<Instant>,
    interrupt: &Interrupt,
) -> Result<End, String> {
    loop {
        match pieces.recv_timeout(POLL) {
            Ok(Ok(piece)) if received.add(&piece) => return Ok(End::Complete),
            Ok(Ok(_)) | Err(RecvTimeoutError::Timeout) => (),
            Ok(Err(error)) => {
                return Err(format!(
                    "the connection was lost after {} writes ({error}); check the board and the network, and measure again",
                    received.writes
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(format!(
                    "the response ended after {} writes, without the end of a trace; measure again",
                    received.writes
                ));
            }
        }
        received.show();
        if interrupt.is_raised() {
            return Ok(End::Signal);
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            return match received.writes {
                0 => Err("nothing was measured; allow more time with --for".to_string()),
                _ => Ok(End::Time),
            };
        }
        if received.text.len() > TEXT_BYTES_MAX {
            return Err("the board sent more than 256 MiB; make the test shorter".to_string());
        }
    }
}
