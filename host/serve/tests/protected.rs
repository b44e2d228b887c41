//! Protected files: no request reads or changes them, whichever of their names it uses, on images that other programs
//! have written and in a directory.

use crate::common;

use cardiograph_serve::{Listener, ServedCard, Settings};
use common::fuse::{Mounted, Named};
use common::{PATIENCE, Response, Server, read_all};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Contents of all protected files.
const SECRET: &str = "the secret of the network";
/// Protected files of a card, and their short names as mtools creates them.
const ON_CARD: &[(&str, &str)] = &[
    (".wifi.txt", "WIFI~1.TXT"),
    ("LOG00001.CSV.part", "LOG000~1.PAR"),
    ("a.PART", "A~1.PAR"),
    ("CARDIOGR.TXT", "CARDIOGR.TXT"),
    ("cardiogr.text", "CARDIO~1.TEX"),
    ("folder/.key", "FOLDER/KEY~1"),
    (".ssh/key", "SSH~1/KEY"),
    ("hidden.txt", "HIDDEN.TXT"),
    ("system.txt", "SYSTEM.TXT"),
    ("hidden folder/key", "HIDDEN~1/KEY"),
    ("system folder/key", "SYSTEM~1/KEY"),
];
const FOLDERS: &[&str] = &["folder", ".ssh", "hidden folder", "system folder"];
/// Journal, which the server itself creates.
const JOURNAL: &str = "CARDIOGR.JNL";

/// A server of a card image, which it may change.
struct Card {
    own: TempDir,
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Card {
    /// Formats an image, calls `fill`, and serves it.
    fn serve(fat_bits: &str, is_read_only: bool, fill: impl FnOnce(&Path)) -> Card {
        let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = own.path().join("card.img");
        fs::File::create(&image).unwrap().set_len(40 << 20).unwrap();
        let sectors = if fat_bits == "32" { "1" } else { "4" };
        tool(
            own.path(),
            "mkfs.fat",
            &["-F", fat_bits, "-s", sectors, "card.img"],
        );
        fill(own.path());
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().unwrap();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let thread = std::thread::spawn(move || {
            let card = ServedCard::open(&image, is_read_only).unwrap();
            let settings = Settings {
                is_read_only,
                ..Settings::default()
            };
            let is_stopped = || stop.load(Ordering::Relaxed);
            listener.serve_card(card, &settings, &is_stopped).unwrap();
        });
        Card {
            own,
            address,
            is_stopped,
            thread: Some(thread),
        }
    }

    /// Ends the server. Returns the folder with the image.
    fn end(mut self) -> TempDir {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.own
    }
}

/// Runs a program in a folder; it must succeed. Returns its output.
fn tool(own: &Path, program: &str, args: &[&str]) -> Vec<u8> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.args(args).current_dir(own).env("PATH", path);
    command.env("MTOOLS_SKIP_CHECK", "1");
    let output = command.output().unwrap_or_else(|error| {
        panic!("{program}: {error}; run `cargo xtask test`, which installs it")
    });
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}");
    output.stdout
}

/// Creates the protected files with mtools, and one that everybody may see.
fn fill(own: &Path) {
    fs::write(own.join("secret"), SECRET).unwrap();
    fs::write(own.join("open"), "open").unwrap();
    for folder in FOLDERS {
        tool(own, "mmd", &["-i", "card.img", &format!("::/{folder}")]);
    }
    for (long, short) in ON_CARD {
        let to = format!("::/{long}");
        tool(own, "mcopy", &["-i", "card.img", "secret", &to]);
        let found = tool(own, "mtype", &["-i", "card.img", &format!("::/{short}")]);
        assert_eq!(
            found,
            SECRET.as_bytes(),
            "mtools has created another short name"
        );
    }
    for (name, attribute) in [
        ("hidden.txt", "+h"),
        ("system.txt", "+s"),
        ("hidden folder", "+h"),
        ("system folder", "+s"),
    ] {
        let path = format!("::/{name}");
        tool(own, "mattrib", &["-i", "card.img", attribute, &path]);
    }
    for to in ["::/open.txt", "::/folder/open.txt"] {
        tool(own, "mcopy", &["-i", "card.img", "open", to]);
    }
}

fn request(address: SocketAddr, line: &str, fields: &str, body: &str) -> Response {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    Response::parse(&read_all(&mut stream))
}

fn encoded(path: &str) -> String {
    path.replace(' ', "%20")
}

const LOCK: &str = "<?xml version=\"1.0\"?><D:lockinfo xmlns:D=\"DAV:\">\
    <D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>";
const PATCH: &str = "<?xml version=\"1.0\"?><D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop>\
    <x xmlns=\"u:\">1</x></D:prop></D:set></D:propertyupdate>";

