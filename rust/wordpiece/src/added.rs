//! Added and special tokens: searched for in a text before it is split into words.
//!
//! Tokens such as `[MASK]` must not be normalized or split. [`AddedTokens`] finds them in the original text, and those
//! that request it in the normalized text, and divides the text into [`Segment`]s; only the segments between added
//! tokens go through the rest of the pipeline. Results equal `AddedVocabulary` of `tokenizers` 0.23.3 except where the
//! reference assigns one id to two tokens, panics, or depends on the order of a hash map.
//!
//! # Rules
//!
//! - At each position the longest token matches, from left to right, without overlaps.
//! - `single_word` rejects a match next to a word character. The text of a rejected match is not searched again.
//! - `lstrip` and `rstrip` extend a match over the white space next to it, but not over the match before.
//!
//! # Cost
//!
//! One pass of an Aho-Corasick automaton over the text. If all tokens begin with one of at most three bytes (`[` in
//! most models), `memchr` first checks whether one of those bytes occurs at all.
//!
//! # Example
//!
//! With the special token `[MASK]` and `lstrip`, `"the [MASK] sat"` has the segments `the`, ` [MASK]` and ` sat`.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use hashbrown::{HashMap, HashSet};
use wordpiece_parallel::checkpoint;

use crate::error::{Error, Result};
use crate::unicode;
use crate::vocab::Vocab;

/// The bytes of patterns up to which they may become a table of all transitions.
const MAX_TABLE_BYTES: usize = 4096;

/// A token that is searched for in a text before the text is split into words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddedToken {
    /// The text of the token.
    pub content: String,
    /// Match only if neither the character before nor the one after is a word character.
    pub single_word: bool,
    /// Absorb the white space before it.
    pub lstrip: bool,
    /// Absorb the white space after it.
    pub rstrip: bool,
    /// Search for its normalized form in the normalized text, instead of its content in the original text.
    pub normalized: bool,
    /// Skip it in decoding, on request.
    pub special: bool,
}

impl AddedToken {
    /// Returns a special token that is searched for in the original text, with all other options off.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{AddedToken, Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let tokenizer = Tokenizer::new(Definition::bert(Vocab::new([("[UNK]", 0), ("new", 1)])?))?;
    /// let tokenizer = tokenizer.with_added_tokens(vec![AddedToken::special("[NAME]")])?;
    /// let ids = tokenizer.encode_ids(&Input::single("New [NAME]"), &EncodeOptions::default())?;
    /// assert_eq!(ids, [1, 2]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
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

/// Returns the id of each added token as `tokenizers` 0.23.3 assigns it on reading a file that lists the tokens, whatever
/// ids the file states: the id of the token in the vocabulary if it has one, otherwise the number of tokens in the
/// vocabulary for the first such token, and one more for each further one.
///
/// In a vocabulary with gaps this can be the id of another token. A repeated token has one id.
pub(crate) fn ids_of_reference(vocab: &Vocab, tokens: &[AddedToken]) -> Vec<u32> {
    let mut next = vocab.len() as u32;
    let mut by_content: HashMap<&str, u32> = HashMap::new();
    let id_of = |token| {
        let content: &str = token;
        *by_content.entry(content).or_insert_with(|| {
            vocab.id(content).unwrap_or_else(|| {
                next = next.wrapping_add(1);
                next.wrapping_sub(1)
            })
        })
    };
    tokens.iter().map(|token| token.content.as_str()).map(id_of).collect()
}

/// Checks that the reference assigns these ids to added tokens on reading a file.
pub(crate) fn check_ids(vocab: &Vocab, tokens: &[AddedToken], ids: &[u32]) -> Result<()> {
    let assigned = ids_of_reference(vocab, tokens);
    match (0..tokens.len()).find(|&i| ids[i] != assigned[i]) {
        None => Ok(()),
        Some(i) => {
            let content = tokens[i].content.clone();
            Err(Error::AddedTokenId { content, stored: ids[i], assigned: assigned[i] })
        }
    }
}

/// Returns the id of each added token: its id in the vocabulary, or that in `fixed`, otherwise the next free id.
///
/// Free ids start at the number of tokens in the vocabulary. In a vocabulary with gaps that id can be taken; assignment
/// then continues after the largest id, or in the gaps if there is no larger one. (The reference would assign one id to two
/// tokens.) A repeated token has one id.
pub(crate) fn assign_ids(vocab: &Vocab, tokens: &[AddedToken], fixed: &BTreeMap<String, u32>) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::with_capacity(tokens.len());
    let mut by_content: HashMap<&str, u32> = HashMap::new();
    let mut taken: HashSet<u32> = fixed.values().copied().collect();
    let mut largest = taken.iter().copied().chain(vocab.max_id()).max().unwrap_or(0);
    let mut next = vocab.len() as u32;
    for token in tokens {
        let content = token.content.as_str();
        let known = by_content.get(content).copied().or_else(|| vocab.id(content));
        let id = known.or_else(|| fixed.get(content).copied()).unwrap_or_else(|| {
            let is_taken = |id: u32| vocab.token(id).is_some() || taken.contains(&id);
            if is_taken(next) {
                next = if largest < Vocab::LAST_ID { largest + 1 } else { next };
            }
            while is_taken(next) || next > Vocab::LAST_ID {
                next = next.wrapping_add(1);
            }
            let id = next;
            next = next.wrapping_add(1);
            id
        });
        by_content.insert(content, id);
        taken.insert(id);
        largest = largest.max(id);
        ids.push(id);
    }
    ids
}

