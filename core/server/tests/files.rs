//! Lists, files, ranges and entity tags.

use crate::memory;

use cardiograph_server::Config;
use memory::Memory;
use memory::client::{CONFIG, get, raw, request, responses};
use memory::socket::End;

fn numbers(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 / 3) as u8).collect()
}

#[test]
fn a_file_arrives_whole() {
    let memory = Memory::default();
    let bytes = numbers(5000);
    memory.file("/a.bin", &bytes);
    let response = get(&memory, "/a.bin");
    assert_eq!((response.status, response.is_whole), (200, true));
    assert_eq!(response.body, bytes);
    assert_eq!(response.field("Content-Length"), Some("5000"));
    assert_eq!(response.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(
        response.field("Content-Type"),
        Some("application/octet-stream")
    );
    assert_eq!(response.field("Content-Security-Policy"), Some("sandbox"));
    assert_eq!(response.field("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(
        response.field("Last-Modified"),
        Some("Sun, 09 Sep 2001 01:46:40 GMT")
    );
    let head = request(&memory, "HEAD /a.bin", "");
    assert_eq!(head.fields, response.fields);
    assert!(head.body.is_empty());
    assert_eq!(
        request(&memory, "HEAD /a.bin", "Range: bytes=1-2\r\n"),
        head
    );
}

#[test]
fn a_list_has_the_fields_of_the_stock_server_and_more() {
    let memory = Memory::default();
    memory.directory("/LOG00000");
    memory.file("/a \"b\".csv", b"12345");
    memory.growing("/c.csv", b"1", 7);
    memory.file("/.hidden", b"1");
    memory.file("/x.PART", b"1");
    memory.file("/CARDIOGR.JNL", b"1");
    let response = get(&memory, "/list?dir=/");
    assert_eq!(response.status, 200);
    assert_eq!(
        response.text(),
        "[{\"type\":\"dir\",\"name\":\"LOG00000\"},\n\
         {\"type\":\"file\",\"name\":\"a \\\"b\\\".csv\",\"size\":5,\"time\":1000000000},\n\
         {\"type\":\"file\",\"name\":\"c.csv\",\"size\":1,\"time\":1000000000,\"growing\":true}]\n"
    );
    assert_eq!(get(&memory, "/list?dir=/LOG00000").text(), "[]\n");
    assert_eq!(get(&memory, "/list?dir=/none").status, 404);
    assert_eq!(get(&memory, "/list?dir=/c.csv").status, 409);
    assert_eq!(get(&memory, "/list").status, 400);
}

#[test]
fn two_requests_on_one_connection() {
    let memory = Memory::default();
    memory.file("/a.txt", b"first");
    memory.file("/b.txt", b"second");
    let requests = b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let sent = raw(&memory, CONFIG, vec![requests.to_vec()], End::Close);
    let responses = responses(&sent, &["GET", "GET"]);
    assert_eq!(responses[0].body, b"first");
    assert_eq!(responses[1].body, b"second");
}

#[test]
fn ranges_and_tags() {
    let memory = Memory::default();
    memory.file("/a.bin", b"0123456789");
    let tag = get(&memory, "/a.bin").field("ETag").unwrap().to_string();
    let part = |fields: &str| {
        let response = request(&memory, "GET /a.bin", fields);
        let range = response.field("Content-Range").map(str::to_string);
        (response.status, range, response.text().to_string())
    };
    let content = |text: &str| Some(text.to_string());
    assert_eq!(
        part("Range: bytes=2-4\r\n"),
        (206, content("bytes 2-4/10"), "234".into())
    );
    assert_eq!(
        part("Range: bytes=-3\r\n"),
        (206, content("bytes 7-9/10"), "789".into())
    );
    assert_eq!(part("Range: bytes=10-\r\n").0, 416);
    assert_eq!(part("Range: bytes=10-\r\n").1, content("bytes */10"));
    let whole = (200, None, "0123456789".to_string());
    assert_eq!(part("Range: bytes=0-1,3-4\r\n"), whole);
    assert_eq!(part("Range: lines=0-1\r\n"), whole);
    assert_eq!(part("Range: bytes=4-2\r\n"), whole);
    assert_eq!(
        part(&format!("Range: bytes=2-4\r\nIf-Range: {tag}\r\n")).0,
        206
    );
    assert_eq!(part("Range: bytes=2-4\r\nIf-Range: \"other\"\r\n"), whole);
    let date = "Range: bytes=2-4\r\nIf-Range: Sun, 09 Sep 2001 01:46:40 GMT\r\n";
    assert_eq!(part(date), whole);
    let unchanged = request(
        &memory,
        "GET /a.bin",
        &format!("If-None-Match: \"x\", W/{tag}\r\n"),
    );
    assert_eq!(
        (unchanged.status, unchanged.field("ETag")),
        (304, Some(tag.as_str()))
    );
    memory.file("/a.bin", b"0123456789");
    assert_eq!(part(&format!("If-None-Match: {tag}\r\n")), whole);
    assert_eq!(
        part(&format!("Range: bytes=2-4\r\nIf-Range: {tag}\r\n")),
        whole
    );
    memory.file("/empty", b"");
    assert_eq!(get(&memory, "/empty").body, b"");
    assert_eq!(
        request(&memory, "GET /empty", "Range: bytes=0-\r\n").status,
        416
    );
}

/// A download of a growing file continues with the entity tag from its beginning, even after the file is finished.
#[test]
fn a_growing_file_continues() {
    let memory = Memory::default();
    memory.growing("/a.csv", b"12345", 0xAB);
    let first = get(&memory, "/a.csv");
    assert_eq!(first.field("ETag"), Some("\"000000ab-5\""));
    memory.growing("/a.csv", b"12345678", 0xAB);
    let fields = "Range: bytes=5-\r\nIf-Range: \"000000ab-5\"\r\n";
    let next = request(&memory, "GET /a.csv", fields);
    assert_eq!((next.status, next.text()), (206, "678"));
    assert_eq!(next.field("ETag"), Some("\"000000ab-8\""));
    for tag in ["\"000000ac-5\"", "\"000000ab-9\"", "\"ab\"", "000000ab-5"] {
        let fields = format!("Range: bytes=5-\r\nIf-Range: {tag}\r\n");
        assert_eq!(request(&memory, "GET /a.csv", &fields).status, 200, "{tag}");
    }
}

#[test]
fn a_file_is_followed_until_it_is_finished() {
    let memory = Memory::default();
    memory.growing("/a.csv", b"1,2\n", 1);
    memory
        .growth
        .borrow_mut()
        .extend([b"3,4\n".to_vec(), vec![], vec![b'x'; 3000]]);
    let response = {
        let bytes = b"GET /a.csv?follow=1 HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n".to_vec();
        let sent = raw(&memory, CONFIG, vec![bytes], End::Silence);
        responses(&sent, &[]).remove(0)
    };
    assert!(response.is_whole);
    assert_eq!(
        response.body,
        [b"1,2\n3,4\n".as_slice(), &[b'x'; 3000]].concat()
    );
    assert_eq!(get(&memory, "/a.csv?follow=1&offset=3005").body, b"xxx");
    assert_eq!(get(&memory, "/a.csv?follow=1&offset=4000").status, 416);
    // The client disconnects: the server does not wait for the file.
    memory.growing("/a.csv", b"1", 1);
    memory.growth.borrow_mut().extend(vec![vec![b'y']; 1000]);
    let bytes = b"GET /a.csv?follow=1 HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n".to_vec();
    raw(&memory, CONFIG, vec![bytes], End::Close);
    assert!(memory.growth.borrow().len() > 990);
}

#[test]
fn a_failure_within_a_file_interrupts_the_answer() {
    let memory = Memory::default();
    memory.growing("/a.csv", b"12345", 1);
    memory.growth.borrow_mut().extend([b"678".to_vec()]);
    let missing = get(&memory, "/b.csv");
    assert_eq!(
        (missing.status, missing.text()),
        (404, "there is no file or directory with this path\n")
    );
    memory.failure.set(Some(cardiograph_server::Error::NoCard));
    let failed = get(&memory, "/a.csv");
    assert_eq!(
        (failed.status, failed.field("Retry-After")),
        (503, Some("1"))
    );
}

#[test]
fn a_folder_has_a_page_that_needs_no_scripts() {
    let memory = Memory::default();
    memory.directory("/d");
    memory.file("/d/<b> & \"c\".csv", b"1");
    memory.growing("/d/now.csv", b"1", 1);
    let page = get(&memory, "/d/");
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    let policy = page.field("Content-Security-Policy").unwrap();
    assert!(policy.contains("default-src 'none'"));
    let text = page.text();
    assert!(text.contains("&lt;b&gt; &amp; &quot;c&quot;.csv"), "{text}");
    assert!(
        text.contains("<form action=\"/d/%3Cb%3E%20%26%20%22c%22.csv\"><button name=\"delete\"")
    );
    // A program that follows every link gets the files once, and no page that asks whether to remove them.
    let mut links = text.split("href=\"").skip(1);
    assert!(
        links.all(|link| !link.split('"').next().unwrap().contains('?')),
        "{text}"
    );
    assert!(!text.contains("<b>"));
    // Every script is a file of the page.
    let scripts = text.matches("<script").count();
    assert_eq!(scripts, text.matches("<script src=\"/page/").count());
    assert_eq!(scripts > 0, cfg!(feature = "page"));
    assert!(!text.contains("<form action=\"/d/now.csv\""));
    assert!(text.contains("action=\"/edit?dir=/d\""));
    memory.file("/d/index.htm", b"<script>alert(1)</script>");
    // If everybody may upload, it is a file like any other, and the list stays.
    assert!(get(&memory, "/d").text().contains("href=\"/d/index.htm\""));
    let read_only = Config {
        is_read_only: true,
        ..CONFIG
    };
    let with_password = Config {
        basic_auth: Some("dTpw"),
        ..CONFIG
    };
    for config in [read_only, with_password] {
        let request = "GET /d HTTP/1.1\r\nHost: 10.0.0.1\r\nAuthorization: Basic dTpw\r\n\r\n";
        let sent = raw(&memory, config, vec![request.into()], End::Close);
        let own = responses(&sent, &[]).remove(0);
        assert_eq!(own.text(), "<script>alert(1)</script>");
        assert_eq!(own.field("Content-Security-Policy"), Some("sandbox"));
    }
    let saved = get(&memory, "/d/index.htm?download=1");
    assert_eq!(
        saved.field("Content-Type"),
        Some("application/octet-stream")
    );
    assert_eq!(
        saved.field("Content-Disposition"),
        Some("attachment; filename*=UTF-8''index.htm")
    );
}

#[test]
fn only_a_folder_in_a_folder_has_a_parent() {
    let memory = Memory::default();
    memory.directory("/d");
    memory.directory("/d/e");
    assert!(!get(&memory, "/").text().contains("Parent folder"));
    for (folder, parent) in [("/d", "/"), ("/d/e", "/d")] {
        let link = format!("<a href=\"{parent}\">Parent folder</a>");
        assert!(get(&memory, folder).text().contains(&link), "{folder}");
    }
}

/// Every name in a list can be requested, or the list gives the reason why not.
#[test]
fn names_that_cannot_be_requested_are_marked() {
    let memory = Memory::default();
    memory.directory("/d");
    memory.directory("/d/50%");
    let long = format!("/d/{}", "x".repeat(253));
    for path in [
        "/d/100%.csv",
        "/d/a\\b",
        "/d/dot.",
        "/d/tab\t",
        &long,
        "/live",
        "/status",
    ] {
        memory.file(path, b"x");
    }
    for path in [
        "/d/plain .csv",
        "/d/live",
        "/edit",
        "/a+b",
        &format!("/d/{}", "y".repeat(252)),
    ] {
        memory.file(path, b"x");
    }
    for folder in ["/", "/d"] {
        let page = get(&memory, folder);
        let list = get(&memory, &format!("/list?dir={folder}"));
        let mut marked = 0;
        for line in list.text().lines() {
            let name = line.split("\"name\":\"").nth(1).unwrap();
            let name = name.split("\",").next().unwrap();
            let name = name.split("\"}").next().unwrap();
            let name = name.replace("\\\\", "\\").replace("\\u0009", "\t");
            let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let target = format!("{}/{encoded}", folder.trim_end_matches('/'));
            let is_marked = line.contains(",\"unavailable\":\"the ");
            marked += usize::from(is_marked);
            // With encoded letters, a file can be requested although the server itself answers at its path.
            let is_own = ["live", "status"].contains(&&*name) && folder == "/";
            let is_served = get(&memory, &target).status == 200 && !is_own;
            assert_eq!(is_served, !is_marked, "{line}");
            let cell = format!("<td>{name}");
            assert_eq!(page.text().contains(&cell), is_marked, "{name}");
        }
        assert_eq!(marked, if folder == "/" { 2 } else { 6 });
        assert_eq!(page.text().matches("no link: the ").count(), marked);
    }
}

#[test]
fn many_and_long_names() {
    let memory = Memory::default();
    for number in 0..300 {
        let part = ["\u{e9}&\"\\", "\u{e9}&\"'"][number % 2];
        memory.file(&format!("/{number:03}{}", part.repeat(30)), b"");
    }
    memory.file(&format!("/{}", "\u{1}\"".repeat(120)), b"");
    let list = get(&memory, "/list?dir=/");
    assert!(list.is_whole);
    assert_eq!(list.text().matches("\"type\":\"file\"").count(), 301);
    let page = get(&memory, "/");
    assert!(page.is_whole);
    // Names with backslashes or control characters have no links.
    assert_eq!(page.text().matches("\" download>").count(), 150);
    assert_eq!(page.text().matches("no link").count(), 151);
}

#[test]
fn the_longest_name() {
    let memory = Memory::default();
    let path = format!("/{}", "\u{e9}".repeat(127));
    memory.file(&path, b"contents");
    let encoded = format!("/{}", "%C3%A9".repeat(127));
    let response = get(&memory, &format!("{encoded}?download=1"));
    assert_eq!((response.status, response.text()), (200, "contents"));
    assert!(
        response
            .field("Content-Disposition")
            .unwrap()
            .ends_with(&encoded[1..])
    );
    assert_eq!(get(&memory, &format!("{encoded}?delete=1")).status, 200);
    assert_eq!(get(&memory, "/?tar=1").body.len(), 512 * (3 + 1 + 2));
}
