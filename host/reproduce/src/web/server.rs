//! The stock SDWebServer, as far as a download takes time: it blocks, and serves one client at a time.

use super::shared_card::SharedCard;
use super::{FILE_BYTES, FILE_NAME, Stage};
use cardiograph_sim_net::{Error, Listener, Socket};
use cardiograph_sim_world::Handle;
use cardiograph_store::{FatCard, FatFile, StoreError};
use cardiograph_workload::Store;
use embedded_io_async::{Read, Write};
use std::fmt;
use std::rc::Rc;

/// Processor time to send a piece, in µs: the wait for room in the socket (`select`), and the call of the
/// network stack, which runs in a task of its own. Fitted to the smallest piece size that the study measured.
const SEND_US: u64 = 520;
/// Processor time per byte, in ns: the Arduino core reads a file that it sends byte by byte, through the C
/// library and its lock, and copies each byte twice. Fitted to table 4.2, with the server in the main loop;
/// this is 160 cycles at 240 MHz.
const BYTE_NS: u64 = 665;

const HEAD_BYTES_MAX: usize = 1024;

/// The server's task.
pub(super) struct Server {
    pub(super) handle: Handle,
    pub(super) card: Rc<SharedCard<FatCard>>,
    pub(super) piece_bytes: usize,
    /// Buffer of the C library for each file, in bytes; `u64::MAX` if the library has no buffer.
    pub(super) buffer_bytes: u64,
    /// Time that the network stack takes from the server for each byte.
    pub(super) network_byte_ns: u64,
    /// Pause between two checks for a client.
    pub(super) turn_ns: u64,
}

impl Server {
    /// Checks for a client in each turn and serves it, until the client is done.
    ///
    /// # Errors
    /// A sentence, if the card or a connection fails.
    pub(super) async fn run(&self, mut listener: Listener, stage: &Stage) -> Result<(), String> {
        while !stage.is_done.get() {
            // With a timeout of 0, accepts only a client that is already waiting.
            if let Ok(mut socket) = self.handle.with_timeout(0, listener.accept()).await {
                self.respond(&mut socket, stage).await?;
            }
            self.handle.sleep_ns(self.turn_ns).await;
        }
        Ok(())
    }

    /// Sends the file, whatever the request, and waits for the client to close the connection.
    async fn respond(&self, socket: &mut Socket, stage: &Stage) -> Result<(), String> {
        read_head(socket).await.map_err(failed)?;
        let opened = self.card.call(|card| card.open(FILE_NAME, false)).await;
        let mut file = opened.map_err(failed)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {FILE_BYTES}\r\n\
             Connection: close\r\n\r\n"
        );
        self.send(socket, head.as_bytes()).await.map_err(failed)?;
        let mut piece = vec![0; self.piece_bytes];
        let mut offset_bytes = 0;
        loop {
            let read_bytes = self
                .read_piece(&mut file, offset_bytes, &mut piece, stage)
                .await;
            let read_bytes = read_bytes.map_err(failed)?;
            if read_bytes == 0 {
                break;
            }
            offset_bytes += read_bytes as u64;
            let sent = self.send(socket, &piece[..read_bytes]).await;
            sent.map_err(failed)?;
        }
        let closed = self.card.call(|card| card.close(file)).await;
        closed.map_err(failed)?;
        while socket.read(&mut [0; 64]).await.map_err(failed)? > 0 {}
        Ok(())
    }

    /// Reads the next piece, or what is left of the file if that is shorter; returns the number of bytes
    /// read.
    ///
    /// The C library fills its buffer with one call of the FAT library each time, so that the writer waits
    /// for at most one buffer, not for a whole piece.
    async fn read_piece(
        &self,
        file: &mut FatFile,
        offset_bytes: u64,
        piece: &mut [u8],
        stage: &Stage,
    ) -> Result<usize, StoreError> {
        let mut filled = 0;
        while filled < piece.len() {
            let at = offset_bytes + filled as u64;
            let to_buffer_end = (self.buffer_bytes - at % self.buffer_bytes) as usize;
            let end = piece.len().min(filled + to_buffer_end);
            let part = &mut piece[filled..end];
            let start_ns = self.handle.now_ns();
            let read = self.card.call(|card| card.read(file, at, part)).await?;
            let ns = self.handle.now_ns() - start_ns;
            stage.reads_ns.borrow_mut().push(ns);
            if read == 0 {
                break;
            }
            self.handle.sleep_ns(BYTE_NS * read as u64).await;
            filled += read;
        }
        Ok(filled)
    }

    /// Sends data, after the time that the processor needs for it.
    async fn send(&self, socket: &mut Socket, data: &[u8]) -> Result<(), Error> {
        let network_ns = self.network_byte_ns * data.len() as u64;
        self.handle.sleep_ns(SEND_US * 1000 + network_ns).await;
        socket.write_all(data).await
    }
}

fn failed(error: impl fmt::Display) -> String {
    format!("serving {FILE_NAME}: {error}")
}

/// Reads to the empty line that ends a request.
async fn read_head(socket: &mut Socket) -> Result<(), Error> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if socket.read(&mut byte).await? == 0 {
            break;
        }
        head.push(byte[0]);
    }
    Ok(())
}
