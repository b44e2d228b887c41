//! WebDAV: properties, copies, locks. Real clients test it in host/serve.

use crate::memory;

use cardiograph_server::*;
use memory::client::{CONFIG, Response, responses};
use memory::socket::{Clock, End, Socket, both};
use memory::{Memory, Node};

/// A server with a few files.
struct Rig {
    memory: Memory,
    clock: Clock,
}

const LOCK: &str = "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockinfo>";

impl Rig {
    fn new() -> Rig {
        let memory = Memory::default();
        for folder in ["/d", "/d/sub", "/e"] {
            memory.directory(folder);
        }
        for file in ["/d/a b.csv", "/d/.hidden", "/d/sub/x.csv", "/e/old.csv"] {
            memory.file(file, file.as_bytes());
        }
        memory.growing("/d/LOG00013.CSV", b"1,2\r\n", 5);
        let clock = Clock::default();
        Rig { memory, clock }
    }

    fn server(&self) -> Server<'_, Memory, NoInstrument, Clock> {
        Server::new(&self.memory, &NoInstrument, &self.clock, CONFIG)
    }
}

type MemoryServer<'a> = Server<'a, Memory, NoInstrument, Clock>;

/// Sends a request; `fields` are lines without their ends.
fn ask(rig: &Rig, server: &MemoryServer, line: &str, fields: &[&str], body: &str) -> Response {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {length}\r\n{fields}");
    let segment = format!("{head}\r\n{body}").into_bytes();
    let mut socket = Socket::new(&rig.clock, vec![segment], End::Close);
    let sent = socket.sent.clone();
    rig.clock
        .run(server.serve(&mut socket, &mut Buffers::new()));
    responses(&sent.take(), &[line.split(' ').next().unwrap()]).remove(0)
}

/// Returns the texts between two marks.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    let parts = text.split(start).skip(1);
    parts.map(|part| part.split(end).next().unwrap()).collect()
}

#[test]
fn properties_of_a_folder_and_its_members() {
    let rig = Rig::new();
    let server = rig.server();
    let response = ask(&rig, &server, "PROPFIND /d/", &["Depth: 1"], "");
    assert_eq!(response.status, 207);
    let text = response.text();
    let hrefs = between(text, "<D:href>", "</D:href>");
    assert_eq!(hrefs, ["/d/", "/d/LOG00013.CSV", "/d/a%20b.csv", "/d/sub/"]);
    assert_eq!(between(text, "<D:collection", ">").len(), 2);
    // A file that grows has its durable length.
    let lengths = between(text, "<D:getcontentlength>", "<");
    assert_eq!(lengths, ["5", "10"]);
    let etag = between(text, "<D:getetag>", "</D:getetag>")[1];
    let head = ask(&rig, &server, "HEAD /d/a%20b.csv", &[], "");
    assert_eq!(head.field("ETag"), Some(etag));

    let response = ask(&rig, &server, "PROPFIND /d", &["Depth: 0"], "");
    assert_eq!(between(response.text(), "<D:href>", "<"), ["/d/"]);
    let response = ask(&rig, &server, "PROPFIND /", &["Depth: 1"], "");
    assert_eq!(
        between(response.text(), "<D:href>", "<"),
        ["/", "/d/", "/e/"]
    );
    assert_eq!(
        ask(&rig, &server, "PROPFIND /none", &["Depth: 0"], "").status,
        404
    );
    assert_eq!(
        ask(&rig, &server, "PROPFIND /d/.hidden", &["Depth: 0"], "").status,
        403
    );
}

