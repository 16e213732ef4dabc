//! `top_down`: whole words first, then the endings that are left. What TensorFlow Text calls WordPiece training.
//!
//! Definition, as in `wordpiece_tokenizer_learner_lib.py` of TensorFlow Text. One vocabulary for a threshold T:
//!
//! 1. Pieces are at first all characters, plain and with `##`.
//! 2. For each word take the places where its pieces start (the first time, every place). For each start s count the text
//!    from s to every end, with `##` where s > 0.
//! 3. From the longest text to the shortest: keep it where its count is at least T, and *kept or not* take its count off all
//!    its prefixes.
//! 4. The kept texts, and all characters, are the pieces of the next round; there are `num_iterations` rounds.
//!
//! The vocabulary is the special tokens, the characters, then all pieces by falling count. T is searched for by bisection
//! until the size is within `slack_ratio` of what was asked for.
//!
//! What makes it fast: step 3 does not ask whether a text was kept, so it undoes step 2 for every text but one. A start adds
//! n to each prefix of the remainder w[s:], and the remainder, being the longest, takes n off all the others again. What is
//! left of a text's count is the counts of the starts *whose whole remainder it is*. So only remainders of words can ever be
//! pieces, and they are numbered once (`Remainders`). A round then is: cut each word, add n at the number of each remainder
//! that starts a piece. To cut a word, no text is read either: the longest piece that begins a remainder is either the
//! remainder itself or the longest piece that begins the longest shorter remainder which begins it (`shorter`), and this
//! link is the same in all rounds. And since nothing in the first round depends on T, it is made once.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::tokens::{JOINER, Tokens};
use super::{Outcome, Stop, TrainingError, Watch, WordCounts};
use crate::error::{Error, Result};

/// The options of `top_down`, with the names and defaults of TensorFlow Text.
#[derive(Debug, Clone, PartialEq)]
pub struct TopDownOptions {
    /// The least threshold; `None`: the least count.
    pub lower_thresh: Option<u64>,
    /// The greatest threshold; `None`: the greatest count.
    pub upper_thresh: Option<u64>,
    /// Rounds for each threshold.
    pub num_iterations: usize,
    /// How far below the size asked for the size may be, as a share of it.
    pub slack_ratio: f64,
    /// Words of more characters are left out.
    pub max_token_length: usize,
    /// So many different characters are kept, the most frequent; words with another are left out.
    pub max_unique_chars: usize,
    /// So many words are kept, the most frequent; `None`: all.
    pub max_input_words: Option<usize>,
    /// Whether pieces inside words bear `##`.
    pub include_joiner: bool,
}

impl Default for TopDownOptions {
    fn default() -> TopDownOptions {
        TopDownOptions {
            lower_thresh: Some(10),
            upper_thresh: Some(10_000_000),
            num_iterations: 4,
            slack_ratio: 0.05,
            max_token_length: 50,
            max_unique_chars: 1000,
            max_input_words: Some(5_000_000),
            include_joiner: true,
        }
    }
}

/// What the preparation left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Distinct words.
    pub words: u64,
    /// How often they occur.
    pub occurrences: u128,
}

/// The words that are learned from.
struct Prepared<'a> {
    /// By count descending, then word ascending.
    words: Vec<(&'a str, u64)>,
    /// Ascending.
    chars: Vec<char>,
    left_out: LeftOut,
}

fn prepare<'a>(counts: &'a WordCounts, specials: &Tokens, options: &TopDownOptions) -> Prepared<'a> {
    let fits = |word: &str| word.len() <= options.max_token_length || word.chars().count() <= options.max_token_length;
    let mut words: Vec<(&str, u64)> =
        counts.iter().filter(|&(word, _)| fits(word) && specials.id(word).is_none()).collect();
    let mut weights: HashMap<char, u64> = HashMap::new();
    for &(word, n) in &words {
        word.chars().for_each(|c| *weights.entry(c).or_default() += n);
    }
    let mut ranked: Vec<(Reverse<u64>, char)> = weights.into_iter().map(|(c, weight)| (Reverse(weight), c)).collect();
    ranked.sort_unstable();
    ranked.truncate(options.max_unique_chars);
    let allowed: hashbrown::HashSet<char> = ranked.into_iter().map(|(_, c)| c).collect();
    words.retain(|(word, _)| word.chars().all(|c| allowed.contains(&c)));
    words.sort_by_key(|&(_, n)| Reverse(n));
    words.truncate(options.max_input_words.unwrap_or(usize::MAX));
    let mut chars: Vec<char> =
        words.iter().flat_map(|(word, _)| word.chars()).collect::<hashbrown::HashSet<_>>().into_iter().collect();
    chars.sort_unstable();
    let kept: u128 = words.iter().map(|&(_, n)| u128::from(n)).sum();
    let left_out = LeftOut { words: (counts.len() - words.len()) as u64, occurrences: counts.total() - kept };
    Prepared { words, chars, left_out }
}

