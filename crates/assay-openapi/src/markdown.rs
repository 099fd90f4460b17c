//! The document as a page for readers: `docs/api.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::document::OpenApi;
use crate::request_schema::{HARMLESS, REFUSED, WITHOUT_EFFECT};

const HEAD: &str = "# API reference\n\n\
    Made of [`openapi.json`](openapi.json) by `cargo xtask openapi`; a running server answers `GET /openapi.json` with the same\n\
    document and shows it at `/docs`. Every example here is sent to a server by the tests.\n\n";

impl OpenApi {
    /// As `docs/api.md` holds it: routes with their requests and examples, then every object.
    pub fn markdown(&self) -> String {
        let api = self.json();
        let mut page = HEAD.to_owned();
        paragraph(&mut page, text(&api["info"], "description"));
        page += "| route | |\n|---|---|\n";
        for (method, path, operation) in operations(api) {
            let title = format!("{method} {path}");
            let anchor = anchor(&title);
            let summary = text(operation, "summary");
            let _ = writeln!(page, "| [`{title}`](#{anchor}) | {summary} |");
        }
        for tag in list(&api["tags"]) {
            let name = text(tag, "name");
            let _ = write!(page, "\n## {name}\n\n");
            paragraph(&mut page, text(tag, "description"));
            for (method, path, operation) in operations(api) {
                if operation["tags"][0] == name {
                    route(&mut page, api, &method, path, operation);
                }
            }
        }
        errors(&mut page, api);
        page += "\n## Objects\n\n";
        for (name, schema) in object(&api["components"]["schemas"]) {
            // A request stands at its route.
            if !operations(api)
                .iter()
                .any(|(.., operation)| request_of(operation) == Some(name))
            {
                let _ = write!(page, "### {name}\n\n");
                described(&mut page, schema);
            }
        }
        page.truncate(page.trim_end().len());
        page + "\n"
    }
}

fn route(page: &mut String, api: &Value, method: &str, path: &str, operation: &Value) {
    let _ = write!(page, "### {method} {path}\n\n");
    paragraph(page, &format!("{}.", text(operation, "summary")));
    paragraph(page, text(operation, "description"));
    let body = &operation["requestBody"]["content"]["application/json"];
    if let Some(name) = request_of(operation) {
        let _ = write!(page, "Request, `{name}`:\n\n");
        described(page, &api["components"]["schemas"][name]);
    }
    for example in object(&body["examples"]).values() {
        let _ = write!(
            page,
            "{}:\n\n```json POST {path}\n{:#}\n```\n\n",
            text(example, "summary"),
            example["value"]
        );
    }
    let answer = &operation["responses"]["200"];
    let mut forms: Vec<String> = Vec::new();
    for (media_type, content) in object(&answer["content"]) {
        forms.push(format!("{} (`{media_type}`)", kind(&content["schema"])));
    }
    let _ = write!(
        page,
        "Answer: {}. {}",
        forms.join("; "),
        text(answer, "description")
    );
    let statuses = object(&operation["responses"]).keys();
    let other: Vec<&str> = statuses
        .map(String::as_str)
        .filter(|status| *status != "200")
        .collect();
    if !other.is_empty() {
        let _ = write!(page, " [Errors](#errors): {}.", other.join(", "));
    }
    page.push_str("\n\n");
}

/// Statuses with what they mean; the routes' dialects have bodies of their own.
fn errors(page: &mut String, api: &Value) {
    let mut told: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for (.., operation) in operations(api) {
        for (status, response) in object(&operation["responses"]) {
            let Some(name) = reference(response) else {
                continue;
            };
            let response = &api["components"]["responses"][name];
            let bodies = object(&response["content"]).values();
            let meant = told
                .entry((status, text(response, "description")))
                .or_default();
            meant.extend(bodies.map(|body| kind(&body["schema"])));
        }
    }
    page.push_str("## Errors\n\n| status | when | body |\n|---|---|---|\n");
    for ((status, meaning), bodies) in told {
        let bodies = joined(bodies.into_iter());
        let _ = writeln!(page, "| {status} | {} | {bodies} |", cell(meaning));
    }
}

/// A schema with its meaning: its forms one by one, or its fields, or its type.
fn described(page: &mut String, schema: &Value) {
    paragraph(page, text(schema, "description"));
    let forms = [list(&schema["oneOf"]), list(&schema["anyOf"])].concat();
    if forms
        .iter()
        .any(|form| !object(&form["properties"]).is_empty())
    {
        for form in forms {
            let _ = write!(page, "{}\n\n", form_name(&form));
            fields(page, &form);
        }
    } else if !forms.is_empty() {
        for form in forms {
            let meaning = text(&form, "description");
            let colon = if meaning.is_empty() { "" } else { ": " };
            let _ = writeln!(page, "- {}{colon}{meaning}", kind(&form));
        }
        page.push('\n');
    } else if object(&schema["properties"]).is_empty() {
        paragraph(page, &format!("{}.", kind(schema)));
    } else {
        fields(page, schema);
    }
}

