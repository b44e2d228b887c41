//! Completions and manual pages.

use crate::common;

use common::{directory, done, run};
use std::fs;
use std::process::Command;

#[test]
fn bash_completes_commands_and_options() {
    let own = directory();
    let script = done(own.path(), &["completions", "bash"]);
    fs::write(own.path().join("completions"), script).unwrap();
    let complete = |before: &str, last: &str| {
        let words = before.split(' ').count();
        let test = format!(
            "source ./completions; COMP_WORDS=({before} {last}); COMP_CWORD={words}; \
             _cardiograph cardiograph '{last}' ''; echo ${{COMPREPLY[@]}}"
        );
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &test]).current_dir(own.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(complete("cardiograph", "rep"), "reproduce\n");
    assert_eq!(
        complete("cardiograph bench", "--stall"),
        "--stall-threshold\n"
    );
}

#[test]
fn every_command_has_a_page() {
    let own = directory();
    fs::create_dir(own.path().join("man1")).unwrap();
    done(own.path(), &["man", "man1"]);
    for command in [
        "bench", "analyze", "compare", "record", "plan", "serve", "get",
    ] {
        let path = own.path().join(format!("man1/cardiograph-{command}.1"));
        let page = fs::read_to_string(path).unwrap();
        assert!(
            page.contains(&format!(".TH cardiograph-{command} 1")),
            "{page}"
        );
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    // Like every output, a page replaces another file only with --force.
    let again = run(own.path(), &["man", "man1"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    done(own.path(), &["man", "man1", "--force"]);
    let missing = run(own.path(), &["man", "missing"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing
            .stderr
            .starts_with("error: missing/cardiograph.1: the directory does not exist"),
        "{}",
        missing.stderr
    );
}