#[test]
fn requested_properties_are_sent_or_reported_missing() {
    let rig = Rig::new();
    let server = rig.server();
    let body = "<?xml version='1.0'?><p:propfind xmlns:p='DAV:'><p:prop><p:getcontentlength/>\
        <p:resourcetype/><p:quota-available-bytes/><x xmlns='urn:x'/></p:prop></p:propfind>";
    let response = ask(&rig, &server, "PROPFIND /d", &["Depth: 0"], body);
    let stats = between(response.text(), "<D:propstat>", "</D:propstat>");
    assert_eq!(stats.len(), 2);
    assert!(stats[0].contains("<D:resourcetype><D:collection/>") && stats[0].contains("200 OK"));
    assert!(stats[1].contains("<D:getcontentlength/>") && stats[1].contains("404 Not Found"));
    assert!(stats[1].contains("<x xmlns=\"urn:x\"/>"), "{}", stats[1]);
    assert!(!response.text().contains("getetag"));
    let names = "<propfind xmlns='DAV:'><propname/></propfind>";
    let response = ask(&rig, &server, "PROPFIND /d/a%20b.csv", &["Depth: 0"], names);
    assert!(response.text().contains("<D:getetag/>"));
}

#[test]
fn bodies_that_are_endless_or_malformed_are_refused() {
    let rig = Rig::new();
    let server = rig.server();
    for (depth, body, status) in [
        ("infinity", "", 403),
        ("2", "", 400),
        ("0", "<propfind", 400),
        (
            "0",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><propfind><allprop/></propfind>",
            400,
        ),
        ("0", &"<a>".repeat(10_000), 413),
        ("0", "\u{0}", 400),
    ] {
        let fields = [&*format!("Depth: {depth}")];
        let response = ask(&rig, &server, "PROPFIND /d", &fields, body);
        assert_eq!(response.status, status, "{depth} {body}");
    }
}