/// What tells one form of an object from the others.
fn form_name(form: &Value) -> String {
    let tags = object(&form["properties"]).iter();
    let tags: Vec<String> = tags
        .filter(|(_, schema)| schema.get("const").is_some())
        .map(|(name, schema)| format!("`{name}` {}", kind(schema)))
        .collect();
    let meaning = text(form, "description");
    match (tags.is_empty(), meaning.is_empty()) {
        (true, true) => format!("{}:", kind(form)),
        (true, false) => meaning.to_owned(),
        (false, true) => format!("With {}:", tags.join(", ")),
        (false, false) => format!("With {}: {meaning}", tags.join(", ")),
    }
}

/// Fields of a kind that are many and do little are named in one line, below the table.
const TOLD_TOGETHER: [&str; 3] = [HARMLESS, REFUSED, WITHOUT_EFFECT];

fn fields(page: &mut String, schema: &Value) {
    if object(&schema["properties"]).is_empty() {
        return;
    }
    page.push_str("| field | type | default | meaning |\n|---|---|---|---|\n");
    rows(page, "", schema);
    page.push('\n');
    for meaning in TOLD_TOGETHER {
        let named = object(&schema["properties"]).iter();
        let named = named.filter(|(_, field)| text(field, "description") == meaning);
        let named: Vec<String> = named
            .map(|(name, field)| match meaning {
                WITHOUT_EFFECT => format!("`{name}` ({})", kind(field)),
                _ => format!("`{name}`"),
            })
            .collect();
        if !named.is_empty() {
            paragraph(page, &format!("{meaning} {}.", named.join(", ")));
        }
    }
}

/// A row a field; the fields of an object without a name stand below it, `field.inner` or `field[].inner`.
fn rows(page: &mut String, prefix: &str, schema: &Value) {
    let required = list(&schema["required"]);
    for (name, field) in object(&schema["properties"]) {
        if TOLD_TOGETHER.contains(&text(field, "description")) {
            continue;
        }
        let is_required = required.iter().any(|known| known == name);
        let default = match (field.get("default"), is_required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "required".to_owned(),
            (None, false) => String::new(),
        };
        let mut type_of = kind(field);
        if is_required && is_nullable(field) {
            type_of += " or null";
        }
        let _ = writeln!(
            page,
            "| `{prefix}{name}` | {} | {} | {} |",
            cell(&type_of),
            cell(&default),
            cell(text(field, "description"))
        );
        let items = &field["items"];
        if object(&field["properties"]).is_empty() {
            rows(page, &format!("{prefix}{name}[]."), items);
        } else {
            rows(page, &format!("{prefix}{name}."), field);
        }
    }
}

/// A type in words; that it may be null is left to the caller.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("[`{name}`](#{})", anchor(name));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema.get("enum") {
        let values = list(values).iter().filter(|value| !value.is_null());
        let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    let forms = [list(&schema["oneOf"]), list(&schema["anyOf"])].concat();
    if !forms.is_empty() {
        return joined(forms.iter().filter(|form| form["type"] != "null").map(kind));
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => return "anything".to_owned(),
        one => vec![one.clone()],
    };
    if types == ["null"] {
        return "null".to_owned();
    }
    joined(
        types
            .iter()
            .filter(|one| *one != "null")
            .map(|one| simple(one.as_str().unwrap_or_default(), schema)),
    )
}

fn simple(name: &str, schema: &Value) -> String {
    match name {
        "array" => {
            let bounds = bounds(schema, "minItems", "maxItems");
            format!("list of {}{bounds}", kind(&schema["items"]))
        }
        "string" => format!("string{}", bounds(schema, "minLength", "maxLength")),
        "integer" | "number" => format!("{name}{}", bounds(schema, "minimum", "maximum")),
        "object" => match schema.get("additionalProperties") {
            Some(value) if value.is_object() => format!("object of {}", kind(value)),
            _ => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}

/// ` (from to)`, ` (from or more)` or nothing.
fn bounds(schema: &Value, least: &str, most: &str) -> String {
    match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) => format!(" ({least} to {most})"),
        (Some(least), None) if *least != 0 => format!(" ({least} or more)"),
        (None, Some(most)) => format!(" (at most {most})"),
        _ => String::new(),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        if !seen.contains(&part) {
            seen.push(part);
        }
    }
    seen.join(" or ")
}

fn is_nullable(schema: &Value) -> bool {
    let in_type = list(&schema["type"]).iter().any(|one| one == "null");
    let forms = [list(&schema["oneOf"]), list(&schema["anyOf"])].concat();
    in_type || forms.iter().any(|form| form["type"] == "null")
}

fn operations(api: &Value) -> Vec<(String, &str, &Value)> {
    let mut found = Vec::new();
    for (path, methods) in object(&api["paths"]) {
        for (method, operation) in object(methods) {
            found.push((method.to_uppercase(), path.as_str(), operation));
        }
    }
    found
}

/// The component that a route's request is.
fn request_of(operation: &Value) -> Option<&str> {
    reference(&operation["requestBody"]["content"]["application/json"]["schema"])
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// What web repositories make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

fn paragraph(page: &mut String, words: &str) {
    if !words.is_empty() {
        let _ = write!(page, "{words}\n\n");
    }
}

fn cell(words: &str) -> String {
    words.replace('|', "\\|").replace('\n', " ")
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}
