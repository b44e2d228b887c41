//! Downloads, lists and uploads with curl.

use crate::common;

use cardiograph_record::LiveFiles;
use cardiograph_serve::DirectoryStorage;
use common::{Server, noise};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
#[ignore = "needs curl"]
fn curl_downloads_files_and_lists() {
    let server = Server::start();
    let contents = noise(3_000_001, 1);
    server.write("a b.bin", &contents);
    server.write("empty", "");
    fs::create_dir(server.path("folder")).unwrap();
    assert_eq!(server.curl(&[&server.url("/a%20b.bin")]).unwrap(), contents);
    assert_eq!(server.curl(&[&server.url("/empty")]).unwrap(), b"");
    let list = server.curl(&[&server.url("/list?dir=/")]).unwrap();
    let mut list: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    list.sort_by_key(|entry| entry["name"].to_string());
    let fields = |name: &str| Vec::from_iter(list.iter().map(|entry| entry[name].clone()));
    assert_eq!(fields("name"), ["a b.bin", "empty", "folder"]);
    assert_eq!(fields("type"), ["file", "file", "dir"]);
    assert_eq!(list[0]["size"], 3_000_001);
    let error = server.curl(&[&server.url("/none")]).unwrap_err();
    assert!(error.contains("404"), "{error}");
}

#[test]
#[ignore = "needs curl"]
fn curl_continues_a_download() {
    let server = Server::start();
    let contents = noise(1_000_000, 2);
    server.write("file", &contents);
    let part = server.outside().join("part");
    for bytes in [1, 4096, 999_999] {
        fs::write(&part, &contents[..bytes]).unwrap();
        let url = server.url("/file");
        server.curl(&["-C", "-", "-o", "part", &url]).unwrap();
        assert_eq!(fs::read(&part).unwrap(), contents);
    }
}

#[test]
fn a_changed_file_is_not_continued() {
    let server = Server::start();
    server.write("file", noise(1000, 3));
    let tag = server.get("/file").field("ETag").unwrap().to_string();
    let fields = format!("Range: bytes=500-\r\nIf-Range: {tag}\r\n");
    assert_eq!(server.request("GET /file", &fields, b"").status, 206);
    let new = noise(1000, 4);
    server.write("file", &new);
    let response = server.request("GET /file", &fields, b"");
    assert_eq!((response.status, &response.body), (200, &new));
    let fields = format!("If-None-Match: {tag}\r\n");
    assert_eq!(server.request("GET /file", &fields, b"").status, 200);
}

#[test]
#[ignore = "needs curl"]
fn curl_uploads_with_put_and_with_a_form() {
    let server = Server::start();
    fs::create_dir(server.path("folder")).unwrap();
    let contents = noise(2_000_000, 5);
    fs::write(server.outside().join("local.bin"), &contents).unwrap();
    server
        .curl(&["-T", "local.bin", &server.url("/put.bin")])
        .unwrap();
    assert_eq!(server.read("put.bin"), contents);
    let form = "data=@local.bin;filename=/folder/form.bin";
    server.curl(&["-F", form, &server.url("/edit")]).unwrap();
    assert_eq!(server.read("folder/form.bin"), contents);
    // The form contains only the name of the file, as browsers send it; the argument is the folder.
    let url = server.url("/edit?dir=/folder");
    server.curl(&["-F", "data=@local.bin", &url]).unwrap();
    assert_eq!(server.read("folder/local.bin"), contents);
    assert_eq!(server.names(), ["folder", "put.bin"]);
}

#[test]
fn folders_and_files_are_created_renamed_and_removed() {
    let server = Server::start();
    let done = |line: &str, fields: &str| server.request(line, fields, b"").status;
    assert_eq!(done("PUT /edit?dir=/new", "Content-Length: 0\r\n"), 201);
    assert!(server.path("new").is_dir());
    assert_eq!(
        done("PUT /edit?dir=/new/a.txt", "Content-Length: 0\r\n"),
        201
    );
    assert!(server.path("new/a.txt").is_file());
    let to = format!("Destination: {}\r\n", server.url("/b.txt"));
    assert_eq!(done("MOVE /new/a.txt", &to), 201);
    assert_eq!(server.names(), ["b.txt", "new"]);
    server.write("new/c.txt", "c");
    assert_eq!(done("DELETE /edit?dir=/new", ""), 204);
    assert_eq!(done("DELETE /edit?dir=/b.txt", ""), 204);
    assert_eq!(done("DELETE /edit?dir=/b.txt", ""), 404);
    assert_eq!(server.names(), [""; 0]);
}

#[test]
#[ignore = "needs curl"]
fn tar_reads_a_folder() {
    let server = Server::start();
    fs::create_dir(server.path("folder")).unwrap();
    for index in 0..20 {
        let contents = noise(index * 997, index as u64);
        server.write(&format!("folder/file-{index}"), contents);
    }
    let tar = server.curl(&[&server.url("/folder?tar")]).unwrap();
    fs::write(server.outside().join("all.tar"), &tar).unwrap();
    let extracted = server.outside().join("extracted");
    fs::create_dir(&extracted).unwrap();
    let mut command = Command::new("tar");
    command.args(["xf", "../all.tar"]).current_dir(&extracted);
    assert!(command.status().unwrap().success());
    for index in 0..20 {
        let name = format!("folder/file-{index}");
        assert_eq!(fs::read(extracted.join(&name)).unwrap(), server.read(&name));
    }
    // The download continues in the middle of a header.
    fs::write(server.outside().join("all.tar"), &tar[..5000]).unwrap();
    let url = server.url("/folder?tar");
    server.curl(&["-C", "-", "-o", "all.tar", &url]).unwrap();
    assert_eq!(fs::read(server.outside().join("all.tar")).unwrap(), tar);
}

