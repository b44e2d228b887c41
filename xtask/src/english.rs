//! Check of wording: comments that begin with a clause instead of a verb or noun, and phrases of `english.txt`, for
//! which technical English has better terms.

use crate::run::{output_of, root};
use std::process::Command;

const PHRASES: &str = include_str!("../english.txt");
/// First words that no comment may begin with: a clause follows, not a sentence.
const FIRST_WORDS: [&str; 6] = ["What", "Whether", "Who", "Where", "How", "That"];
/// First words that no doc comment may begin with; in other comments they may begin a sentence.
const FIRST_WORDS_OF_DOCS: [&str; 2] = ["When", "Which"];
/// Dated results and data, which quote other programs, and test code, the texts of which no user sees.
const SKIPPED: [&str; 4] = ["benchmarks/runs/", "tests/data/", "fuzz/seeds/", "/tests/"];

/// Lists all violations on standard error; fails if there are any.
pub fn all() -> Result<(), String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let files = output_of(list.args(["*.rs", "*.md"]).current_dir(root()))?;
    let mut count = 0;
    for file in files.lines() {
        // A file that was removed is still listed until its removal is committed.
        let Ok(text) = std::fs::read_to_string(root().join(file)) else {
            continue;
        };
        for (line, message) in violations(file, &text) {
            eprintln!("{file}:{line}: {message}");
            count += 1;
        }
    }
    match count {
        0 => Ok(()),
        count => Err(format!(
            "{count} violations of the wording rules; reword them (see CONTRIBUTING.md)"
        )),
    }
}

/// Returns the violations in a file, with their lines.
fn violations(file: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = match file.ends_with(".rs") {
        true => first_words(text),
        false => Vec::new(),
    };
    if !SKIPPED.iter().any(|part| file.contains(part)) {
        // Users do not see strings in tests.
        found.extend(phrases(text.split("#[cfg(test)]").next().unwrap_or("")));
    }
    found
}

/// Checks the first word of each comment.
fn first_words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut marker_before = "";
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let markers = ["//!", "///", "//"];
        let marker = markers.into_iter().find(|marker| line.starts_with(marker));
        let marker = marker.unwrap_or("");
        let content = &line[marker.len()..];
        let word = content.split_whitespace().next().unwrap_or("");
        let is_first = !marker.is_empty() && marker != marker_before;
        let is_doc = marker.len() == 3;
        if is_first
            && (FIRST_WORDS.contains(&word) || (is_doc && FIRST_WORDS_OF_DOCS.contains(&word)))
        {
            let message = format!("comment begins with `{word}`; begin with a verb or a noun");
            found.push((number, message));
        }
        // After an empty plain comment, another comment begins.
        marker_before = match is_doc || !word.is_empty() {
            true => marker,
            false => "",
        };
    }
    found
}

/// Finds the phrases in documents, doc comments and code, also across lines; plain comments are free.
fn phrases(text: &str) -> Vec<(usize, String)> {
    let words = words(text);
    let mut found = Vec::new();
    for entry in PHRASES.lines().filter(|line| !line.starts_with('#')) {
        let Some((phrase, better)) = entry.split_once(" -- ") else {
            continue;
        };
        let phrase_words: Vec<_> = phrase.split(' ').collect();
        for at in words.windows(phrase_words.len()) {
            let is_same = |(expected, (_, word)): (&&str, &(usize, String))| {
                *expected == "*" || is_word(expected, word)
            };
            if phrase_words.iter().zip(at).all(is_same) {
                found.push((at[0].0, format!("`{phrase}`; better: {better}")));
            }
        }
    }
    found
}

/// Compares a word of a phrase. Punctuation after a word counts only if the phrase has it.
fn is_word(expected: &str, word: &str) -> bool {
    let is_mark = |mark: char| !mark.is_alphanumeric();
    let bare = word.trim_start_matches(is_mark);
    bare == expected || (bare.trim_end_matches(is_mark) == expected && !bare.ends_with(','))
}

/// Returns the words of a text in lower case, with their lines.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let content = match line.strip_prefix("//") {
            Some(doc) if doc.starts_with(['/', '!']) => &doc[1..],
            Some(_) => continue,
            None => line,
        };
        words.extend(
            content
                .split(|mark: char| mark.is_whitespace() || matches!(mark, '"' | '('))
                .filter(|word| !word.is_empty() && *word != "\\")
                .map(|word| (number, word.to_lowercase())),
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_and_phrases_are_found() {
        let lines = |file, text| {
            let found = violations(file, text);
            Vec::from_iter(found.into_iter().map(|(line, _)| line))
        };
        let text = "//! What a file is.\n\n/// Whether it is.\n//\n// How it is.\n/// When due.\n";
        assert_eq!(lines("a.rs", text), [1, 3, 5, 6]);
        let text = "/// Returns it\n/// Where it is.\n// When in doubt.\n";
        assert_eq!(lines("a.rs", text), [0; 0]);
        assert_eq!(lines("a.md", "# A\n\nLeave one\nof Both.\n"), [3]);
        assert_eq!(lines("a.rs", "x(\"one \\\n   of both\")\n"), [1]);
        assert_eq!(lines("a.rs", "// one of both\n"), [0; 0]);
        assert_eq!(lines("a.md", "Ten in all. In all cases.\n"), [1]);
        assert_eq!(lines("b/tests/a.rs", "x(\"one of both\")\n"), [0; 0]);
    }
}
