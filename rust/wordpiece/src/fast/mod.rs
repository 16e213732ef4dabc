//! The same answers, quicker: BERT's normalizer, splitter and WordPiece in two loops.
//!
//! The first loop turns a chunk of text into normalized bytes and the places where words begin and end: ASCII in blocks
//! of 64 bytes (`scan`), everything else character by character through a table (`chars`). The second reads each word as
//! a key of 16 bytes and looks its ids up (`table`); a word that is not there is matched as in the pipeline and
//! remembered. What neither loop can say — a mark that canonical ordering would move — is left to the pipeline, which
//! does that part of the text again.

mod buffer;
mod chars;
mod scan;
mod table;

use buffer::Buffer;
use chars::{Chars, Kind};
pub use scan::Path;
use table::{INLINE, KEY_BYTES, Key, Table};

use crate::definition::Definition;
use crate::inputs::pieces::Pieces;
use crate::matcher::{Matcher, Walk};
use crate::normalize::{Normalizer, Span};
use crate::split::PreTokenizer;

/// Bytes of text between two looks at the words in it: the buffers of a chunk stay in the cache nearest to the core.
const CHUNK: usize = 4096;

/// Words whose keys are read before the first is looked up.
const GROUP: usize = 16;

/// Largest id: lengths of tokens are kept in a list by id.
const MAX_ID: u32 = 1 << 24;

/// The fast path of a tokenizer that can have one.
#[derive(Debug, Clone)]
pub(crate) struct Fast {
    path: Path,
    lowercase: bool,
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
    walk: Walk,
    ids: Vec<u32>,
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
    /// So many pieces are enough; the rest of the part need not be looked at.
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

impl Fast {
    /// The fast path of a tokenizer, when it has BERT's normalizer, with cleaning, and BERT's splitter.
    pub fn new(definition: &Definition, unk_id: u32, path: Path) -> Option<Fast> {
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
                && token.len() <= KEY_BYTES
                && !token.contains('\0')
                && (token.len() <= max_chars || token.chars().count() <= max_chars)
        };
        let mut table = Table::new(vocab.len());
        let mut lengths = vec![0; max_id as usize + 1];
        for (token, id) in vocab.iter() {
            lengths[id as usize] = token.len() as u32;
            // A continuation never is a word by itself here: punctuation stands alone.
            if is_word(token) && (prefix.is_empty() || !token.starts_with(prefix)) {
                table.fill(Key::of(token.as_bytes()), id);
            }
        }
        let prefix_len = prefix.len() as u32;
        Some(Fast { path, lowercase: bert.lowercase, chars: Chars::new(*bert), table, lengths, prefix_len, unk_id })
    }

    /// The memory of a new thread.
    pub fn memory(&self) -> Memory {
        Memory { table: self.table.clone(), buffer: Buffer::default(), walk: Walk::default(), ids: Vec::new() }
    }

    /// The bytes that the memory of a thread may take for the words that it remembers.
    pub fn memory_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The name of the instruction set.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Appends the pieces of a part of a text in which no added token stands.
    pub fn tokenize(&self, part: &str, order: Order, matcher: &Matcher, memory: &mut Memory, out: &mut Pieces) -> End {
        let (before, spans_before, words_before) = (out.ids.len(), out.spans.len(), out.words.len());
        let mut at = 0;
        let mut words = order.first_word;
        memory.buffer.reset(order.spans, order.base);
        loop {
            let missing = order.enough.saturating_sub(out.ids.len() - before);
            let end = part.len().min(at + CHUNK.min(missing.saturating_mul(8).max(256)));
            match self.normalize(part, at, end, &mut memory.buffer) {
                Some(stopped) => at = stopped,
                None => {
                    out.ids.truncate(before);
                    out.spans.truncate(spans_before);
                    out.words.truncate(words_before);
                    return End::Refused;
                }
            }
            if at == part.len() {
                memory.buffer.close();
            }
            words = self.match_words(order, words, matcher, memory, out);
            if at == part.len() || out.ids.len() - before >= order.enough {
                return End::Done(words);
            }
            memory.buffer.keep_open_word();
        }
    }

