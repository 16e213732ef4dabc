//! Added and special tokens, found in the text as they are.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use hashbrown::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::normalize::{Normalized, Normalizer};
use crate::unicode;
use crate::vocab::Vocab;

/// A token that is found in the text before the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddedToken {
    /// The text of the token.
    pub content: String,
    /// Matches only where no word character stands beside it.
    pub single_word: bool,
    /// Takes the white space before it along.
    pub lstrip: bool,
    /// Takes the white space after it along.
    pub rstrip: bool,
    /// Is searched for, normalized, in the normalized text; else as it is in the text as it is.
    pub normalized: bool,
    /// Is left out by decoding on request.
    pub special: bool,
}

impl AddedToken {
    /// A special token: found in the raw text, left out by decoding on request.
    pub fn special(content: impl Into<String>) -> AddedToken {
        AddedToken {
            content: content.into(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        }
    }
}

/// The ids that added tokens get, in order: that of the vocabulary where the token is in it, else the next free one.
///
/// The next free id begins at the number of tokens. In a vocabulary with gaps that id can be taken; then ids go on after
/// the largest (the reference would give one id to two tokens), and where there is none after it, in the gaps.
pub(crate) fn assign_ids(vocab: &Vocab, tokens: &[AddedToken]) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::with_capacity(tokens.len());
    let mut by_content: HashMap<&str, u32> = HashMap::new();
    let mut taken: HashSet<u32> = HashSet::new();
    let mut largest = vocab.max_id().unwrap_or(0);
    let mut next = vocab.len() as u32;
    for token in tokens {
        let known = by_content.get(token.content.as_str()).copied().or_else(|| vocab.id(&token.content));
        let id = known.unwrap_or_else(|| {
            let is_taken = |id: u32| vocab.token(id).is_some() || taken.contains(&id);
            if is_taken(next) {
                next = largest.checked_add(1).unwrap_or(next);
            }
            while is_taken(next) {
                next = next.wrapping_add(1);
            }
            let id = next;
            next = next.wrapping_add(1);
            id
        });
        by_content.insert(&token.content, id);
        taken.insert(id);
        largest = largest.max(id);
        ids.push(id);
    }
    ids
}

/// The added tokens of a tokenizer, ready to be searched for.
#[derive(Debug, Clone)]
pub(crate) struct AddedTokens {
    tokens: Vec<AddedToken>,
    ids: Vec<u32>,
    /// Whether each is special, or was in an earlier registration: so the reference decides what it leaves to the model.
    ever_special: Vec<bool>,
    /// The text that stands for each token outside: the normalized form of a normalized one.
    shown: Vec<String>,
    /// Whether a token has white space in it, as it is or normalized.
    cross_spaces: bool,
    by_content: HashMap<String, usize>,
    by_id: HashMap<u32, usize>,
    raw: Option<Finder>,
    normalized: Option<Finder>,
}

/// A search for some of the tokens.
#[derive(Debug, Clone)]
struct Finder {
    automaton: AhoCorasick,
    /// Which token each pattern is.
    tokens: Vec<usize>,
    /// The bytes that tokens begin with.
    starts: Vec<u8>,
}

/// A range of a text: an added token found in it, or the text between two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The index of the token that was found, for [`AddedTokens::id`]; `None` for the text in between.
    pub added_token: Option<usize>,
    /// The bytes of the segment; never empty. Segments are ascending and cover the text without gaps.
    pub range: Range<usize>,
}

impl AddedTokens {
    /// Takes the tokens in the order in which they were added. Empty ones are passed over; one that comes again replaces
    /// the flags of the first.
    pub fn new(vocab: &Vocab, normalizer: Option<&Normalizer>, tokens: &[AddedToken]) -> Result<AddedTokens> {
        let mut kept: Vec<AddedToken> = Vec::with_capacity(tokens.len());
        let mut ever_special: Vec<bool> = Vec::with_capacity(tokens.len());
        let mut by_content: HashMap<String, usize> = HashMap::with_capacity(tokens.len());
        for token in tokens.iter().filter(|token| !token.content.is_empty()) {
            match by_content.get(&token.content) {
                Some(&i) => {
                    kept[i] = token.clone();
                    ever_special[i] |= token.special;
                }
                None => {
                    by_content.insert(token.content.clone(), kept.len());
                    kept.push(token.clone());
                    ever_special.push(token.special);
                }
            }
        }
        let ids = assign_ids(vocab, &kept);
        let by_id = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let mut shown = Vec::with_capacity(kept.len());
        for token in &kept {
            let mut form = Normalized::default();
            form.reset(&token.content, 0, false);
            if let (true, Some(normalizer)) = (token.normalized, normalizer) {
                normalizer.apply(&mut form)?;
            }
            if form.text.is_empty() {
                return Err(Error::EmptyAddedToken { content: token.content.clone() });
            }
            shown.push(form.text);
        }
        let finder = |normalized: bool| {
            let tokens: Vec<usize> = (0..kept.len()).filter(|&i| kept[i].normalized == normalized).collect();
            Finder::new(tokens, &shown)
        };
        let (raw, normalized) = (finder(false)?, finder(true)?);
        let has_space = |text: &str| text.chars().any(unicode::is_whitespace);
        let cross_spaces = kept.iter().zip(&shown).any(|(token, shown)| has_space(&token.content) || has_space(shown));
        Ok(AddedTokens { tokens: kept, cross_spaces, ids, ever_special, shown, by_content, by_id, raw, normalized })
    }