/// No property can be changed. A client of Microsoft receives a success for its own ones, unless it changes others, too.
#[test]
fn every_property_to_be_changed_has_a_status() {
    let rig = Rig::new();
    let server = rig.server();
    let patched = |properties: &str| {
        let body = format!(
            "<propertyupdate xmlns='DAV:' xmlns:m='urn:schemas-microsoft-com:'><set><prop>{properties}</prop></set>\
             <remove><prop><x xmlns='urn:x'/></prop></remove></propertyupdate>"
        );
        let response = ask(&rig, &server, "PROPPATCH /d", &[], &body);
        assert_eq!(response.status, 207);
        let stats = between(response.text(), "<D:propstat><D:prop>", "</D:status>");
        stats.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let status = |names: &str, status| format!("{names}</D:prop><D:status>HTTP/1.1 {status}");
    let refused = "<D:getetag/><x xmlns=\"urn:x\"/>";
    assert_eq!(
        patched("<getetag>1</getetag>"),
        [status(refused, "403 Forbidden")]
    );
    let time = "<Win32CreationTime xmlns=\"urn:schemas-microsoft-com:\"/>";
    assert_eq!(
        patched("<m:Win32CreationTime>1</m:Win32CreationTime><getetag/>"),
        [
            status(refused, "403 Forbidden"),
            status(time, "424 Failed Dependency")
        ]
    );
    let body = "<propertyupdate xmlns='DAV:' xmlns:m='urn:schemas-microsoft-com:'><set><prop>\
        <m:Win32CreationTime/></prop></set></propertyupdate>";
    let response = ask(&rig, &server, "PROPPATCH /d", &[], body);
    assert!(response.text().contains(&status(time, "200 OK")));
}

/// Unknown properties are repeated in each response: they stay in the buffer after the head.
#[test]
fn a_body_has_to_fit_into_the_buffer_with_its_head() {
    let rig = Rig::new();
    let server = rig.server();
    let body = format!(
        "<propfind xmlns='DAV:'><prop><x xmlns='{}'/></prop></propfind>",
        "n".repeat(650)
    );
    let response = ask(&rig, &server, "PROPFIND /d", &["Depth: 1"], &body);
    assert_eq!(response.status, 207);
    let unknown = format!("<x xmlns=\"{}\"/>", "n".repeat(650));
    assert_eq!(between(response.text(), &unknown, "<").len(), 4);
    let long = format!("X: {}", "x".repeat(800));
    let fields = ["Depth: 1", &*long];
    let response = ask(&rig, &server, "PROPFIND /d", &fields, &body);
    assert_eq!(response.status, 413);
}

#[test]
fn copies_and_moves_replace_what_they_may() {
    let rig = Rig::new();
    let server = rig.server();
    let to = |method: &str, from: &str, to: &str, more: &str| {
        let fields = [&*format!("Destination: {to}"), more];
        ask(&rig, &server, &format!("{method} {from}"), &fields, "").status
    };
    let bytes = |path: &str| rig.memory.bytes(path);
    assert_eq!(to("COPY", "/d/a%20b.csv", "/e/copy.csv", "A: b"), 201);
    assert_eq!(bytes("/e/copy.csv").unwrap(), b"/d/a b.csv");
    assert_eq!(
        to("COPY", "/d/a%20b.csv", "/e/old.csv", "Overwrite: F"),
        412
    );
    assert_eq!(to("MOVE", "/e/copy.csv", "/e/old.csv", "Overwrite: F"), 412);
    assert_eq!(bytes("/e/old.csv").unwrap(), b"/e/old.csv");
    assert_eq!(
        to("COPY", "/d/a%20b.csv", "/e/old.csv", "Overwrite: T"),
        204
    );
    assert_eq!(bytes("/e/old.csv").unwrap(), b"/d/a b.csv");
    assert_eq!(to("MOVE", "/d/sub/x.csv", "/e/old.csv", "A: b"), 204);
    assert_eq!(bytes("/e/old.csv").unwrap(), b"/d/sub/x.csv");
    assert_eq!(bytes("/d/sub/x.csv"), None);
    // A folder neither contains nor replaces itself.
    for (from, target) in [
        ("/d", "/d/sub/d"),
        ("/d/sub", "/d"),
        ("/d", "/d"),
        ("/d", "/"),
    ] {
        for method in ["COPY", "MOVE"] {
            assert_eq!(to(method, from, target, "A: b"), 403, "{from} {target}");
        }
    }
    for target in ["/e/x?y=1", "/e/x#y", "http://10.0.0.1/e/x?"] {
        assert_eq!(to("MOVE", "/e/old.csv", target, "A: b"), 400, "{target}");
    }
    assert_eq!(to("COPY", "/d/none", "/e/x", "A: b"), 404);
    assert_eq!(to("COPY", "/d/a%20b.csv", "/none/x", "A: b"), 409);
    assert_eq!(to("COPY", "/d", "/f", "Depth: 0"), 201);
    assert!(matches!(rig.memory.node("/f"), Some(Node::Directory)));
    assert_eq!(to("COPY", "/d", "/g", "A: b"), 201);
    assert_eq!(bytes("/g/a b.csv").unwrap(), b"/d/a b.csv");
    // The durable part of a recording can be copied; the recording is neither moved nor replaced.
    assert_eq!(to("COPY", "/d/LOG00013.CSV", "/e/part.csv", "A: b"), 201);
    assert_eq!(bytes("/e/part.csv").unwrap(), b"1,2\r\n");
    for (from, target) in [
        ("/d/LOG00013.CSV", "/e/old.csv"),
        ("/e/old.csv", "/d/LOG00013.CSV"),
    ] {
        assert_eq!(to("MOVE", from, target, "A: b"), 423, "{from}");
        assert!(rig.memory.node("/e/old.csv").is_some());
    }
    // Nothing is removed for a folder that cannot be moved.
    assert_eq!(to("MOVE", "/d", "/e/old.csv", "Overwrite: T"), 423);
    assert!(rig.memory.node("/e/old.csv").is_some());
}

/// Locks a path; returns the token as it is in fields.
fn lock(rig: &Rig, server: &MemoryServer, path: &str, fields: &[&str]) -> Result<String, u16> {
    let response = ask(rig, server, &format!("LOCK {path}"), fields, LOCK);
    match response.status {
        200 | 201 => Ok(response.field("Lock-Token").unwrap().to_string()),
        status => Err(status),
    }
}

#[test]
fn a_lock_excludes_other_clients() {
    let rig = Rig::new();
    let server = rig.server();
    let token = lock(&rig, &server, "/d", &[]).unwrap();
    let submitted = format!("If: ({token})");
    assert_eq!(lock(&rig, &server, "/d/a%20b.csv", &[]), Err(423));
    let requests = [
        ("PUT /d/a%20b.csv", "A: b"),
        ("PUT /d/sub/new.csv", "A: b"),
        ("MKCOL /d/new", "A: b"),
        ("DELETE /d/sub", "A: b"),
        ("DELETE /edit?dir=/d/sub", "A: b"),
        ("PUT /edit?dir=/d/n", "A: b"),
        ("GET /d/n?create=1", "A: b"),
        ("MOVE /d/sub", "Destination: /e/sub"),
        ("MOVE /e/old.csv", "Destination: /d/old.csv"),
        ("COPY /e/old.csv", "Destination: /d/sub/x.csv"),
        ("PROPPATCH /d", "A: b"),
    ];
    for (line, field) in requests {
        let body = match line.starts_with("PROPPATCH") {
            true => "<propertyupdate xmlns='DAV:'/>",
            false => "",
        };
        let response = ask(&rig, &server, line, &[field], body);
        assert_eq!(response.status, 423, "{line}");
    }
    assert_eq!(rig.memory.bytes("/d/sub/x.csv").unwrap(), b"/d/sub/x.csv");
    assert_eq!(ask(&rig, &server, "GET /d/a%20b.csv", &[], "").status, 200);
    let copied = ask(
        &rig,
        &server,
        "COPY /d/a%20b.csv",
        &["Destination: /e/c"],
        "",
    );
    assert_eq!(copied.status, 201);
    let response = ask(&rig, &server, "PROPFIND /d/a%20b.csv", &["Depth: 0"], "");
    let inner = token.trim_matches(['<', '>']);
    assert_eq!(
        between(response.text(), "<D:locktoken><D:href>", "<"),
        [inner]
    );
    assert_eq!(
        between(response.text(), "<D:lockroot><D:href>", "<"),
        ["/d"]
    );

    assert_eq!(
        ask(&rig, &server, "PUT /d/sub/x.csv", &[&submitted], "new").status,
        204
    );
    let wrong = "If: (<urn:uuid:0>)";
    assert_eq!(
        ask(&rig, &server, "PUT /d/sub/x.csv", &[wrong], "no").status,
        412
    );
    let other = format!("Lock-Token: {token}");
    assert_eq!(ask(&rig, &server, "UNLOCK /e", &[&other], "").status, 409);
    assert_eq!(ask(&rig, &server, "UNLOCK /d", &[], "").status, 400);
    assert_eq!(ask(&rig, &server, "UNLOCK /d", &[&other], "").status, 204);
    assert_eq!(ask(&rig, &server, "DELETE /d/sub", &[], "").status, 204);
}

#[test]
fn locks_nest_only_where_they_do_not_overlap() {
    let rig = Rig::new();
    let server = rig.server();
    let inner = lock(&rig, &server, "/d/sub/x.csv", &[]).unwrap();
    // A lock of a whole folder would contain the inner one, at any depth.
    for folder in ["/d/sub", "/d"] {
        assert_eq!(lock(&rig, &server, folder, &[]), Err(423), "{folder}");
        let depth = ["Depth: infinity"];
        assert_eq!(lock(&rig, &server, folder, &depth), Err(423), "{folder}");
    }
    for line in ["DELETE /d/sub", "DELETE /d", "MOVE /d"] {
        let response = ask(&rig, &server, line, &["Destination: /f"], "");
        assert_eq!(response.status, 423, "{line}");
    }
    // A lock of the folder alone protects its list of names, not the members.
    let outer = lock(&rig, &server, "/d/sub", &["Depth: 0"]).unwrap();
    assert_ne!(inner, outer);
    assert_eq!(ask(&rig, &server, "PUT /d/sub/n", &[], "").status, 423);
    let submitted = format!("If: ({inner})");
    let put = ask(&rig, &server, "PUT /d/sub/x.csv", &[&submitted], "new");
    assert_eq!(put.status, 204);
    // Both tokens are needed where both locks apply.
    let delete = |field: &str| ask(&rig, &server, "DELETE /d/sub/x.csv", &[field], "").status;
    assert_eq!(delete(&submitted), 423);
    let both = format!("If: </d/sub> ({outer}) </d/sub/x.csv> ({inner})");
    assert_eq!(delete(&both), 204);
    // The lock of a removed file ends with it; that of the folder does not.
    assert_eq!(lock(&rig, &server, "/d/sub/x.csv", &[]), Err(423));
    let submitted = format!("If: </d/sub> ({outer})");
    assert!(lock(&rig, &server, "/d/sub/x.csv", &[&submitted]).is_ok());
}

#[test]
fn depths_that_a_method_does_not_have_are_refused() {
    let rig = Rig::new();
    let server = rig.server();
    for (line, depth, status) in [
        ("COPY /d", "1", 400),
        ("MOVE /d", "0", 400),
        ("MOVE /d", "1", 400),
        ("DELETE /d", "0", 409),
        ("DELETE /d", "1", 409),
        ("DELETE /d", "2", 400),
        ("PROPFIND /", "infinity", 403),
        ("PROPFIND /", "-1", 400),
        ("PROPFIND /", "1, 0", 400),
    ] {
        let fields = [&*format!("Depth: {depth}"), "Destination: /f"];
        let response = ask(&rig, &server, line, &fields, "");
        assert_eq!(response.status, status, "{line} {depth}");
    }
    assert!(rig.memory.node("/d/sub/x.csv").is_some());
}

#[test]
fn locks_and_patches_without_sense_are_refused() {
    let rig = Rig::new();
    let server = rig.server();
    let deep = format!("{}{}", "<a>".repeat(5000), "</a>".repeat(5000));
    for body in [
        "<lockinfo",
        "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><lockinfo xmlns='DAV:'/>",
        "<a:lockinfo/>",
        "\u{0}",
        "{}",
        &deep,
    ] {
        for line in ["LOCK /e/old.csv", "PROPPATCH /e/old.csv"] {
            let response = ask(&rig, &server, line, &[], body);
            let is_refused = matches!(response.status, 400 | 413);
            assert!(
                is_refused,
                "{line} {}: {}",
                &body[..body.len().min(60)],
                response.status
            );
        }
    }
    // Nothing was locked.
    assert_eq!(ask(&rig, &server, "DELETE /e/old.csv", &[], "").status, 204);
}

#[test]
fn a_body_without_end_is_refused_when_it_is_too_long() {
    let rig = Rig::new();
    let server = rig.server();
    for method in ["LOCK", "PROPFIND", "PROPPATCH"] {
        let head = format!(
            "{method} /d HTTP/1.1\r\nHost: 10.0.0.1\r\nDepth: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut segments = vec![head.into_bytes()];
        segments.extend((0..2000).map(|_| {
            b"400\r\n<a>"
                .iter()
                .chain(&[b' '; 1021])
                .chain(b"\r\n")
                .copied()
                .collect()
        }));
        let mut socket = Socket::new(&rig.clock, segments, End::Close);
        let sent = socket.sent.clone();
        rig.clock
            .run(server.serve(&mut socket, &mut Buffers::new()));
        let response = responses(&sent.take(), &[method]).remove(0);
        assert_eq!(response.status, 413, "{method}");
    }
}

#[test]
fn a_path_that_does_not_exist_can_be_locked() {
    let rig = Rig::new();
    let server = rig.server();
    let token = lock(&rig, &server, "/d/new.csv", &["Depth: 0"]).unwrap();
    assert_eq!(rig.memory.bytes("/d/new.csv").unwrap(), b"");
    assert_eq!(ask(&rig, &server, "PUT /d/new.csv", &[], "no").status, 423);
    let submitted = format!("If: ({token})");
    assert_eq!(
        ask(&rig, &server, "PUT /d/new.csv", &[&submitted], "yes").status,
        204
    );
    assert_eq!(lock(&rig, &server, "/none/new.csv", &[]), Err(409));
    // The refused lock does not stay.
    rig.memory.directory("/none");
    assert_eq!(ask(&rig, &server, "PUT /none/new.csv", &[], "").status, 201);
    assert_eq!(lock(&rig, &server, "/d/LOG00013.CSV", &[]), Err(423));
    assert_eq!(lock(&rig, &server, "/d", &["Depth: 1"]), Err(400));
}

#[test]
fn locks_end_by_themselves_unless_they_are_refreshed() {
    let rig = Rig::new();
    let server = rig.server();
    let wait = |ms| rig.clock.run(rig.clock.sleep_ms(ms));
    let token = lock(&rig, &server, "/e", &["Timeout: Second-100"]).unwrap();
    wait(90_000);
    let submitted = format!("If: ({token})");
    let fields = [&*submitted, "Timeout: Second-60"];
    let response = ask(&rig, &server, "LOCK /e", &fields, "");
    assert_eq!(response.status, 200);
    assert_eq!(between(response.text(), "<D:timeout>", "<"), ["Second-60"]);
    wait(59_000);
    assert_eq!(ask(&rig, &server, "DELETE /e/old.csv", &[], "").status, 423);
    wait(1_000);
    assert_eq!(ask(&rig, &server, "LOCK /e", &fields, "").status, 412);
    assert_eq!(ask(&rig, &server, "DELETE /e/old.csv", &[], "").status, 204);
}

#[test]
fn the_owner_of_a_lock_is_reported() {
    let rig = Rig::new();
    let server = rig.server();
    let owner = "<D:owner><D:href>mailto:a@b</D:href></D:owner>";
    let body = LOCK.replace("</D:lockinfo>", &format!("{owner}</D:lockinfo>"));
    let response = ask(&rig, &server, "LOCK /e/old.csv", &[], &body);
    assert!(response.text().contains(owner), "{}", response.text());
    let discover = "<propfind xmlns='DAV:'><prop><lockdiscovery/></prop></propfind>";
    let response = ask(&rig, &server, "PROPFIND /e", &["Depth: 1"], discover);
    assert_eq!(between(response.text(), owner, "<").len(), 1);
}

#[test]
fn times_that_cannot_be_stored_are_refused_before_the_upload() {
    let rig = Rig::new();
    let server = rig.server();
    for time in [
        "-1",
        "1.5",
        "+1",
        "",
        "4294967296",
        "9223372036854775807",
        "x",
    ] {
        let field = format!("X-OC-Mtime: {time}");
        let response = ask(&rig, &server, "PUT /e/new.csv", &[&field], "new");
        assert_eq!(response.status, 400, "{time}");
        assert!(rig.memory.node("/e/new.csv").is_none());
    }
    let fields = ["X-OC-Mtime: 4294967295"];
    let response = ask(&rig, &server, "PUT /e/new.csv", &fields, "new");
    assert_eq!(response.status, 201);
}

#[test]
fn the_table_of_locks_is_bounded() {
    let rig = Rig::new();
    let server = rig.server();
    let results: Vec<_> = (0..20)
        .map(|number| lock(&rig, &server, &format!("/e/{number}.csv"), &[]).err())
        .collect();
    assert!(results[..16].iter().all(Option::is_none));
    assert!(results[16..].iter().all(|status| *status == Some(503)));
    assert!(rig.memory.node("/e/16.csv").is_none());
}

#[test]
fn entity_tags_in_if_are_conditions() {
    let rig = Rig::new();
    let server = rig.server();
    let tag = ask(&rig, &server, "HEAD /e/old.csv", &[], "");
    let tag = tag.field("ETag").unwrap();
    for (field, status) in [
        (format!("If: ([{tag}])"), 204),
        (format!("If: ([{tag}])"), 412),
        ("If: ([\"x\"]) (Not <DAV:no-lock>)".to_string(), 204),
        ("If: (Not <DAV:no-lock>) x".to_string(), 400),
        ("If: </d/a%20b.csv> (<urn:uuid:0>)".to_string(), 412),
        (
            "If: <http://10.0.0.2/e/old.csv> (Not <urn:uuid:0>)".to_string(),
            412,
        ),
        (
            "If: <http://10.0.0.1/e/old.csv> (Not <urn:uuid:0>)".to_string(),
            204,
        ),
    ] {
        let response = ask(&rig, &server, "PUT /e/old.csv", &[&field], "new");
        assert_eq!(response.status, status, "{field}");
        if status == 412 {
            assert!(response.text().contains("the field If is not met"));
        }
    }
}

#[test]
fn clients_find_webdav_before_they_log_in() {
    let rig = Rig::new();
    let config = Config {
        basic_auth: Some("dXNlcjpwYXNzd29yZA=="),
        ..CONFIG
    };
    let server = Server::new(&rig.memory, &NoInstrument, &rig.clock, config);
    let response = ask(&rig, &server, "OPTIONS /d", &[], "");
    assert_eq!(response.status, 204);
    assert_eq!(response.field("DAV"), Some("1, 2"));
    assert_eq!(response.field("MS-Author-Via"), Some("DAV"));
    for method in ["PROPFIND", "LOCK", "COPY", "PUT"] {
        assert_eq!(
            ask(&rig, &server, &format!("{method} /d"), &[], "").status,
            401
        );
    }
}

#[test]
fn pages_of_other_sites_reach_no_method() {
    let rig = Rig::new();
    let server = rig.server();
    for method in ["PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "COPY", "MOVE"] {
        for field in ["Origin: http://example.org", "Sec-Fetch-Site: cross-site"] {
            let line = format!("{method} /d");
            let fields = [field, "Destination: /x", "Depth: 0"];
            assert_eq!(ask(&rig, &server, &line, &fields, "").status, 403, "{line}");
        }
    }
}

#[test]
fn a_slow_client_with_a_lock_holds_up_nobody() {
    let rig = Rig::new();
    let server = rig.server();
    let token = lock(&rig, &server, "/d", &[]).unwrap();
    let refreshed = format!("If: ({token})\r\n");
    for (line, fields) in [
        ("LOCK /e", ""),
        ("LOCK /d", &*refreshed),
        ("PROPFIND /d", "Depth: 1\r\n"),
        ("UNLOCK /d", &*format!("Lock-Token: {token}\r\n")),
    ] {
        let body = if line == "LOCK /e" { LOCK } else { "" };
        let length = body.len();
        let slow = format!(
            "{line} HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        );
        let mut one = Socket::new(&rig.clock, [slow.into_bytes()], End::Close);
        one.write_ms = 20;
        one.write_bytes_max = 64;
        // The other client is served while the first one receives its response.
        let other = "PUT /d/x.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 0\r\n\r\n";
        let mut two = Socket::new(&rig.clock, [other.repeat(40).into_bytes()], End::Close);
        two.write_ms = 1;
        let sent = two.sent.clone();
        let (mut first, mut second) = (Buffers::new(), Buffers::new());
        rig.clock.run(both(
            server.serve(&mut one, &mut first),
            server.serve(&mut two, &mut second),
        ));
        assert_eq!(responses(&sent.take(), &[]).len(), 40, "{line}");
    }
}
