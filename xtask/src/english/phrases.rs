//! Phrases that have a better wording.

use super::source::Word;

/// A phrase and its replacement.
pub struct Phrase {
    /// Words of the phrase in lower case, separated by spaces; `*` stands for any one word.
    pub words: &'static str,
    /// Better wording.
    pub instead: &'static str,
    /// Context in which the phrase counts.
    context: Context,
}

enum Context {
    Any,
    /// The phrase counts only before punctuation or at the end of a passage.
    End,
    /// The phrase counts only if the given word does not follow in the same sentence.
    Without(&'static str),
}

const fn phrase(words: &'static str, instead: &'static str) -> Phrase {
    Phrase {
        words,
        instead,
        context: Context::Any,
    }
}

impl Phrase {
    /// Returns true if `words` begin with this phrase.
    pub fn is_at(&self, words: &[Word]) -> bool {
        let mut rest = words;
        let mut expected = self.words.split(' ').peekable();
        let mut ends = false;
        while let Some(word) = expected.next() {
            let Some((first, others)) = rest.split_first() else {
                return false;
            };
            let is_same = word == "*" || first.text.to_lowercase() == word;
            if !is_same || (first.ends && expected.peek().is_some()) {
                return false;
            }
            ends = first.ends;
            rest = others;
        }
        match self.context {
            Context::Any => true,
            Context::End => ends || rest.is_empty(),
            Context::Without(word) => {
                let sentence = rest.iter().take_while(|next| !next.ends_sentence);
                !sentence.into_iter().any(|next| next.text == word)
            }
        }
    }
}

pub const PHRASES: &[Phrase] = &[
    // Home-made terms.
    phrase("stall height", "stall latency"),
    phrase("height of a stall", "stall latency"),
    phrase("write holds up", "worst-case latency"),
    phrase("half of the writes", "median write"),
    Phrase {
        words: "in all",
        instead: "total",
        context: Context::End,
    },
    phrase("lines a second", "samples per second"),
    phrase("samples a second", "samples per second"),
    phrase("writes a second", "writes per second"),
    phrase("blocks a second", "blocks per second"),
    phrase("bytes a second", "bytes per second"),
    phrase("instructions a second", "instructions per second"),
    phrase("times a second", "times per second"),
    phrase("ns a write", "ns per write"),
    phrase("us a write", "us per write"),
    phrase("b a write", "B per write"),
    phrase("to bear", "to sustain, to absorb"),
    phrase("goes through", "sustains, passes"),
    phrase("went through", "was sustained, passed"),
    phrase("ram in front", "buffer"),
    phrase("not kept", "exceeded, discarded"),
    phrase("cut takes", "power cut loses"),
    phrase("cut off", "interrupted, truncated"),
    phrase("brings in order", "repairs"),
    phrase("bring in order", "repair"),
    phrase("brought in order", "repaired"),
    phrase("brings them in order", "repairs them"),
    phrase("brings it in order", "repairs it"),
    phrase("true length", "actual length"),
    phrase("give way", "yield"),
    phrase("gives way", "yields"),
    phrase("clean up card", "garbage collection"),
    phrase("come along", "are bundled, are built in"),
    phrase("comes along", "is bundled, is built in"),
    phrase("came along", "was bundled"),
    phrase("leave away", "omit"),
    phrase("leave * away", "omit"),
    phrase("leave one of both away", "remove one"),
    phrase("left away", "omitted"),
    phrase("one of both", "either"),
    phrase("which of both", "either way"),
    Phrase {
        words: "so many",
        instead: "n, the given number of",
        context: Context::Without("that"),
    },
    // Phrases that hide the subject, and clauses used as nouns.
    phrase("is told by", "is detected from, is passed by"),
    phrase("are told by", "are detected from, are passed by"),
    phrase("is told", "is reported, receives"),
    phrase("are told", "are reported, receive"),
    phrase("was told", "was reported, received"),
    phrase("is not told", "is not reported"),
    phrase("is said to be", "is reported as"),
    phrase("is seen to", "name the subject"),
    phrase("there is made", "creates"),
    phrase("how many it were", "the number of"),
    phrase("is what was written", "is identical to the data written"),
    phrase("are what was written", "are identical to the data written"),
    phrase("is not what was written", "differs from the data written"),
    phrase("what it was at", "the file in progress"),
    phrase("taken for granted", "assumed"),
    phrase("where * is due", "expected, found"),
    phrase("where * are due", "expected, found"),
    phrase("that is none", "an invalid one"),
    phrase("bytes of old", "stale bytes"),
    phrase("nobody knows what", "state the fact"),
    phrase("by itself", "automatically"),
    phrase("who builds", "if you build"),
    phrase("to have the command at hand", "install"),
    phrase("past the page cache", "bypassing the page cache"),
    phrase("pass in a moment", "take milliseconds"),
    phrase("whose power went", "after a power loss"),
    phrase("lets go of", "deselects, releases"),
    phrase("let go of", "deselect, release"),
    phrase("who may have", "decides"),
    phrase("why something was not done", "error"),
    phrase("names skip", "numbers have gaps"),
];
