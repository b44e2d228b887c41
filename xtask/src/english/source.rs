//! Splits Rust and Markdown files into passages of text with line numbers, by a small lexer.

/// Kind of text that a passage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Doc comment.
    Doc,
    /// Other comment.
    Comment,
    /// String literal.
    Text,
    /// Paragraph of a Markdown file.
    Markdown,
}

/// Consecutive comment lines, a string literal, or a paragraph.
#[derive(Debug)]
pub struct Passage {
    pub kind: Kind,
    pub words: Vec<Word>,
}

/// A word with its context.
#[derive(Debug)]
pub struct Word {
    pub text: String,
    /// Line number, from 1.
    pub line: usize,
    /// True if something other than white space follows before the next word.
    pub ends: bool,
    /// True if a sentence ends after the word.
    pub ends_sentence: bool,
}

/// Collects the words of a passage.
struct Words {
    kind: Kind,
    words: Vec<Word>,
    is_inside: bool,
}

impl Words {
    fn new(kind: Kind) -> Words {
        Words {
            kind,
            words: Vec::new(),
            is_inside: false,
        }
    }

    fn push(&mut self, character: char, line: usize) {
        if character.is_alphanumeric() || character == '_' || character == '\'' {
            if !self.is_inside {
                self.words.push(Word {
                    text: String::new(),
                    line,
                    ends: false,
                    ends_sentence: false,
                });
                self.is_inside = true;
            }
            if let Some(word) = self.words.last_mut() {
                word.text.push(character);
            }
            return;
        }
        self.is_inside = false;
        if let Some(word) = self.words.last_mut() {
            word.ends |= !character.is_whitespace();
            word.ends_sentence |= matches!(character, '.' | ':' | ';' | '|');
        }
    }

    fn push_line(&mut self, text: &str, line: usize) {
        for character in text.chars() {
            self.push(character, line);
        }
        self.push(' ', line);
    }

    fn end_into(self, passages: &mut Vec<Passage>) {
        if !self.words.is_empty() {
            passages.push(Passage {
                kind: self.kind,
                words: self.words,
            });
        }
    }
}

/// Splits a Markdown file into paragraphs and table rows, without code blocks.
pub fn markdown(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut paragraph = Words::new(Kind::Markdown);
    let mut is_code = false;
    for (line, content) in (1..).zip(text.lines()) {
        let is_fence = content.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_row = content.starts_with('|');
        if content.trim().is_empty() || is_fence || is_row {
            std::mem::replace(&mut paragraph, Words::new(Kind::Markdown)).end_into(&mut passages);
        }
        if !is_code && !is_fence {
            paragraph.push_line(content, line);
        }
    }
    paragraph.end_into(&mut passages);
    passages
}

