//! Reads a schema by its types. Every keyword must be one that is honoured, or one that only describes.

use serde_json::{Number, Value};

use super::combine;
use super::range::{self, Range};
use super::{Field, FieldKind, MAX_DEPTH, MAX_FIELDS, Node, Subset};
use crate::decisions::question::{self, Answers, Choice, ChoiceValue, NUM_CHOICES, Question};
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};

/// Keywords that describe and restrict nothing.
const ANNOTATIONS: [&str; 9] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
];

/// The word that ends a subset.
pub const STOP: &str = "None";

/// Reads the schema at `path` of the body. `instructions` stand before its own description.
///
/// # Errors
/// A keyword that cannot be honoured in full, by its name and path.
pub fn read_schema(
    path: &str,
    schema: Value,
    instructions: Option<String>,
) -> Result<Node, FieldError> {
    let mut reader = Reader { num_fields: 0 };
    let context = Context {
        name: None,
        above: instructions,
        depth: 0,
    };
    reader.node(SchemaFields::new(path, schema)?, context)
}

/// Where a schema stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    /// Its property's name.
    pub(super) name: Option<String>,
    /// What is said above its own description.
    pub(super) above: Option<String>,
    pub(super) depth: usize,
}

pub(super) struct Reader {
    num_fields: usize,
}

impl Reader {
    pub(super) fn node(
        &mut self,
        mut schema: SchemaFields,
        context: Context,
    ) -> Result<Node, FieldError> {
        if context.depth > MAX_DEPTH {
            let message = format!("`{}`: nests deeper than {MAX_DEPTH} schemas", schema.path());
            return Err(FieldError::new(schema.path(), message));
        }
        let words = schema.words(context.name.as_deref())?;
        let instructions = join(context.above.clone(), words);
        if schema.has("oneOf") {
            return combine::one_of(self, schema, instructions, context.depth);
        }
        if let Some((_, value)) = schema.take("const") {
            schema.check_scalar("const", &value)?;
            schema.check_type_of(&value)?;
            schema.finish()?;
            return Ok(Node::Given(value));
        }
        if let Some((path, values)) = schema.array("enum")? {
            return self.enumeration(schema, instructions, &path, values);
        }
        let Some((path, kind)) = schema.string("type")? else {
            schema.check_untaken()?;
            return Err(schema.needed(
                "type",
                "one of boolean, integer, number, string, array and object",
            ));
        };
        match kind.as_str() {
            "boolean" => self.boolean(schema, instructions),
            "integer" => {
                let range = range::numbers(&mut schema, true)?;
                self.range(schema, instructions, range)
            }
            "number" => {
                let range = range::numbers(&mut schema, false)?;
                self.range(schema, instructions, range)
            }
            "string" => match schema.string("format")? {
                Some((_, format)) if format == "date" => {
                    let range = range::dates(&mut schema)?;
                    self.range(schema, instructions, range)
                }
                Some((path, _)) => Err(FieldError::unsupported(path, "any format but \"date\"")),
                None => Err(schema.needed("enum", "its values, or `format: \"date\"` with bounds: free text has no finite distribution")),
            },
            "array" => self.subset(schema, instructions),
            "object" => {
                let object = combine::object(self, schema, instructions, context.depth)?;
                Ok(Node::Object(object))
            }
            "null" => {
                schema.finish()?;
                Ok(Node::Given(Value::Null))
            }
            _ => Err(FieldError::unsupported(path, "this type")),
        }
    }

    fn count_field(&mut self, path: &str) -> Result<(), FieldError> {
        self.num_fields += 1;
        if self.num_fields > MAX_FIELDS {
            let message = format!("`{path}`: the schema asks for more than {MAX_FIELDS} fields");
            return Err(FieldError::new(path, message));
        }
        Ok(())
    }

    fn boolean(
        &mut self,
        schema: SchemaFields,
        instructions: Option<String>,
    ) -> Result<Node, FieldError> {
        let path = schema.finish()?;
        self.count_field(&path)?;
        let question = Question {
            path,
            instructions,
            answers: Answers::YesNo {
                yes: None,
                no: None,
            },
            described: None,
        };
        Ok(Node::Ask(Field {
            question,
            values: vec![Value::Bool(true), Value::Bool(false)],
            kind: FieldKind::Boolean,
        }))
    }

    fn enumeration(
        &mut self,
        mut schema: SchemaFields,
        instructions: Option<String>,
        path: &str,
        values: Vec<Value>,
    ) -> Result<Node, FieldError> {
        for value in &values {
            schema.check_scalar("enum", value)?;
        }
        if let [value] = &values[..] {
            schema.check_type_of(value)?;
            schema.finish()?;
            return Ok(Node::Given(value.clone()));
        }
        // A `type` beside the values may only agree with them.
        let kind = schema.string("type")?;
        if let Some((_, kind)) = &kind {
            for value in &values {
                schema.check_type(kind, value)?;
            }
        }
        let schema_path = schema.finish()?;
        self.choice(schema_path, instructions, path, values)
            .map(Node::Ask)
    }

