//! Rows of one segment: sentences or tokens that fill a row, or one document each.

use super::block::RowBlock;
use super::options::{Objective, RowOptions};
use super::shard::StoreShard;

/// Where the making of such rows stands in a shard.
#[derive(Debug, Default)]
pub(super) struct Singles {
    /// The document of the next token.
    document: usize,
    /// The sentence of the next token; only where rows are made of sentences.
    sentence: usize,
    /// The next token of the shard.
    at: usize,
    /// The row that is open: its identity and the document of its last token. Its ids are at the end of a block.
    open: Option<OpenRow>,
    /// The ids of the open row where a block ended before it.
    carried: Vec<u32>,
    /// How many rows of this pass began in the present document.
    ordinal: u64,
}

#[derive(Debug, Clone, Copy)]
struct OpenRow {
    identity: (u64, u64),
    last_document: usize,
    /// Tokens, without the first special one.
    length: usize,
}

impl Singles {
    /// Appends rows until a block has about `tokens` tokens; returns false at the end of the shard.
    pub fn fill(&mut self, shard: &StoreShard<'_>, options: &RowOptions, tokens: usize, out: &mut RowBlock) -> bool {
        out.ids.append(&mut self.carried);
        let full = out.ids.len() + tokens;
        while self.document < shard.documents() && out.ids.len() < full {
            self.push_tokens(shard, options, full, out);
            if self.at < shard.start(shard.sentences_of(self.document).1) {
                continue; // a long document goes on in the next block
            }
            if matches!(options.objective, Objective::DocSentences | Objective::Text) {
                self.end_row(options, out);
            }
            self.document += 1;
            self.ordinal = 0;
        }
        if self.document == shard.documents() {
            self.end_row(options, out);
            return false;
        }
        // The open row belongs to the next block.
        let end = out.row_ends.last().map_or(0, |&end| end as usize);
        self.carried = out.ids.split_off(end);
        true
    }

    /// Appends tokens of the present document until it ends or the block has `full` tokens.
    fn push_tokens(&mut self, shard: &StoreShard<'_>, options: &RowOptions, full: usize, out: &mut RowBlock) {
        let room = options.max_length - 2;
        let end = shard.start(shard.sentences_of(self.document).1);
        match options.objective {
            Objective::Text => {
                let cut = (end - self.at).saturating_sub(room);
                out.counts.tokens_cut += cut as u64;
                out.counts.truncated += u64::from(cut > 0);
                self.push(shard, end - cut, options, out);
                self.at = end;
            }
            Objective::Blocks => {
                while self.at < end && out.ids.len() < full {
                    match self.left(room).min(end - self.at) {
                        0 => self.end_row(options, out),
                        n => self.push(shard, self.at + n, options, out),
                    }
                }
            }
            _ => {
                while self.at < end && out.ids.len() < full {
                    let next = shard.start(self.sentence + 1);
                    let begins = self.at == shard.start(self.sentence);
                    out.counts.sentences_divided += u64::from(begins && next - self.at > room);
                    let n = (next - self.at).min(room);
                    if n > self.left(room) {
                        self.end_row(options, out);
                    }
                    self.push(shard, self.at + n, options, out);
                    self.sentence += usize::from(self.at == next);
                }
            }
        }
    }

    /// Returns how many tokens of the present document fit into the open row, or into a new one if none is open.
    fn left(&self, room: usize) -> usize {
        match self.open {
            None => room,
            Some(open) => room.saturating_sub(open.length + usize::from(open.last_document != self.document)),
        }
    }

    /// Appends the tokens of the present document up to `end`, which must fit, and before them what separates documents.
    fn push(&mut self, shard: &StoreShard<'_>, end: usize, options: &RowOptions, out: &mut RowBlock) {
        let n = end - self.at;
        let mut open = match self.open {
            Some(open) => open,
            None => {
                out.ids.push(options.cls_id);
                let identity = (shard.document_ids[self.document], self.ordinal);
                self.ordinal += 1;
                OpenRow { identity, last_document: self.document, length: 0 }
            }
        };
        if open.last_document != self.document {
            out.ids.push(options.sep_id);
            open.length += 1;
        }
        out.push_ids(shard.ids, self.at..end);
        self.at = end;
        self.open = Some(OpenRow { last_document: self.document, length: open.length + n, ..open });
    }

    fn end_row(&mut self, options: &RowOptions, out: &mut RowBlock) {
        if let Some(open) = self.open.take() {
            out.ids.push(options.sep_id);
            out.end_row(0, open.identity);
        }
    }
}