/// Extracts comments and string literals from a Rust file. Strings from the first `#[cfg(test)]` on are
/// omitted.
pub fn rust(text: &str) -> Vec<Passage> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        passages: Vec::new(),
        comment: None,
        is_in_tests: false,
    };
    lexer.run();
    lexer.passages
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    passages: Vec<Passage>,
    /// Line comments being collected: their words, comment marker, and last line number.
    comment: Option<(Words, &'a str, usize)>,
    is_in_tests: bool,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        while let Some(character) = self.rest.chars().next() {
            if !character.is_whitespace() && !self.rest.starts_with("//") {
                // Code after a comment ends the comment.
                self.end_comment();
            }
            if self.rest.starts_with("//") {
                self.line_comment();
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if self.rest.starts_with("#[cfg(test)]") {
                self.is_in_tests = true;
                self.skip(1);
            } else if let Some(hashes) = self.raw_string() {
                self.raw_text(hashes);
            } else if character == '"' {
                self.text();
            } else if character == '\'' {
                self.character_or_lifetime();
            } else if character.is_alphanumeric() || character == '_' {
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
                self.skip(end);
            } else {
                self.skip(character.len_utf8());
            }
        }
        self.end_comment();
    }

    /// Consumes bytes and counts lines.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    fn end_comment(&mut self) {
        if let Some((words, _, _)) = self.comment.take() {
            words.end_into(&mut self.passages);
        }
    }

    fn line_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.line;
        let comment = self.skip(end);
        let is_doc = (comment.starts_with("///") && !comment.starts_with("////"))
            || comment.starts_with("//!");
        let (marker, content) = comment.split_at(if is_doc { 3 } else { 2 });
        let continues = |(_, last_marker, last_line): &(Words, &str, usize)| {
            *last_marker == marker && last_line + 1 == line
        };
        // An empty plain comment ends a comment; a doc comment continues with the next paragraph.
        let is_separator = !is_doc && content.trim().is_empty();
        if is_separator || !self.comment.as_ref().is_some_and(continues) {
            self.end_comment();
        }
        if is_separator {
            return;
        }
        let kind = if is_doc { Kind::Doc } else { Kind::Comment };
        let comment = self
            .comment
            .get_or_insert_with(|| (Words::new(kind), marker, line));
        comment.0.push_line(content, line);
        comment.2 = line;
    }

    fn block_comment(&mut self) {
        let mut words = Words::new(Kind::Comment);
        let mut depth = 0;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.skip(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.skip(2);
                if depth == 0 {
                    break;
                }
            } else if let Some(character) = self.rest.chars().next() {
                words.push(character, self.line);
                self.skip(character.len_utf8());
            } else {
                break;
            }
        }
        words.end_into(&mut self.passages);
    }

    /// Returns the number of `#` in its delimiter if a raw string begins at the current position.
    fn raw_string(&self) -> Option<usize> {
        let prefixed = self.rest.strip_prefix('b').unwrap_or(self.rest);
        let after = prefixed.strip_prefix('r')?;
        let hashes = after.len() - after.trim_start_matches('#').len();
        after[hashes..].starts_with('"').then_some(hashes)
    }

    fn raw_text(&mut self, hashes: usize) {
        let start = self.rest.find('"').map_or(self.rest.len(), |at| at + 1);
        self.skip(start);
        let mark = format!("\"{}", "#".repeat(hashes));
        let end = self.rest.find(&mark).unwrap_or(self.rest.len());
        let mut words = Words::new(Kind::Text);
        let mut line = self.line;
        for character in self.rest[..end].chars() {
            words.push(character, line);
            line += usize::from(character == '\n');
        }
        self.skip((end + mark.len()).min(self.rest.len()));
        self.end_text(words);
    }

    fn text(&mut self) {
        let mut words = Words::new(Kind::Text);
        self.skip(1);
        while let Some(character) = self.rest.chars().next() {
            if character == '"' {
                self.skip(1);
                break;
            }
            if character == '\\' {
                // An escaped line end and the white space after it are not part of the text; other escapes separate
                // words.
                let escaped = self.rest[1..].chars().next();
                self.skip(1 + escaped.map_or(0, char::len_utf8));
                if escaped == Some('\n') {
                    let spaces = self.rest.len() - self.rest.trim_start().len();
                    self.skip(spaces);
                } else {
                    words.push(' ', self.line);
                }
                continue;
            }
            words.push(character, self.line);
            self.skip(character.len_utf8());
        }
        self.end_text(words);
    }

    fn end_text(&mut self, words: Words) {
        if !self.is_in_tests {
            words.end_into(&mut self.passages);
        }
    }

    /// Consumes a character literal, or only the quote of a lifetime.
    fn character_or_lifetime(&mut self) {
        let mut characters = self.rest[1..].char_indices();
        let end = match characters.next() {
            Some((_, '\\')) => {
                let after = self.rest.get(3..).unwrap_or_default();
                after.find('\'').map(|at| at + 4)
            }
            Some((_, literal)) if self.rest[1 + literal.len_utf8()..].starts_with('\'') => {
                Some(2 + literal.len_utf8())
            }
            _ => None,
        };
        self.skip(end.unwrap_or(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(Kind, String)> {
        let passages = rust(text).into_iter();
        let joined = passages.map(|passage| {
            let words: Vec<_> = passage.words.into_iter().map(|word| word.text).collect();
            (passage.kind, words.join(" "))
        });
        joined.collect()
    }

    fn text(words: &str) -> (Kind, String) {
        (Kind::Text, words.to_string())
    }

    #[test]
    fn quotes_in_characters_comments_and_strings_do_not_confuse() {
        let source = "let a = ('\"', '\\'', b'\"', 'x'); // \"no\n let b: &'static str = \"// yes \\\" yes\";";
        assert_eq!(
            texts(source),
            [(Kind::Comment, "no".to_string()), text("yes yes")]
        );
    }

    #[test]
    fn raw_and_byte_strings_are_read() {
        let source =
            "let a = r#\"one \" two\"#; let b = br\"three\"; let c = b\"four\"; let bar = 1;";
        assert_eq!(
            texts(source),
            [text("one two"), text("three"), text("four")]
        );
    }

    #[test]
    fn block_comments_nest_and_count_lines() {
        let passages = rust("/* a /* b */\nc */ \"d\"");
        let lines: Vec<_> = passages
            .iter()
            .flat_map(|passage| passage.words.iter().map(|word| word.line))
            .collect();
        assert_eq!(lines, [1, 1, 2, 2]);
        assert_eq!(passages[1].kind, Kind::Text);
    }

    #[test]
    fn docs_of_two_items_are_two_passages() {
        let source = "/// One.\nfn a() {}\n/// Two.\n///\n/// Three.\nfn b() {}\n";
        let docs = texts(source);
        assert_eq!(
            docs,
            [
                (Kind::Doc, "One".to_string()),
                (Kind::Doc, "Two Three".to_string())
            ]
        );
    }

    #[test]
    fn unfinished_literals_end_with_the_file() {
        for source in ["\"a", "r#\"a", "/* a", "'", "'\\", "\"a\\", "//"] {
            rust(source);
        }
    }
}