/// Returns the ids that must be fixed for [`assign_ids`] to give each token its id in `ids`: none, or the ids of all
/// tokens that are not in the vocabulary.
///
/// # Errors
///
/// [`Error::AddedTokenId`] for a token that has another id in the vocabulary or before in the list, and
/// [`Error::DuplicateId`] for two added tokens with one id, and [`Error::IdTooLarge`].
pub(crate) fn fixed_ids(vocab: &Vocab, tokens: &[AddedToken], ids: &[u32]) -> Result<BTreeMap<String, u32>> {
    let mut by_content: HashMap<&str, u32> = HashMap::new();
    let mut by_id: HashMap<u32, &str> = HashMap::new();
    for (token, &id) in tokens.iter().zip(ids) {
        let content = token.content.as_str();
        let known = vocab.id(content).or_else(|| by_content.get(content).copied());
        if let Some(assigned) = known.filter(|&known| known != id) {
            return Err(Error::AddedTokenId { content: content.to_owned(), stored: id, assigned });
        }
        if id > Vocab::LAST_ID {
            return Err(Error::IdTooLarge { id, token: content.to_owned() });
        }
        let first = *by_id.entry(id).or_insert(content);
        if first != content {
            return Err(Error::DuplicateId { id, first: first.to_owned(), second: content.to_owned() });
        }
        by_content.insert(content, id);
    }
    if assign_ids(vocab, tokens, &BTreeMap::new()) == ids {
        return Ok(BTreeMap::new());
    }
    by_content.retain(|content, _| vocab.id(content).is_none());
    Ok(by_content.into_iter().map(|(content, id)| (content.to_owned(), id)).collect())
}

/// The added tokens of a tokenizer, and the automata that search for them.
///
/// Tokens are numbered in the order in which they were added; the lists by token are parallel.
#[derive(Debug, Clone)]
pub(crate) struct AddedTokens {
    tokens: Vec<AddedToken>,
    /// The id of each token.
    ids: Vec<u32>,
    /// Whether each token is special or was in an earlier registration. The reference decides by this which tokens
    /// `encode_special_tokens` leaves to the model.
    ever_special: Vec<bool>,
    /// The text to search for, which is also the text of the id: the content, or its normalized form.
    patterns: Vec<String>,
    /// Whether any content or pattern contains white space.
    contain_spaces: bool,
    /// The token with a content.
    by_content: HashMap<String, usize>,
    /// The token with an id.
    by_id: HashMap<u32, usize>,
    /// Finds the tokens to search for in the original text; `None` if there are none.
    raw: Option<Finder>,
    /// Finds the tokens to search for in the normalized text; `None` if there are none.
    normalized: Option<Finder>,
}

