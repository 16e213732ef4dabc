//! The same answers, quicker: BERT's normalizer, splitter and WordPiece in two loops.
//!
//! The first loop turns a chunk of text into normalized bytes and the places where words begin and end: ASCII in blocks
//! of 64 bytes (`scan`), everything else character by character through a table (`chars`). The second reads each word as
//! a key of 16 bytes and looks its ids up (`table`); a word that is not there is matched as in the pipeline and
//! remembered. What neither loop can say — a mark that canonical ordering would move — is left to the pipeline, which
//! does that part of the text again.

mod arch;
mod buffer;
mod chars;
mod scan;
mod table;
mod texts;
pub(crate) mod words;

pub use arch::InstructionSet;
use buffer::Buffer;
use chars::{Chars, Entry, Kind};
use scan::Source;
use table::{Found, GROUP, Key, Table, WORD_BYTES, Words};
pub(crate) use texts::{Found as FoundText, Wanted};

use crate::added::Segment;
use crate::definition::Definition;
use crate::inputs::pieces::Pieces;
use crate::matcher::{Matcher, WordPieces};
use crate::normalize::Normalizer;
use crate::offsets::Span;
use crate::split::PreTokenizer;

/// Bytes of text between two looks at the words in it: the buffers of a chunk stay in the cache nearest to the core.
const CHUNK: usize = 4096;

/// Largest id: lengths of tokens are kept in a list by id.
const MAX_ID: u32 = 1 << 24;

/// The fast path of a tokenizer that can have one.
#[derive(Debug, Clone)]
pub(crate) struct Fast {
    path: InstructionSet,
    chars: Chars,
    /// What a thread's table is at first.
    table: Table,
    /// The bytes of each token, by id, and of the prefix that continues a word.
    lengths: Vec<u32>,
    prefix_len: u32,
    unk_id: u32,
}

/// What a thread keeps between texts.
#[derive(Debug)]
pub(crate) struct Memory {
    table: Table,
    buffer: Buffer,
    word_pieces: WordPieces,
    ids: Vec<u32>,
    /// The number of pieces of each word of a chunk.
    counts: Vec<u32>,
    /// The words of texts that are looked up together, up to the end of each text; and what comes of them.
    marks: Vec<usize>,
    found: Pieces,
    /// The normalized added tokens of a text and what lies between them, and the words there.
    segments: Vec<Segment>,
    cut_starts: Vec<u32>,
    cut_ends: Vec<u32>,
}

impl Memory {
    /// Gives back buffers that one huge word has grown beyond `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        if self.buffer.capacity_bytes() > bytes {
            self.buffer = Buffer::default();
        }
    }
}

/// What is wanted of a part of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// The byte of the text at which the part begins.
    pub base: u32,
    /// Whether spans are wanted.
    pub spans: bool,
    /// The word id of all pieces, where the text was split before.
    pub word: Option<u32>,
    /// The number of words before the part.
    pub first_word: u32,
    /// Whether word ids are wanted.
    pub words: bool,
    /// So many pieces in the output are enough; the rest of the part need not be looked at.
    pub enough: usize,
}

/// How a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it is done; the number of words of the text so far.
    Done(u32),
    /// There is something in it that only the pipeline can do. Nothing was appended.
    Refused,
}

/// How much was in the output before a part.
struct Lengths {
    ids: usize,
    words: usize,
    spans: usize,
}

impl Lengths {
    fn of(out: &Pieces) -> Lengths {
        Lengths { ids: out.ids.len(), words: out.words.len(), spans: out.spans.len() }
    }

    /// Takes back what was appended since.
    fn restore(self, out: &mut Pieces) {
        out.ids.truncate(self.ids);
        out.words.truncate(self.words);
        out.spans.truncate(self.spans);
    }
}

impl Fast {
    /// The fast path of a tokenizer, when it has BERT's normalizer, with cleaning, and BERT's splitter.
    pub fn new(definition: &Definition, unk_id: u32, exact_text: bool, path: InstructionSet) -> Option<Fast> {
        let (Some(Normalizer::Bert(bert)), Some(PreTokenizer::Bert)) =
            (&definition.normalizer, &definition.pre_tokenizer)
        else {
            return None;
        };
        let vocab = &definition.vocab;
        let max_id = vocab.max_id()?;
        if !bert.clean_text || max_id > MAX_ID {
            return None;
        }
        let max_chars = definition.max_input_chars_per_word;
        let prefix = definition.continuing_subword_prefix.as_str();
        let is_word = |token: &str| {
            !token.is_empty()
                && token.len() <= WORD_BYTES
                && !token.contains('\0')
                && (token.len() <= max_chars || token.chars().count() <= max_chars)
        };
        let mut table = Table::new(vocab.len());
        let mut lengths = vec![0; max_id as usize + 1];
        for (token, id) in vocab.iter() {
            lengths[id as usize] = token.len() as u32;
            // A continuation never is a word by itself here: punctuation stands alone.
            if is_word(token) && (prefix.is_empty() || !token.starts_with(prefix)) {
                table.fill(token.as_bytes(), id);
            }
        }
        let prefix_len = prefix.len() as u32;
        let chars = Chars::new(*bert, exact_text);
        Some(Fast { path, chars, table, lengths, prefix_len, unk_id })
    }

