//! The arrays of a shard of a token store.

use crate::error::{Error, Result};
use crate::pretraining::collate::Column;

/// The arrays of one shard of a token store.
#[derive(Debug, Clone, Copy)]
pub struct StoreShard<'a> {
    pub(super) ids: Column<'a>,
    /// In tokens.
    sentences: &'a [i64],
    /// In sentences.
    documents: &'a [i64],
    pub(super) document_ids: &'a [u64],
}

impl<'a> StoreShard<'a> {
    /// Borrows the arrays of a shard and checks that they fit together.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenExamples`] if offsets descend or do not end where they should, or a document has no sentence.
    pub fn new(
        ids: Column<'a>,
        sentences: &'a [i64],
        documents: &'a [i64],
        document_ids: &'a [u64],
    ) -> Result<StoreShard<'a>> {
        let fits = |offsets: &[i64], end: usize| {
            offsets.first() == Some(&0)
                && offsets.last() == Some(&(end as i64))
                && offsets.windows(2).all(|pair| pair[0] < pair[1])
        };
        let n = sentences.len().saturating_sub(1);
        if !fits(sentences, ids.len()) || !fits(documents, n) || documents.len() != document_ids.len() + 1 {
            return Err(Error::BrokenExamples { row: 0 });
        }
        Ok(StoreShard { ids, sentences, documents, document_ids })
    }

    /// Borrows arrays that [`StoreShard::new`] has checked before. Others may cause panics later.
    #[must_use]
    pub fn checked_before(
        ids: Column<'a>,
        sentences: &'a [i64],
        documents: &'a [i64],
        document_ids: &'a [u64],
    ) -> StoreShard<'a> {
        StoreShard { ids, sentences, documents, document_ids }
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.document_ids.len()
    }

    /// Returns the first sentence of a document, and the one after its last.
    pub(super) fn sentences_of(&self, document: usize) -> (usize, usize) {
        (self.documents[document] as usize, self.documents[document + 1] as usize)
    }

    /// Returns the place of the first token of a sentence.
    pub(super) fn start(&self, sentence: usize) -> usize {
        self.sentences[sentence] as usize
    }
}