/// No remainder.
const NONE: u32 = u32::MAX;

/// The remainders of all words, numbered: those that start a word (plain) and those that go on in one (marked).
///
/// Numbers go by text, and plain ones before marked ones, so that a shorter remainder that begins a longer one has a
/// smaller number. Without the joiner there is no difference between the kinds, and all are plain.
struct Remainders<'a> {
    words: Vec<(&'a str, u64)>,
    /// For each place of each word the number of the remainder that starts there.
    at: Vec<u32>,
    /// Where the places of each word begin, and at last where they end.
    starts: Vec<usize>,
    /// For each number a word and the place in it.
    example: Vec<(u32, u32)>,
    /// The characters.
    len: Vec<u32>,
    /// The longest shorter remainder of the same kind that begins this one.
    shorter: Vec<u32>,
    /// From here on they are marked.
    marked: u32,
    /// Plain and marked remainders with the same text: of words that themselves begin with the joiner.
    twins: Vec<(u32, u32)>,
}

impl<'a> Remainders<'a> {
    fn new(words: Vec<(&'a str, u64)>, joiner: bool, watch: &mut Watch<'_>) -> Result<Remainders<'a>> {
        let mut starts = Vec::with_capacity(words.len() + 1);
        let mut at = Vec::new();
        let mut example: Vec<(u32, u32)> = Vec::new();
        // A remainder is a character and the shorter remainder behind it; whether it is plain is part of what it is.
        let mut numbers: HashMap<(bool, char, u32), u32> = HashMap::new();
        let mut places = Vec::new();
        for (i, (word, _)) in words.iter().enumerate() {
            watch.step()?;
            starts.push(at.len());
            places.clear();
            places.extend(word.char_indices());
            at.resize(at.len() + places.len(), NONE);
            let here = at.len() - places.len();
            let mut behind = NONE;
            for (place, &(byte, c)) in places.iter().enumerate().rev() {
                let plain = place == 0 && joiner;
                behind = *numbers.entry((plain, c, behind)).or_insert_with(|| {
                    example.push((i as u32, byte as u32));
                    example.len() as u32 - 1
                });
                at[here + place] = behind;
            }
        }
        starts.push(at.len());
        drop(numbers);
        let text = |&(word, byte): &(u32, u32)| &words[word as usize].0[byte as usize..];
        // In the order of kind, then text.
        let mut order: Vec<(bool, u64, u32)> = example
            .iter()
            .enumerate()
            .map(|(i, example)| (joiner && example.1 > 0, first_bytes(text(example)), i as u32))
            .collect();
        order.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| text(&example[a.2 as usize]).cmp(text(&example[b.2 as usize])))
        });
        watch.pause()?;
        let marked = order.iter().position(|one| one.0).unwrap_or(order.len()) as u32;
        let mut new_number = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, one)| new_number[one.2 as usize] = new as u32);
        at.iter_mut().for_each(|number| *number = new_number[*number as usize]);
        let example: Vec<(u32, u32)> = order.iter().map(|one| example[one.2 as usize]).collect();
        drop(order);
        let text = |&(word, byte): &(u32, u32)| &words[word as usize].0[byte as usize..];
        let len = example.iter().map(|example| text(example).chars().count() as u32).collect();
        let mut shorter = vec![NONE; example.len()];
        // Those that begin the present one, the longest last.
        let mut open: Vec<u32> = Vec::new();
        for (i, one) in example.iter().enumerate() {
            if i as u32 == marked {
                open.clear();
            }
            while open.last().is_some_and(|&last| !text(one).starts_with(text(&example[last as usize]))) {
                open.pop();
            }
            shorter[i] = open.last().copied().unwrap_or(NONE);
            open.push(i as u32);
        }
        let is_twin = |word: &str| joiner && word.len() > JOINER.len() && word.starts_with(JOINER);
        let twins = (0..words.len()).filter(|&i| is_twin(words[i].0));
        let twins = twins.map(|i| (at[starts[i]], at[starts[i] + JOINER.chars().count()])).collect();
        Ok(Remainders { words, at, starts, example, len, shorter, marked, twins })
    }

    fn text(&self, number: u32) -> &str {
        let (word, byte) = self.example[number as usize];
        &self.words[word as usize].0[byte as usize..]
    }

    /// The token: the text, with the joiner where it goes on in a word.
    fn token(&self, number: u32) -> String {
        let joiner = if number < self.marked { "" } else { JOINER };
        format!("{joiner}{}", self.text(number))
    }

    /// The counts of the first round, in which every place of a word is a start.
    fn first_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.len.len()];
        for (i, &(_, n)) in self.words.iter().enumerate() {
            self.at[self.starts[i]..self.starts[i + 1]].iter().for_each(|&number| counts[number as usize] += n);
        }
        counts
    }

    /// The counts of a round that starts from the pieces `kept` and all characters.
    fn counts(&self, kept: &[bool], watch: &mut Watch<'_>) -> Result<Vec<u64>> {
        let mut kept = kept.to_vec();
        for &(plain, marked) in &self.twins {
            // One text, one piece: whoever kept it. The other direction is seen to below.
            kept[marked as usize] |= kept[plain as usize];
        }
        // The characters of the longest piece that begins each remainder.
        let mut longest = vec![1u32; kept.len()];
        for i in 0..kept.len() {
            longest[i] = match (kept[i], self.shorter[i]) {
                (true, _) => self.len[i],
                (false, NONE) => 1,
                (false, shorter) => longest[shorter as usize],
            };
        }
        let joiner_len = JOINER.chars().count() as u32;
        for &(plain, marked) in &self.twins {
            // A word that begins with the joiner may also begin with a marked piece, which for once is read as it stands.
            let as_marked = joiner_len + longest[marked as usize];
            longest[plain as usize] = longest[plain as usize].max(as_marked);
        }
        let mut counts = vec![0; kept.len()];
        for (i, &(_, n)) in self.words.iter().enumerate() {
            let mut place = self.starts[i];
            while place < self.starts[i + 1] {
                let number = self.at[place] as usize;
                counts[number] += n;
                place += longest[number] as usize;
            }
            watch.step()?;
        }
        Ok(counts)
    }
}