    /// The memory of a new thread.
    pub fn memory(&self) -> Memory {
        Memory {
            table: self.table.clone(),
            buffer: Buffer::default(),
            word_pieces: WordPieces::default(),
            ids: Vec::new(),
            counts: Vec::new(),
            marks: Vec::new(),
            found: Pieces::default(),
            segments: Vec::new(),
            cut_starts: Vec::new(),
            cut_ends: Vec::new(),
        }
    }

    /// The bytes that the memory of a thread may take for the words that it remembers.
    pub const MEMORY_BYTES: usize = table::MOST_BYTES;

    /// The name of the instruction set.
    pub fn instruction_set(&self) -> InstructionSet {
        self.path
    }

    /// Appends the pieces of a part of a text in which no added token stands.
    pub fn tokenize(&self, part: &str, order: Order, matcher: &Matcher, memory: &mut Memory, out: &mut Pieces) -> End {
        let before = Lengths::of(out);
        let mut at = 0;
        let mut words = order.first_word;
        memory.buffer.reset(order.spans, order.base);
        loop {
            // Where a few pieces are enough, no more text is read than they will probably take.
            let missing = order.enough.saturating_sub(out.ids.len());
            let end = part.len().min(at + CHUNK.min(missing.saturating_mul(8).max(256)));
            let Some(stopped) = self.normalize(part, at, end, &mut memory.buffer) else {
                before.restore(out);
                return End::Refused;
            };
            at = stopped;
            if at == part.len() {
                memory.buffer.close();
            }
            words += self.match_buffer(order, words, matcher, memory, out);
            if at == part.len() || out.ids.len() >= order.enough {
                return End::Done(words);
            }
            memory.buffer.keep_open_word();
        }
    }

    /// Appends the pieces of a part of a text in which no raw added token stands, but perhaps normalized ones:
    /// `cut` finds them in the normalized text, `token` appends one that was found, with the text and the span it took.
    #[allow(clippy::too_many_arguments, reason = "what is read, what is written, and two callbacks")]
    pub fn tokenize_around(
        &self,
        part: &str,
        order: Order,
        matcher: &Matcher,
        memory: &mut Memory,
        out: &mut Pieces,
        cut: impl Fn(&str, &mut Vec<Segment>),
        token: impl Fn(usize, &str, Span, u32, &mut Pieces),
    ) -> End {
        memory.buffer.reset(order.spans, order.base);
        if self.normalize(part, 0, part.len(), &mut memory.buffer).is_none() {
            return End::Refused;
        }
        memory.buffer.close();
        // SAFETY: the buffer holds whole characters only, copied from a str or encoded from chars.
        let text = unsafe { std::str::from_utf8_unchecked(memory.buffer.text()) };
        let mut segments = std::mem::take(&mut memory.segments);
        cut(text, &mut segments);
        let mut words = order.first_word;
        if segments.iter().all(|segment| segment.added_token.is_none()) {
            words += self.match_buffer(order, words, matcher, memory, out);
            memory.segments = segments;
            return End::Done(words);
        }
        let mut starts = std::mem::take(&mut memory.cut_starts);
        let mut ends = std::mem::take(&mut memory.cut_ends);
        let mut next = 0;
        for Segment { added_token, range } in &segments {
            if let Some(found) = added_token {
                let (start, end) = memory.buffer.span(range.start, range.end);
                // SAFETY: as above; matches begin and end between characters.
                let text = unsafe { std::str::from_utf8_unchecked(&memory.buffer.text()[range.clone()]) };
                token(*found, text, Span { start, end }, words, out);
                words += 1;
                continue;
            }
            // The words between two tokens, cut off where a token begins or ends inside them.
            starts.clear();
            ends.clear();
            let (low, high) = (range.start as u32, range.end as u32);
            let all = memory.buffer.starts().iter().zip(memory.buffer.ends()).skip(next);
            for (&start, &end) in all.take_while(|(start, _)| **start < high) {
                if end > low {
                    starts.push(start.max(low));
                    ends.push(end.min(high));
                }
                // A word that goes on behind the range may have another part there.
                next += usize::from(end <= high);
            }
            words += self.match_words(order, words, &mut starts, &mut ends, matcher, memory, out);
        }
        (memory.cut_starts, memory.cut_ends, memory.segments) = (starts, ends, segments);
        End::Done(words)
    }

