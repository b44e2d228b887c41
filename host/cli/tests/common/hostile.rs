//! A server whose answers a test writes, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request.
pub struct Request {
    /// Method, path with query, and fields.
    pub head: String,
    /// Number of requests before this one for the same path.
    pub number: usize,
}

impl Request {
    /// Returns the path with the query.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the offset that the request asks for, or `None` for the whole file.
    pub fn start(&self) -> Option<usize> {
        let (_, range) = self.head.split_once("range: bytes=")?;
        range.split_once('-')?.0.parse().ok()
    }

    fn is_head(&self) -> bool {
        self.head.starts_with("HEAD ")
    }
}

/// Answer to a request.
pub enum Reply {
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends these bytes, then nothing until the client gives up.
    Hang(Vec<u8>),
    /// Sends the first bytes, then the second ones again and again, with this pause.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Sends the first bytes, then the others one by one, with this pause.
    Slow(Vec<u8>, &'static [u8], Duration),
}

/// A server; it is ended when this is dropped.
pub struct Hostile {
    pub address: String,
    heads: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Hostile {
    /// Answers each connection's request with the result of a function.
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Hostile {
            address: listener.local_addr().unwrap().to_string(),
            heads: Arc::default(),
            is_over: Arc::default(),
        };
        let (heads, is_over) = (Arc::clone(&server.heads), Arc::clone(&server.is_over));
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (answer, heads) = (Arc::clone(&answer), Arc::clone(&heads));
                std::thread::spawn(move || serve(stream, &*answer, &heads));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the heads of all requests so far, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Request) -> Reply, heads: &Mutex<Vec<String>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let (line, fields) = head.split_once("\r\n").unwrap();
    let head = format!("{line}\r\n{}", fields.to_ascii_lowercase());
    let number = {
        let mut heads = heads.lock().unwrap();
        let of_same = |head: &&String| head.split_once("\r\n").is_some_and(|(old, _)| old == line);
        let number = heads.iter().filter(of_same).count();
        heads.push(head.clone());
        number
    };
    let request = Request { head, number };
    match answer(&request) {
        Reply::Close(mut bytes) => {
            if request.is_head() {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
                bytes.truncate(end.map_or(bytes.len(), |end| end + 4));
            }
            let _ = stream.write_all(&bytes);
        }
        Reply::Hang(bytes) => {
            let _ = stream.write_all(&bytes);
            let _ = reader.read_to_end(&mut Vec::new());
        }
        Reply::Endless(first, again, pause) => {
            let mut sent = stream.write_all(&first);
            while sent.is_ok() {
                std::thread::sleep(pause);
                sent = stream.write_all(&again);
            }
        }
        Reply::Slow(first, bytes, pause) => {
            let mut sent = stream.write_all(&first);
            for byte in bytes.chunks(1) {
                if sent.is_err() {
                    break;
                }
                std::thread::sleep(pause);
                sent = stream.write_all(byte);
            }
        }
    }
    // Closing while the client still sends would reset the connection before it has read the answer.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = reader.read_to_end(&mut Vec::new());
}

/// Counts the cases that several threads take from a table.
#[derive(Default)]
pub struct Turn(AtomicUsize);

impl Turn {
    pub fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns an answer with a length.
pub fn answer(status: &str, fields: &str, body: &[u8]) -> Reply {
    let length = format!("Content-Length: {}\r\n", body.len());
    raw(&format!("HTTP/1.1 {status}\r\n{fields}{length}\r\n"), body)
}

/// Returns an answer in chunks.
pub fn chunked(status: &str, fields: &str, chunks: &[&[u8]], end: &str) -> Reply {
    let mut body = Vec::new();
    for chunk in chunks {
        body.extend(format!("{:x}\r\n", chunk.len()).bytes());
        body.extend_from_slice(chunk);
        body.extend(b"\r\n");
    }
    body.extend(end.bytes());
    let head = format!("HTTP/1.1 {status}\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
    raw(&head, &body)
}

/// Returns an answer as it stands.
pub fn raw(head: &str, body: &[u8]) -> Reply {
    Reply::Close([head.as_bytes(), body].concat())
}
