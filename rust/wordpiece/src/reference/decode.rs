//! Decoding of tokens: the decoder `WordPiece` of `tokenizers`.

/// The options of the WordPiece decoder.
#[derive(Clone, Debug)]
pub struct WordPieceDecoder {
    /// The prefix to remove from every token but the first; tokens without it are separated by a space.
    pub prefix: String,
    /// Whether to remove spaces before English punctuation and contractions, within each token.
    pub cleanup: bool,
}

impl WordPieceDecoder {
    /// Returns the text of a list of tokens.
    pub fn decode(&self, tokens: &[&str]) -> String {
        let mut text = String::new();
        for (i, token) in tokens.iter().enumerate() {
            let mut piece = match token.strip_prefix(self.prefix.as_str()) {
                _ if i == 0 => token.to_string(),
                Some(rest) => rest.to_string(),
                None => format!(" {token}"),
            };
            if self.cleanup {
                for (from, to) in [
                    (" .", "."),
                    (" ?", "?"),
                    (" !", "!"),
                    (" ,", ","),
                    (" ' ", "'"),
                    (" n't", "n't"),
                    (" 'm", "'m"),
                    (" do not", " don't"),
                    (" 's", "'s"),
                    (" 've", "'ve"),
                    (" 're", "'re"),
                ] {
                    piece = piece.replace(from, to);
                }
            }
            text += &piece;
        }
        text
    }
}