/// Searches for some of the added tokens.
#[derive(Debug, Clone)]
struct Finder {
    automaton: AhoCorasick,
    /// The token of each pattern of the automaton.
    tokens: Vec<usize>,
    /// The distinct first bytes of the patterns, ascending.
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
    /// Builds the search for `tokens`, in the order in which they were added. `normalize` is the normalizer of the
    /// tokenizer, `fixed` has the ids of tokens that the vocabulary does not determine.
    ///
    /// Tokens without content are ignored. A repeated content replaces the options of the first and keeps its position.
    ///
    /// # Errors
    ///
    /// Returns [`Error::DuplicateId`] if two of them have one id; [`Error::EmptyAddedToken`] if a token normalizes to
    /// the empty string, [`Error::TooLarge`] if the automaton does not fit in memory, and the errors of `normalize`.
    pub fn new(
        vocab: &Vocab,
        normalize: impl Fn(&str) -> Result<String>,
        tokens: &[AddedToken],
        fixed: &BTreeMap<String, u32>,
    ) -> Result<AddedTokens> {
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
        let ids = assign_ids(vocab, &kept, fixed);
        let mut by_id = HashMap::with_capacity(kept.len());
        for (i, &id) in ids.iter().enumerate() {
            if let Some(first) = by_id.insert(id, i) {
                let [first, second] = [first, i].map(|i| kept[i].content.clone());
                return Err(Error::DuplicateId { id, first, second });
            }
        }
        let mut patterns = Vec::with_capacity(kept.len());
        for token in &kept {
            let pattern = if token.normalized { normalize(&token.content)? } else { token.content.clone() };
            if pattern.is_empty() {
                return Err(Error::EmptyAddedToken { content: token.content.clone() });
            }
            patterns.push(pattern);
        }
        let finder = |normalized: bool| {
            let tokens: Vec<usize> = (0..kept.len()).filter(|&i| kept[i].normalized == normalized).collect();
            Finder::new(tokens, &patterns)
        };
        let (raw, normalized) = (finder(false)?, finder(true)?);
        let has_space = |text: &str| text.chars().any(unicode::is_whitespace);
        let contain_spaces =
            kept.iter().zip(&patterns).any(|(token, pattern)| has_space(&token.content) || has_space(pattern));
        Ok(AddedTokens {
            tokens: kept,
            contain_spaces,
            ids,
            ever_special,
            patterns,
            by_content,
            by_id,
            raw,
            normalized,
        })
    }

