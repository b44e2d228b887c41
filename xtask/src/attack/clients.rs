//! A client that attacks at random: uploads, aborted uploads, renames, deletes, locks, half-open connections, ranges.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time that a half-open connection stays.
const HELD: Duration = Duration::from_millis(700);
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a whole upload, and of an answer that the client reads before it hangs up.
const UPLOAD_BYTES: u64 = 60_000;
const READ_BYTES_MAX: u64 = 300_000;

/// Names in use by the clients and by the recording; some of the latter exist and some will.
const NAMES: [&str; 10] = [
    "a.bin",
    "b.bin",
    "c/d.bin",
    "c",
    "REC00000",
    "REC00000/REC00000.CSV",
    "REC00000/REC00001.CSV",
    "REC00000/REC00002.CSV",
    "REC00001/REC00001.CSV",
    "CARDIO~1.JNL",
];

/// A generator of random numbers (xorshift64*), so that the seed alone decides what a client does.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len() as u64) as usize]
    }
}

/// Sends requests until a point in time. Refusals and closed connections are what a client has to expect.
pub fn attack(address: SocketAddr, seed: u64, end: Instant) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    while Instant::now() < end {
        if let Err(error) = request(address, &mut random)
            && error.kind() == ErrorKind::ConnectionRefused
        {
            std::thread::sleep(PATIENCE / 10);
        }
    }
}

fn request(address: SocketAddr, random: &mut Random) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (name, other) = (random.name(), random.name());
    let host = format!("Host: {address}\r\nConnection: close\r\n");
    let mut head = |start: &str, fields: &str| {
        stream.write_all(format!("{start} HTTP/1.1\r\n{host}{fields}\r\n").as_bytes())
    };
    match random.below(11) {
        0 => head(
            &format!("PUT /{name}"),
            &format!("Content-Length: {UPLOAD_BYTES}\r\n"),
        )
        .and_then(|()| body(&mut stream, UPLOAD_BYTES))?,
        // Ends halfway, or claims more room than any card has.
        1 => head(
            &format!("PUT /{name}"),
            &format!("Content-Length: {UPLOAD_BYTES}\r\n"),
        )
        .and_then(|()| body(&mut stream, random.below(UPLOAD_BYTES)))?,
        2 => head(&format!("PUT /{name}"), "Content-Length: 900000000000\r\n")
            .and_then(|()| body(&mut stream, 1))?,
        3 => head(&format!("DELETE /{name}"), "")?,
        4 => head(
            &format!("MOVE /{name}"),
            &format!("Destination: http://{address}/{other}\r\n"),
        )?,
        5 => head(
            &format!("COPY /{name}"),
            &format!("Destination: http://{address}/{other}\r\n"),
        )?,
        6 => head(&format!("MKCOL /{name}"), "")?,
        7 => {
            const LOCK: &str = "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>";
            let length = LOCK.len();
            head(
                &format!("LOCK /{name}"),
                &format!("Timeout: Second-5\r\nContent-Length: {length}\r\n"),
            )?;
            stream.write_all(LOCK.as_bytes())?;
        }
        8 => {
            stream.write_all(b"GET /half")?;
            std::thread::sleep(HELD);
            return Ok(());
        }
        9 => {
            let (from, to) = (random.below(100_000), random.below(200_000));
            head(
                &format!("GET /{name}"),
                &format!("Range: bytes={from}-{to}\r\n"),
            )?;
        }
        _ => head(&format!("GET /{name}?create=1"), "")?,
    }
    let mut answer = Vec::new();
    stream.take(READ_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(())
}

fn body(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let piece = [b'x'; 4096];
    let mut left = bytes as usize;
    while left > 0 {
        let length = left.min(piece.len());
        stream.write_all(&piece[..length])?;
        left -= length;
    }
    Ok(())
}