    /// A question for one of `values`, which stand at `path`.
    pub(super) fn choice(
        &mut self,
        schema_path: String,
        instructions: Option<String>,
        path: &str,
        values: Vec<Value>,
    ) -> Result<Field, FieldError> {
        self.count_field(&schema_path)?;
        question::check_count(path, "values", values.len(), &NUM_CHOICES)?;
        let choices = choices(path, &values);
        question::check_distinct(&choices)?;
        let question = Question {
            path: schema_path,
            instructions,
            answers: Answers::Choice(choices),
            described: None,
        };
        Ok(Field {
            question,
            values,
            kind: FieldKind::Enum,
        })
    }

    fn range(
        &mut self,
        schema: SchemaFields,
        instructions: Option<String>,
        range: Range,
    ) -> Result<Node, FieldError> {
        let path = schema.finish()?;
        self.count_field(&path)?;
        let mut values = range.values;
        if values.len() == 1 {
            return Ok(Node::Given(values.pop().unwrap_or(Value::Null)));
        }
        let choices = range.texts.into_iter().map(|text| Choice {
            path: path.clone(),
            value: ChoiceValue::Text(text),
            description: None,
        });
        let question = Question {
            instructions,
            answers: Answers::Choice(choices.collect()),
            described: Some(range.described),
            path,
        };
        Ok(Node::Ask(Field {
            question,
            values,
            kind: range.kind,
        }))
    }

    fn subset(
        &mut self,
        mut schema: SchemaFields,
        instructions: Option<String>,
    ) -> Result<Node, FieldError> {
        let path = schema.path().to_owned();
        if schema
            .take("uniqueItems")
            .is_none_or(|(_, value)| value != Value::Bool(true))
        {
            return Err(schema.needed("uniqueItems", "true: an array is read as a subset"));
        }
        let Some((items_path, items)) = schema.take("items") else {
            return Err(schema.needed("items", "an `enum` of values"));
        };
        let mut items = SchemaFields::new(&items_path, items)?;
        items.words(None)?;
        let Some((enum_path, values)) = items.array("enum")? else {
            return Err(items.needed("enum", "the values that an array may hold"));
        };
        let kind = items.string("type")?;
        for value in &values {
            items.check_scalar("enum", value)?;
            if let Some((_, kind)) = &kind {
                items.check_type(kind, value)?;
            }
        }
        items.finish()?;
        let limit = values.len();
        let min_items = schema.count("minItems")?.unwrap_or(0);
        let max_items = schema.count("maxItems")?.unwrap_or(limit).min(limit);
        schema.finish()?;
        self.count_field(&path)?;
        question::check_count(&enum_path, "values", limit, &(1..=*NUM_CHOICES.end() - 1))?;
        if min_items > max_items {
            let message = format!("`{path}`: no array of distinct values has {min_items} items");
            return Err(FieldError::new(path, message));
        }
        let choices = choices(&enum_path, &values);
        question::check_distinct(&choices)?;
        let texts: Vec<String> = choices
            .iter()
            .map(|choice| choice.value.text().to_owned())
            .collect();
        if texts.iter().any(|text| text == STOP) {
            let message =
                format!("`{enum_path}`: must not hold {STOP:?}, the word that ends an array");
            return Err(FieldError::new(enum_path, message));
        }
        Ok(Node::Subset(Subset {
            path,
            instructions,
            values,
            texts,
            min_items,
            max_items,
        }))
    }

    /// Properties of an object, in declared order.
    pub(super) fn properties(
        &mut self,
        path: &str,
        properties: Value,
        above: Option<String>,
        depth: usize,
    ) -> Result<Vec<(String, Node)>, FieldError> {
        let Value::Object(properties) = properties else {
            return Err(wrong_type(path, "an object of schemas", &properties));
        };
        let mut above = above;
        let mut read = Vec::with_capacity(properties.len());
        for (name, schema) in properties {
            let context = Context {
                name: Some(name.clone()),
                above: above.clone(),
                depth: depth + 1,
            };
            let schema = SchemaFields::new(&format!("{path}.{name}"), schema)?;
            let node = self.node(schema, context)?;
            // Said once, above the first question: later ones stand below it.
            if !matches!(node, Node::Given(_)) {
                above = None;
            }
            read.push((name, node));
        }
        Ok(read)
    }
}