    /// Normalizes `part[at..]` up to `end` or a few bytes further (to the end of a character), into the buffer; `None`
    /// where only the pipeline can.
    fn normalize(&self, part: &str, mut at: usize, end: usize, buffer: &mut Buffer) -> Option<usize> {
        let bytes = part.as_bytes();
        while at < end {
            at = self.path.scan(bytes, at, end, self.lowercase, buffer);
            // Then characters one by one, until eight bytes of ASCII promise that a block is worth it again.
            while at < end {
                let byte = bytes[at];
                if byte < 128 {
                    if bytes.get(at..at + 8).is_some_and(|next| next.is_ascii()) && !is_removed(byte) {
                        break;
                    }
                    self.ascii(byte, buffer);
                    at += 1;
                    continue;
                }
                let c = part[at..].chars().next()?;
                let units = c.len_utf8() as u32;
                let next = at + c.len_utf8();
                let entry = self.chars.get(c);
                match entry.kind {
                    Kind::Same => buffer.push_in_word(&bytes[at..next], units),
                    Kind::Bytes => buffer.push_in_word(entry.bytes(), units),
                    Kind::Nothing => buffer.unit += units,
                    Kind::Space => {
                        buffer.push_space();
                        buffer.unit += units;
                    }
                    Kind::Word => buffer.push_word(entry.bytes(), units),
                    Kind::Ideograph => {
                        buffer.push_space();
                        buffer.push_word(entry.bytes(), units);
                        buffer.push_space();
                    }
                    Kind::Hangul => {
                        let parts = crate::unicode::decompose(c)?;
                        let mut text = [0; 12];
                        let mut n = 0;
                        for part in parts.iter() {
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

    fn ascii(&self, byte: u8, buffer: &mut Buffer) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                buffer.push_space();
                buffer.unit += 1;
            }
            _ if is_removed(byte) => buffer.unit += 1,
            _ if byte.is_ascii_alphanumeric() => {
                buffer.push_in_word(&[if self.lowercase { byte.to_ascii_lowercase() } else { byte }], 1)
            }
            _ => buffer.push_word(&[byte], 1),
        }
    }

    /// Looks up the closed words of the buffer; returns the number of words of the part so far.
    fn match_words(
        &self,
        order: Order,
        mut words: u32,
        matcher: &Matcher,
        memory: &mut Memory,
        out: &mut Pieces,
    ) -> u32 {
        let Memory { table, buffer, walk, ids } = memory;
        // The last word may be open and grow: a key reads past its end, never past the room behind the text.
        buffer.room(0);
        let text = buffer.text();
        let n = buffer.ends().len();
        let starts = &buffer.starts()[..n];
        let mut keys = [Key::NONE; GROUP];
        let mut lines = [0; GROUP];
        for (starts, ends) in starts.chunks(GROUP).zip(buffer.ends().chunks(GROUP)) {
            // First all keys of a group, so that the memory brings their lines while the next keys are read.
            for (i, (&start, &end)) in starts.iter().zip(ends).enumerate() {
                let len = (end - start) as usize;
                if len <= KEY_BYTES {
                    // SAFETY: the word lies in the text, behind which there is room for more than 16 bytes.
                    keys[i] = unsafe { Key::read(text.as_ptr().add(start as usize), len) };
                    lines[i] = table.line(keys[i]);
                } else {
                    keys[i] = Key::NONE;
                }
            }
            if out.ids.capacity() - out.ids.len() < INLINE * GROUP {
                out.ids.reserve(4 * n + INLINE * GROUP);
            }
            for (i, (&start, &end)) in starts.iter().zip(ends).enumerate() {
                let at = out.ids.len();
                let (slot, found) = table.slot(lines[i], keys[i]);
                if found && slot.count as usize <= INLINE && end - start <= KEY_BYTES as u32 {
                    debug_assert!(out.ids.capacity() - at >= INLINE);
                    // SAFETY: there is room for three numbers for each word of the group that is still to come; three
                    // are written, of which `count` are taken over.
                    unsafe {
                        out.ids.as_mut_ptr().add(at).cast::<[u32; INLINE]>().write_unaligned(slot.ids);
                        out.ids.set_len(at + slot.count as usize);
                    }
                } else {
                    let word = &text[start as usize..end as usize];
                    if found && word.len() <= KEY_BYTES {
                        out.ids.extend_from_slice(table.long_ids(slot));
                    } else {
                        self.look_up(word, matcher, walk, ids);
                        out.ids.extend_from_slice(ids);
                        if word.len() <= KEY_BYTES {
                            table.remember(keys[i], ids);
                        }
                    }
                    out.ids.reserve(INLINE * GROUP);
                }
                if order.words {
                    out.words.resize(out.ids.len(), order.word.unwrap_or(words));
                }
                words += 1;
                if order.spans {
                    self.push_spans(buffer, start as usize, end as usize, &out.ids[at..], &mut out.spans);
                }
            }
        }
        words
    }

    /// The pieces of a word that the table does not have.
    #[cold]
    #[inline(never)]
    fn look_up(&self, word: &[u8], matcher: &Matcher, walk: &mut Walk, ids: &mut Vec<u32>) {
        ids.clear();
        // Normalized text is UTF-8: it is put together of whole characters.
        let found = std::str::from_utf8(word).is_ok_and(|word| matcher.walk(word, walk));
        match found {
            true => ids.extend(walk.entries.iter().map(|entry| entry.id)),
            false => ids.push(self.unk_id),
        }
    }

    /// Where the pieces of a word stand: one piece is the whole word, more have the lengths of their tokens.
    #[inline]
    fn push_spans(&self, buffer: &Buffer, start: usize, end: usize, ids: &[u32], spans: &mut Vec<Span>) {
        let mut push = |from, to| {
            let (start, end) = buffer.span(from, to);
            spans.push(Span { start, end });
        };
        if ids.len() == 1 {
            return push(start, end);
        }
        let mut at = start;
        for (i, &id) in ids.iter().enumerate() {
            let prefix = if i == 0 { 0 } else { self.prefix_len };
            let next = at + (self.lengths[id as usize] - prefix) as usize;
            push(at, next);
            at = next;
        }
    }
}

/// Whether cleaning removes an ASCII byte.
fn is_removed(byte: u8) -> bool {
    matches!(byte, 0..=31 | 127) && !matches!(byte, b'\t' | b'\n' | b'\r')
}
