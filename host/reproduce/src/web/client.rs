//! The client: downloads a file, checks it and measures the time.

use super::{FILE_BYTES, FILE_NAME, byte_at};
use cardiograph_sim_net::Host;
use cardiograph_sim_world::Handle;
use cardiograph_workload::{Operation, OperationKind};
use embedded_io_async::{Read, Write};
use std::fmt;
use std::net::SocketAddrV4;

/// Downloads the file; the time is that from the connection to the last byte.
///
/// # Errors
/// A sentence, if the connection fails, or the data received differ from the file on the card.
pub(super) async fn download(
    clock: &Handle,
    host: &Host,
    server: SocketAddrV4,
) -> Result<Operation, String> {
    let start_ns = clock.now_ns();
    let mut socket = host.connect(server).await.map_err(failed)?;
    let request = format!("GET /{FILE_NAME} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let sent = socket.write_all(request.as_bytes()).await;
    sent.map_err(failed)?;

    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let body_at = loop {
        let read = socket.read(&mut buffer).await.map_err(failed)?;
        received.extend_from_slice(&buffer[..read]);
        let end = received.windows(4).position(|four| four == b"\r\n\r\n");
        match end {
            Some(end) => break end + 4,
            None if read == 0 => return Err(failed("the response has no end of its head")),
            None => {}
        }
    };
    let expected_bytes = body_at + FILE_BYTES as usize;
    while received.len() < expected_bytes {
        match socket.read(&mut buffer).await.map_err(failed)? {
            0 => return Err(failed("the connection ended early")),
            read => received.extend_from_slice(&buffer[..read]),
        }
    }
    let body = received[body_at..].iter().copied();
    if !body.eq((0..FILE_BYTES).map(byte_at)) {
        return Err(failed("data received differs from data written"));
    }
    Ok(Operation {
        kind: OperationKind::Read,
        file: 0,
        offset_bytes: 0,
        length_bytes: FILE_BYTES,
        start_ns,
        end_ns: clock.now_ns(),
    })
}

fn failed(error: impl fmt::Display) -> String {
    format!("downloading {FILE_NAME}: {error}")
}