/// Sends every operation for a path. Every one must be refused.
fn attack(address: SocketAddr, path: &str) {
    let path = encoded(path);
    let form = |name: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"{name}\"\r\n\r\nnew\r\n--b--\r\n"
        )
    };
    let (folder, name) = path.rsplit_once('/').unwrap();
    let multipart = "Content-Type: multipart/form-data; boundary=b\r\n";
    let (here, decoded) = (form(name), form(&path.replace("%20", " ")));
    let to = format!("Destination: {path}\r\nOverwrite: T\r\n");
    let away = "Destination: /stolen.txt\r\n";
    let in_folder = format!("POST /edit?dir={folder}/");
    let of_file = format!("POST /edit?dir={path}");
    let requests: &[(&str, &str, &str)] = &[
        ("GET {}", "", ""),
        ("HEAD {}", "", ""),
        ("GET {}", "Range: bytes=1-5\r\n", ""),
        ("GET {}?download=1", "", ""),
        ("GET {}?follow=1", "", ""),
        ("GET {}?format=csv", "", ""),
        ("GET {}?tar=1", "", ""),
        ("GET {}?delete=1", "", ""),
        ("GET {}?create=1", "", ""),
        ("GET /list?dir={}", "", ""),
        ("PROPFIND {}", "Depth: 0\r\n", ""),
        ("PROPFIND {}", "Depth: 1\r\n", ""),
        ("PROPPATCH {}", "", PATCH),
        ("PUT {}", "", "new"),
        ("PUT {}", "", ""),
        ("PUT /edit?dir={}", "", ""),
        ("DELETE {}", "", ""),
        ("DELETE {}", "If: (<DAV:no-lock>)\r\n", ""),
        ("DELETE /edit?dir={}", "", ""),
        ("MKCOL {}", "", ""),
        ("MOVE {}", away, ""),
        ("COPY {}", away, ""),
        ("MOVE /open.txt", &to, ""),
        ("COPY /open.txt", &to, ""),
        ("MOVE /folder", &to, ""),
        ("LOCK {}", "", LOCK),
        ("UNLOCK {}", "Lock-Token: <urn:x>\r\n", ""),
        ("POST {}?delete=1", "", "key=0000000000000000"),
        (&in_folder, multipart, &here),
        (&of_file, multipart, &form("open.txt")),
        ("POST /edit", multipart, &decoded),
    ];
    for (line, fields, body) in requests {
        let line = line.replace("{}", &path);
        let response = request(address, &line, fields, body);
        let text = response.text();
        assert!(response.status >= 400, "{line} {fields}{}", response.head);
        assert!(!text.contains("secret"), "{line} {fields}{text}");
    }
}

/// Checks that nothing that a client can list has a trace of the protected files.
fn check_lists(address: SocketAddr, traces: &[String]) {
    for folder in ["/", "/folder"] {
        for (line, fields) in [
            ("GET {}", ""),
            ("GET {}?tar=1", ""),
            ("GET /list?dir={}", ""),
            ("PROPFIND {}", "Depth: 1\r\n"),
        ] {
            let line = line.replace("{}", folder);
            let response = request(address, &line, fields, "");
            assert!(response.status < 300, "{line}: {}", response.head);
            let text = response.text().to_lowercase();
            for trace in traces {
                assert!(!text.contains(trace), "{line} shows {trace}: {text}");
            }
            assert!(text.contains("open.txt"), "{line}: {text}");
        }
    }
}

fn traces<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap().to_lowercase();
    let names = names.into_iter().map(last).filter(|name| name != "key");
    names.chain(["secret".to_string()]).collect()
}

#[test]
#[ignore = "needs mkfs.fat"]
fn no_name_of_a_protected_file_on_a_card_reaches_it() {
    for fat_bits in ["16", "32"] {
        let card = Card::serve(fat_bits, false, fill);
        let names = ON_CARD.iter().flat_map(|(long, short)| [*long, *short]);
        let names = Vec::from_iter(names.chain([JOURNAL]));
        check_lists(card.address, &traces(names.iter().copied()));
        for name in &names {
            attack(card.address, &format!("/{name}"));
            attack(card.address, &format!("/{}", name.to_lowercase()));
        }
        for folder in [".ssh", "SSH~1", "hidden folder", "HIDDEN~1", "SYSTEM~1"] {
            attack(card.address, &format!("/{folder}"));
            attack(card.address, &format!("/{folder}/new.txt"));
        }
        // Visible names whose short name a protected file has get another one.
        for name in ["wi fi.txt", "ca rdiogr.text", "ss h"] {
            let line = format!("PUT /{}", encoded(name));
            assert_eq!(
                request(card.address, &line, "", "mine").status,
                201,
                "{name}"
            );
            let line = format!("GET /{}", encoded(name));
            assert_eq!(
                request(card.address, &line, "", "").text(),
                "mine",
                "{name}"
            );
        }
        // A folder is removed only if clients see everything in it.
        assert_eq!(request(card.address, "DELETE /folder", "", "").status, 409);
        let own = card.end();
        for (long, short) in ON_CARD {
            for name in [long, short] {
                let path = format!("::/{name}");
                let found = tool(own.path(), "mtype", &["-i", "card.img", &path]);
                assert_eq!(found, SECRET.as_bytes(), "{name}");
            }
        }
        tool(own.path(), "fsck.fat", &["-n", "card.img"]);
    }
}

