//! Many strings in one buffer, found by position.

/// The texts of a vocabulary, by id.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    text: String,
    /// Where each string ends in `text`.
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(previous) => *self.ends.get(previous)?,
            None => 0,
        };
        self.text.get(start..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(strings: I) -> Texts {
        let mut texts = Texts::default();
        for string in strings {
            texts.text.push_str(string);
            texts.ends.push(texts.text.len());
        }
        texts
    }
}
