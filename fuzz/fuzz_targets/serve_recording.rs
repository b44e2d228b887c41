//! Arbitrary bytes as a recording: rows, slices and samples from it end without a panic.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_server::{Buffers, RecordingPath, Server};
use memory::Memory;
use memory::client::{CONFIG, responses};
use memory::recorder::Recorder;
use memory::socket::{Clock, End, Socket};

#[path = "../../core/server/tests/memory/mod.rs"]
mod memory;

mod crc {
    include!("../crc32.rs");
}

const PATH: &str = "/LOG00012.BIN";

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let mut sealed = bytes.to_vec();
    // Correcting epoch, index and checksum lets more inputs through.
    for (index, block) in sealed.as_chunks_mut::<512>().0.iter_mut().enumerate() {
        block[..4].fill(7);
        block[4..8].copy_from_slice(&(index as u32).to_le_bytes());
        let crc = crc::crc32(&block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        let memory = Memory::default();
        memory.piece_bytes.set(1024);
        memory.file(PATH, bytes);
        let recorder = Recorder {
            kept: 0,
            card: RecordingPath::try_from(PATH).ok().map(|path| (path, 0)),
            ..Recorder::default()
        };
        for target in [
            "/LOG00012.BIN?format=csv",
            "/LOG00012.BIN?from=0.05&to=9&stream=1",
            "/live?all=1&from=3",
        ] {
            let clock = Clock::default();
            let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let mut socket = Socket::new(&clock, [request.into()], End::Close);
            socket.sent_bytes_max = 1 << 20;
            let sent = socket.sent.clone();
            let server = Server::new(&memory, &recorder, &clock, CONFIG);
            clock.run(server.serve(&mut socket, &mut Buffers::new()));
            assert_eq!(responses(&sent.take(), &[]).len(), 1);
        }
    }
});
