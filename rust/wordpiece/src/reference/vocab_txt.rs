//! Reading a `vocab.txt`, as `load_vocab` of Devlin et al. (2018) does.

use std::collections::HashMap;

use super::config::Refusal;

/// Reads a `vocab.txt`: the id of a token is the number of its line, counted from 0. A repeated token keeps its last id.
pub fn read_vocab_txt(bytes: &[u8]) -> Result<Vec<(String, u32)>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::vocab(format!("not UTF-8: {e}")))?;
    // A line feed terminates a line, so a final one does not start another.
    let lines = text.strip_suffix('\n').unwrap_or(text);
    if lines.is_empty() && text.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids: HashMap<String, u32> = HashMap::new();
    for (i, line) in lines.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        ids.insert(line.trim_end_matches(crate::unicode::is_whitespace).to_owned(), i as u32);
    }
    let mut vocab: Vec<(String, u32)> = ids.into_iter().collect();
    vocab.sort_by_key(|&(_, id)| id);
    Ok(vocab)
}
