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
use std::hash::Hasher;

use hashbrown::{HashMap, HashSet, HashTable};

use super::symbols::NumberHasher;
use super::tokens::{JOINER, Tokens};
use super::{Outcome, Stop, Watch, WordCounts};
use crate::error::{Error, Result, TrainingError};
use crate::memory::prefetch;

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
    /// In string order.
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
    if ranked.len() > options.max_unique_chars {
        ranked.truncate(options.max_unique_chars);
        let allowed: HashSet<char> = ranked.into_iter().map(|(_, c)| c).collect();
        words.retain(|(word, _)| word.chars().all(|c| allowed.contains(&c)));
    }
    if let Some(most) = options.max_input_words
        && words.len() > most
    {
        // The sort is stable: of words with equal counts those stay that come first in string order.
        words.sort_by_key(|&(_, n)| Reverse(n));
        words.truncate(most);
        words.sort_unstable();
    }
    let chars: HashSet<char> = words.iter().flat_map(|(word, _)| word.chars()).collect();
    let mut chars: Vec<char> = chars.into_iter().collect();
    chars.sort_unstable();
    let kept: u128 = words.iter().map(|&(_, n)| u128::from(n)).sum();
    let left_out = LeftOut { words: (counts.len() - words.len()) as u64, occurrences: counts.total() - kept };
    Prepared { words, chars, left_out }
}

/// No remainder.
const NONE: u32 = u32::MAX;

/// The remainders of all words, numbered: those that start a word (plain) and those that go on in one (marked).
///
/// Plain ones come first and bear the numbers of their words; marked ones follow in string order. So a shorter remainder
/// that begins a longer one of its kind has a smaller number. Without the joiner there is one kind, and all are marked.
struct Remainders<'a> {
    /// In string order.
    words: Vec<(&'a str, u64)>,
    joiner: &'static str,
    /// For each place of each word the number of the remainder that starts there.
    at: Vec<u32>,
    /// Where the places of each word begin, and at last where they end.
    starts: Vec<usize>,
    /// For each number a word and the byte in it.
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

/// What a round knows about a remainder, side by side because both are wanted at once.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    count: u64,
    /// The characters of the longest piece that begins it.
    longest: u32,
}