#[test]
#[ignore = "needs curl"]
fn a_tar_has_every_file_or_says_why_not() {
    let server = Server::start();
    let folder = "d".repeat(100);
    fs::create_dir(server.path(&folder)).unwrap();
    let odd = ["100%", "a\\b", "dot.", "blank ", "line\nend", "plain"];
    for name in odd {
        server.write(&format!("{folder}/{name}"), name);
    }
    let url = server.url(&format!("/{folder}?tar"));
    let tar = server.curl(&[&url]).unwrap();
    fs::write(server.outside().join("all.tar"), tar).unwrap();
    let extracted = server.outside().join("extracted");
    fs::create_dir(&extracted).unwrap();
    let mut command = Command::new("tar");
    command.args(["xf", "../all.tar"]).current_dir(&extracted);
    assert!(command.status().unwrap().success());
    for name in odd {
        let file = extracted.join(&folder).join(name);
        assert_eq!(fs::read_to_string(file).unwrap(), name);
    }
    let list = server.curl(&[&server.url(&format!("/list?dir=/{folder}"))]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list.unwrap()).unwrap();
    for entry in &list {
        let is_plain = entry["name"] == "plain";
        assert_eq!(entry.get("unavailable").is_none(), is_plain, "{entry}");
    }
    server.write(&format!("{folder}/{}", "x".repeat(200)), "long path");
    let response = server.get(&format!("/{folder}?tar"));
    assert_eq!(response.status, 409);
    assert!(
        response
            .text()
            .contains("longer than 255 bytes: shorten its name")
    );
}

#[test]
#[ignore = "needs curl"]
fn a_folder_of_ten_thousand_names_is_listed() {
    let server = Server::start();
    for index in 0..10_000 {
        server.write(&format!("a-long-name-{index:05}.csv"), "");
    }
    let list = server.curl(&[&server.url("/list?dir=/")]).unwrap();
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    let mut names = Vec::from_iter(list.iter().map(|entry| entry["name"].as_str().unwrap()));
    names.sort();
    let expected = Vec::from_iter((0..10_000).map(|index| format!("a-long-name-{index:05}.csv")));
    assert_eq!(names, expected);
    let page = server.curl(&[&server.url("/")]).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("\" download>").count(), 10_000);
}

#[test]
#[ignore = "needs curl"]
fn names_that_are_not_utf8_are_listed_without_a_link() {
    let server = Server::start();
    server.write("good.txt", "good");
    let name = OsStr::from_bytes(b"bad\xFF.txt");
    fs::write(server.directory().join(name), "bad").unwrap();
    let list = server.curl(&[&server.url("/list?dir=/")]).unwrap();
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    let bad = list.iter().find(|entry| entry["name"] == "bad\u{FFFD}.txt");
    let reason = bad.unwrap()["unavailable"].as_str().unwrap();
    assert!(reason.contains("not UTF-8"), "{reason}");
    assert_eq!(list.len(), 2);
    let page = server.get("/").text();
    assert!(page.contains("<td>bad\u{FFFD}.txt<td>"), "{page}");
    let tar = server.get("/?tar=1");
    assert_eq!(tar.status, 409);
    assert!(tar.text().contains("not UTF-8"));
}

/// A server that was killed leaves the temporary files of its uploads behind; another server may still use its own.
#[test]
fn leftovers_of_uploads_are_removed_at_the_start() {
    let server = Server::start();
    fs::create_dir_all(server.path("a/b")).unwrap();
    let own = ".cardiograph-upload-0.part";
    for path in [own, "a/b/.cardiograph-upload-7.part", "LOG.CSV.part"] {
        server.write(path, "left");
    }
    let mut upload = server.connect();
    let head = format!(
        "PUT /a/new.txt HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\nbegun",
        server.address
    );
    upload.write_all(head.as_bytes()).unwrap();
    let begun = std::time::Instant::now();
    while !server.path("a").join(own).exists() {
        assert!(begun.elapsed() < common::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let other = DirectoryStorage::open(&server.directory(), LiveFiles::default()).unwrap();
    other.remove_leftovers().join().unwrap();
    assert_eq!(server.names(), ["LOG.CSV.part", "a"]);
    assert_eq!(fs::read_dir(server.path("a/b")).unwrap().count(), 0);
    upload.write_all(b" end").unwrap();
    upload.shutdown(std::net::Shutdown::Write).unwrap();
    common::read_all(&mut upload);
    assert_eq!(server.read("a/new.txt"), b"begun end");
}

/// Parts of the file are in the page cache, and others have to be read from the storage device.
#[test]
fn a_file_that_is_partly_cached_arrives_whole() {
    let server = Server::start();
    let contents = common::noise(9_000_001, 3);
    server.write("a.bin", &contents);
    let file = fs::File::open(server.path("a.bin")).unwrap();
    file.sync_all().unwrap();
    for (start, end) in [
        (0, 9_000_001),
        (65_535, 8_999_999),
        (8_900_000, 9_000_001),
        (7, 8),
    ] {
        for dropped in [1 << 20, 2 << 20, 5 << 20] {
            let advice = rustix::fs::Advice::DontNeed;
            let length = std::num::NonZeroU64::new(1 << 20);
            rustix::fs::fadvise(&file, dropped, length, advice).unwrap();
        }
        let range = format!("Range: bytes={start}-{}\r\n", end - 1);
        let response = server.request("GET /a.bin", &range, b"");
        assert_eq!(response.status, 206);
        assert!(response.body == contents[start..end], "{start}..{end}");
        let tar = server.get("/?tar=1").body;
        assert!(tar[512..][..contents.len()] == contents[..]);
    }
}
