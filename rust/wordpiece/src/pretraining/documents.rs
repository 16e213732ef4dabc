//! Divides texts into documents and their sentences.

use super::random::text_id;
use super::sentences::SentenceSplitter;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentRule {
    /// Lines without a blank one between them; a document ends with its file.
    #[default]
    BlankLine,
    /// Each line that is not blank.
    Line,
    /// Each file.
    File,
    /// Each text, which may have several lines: a field of JSON lines, or a value of a column.
    Value,
}

/// The end of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DocumentEnd {
    /// How many sentences of the block come before it.
    pub sentences: usize,
    /// The id of the document.
    pub id: u64,
    /// The index of its file in the list of this run.
    pub input: usize,
    /// How many documents of that file have ended, this one included.
    pub number: u64,
}

/// The sentences of a block and where documents end among them.
#[derive(Debug, Default)]
pub(super) struct DividedBlock<'t> {
    /// The sentences, trimmed and not blank.
    pub sentences: Vec<&'t str>,
    /// For each sentence, the index of the text that it is from.
    pub origins: Vec<u32>,
    pub ends: Vec<DocumentEnd>,
}

/// The numbers of documents in a file take this many bits of an id.
const NUMBER_BITS: u32 = 40;

/// Where the division of texts stands.
#[derive(Debug)]
pub(super) struct Documents {
    rule: DocumentRule,
    /// The number of each file in the whole list.
    file_numbers: Vec<u64>,
    /// The index of the present file.
    input: usize,
    /// How many of its documents have ended.
    number: u64,
    /// Lines of a document have been read and its end has not.
    open: bool,
    /// How many more documents an earlier run has done.
    skip: u64,
}

impl Documents {
    pub fn new(rule: DocumentRule, file_numbers: Vec<u64>) -> Documents {
        Documents { rule, file_numbers, input: 0, number: 0, open: false, skip: 0 }
    }

    /// Resumes in the file `input`, of which an earlier run has done some documents.
    pub fn resume(&mut self, input: usize, documents: u64) {
        (self.input, self.skip) = (input, documents);
    }

    /// Adds a text of the file `input`. `id` is the id of the document, if it was read with the text; see
    /// `TextBlock::id`.
    pub fn push<'t>(
        &mut self,
        (index, text): (usize, &'t str),
        input: usize,
        id: Option<u64>,
        splitter: Option<&SentenceSplitter>,
        to: &mut DividedBlock<'t>,
    ) {
        self.go_to(input, to);
        match self.rule {
            DocumentRule::BlankLine => match text.trim() {
                "" => self.end_open(to),
                line => {
                    self.open = true;
                    self.push_line((index, line), splitter, to);
                }
            },
            DocumentRule::Line => {
                let line = text.trim();
                if !line.is_empty() {
                    self.push_line((index, line), splitter, to);
                    self.end(id, to);
                }
            }
            DocumentRule::File => self.push_line((index, text.trim()), splitter, to),
            DocumentRule::Value => {
                for line in text.lines() {
                    self.push_line((index, line.trim()), splitter, to);
                }
                self.end(id, to);
            }
        }
    }

    fn push_line<'t>(
        &self,
        (index, line): (usize, &'t str),
        splitter: Option<&SentenceSplitter>,
        to: &mut DividedBlock<'t>,
    ) {
        if self.skip > 0 || line.is_empty() {
            return;
        }
        match splitter {
            None => to.sentences.push(line),
            Some(splitter) => to.sentences.extend(splitter.split(line)),
        }
        to.origins.resize(to.sentences.len(), index as u32);
    }

    /// Ends the present file and those before `input`, or before the end of the list.
    pub fn go_to(&mut self, input: usize, to: &mut DividedBlock<'_>) {
        while self.input < input {
            match self.rule {
                DocumentRule::BlankLine => self.end_open(to),
                DocumentRule::File => self.end(None, to),
                DocumentRule::Line | DocumentRule::Value => {}
            }
            (self.input, self.number, self.skip, self.open) = (self.input + 1, 0, 0, false);
        }
    }

    fn end_open(&mut self, to: &mut DividedBlock<'_>) {
        if self.open {
            self.open = false;
            self.end(None, to);
        }
    }

    fn end(&mut self, id: Option<u64>, to: &mut DividedBlock<'_>) {
        let file = self.file_numbers.get(self.input).copied().unwrap_or(self.input as u64);
        let id = id.unwrap_or((file << NUMBER_BITS).wrapping_add(self.number));
        self.number += 1;
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        to.ends.push(DocumentEnd { sentences: to.sentences.len(), id, input: self.input, number: self.number });
    }
}

/// Returns the number of an id as `TextBlock::id` returns it.
pub(super) fn document_id(id: &str) -> u64 {
    let number = id.strip_prefix('n').and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| text_id(id.get(1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sentences of each document and their ids, for lines of the files `a` and `b`.
    fn divided(rule: DocumentRule, files: &[&[&str]], skip: u64) -> Vec<(u64, Vec<String>)> {
        let mut documents = Documents::new(rule, (0..files.len() as u64).collect());
        documents.resume(0, skip);
        let mut block = DividedBlock::default();
        for (input, lines) in files.iter().enumerate() {
            for line in *lines {
                documents.push((0, line), input, None, None, &mut block);
            }
        }
        documents.go_to(files.len(), &mut block);
        let mut start = 0;
        let document = |end: &DocumentEnd| {
            let sentences = block.sentences[start..end.sentences].iter().map(|s| (*s).to_owned()).collect();
            start = end.sentences;
            (end.id, sentences)
        };
        block.ends.iter().map(document).collect()
    }

    fn owned(documents: &[(u64, &[&str])]) -> Vec<(u64, Vec<String>)> {
        documents.iter().map(|(id, lines)| (*id, lines.iter().map(|s| (*s).to_owned()).collect())).collect()
    }

    const FILES: &[&[&str]] = &[&["", " a ", "b", "", " ", "c"], &[], &["d\r\ne"]];

    #[test]
    fn documents_follow_the_rule_and_never_span_files() {
        let second = 2 << 40;
        let blank = owned(&[(0, &["a", "b"]), (1, &["c"]), (second, &["d\r\ne"])]);
        assert_eq!(divided(DocumentRule::BlankLine, FILES, 0), blank);
        let lines = owned(&[(0, &["a"]), (1, &["b"]), (2, &["c"]), (second, &["d\r\ne"])]);
        assert_eq!(divided(DocumentRule::Line, FILES, 0), lines);
        let files = owned(&[(0, &["a", "b", "c"]), (1 << 40, &[]), (second, &["d\r\ne"])]);
        assert_eq!(divided(DocumentRule::File, FILES, 0), files);
        let values = divided(DocumentRule::Value, FILES, 0);
        assert_eq!(values.len(), 7);
        assert_eq!(values[6], owned(&[(second, &["d", "e"])])[0]);
    }

    #[test]
    fn a_run_that_goes_on_skips_the_documents_that_are_done() {
        for rule in [DocumentRule::BlankLine, DocumentRule::Line, DocumentRule::File, DocumentRule::Value] {
            let all = divided(rule, FILES, 0);
            assert_eq!(divided(rule, FILES, 1), all[1..], "{rule:?}");
        }
    }

    #[test]
    fn ids_are_numbers_or_texts() {
        assert_eq!(document_id("n12"), 12);
        assert_eq!(document_id("s12"), text_id("12"));
        assert_eq!(document_id("s"), text_id(""));
    }
}
