use super::*;
use proptest::prelude::*;
use std::format;
use std::string::ToString;
use std::vec::Vec;

fn parse(text: &str) -> Result<Settings, SettingsError> {
    Settings::parse(text.as_bytes())
}

fn error(text: &str) -> (u16, ErrorKind) {
    let error = parse(text).unwrap_err();
    (error.line, error.kind)
}

#[test]
fn the_server_protects_the_file() {
    assert!(cardiograph_server::is_protected(FILE_NAME));
    assert!(cardiograph_server::is_protected(&FILE_NAME.to_lowercase()));
}

#[test]
fn a_file_with_every_key() {
    let text = "\u{FEFF}# Wi-Fi\r\n\r\n  ssid = Caf\u{e9} 1 \t\r\npassword=\" a=b##c \"\r\n\
                name=Barn-2\r\ntime-server = pool.ntp.org";
    let settings = parse(text).unwrap();
    let router = settings.router.unwrap();
    assert_eq!(router.ssid, "Caf\u{e9} 1");
    assert_eq!(router.password.unwrap().as_str(), " a=b##c ");
    assert_eq!(settings.name, "Barn-2");
    assert_eq!(settings.time_server.unwrap(), "pool.ntp.org");
}

#[test]
fn an_empty_file_means_an_access_point() {
    for text in ["", "\n\r\n", "# nothing\n", "\u{FEFF}"] {
        assert_eq!(parse(text).unwrap(), Settings::default());
    }
    let settings = Settings::default();
    assert_eq!((settings.router, settings.time_server), (None, None));
    assert_eq!(settings.name, "cardiograph");
}

#[test]
fn limits_of_802_11() {
    for (length, is_valid) in [(0, false), (1, true), (32, true), (33, false)] {
        let text = format!("ssid=\"{}\"", "s".repeat(length));
        assert_eq!(parse(&text).is_ok(), is_valid, "{length}");
    }
    // 17 letters of two bytes each.
    assert_eq!(
        error(&format!("ssid={}", "\u{e9}".repeat(17))).1,
        ErrorKind::Ssid
    );
    for (length, is_valid) in [(0, false), (7, false), (8, true), (63, true), (64, false)] {
        let text = format!("ssid=a\npassword={}", "p".repeat(length));
        assert_eq!(parse(&text).is_ok(), is_valid, "{length}");
    }
    for letter in ['\u{1}', '\t', '\u{7F}', '\u{e9}'] {
        let text = format!("ssid=a\npassword=\"{letter}{letter}longenough\"");
        assert_eq!(error(&text), (2, ErrorKind::Password), "{letter:?}");
    }
}

#[test]
fn errors_name_line_and_remedy() {
    use ErrorKind::*;
    let key = format!("ssid=a\npassword={}", "0aF1".repeat(16));
    for (text, line, kind) in [
        ("ssid=a\nssid=a", 2, Repeated),
        ("ssid=a\n\nnonsense", 3, NoEqualsSign),
        ("SSID=a", 1, UnknownKey),
        ("=a", 1, UnknownKey),
        ("\n\npassword=12345678\nname=a", 3, PasswordWithoutSsid),
        ("name=-a", 1, Name),
        ("name=a_b", 1, Name),
        ("name=a.b", 1, Name),
        ("name=aaaaaaaaaaaaaaaaaaaaaaaaa", 1, Name),
        ("time-server=", 1, TimeServer),
        ("time-server=a..b", 1, TimeServer),
        ("time-server=a b", 1, TimeServer),
        (&key, 2, PasswordIsKey),
    ] {
        assert_eq!(error(text), (line, kind), "{text:?}");
    }
    let is_not_utf8 = Settings::parse(b"name=a\nssid=\xE9t\xE9").unwrap_err();
    assert_eq!((is_not_utf8.line, is_not_utf8.kind), (2, NotUtf8));
    let is_utf16 = Settings::parse(b"\xFF\xFEs\0s\0i\0d\0").unwrap_err();
    assert_eq!((is_utf16.line, is_utf16.kind), (1, Utf16));
    let is_long = Settings::parse(&[b'\n'; FILE_BYTES_MAX + 1]).unwrap_err();
    assert_eq!((is_long.line, is_long.kind), (0, FileTooLong));
    assert!(Settings::parse(&[b'\n'; FILE_BYTES_MAX]).is_ok());
    assert_eq!(
        parse("\nname=").unwrap_err().to_string(),
        "CARDIOGR.TXT, line 2: a name has 1 to 24 letters a to z, digits, and hyphens between them; choose another one"
    );
}

#[test]
fn nothing_shows_the_password() {
    let settings = parse("ssid=a\npassword=verysecret").unwrap();
    assert!(!format!("{settings:?}").contains("verysecret"));
    for text in ["passwort=verysecret", "password=verysecret", "verysecret"] {
        assert!(!parse(text).unwrap_err().to_string().contains("verysecret"));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused_with_a_line(file in proptest::collection::vec(any::<u8>(), 0..1100)) {
        check(&file);
    }

    #[test]
    fn any_lines_are_parsed_or_refused_with_a_line(lines in proptest::collection::vec(line(), 0..8)) {
        check(lines.join("\n").as_bytes());
    }

    #[test]
    fn written_settings_are_read_back(
        ssid in "[ -~\u{a0}-\u{ff}]{1,16}",
        password in "[ -~]{8,63}",
        name in "[a-zA-Z0-9]([a-z0-9-]{0,22}[a-z0-9])?",
        end in "\r?\n",
    ) {
        let text = format!("ssid=\"{ssid}\"{end}password=\"{password}\"{end}name={name}{end}");
        let settings = parse(&text).unwrap();
        let router = settings.router.unwrap();
        prop_assert_eq!(router.ssid.as_str(), ssid);
        let read = router.password.unwrap();
        prop_assert_eq!(read.as_str(), password);
        prop_assert_eq!(settings.name.as_str(), name);
    }
}

fn line() -> impl Strategy<Value = std::string::String> {
    "(ssid|password|name|time-server|#|x)?[ \t]{0,2}(=)?[ \t\"]{0,2}[ -~\u{80}-\u{100}\r]{0,70}"
}

/// Checks what holds for every file.
fn check(file: &[u8]) {
    let lines = file.split(|byte| *byte == b'\n').collect::<Vec<_>>();
    match Settings::parse(file) {
        Ok(settings) => {
            if let Some(router) = &settings.router {
                assert!((1..=32).contains(&router.ssid.len()));
                let contains = |line: &&&[u8]| {
                    line.windows(router.ssid.len())
                        .any(|part| part == router.ssid.as_bytes())
                };
                assert!(
                    lines.iter().find(contains).is_some(),
                    "the name is in no line"
                );
            }
            assert!((1..=24).contains(&settings.name.len()));
        }
        Err(error) if error.kind == ErrorKind::FileTooLong => assert!(file.len() > 1024),
        Err(error) => assert!((1..=lines.len()).contains(&usize::from(error.line))),
    }
}
