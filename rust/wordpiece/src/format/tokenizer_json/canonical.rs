//! The names of components, and a canonical text of those that decide the words of a text.

use std::io;

use serde::ser::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::write::{self, Node};
use crate::definition::Definition;
use crate::normalize::Normalizer;
use crate::split::PreTokenizer;

/// Returns the `type` of a normalizer in a `tokenizer.json`, such as `"BertNormalizer"`.
pub fn normalizer_type(normalizer: &Normalizer) -> String {
    type_of(write::normalizer(normalizer))
}

/// Returns the `type` of a pre-tokenizer in a `tokenizer.json`, such as `"BertPreTokenizer"`.
pub fn pre_tokenizer_type(pre_tokenizer: &PreTokenizer) -> String {
    type_of(write::pre_tokenizer(pre_tokenizer))
}

/// Returns the normalizer and the pre-tokenizer as canonical JSON: equal texts split every input into equal words.
///
/// The text is a list of the two on one line, in ASCII, with the keys of objects sorted, `", "` between items and `": "`
/// after keys. Hashes of it are stored, so it must not change from one version to the next.
pub fn pipeline(definition: &Definition) -> String {
    let parts = Node::List(vec![
        write::optional(definition.normalizer.as_ref(), write::normalizer),
        write::optional(definition.pre_tokenizer.as_ref(), write::pre_tokenizer),
    ]);
    canonical(parts, CanonicalFormatter { ascii: true })
}

/// Returns all that decides the ids of a text as canonical JSON: equal texts encode every input to equal ids.
///
/// The text has the form of [`pipeline`]'s, but is an object, and characters beyond ASCII stay as they are. Hashes of
/// it are stored, too.
pub fn identity(definition: &Definition) -> String {
    let added = definition.registered_tokens();
    let mut parts = vec![
        ("added_tokens".into(), write::list(&added, write::added_token)),
        ("normalizer".into(), write::optional(definition.normalizer.as_ref(), write::normalizer)),
        ("pre_tokenizer".into(), write::optional(definition.pre_tokenizer.as_ref(), write::pre_tokenizer)),
        ("model".into(), write::model(definition)),
    ];
    let order = definition.decided_by_order();
    if order.iter().any(|ids| !ids.is_empty()) {
        let ids = order.iter().map(|ids| Node::List(ids.iter().map(|&id| write::number(id)).collect()));
        parts.push(("order".into(), Node::List(ids.collect())));
    }
    canonical(Node::Object(parts), CanonicalFormatter { ascii: false })
}

fn canonical(node: Node<'_>, formatter: CanonicalFormatter) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, formatter);
    sorted(node).serialize(&mut serializer).expect("writing JSON nodes to memory cannot fail");
    String::from_utf8(text).expect("the formatter writes whole characters")
}

/// Returns the `type` field of a component.
fn type_of(component: Node<'_>) -> String {
    let Node::Object(fields) = component else { unreachable!("a component is written as an object") };
    match fields.into_iter().find(|(name, _)| name == "type") {
        Some((_, Node::Text(name))) => name.into_owned(),
        _ => unreachable!("a component is written with its type"),
    }
}

/// Returns a node with the keys of its objects in ascending order.
fn sorted(node: Node<'_>) -> Node<'_> {
    match node {
        Node::List(items) => Node::List(items.into_iter().map(sorted).collect()),
        Node::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Node::Object(fields)
        }
        other => other,
    }
}

/// Writes JSON as Python's `json.dumps` does: one line, spaces after separators.
struct CanonicalFormatter {
    /// Other characters than printable ASCII are escaped as UTF-16, as `json.dumps` does by default.
    ascii: bool,
}

impl Formatter for CanonicalFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !self.ascii {
            return writer.write_all(fragment.as_bytes());
        }
        for c in fragment.chars() {
            match c {
                ' '..='~' => writer.write_all(&[c as u8])?,
                _ => c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::added::AddedToken;
    use crate::pattern::Pattern;
    use crate::vocab::Vocab;

    fn bert() -> Definition {
        Definition::bert(Vocab::new([("[UNK]", 0)]).unwrap())
    }

    #[test]
    fn components_are_called_what_their_files_call_them() {
        assert_eq!(normalizer_type(&bert().normalizer.unwrap()), "BertNormalizer");
        assert_eq!(normalizer_type(&Normalizer::Nfkd), "NFKD");
        assert_eq!(pre_tokenizer_type(&bert().pre_tokenizer.unwrap()), "BertPreTokenizer");
    }

    #[test]
    fn the_order_of_added_tokens_is_in_the_identity_if_it_decides_ids() {
        let of = |contents: [&str; 2]| {
            let token = |content: &str| AddedToken { normalized: true, ..AddedToken::special(content) };
            identity(&Definition { added_tokens: contents.map(token).to_vec(), ..bert() })
        };
        assert_ne!(of(["A", "a"]), of(["a", "A"]));
        let vocab = Vocab::new([("[UNK]", 0), ("b", 1), ("a", 2)]).unwrap();
        let ordered = |contents: [&str; 2]| {
            let added_tokens = contents.map(AddedToken::special).to_vec();
            identity(&Definition { added_tokens, ..Definition::bert(vocab.clone()) })
        };
        assert_eq!(ordered(["a", "b"]), ordered(["b", "a"]));
        // As its file, which has each token once and by id, but not what the file loses.
        let saved = |tokens: Vec<AddedToken>| {
            let definition = Definition { added_tokens: tokens, ..bert() };
            let read = super::super::read(&super::super::write(&definition).unwrap()).unwrap();
            identity(&read) == identity(&definition)
        };
        let [plain, special] = [false, true].map(|special| AddedToken { special, ..AddedToken::special("[X]") });
        assert!(saved(vec![plain.clone(), special.clone()]));
        assert!(!saved(vec![special, plain]));
        assert!(saved(
            ["a", "A"].map(|content| AddedToken { normalized: true, ..AddedToken::special(content) }).to_vec()
        ));
    }

    #[test]
    fn the_pipeline_is_one_line_of_sorted_keys() {
        let expected = concat!(
            r#"[{"clean_text": true, "handle_chinese_chars": true, "lowercase": true, "strip_accents": null, "#,
            r#""type": "BertNormalizer"}, {"type": "BertPreTokenizer"}]"#,
        );
        assert_eq!(pipeline(&bert()), expected);
    }

    #[test]
    fn the_identity_has_the_vocabulary_and_keeps_characters() {
        let definition = Definition::bert(Vocab::new([("[UNK]", 0), ("é\u{7f}\"", 1)]).unwrap());
        let identity = identity(&definition);
        assert!(identity.starts_with(r#"{"added_tokens": ["#));
        assert!(identity.contains("\"vocab\": {\"[UNK]\": 0, \"é\u{7f}\\\"\": 1}}, \"normalizer\": {"));
        assert!(!identity.contains("post_processor"));
    }

    #[test]
    fn characters_beyond_printable_ascii_are_escaped() {
        let pattern = Pattern::literal("é\u{1f600}\u{7f}\n\"".to_owned());
        let normalizer = Some(Normalizer::Replace { pattern, content: String::new() });
        let definition = Definition { normalizer, pre_tokenizer: None, ..bert() };
        let string = r#""\u00e9\ud83d\ude00\u007f\n\"""#;
        let expected = format!(r#"[{{"content": "", "pattern": {{"String": {string}}}, "type": "Replace"}}, null]"#);
        assert_eq!(pipeline(&definition), expected);
    }
}
