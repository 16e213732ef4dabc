//! `top_down`: whole words first, then the word endings that remain. TensorFlow Text calls this WordPiece training.
//!
//! # Definition
//!
//! As in `wordpiece_tokenizer_learner_lib.py` of TensorFlow Text. The vocabulary for a threshold T is found in
//! `num_iterations` rounds:
//!
//! 1. The first pieces are all characters, plain and with `##`.
//! 2. In each word, pieces start at certain positions (in the first round, at every position). For each start s,
//!    count the text from s to every end, with `##` if s > 0, weighted with the count of the word.
//! 3. From the longest text to the shortest: keep the text if its count is at least T, and, *kept or not*, subtract its
//!    count from the counts of all its prefixes.
//! 4. The kept texts and all characters are the pieces of the next round.
//!
//! The vocabulary is the special tokens, the characters, then all other pieces by descending count. T is found by
//! bisection: the first one whose vocabulary is at most `slack_ratio` smaller than requested, or else the last one
//! tried.
//!
//! # Closed form
//!
//! Step 3 subtracts the count of a text whether it was kept or not, which undoes step 2 for every text but one. A start
//! s of a word with count n adds n to each prefix of the suffix w[s..]; the suffix itself, being the longest, subtracts
//! n from all the others again. What remains of the count of a text is the counts of the starts *whose entire suffix it
//! is*. So only suffixes of words (and single characters) can be pieces. A round is: segment each word, add n to each
//! suffix at which a piece starts, keep the suffixes with at least T.
//!
//! # Algorithm
//!
//! - [`suffixes`] numbers the suffixes of all words once. Segmenting a word then reads no text. The longest piece that
//!   a suffix begins with is either the suffix itself, or the longest piece of the longest shorter suffix that it
//!   begins with; this link is the same in all rounds.
//! - [`search`] bisects T. Nothing in the first round depends on T, so its counts are computed once; and a round that
//!   changes no piece is the last one.
//!
//! # Cost
//!
//! Time O(Σ|w|) over the distinct words for each round of each threshold, about 15 thresholds with up to 4 rounds,
//! instead of the O(Σ|w|²) of the definition. Memory is about 30 bytes for each character of the distinct words.

mod prepare;
mod search;
mod suffixes;

pub(super) use search::learn;
