//! Clients behind a proxy: the configuration of docs/security.md with nginx, and header fields that nobody may forge.

use crate::common;

use cardiograph_serve::Settings;
use common::{PATIENCE, Server, noise};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "logger.example.org";
const DOCUMENT: &str = include_str!("../../../docs/security.md");

/// nginx in front of a server, at a Unix socket, so that it needs no port.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the block of the document that is marked as a configuration of nginx.
fn configuration() -> &'static str {
    let (_, rest) = DOCUMENT.split_once("```nginx\n").unwrap();
    rest.split_once("```").unwrap().0
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}: {text}");
    text.replace(old, new)
}

impl Proxy {
    fn start(server: &Server, configuration: &str) -> Proxy {
        let folder = server.outside();
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args(["-subj", &format!("/CN={NAME}")])
            .args(["-addext", &format!("subjectAltName=DNS:{NAME}")])
            .args(["-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(folder)
            .output()
            .expect("openssl is missing; run `cargo xtask test`, which installs it");
        assert!(made.status.success(), "{made:?}");
        let at = |name: &str| folder.join(name).display().to_string();
        let socket = format!("listen unix:{} ssl", at("proxy.socket"));
        let site = replaced(configuration, "listen 443 ssl", &socket);
        let site = replaced(&site, "/etc/ssl/logger.crt", &at("certificate.pem"));
        let site = replaced(&site, "/etc/ssl/logger.key", &at("key.pem"));
        let site = replaced(&site, "127.0.0.1:8080", &server.address.to_string());
        let user = if is_root() { "user root;" } else { "" };
        let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = kinds.map(|kind| format!("{kind}_temp_path {};\n", at(kind)));
        let whole = format!(
            "daemon off; master_process off; {user} pid {}; error_log stderr; events {{}}\n\
             http {{ access_log off; {}\n{site}}}\n",
            at("pid"),
            paths.concat()
        );
        fs::write(folder.join("nginx.conf"), whole).unwrap();
        let child = Command::new("nginx")
            .args(["-p", &at(""), "-c", &at("nginx.conf")])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx is missing; run `cargo xtask test`, which installs it");
        let mut proxy = Proxy(child);
        let started = Instant::now();
        while !Path::new(&at("proxy.socket")).exists() {
            let ended = proxy.0.try_wait().unwrap();
            assert!(ended.is_none(), "nginx has ended: {ended:?}");
            assert!(started.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(10));
        }
        proxy
    }
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output().unwrap();
    user.stdout.trim_ascii() == b"0"
}

/// Sends a request to the proxy; returns status, a colon, and the body.
fn ask(server: &Server, path: &str, args: &[&str]) -> String {
    let url = format!("https://{NAME}{path}");
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60"]);
    command.args([
        "--unix-socket",
        "proxy.socket",
        "--cacert",
        "certificate.pem",
    ]);
    command.args(["--output", "body", "--write-out", "%{http_code}"]);
    let output = command
        .args(args)
        .arg(url)
        .current_dir(server.outside())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path} {args:?}: {stderr}");
    let body = fs::read(server.outside().join("body")).unwrap_or_default();
    let _ = fs::remove_file(server.outside().join("body"));
    let status = String::from_utf8(output.stdout).unwrap();
    format!("{status}: {}", String::from_utf8_lossy(&body))
}

fn settings() -> Settings {
    Settings {
        names: vec![NAME.to_string()],
        proxies: vec!["127.0.0.1".parse().unwrap()],
        // ada:secret
        basic_auth: Some("YWRhOnNlY3JldA==".to_string()),
        ..Settings::default()
    }
}

#[test]
#[ignore = "needs nginx"]
fn page_uploads_and_webdav_work_behind_nginx() {
    let whole = configuration();
    // By default, nginx sends its own name for the server as Host.
    let without_host = replaced(whole, "proxy_set_header Host $http_host;", "");
    let by_host = replaced(whole, "proxy_set_header X-Forwarded-Host $http_host;", "");
    for configuration in [whole, &without_host, &by_host] {
        let server = Server::with(settings());
        let _proxy = Proxy::start(&server, configuration);
        let user = ["-u", "ada:secret"];
        let ask = |path: &str, args: &[&str]| ask(&server, path, &[&user, args].concat());
        let own = format!("Origin: https://{NAME}");

        assert!(ask("/", &["-u", "ada:wrong"]).starts_with("401"));
        let page = ask("/", &[]);
        assert!(
            page.starts_with("200") && page.contains("<table>"),
            "{page}"
        );

        let contents = noise(3_000_000, 1);
        fs::write(server.outside().join("upload"), &contents).unwrap();
        assert_eq!(ask("/a.bin", &["-T", "upload", "-H", &own]), "201: ");
        assert_eq!(server.read("a.bin"), contents);
        let form = ["-F", "data=@upload;filename=b.bin", "-H", &own];
        assert_eq!(ask("/edit", &form), "303: ");
        assert_eq!(server.read("b.bin"), contents);
        let status = ask(
            "/a.bin",
            &["-r", "0-99", "-H", "Sec-Fetch-Site: same-origin"],
        );
        assert!(status.starts_with("206"), "{status}");
        for origin in ["https://evil.example", &format!("http://{NAME}"), "null"] {
            let field = format!("Origin: {origin}");
            let put = ask("/a.bin", &["-T", "certificate.pem", "-H", &field]);
            assert!(put.starts_with("403"), "{origin}: {put}");
        }
        assert_eq!(server.read("a.bin"), contents);

        let moved = format!("Destination: https://{NAME}/c.bin");
        assert_eq!(ask("/b.bin", &["-X", "MOVE", "-H", &moved]), "201: ");
        assert_eq!(server.read("c.bin"), contents);
        let away = "Destination: https://evil.example/d.bin";
        assert!(ask("/c.bin", &["-X", "MOVE", "-H", away]).starts_with("400"));
        assert_eq!(ask("/folder", &["-X", "MKCOL"]), "201: ");
        let copied = format!("Destination: https://{NAME}/folder/c.bin");
        assert_eq!(ask("/c.bin", &["-X", "COPY", "-H", &copied]), "201: ");
        let found = ask("/", &["-X", "PROPFIND", "-H", "Depth: 1"]);
        assert!(
            found.starts_with("207") && found.contains("/c.bin"),
            "{found}"
        );
        assert_eq!(ask("/folder", &["-X", "DELETE"]), "204: ");
    }
}

#[test]
fn only_trusted_proxies_say_which_name_a_client_used() {
    let trusting = Server::with(Settings {
        basic_auth: None,
        ..settings()
    });
    let other = Server::with(Settings {
        basic_auth: None,
        proxies: vec!["192.0.2.1".parse().unwrap()],
        ..settings()
    });
    let own = "127.0.0.1";
    let origin = format!("Origin: https://{NAME}\r\n");
    for (host, fields, trusted, untrusted) in [
        (own, format!("X-Forwarded-Host: {NAME}"), 201, 403),
        (
            own,
            format!("X-Forwarded-Host: evil.example, {NAME}"),
            201,
            403,
        ),
        (
            own,
            format!("Forwarded: for=192.0.2.7;host=\"{NAME}\";proto=https"),
            201,
            403,
        ),
        (
            own,
            format!("Forwarded: host=evil.example, Host={NAME}"),
            201,
            403,
        ),
        (
            own,
            format!("X-Forwarded-Host: {NAME}\r\nX-Forwarded-Proto: https"),
            201,
            403,
        ),
        (
            own,
            format!("X-Forwarded-Host: {NAME}\r\nX-Forwarded-Proto: http"),
            403,
            403,
        ),
        (
            own,
            format!("X-Forwarded-Host: {NAME}, evil.example"),
            421,
            403,
        ),
        (own, "X-Forwarded-For: 192.0.2.7".to_string(), 403, 403),
        (NAME, "X-Forwarded-For: 192.0.2.7".to_string(), 201, 201),
        // DNS rebinding: the page chooses every field but Host.
        (
            "evil.example",
            format!("X-Forwarded-Host: {NAME}"),
            421,
            421,
        ),
        ("evil.example", format!("Forwarded: host={NAME}"), 421, 421),
    ] {
        for (server, expected) in [(&trusting, trusted), (&other, untrusted)] {
            let request = format!(
                "PUT /new HTTP/1.1\r\nHost: {host}\r\n{origin}{fields}\r\nContent-Length: 1\r\n\
                 Connection: close\r\n\r\nx"
            );
            let response = common::Response::parse(&server.raw(request));
            assert_eq!(response.status, expected, "{host} {fields}");
            assert_eq!(server.path("new").exists(), expected == 201);
            let _ = fs::remove_file(server.path("new"));
        }
    }
}
