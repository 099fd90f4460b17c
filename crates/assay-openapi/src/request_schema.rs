//! The JSON Schema of a request: its shape, its words and what probing tells.

use std::collections::BTreeSet;

use assay_api::record::Asked;
use serde_json::{Map, Value, json};

use crate::path::join;
use crate::probe;
use crate::request::Request;
use crate::shape::{Object, Shape};
use crate::words::{Word, Words};

/// In the schema of a word: the object that stands at this path below its field, such as `[]`.
pub(crate) const RECORDED: &str = "$recorded";

/// Meanings of fields that no word is said of.
pub(crate) const HARMLESS: &str = "Accepted, and without effect here.";
pub(crate) const REFUSED: &str = "Known and not supported: any value but null is refused.";
pub(crate) const WITHOUT_EFFECT: &str =
    "Accepted with these values, which ask for nothing; any other is refused.";

/// Writes the schemas of one request.
pub(crate) struct Writer<'d> {
    pub(crate) request: &'d Request,
    pub(crate) shape: Shape,
    pub(crate) words: &'d Words,
    pub(crate) schemas: &'d mut Map<String, Value>,
    pub(crate) faults: &'d mut Vec<String>,
    written: BTreeSet<String>,
    opaque: Vec<String>,
}

impl<'d> Writer<'d> {
    /// Writes the request's schema, and those of its objects that have names, to `schemas`.
    pub(crate) fn write(
        request: &'d Request,
        words: &'d Words,
        schemas: &'d mut Map<String, Value>,
        faults: &'d mut Vec<String>,
    ) {
        let shape = Shape::new(request, faults);
        let mut writer = Self {
            request,
            shape,
            words,
            schemas,
            faults,
            written: BTreeSet::new(),
            opaque: Vec::new(),
        };
        let body = writer.object("");
        writer.keep(request.component, body);
        writer.check_all_written();
    }

    fn fault(&mut self, text: String) {
        self.faults.push(format!("{}: {text}", self.request.key));
    }

    /// Adds a schema; one name has one schema in all requests.
    fn keep(&mut self, name: &str, schema: Value) {
        match self.schemas.get(name) {
            Some(known) if *known != schema => {
                self.fault(format!(
                    "another schema than this is called `{name}`: {schema} {known}"
                ));
            }
            _ => {
                self.schemas.insert(name.to_owned(), schema);
            }
        }
    }