/// FAT keeps the case of a name, but does not distinguish it.
#[test]
#[ignore = "needs mkfs.fat"]
fn a_move_may_change_the_case_of_a_name() {
    for fat_bits in ["16", "32"] {
        let card = Card::serve(fat_bits, false, fill);
        let ask = |line: &str, fields: &str| request(card.address, line, fields, "");
        let list = || ask("GET /list?dir=/", "").text();
        for (from, to) in [
            ("/open.txt", "/Open.TXT"),
            ("/OPEN.txt", "/oPEN.txt"),
            ("/folder", "/Folder"),
        ] {
            let fields = format!("Destination: {to}\r\n");
            let status = ask(&format!("MOVE {from}"), &fields).status;
            assert_eq!(status, 201, "{from} to {to}");
            let shown = format!("\"name\":\"{}\"", &to[1..]);
            assert!(list().contains(&shown), "{}", list());
            // Other names of the same file are still refused.
            let fields = format!("Destination: {from}\r\n");
            assert_eq!(ask(&format!("COPY {to}"), &fields).status, 403);
        }
        assert_eq!(ask("GET /open.txt", "").text(), "open");
        assert_eq!(ask("GET /folder/open.txt", "").text(), "open");
        let own = card.end();
        tool(own.path(), "fsck.fat", &["-n", "card.img"]);
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn a_read_only_server_does_not_serve_short_names_either() {
    let card = Card::serve("32", true, fill);
    for (long, short) in ON_CARD {
        for name in [long, short] {
            let line = format!("GET /{}", encoded(name));
            let response = request(card.address, &line, "", "");
            assert!(
                [403, 404].contains(&response.status),
                "{name}: {}",
                response.head
            );
        }
    }
    card.end();
}

/// A directory of this computer usually has no short names.
#[test]
fn no_request_reaches_a_protected_file_of_a_directory() {
    let server = Server::start();
    for folder in ["folder", ".ssh", "a.part"] {
        fs::create_dir(server.path(folder)).unwrap();
    }
    let names = [
        ".wifi.txt",
        "LOG00001.CSV.part",
        "CARDIOGR.TXT",
        "cardiogr.text",
        "cardıogr.jnl",
        JOURNAL,
        "folder/.key",
        ".ssh/key",
        "a.part/key",
    ];
    names.iter().for_each(|name| server.write(name, SECRET));
    server.write("open.txt", "open");
    server.write("folder/open.txt", "open");
    check_lists(server.address, &traces(names));
    for name in names {
        attack(server.address, &format!("/{name}"));
        attack(server.address, &format!("/{name}/new"));
    }
    for name in names {
        assert_eq!(server.read(name), SECRET.as_bytes(), "{name}");
    }
    assert_eq!(
        request(server.address, "DELETE /folder", "", "").status,
        409
    );
    assert_eq!(server.read("folder/open.txt"), b"open");
    assert!(!server.path("stolen.txt").exists());
}

/// A directory on a file system that gives files a second name, as FAT does when it is mounted.
#[test]
fn second_names_in_a_mounted_file_system_reach_no_file() {
    const FILES: &[Named] = &[
        (".wifi.txt", "WIFI~1.TXT", SECRET),
        ("LOG00001.CSV.part", "LOG000~1.PAR", SECRET),
        // Without a tilde, as with the mount option nonumtail.
        ("CARDIOGR.TEXT", "SETTINGS.TEX", SECRET),
        (".key", "KEY", SECRET),
        ("A visible file.txt", "AVISIB~1.TXT", "visible"),
        ("open.txt", "open.txt", "open"),
    ];
    let server = Server::start();
    fs::create_dir(server.path("card")).unwrap();
    let Some(mounted) = Mounted::at(&server.path("card"), FILES) else {
        return;
    };
    server.write("open.txt", "open");
    for (path, text) in [
        ("/card/open.txt", "open"),
        ("/card/OPEN.TXT", "open"),
        ("/card/A%20visible%20file.txt", "visible"),
    ] {
        assert_eq!(server.get(path).text(), text, "{path}");
    }
    for (listed, other, _) in FILES.iter().take(4) {
        attack(server.address, &format!("/card/{listed}"));
        attack(server.address, &format!("/card/{other}"));
        attack(server.address, &format!("/card/{}", other.to_lowercase()));
    }
    // A name that no list shows is no name, whatever file it belongs to.
    assert_eq!(server.get("/card/AVISIB~1.TXT").status, 403);
    assert_eq!(mounted.changes(), 0);
    assert_eq!(
        request(server.address, "DELETE /card/open.txt", "", "").status,
        403
    );
    assert_eq!(
        mounted.changes(),
        1,
        "a permitted change reaches the file system"
    );
}
