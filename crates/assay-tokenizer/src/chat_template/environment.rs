//! The template language: minijinja with what chat templates expect of Python's Jinja2.
//!
//! No loader, no attribute access to host objects, no clock. Filters that can make a value larger than
//! their input are replaced by ones that stop at the output limit; a step budget bounds the rest.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Kwargs, Object, Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State};
use minijinja_contrib::pycompat;

use super::TemplateLimits;
use super::guard;
use super::python::{AsciiOnly, Bounded, JsonStyle, KeyOrder, write_json, write_str};

/// Deepest macro and loop recursion.
const RECURSION_MAX: usize = 128;

/// What a template raises on purpose, carried through the engine's own error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

/// Builds the environment that every template runs in.
pub(super) fn environment(limits: TemplateLimits) -> Environment<'static> {
    let mut env = Environment::new();
    let max = limits.output_bytes;
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_recursion_limit(RECURSION_MAX);
    env.set_fuel(Some(limits.steps));
    env.set_debug(false);
    env.set_formatter(move |out, state, value| format_value(out, state, value, max));
    env.set_unknown_method_callback(move |state, value, method, args| {
        call_method(state, value, method, args, max)
    });

    env.add_filter(
        "tojson",
        move |value: &Value, indent: Option<usize>, options: Kwargs| {
            to_json(value, indent, &options, max)
        },
    );
    env.add_filter("string", move |value: &Value| python_string(value, max));
    env.add_filter(
        "replace",
        move |text: Cow<'_, str>, from: Cow<'_, str>, to: Cow<'_, str>| {
            replace(&text, &from, &to, None, max)
        },
    );
    env.add_filter(
        "join",
        move |items: &Value, separator: Option<Cow<'_, str>>| {
            join(items, separator.as_deref().unwrap_or_default(), max)
        },
    );
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_filter(
        "indent",
        move |text: Cow<'_, str>,
              width: Option<Value>,
              first: Option<bool>,
              blank: Option<bool>,
              options: Kwargs| {
            let width = width.or(options.get("width")?);
            let first = first.or(options.get("first")?).unwrap_or(false);
            let blank = blank.or(options.get("blank")?).unwrap_or(false);
            options.assert_all_used()?;
            indent(&text, width, first, blank, max)
        },
    );
    env.add_filter(guard::CONCAT, move |state: &State<'_, '_>, value: Value| {
        let bytes = match value.as_str() {
            Some(text) => text.len(),
            // The engine prints it in full, however often it holds the same part.
            None => python_string(&value, max)?.as_str().map_or(0, str::len),
        };
        account(state, bytes, max).map(|()| value)
    });
    env.add_filter(guard::ADD, move |state: &State<'_, '_>, value: Value| {
        account(state, size(&value), max).map(|()| value)
    });
    env.add_filter(
        guard::REPEAT,
        move |state: &State<'_, '_>, value: Value, other: Option<Value>| {
            let other = other.unwrap_or(Value::UNDEFINED);
            let times = |value: &Value| usize::try_from(value.clone()).ok();
            let bytes = match (value.kind(), other.kind()) {
                (ValueKind::Number, ValueKind::Number) => 0,
                (ValueKind::Number, _) => size(&other).saturating_mul(times(&value).unwrap_or(0)),
                _ => match times(&other) {
                    Some(times) => size(&value).saturating_mul(times),
                    None => return Err(too_large()),
                },
            };
            account(state, bytes, max).map(|()| value)
        },
    );
    for name in ["batch", "slice", "format", "pprint"] {
        env.remove_filter(name);
    }
    env.add_test("sequence", |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::Map | ValueKind::String
        )
    });
    env.add_test("iterable", |value: &Value| {
        !matches!(value.kind(), ValueKind::None) && value.try_iter().is_ok()
    });
    env.add_test("number", |value: &Value| {
        matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
    });
    env.add_function(
        "raise_exception",
        |message: Rest<Value>| -> Result<Value, Error> {
            let message = message.first().map(Value::to_string).unwrap_or_default();
            Err(Error::new(ErrorKind::InvalidOperation, message.clone())
                .with_source(Raised(message)))
        },
    );
    env
}

/// Bytes printed so far in one rendering, captured blocks included.
#[derive(Debug, Default)]
struct Printed(AtomicUsize);

impl Object for Printed {}

/// Prints as Python's `str`. The limit also counts what is captured into variables, with some slack.
fn format_value(
    out: &mut Output<'_>,
    state: &State<'_, '_>,
    value: &Value,
    max: usize,
) -> Result<(), Error> {
    const CAPTURES: usize = 8;
    let printed: Arc<Printed> = state.get_or_set_temp_object("printed", Printed::default);
    let left = max
        .saturating_mul(CAPTURES)
        .saturating_sub(printed.0.load(Ordering::Relaxed));
    let text = match value.as_str() {
        Some(text) if text.len() <= left => Cow::Borrowed(text),
        _ => {
            let mut text = Bounded::new(left.min(max));
            write_str(&mut text, value)?;
            Cow::Owned(text.into_string())
        }
    };
    printed.0.fetch_add(text.len(), Ordering::Relaxed);
    out.write_str(&text).map_err(|_| too_large())
}

/// Bytes that went through growing operators in one rendering.
#[derive(Debug, Default)]
struct Grown(AtomicUsize);

impl Object for Grown {}

/// Checks one value against the limit, and all values so far against a multiple of it.
fn account(state: &State<'_, '_>, bytes: usize, max: usize) -> Result<(), Error> {
    const OPERATIONS: usize = 512;
    let grown: Arc<Grown> = state.get_or_set_temp_object("grown", Grown::default);
    let before = grown.0.fetch_add(bytes.min(max), Ordering::Relaxed);
    if bytes > max || before > max.saturating_mul(OPERATIONS) {
        return Err(too_large());
    }
    Ok(())
}