    /// Returns all tokens with their ids, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &AddedToken)> {
        self.ids.iter().copied().zip(&self.tokens)
    }

    /// Returns the id of the token with a content.
    pub fn id_of(&self, content: &str) -> Option<u32> {
        self.by_content.get(content).map(|&i| self.ids[i])
    }

    /// Returns the id of a token, given [`Segment::added_token`].
    pub fn id(&self, token: usize) -> u32 {
        self.ids[token]
    }

    /// Returns the text of an id; for a normalized token, its normalized form.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|&i| self.patterns[i].as_str())
    }

    /// Returns whether an id belongs to a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.by_id.get(&id).is_some_and(|&i| self.tokens[i].special)
    }

    /// Returns whether any token is searched for in the normalized text.
    pub fn searches_normalized(&self) -> bool {
        self.normalized.is_some()
    }

    /// Returns whether any token contains white space, so that a match can cross it.
    pub fn contain_spaces(&self) -> bool {
        self.contain_spaces
    }

    /// Replaces `segments` with the segments of an original text. With `skip_special`, special tokens remain ordinary
    /// text.
    pub fn cut_raw(&self, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        self.cut(self.raw.as_ref(), text, skip_special, segments);
    }

    /// Returns whether an original text contains none of the tokens that [`cut_raw`](AddedTokens::cut_raw) searches
    /// for.
    ///
    /// Can be false although `cut_raw` finds nothing: `single_word` is not considered.
    pub fn has_no_raw(&self, text: &str, skip_special: bool) -> bool {
        let Some(finder) = &self.raw else { return true };
        !finder.may_begin(text) || finder.find(text).all(|(token, _)| skip_special && self.ever_special[token])
    }

    /// Replaces `segments` with the segments of a normalized text. With `skip_special`, special tokens remain ordinary
    /// text.
    pub fn cut_normalized(&self, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        self.cut(self.normalized.as_ref(), text, skip_special, segments);
    }

    fn cut(&self, finder: Option<&Finder>, text: &str, skip_special: bool, segments: &mut Vec<Segment>) {
        segments.clear();
        let finder = finder.filter(|finder| finder.may_begin(text));
        let mut end = 0;
        // The run of white space examined last. Tokens inside it must not examine it again, or time would be quadratic.
        let mut blank = 0..0;
        for (token, found) in finder.into_iter().flat_map(|finder| finder.find(text)) {
            if segments.len().is_multiple_of(256) {
                checkpoint();
            }
            let flags = &self.tokens[token];
            // The text of a rejected match is not searched again, as in the reference.
            if skip_special && self.ever_special[token] {
                continue;
            }
            if flags.single_word && !is_single_word(text, &found) {
                continue;
            }
            let Range { mut start, end: mut stop } = found;
            if flags.lstrip {
                // Do not extend over the match before.
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
                // The entire match lies in the white space that the token before it absorbed.
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

/// Returns whether neither neighbour of a match is a word character.
fn is_single_word(text: &str, found: &Range<usize>) -> bool {
    let before = text[..found.start].chars().next_back();
    let after = text[found.end..].chars().next();
    !before.is_some_and(unicode::is_word) && !after.is_some_and(unicode::is_word)
}

impl Finder {
    /// Builds a search for the patterns of some tokens; `None` if there are no tokens.
    fn new(tokens: Vec<usize>, patterns: &[String]) -> Result<Option<Finder>> {
        if tokens.is_empty() {
            return Ok(None);
        }
        // By default few patterns become a table of all transitions, which for long ones takes quadratic time to make.
        let is_long = tokens.iter().map(|&i| patterns[i].len()).sum::<usize>() > MAX_TABLE_BYTES;
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(is_long.then_some(AhoCorasickKind::ContiguousNFA))
            .build(tokens.iter().map(|&i| patterns[i].as_bytes()))
            .map_err(|_| Error::TooLarge { what: "the automaton over the added tokens", size: tokens.len() })?;
        let mut starts: Vec<u8> = tokens.iter().filter_map(|&i| patterns[i].bytes().next()).collect();
        starts.sort_unstable();
        starts.dedup();
        Ok(Some(Finder { automaton, tokens, starts }))
    }

    /// Returns false if no first byte of a pattern occurs in `text`. Patterns with more than three first bytes are not
    /// checked.
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

    /// Returns the matches from left to right, at each position the longest; of equal patterns, the token added first.
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        self.automaton.find_iter(text).map(|found| (self.tokens[found.pattern().as_usize()], found.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tokens: &[&str]) -> Vec<AddedToken> {
        tokens.iter().map(|&token| AddedToken::special(token)).collect()
    }

    fn assigned(vocab: &[(&str, u32)], tokens: &[&str]) -> Vec<u32> {
        let vocab = Vocab::new(vocab.iter().copied()).unwrap();
        assign_ids(&vocab, &listed(tokens), &BTreeMap::new())
    }

    #[test]
    fn long_tokens_have_no_table_of_all_transitions() {
        let kind = |length| Finder::new(vec![0], &["a".repeat(length)]).unwrap().unwrap().automaton.kind();
        assert_eq!((kind(9), kind(MAX_TABLE_BYTES + 1)), (AhoCorasickKind::DFA, AhoCorasickKind::ContiguousNFA));
    }

    #[test]
    fn known_tokens_keep_their_id_and_new_ones_follow_the_vocabulary() {
        assert_eq!(assigned(&[("a", 0), ("b", 1)], &["x", "b", "y", "x"]), [2, 1, 3, 2]);
        assert_eq!(assigned(&[], &["x", "y"]), [0, 1]);
    }

    #[test]
    fn the_reference_numbers_the_new_tokens_of_a_file_from_the_size_of_the_vocabulary() {
        let vocab = Vocab::new([("a", 0), ("b", 2), ("c", 3)]).unwrap();
        let ids = |tokens: &[&str]| ids_of_reference(&vocab, &listed(tokens));
        assert_eq!(ids(&["x", "y", "x"]), [3, 4, 3]);
        assert_eq!(ids(&["a", "x"]), [0, 3]);
        // Although 3 is the id of "c", which the list has as well.
        assert_eq!(ids(&["c", "x"]), [3, 3]);
    }

    #[test]
    fn fixed_ids_are_kept_and_new_tokens_get_others() {
        let vocab = Vocab::new([("a", 0), ("b", 2), ("c", 3), ("d", 5)]).unwrap();
        let tokens = listed(&["b", "x", "y"]);
        let fixed = fixed_ids(&vocab, &tokens, &[2, 4, 6]).unwrap();
        assert_eq!(fixed, BTreeMap::new(), "these are the free ids");
        let fixed = fixed_ids(&vocab, &tokens, &[2, 5, 4]).unwrap();
        assert_eq!(assign_ids(&vocab, &tokens, &fixed), [2, 5, 4]);
        assert_eq!(assign_ids(&vocab, &listed(&["z", "y", "b", "x"]), &fixed), [6, 4, 2, 5]);
        assert!(matches!(fixed_ids(&vocab, &tokens, &[1, 4, 6]), Err(Error::AddedTokenId { stored: 1, .. })));
        assert!(matches!(fixed_ids(&vocab, &tokens, &[2, 4, 2]), Err(Error::DuplicateId { id: 2, .. })));
    }

    #[test]
    fn no_id_is_assigned_twice() {
        assert_eq!(assigned(&[("a", 2), ("b", 3), ("c", 4)], &["x", "y", "z"]), [5, 6, 7]);
        assert_eq!(assigned(&[("a", 0), ("b", 4)], &["x", "y", "z", "w"]), [2, 3, 5, 6]);
        assert_eq!(assigned(&[("a", 1), ("b", Vocab::LAST_ID)], &["x", "y", "z"]), [2, 3, 4]);
        assert_eq!(assigned(&[("a", 2), ("b", Vocab::LAST_ID)], &["x", "y"]), [3, 4]);
    }
}
