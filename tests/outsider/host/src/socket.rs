//! A socket in memory: one request, and everything that the server answers.

use embedded_io_async::{ErrorType, Read, Write};
use std::convert::Infallible;

pub struct Socket {
    pub request: &'static [u8],
    pub response: Vec<u8>,
}

impl ErrorType for Socket {
    type Error = Infallible;
}

impl Read for Socket {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        self.request
            .read(bytes)
            .await
            .map_err(|error| match error {})
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.response.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
