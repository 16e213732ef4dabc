//! Locations of errors in a call's arguments, worded for messages: `item 3, second text, word 0`.

use std::fmt;

/// The location of a value in the arguments of a call.
///
/// [`fmt::Display`] writes it from the outside in: the argument or item, the text of a pair, the word or id within it.
#[derive(Clone, Copy)]
pub struct Location {
    /// The argument's name or, with an `index`, what the argument's items are called.
    name: &'static str,
    index: Option<usize>,
    is_second: bool,
    element: Option<(&'static str, usize)>,
}

impl Location {
    /// Returns the location of the argument `name`.
    pub fn argument(name: &'static str) -> Location {
        Location { name, index: None, is_second: false, element: None }
    }

    /// Returns the location of item `index` of an argument whose items are called `name`.
    pub fn item(name: &'static str, index: usize) -> Location {
        Location { index: Some(index), ..Location::argument(name) }
    }

    /// Returns the location of a text of an item of a batch, or of a word in it.
    pub fn of_input(index: usize, is_second: bool, word: Option<usize>) -> Location {
        let item = Location::item("item", index);
        let text = if is_second { item.second() } else { item };
        word.map_or(text, |word| text.element("word", word))
    }

    /// Returns the location of the second text of the pair that is here.
    pub fn second(self) -> Location {
        Location { is_second: true, ..self }
    }

    /// Returns the location of element `index` of the list that is here, whose elements are called `name`.
    pub fn element(self, name: &'static str, index: usize) -> Location {
        Location { element: Some((name, index)), ..self }
    }

    /// Whether this is an item of an argument rather than the argument itself.
    pub fn is_item(self) -> bool {
        self.index.is_some()
    }

    /// Whether this is the second text of a pair.
    pub fn is_second(self) -> bool {
        self.is_second
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(index) = self.index {
            write!(f, " {index}")?;
        }
        if self.is_second {
            f.write_str(", second text")?;
        }
        if let Some((name, index)) = self.element {
            write!(f, ", {name} {index}")?;
        }
        Ok(())
    }
}
