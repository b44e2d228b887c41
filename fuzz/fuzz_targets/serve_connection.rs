//! Arbitrary bytes on a connection: it ends, sends nothing but whole responses, and changes nothing that is protected.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_server::{Buffers, Server};
use memory::Memory;
use memory::client::{CONFIG, responses};
use memory::recorder::Recorder;
use memory::socket::{Clock, End, Socket};

#[path = "../../core/server/tests/memory/mod.rs"]
mod memory;

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let memory = Memory::default();
    memory.directory("/d");
    memory.file("/d/a.csv", b"1,2\r\n3,4\r\n");
    memory.growing("/now.csv", b"1,2\r\n", 7);
    memory.file("/CARDIOGR.JNL", b"protected");
    let (clock, recorder) = (Clock::default(), Recorder::default());
    // The first byte determines where the bytes are split.
    let Some((split, bytes)) = bytes.split_first() else {
        return;
    };
    let segments: Vec<Vec<u8>> = bytes
        .chunks(usize::from(*split).max(1))
        .map(<[u8]>::to_vec)
        .collect();
    let mut socket = Socket::new(&clock, segments, End::Close);
    socket.sent_bytes_max = 1 << 20;
    let sent = socket.sent.clone();
    let server = Server::new(&memory, &recorder, &clock, CONFIG);
    clock.run(server.serve(&mut socket, &mut Buffers::new()));
    assert_eq!(memory.bytes("/CARDIOGR.JNL").unwrap(), b"protected");
    assert!(memory.bytes("/now.csv").unwrap().starts_with(b"1,2\r\n"));
    assert_eq!(memory.uploads.get(), 0);
    let sent = sent.take();
    // Responses to HEAD have no body, and the bytes sent do not show which responses these are.
    if !bytes.windows(4).any(|window| window == b"HEAD") {
        for response in responses(&sent, &[]) {
            assert!((200..=507).contains(&response.status));
        }
    }
});