    /// Normalizes `part[at..]` up to `end` or a few bytes further (to the end of a character), into the buffer; `None`
    /// where only the pipeline can.
    fn normalize(&self, part: &str, mut at: usize, end: usize, buffer: &mut Buffer) -> Option<usize> {
        let end = (end..part.len()).find(|&end| part.is_char_boundary(end)).unwrap_or(part.len());
        while at < end {
            let source = Source { text: part, at, end, chars: &self.chars };
            at = self.path.scan(source, buffer);
            // What does not fit into a block, character by character, until one does, or eight bytes of ASCII.
            while at < end {
                let byte = part.as_bytes()[at];
                if byte < 128 {
                    if part.as_bytes().get(at..at + 8).is_some_and(|next| next.is_ascii()) {
                        break;
                    }
                    self.ascii(byte, buffer);
                    at += 1;
                    continue;
                }
                let (c, next) = char_at(part, at);
                let units = (next - at) as u32;
                let Entry { kind, len, bytes: [a, b, d, e, f, g] } = self.chars.get(c);
                let (text, len) = ([a, b, d, e, f, g, 0, 0], len as usize);
                match kind {
                    Kind::Inside | Kind::Space | Kind::Word => break,
                    Kind::Longer => buffer.push_short_in_word(text, len, units),
                    Kind::Ideograph => {
                        // The spaces around it stand for it as well.
                        buffer.push_space(units);
                        buffer.push_word(text, len, units);
                        buffer.unit -= units;
                        buffer.push_space(units);
                        buffer.unit += units;
                    }
                    Kind::Hangul => {
                        let mut text = [0; 12];
                        let mut n = 0;
                        for part in crate::unicode::decompose(c)?.iter() {
                            n += part.encode_utf8(&mut text[n..]).len();
                        }
                        buffer.push_in_word(&text[..n], units);
                    }
                    Kind::Other => return None,
                }
                at = next;
            }
        }
        Some(at)
    }

    #[inline(always)]
    fn ascii(&self, byte: u8, buffer: &mut Buffer) {
        let bytes = [byte, 0, 0, 0, 0, 0, 0, 0];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                buffer.push_space(1);
                buffer.unit += 1;
            }
            _ if is_removed(byte) => buffer.unit += 1,
            b'A'..=b'Z' if self.chars.lowercase() => buffer.push_short_in_word([byte + 32, 0, 0, 0, 0, 0, 0, 0], 1, 1),
            _ if byte.is_ascii_alphanumeric() => buffer.push_short_in_word(bytes, 1, 1),
            _ => buffer.push_word(bytes, 1, 1),
        }
    }

    /// Appends the pieces of the closed words of the buffer; returns the number of words.
    fn match_buffer(&self, order: Order, first: u32, matcher: &Matcher, memory: &mut Memory, out: &mut Pieces) -> u32 {
        let (mut starts, mut ends) = memory.buffer.take_words();
        // A word that is open has begun and not ended.
        let open = starts.get(ends.len()).copied();
        starts.truncate(ends.len());
        let words = self.match_words(order, first, &mut starts, &mut ends, matcher, memory, out);
        starts.extend(open);
        memory.buffer.give_words_back(starts, ends);
        words
    }

    /// Appends the pieces of words of the buffer, the first of which has number `first`; returns the number of words.
    #[allow(clippy::too_many_arguments, reason = "what is read, what is written, and what is asked for")]
    fn match_words(
        &self,
        order: Order,
        first: u32,
        starts: &mut Vec<u32>,
        ends: &mut Vec<u32>,
        matcher: &Matcher,
        memory: &mut Memory,
        out: &mut Pieces,
    ) -> u32 {
        let Memory { table, buffer, word_pieces, ids, counts, .. } = memory;
        let n = ends.len();
        let from = out.ids.len();
        starts.extend_from_slice(&[0; GROUP]);
        ends.extend_from_slice(&[0; GROUP]);
        // SAFETY: the lists of words are those of this buffer, in order.
        let words = unsafe { Words::new(buffer.text_with_slack(), starts, ends) };
        let found = Found { ids: &mut out.ids, counts, count: order.words || order.spans };
        self.path.look_up(table, words, found, &mut |table, word, key, out| {
            self.match_word(word, key, table, matcher, word_pieces, ids, out);
        });
        starts.truncate(n);
        ends.truncate(n);
        if order.words {
            push_words(order.word, first, counts, &mut out.words);
        }
        if order.spans {
            self.push_spans(buffer, starts, ends, counts, &out.ids[from..], &mut out.spans);
        }
        n as u32
    }

    /// The ids of a word that is not in its line of the table.
    #[cold]
    #[allow(clippy::too_many_arguments, reason = "the parts of a thread's memory, borrowed apart")]
    #[inline(never)]
    fn match_word(
        &self,
        word: &[u8],
        key: Key,
        table: &mut Table,
        matcher: &Matcher,
        word_pieces: &mut WordPieces,
        ids: &mut Vec<u32>,
        out: &mut Vec<u32>,
    ) {
        if table.look_elsewhere(word, key, out) {
            return;
        }
        ids.clear();
        // SAFETY: the buffer holds whole characters only, copied from a str or encoded from chars, and words end
        // between them.
        let text = unsafe { std::str::from_utf8_unchecked(word) };
        match matcher.match_word(text, word_pieces) {
            true => ids.extend(word_pieces.pieces.iter().map(|piece| piece.id)),
            false => ids.push(self.unk_id),
        }
        out.extend_from_slice(ids);
        table.remember(word, key, ids);
    }

    /// Where the pieces of words stand: one piece is the whole word, more have the lengths of their tokens.
    fn push_spans(
        &self,
        buffer: &Buffer,
        starts: &[u32],
        ends: &[u32],
        counts: &[u32],
        ids: &[u32],
        spans: &mut Vec<Span>,
    ) {
        let span = |from, to| {
            let (start, end) = buffer.span(from, to);
            Span { start, end }
        };
        let mut place = spans.len();
        // Room first, then plain stores: appending them one at a time takes several times as long.
        spans.resize(place + ids.len(), Span { start: 0, end: 0 });
        let mut piece = 0;
        for ((&start, &end), &count) in starts.iter().zip(ends).zip(counts) {
            if count == 1 {
                // SAFETY: words lie in the text, whose bytes all have a place in the lists of spans; there is room for a
                // span for each id, and counts are those of the ids.
                unsafe { *spans.get_unchecked_mut(place) = buffer.span_unchecked(start as usize, end as usize) };
            } else {
                let mut at = start as usize;
                for i in 0..count as usize {
                    let prefix = if i == 0 { 0 } else { self.prefix_len };
                    let next = at + (self.lengths[ids[piece + i] as usize] - prefix) as usize;
                    spans[place + i] = span(at, next);
                    at = next;
                }
            }
            piece += count as usize;
            place += count as usize;
        }
        debug_assert_eq!(piece, ids.len());
    }
}

