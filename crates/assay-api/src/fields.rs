//! Strict reading of one JSON object: fields are taken by name, null counts as absent, nothing is coerced,
//! and every fault names the path of its field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::record::{self, asked};

/// The fields of one object that were not taken yet.
#[derive(Debug)]
pub struct Fields {
    path: String,
    map: Map<String, Value>,
}

/// Range of a real number; `min` itself may be excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    /// Lower end.
    pub min: f64,
    /// Upper end, included.
    pub max: f64,
    /// Whether `min` is excluded.
    pub above_min: bool,
}

impl NumberRange {
    /// From `min` to `max`, both included.
    pub const fn closed(min: f64, max: f64) -> Self {
        Self {
            min,
            max,
            above_min: false,
        }
    }

    /// Above `min`, up to `max`.
    pub const fn above(min: f64, max: f64) -> Self {
        Self {
            min,
            max,
            above_min: true,
        }
    }

    fn contains(&self, value: f64) -> bool {
        value <= self.max && (value > self.min || (!self.above_min && value == self.min))
    }

    fn describe(&self) -> String {
        let Self { min, max, .. } = self;
        if self.above_min {
            format!("a number above {min} and at most {max}")
        } else {
            format!("a number from {min} to {max}")
        }
    }
}

impl Fields {
    /// Reads the object `value` at `path` (empty for the body).
    ///
    /// # Errors
    /// `value` is not an object.
    pub fn new(path: impl Into<String>, value: Value) -> Result<Self, FieldError> {
        let path = path.into();
        record::entered(&path, &value);
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other if path.is_empty() => Err(FieldError::body(format!(
                "the body must be a JSON object, not {}",
                describe(&other)
            ))),
            other => Err(wrong_type(&path, "an object", &other)),
        }
    }

    /// Path of the field `name`.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Looks at a field without taking it; null is absent.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Takes a field of any type; null is absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        asked!((&self.path, name), Any);
        self.remove(name)
    }

    /// Takes the fields `names`, which may hold anything: they have no effect here.
    pub fn harmless(&mut self, names: &[&str]) {
        for name in names {
            asked!((&self.path, name), Harmless);
            let _ = self.remove(name);
        }
    }

    /// Takes a field of which only the `accepted` values (JSON, space-separated) ask for nothing.
    ///
    /// # Errors
    /// Any other value but null: what it asks for is not done.
    pub fn only(&mut self, name: &str, accepted: &str) -> Result<(), FieldError> {
        asked!((&self.path, name), Only(accepted.to_owned()));
        match self.remove(name) {
            Some(value) if !is_one_of(&value, accepted) => {
                Err(FieldError::unsupported(self.path_of(name), "this value"))
            }
            _ => Ok(()),
        }
    }

    /// Takes a field that is known and not done: `what` it holds is not supported.
    ///
    /// # Errors
    /// Any value but null.
    pub fn refuse(&mut self, name: &str, what: &str) -> Result<(), FieldError> {
        asked!((&self.path, name), Only(String::new()));
        match self.remove(name) {
            Some(_) => Err(FieldError::unsupported(self.path_of(name), what)),
            None => Ok(()),
        }
    }

    /// Moves the fields `names` into an object of their own, for a reader that says what they may be.
    pub fn part(&mut self, names: &[&str]) -> Map<String, Value> {
        let names = names.iter();
        let taken = names.filter_map(|name| Some(((*name).to_owned(), self.remove(name)?)));
        taken.collect()
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        // Constant time whatever the number of fields; the order of the rest is still a function of the body.
        self.map.swap_remove(name).filter(|value| !value.is_null())
    }

    /// Takes a boolean.
    ///
    /// # Errors
    /// Another type.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, FieldError> {
        asked!((&self.path, name), Boolean);
        match self.remove(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.path_of(name), "true or false", &other)),
        }
    }

    /// Takes an integer of `range`.
    ///
    /// # Errors
    /// Another type (`1.0` and `true` too), or out of range.
    pub fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, FieldError> {
        asked!((&self.path, name), Integer(range.clone()));
        match self.remove(name) {
            None => Ok(None),
            Some(value) => integer_value(&self.path_of(name), &value, range).map(Some),
        }
    }

    /// Takes a real number of `range`; integers count.
    ///
    /// # Errors
    /// Another type, or out of range.
    pub fn number(&mut self, name: &str, range: NumberRange) -> Result<Option<f64>, FieldError> {
        asked!((&self.path, name), Number(range));
        match self.remove(name) {
            None => Ok(None),
            Some(value) => number_value(&self.path_of(name), &value, range).map(Some),
        }
    }

    /// Takes a string.
    ///
    /// # Errors
    /// Another type.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        asked!((&self.path, name), String);
        self.text(name)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        match self.remove(name) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.path_of(name), "a string", &other)),
        }
    }

    /// Takes one of the named strings.
    ///
    /// # Errors
    /// Another type or another string; the message lists the choices.
    pub fn choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, FieldError> {
        asked!(
            (&self.path, name),
            Choice(
                choices
                    .iter()
                    .map(|(choice, _)| (*choice).to_owned())
                    .collect()
            )
        );
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let found = choices.iter().find(|(choice, _)| *choice == text);
        found.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let path = self.path_of(name);
            let names: Vec<_> = choices
                .iter()
                .map(|(choice, _)| format!("{choice:?}"))
                .collect();
            let message = format!(
                "`{path}`: must be one of {}, not {}",
                names.join(", "),
                crate::json::quote(&text)
            );
            FieldError::new(path, message)
        })
    }

    /// Takes an object.
    ///
    /// # Errors
    /// Another type.
    pub fn object(&mut self, name: &str) -> Result<Option<Fields>, FieldError> {
        asked!((&self.path, name), Object);
        match self.remove(name) {
            None => Ok(None),
            Some(value) => Fields::new(self.path_of(name), value).map(Some),
        }
    }

    /// Takes an array.
    ///
    /// # Errors
    /// Another type.
    pub fn array(&mut self, name: &str) -> Result<Option<Vec<Value>>, FieldError> {
        asked!((&self.path, name), Array);
        match self.remove(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(other) => Err(wrong_type(&self.path_of(name), "an array", &other)),
        }
    }

    /// Paths of the fields that nobody took.
    pub fn untaken(&self) -> impl Iterator<Item = String> + '_ {
        self.map.keys().map(|name| self.path_of(name))
    }

    /// The fields that nobody took.
    pub fn into_rest(self) -> Map<String, Value> {
        self.map
    }
}

