//! Arbitrary bytes as a request head: guard and router terminate without a panic, and let through only valid
//! paths and permitted operations. The same bytes from a board's serial port are commands or nothing.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_server::{
    Config, Content, Operation, OrderLine, admit, is_protected, parse, route,
};

const CONFIG: Config = Config {
    names: &["logger.local"],
    is_read_only: false,
    basic_auth: None,
    secret: 1,
    event_streams_max: 2,
};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let mut line = OrderLine::new();
    let orders = bytes.iter().filter_map(|byte| line.add(*byte)).count();
    let ends = bytes.iter().filter(|byte| b"\r\n".contains(byte)).count();
    assert!(orders <= ends);
    let Ok(head) = parse(bytes) else {
        return;
    };
    if head.content == Content::None {
        // Bytes after the head belong to the next request.
        let is_end = |part: &[u8]| part.starts_with(b"\n\n") || part.starts_with(b"\n\r\n");
        let first = bytes
            .iter()
            .position(|byte| !b"\r\n".contains(byte))
            .unwrap_or(0);
        let end = (first..bytes.len()).find(|at| is_end(&bytes[*at..]));
        let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).to_lowercase();
        assert!(!text.contains("\ncontent-length:") && !text.contains("\ntransfer-encoding:"));
    }
    if admit(&head, &CONFIG).is_err() {
        return;
    }
    let Ok(route) = route(&head, &CONFIG) else {
        return;
    };
    if head.method.is_reading() && route.operation.is_change() {
        assert_eq!(route.operation, Operation::Create);
    }
    if route.operation.is_change() {
        let read_only = Config {
            is_read_only: true,
            ..CONFIG
        };
        assert!(cardiograph_server::route(&head, &read_only).is_err());
        assert!(
            head.fields
                .sec_fetch_site
                .is_none_or(|site| site == "same-origin" || site == "none")
        );
    }
    if route.path.is_empty() || route.path == "/" {
        return;
    }
    let names = route
        .path
        .strip_prefix('/')
        .expect("a path begins with a slash");
    for name in names.split('/') {
        assert!(!name.is_empty() && !is_protected(name) && name != "..");
        assert!(!name.contains(['%', '\\', '\0', '\r', '\n']));
    }
});
