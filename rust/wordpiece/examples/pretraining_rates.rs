//! How fast pre-training data is made and read on one core.
//!
//! ```text
//! cargo run --release -p wordpiece --example pretraining_rates -- vocab.txt corpus.txt
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use wordpiece::bert::BertOptions;
use wordpiece::files::{ReadOptions, TextBlock, TextReader, TextSource};
use wordpiece::format::vocab_txt;
use wordpiece::pretraining::DocumentRule;
use wordpiece::pretraining::collate::{Batch, BatchLayout, Column, Shard};
use wordpiece::pretraining::formats::{NpyExampleLayout, NpyExampleWriter};
use wordpiece::pretraining::masking::{EpochKeys, MaskScratch, MaskUnit, Masking, MaskingOptions, TokenClasses};
use wordpiece::pretraining::rows::{ExampleBuilder, Objective, RowOptions, StoreShard};
use wordpiece::pretraining::store::{StoreOptions, TokenStoreWriter};
use wordpiece::{Definition, Tokenizer};

/// Returns the elements of a `.npy` file with one dimension.
fn npy<T>(folder: &Path, name: &str, element: impl Fn(&[u8]) -> T, width: usize) -> Vec<T> {
    let bytes = fs::read(folder.join(name)).expect("the file was written before");
    bytes[128..].chunks_exact(width).map(element).collect()
}

fn build_store(corpus: &str, folder: &Path, tokenizer: &Tokenizer) -> wordpiece::Result<u64> {
    let options = StoreOptions {
        fingerprint: String::new(),
        vocab_size: tokenizer.definition().vocab.len(),
        recorded: "{}".to_owned(),
        file_numbers: vec![0],
        documents: DocumentRule::BlankLine,
        splitter: None,
        narrow: true,
        shard_tokens: 1 << 28,
    };
    let mut writer = TokenStoreWriter::new(folder, options)?;
    let mut reader = TextReader::new(vec![TextSource::path(corpus)], ReadOptions::default())?;
    let mut block = TextBlock::default();
    while reader.next_block(&mut block)? {
        writer.add(&block, None, None, tokenizer, None)?;
    }
    Ok(writer.finish(tokenizer)?.tokens)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vocab, corpus] = arguments.as_slice() else {
        return Err("usage: pretraining_rates vocab.txt corpus.txt".into());
    };
    let (vocab, _) = vocab_txt::read(&fs::read(vocab)?, false)?;
    let tokenizer = Tokenizer::new(Definition::bert_with_options(vocab, &BertOptions::default()))?;
    let folder = std::env::temp_dir().join(format!("pretraining-rates-{}", std::process::id()));
    let bytes = fs::metadata(corpus)?.len() as f64;
    for round in 0..3 {
        let _ = fs::remove_dir_all(&folder);
        let start = Instant::now();
        let tokens = build_store(corpus, &folder, &tokenizer)? as f64;
        let stored = start.elapsed().as_secs_f64();
        let i64s = |name: &str| npy(&folder, name, |x| i64::from_le_bytes(x.try_into().expect("8 bytes")), 8);
        let u16s = |name: &str| npy(&folder, name, |x| u16::from_le_bytes([x[0], x[1]]), 2);
        let ids = u16s("00000.ids.npy");
        let (sentences, documents) = (i64s("00000.sentence_offsets.npy"), i64s("00000.document_offsets.npy"));
        let document_ids: Vec<u64> = i64s("00000.document_ids.npy").into_iter().map(|id| id as u64).collect();

        let start = Instant::now();
        let shard = StoreShard::new(Column::U16(&ids), &sentences, &documents, &document_ids)?;
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
        let layout =
            NpyExampleLayout { narrow_ids: true, narrow_places: true, pairs: true, masks: false, packed: false };
        let mut writer = NpyExampleWriter::new(&folder, "0-00000", layout)?;
        let mut builder = ExampleBuilder::new(options, None);
        while let Some(block) = builder.next_block(&shard, None, None) {
            writer.write(&block)?;
        }
        writer.finish()?;
        let made = start.elapsed().as_secs_f64();
        println!(
            "round {round}: store {:.0} MB/s, rows {:.0} MB/s ({:.0} M tokens/s of the store), both {:.0} MB/s",
            bytes / stored / 1e6,
            bytes / made / 1e6,
            tokens / made / 1e6,
            bytes / (stored + made) / 1e6
        );

        let (ids, offsets) = (u16s("0-00000.input_ids.npy"), i64s("0-00000.row_offsets.npy"));
        let second = u16s("0-00000.second_starts.npy");
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
    fs::remove_dir_all(&folder)?;
    Ok(())
}