fn choices(path: &str, values: &[Value]) -> Vec<Choice> {
    let choices = values.iter().enumerate().map(|(index, value)| Choice {
        path: format!("{path}[{index}]"),
        value: ChoiceValue::Text(value_text(value)),
        description: None,
    });
    choices.collect()
}

/// A value's words: a string's own, the JSON of any other.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn join(above: Option<String>, own: Option<String>) -> Option<String> {
    match (above, own) {
        (Some(above), Some(own)) => Some(format!("{above}\n\n{own}")),
        (above, own) => above.or(own),
    }
}

/// The keywords of one schema that were not taken yet.
pub(super) struct SchemaFields {
    path: String,
    fields: Fields,
}

impl SchemaFields {
    pub(super) fn new(path: &str, schema: Value) -> Result<Self, FieldError> {
        if let Value::Bool(_) = schema {
            return Err(FieldError::unsupported(
                path,
                "a schema that is true or false",
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            fields: Fields::new(path, schema)?,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        let path = self.fields.path_of(keyword);
        self.fields.untaken().any(|untaken| untaken == path)
    }

    /// Takes a keyword, with its path; null counts as a value only of `const`.
    pub(super) fn take(&mut self, keyword: &str) -> Option<(String, Value)> {
        let is_there = self.has(keyword);
        let path = self.fields.path_of(keyword);
        match self.fields.take(keyword) {
            None if is_there && keyword == "const" => Some((path, Value::Null)),
            value => value.map(|value| (path, value)),
        }
    }

    pub(super) fn string(&mut self, keyword: &str) -> Result<Option<(String, String)>, FieldError> {
        let path = self.fields.path_of(keyword);
        Ok(self.fields.string(keyword)?.map(|text| (path, text)))
    }

    pub(super) fn array(
        &mut self,
        keyword: &str,
    ) -> Result<Option<(String, Vec<Value>)>, FieldError> {
        let path = self.fields.path_of(keyword);
        Ok(self.fields.array(keyword)?.map(|values| (path, values)))
    }

    pub(super) fn number(&mut self, keyword: &str) -> Result<Option<(String, Number)>, FieldError> {
        match self.take(keyword) {
            None => Ok(None),
            Some((path, Value::Number(number))) => Ok(Some((path, number))),
            Some((path, other)) => Err(wrong_type(&path, "a number", &other)),
        }
    }

    pub(super) fn count(&mut self, keyword: &str) -> Result<Option<usize>, FieldError> {
        let count = self.fields.integer(keyword, 0..=i64::from(u32::MAX))?;
        Ok(count.and_then(|count| usize::try_from(count).ok()))
    }

    /// The fault that `keyword` is absent, and what it should say.
    pub(super) fn needed(&self, keyword: &str, what: &str) -> FieldError {
        let path = self.fields.path_of(keyword);
        let message = format!("`{path}`: is required here: {what}");
        FieldError::new(path, message)
    }

    /// What the schema says of itself, else its name; takes the keywords that only describe.
    pub(super) fn words(&mut self, name: Option<&str>) -> Result<Option<String>, FieldError> {
        let description = self.fields.string("description")?;
        let title = self.fields.string("title")?;
        for keyword in ANNOTATIONS {
            let _ = self.fields.take(keyword);
        }
        Ok(description.or(title).or(name.map(str::to_owned)))
    }

    /// Values of `enum` and `const` that can be a word: no arrays, no objects.
    pub(super) fn check_scalar(&self, keyword: &str, value: &Value) -> Result<(), FieldError> {
        if value.is_object() || value.is_array() {
            let path = self.fields.path_of(keyword);
            return Err(wrong_type(
                &path,
                "strings, numbers, booleans or null",
                value,
            ));
        }
        Ok(())
    }

    /// Takes a `type` beside a given value, which must be of it.
    pub(super) fn check_type_of(&mut self, value: &Value) -> Result<(), FieldError> {
        match self.string("type")? {
            None => Ok(()),
            Some((_, kind)) => self.check_type(&kind, value),
        }
    }

    pub(super) fn check_type(&self, kind: &str, value: &Value) -> Result<(), FieldError> {
        let agrees = match kind {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            _ => false,
        };
        if agrees {
            return Ok(());
        }
        let path = self.fields.path_of("type");
        let message = format!("`{path}`: {kind:?} does not agree with the value {value}");
        Err(FieldError::new(path, message))
    }

    /// Refuses keywords that nobody took.
    fn check_untaken(&self) -> Result<(), FieldError> {
        match self.fields.untaken().next() {
            None => Ok(()),
            Some(path) => Err(FieldError::unsupported(path, "this keyword, here,")),
        }
    }

    /// Refuses keywords that nobody took; gives the schema's path.
    pub(super) fn finish(self) -> Result<String, FieldError> {
        self.check_untaken()?;
        Ok(self.path)
    }
}