/// The word ids of pieces: `given`, or `first` and on.
fn push_words(given: Option<u32>, first: u32, counts: &[u32], words: &mut Vec<u32>) {
    let n: u32 = counts.iter().sum();
    let at = words.len();
    let end = at + n as usize;
    words.resize(end + MOST_AT_ONCE, 0);
    write_words((first..).map(|word| given.unwrap_or(word)), counts, words, at);
    words.truncate(end);
}

/// The numbers of a word's pieces that are written at once, needed or not: few words have more pieces.
const MOST_AT_ONCE: usize = 4;

/// Writes the number of each word as often as it has pieces, from place `at` on; returns where that ends.
#[inline]
fn write_words(numbers: impl Iterator<Item = u32>, counts: &[u32], words: &mut [u32], mut at: usize) -> usize {
    for (number, &count) in numbers.zip(counts) {
        let count = count as usize;
        match words.get_mut(at..at + MOST_AT_ONCE) {
            Some(all) if count <= MOST_AT_ONCE => all.fill(number),
            _ => words[at..at + count].fill(number),
        }
        at += count;
    }
    at
}

/// The character at byte `at`, and where the next one begins.
#[inline(always)]
fn char_at(text: &str, at: usize) -> (char, usize) {
    let bytes = &text.as_bytes()[at..];
    let tail = |byte: u8| u32::from(byte & 0x3F);
    // Two and three bytes are nearly all there is; the rest goes the ordinary way.
    let code = match *bytes {
        [a @ 0xC0..=0xDF, b, ..] => Some((u32::from(a & 0x1F) << 6 | tail(b), 2)),
        [a @ 0xE0..=0xEF, b, c, ..] => Some((u32::from(a & 0x0F) << 12 | tail(b) << 6 | tail(c), 3)),
        _ => None,
    };
    match code.and_then(|(code, len)| Some((char::from_u32(code)?, at + len))) {
        Some(found) => found,
        None => {
            let c = text[at..].chars().next().unwrap_or('\0');
            (c, at + c.len_utf8())
        }
    }
}

/// Whether cleaning removes an ASCII byte.
fn is_removed(byte: u8) -> bool {
    matches!(byte, 0..=31 | 127) && !matches!(byte, b'\t' | b'\n' | b'\r')
}