    fn check_all_written(&mut self) {
        let keys = self.shape.objects.keys();
        let is_inside = |key: &String| {
            self.opaque.iter().any(|opaque| {
                let rest = key.strip_prefix(opaque.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '<']))
            })
        };
        let unwritten = keys.filter(|key| !self.written.contains(*key) && !is_inside(key));
        let unwritten: Vec<String> = unwritten.cloned().collect();
        for key in unwritten {
            self.fault(format!("the object `{key}` is read and not described"));
        }
    }

    /// The schema of the object `key`, by its name where it has one.
    fn object(&mut self, key: &str) -> Value {
        let kinds = self.shape.kinds(key);
        let name = (!key.is_empty())
            .then(|| self.words.name(self.request.key, key))
            .flatten();
        let schema = self.kinds(key, kinds);
        match name {
            None => schema,
            Some(name) => {
                self.keep(name, schema);
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
        }
    }

    fn kinds(&mut self, key: &str, kinds: Vec<(String, String)>) -> Value {
        let mut variants = Vec::new();
        for (kind, full_key) in &kinds {
            self.written.insert(full_key.clone());
            let object = self.shape.objects.remove(full_key).unwrap_or_default();
            let schema = self.one_kind(full_key, kind, &object);
            self.shape.objects.insert(full_key.clone(), object);
            variants.push((kind.clone(), schema));
        }
        if variants.len() > 1 && variants.iter().any(|(kind, _)| kind.is_empty()) {
            self.fault(format!("samples leave out the `type` of `{key}`"));
        }
        let with_any_kind = |schema: &Value| {
            let mut schema = schema.clone();
            if let Some(kind) = schema.pointer_mut("/properties/type/const") {
                *kind = Value::Null;
            }
            schema
        };
        let first = variants.first().map(|(_, schema)| with_any_kind(schema));
        let are_alike = variants
            .iter()
            .all(|(_, schema)| Some(with_any_kind(schema)) == first);
        match variants.len() {
            0 => json!({"type": "object"}),
            1 => variants.remove(0).1,
            _ if are_alike => {
                let names: Vec<_> = variants.iter().map(|(kind, _)| kind.clone()).collect();
                let mut schema = variants.remove(0).1;
                if let Some(Value::Object(kind)) = schema.pointer_mut("/properties/type") {
                    kind.remove("const");
                    kind.insert("enum".to_owned(), json!(names));
                }
                schema
            }
            _ => {
                let schemas: Vec<_> = variants.into_iter().map(|(_, schema)| schema).collect();
                json!({"oneOf": schemas})
            }
        }
    }

    fn one_kind(&mut self, key: &str, kind: &str, object: &Object) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, asked) in &object.fields {
            let is_required = probe::is_required(self.request, object, name);
            if is_required {
                required.push(name.clone());
            }
            let field = join(key, name);
            let is_kind = name == "type" && !kind.is_empty();
            let mut schema = if is_kind {
                self.kind_field(&field, kind, asked)
            } else {
                self.field(&field, asked)
            };
            if !is_required && !is_kind {
                allow_null(&mut schema);
            }
            if let Some(default) = schema.get("default").cloned() {
                for sample in probe::differing_samples(self.request, object, name, &default) {
                    self.fault(format!(
                        "`{field}` is not {default} by default (sample {sample})"
                    ));
                }
            }
            properties.insert(name.clone(), schema);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if probe::is_closed(self.request, object) {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }

    fn kind_field(&mut self, field: &str, kind: &str, asked: &Asked) -> Value {
        if let Asked::Choice(kinds) = asked {
            let object = field.strip_suffix(&format!("<{kind}>.type"));
            let sampled = self.shape.kinds(object.unwrap_or_default());
            for known in kinds.iter().filter(|known| *known != kind) {
                if !sampled.iter().any(|(sampled, _)| sampled == known) {
                    self.fault(format!("no sample has a `{field}` of `{known}`"));
                }
            }
        }
        let mut schema = json!({"type": "string", "const": kind});
        let word = self.words.get(self.request.key, field);
        schema["description"] = json!(word.map_or("What it is.", |word| word.says));
        schema
    }

    fn field(&mut self, field: &str, asked: &Asked) -> Value {
        let words = self.words;
        let has_no_effect = matches!(asked, Asked::Harmless | Asked::Only(_));
        let word = (!has_no_effect)
            .then(|| words.get(self.request.key, field))
            .flatten();
        if word.is_some_and(|word| word.opaque) {
            self.opaque.push(field.to_owned());
        }
        let mut schema = self.asked(field, asked, word);
        let says = match (word, asked) {
            (Some(word), _) => word.says,
            (None, Asked::Harmless) => HARMLESS,
            (None, Asked::Only(accepted)) if accepted.is_empty() => REFUSED,
            (None, Asked::Only(_)) => WITHOUT_EFFECT,
            (None, _) => {
                self.fault(format!("words: nothing is said of `{field}`"));
                ""
            }
        };
        schema.insert("description".to_owned(), json!(says));
        if let Some(default) = word.and_then(|word| word.default.clone()) {
            schema.insert("default".to_owned(), default);
        }
        Value::Object(schema)
    }

    fn asked(&mut self, field: &str, asked: &Asked, word: Option<&Word>) -> Map<String, Value> {
        let own = word.and_then(|word| word.schema.clone());
        let has_own = own.is_some();
        let base = match asked {
            Asked::Any if !has_own => {
                self.fault(format!("words: `{field}` needs a schema"));
                json!({})
            }
            Asked::Any => json!({}),
            Asked::Harmless => json!({"x-assay-no-effect": true}),
            Asked::Only(accepted) if accepted.is_empty() => json!({"type": "null"}),
            Asked::Only(accepted) => {
                let values = accepted.split(' ').map(serde_json::from_str);
                let values: Vec<Value> = values.filter_map(Result::ok).collect();
                json!({"enum": values})
            }
            Asked::Boolean => json!({"type": "boolean"}),
            Asked::Integer(range) => {
                let mut schema = json!({"type": "integer"});
                if *range.start() != i64::MIN {
                    schema["minimum"] = json!(range.start());
                }
                if *range.end() != i64::MAX {
                    schema["maximum"] = json!(range.end());
                } else {
                    schema["format"] = json!("int64");
                }
                schema
            }
            Asked::Number(range) => {
                let minimum = if range.above_min {
                    "exclusiveMinimum"
                } else {
                    "minimum"
                };
                json!({"type": "number", minimum: range.min, "maximum": range.max})
            }
            Asked::String => json!({"type": "string"}),
            Asked::Choice(choices) => json!({"type": "string", "enum": choices}),
            Asked::Object if has_own => json!({"type": "object"}),
            Asked::Object => {
                if self.shape.kinds(field).is_empty() {
                    self.fault(format!("no sample has an object in `{field}`"));
                }
                self.object(field)
            }
            Asked::Array if has_own => json!({"type": "array"}),
            Asked::Array => {
                let items = format!("{field}[]");
                if self.shape.kinds(&items).is_empty() {
                    self.fault(format!("no sample has an object in `{items}`"));
                }
                json!({"type": "array", "items": self.object(&items)})
            }
        };
        let Value::Object(mut schema) = base else {
            return Map::new();
        };
        if let Some(Value::Object(mut own)) = own {
            own.values_mut()
                .for_each(|value| self.resolve(field, value));
            schema.extend(own);
        }
        schema
    }

    /// Puts the recorded objects where a word's schema names them.
    fn resolve(&mut self, field: &str, schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                if let Some(below) = members.get(RECORDED).and_then(Value::as_str) {
                    let key = format!("{field}{below}");
                    if self.shape.kinds(&key).is_empty() {
                        self.fault(format!("no sample has an object in `{key}`"));
                    }
                    *schema = self.object(&key);
                } else {
                    members
                        .values_mut()
                        .for_each(|value| self.resolve(field, value));
                }
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|value| self.resolve(field, value)),
            _ => {}
        }
    }
}

/// Null is absent, wherever a field may be absent.
fn allow_null(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(constant) = members.remove("const") {
        members.insert("enum".to_owned(), json!([constant]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.push(Value::Null);
    }
    match members.get("type").cloned() {
        Some(Value::String(one)) if one != "null" => {
            members.insert("type".to_owned(), json!([one, "null"]));
        }
        Some(Value::Array(mut several)) => {
            several.push(json!("null"));
            members.insert("type".to_owned(), Value::Array(several));
        }
        _ => {}
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(Value::Array(schemas)) = members.get_mut(word) {
            schemas.push(json!({"type": "null"}));
        }
    }
    if let Some(reference) = members.remove("$ref") {
        let schemas = json!([{"$ref": reference}, {"type": "null"}]);
        members.insert("anyOf".to_owned(), schemas);
    }
}
