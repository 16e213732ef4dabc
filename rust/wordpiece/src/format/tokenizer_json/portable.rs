//! Written files from which `tokenizers` gives every added token the id that it has here.
//!
//! The format states the id of an added token, but `tokenizers` does not read it: tokens that are not in `model.vocab` are
//! numbered from the number of tokens in the vocabulary. In a vocabulary with gaps, this number is smaller than the next
//! free id, and can be the id of another token. Such a token is written into `model.vocab` as well, where `tokenizers` finds
//! its id, provided that the model cannot produce it there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::added::{AddedToken, ids_of_reference};
use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::split::PreTokenizer;
use crate::unicode;
use crate::vocab::Vocab;

/// Returns the definition to write, from which `tokenizers` reads the same ids: mostly the definition itself.
///
/// # Errors
///
/// [`Error::AddedTokenUnwritable`] for an added token whose id no file can give it without changing the pieces of some text.
pub(super) fn portable(definition: &Definition) -> Result<Cow<'_, Definition>> {
    let (ids, tokens): (Vec<u32>, Vec<AddedToken>) = definition.registered_tokens().into_iter().unzip();
    let read = ids_of_reference(&definition.vocab, &tokens);
    let Some(first) = ids.iter().zip(&read).position(|(id, read)| id != read) else {
        return Ok(Cow::Borrowed(definition));
    };
    let unwritable = |i: usize| {
        let content = tokens[i].content.clone();
        Error::AddedTokenUnwritable { content, id: ids[i], read: read[i] }
    };
    let missing: Vec<usize> =
        (0..tokens.len()).filter(|&i| definition.vocab.id(&tokens[i].content).is_none()).collect();
    let any_single_word = tokens.iter().any(|token| token.single_word);
    if let Some(&i) = missing.iter().find(|&&i| !never_a_piece(definition, &tokens[i], any_single_word)) {
        return Err(unwritable(i));
    }
    let entries = missing.iter().map(|&i| (tokens[i].content.as_str(), ids[i]));
    // An id that two tokens share, which only files of the reference have, cannot be stated in the vocabulary.
    let vocab = Vocab::new(definition.vocab.iter().chain(entries)).map_err(|_| unwritable(first))?;
    Ok(Cow::Owned(Definition { vocab, added_tokens: tokens, fixed_ids: BTreeMap::new(), ..definition.clone() }))
}

/// Returns whether the model produces a token for no text, even if the token is in its vocabulary.
fn never_a_piece(definition: &Definition, token: &AddedToken, any_single_word: bool) -> bool {
    let prefix = definition.continuing_subword_prefix.as_str();
    let content = token.content.as_str();
    let continues = !prefix.is_empty() && content.starts_with(prefix);
    // BERT's words have no white space, and a punctuation character is a word of its own.
    let divided = |text: &str| {
        let has_space = text.chars().any(unicode::is_whitespace);
        has_space || (text.chars().count() > 1 && text.chars().any(unicode::is_punctuation))
    };
    let is_bert = definition.pre_tokenizer == Some(PreTokenizer::Bert);
    if is_bert && divided(content) && (!continues || divided(&content[prefix.len()..])) {
        return true;
    }
    // Elsewhere, words are parts of the normalized text, and every occurrence of the token there was found before, unless
    // a flag prevents that.
    let splits_only = matches!(
        definition.pre_tokenizer,
        None | Some(
            PreTokenizer::Bert
                | PreTokenizer::Whitespace
                | PreTokenizer::WhitespaceSplit
                | PreTokenizer::Punctuation(_)
        )
    );
    splits_only && always_found(token, any_single_word) && !continues
}

/// Returns whether every occurrence of a token in the normalized text is found before the model sees the text.
fn always_found(token: &AddedToken, any_single_word: bool) -> bool {
    token.normalized && !token.special && !any_single_word
}

#[cfg(test)]
mod tests {
    use super::super::{read, write};
    use super::*;

    fn with_gap(added: &[AddedToken]) -> Definition {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 2), ("##b", 3), ("c", 4)]).unwrap();
        let mut definition = Definition::bert(vocab);
        definition.added_tokens.extend_from_slice(added);
        definition
    }

    fn plain(content: &str) -> AddedToken {
        AddedToken { normalized: true, special: false, ..AddedToken::special(content) }
    }

    #[test]
    fn added_tokens_after_a_gap_are_written_into_the_vocabulary() {
        let definition = with_gap(&[AddedToken::special("[X]"), plain("<y>")]);
        let ids: Vec<u32> = definition.registered_tokens().into_iter().map(|(id, _)| id).collect();
        let again = read(&write(&definition).unwrap()).unwrap();
        assert_eq!(again.registered_tokens().into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ids);
        assert_eq!(again.vocab.id("[X]"), Some(5));
        let tokens: Vec<AddedToken> = again.registered_tokens().into_iter().map(|(_, token)| token).collect();
        assert_eq!(ids_of_reference(&again.vocab, &tokens), ids);
    }

    #[test]
    fn a_token_that_the_model_could_produce_is_refused() {
        let single_word = AddedToken { single_word: true, ..plain("new") };
        for token in [AddedToken::special("new"), single_word, plain("##x")] {
            let error = write(&with_gap(std::slice::from_ref(&token))).unwrap_err();
            assert!(
                matches!(&error, Error::AddedTokenUnwritable { content, .. } if *content == token.content),
                "{error}"
            );
        }
    }

    #[test]
    fn a_vocabulary_without_gaps_is_written_as_it_is() {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1)]).unwrap();
        let mut definition = Definition::bert(vocab);
        definition.added_tokens.push(AddedToken::special("new"));
        assert!(matches!(portable(&definition).unwrap(), Cow::Borrowed(_)));
    }
}
