//! Check of wording: comments that begin with a clause instead of a verb or noun, and phrases for which
//! technical English has better terms.
//!
//! The check covers comments of Rust files, their string literals outside tests, and Markdown files.

mod phrases;
mod source;

use crate::run::root;
use phrases::PHRASES;
use source::{Kind, Passage};
use std::fmt;
use std::path::{Path, PathBuf};

/// Folders that the check skips: build output, dated results, and data.
const SKIPPED_FOLDERS: [&str; 6] = [
    ".git",
    "target",
    "benchmarks/runs",
    "tests/data",
    "fuzz/corpus",
    "fuzz/seeds",
];
/// File that contains the phrases themselves.
const PHRASES_FILE: &str = "xtask/src/english/phrases.rs";

/// First words that no comment may begin with: a clause follows, not a sentence.
const FIRST_WORDS: [&str; 6] = ["What", "Whether", "Who", "Where", "How", "That"];
/// First words that no doc comment may begin with; in other comments they may begin a sentence.
const FIRST_WORDS_OF_DOCS: [&str; 2] = ["When", "Which"];

/// A violation of the wording rules.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Lists all violations; fails if there are any.
pub fn all() -> Result<(), String> {
    match list()? {
        0 => Ok(()),
        count => Err(format!(
            "{count} violations of the wording rules; reword them (see CONTRIBUTING.md)"
        )),
    }
}

/// Lists all violations on standard error; returns their number.
pub fn list() -> Result<usize, String> {
    let mut files = Vec::new();
    files_in(&root(), &root(), &mut files)?;
    files.sort();
    let mut count = 0;
    for path in files {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        for finding in findings(&relative(&root(), &path), &text) {
            eprintln!("{finding}");
            count += 1;
        }
    }
    eprintln!("wording: {count} violations");
    Ok(count)
}

/// Collects Rust and Markdown files.
fn files_in(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let at = |error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let path = entry.path();
        let name = relative(root, &path);
        if entry.file_type().map_err(at)?.is_dir() {
            let is_skipped = |skipped: &&str| path.ends_with(skipped);
            if !SKIPPED_FOLDERS.iter().any(is_skipped) {
                files_in(root, &path, files)?;
            }
        } else if (name.ends_with(".rs") && name != PHRASES_FILE) || name.ends_with(".md") {
            files.push(path);
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Returns the violations in a file, in order of their lines.
fn findings(file: &str, text: &str) -> Vec<Finding> {
    let passages = match file.ends_with(".md") {
        true => source::markdown(text),
        false => source::rust(text),
    };
    // Users do not see strings in tests.
    let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
    let mut findings: Vec<_> = passages
        .iter()
        .filter(|passage| !is_test || passage.kind != Kind::Text)
        .flat_map(|passage| first_word(passage).into_iter().chain(phrases_in(passage)))
        .map(|(line, message)| Finding {
            file: file.to_string(),
            line,
            message,
        })
        .collect();
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Checks the first word of a comment.
fn first_word(passage: &Passage) -> Option<(usize, String)> {
    let first = passage.words.first()?;
    let is_listed = match passage.kind {
        Kind::Doc => {
            FIRST_WORDS.contains(&first.text.as_str())
                || FIRST_WORDS_OF_DOCS.contains(&first.text.as_str())
        }
        Kind::Comment => FIRST_WORDS.contains(&first.text.as_str()),
        Kind::Text | Kind::Markdown => false,
    };
    is_listed.then(|| {
        let message = format!(
            "comment begins with `{}`; begin with a verb or a noun",
            first.text
        );
        (first.line, message)
    })
}

/// Finds phrases in all passages but plain comments.
fn phrases_in(passage: &Passage) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if passage.kind == Kind::Comment {
        return found;
    }
    for at in 0..passage.words.len() {
        for phrase in PHRASES {
            if phrase.is_at(&passage.words[at..]) {
                let message = format!("`{}`; better: {}", phrase.words, phrase.instead);
                found.push((passage.words[at].line, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(file: &str, text: &str) -> Vec<(usize, String)> {
        let findings = findings(file, text).into_iter();
        findings
            .map(|finding| (finding.line, finding.message))
            .collect()
    }

    fn lines(file: &str, text: &str) -> Vec<usize> {
        messages(file, text).into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn first_words_of_comments_are_checked() {
        let text = "//! What a file is.\n\n/// Whether it is.\n//\n// How it is.\nfn a() {} // That is it.\n";
        assert_eq!(lines("a.rs", text), [1, 3, 5, 6]);
        assert_eq!(
            messages("a.rs", "/// Who waits.")[0].1,
            "comment begins with `Who`; begin with a verb or a noun"
        );
    }

    #[test]
    fn when_begins_no_doc_comment_but_may_begin_a_comment() {
        assert_eq!(
            lines("a.rs", "/// When it is due.\n// When in doubt.\n"),
            [1]
        );
    }

    #[test]
    fn words_inside_and_after_the_first_line_are_free() {
        let text =
            "/// Returns the place\n/// Where it is.\n// A file.\n// What follows is a sentence.\n";
        assert_eq!(lines("a.rs", text), [0; 0]);
        assert_eq!(lines("a.md", "What it is.\n"), [0; 0]);
        assert_eq!(lines("a.rs", "/// Whatever it is.\n"), [0; 0]);
    }

    #[test]
    fn phrases_are_found_in_strings_docs_and_markdown() {
        assert_eq!(
            lines("a.rs", "fn a() {\n    b(\"leave one of both\")\n}\n"),
            [2]
        );
        assert_eq!(lines("a.rs", "/// Takes\n/// one of\n/// both.\n"), [2]);
        assert_eq!(lines("a.md", "# A\n\nLeave one\nof both.\n"), [3]);
        // The check does not look for phrases in plain comments and code.
        assert_eq!(
            lines("a.rs", "// Leave one of both.\nlet one_of_both = 1;\n"),
            [0; 0]
        );
        assert_eq!(lines("a.md", "```sh\none of both\n```\n"), [0; 0]);
    }

    #[test]
    fn phrases_span_line_continuations_and_ignore_case() {
        let text = "let a = \"first \\\n    line, ONE \\\n    of both\";\n";
        assert_eq!(lines("a.rs", text), [2]);
    }

    #[test]
    fn strings_in_tests_are_free_and_comments_in_them_are_not() {
        let text = "#[cfg(test)]\nmod tests {\n    // What is tested.\n    const A: &str = \"one of both\";\n}\n";
        assert_eq!(lines("a.rs", text), [3]);
    }

    #[test]
    fn phrases_with_conditions() {
        assert_eq!(lines("a.md", "Ten in all. Files in all folders.\n"), [1]);
        assert_eq!(messages("a.md", "In all cases.\n"), []);
        assert_eq!(
            messages("a.md", "There are so many bytes that it fails.\n"),
            []
        );
        assert_eq!(lines("a.md", "Writes so many bytes.\n"), [1]);
        assert_eq!(lines("a.md", "1 field where 2 are due\n"), [1]);
        assert_eq!(messages("a.md", "a pause, one, of both\n"), []);
    }

    #[test]
    fn a_finding_has_file_and_line() {
        let finding = &findings("a/b.md", "\nOne of both.\n")[0];
        assert_eq!(
            finding.to_string(),
            "a/b.md:2: `one of both`; better: either"
        );
    }
}