/// The first eight bytes as a number in the order of the bytes.
fn first_bytes(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let n = text.len().min(8);
    bytes[..n].copy_from_slice(&text.as_bytes()[..n]);
    u64::from_be_bytes(bytes)
}

/// What a search goes over.
struct Search<'a> {
    remainders: Remainders<'a>,
    first: Vec<u64>,
    iterations: usize,
    /// For each number, whether its text is in the vocabulary without it: a special token or a plain character.
    in_anyway: Vec<bool>,
    /// The continuation forms of all characters, which are always in: the numbers of those that are remainders, and the
    /// others, unless they are in `before`.
    single: Vec<u32>,
    others: Vec<String>,
    /// Special tokens and plain characters.
    before: Tokens,
}

/// The pieces for a threshold: for each number its count, 0 where it is not kept.
struct Pieces {
    counts: Vec<u64>,
    kept: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(
        prepared: Prepared<'a>,
        base: &Tokens,
        options: &TopDownOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Search<'a>> {
        let remainders = Remainders::new(prepared.words, options.include_joiner, watch)?;
        let mut before = base.clone();
        for c in &prepared.chars {
            before.add(c.encode_utf8(&mut [0; 4]));
        }
        let first = remainders.first_counts();
        let in_anyway = (0..first.len() as u32).map(|i| before.id(&remainders.token(i)).is_some()).collect();
        // Continuation forms of characters. A word that is called so has the character as a remainder as well.
        let mut single: Vec<u32> =
            (remainders.marked..first.len() as u32).filter(|&i| remainders.len[i as usize] == 1).collect();
        let form = |c: &char| format!("{JOINER}{c}");
        let mut others: Vec<String> = Vec::new();
        if options.include_joiner {
            let there: hashbrown::HashSet<String> = single.iter().map(|&i| remainders.token(i)).collect();
            others.extend(prepared.chars.iter().map(form).filter(|it| !there.contains(it) && before.id(it).is_none()));
        } else {
            single.clear();
        }
        Ok(Search { remainders, first, iterations: options.num_iterations, in_anyway, single, others, before })
    }

