//! Clients that try to use up what the recorder needs: space, and file descriptors.

use crate::common;

use cardiograph_serve::Settings;
use common::{PATIENCE, Response, Server, noise, read_all};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the file system, and space that uploads leave free on it.
const SMALL_BYTES: u64 = 16 << 20;
const KEPT_BYTES: u64 = 4 << 20;
/// Environment variable with the mount point of that file system.
const SMALL: &str = "CARDIOGRAPH_TEST_SMALL";
/// Environment variable that is set in a process with few descriptors.
const FEW: &str = "CARDIOGRAPH_TEST_FEW";
/// Limit of descriptors in that process.
const DESCRIPTORS: usize = 160;
/// Descriptors that a recorder may need at once.
const OF_RECORDER: usize = 40;

fn free_bytes(directory: &Path) -> u64 {
    let space = rustix::fs::statvfs(directory).unwrap();
    space.f_bavail * space.f_frsize
}

/// Sends a file in chunks; returns the status.
fn put_chunks(server: &Server, path: &str, bytes: usize) -> u16 {
    let mut body = Vec::new();
    for piece in noise(bytes, 1).chunks(1 << 16) {
        body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        body.extend_from_slice(piece);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let fields = "Transfer-Encoding: chunked\r\n";
    server.request(&format!("PUT {path}"), fields, &body).status
}

/// Process that the next test runs on a file system of 16 MiB.
#[test]
fn on_a_small_file_system() {
    let Some(directory) = std::env::var_os(SMALL).map(PathBuf::from) else {
        return;
    };
    let server = Server::inside(&directory, Settings::default(), Some(KEPT_BYTES));

    // Uploads of which only one byte has arrived do not prevent a recorder from writing.
    let uploads = Vec::from_iter((0..4).map(|number| {
        let mut upload = server.connect();
        let head = format!(
            "PUT /{number} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\nx",
            server.address,
            8 << 20
        );
        upload.write_all(head.as_bytes()).unwrap();
        upload
    }));
    let started = Instant::now();
    while server.names().len() < uploads.len() {
        assert!(started.elapsed() < PATIENCE, "{:?}", server.names());
        thread::sleep(Duration::from_millis(10));
    }
    let recording = server.path("recording");
    fs::write(&recording, vec![1; 15 << 20]).unwrap();
    fs::remove_file(&recording).unwrap();
    drop(uploads);
    let started = Instant::now();
    while !server.names().is_empty() {
        assert!(started.elapsed() < PATIENCE, "{:?}", server.names());
        thread::sleep(Duration::from_millis(10));
    }

    // A length that is too large is refused at once, an unknown one when the space ends.
    let length = format!("Content-Length: {}\r\n", 13 << 20);
    assert_eq!(server.request("PUT /a", &length, b"").status, 507);
    assert_eq!(put_chunks(&server, "/a", 13 << 20), 507);
    assert!(server.names().is_empty(), "{:?}", server.names());
    assert_eq!(put_chunks(&server, "/a", 6 << 20), 201);
    let statuses = thread::scope(|scope| {
        let server = &server;
        let begin = |number| {
            scope.spawn(move || put_chunks(server, &format!("/parallel{number}"), 3 << 20))
        };
        let clients = Vec::from_iter((0..4).map(begin));
        Vec::from_iter(clients.into_iter().map(|client| client.join().unwrap()))
    });
    assert!(statuses.contains(&507), "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 507].contains(status)));
    assert!(free_bytes(&directory) >= KEPT_BYTES);

    // The recorder uses its space; clients can then only remove files.
    let left = free_bytes(&directory) - KEPT_BYTES;
    fs::write(&recording, vec![1; left as usize + 4096]).unwrap();
    for line in [
        "PUT /edit?path=/new.txt",
        "PUT /edit?path=/new",
        "GET /new.txt?create=1",
        "MKCOL /new",
    ] {
        assert_eq!(server.request(line, "", b"").status, 507, "{line}");
    }
    let to = "Destination: /copy\r\n";
    assert_eq!(server.request("COPY /a", to, b"").status, 507);
    assert_eq!(server.request("DELETE /a", "", b"").status, 204);
    assert_eq!(server.request("MKCOL /new", "", b"").status, 201);
    println!("completed");
}

#[test]
fn uploads_leave_the_space_of_the_recorder() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mount = format!("mount -t tmpfs -o size={SMALL_BYTES} none \"${SMALL}\" && exec \"$@\"");
    let run = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", &mount, "sh"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["limits::on_a_small_file_system", "--exact", "--nocapture"]);
        command.env(SMALL, directory.path()).output().unwrap()
    };
    // Mounting requires root, or user namespaces if the system permits them.
    let mut output = run(&["--mount"]);
    if output.stdout.is_empty() {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("completed"),
        "{stdout}{stderr}"
    );
}

