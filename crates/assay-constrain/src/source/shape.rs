//! Texts with a fixed frame around values that have schemas, such as calls of tools.

use std::fmt::Write as _;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::Value;

use super::{json_grammar, lark};
use crate::error::ConstraintError;
use crate::schema;

/// What a reply may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Exactly this text, which is not empty.
    Literal(String),
    /// JSON text that is valid against a schema.
    Json {
        /// The schema.
        schema: Value,
        /// What errors call it: their paths begin with this.
        path: String,
    },
    /// Any text up to the first of these, which belongs to it and is not empty.
    TextUntil(String),
    /// One after the other.
    Sequence(Vec<Shape>),
    /// One of them; there is one at least.
    Choice(Vec<Shape>),
    /// It or nothing.
    Optional(Box<Shape>),
    /// It once, or several times with a text in between.
    Repeated {
        /// What is repeated.
        shape: Box<Shape>,
        /// Stands in between.
        separator: String,
    },
}

/// A shape whose schemas are checked, as text of a grammar and the schemas that it refers to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShapeGrammar {
    rules: String,
    num_rules: usize,
    schemas: Vec<Value>,
}

impl ShapeGrammar {
    pub(crate) fn new(shape: &Shape) -> Result<Self, ConstraintError> {
        let mut grammar = Self::default();
        let start = grammar.write(shape)?;
        writeln!(grammar.rules, "start: {start}").expect("writing to a string does not fail");
        Ok(grammar)
    }

    /// Adds the rules of a shape; its name. Shapes are made by us, so the recursion is as deep as we nest them.
    fn write(&mut self, shape: &Shape) -> Result<String, ConstraintError> {
        let (attributes, body) = match shape {
            Shape::Literal(text) => (String::new(), lark::literal(text)),
            Shape::TextUntil(end) => (
                format!("[suffix={}]", lark::literal(end)),
                "/(?s:.*)/".to_owned(),
            ),
            Shape::Json { schema, path } => {
                let below = |error: ConstraintError| error.below(path);
                schema::bounded_text(schema).map_err(below)?;
                self.schemas.push(schema::prepare(schema).map_err(below)?);
                (String::new(), format!("@json{}", self.schemas.len() - 1))
            }
            Shape::Sequence(parts) => (String::new(), self.write_all(parts)?.join(" ")),
            Shape::Choice(options) => (String::new(), self.write_all(options)?.join(" | ")),
            Shape::Optional(shape) => (String::new(), format!("{}?", self.write(shape)?)),
            Shape::Repeated { shape, separator } => {
                let one = self.write(shape)?;
                let separator = lark::literal(separator);
                (String::new(), format!("{one} ({separator} {one})*"))
            }
        };
        let name = format!("part{}", self.num_rules);
        self.num_rules += 1;
        writeln!(self.rules, "{name}{attributes}: {body}")
            .expect("writing to a string does not fail");
        Ok(name)
    }

    fn write_all(&mut self, shapes: &[Shape]) -> Result<Vec<String>, ConstraintError> {
        shapes.iter().map(|shape| self.write(shape)).collect()
    }

    pub(crate) fn into_grammar(self) -> TopLevelGrammar {
        let mut grammars = TopLevelGrammar::from_lark(self.rules).grammars;
        let numbered = self.schemas.into_iter().enumerate();
        grammars.extend(numbered.flat_map(|(index, schema)| {
            let named = move |grammar: GrammarWithLexer| GrammarWithLexer {
                name: Some(format!("json{index}")),
                ..grammar
            };
            json_grammar(schema).grammars.into_iter().map(named)
        }));
        TopLevelGrammar {
            grammars,
            max_tokens: None,
        }
    }
}
