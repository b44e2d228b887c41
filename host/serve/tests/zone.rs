//! Times of an image in a zone that is not UTC, compared with `date` and mtools.

use cardiograph_serve::{Listener, ServedCard, Settings};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with an image, in a process in another zone.
const IMAGE: &str = "CARDIOGRAPH_TEST_IMAGE";
/// India: five and a half hours east of UTC, so that even minutes differ.
const ZONE: &str = "IST-5:30";

fn run(program: &str, args: &[&str], zone: &str) -> String {
    let mut command = Command::new(program);
    let output = command.args(args).env("TZ", zone).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Process that the next test runs in another zone: serves an image until the test ends it.
#[test]
fn in_another_zone() {
    let Some(image) = std::env::var_os(IMAGE).map(PathBuf::from) else {
        return;
    };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    println!("\naddress {}", listener.address().unwrap());
    let card = ServedCard::open(&image, false).unwrap();
    listener
        .serve_card(card, &Settings::default(), &|| false)
        .unwrap();
}

fn now(zone: &str) -> String {
    run("date", &["+%Y-%m-%d %H:%M"], zone).trim().to_string()
}

/// Returns the time that mtools show, which is that of the directory entry.
fn entry_time(image: &Path, name: &str) -> String {
    let image = image.to_str().unwrap();
    let list = run("mdir", &["-i", image, &format!("::{name}")], "UTC");
    let line = list
        .lines()
        .find(|line| line.contains(':') && line.contains('-'));
    let words = Vec::from_iter(line.unwrap().split_whitespace());
    let date = words
        .iter()
        .position(|word| word.matches('-').count() == 2)
        .unwrap();
    // Hours before ten have one digit.
    format!("{} {:0>5}", words[date], words[date + 1])
}

#[test]
#[ignore = "needs mtools"]
fn an_upload_to_an_image_has_the_local_time() {
    let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = own.path().join("card.img");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    run("mkfs.fat", &["-F", "32", image.to_str().unwrap()], "UTC");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["zone::in_another_zone", "--exact", "--nocapture"])
        .env(IMAGE, &image)
        .env("TZ", ZONE)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut addresses = lines.map_while(Result::ok).filter_map(|line| {
        let address = line.strip_prefix("address ");
        address.map(str::to_string)
    });
    let url = format!("http://{}/NEW.TXT", addresses.next().unwrap());
    let date = ["%Y-%m-%d %H:%M", "%a, %d %b %Y %H:%M"];
    let before = (now(ZONE), run("date", &[&format!("+{}", date[1])], "UTC"));
    let put = ["--silent", "--fail", "-T", "-", &url];
    let mut upload = Command::new("curl")
        .args(put)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut upload.stdin.take().unwrap(), b"new").unwrap();
    assert!(upload.wait().unwrap().success());
    let head = run("curl", &["--silent", "--fail", "--head", &url], "UTC");
    let after = (now(ZONE), run("date", &[&format!("+{}", date[1])], "UTC"));
    child.kill().unwrap();
    child.wait().unwrap();

    let stored = entry_time(&image, "NEW.TXT");
    assert!(
        [&before.0, &after.0].contains(&&stored),
        "{stored}: {before:?} {after:?}"
    );
    let modified = head
        .lines()
        .find_map(|line| line.strip_prefix("Last-Modified: "));
    let modified = modified.unwrap();
    let is_now = |time: &str| modified.starts_with(time.trim());
    assert!(
        is_now(&before.1) || is_now(&after.1),
        "{modified}: {before:?}"
    );
}