fn is_one_of(value: &Value, accepted: &str) -> bool {
    // Accepted values are short; a long one cannot match, so it is not written out to compare.
    let is_short = match value {
        Value::Array(items) => items.len() <= 1,
        Value::Object(_) => false,
        Value::String(text) => text.len() <= 16,
        _ => true,
    };
    is_short && !accepted.is_empty() && {
        let written = value.to_string();
        accepted.split(' ').any(|one| one == written)
    }
}

/// Reads an integer of `range` at `path`.
///
/// # Errors
/// Another type, or out of range.
pub fn integer_value(
    path: &str,
    value: &Value,
    range: RangeInclusive<i64>,
) -> Result<i64, FieldError> {
    let expected = || {
        if *range.start() == i64::MIN && *range.end() == i64::MAX {
            "a 64-bit integer".to_owned()
        } else if *range.end() == i64::MAX {
            format!("an integer of at least {}", range.start())
        } else {
            format!("an integer from {} to {}", range.start(), range.end())
        }
    };
    // RFC 8259 lets an integer be written `-0`, which the parser can only keep as a float.
    let zero = || {
        value
            .as_f64()
            .filter(|number| *number == 0.0 && number.is_sign_negative())
    };
    match value.as_i64().or_else(|| zero().map(|_| 0)) {
        Some(number) if range.contains(&number) => Ok(number),
        _ => Err(wrong_type(path, &expected(), value)),
    }
}

/// Reads a real number of `range` at `path`.
///
/// # Errors
/// Another type, or out of range.
pub fn number_value(path: &str, value: &Value, range: NumberRange) -> Result<f64, FieldError> {
    match value.as_f64() {
        Some(number) if range.contains(number) => Ok(number),
        _ => Err(wrong_type(path, &range.describe(), value)),
    }
}

/// The fault "`path` must be `expected`", naming what stood there.
pub fn wrong_type(path: &str, expected: &str, found: &Value) -> FieldError {
    FieldError::new(
        path,
        format!("`{path}`: must be {expected}, not {}", describe(found)),
    )
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {}", crate::json::quote(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON may spell an integer `-0`; a fraction stays refused.
    #[test]
    fn minus_zero_is_an_integer() {
        let read = |text: &str| {
            let value = serde_json::from_str(text).expect("JSON");
            integer_value("n", &value, 0..=9)
        };
        assert_eq!(read("-0").expect("zero"), 0);
        assert_eq!(read("0").expect("zero"), 0);
        for text in ["-1", "0.5", "-0.5", "1e0", "0.0", "10"] {
            assert!(read(text).is_err(), "{text}");
        }
        let value = serde_json::from_str("-0").expect("JSON");
        assert!(
            integer_value("n", &value, 1..=9).is_err(),
            "zero is out of range"
        );
    }
}
