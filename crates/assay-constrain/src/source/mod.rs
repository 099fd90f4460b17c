//! What a constraint is written in, checked, and as the grammar compiler takes it.
//!
//! The compiler's grammar language can do more than describe text: bound tokens, set temperatures,
//! call other grammars, name special tokens. Whatever would not be a plain language of texts here is
//! refused by its name.

mod lark;
mod productive;
mod shape;

use std::collections::BTreeSet;

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::Value;

use crate::error::{ConstraintError, invalid, unsupported};
use crate::schema;
pub use shape::Shape;
use shape::ShapeGrammar;

/// Longest regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 16 * 1024;
/// Longest grammar, in bytes.
const GRAMMAR_BYTES_MAX: usize = 64 * 1024;
/// Longest choice: options, and bytes of all together.
const OPTIONS_MAX: usize = 4_096;
const OPTIONS_BYTES_MAX: usize = 256 * 1024;
/// White space between JSON tokens: what compact and indented JSON is written with. Small models that may
/// begin another line at any place do so until their tokens are spent.
const WHITE_SPACE: &str = r"( |\n( {0,32}|\t{0,8}))";

/// A checked description of the texts that may come.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A schema as [`schema::prepare`] leaves it.
    JsonSchema(Value),
    Regex(String),
    /// Distinct, none empty.
    Choice(Vec<String>),
    Lark(String),
    Shape(ShapeGrammar),
}

impl Source {
    /// The whole reply matches `regex`; `^` and `$` at its ends change nothing.
    pub(crate) fn regex(regex: &str) -> Result<Self, ConstraintError> {
        bounded("regular expression", regex.len(), REGEX_BYTES_MAX)?;
        if regex.is_empty() {
            return Err(unsupported("regex", "", "it matches the empty text only"));
        }
        // The compiler parses it too, but inside a pattern of its own, and says less about what is wrong.
        let parsed = regex_syntax::ast::parse::Parser::new().parse(regex);
        parsed.map_err(|error| {
            let column = error.span().start.column;
            invalid(
                "regex",
                "",
                &format!("{} (character {column})", error.kind()),
            )
        })?;
        if lark::has_stop_group(regex) {
            return Err(unsupported("regex", "", lark::STOP_GROUP));
        }
        Ok(Self::Regex(regex.to_owned()))
    }

    /// The whole reply is one of `options`.
    pub(crate) fn choice(options: &[String]) -> Result<Self, ConstraintError> {
        if options.is_empty() {
            return Err(invalid("choice", "", "no option"));
        }
        if options.len() > OPTIONS_MAX {
            return Err(invalid(
                "choice",
                "",
                &format!("more than {OPTIONS_MAX} options"),
            ));
        }
        let bytes = options.iter().map(String::len).sum();
        bounded("list of options", bytes, OPTIONS_BYTES_MAX)?;
        if options.iter().any(String::is_empty) {
            return Err(invalid("choice", "", "an option is empty"));
        }
        let mut seen = BTreeSet::new();
        let distinct = options.iter().filter(|option| seen.insert(option.as_str()));
        Ok(Self::Choice(distinct.cloned().collect()))
    }

    /// The whole reply derives from `start` of a Lark grammar.
    pub(crate) fn lark(grammar: &str) -> Result<Self, ConstraintError> {
        bounded("grammar", grammar.len(), GRAMMAR_BYTES_MAX)?;
        if let Some(reason) = lark::not_plain(grammar) {
            return Err(unsupported("grammar", "", &reason));
        }
        if let Some(rule) = productive::endless_rule(grammar) {
            return Err(ConstraintError::Unsatisfiable {
                reason: format!("no text that ends derives from the rule `{rule}`"),
            });
        }
        Ok(Self::Lark(grammar.to_owned()))
    }

    /// The whole reply has this shape; its schemas are checked keyword by keyword.
    pub(crate) fn shape(shape: &Shape) -> Result<Self, ConstraintError> {
        ShapeGrammar::new(shape).map(Self::Shape)
    }

    /// A schema, checked keyword by keyword.
    pub(crate) fn json_schema(schema: &Value) -> Result<Self, ConstraintError> {
        schema::prepare(schema).map(Self::JsonSchema)
    }

    pub(crate) fn into_grammar(self) -> TopLevelGrammar {
        match self {
            Self::JsonSchema(schema) => json_grammar(schema),
            Self::Regex(regex) => TopLevelGrammar::from_regex(&regex),
            Self::Choice(options) => TopLevelGrammar::from_lark(lark::choice(&options)),
            Self::Lark(grammar) => TopLevelGrammar::from_lark(grammar),
            Self::Shape(grammar) => grammar.into_grammar(),
        }
    }
}

/// The grammar of a prepared schema.
fn json_grammar(mut schema: Value) -> TopLevelGrammar {
    let options = JsonCompileOptions {
        whitespace_pattern: Some(WHITE_SPACE.to_owned()),
        lenient: false,
        coerce_one_of: false,
        ..JsonCompileOptions::default()
    };
    options.apply_to(&mut schema);
    TopLevelGrammar::from_json_schema(schema)
}

fn bounded(what: &'static str, bytes: usize, limit: usize) -> Result<(), ConstraintError> {
    if bytes > limit {
        return Err(ConstraintError::TooLarge { what, bytes, limit });
    }
    Ok(())
}