impl<'a> Remainders<'a> {
    fn new(words: Vec<(&'a str, u64)>, joiner: bool, watch: &mut Watch<'_>) -> Result<Remainders<'a>> {
        let marked = if joiner { words.len() as u32 } else { 0 };
        let text_len: usize = words.iter().map(|(word, _)| word.len()).sum();
        let mut starts = Vec::with_capacity(words.len() + 1);
        let mut at: Vec<u32> = Vec::with_capacity(text_len);
        let mut example: Vec<(u32, u32)> = (0..marked).map(|word| (word, 0)).collect();
        let mut len = vec![0; marked as usize];
        // A marked remainder is a character and the shorter remainder behind it.
        let mut parts: Vec<(char, u32)> = vec![('\0', NONE); marked as usize];
        let mut numbers: HashTable<u32> = HashTable::new();
        let mut places = Vec::new();
        for (i, (word, _)) in words.iter().enumerate() {
            watch.step()?;
            starts.push(at.len());
            places.clear();
            places.extend(word.char_indices());
            let here = at.len();
            at.resize(here + places.len(), i as u32);
            let mut behind = NONE;
            for (place, &(byte, c)) in places.iter().enumerate().rev() {
                if place == 0 && joiner {
                    len[i] = places.len() as u32;
                    continue;
                }
                let hash = |(c, behind): (char, u32)| {
                    let mut hasher = NumberHasher::default();
                    hasher.write_u64(u64::from(c as u32) << 32 | u64::from(behind));
                    hasher.finish()
                };
                let found = numbers.entry(
                    hash((c, behind)),
                    |&it| parts[it as usize] == (c, behind),
                    |&it| hash(parts[it as usize]),
                );
                behind = *found.or_insert_with(|| parts.len() as u32).get();
                if behind as usize == parts.len() {
                    parts.push((c, at.get(here + place + 1).copied().unwrap_or(NONE)));
                    example.push((i as u32, byte as u32));
                    len.push((places.len() - place) as u32);
                }
                at[here + place] = behind;
            }
        }
        starts.push(at.len());
        drop((numbers, parts));
        let text = |&(word, byte): &(u32, u32)| &words[word as usize].0[byte as usize..];
        let mut order: Vec<(u64, u32)> =
            (marked..example.len() as u32).map(|i| (first_bytes(text(&example[i as usize])), i)).collect();
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| text(&example[a.1 as usize]).cmp(text(&example[b.1 as usize])))
        });
        watch.pause()?;
        let mut new_number: Vec<u32> = (0..example.len() as u32).collect();
        (marked..).zip(&order).for_each(|(new, &(_, old))| new_number[old as usize] = new);
        let old_number = |i: u32| if i < marked { i } else { order[(i - marked) as usize].1 };
        at.iter_mut().for_each(|number| *number = new_number[*number as usize]);
        drop(new_number);
        let example: Vec<(u32, u32)> = (0..example.len() as u32).map(|i| example[old_number(i) as usize]).collect();
        let len: Vec<u32> = (0..len.len() as u32).map(|i| len[old_number(i) as usize]).collect();
        drop(order);
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
        let is_twin = |&i: &usize| joiner && words[i].0.len() > JOINER.len() && words[i].0.starts_with(JOINER);
        let twins = (0..words.len()).filter(is_twin);
        let twins = twins.map(|i| (i as u32, at[starts[i] + JOINER.chars().count()])).collect();
        let joiner = if joiner { JOINER } else { "" };
        Ok(Remainders { words, joiner, at, starts, example, len, shorter, marked, twins })
    }

    /// So many there are.
    fn count(&self) -> usize {
        self.len.len()
    }

    fn text(&self, number: u32) -> &str {
        let (word, byte) = self.example[number as usize];
        &self.words[word as usize].0[byte as usize..]
    }

    /// The token: the text, with the joiner where it goes on in a word.
    fn token(&self, number: u32) -> String {
        let joiner = if number < self.marked { "" } else { self.joiner };
        format!("{joiner}{}", self.text(number))
    }

    /// The numbers that have this token: none, one, or two that are twins.
    fn numbers(&self, token: &str) -> impl Iterator<Item = u32> {
        let find = |low: u32, high: u32, text: &str| {
            let (mut low, mut high) = (low, high);
            while low < high {
                let middle = low.midpoint(high);
                if self.text(middle) < text { low = middle + 1 } else { high = middle }
            }
            low
        };
        let plain = find(0, self.marked, token);
        let plain = (plain < self.marked && self.text(plain) == token).then_some(plain);
        let end = self.count() as u32;
        let marked = token.strip_prefix(self.joiner).and_then(|text| {
            let marked = find(self.marked, end, text);
            (marked < end && self.text(marked) == text).then_some(marked)
        });
        plain.into_iter().chain(marked)
    }

    /// The counts of the first round, in which every place of a word is a start.
    fn first_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.count()];
        for (i, &(_, n)) in self.words.iter().enumerate() {
            self.at[self.starts[i]..self.starts[i + 1]].iter().for_each(|&number| counts[number as usize] += n);
        }
        counts
    }

    /// The counts of a round that starts from the pieces `kept` and all characters, into the cells.
    fn round(&self, kept: &mut [bool], cells: &mut [Cell], watch: &mut Watch<'_>) -> Result<()> {
        let plain_kept: Vec<bool> = self.twins.iter().map(|&(plain, _)| kept[plain as usize]).collect();
        for (&(_, marked), &plain) in self.twins.iter().zip(&plain_kept) {
            // One text, one piece: whoever kept it. The other direction is seen to below.
            kept[marked as usize] |= plain;
        }
        for i in 0..cells.len() {
            let longest = match (kept[i], self.shorter[i]) {
                (true, _) => self.len[i],
                (false, NONE) => 1,
                (false, shorter) => cells[shorter as usize].longest,
            };
            cells[i] = Cell { count: 0, longest };
        }
        for &(plain, marked) in &self.twins {
            // A word that begins with the joiner may also begin with a marked piece, which for once is read as it stands.
            let as_marked = JOINER.chars().count() as u32 + cells[marked as usize].longest;
            let cell = &mut cells[plain as usize];
            cell.longest = cell.longest.max(as_marked);
        }
        self.cut_all(cells, watch)
    }

    /// Cuts all words into their longest pieces and counts the remainders that start them.
    ///
    /// The next piece of a word is known only when the cell of the last one has come from memory. So many words are cut at
    /// once: while one waits for its cell the others go on.
    fn cut_all(&self, cells: &mut [Cell], watch: &mut Watch<'_>) -> Result<()> {
        let mut lanes = [(0, 0, 0u64); LANES];
        let (mut live, mut next) = (0, 0);
        loop {
            while live < LANES && next < self.words.len() {
                lanes[live] = (self.starts[next], self.starts[next + 1], self.words[next].1);
                (live, next) = (live + 1, next + 1);
            }
            if live == 0 {
                return Ok(());
            }
            let mut i = 0;
            while i < live {
                let (place, end, n) = &mut lanes[i];
                let cell = &mut cells[self.at[*place] as usize];
                cell.count += *n;
                *place += cell.longest as usize;
                if place < end {
                    prefetch(cells.as_ptr().wrapping_add(self.at[*place] as usize));
                    i += 1;
                } else {
                    live -= 1;
                    lanes[i] = lanes[live];
                }
            }
            watch.step()?;
        }
    }
}