/// Bytes that a text, or the list itself without what it holds, takes.
fn size(value: &Value) -> usize {
    match value.as_str() {
        Some(text) => text.len(),
        None => value.len().unwrap_or(0).saturating_mul(size_of::<Value>()),
    }
}

/// The error for a value past the limit.
pub(super) fn too_large() -> Error {
    Error::new(ErrorKind::WriteFailure, "output is too large")
}

/// Python's methods of strings, lists and dictionaries.
fn call_method(
    state: &State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
    max: usize,
) -> Result<Value, Error> {
    let text = value.as_str();
    let arg = |index: usize| -> Option<&str> { args.get(index)?.as_str() };
    match (text, method, arg(0), arg(1)) {
        (Some(text), "replace", Some(from), Some(to)) => {
            let count = args
                .get(2)
                .and_then(|count| usize::try_from(count.clone()).ok());
            return replace(text, from, to, count, max);
        }
        (Some(text), "removeprefix", Some(prefix), _) => {
            return Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)));
        }
        (Some(text), "removesuffix", Some(suffix), _) => {
            return Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)));
        }
        (Some(text), "partition", Some(separator), _) => {
            let (before, after) = text.split_once(separator).unwrap_or((text, ""));
            let found = if text.contains(separator) {
                separator
            } else {
                ""
            };
            return Ok(strings([before, found, after]));
        }
        (Some(text), "rpartition", Some(separator), _) => {
            let (before, after) = text.rsplit_once(separator).unwrap_or(("", text));
            let found = if text.contains(separator) {
                separator
            } else {
                ""
            };
            return Ok(strings([before, found, after]));
        }
        (Some(text), "rsplit", Some(separator), _) if !separator.is_empty() => {
            let most = args
                .get(1)
                .and_then(|count| usize::try_from(count.clone()).ok());
            let mut parts: Vec<&str> = match most {
                Some(most) => text.rsplitn(most.saturating_add(1), separator).collect(),
                None => text.rsplit(separator).collect(),
            };
            parts.reverse();
            return Ok(strings(parts));
        }
        // A width in the format makes text out of nothing.
        (Some(text), "format", ..)
            if text
                .split(|c: char| !c.is_ascii_digit())
                .any(|w| w.len() > 4) =>
        {
            return Err(too_large());
        }
        (Some(separator), "join", ..) => {
            return join(args.first().unwrap_or(&Value::UNDEFINED), separator, max);
        }
        _ => {}
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

/// A list of strings.
fn strings<'s>(parts: impl IntoIterator<Item = &'s str>) -> Value {
    parts.into_iter().map(Value::from).collect()
}

fn python_string(value: &Value, max: usize) -> Result<Value, Error> {
    let mut out = Bounded::new(max);
    write_str(&mut out, value)?;
    Ok(Value::from(out.into_string()))
}

/// `json.dumps` as Hugging Face calls it: nothing escaped for HTML, non-ASCII text kept.
fn to_json(
    value: &Value,
    indent: Option<usize>,
    options: &Kwargs,
    max: usize,
) -> Result<Value, Error> {
    let indent = indent.or(options.get::<Option<usize>>("indent")?);
    let separators: Option<Vec<String>> = options.get("separators")?;
    let ascii = options
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let (item_separator, key_separator) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "separators must be two strings",
            ));
        }
        None => (
            if indent.is_some() { "," } else { ", " }.to_owned(),
            ": ".to_owned(),
        ),
    };
    let style = JsonStyle {
        indent,
        item_separator,
        key_separator,
        ascii: if ascii { AsciiOnly::Yes } else { AsciiOnly::No },
        keys: if sorted {
            KeyOrder::Sorted
        } else {
            KeyOrder::Inserted
        },
    };
    let mut out = Bounded::new(max);
    write_json(&mut out, value, &style, 0)?;
    Ok(Value::from(out.into_string()))
}

fn replace(
    text: &str,
    from: &str,
    to: &str,
    count: Option<usize>,
    max: usize,
) -> Result<Value, Error> {
    let found = text.matches(from).count().min(count.unwrap_or(usize::MAX));
    if found.saturating_mul(to.len()).saturating_add(text.len()) > max.saturating_mul(2) {
        return Err(too_large());
    }
    Ok(Value::from(text.replacen(from, to, found)))
}

fn join(items: &Value, separator: &str, max: usize) -> Result<Value, Error> {
    use std::fmt::Write as _;
    let mut out = Bounded::new(max);
    for (index, item) in items.try_iter()?.enumerate() {
        if index > 0 {
            out.write_str(separator).map_err(|_| too_large())?;
        }
        write_str(&mut out, &item)?;
    }
    Ok(Value::from(out.into_string()))
}

/// Undefined values have no items, as in Jinja2.
fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    value.len().ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("a value of type {} has no length", value.kind()),
        )
    })
}

fn indent(
    text: &str,
    width: Option<Value>,
    first: bool,
    blank: bool,
    max: usize,
) -> Result<Value, Error> {
    use std::fmt::Write as _;
    let prefix = match width {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(prefix) => prefix.to_owned(),
            None => " ".repeat(usize::try_from(width)?.min(max)),
        },
    };
    let mut out = Bounded::new(max);
    let mut put = |part: &str| out.write_str(part).map_err(|_| too_large());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            put("\n")?;
        }
        let wanted = if index == 0 {
            first
        } else {
            blank || !line.is_empty()
        };
        if wanted {
            put(&prefix)?;
        }
        put(line)?;
    }
    Ok(Value::from(out.into_string()))
}
