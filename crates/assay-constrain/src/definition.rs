//! A constraint as text that it can be compiled from again, elsewhere: what a record of a reply keeps.

use serde_json::{Map, Value, json};

use crate::error::{ConstraintError, invalid};
use crate::factory::{Constraint, ConstraintFactory};
use crate::source::Shape;

/// Longest definition that is read: more than any source may have.
const BYTES_MAX: usize = 1 << 20;

/// The definition of a JSON Schema, whose compact text is `schema`: its members keep their order, which the reply's follows.
pub(crate) fn json_schema(schema: &str) -> String {
    format!("{{\"json_schema\":{schema}}}")
}

pub(crate) fn regex(regex: &str) -> String {
    json!({"regex": regex}).to_string()
}

pub(crate) fn choice(options: &[String]) -> String {
    json!({"choice": options}).to_string()
}

pub(crate) fn grammar(grammar: &str) -> String {
    json!({"grammar": grammar}).to_string()
}

pub(crate) fn shape(shape: &Shape) -> String {
    json!({"shape": shape_value(shape)}).to_string()
}

impl ConstraintFactory {
    /// The constraint whose [`Constraint::definition`] this is.
    ///
    /// # Errors
    /// It is none, or cannot be enforced with this vocabulary. **Cost**: as of what it defines.
    pub fn compile_definition(&self, definition: &str) -> Result<Constraint, ConstraintError> {
        if definition.len() > BYTES_MAX {
            return Err(ConstraintError::TooLarge {
                what: "definition",
                bytes: definition.len(),
                limit: BYTES_MAX,
            });
        }
        let value: Value = serde_json::from_str(definition)
            .map_err(|error| invalid("definition", "", &error.to_string()))?;
        match single(&value) {
            Some(("json_schema", schema)) => self.compile_json_schema(schema),
            Some(("regex", Value::String(regex))) => self.compile_regex(regex),
            Some(("grammar", Value::String(grammar))) => self.compile_grammar(grammar),
            Some(("choice", Value::Array(options))) => {
                let options = options
                    .iter()
                    .map(|option| option.as_str().map(str::to_owned));
                let options: Option<Vec<String>> = options.collect();
                self.compile_choice(&options.ok_or_else(unknown)?)
            }
            Some(("shape", shape)) => self.compile_shape(&read_shape(shape).ok_or_else(unknown)?),
            _ => Err(unknown()),
        }
    }
}

fn unknown() -> ConstraintError {
    invalid("definition", "", "no constraint is written so")
}

/// Name and value of an object with one member.
fn single(value: &Value) -> Option<(&str, &Value)> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members
        .iter()
        .next()
        .map(|(name, value)| (name.as_str(), value))
}

fn shape_value(shape: &Shape) -> Value {
    match shape {
        Shape::Literal(text) => json!({"literal": text}),
        Shape::Json { schema, path } => json!({"json": {"schema": schema, "path": path}}),
        Shape::TextUntil(end) => json!({"text_until": end}),
        Shape::Sequence(parts) => json!({"sequence": shape_values(parts)}),
        Shape::Choice(options) => json!({"choice": shape_values(options)}),
        Shape::Optional(shape) => json!({"optional": shape_value(shape)}),
        Shape::Repeated { shape, separator } => {
            json!({"repeated": {"shape": shape_value(shape), "separator": separator}})
        }
    }
}

fn shape_values(shapes: &[Shape]) -> Vec<Value> {
    shapes.iter().map(shape_value).collect()
}

/// As deep as JSON may be nested.
fn read_shape(value: &Value) -> Option<Shape> {
    let text = |value: &Value| Some(value.as_str().filter(|text| !text.is_empty())?.to_owned());
    let members = |value: &Value, names: [&str; 2]| -> Option<[Value; 2]> {
        let members: &Map<String, Value> = value.as_object()?;
        let [first, second] = names.map(|name| members.get(name).cloned());
        (members.len() == names.len()).then_some([first?, second?])
    };
    Some(match single(value)? {
        ("literal", value) => Shape::Literal(text(value)?),
        ("text_until", value) => Shape::TextUntil(text(value)?),
        ("sequence", value) => Shape::Sequence(read_shapes(value)?),
        ("choice", value) => Shape::Choice(read_shapes(value)?),
        ("optional", value) => Shape::Optional(Box::new(read_shape(value)?)),
        ("json", value) => {
            let [schema, path] = members(value, ["schema", "path"])?;
            Shape::Json {
                schema,
                path: path.as_str()?.to_owned(),
            }
        }
        ("repeated", value) => {
            let [shape, separator] = members(value, ["shape", "separator"])?;
            Shape::Repeated {
                shape: Box::new(read_shape(&shape)?),
                separator: separator.as_str()?.to_owned(),
            }
        }
        _ => return None,
    })
}

/// There is one at least.
fn read_shapes(value: &Value) -> Option<Vec<Shape>> {
    let shapes = value.as_array().filter(|shapes| !shapes.is_empty())?;
    shapes.iter().map(read_shape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factory() -> ConstraintFactory {
        let tokens = (0_u8..128).map(|byte| Some(vec![byte])).chain([None]);
        ConstraintFactory::from_token_bytes(tokens, &[128]).expect("a vocabulary")
    }

    #[test]
    fn what_is_compiled_from_a_definition_has_the_same() {
        let factory = factory();
        let schema = json!({"type": "object", "properties": {"b": {"type": "boolean"}, "a": {"const": 1.5}}});
        let all = Shape::Sequence(vec![
            Shape::Literal("<call>".to_owned()),
            Shape::Repeated {
                shape: Box::new(Shape::Json {
                    schema: schema.clone(),
                    path: "tools".to_owned(),
                }),
                separator: "\n".to_owned(),
            },
            Shape::Optional(Box::new(Shape::Choice(vec![
                Shape::Literal("a".to_owned()),
                Shape::TextUntil("z".to_owned()),
            ]))),
        ]);
        let compiled = [
            factory.compile_json_schema(&schema),
            factory.compile_regex("a|\"b\"+"),
            factory.compile_choice(&["x".to_owned(), "y\n".to_owned()]),
            factory.compile_grammar("start: \"a\" \"b\""),
            factory.compile_shape(&all),
            factory.compile_json_object(),
        ];
        // Another factory has kept nothing.
        let elsewhere = self::factory();
        for constraint in compiled {
            let definition = constraint.expect("compiled").definition().to_owned();
            let again = elsewhere.compile_definition(&definition).expect("compiled");
            assert_eq!(again.definition(), definition);
        }
        assert!(
            factory
                .compile_json_schema(&schema)
                .expect("compiled")
                .definition()
                .find("\"b\"")
                < factory
                    .compile_json_schema(&schema)
                    .expect("compiled")
                    .definition()
                    .find("\"a\"")
        );
    }

    #[test]
    fn what_defines_nothing_is_refused() {
        let factory = factory();
        let deep = format!(
            "{{\"shape\":{}{}",
            "{\"optional\":".repeat(500),
            "}".repeat(501)
        );
        let long = json!({"regex": "a".repeat(2 << 20)}).to_string();
        for definition in [
            "",
            "{}",
            "[]",
            "{\"regex\":1}",
            "{\"choice\":[1]}",
            "{\"shape\":{\"literal\":\"\"}}",
            "{\"shape\":{\"sequence\":[]}}",
            "{\"regex\":\"a\",\"choice\":[\"b\"]}",
            &deep,
            &long,
        ] {
            assert!(
                factory.compile_definition(definition).is_err(),
                "{definition:.60}"
            );
        }
    }
}