/// Words that are cut at once.
const LANES: usize = 16;

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
    /// For each number, whether its text is in `before`.
    in_anyway: Vec<bool>,
    /// The continuation forms of all characters, which are always in: the numbers of those that are remainders, and the
    /// others, unless they are in `before`.
    single: Vec<u32>,
    others: Vec<String>,
    /// Special tokens and plain characters.
    before: Tokens,
}

/// The pieces for a threshold: for each number its count, and whether it is kept.
struct Pieces {
    cells: Vec<Cell>,
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
        let mut in_anyway = vec![false; remainders.count()];
        for token in before.texts() {
            remainders.numbers(token).for_each(|i| in_anyway[i as usize] = true);
        }
        // A word that is called like a continuation of one character has that character as a remainder as well.
        let (mut single, mut others) = (Vec::new(), Vec::new());
        for c in prepared.chars.iter().filter(|_| options.include_joiner) {
            let form = format!("{JOINER}{c}");
            let number = remainders.numbers(&form).find(|&i| i >= remainders.marked);
            match number {
                Some(number) => single.push(number),
                None if before.id(&form).is_none() => others.push(form),
                None => {}
            }
        }
        let first = remainders.first_counts();
        Ok(Search { remainders, first, iterations: options.num_iterations, in_anyway, single, others, before })
    }

    fn pieces(&self, threshold: u64, pieces: &mut Pieces, watch: &mut Watch<'_>) -> Result<()> {
        let Pieces { cells, kept } = pieces;
        kept.fill(false);
        for round in 0..self.iterations {
            let mut settled = round > 0;
            if round == 0 {
                cells.iter_mut().zip(&self.first).for_each(|(cell, &count)| cell.count = count);
            } else {
                self.remainders.round(&mut kept.clone(), cells, watch)?;
            }
            for (kept, cell) in kept.iter_mut().zip(cells.iter()) {
                let now = cell.count >= threshold;
                settled &= *kept == now;
                *kept = now;
            }
            if settled {
                // Rounds depend on the set of pieces alone.
                break;
            }
        }
        // One text, one token: where both are kept, the ending gives the count.
        for &(plain, marked) in &self.remainders.twins {
            kept[plain as usize] &= !kept[marked as usize];
        }
        let covered: HashSet<u32> =
            self.remainders.twins.iter().filter(|twin| kept[twin.0 as usize]).map(|twin| twin.1).collect();
        for &i in self.single.iter().filter(|i| !covered.contains(*i)) {
            if !std::mem::replace(&mut kept[i as usize], true) {
                cells[i as usize].count = 1;
            }
        }
        Ok(())
    }

    /// The size of the vocabulary with these pieces.
    fn size(&self, pieces: &Pieces) -> usize {
        let new = pieces.kept.iter().zip(&self.in_anyway).filter(|&(&kept, &anyway)| kept && !anyway).count();
        self.before.len() + self.others.len() + new
    }

    fn vocabulary(self, pieces: &Pieces) -> Tokens {
        let mut ranked: Vec<(Reverse<u64>, String)> = (0..pieces.kept.len() as u32)
            .filter(|&i| pieces.kept[i as usize] && !self.in_anyway[i as usize])
            .map(|i| (Reverse(pieces.cells[i as usize].count), self.remainders.token(i)))
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
    let n = search.remainders.count();
    let mut pieces = Pieces { cells: vec![Cell::default(); n], kept: vec![false; n] };
    let mut steps = 0;
    let threshold = loop {
        // At least 1: both bounds are at first, and the search ends at 1.
        let threshold = (low + high) / 2;
        search.pieces(threshold as u64, &mut pieces, watch)?;
        let missing = size as i128 - search.size(&pieces) as i128;
        let slack = (options.slack_ratio * size as f64).max(0.0);
        steps += 1;
        watch.done(steps);
        if (missing >= 0 && missing as f64 <= slack) || low >= high || threshold <= 1 {
            break threshold;
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
