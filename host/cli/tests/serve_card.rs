//! `serve` of a card image, judged by mtools and fsck.fat.

use crate::common;

use common::server::Serving;
use common::{command, directory, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tool(own: &Path, program: &str, args: &[&str]) -> Output {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.args(args).current_dir(own).env("PATH", path);
    command.env("MTOOLS_SKIP_CHECK", "1");
    command.output().unwrap_or_else(|error| {
        panic!("{program}: {error}; run `cargo xtask test`, which installs it")
    })
}

fn must(own: &Path, program: &str, args: &[&str]) -> Vec<u8> {
    let output = tool(own, program, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}");
    output.stdout
}

/// Makes `card.img` with a file in a folder. Returns the contents of the file.
fn image(own: &Path, fat_bits: &str) -> Vec<u8> {
    fs::File::create(own.join("card.img"))
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let sectors = if fat_bits == "32" { "1" } else { "4" };
    must(
        own,
        "mkfs.fat",
        &["-F", fat_bits, "-s", sectors, "card.img"],
    );
    let contents: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    fs::write(own.join("data.bin"), &contents).unwrap();
    must(own, "mmd", &["-i", "card.img", "::/A folder"]);
    let args = ["-i", "card.img", "data.bin", "::/A folder/A long name.bin"];
    must(own, "mcopy", &args);
    contents
}

#[test]
#[ignore = "needs mkfs.fat"]
fn an_image_is_served_without_a_change() {
    for fat_bits in ["16", "32"] {
        let own = directory();
        let contents = image(own.path(), fat_bits);
        let before = fs::read(own.path().join("card.img")).unwrap();
        let serving = Serving::target(own.path(), "card.img", &[]);
        assert_eq!(
            serving.curl(&[], "/A%20folder/A%20long%20name.bin"),
            contents
        );
        let part = serving.curl(&["-r", "2999990-"], "/a%20FOLDER/A%20long%20name.bin");
        assert_eq!(part, contents[2_999_990..]);
        let list = String::from_utf8(serving.curl(&[], "/list?dir=/A%20folder")).unwrap();
        assert!(list.contains("A long name.bin"), "{list}");
        let tar = serving.curl(&[], "/A%20folder?tar=1");
        assert!(tar.len() > contents.len(), "{}", tar.len());
        let data = own.path().join("data.bin");
        let put = ["-T", data.to_str().unwrap(), "-w", "%{http_code}"];
        let answer = serving.curl(&put, "/new.bin");
        assert!(answer.ends_with(b"403"), "{answer:?}");
        assert_eq!(serving.end("-INT").code, Some(130));
        let after = fs::read(own.path().join("card.img")).unwrap();
        assert!(before == after, "the image has changed");
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn a_file_is_neither_moved_nor_copied_onto_itself() {
    for fat_bits in ["16", "32"] {
        let own = directory();
        let contents = image(own.path(), fat_bits);
        let serving = Serving::target(own.path(), "card.img", &["--write"]);
        let request_from = |from: &str, method: &str, to: &str| {
            let to = format!("Destination: /A%20folder/{to}");
            let args = ["-X", method, "-H", &to, "-w", "%{http_code}"];
            let answer = serving.curl(&args, &format!("/A%20folder/{from}"));
            String::from_utf8(answer).unwrap()
        };
        let request = |method: &str, to: &str| request_from("A%20long%20name.bin", method, to);
        // FAT does not distinguish case, and gives each long name a short one.
        for (method, name) in [
            ("COPY", "a%20LONG%20name.BIN"),
            ("COPY", "ALONGN~1.BIN"),
            ("MOVE", "ALONGN~1.BIN"),
        ] {
            let answer = request(method, name);
            assert!(answer.ends_with("403"), "{method} to {name}: {answer}");
        }
        // A move may change the case.
        let names = ["A%20long%20name.bin", "a%20LONG%20name.BIN"];
        for (from, name) in [(names[0], names[1]), (names[1], names[0])] {
            let answer = request_from(from, "MOVE", name);
            assert!(answer.ends_with("201"), "{name}: {answer}");
            let list = serving.curl(&[], "/list?dir=/A%20folder");
            let shown = format!("\"name\":\"{}\"", name.replace("%20", " "));
            let list = String::from_utf8(list).unwrap();
            assert!(list.contains(&shown), "{list}");
        }
        assert!(request("COPY", "copy.bin").ends_with("403"));
        let other = ["-T", "/dev/null", "-w", "%{http_code}"];
        assert_eq!(serving.curl(&other, "/A%20folder/moved.bin"), b"201");
        assert!(request("MOVE", "moved.bin").ends_with("204"));
        assert_eq!(serving.curl(&[], "/A%20folder/moved.bin"), contents);
        assert_eq!(serving.end("-INT").code, Some(130));
        let listed = must(own.path(), "mdir", &["-b", "-i", "card.img", "::/A folder"]);
        assert_eq!(listed.trim_ascii(), b"::/A folder/moved.bin");
        must(own.path(), "fsck.fat", &["-n", "card.img"]);
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn two_servers_read_an_image_at_the_same_time() {
    let own = directory();
    let contents = image(own.path(), "16");
    let servers = [(); 2].map(|()| Serving::target(own.path(), "card.img", &[]));
    for server in &servers {
        let path = "/A%20folder/A%20long%20name.bin";
        assert_eq!(server.curl(&[], path), contents);
    }
    let writer = ["serve", "card.img", "--listen", "127.0.0.1:0", "--write"];
    let refused = run(own.path(), &writer);
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
}

#[test]
#[ignore = "needs mkfs.fat"]
fn an_image_is_changed_with_permission() {
    for fat_bits in ["16", "32"] {
        let own = directory();
        let contents = image(own.path(), fat_bits);
        let data = own.path().join("data.bin");
        let serving = Serving::target(own.path(), "card.img", &["--write"]);
        let refused = run(
            own.path(),
            &["serve", "card.img", "--listen", "127.0.0.1:0"],
        );
        assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
        serving.curl(&["-T", data.to_str().unwrap()], "/Another%20name.bin");
        let put = ["-T", data.to_str().unwrap(), "-w", "%{http_code}"];
        for (path, code) in [
            ("/None/new.bin", "409"),
            ("/Another%20name.bin/new.bin", "409"),
        ] {
            let answer = String::from_utf8(serving.curl(&put, path)).unwrap();
            assert!(answer.ends_with(code), "{path}: {answer}");
        }
        serving.curl(&["-X", "MKCOL"], "/New");
        let to = format!("Destination: {}", serving.url("/New/moved.bin"));
        serving.curl(
            &["-X", "MOVE", "-H", &to],
            "/A%20folder/A%20long%20name.bin",
        );
        serving.curl(&["-X", "DELETE"], "/A%20folder");
        assert_eq!(serving.end("-INT").code, Some(130));
        let fsck = tool(own.path(), "fsck.fat", &["-n", "card.img"]);
        let text = String::from_utf8_lossy(&fsck.stdout).into_owned();
        assert!(fsck.status.success(), "{text}");
        for path in ["::/Another name.bin", "::/New/moved.bin"] {
            let found = must(own.path(), "mtype", &["-i", "card.img", path]);
            assert!(found == contents, "{path}");
        }
        let list = must(own.path(), "mdir", &["-b", "-i", "card.img", "::/"]);
        assert!(!String::from_utf8_lossy(&list).contains("A folder"));
    }
}

#[test]
#[ignore = "needs mkfs.fat"]
fn a_system_file_is_neither_seen_nor_changed() {
    let own = directory();
    image(own.path(), "32");
    fs::write(own.path().join("system.txt"), "system").unwrap();
    let path = "::/SYS.TXT";
    must(own.path(), "mcopy", &["-i", "card.img", "system.txt", path]);
    must(own.path(), "mattrib", &["-i", "card.img", "+s", path]);
    let serving = Serving::target(own.path(), "card.img", &["--write"]);
    let data = own.path().join("data.bin");
    let code = ["-w", "%{http_code}", "-o", "/dev/null"];
    let put = [&["-T", data.to_str().unwrap()], &code[..]].concat();
    assert_eq!(serving.curl(&put, "/SYS.TXT"), b"403");
    let delete = [&["-X", "DELETE"], &code[..]].concat();
    assert_ne!(serving.curl(&delete, "/SYS.TXT"), b"204");
    let to = format!("Destination: {}", serving.url("/SYS.TXT"));
    let rename = [&["-X", "MOVE", "-H", &to], &code[..]].concat();
    assert_eq!(
        serving.curl(&rename, "/A%20folder/A%20long%20name.bin"),
        b"403"
    );
    assert_eq!(serving.end("-INT").code, Some(130));
    assert_eq!(
        must(own.path(), "mtype", &["-i", "card.img", path]),
        b"system"
    );
}

#[test]
#[ignore = "needs mkfs.fat"]
fn the_password_of_the_network_is_neither_served_nor_changed() {
    let own = directory();
    image(own.path(), "32");
    let settings = "ssid=home\npassword=very secret\n";
    fs::write(own.path().join("settings.txt"), settings).unwrap();
    let copied = "::/cardiogr.txt";
    must(
        own.path(),
        "mcopy",
        &["-i", "card.img", "settings.txt", copied],
    );
    let serving = Serving::target(own.path(), "card.img", &["--write"]);
    let is_secret = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("secret");
    // Lists, archives and forms have no trace of it.
    for path in ["/", "/list?dir=/", "/?tar=1", "/index", "/?edit=1"] {
        let answer = serving.curl(&[], path);
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        assert!(
            !is_secret(&answer) && !text.contains("cardiogr.txt"),
            "{path}"
        );
    }
    let found = serving.curl(&["-X", "PROPFIND", "-H", "Depth: 1"], "/");
    assert!(
        !String::from_utf8_lossy(&found)
            .to_lowercase()
            .contains("cardiogr.txt")
    );
    let data = own.path().join("data.bin");
    let (data, other) = (data.to_str().unwrap(), "/A%20folder/A%20long%20name.bin");
    let form = format!("data=@{data};filename=/cardiogr.TXT");
    // FAT compares in upper case, in which a dotless i is an I.
    for name in [
        "CARDIOGR.TXT",
        "Cardiogr.Txt",
        "%63ARDIOGR.tx%74",
        "card%C4%B1ogr.txt",
    ] {
        let path = format!("/{name}");
        let to = format!("Destination: {}", serving.url(&path));
        let away = format!("Destination: {}", serving.url("/seen.txt"));
        let requests: [(&[&str], &str); 11] = [
            (&[], &path),
            (&["-r", "0-9"], &path),
            (&["-I"], &path),
            (&["-T", data], &path),
            (&["-X", "DELETE"], &path),
            (&["-X", "MKCOL"], &path),
            (&["-X", "PROPFIND", "-H", "Depth: 0"], &path),
            (&["-X", "MOVE", "-H", &away], &path),
            (&["-X", "COPY", "-H", &away], &path),
            (&["-X", "MOVE", "-H", &to], other),
            (&["-F", &form], "/edit"),
        ];
        for (arguments, path) in requests {
            let arguments = [arguments, &["-w", "%{http_code}"]].concat();
            let answer = serving.curl(&arguments, path);
            assert!(
                answer.ends_with(b"403"),
                "{arguments:?} {path}: {}",
                String::from_utf8_lossy(&answer)
            );
            assert!(!is_secret(&answer), "{arguments:?} {path}");
        }
    }
    assert_eq!(serving.end("-INT").code, Some(130));
    for path in [copied, "::/CARDIOGR.TXT"] {
        let left = must(own.path(), "mtype", &["-i", "card.img", path]);
        assert_eq!(String::from_utf8_lossy(&left), settings);
    }
}

/// A device that looks for its settings finds a file under its long and its short name.
#[test]
#[ignore = "needs mkfs.fat"]
fn no_upload_becomes_the_settings_of_the_network() {
    let own = directory();
    image(own.path(), "32");
    let serving = Serving::target(own.path(), "card.img", &["--write"]);
    let data = own.path().join("data.bin");
    let put = ["-T", data.to_str().unwrap(), "-w", "%{http_code}"];
    for (name, code) in [
        ("cardi%20ogr.txt", "201"),
        ("%20cardiogr.txt", "201"),
        ("cardiogr,.txt", "201"),
        ("cardiogram.txt", "201"),
        ("card%C4%B1ogr.txt", "403"),
        ("c%C3%A4rdiogr.txt", "201"),
        ("cardiogr.txt%20", "400"),
        ("cardiogr.txt.", "400"),
        ("cardiogr.text", "403"),
    ] {
        let answer = serving.curl(&put, &format!("/{name}"));
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.ends_with(code), "{name}: {answer}");
        assert_eq!(
            serving.curl(&["-w", "%{http_code}", "-o", "/dev/null"], "/CARDIOGR.TXT"),
            b"403"
        );
    }
    assert_eq!(serving.end("-INT").code, Some(130));
    let found = tool(own.path(), "mtype", &["-i", "card.img", "::/CARDIOGR.TXT"]);
    assert!(!found.status.success());
    let listed = must(own.path(), "mdir", &["-i", "card.img", "::/"]);
    let listed = String::from_utf8_lossy(&listed).into_owned();
    assert!(listed.contains("CARDIO~1 TXT"), "{listed}");
    assert!(!listed.contains("CARDIOGR TXT"), "{listed}");
}

#[test]
fn images_without_a_fat_file_system_are_refused() {
    let own = directory();
    fs::write(own.path().join("zeros.img"), vec![0; 1 << 20]).unwrap();
    for (target, part) in [
        ("zeros.img", "use a card or an image with FAT16 or FAT32"),
        ("/dev/null", "/dev/null"),
    ] {
        let child = command(own.path(), &["serve", target, "--listen", "127.0.0.1:0"]);
        let run = common::Run::from({ child }.output().unwrap());
        assert_eq!(run.code, Some(2), "{target}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{target}: {}", run.stderr);
    }
}
