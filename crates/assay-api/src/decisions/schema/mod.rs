//! A JSON Schema as questions: what of it can be answered with exact probabilities. Everything else is refused by
//! keyword and path, before any work.

mod calendar;
mod combine;
mod range;
mod read;

use serde_json::Value;

pub use calendar::unix_date;
pub use read::{STOP, read_schema};

use super::question::Question;

/// Deepest nesting of objects and alternatives.
pub const MAX_DEPTH: usize = 16;

/// Most fields that are asked for.
pub const MAX_FIELDS: usize = super::MAX_QUESTIONS;

/// Most values of one field.
pub const MAX_VALUES: usize = 65_536;

/// What a schema asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The value is given: `const`, or an `enum` of one.
    Given(Value),
    /// One of several values.
    Ask(Field),
    /// Some of several values.
    Subset(Subset),
    /// Its properties, in declared order.
    Object(Object),
    /// One of several objects.
    OneOf(OneOf),
}

/// One question and the values that its answers stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What is asked.
    pub question: Question,
    /// By answer, in the question's order.
    pub values: Vec<Value>,
    /// What kind of values they are.
    pub kind: FieldKind,
}

/// What kind of values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// True or false.
    Boolean,
    /// Listed values.
    Enum,
    /// Numbers in ascending order.
    Number,
    /// Dates in ascending order.
    Date,
}

/// An array of distinct values out of a list, in the list's order: asked one at a time until the model stops.
#[derive(Clone, Debug, PartialEq)]
pub struct Subset {
    /// Where it stands in the body.
    pub path: String,
    /// What is asked.
    pub instructions: Option<String>,
    /// The values.
    pub values: Vec<Value>,
    /// Their words.
    pub texts: Vec<String>,
    /// Fewest of them.
    pub min_items: usize,
    /// Most of them.
    pub max_items: usize,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Names and what they ask for, in declared order.
    pub properties: Vec<(String, Node)>,
    /// Further properties that depend on one of these.
    pub condition: Option<Box<Condition>>,
}

/// `if` a property is a value `then` more properties, `else` others.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The property.
    pub property: String,
    /// Its value.
    pub value: Value,
    /// Where it is.
    pub then: Vec<(String, Node)>,
    /// Where it is not.
    pub otherwise: Vec<(String, Node)>,
}

/// Objects that differ in the value of one property, which is asked first.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOf {
    /// The property.
    pub tag: String,
    /// Asks for its value.
    pub field: Field,
    /// By answer: the other properties of the object that has this value.
    pub branches: Vec<Object>,
}
