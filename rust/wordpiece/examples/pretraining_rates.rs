//! How fast pre-training data is made and read on one core.
//!
//! ```text
//! cargo run --release -p wordpiece --example pretraining_rates -- vocab.txt corpus.txt
//! ```

use std::error::Error;
use std::fs;
use std::time::Instant;

use wordpiece::bert::BertOptions;
use wordpiece::files::{ReadOptions, TextBlock, TextReader, TextSource};
use wordpiece::format::vocab_txt;
use wordpiece::pretraining::DocumentRule;
use wordpiece::pretraining::collate::{Batch, BatchLayout, Column, Shard};
use wordpiece::pretraining::masking::{EpochKeys, MaskScratch, MaskUnit, Masking, MaskingOptions, TokenClasses};
use wordpiece::pretraining::rows::{ExampleBuilder, Objective, RowOptions, StoreShard};
use wordpiece::pretraining::store::{StoreBuilder, StoreOptions, StorePart};
use wordpiece::{Definition, Tokenizer};

/// The arrays of a shard of a token store.
#[derive(Default)]
struct Store {
    ids: Vec<u16>,
    sentence_offsets: Vec<i64>,
    document_offsets: Vec<i64>,
    document_ids: Vec<u64>,
}

impl Store {
    fn build(corpus: &str, tokenizer: &Tokenizer) -> wordpiece::Result<Store> {
        let options = StoreOptions {
            file_numbers: vec![0],
            documents: DocumentRule::BlankLine,
            splitter: None,
            shard_tokens: u64::MAX,
        };
        let mut builder = StoreBuilder::new(options);
        let mut reader = TextReader::new(vec![TextSource::path(corpus)], ReadOptions::default())?;
        let mut block = TextBlock::default();
        let mut store = Store { sentence_offsets: vec![0], document_offsets: vec![0], ..Store::default() };
        while reader.next_block(&mut block)? {
            store.extend(builder.add(&block, None, None, tokenizer, None)?);
        }
        store.extend(builder.finish(tokenizer)?);
        Ok(store)
    }

    fn extend(&mut self, parts: Vec<StorePart>) {
        for part in parts {
            self.ids.extend(part.ids.iter().map(|&id| id as u16));
            self.sentence_offsets.extend(part.sentence_ends);
            self.document_offsets.extend(part.document_ends);
            self.document_ids.extend(part.document_ids);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vocab, corpus] = arguments.as_slice() else {
        return Err("usage: pretraining_rates vocab.txt corpus.txt".into());
    };
    let (vocab, _) = vocab_txt::read(&fs::read(vocab)?, false)?;
    let tokenizer = Tokenizer::new(Definition::bert_with_options(vocab, &BertOptions::default()))?;
    let bytes = fs::metadata(corpus)?.len() as f64;
    for round in 0..3 {
        let start = Instant::now();
        let store = Store::build(corpus, &tokenizer)?;
        let tokens = store.ids.len() as f64;
        let stored = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let shard = StoreShard::new(
            Column::U16(&store.ids),
            &store.sentence_offsets,
            &store.document_offsets,
            &store.document_ids,
        )?;
        let id = |token: &str| tokenizer.definition().vocab.id(token).unwrap_or(0);
        let options = RowOptions {
            objective: Objective::Nsp,
            max_length: 128,
            short_seq_prob: 0.1,
            min_sentences: 1,
            seed: 0,
            pass: 0,
            cls_id: id("[CLS]"),
            sep_id: id("[SEP]"),
        };
        let (mut ids, mut offsets, mut second) = (Vec::new(), vec![0], Vec::new());
        let mut builder = ExampleBuilder::new(options, None);
        while let Some(block) = builder.next_block(&shard, None, None) {
            let before = ids.len() as i64;
            ids.extend(block.ids.iter().map(|&id| id as u16));
            offsets.extend(block.row_ends.iter().map(|&end| before + end as i64));
            second.extend(block.second_starts.iter().map(|&start| start as u16));
        }
        let made = start.elapsed().as_secs_f64();
        println!(
            "round {round}: store {:.0} MB/s, rows {:.0} MB/s ({:.0} M tokens/s of the store), both {:.0} MB/s",
            bytes / stored / 1e6,
            bytes / made / 1e6,
            tokens / made / 1e6,
            bytes / (stored + made) / 1e6
        );

        let second_starts = Some(Column::U16(&second));
        let rows = Shard {
            ids: Column::U16(&ids),
            row_offsets: &offsets,
            second_starts,
            pair_labels: None,
            masks: None,
            sequences: None,
        };
        for unit in [None, Some(MaskUnit::Tokens), Some(MaskUnit::Words), Some(MaskUnit::Spans)] {
            let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(id).to_vec();
            let masking_options = MaskingOptions { unit: unit.unwrap_or_default(), ..MaskingOptions::default() };
            let masking =
                Masking::new(&TokenClasses::of(tokenizer.definition(), special), id("[MASK]"), masking_options);
            let keys = EpochKeys::new(0, round, 0);
            let mut scratch = MaskScratch::default();
            let (mut seen, start) = (0, Instant::now());
            for first in (0..rows.len().saturating_sub(32)).step_by(32) {
                let batch = (first..first + 32).map(|i| rows.row(i)).collect::<wordpiece::Result<Vec<_>>>()?;
                let row_keys = |i: usize| keys.row((first + i) as u64);
                let with = unit.map(|_| (&masking, &row_keys as &dyn Fn(usize) -> _));
                let made = Batch::new(&batch, BatchLayout::Padded(128), 0, with, &mut scratch)?;
                seen += batch.iter().map(|row| row.len()).sum::<usize>();
                std::hint::black_box(made);
            }
            println!("  batches, {unit:?}: {:.1} M tokens/s", seen as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    }
    Ok(())
}