/// One client sends nothing more, another one less than 1 KiB/s.
#[test]
fn an_upload_that_stops_sending_is_ended() {
    let server = Server::start();
    let begin = |name: &str| {
        let mut upload = server.connect();
        let host = server.address;
        let head =
            format!("PUT /{name} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\nx");
        upload.write_all(head.as_bytes()).unwrap();
        upload
    };
    let (mut silent, slow) = (begin("silent"), begin("slow"));
    let mut trickle = slow.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            while trickle.write_all(&[b'x'; 100]).is_ok() {
                thread::sleep(Duration::from_millis(200));
            }
        });
        let mut slow = slow;
        assert_eq!(read_all(&mut slow), b"");
        slow.shutdown(std::net::Shutdown::Both).ok();
        assert_eq!(read_all(&mut silent), b"");
    });
    assert!(server.names().is_empty(), "{:?}", server.names());
}

/// Process that the next test runs with few descriptors: a server, and what a recorder opens next to it.
#[test]
fn with_few_descriptors() {
    if std::env::var_os(FEW).is_none() {
        return;
    }
    let server = Server::start();
    server.write("a", "a");
    println!("\naddress {}", server.address);
    let mut orders = std::io::stdin().lines();
    orders.next().unwrap().unwrap();
    let opened = Vec::from_iter((0..OF_RECORDER).map(|_| File::open("/dev/null")));
    let failed = opened.iter().find_map(|file| file.as_ref().err());
    assert!(failed.is_none(), "{failed:?}");
    println!("\nopened");
    orders.next().unwrap().unwrap();
}

#[test]
fn clients_leave_the_descriptors_of_the_recorder() {
    let script = format!("ulimit -n {DESCRIPTORS} && exec \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["limits::with_few_descriptors", "--exact", "--nocapture"])
        .env(FEW, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut find = |start: &str| loop {
        let line = lines.next().expect("the server has ended").unwrap();
        if let Some(rest) = line.strip_prefix(start) {
            return rest.to_string();
        }
    };
    let address: SocketAddr = find("address ").parse().unwrap();
    let send = |request: &str| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client
    };
    let mut clients = Vec::new();
    for number in 0..DESCRIPTORS / 5 {
        // Each holds a socket, a folder and a file.
        clients.push(send(&format!(
            "PUT /{number} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 9\r\n\r\nx"
        )));
    }
    clients.extend((0..DESCRIPTORS).map(|_| send("GET ")));
    let mut last = clients.pop().unwrap();
    let mut start = [0; 12];
    last.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 503");
    writeln!(orders, "open").unwrap();
    find("opened");

    // Once the clients are gone, the server works as before.
    drop(clients);
    let started = Instant::now();
    let request = format!("GET /a HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    loop {
        let mut all = Vec::new();
        let _ = send(&request).read_to_end(&mut all);
        if !all.is_empty() && Response::parse(&all).status == 200 {
            break;
        }
        assert!(started.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(10));
    }
    writeln!(orders, "end").unwrap();
    assert!(child.wait().unwrap().success());
}
