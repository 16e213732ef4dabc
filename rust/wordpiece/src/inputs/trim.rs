//! `trim_offsets` of the RoBERTa post-processor: offsets without surrounding white space.
//!
//! Equals `process_offsets` in `tokenizers` 0.23.3, including that it counts characters of the token and subtracts them
//! from offsets in whatever unit was requested.

/// Returns the offsets of a token without the white space (or `Ġ`) at its ends.
///
/// `text` is the token, `index` its index among the pieces of its text in the row, `(start, end)` its offsets. With
/// `prefix_space`, one leading space at the start of a text is kept: a pre-tokenizer may have inserted it.
pub(crate) fn trim_offsets(text: &str, index: usize, (start, end): (u32, u32), prefix_space: bool) -> (u32, u32) {
    let blank = |c: &char| *c == 'Ġ' || crate::unicode::is_whitespace(*c);
    let mut leading = text.chars().take_while(blank).count() as u32;
    let trailing = text.chars().rev().take_while(blank).count() as u32;
    let (mut start, mut end) = (start, end);
    if leading > 0 {
        if (index == 0 || start == 0) && prefix_space && leading == 1 {
            leading = 0;
        }
        start = (start + leading).min(end);
    }
    if trailing > 0 && end >= trailing {
        end = (end - trailing).max(start);
    }
    (start, end)
}