    /// All tokens with their ids, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &AddedToken)> {
        self.ids.iter().copied().zip(&self.tokens)
    }

    /// The id of a token.
    pub fn id_of(&self, content: &str) -> Option<u32> {
        self.by_content.get(content).map(|&i| self.ids[i])
    }

    /// The id of the token that was found.
    pub fn id(&self, token: usize) -> u32 {
        self.ids[token]
    }

    /// The text of an id.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|&i| self.shown[i].as_str())
    }

    /// Whether an id is that of a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.by_id.get(&id).is_some_and(|&i| self.tokens[i].special)
    }

    /// Whether any token is searched for in the normalized text.
    pub fn searches_normalized(&self) -> bool {
        self.normalized.is_some()
    }

    /// Whether a token can be found across a space.
    pub fn cross_spaces(&self) -> bool {
        self.cross_spaces
    }

    /// Cuts a raw text at the tokens that are found in it as they are.
    pub fn cut_raw(&self, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        self.cut(self.raw.as_ref(), text, skip_special, segments);
    }

    /// Whether none of the tokens that are searched for as they are is in a text.
    pub fn has_no_raw(&self, text: &str, skip_special: bool) -> bool {
        let Some(finder) = &self.raw else { return true };
        !finder.may_begin(text) || finder.find(text).all(|(token, _)| skip_special && self.ever_special[token])
    }

    /// Cuts a normalized text at the tokens that are found in it normalized.
    pub fn cut_normalized(&self, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        self.cut(self.normalized.as_ref(), text, skip_special, segments);
    }

    fn cut(&self, finder: Option<&Finder>, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        segments.clear();
        let finder = finder.filter(|finder| finder.may_begin(text));
        let mut end = 0;
        // The run of white space looked at last: matches inside it need not read it again.
        let mut blank = 0..0;
        for (token, found) in finder.into_iter().flat_map(|finder| finder.find(text)) {
            let flags = &self.tokens[token];
            // A match that is turned down has still used up its text: no other is looked for inside it.
            if skip_special && self.ever_special[token] {
                continue;
            }
            if flags.single_word && !stands_alone(text, &found) {
                continue;
            }
            let Range { mut start, end: mut stop } = found;
            if flags.lstrip {
                // Never back over what the match before took.
                let before = text.get(end..start).unwrap_or_default();
                start = end.max(start.min(end + before.trim_end_matches(unicode::is_whitespace).len()));
            }
            if flags.rstrip {
                if !blank.contains(&stop) {
                    let after = &text[stop..];
                    blank = stop..text.len() - after.trim_start_matches(unicode::is_whitespace).len();
                }
                stop = stop.max(blank.end);
            }
            if start >= stop {
                // All of it lies in the white space that the token before it took.
                continue;
            }
            if end < start {
                segments.push(Segment { added_token: None, range: end..start });
            }
            segments.push(Segment { added_token: Some(token), range: start..stop });
            end = stop;
        }
        if end < text.len() {
            segments.push(Segment { added_token: None, range: end..text.len() });
        }
    }
}

fn stands_alone(text: &str, found: &Range<usize>) -> bool {
    let before = text[..found.start].chars().next_back();
    let after = text[found.end..].chars().next();
    !before.is_some_and(unicode::is_word) && !after.is_some_and(unicode::is_word)
}

impl Finder {
    fn new(tokens: Vec<usize>, shown: &[String]) -> Result<Option<Finder>> {
        if tokens.is_empty() {
            return Ok(None);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|&i| shown[i].as_bytes()))
            .map_err(|_| Error::TooLarge { what: "the automaton over the added tokens", size: tokens.len() })?;
        let mut starts: Vec<u8> = tokens.iter().filter_map(|&i| shown[i].bytes().next()).collect();
        starts.sort_unstable();
        starts.dedup();
        Ok(Some(Finder { automaton, tokens, starts }))
    }

    /// Whether a byte that a token begins with is in a text; true where that is not worth a look.
    #[inline]
    fn may_begin(&self, text: &str) -> bool {
        let text = text.as_bytes();
        match self.starts[..] {
            [a] => memchr::memchr(a, text).is_some(),
            [a, b] => memchr::memchr2(a, b, text).is_some(),
            [a, b, c] => memchr::memchr3(a, b, c, text).is_some(),
            _ => true,
        }
    }

    /// The matches, from left to right, at each place the longest; of equal forms the one added first.
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        self.automaton.find_iter(text).map(|found| (self.tokens[found.pattern().as_usize()], found.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(vocab: &[(&str, u32)], tokens: &[&str]) -> Vec<u32> {
        let vocab = Vocab::new(vocab.iter().copied()).unwrap();
        let tokens: Vec<AddedToken> = tokens.iter().map(|&token| AddedToken::special(token)).collect();
        assign_ids(&vocab, &tokens)
    }

    #[test]
    fn known_tokens_keep_their_id_and_new_ones_follow_the_vocabulary() {
        assert_eq!(assigned(&[("a", 0), ("b", 1)], &["x", "b", "y", "x"]), [2, 1, 3, 2]);
        assert_eq!(assigned(&[], &["x", "y"]), [0, 1]);
    }

    #[test]
    fn an_id_is_never_given_twice() {
        assert_eq!(assigned(&[("a", 2), ("b", 3), ("c", 4)], &["x", "y", "z"]), [5, 6, 7]);
        assert_eq!(assigned(&[("a", 0), ("b", 4)], &["x", "y", "z", "w"]), [2, 3, 5, 6]);
        assert_eq!(assigned(&[("a", 1), ("b", u32::MAX)], &["x", "y", "z"]), [2, 3, 4]);
        assert_eq!(assigned(&[("a", 2), ("b", u32::MAX)], &["x", "y"]), [3, 4]);
    }
}