    fn pieces(&self, threshold: u64, watch: &mut Watch<'_>) -> Result<Pieces> {
        let mut pieces = Pieces { counts: vec![0; self.first.len()], kept: vec![false; self.first.len()] };
        for round in 0..self.iterations {
            let counts = if round == 0 { self.first.clone() } else { self.remainders.counts(&pieces.kept, watch)? };
            let kept: Vec<bool> = counts.iter().map(|&n| n >= threshold).collect();
            // Rounds depend on the set of pieces alone.
            let settled = round > 0 && kept == pieces.kept;
            pieces = Pieces { counts, kept };
            if settled {
                break;
            }
        }
        // One text, one token: where both are kept, the ending gives the count.
        for &(plain, marked) in &self.remainders.twins {
            if pieces.kept[marked as usize] {
                pieces.kept[plain as usize] = false;
            }
        }
        let mut covered = pieces.kept.clone();
        for &(plain, marked) in &self.remainders.twins {
            covered[marked as usize] |= pieces.kept[plain as usize];
        }
        for &i in self.single.iter().filter(|&&i| !covered[i as usize]) {
            (pieces.counts[i as usize], pieces.kept[i as usize]) = (1, true);
        }
        Ok(pieces)
    }

    /// The size of the vocabulary with these pieces.
    fn size(&self, pieces: &Pieces) -> usize {
        let new = pieces.kept.iter().zip(&self.in_anyway).filter(|&(&kept, &anyway)| kept && !anyway).count();
        self.before.len() + self.others.len() + new
    }

    fn vocabulary(self, pieces: &Pieces) -> Tokens {
        let mut ranked: Vec<(Reverse<u64>, String)> = (0..pieces.kept.len() as u32)
            .filter(|&i| pieces.kept[i as usize] && !self.in_anyway[i as usize])
            .map(|i| (Reverse(pieces.counts[i as usize]), self.remainders.token(i)))
            .collect();
        ranked.extend(self.others.into_iter().map(|form| (Reverse(1), form)));
        ranked.sort_unstable();
        let mut tokens = self.before;
        ranked.iter().for_each(|(_, token)| {
            tokens.add(token);
        });
        tokens
    }
}

/// Learns a vocabulary that begins with `base`. With `extends`, words that are tokens of `base` are learned from as well,
/// and what is more than `size` at the end is cut off.
pub(super) fn learn(
    counts: &WordCounts,
    base: Tokens,
    extends: bool,
    size: usize,
    options: &TopDownOptions,
    watch: &mut Watch<'_>,
) -> Result<Outcome> {
    if options.lower_thresh == Some(0) || options.upper_thresh == Some(0) {
        return Err(Error::Training(TrainingError::ZeroThreshold));
    }
    let least = counts.counts().iter().min().copied().unwrap_or(1);
    let most = counts.counts().iter().max().copied().unwrap_or(1);
    let mut low = i128::from(least.max(options.lower_thresh.unwrap_or(0)));
    let mut high = i128::from(most.min(options.upper_thresh.unwrap_or(u64::MAX)));
    let nothing = Tokens::default();
    let prepared = prepare(counts, if extends { &nothing } else { &base }, options);
    let left_out = prepared.left_out;
    if prepared.words.is_empty() {
        return Ok(Outcome { tokens: base, stop: Stop::NothingLeft, left_out, ..Outcome::default() });
    }
    let search = Search::new(prepared, &base, options, watch)?;
    let mut steps = 0;
    let (pieces, threshold) = loop {
        // At least 1: both bounds are at first, and the search ends at 1.
        let threshold = (low + high) / 2;
        let pieces = search.pieces(threshold as u64, watch)?;
        let missing = size as i128 - search.size(&pieces) as i128;
        let slack = (options.slack_ratio * size as f64).max(0.0);
        steps += 1;
        watch.done(steps);
        if (missing >= 0 && missing as f64 <= slack) || low >= high || threshold <= 1 {
            break (pieces, threshold);
        }
        if missing < 0 {
            low = threshold + 1;
        } else {
            high = threshold - 1;
        }
    };
    let mut tokens = search.vocabulary(&pieces);
    if extends {
        tokens.truncate(size);
    }
    let stop = if tokens.len() < size { Stop::Threshold(threshold as u64) } else { Stop::SizeReached };
    Ok(Outcome { tokens, stop, left_out, threshold: Some(threshold as u64), ..Outcome::default() })
}
