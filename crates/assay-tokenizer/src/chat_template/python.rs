//! Values written as Python writes them: `str`, `repr` and `json.dumps`.
//!
//! Templates are tested by their authors against Jinja2, where a printed list has single quotes and JSON
//! has a space after the colon; a model has seen exactly those bytes. Every writer stops at a byte budget.

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Deepest nesting written.
const DEPTH_MAX: usize = 128;

/// A string that refuses to grow past a limit.
pub(super) struct Bounded {
    text: String,
    max: usize,
}

impl Bounded {
    pub(super) fn new(max: usize) -> Bounded {
        Bounded {
            text: String::new(),
            max,
        }
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if text.len() > self.max - self.text.len() {
            return Err(std::fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// `str(value)`; undefined values print as nothing.
pub(super) fn write_str(out: &mut Bounded, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::String => written(out.write_str(value.as_str().unwrap_or_default())),
        _ => write_repr(out, value, 0),
    }
}

fn write_repr(out: &mut Bounded, value: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::String => written(write_quoted(out, value.as_str().unwrap_or_default())),
        ValueKind::Number => write_number(out, value),
        ValueKind::Seq => {
            written(out.write_char('['))?;
            for (index, item) in value.try_iter()?.enumerate() {
                if index > 0 {
                    written(out.write_str(", "))?;
                }
                write_repr(out, &item, depth + 1)?;
            }
            written(out.write_char(']'))
        }
        ValueKind::Map => {
            written(out.write_char('{'))?;
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    written(out.write_str(", "))?;
                }
                write_repr(out, &key, depth + 1)?;
                written(out.write_str(": "))?;
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            written(out.write_char('}'))
        }
        _ => written(write!(out, "{value}")),
    }
}

/// Single quotes, unless the text has some and no double quotes.
fn write_quoted(out: &mut Bounded, text: &str) -> std::fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if (c as u32) < 0x20 || (0x7f..0xa1).contains(&(c as u32)) || c == '\u{ad}' => {
                write!(out, "\\x{:02x}", c as u32)?;
            }
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// Integers in decimal, floats as the shortest text that reads back, in Python's notation.
fn write_number(out: &mut Bounded, value: &Value) -> Result<(), Error> {
    if value.is_integer() {
        return written(write!(out, "{value}"));
    }
    let number = f64::try_from(value.clone())?;
    written(write_float(out, number))
}

fn write_float(out: &mut Bounded, number: f64) -> std::fmt::Result {
    if !number.is_finite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return write!(
            out,
            "{}{}",
            if number.is_nan() { "" } else { sign },
            if number.is_nan() { "nan" } else { "inf" }
        );
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        // Rust writes 1e16 and 1.5e-7; Python 1e+16 and 1.5e-07.
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return write!(out, "{mantissa}e{sign}{digits:0>2}");
    }
    let text = number.to_string();
    out.write_str(&text)?;
    if text.contains('.') {
        Ok(())
    } else {
        out.write_str(".0")
    }
}

/// How `json.dumps` lays out its text.
pub(super) struct JsonStyle {
    pub(super) indent: Option<usize>,
    pub(super) item_separator: String,
    pub(super) key_separator: String,
    pub(super) ascii: AsciiOnly,
    pub(super) keys: KeyOrder,
}

/// Whether characters past ASCII are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AsciiOnly {
    Yes,
    No,
}

/// In which order an object's keys are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrder {
    Inserted,
    Sorted,
}

/// `json.dumps(value)`.
pub(super) fn write_json(
    out: &mut Bounded,
    value: &Value,
    style: &JsonStyle,
    depth: usize,
) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::None => written(out.write_str("null")),
        ValueKind::Bool => written(out.write_str(if value.is_true() { "true" } else { "false" })),
        ValueKind::Number => write_number(out, value),
        ValueKind::String => written(write_json_string(
            out,
            value.as_str().unwrap_or_default(),
            style.ascii,
        )),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut list = JsonItems {
                out,
                style,
                depth,
                count: 0,
            };
            written(list.out.write_char('['))?;
            for item in value.try_iter()? {
                list.begin_item()?;
                write_json(list.out, &item, style, depth + 1)?;
            }
            list.end(']')
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.keys == KeyOrder::Sorted {
                keys.sort();
            }
            let mut object = JsonItems {
                out,
                style,
                depth,
                count: 0,
            };
            written(object.out.write_char('{'))?;
            for key in keys {
                object.begin_item()?;
                let name = match key.kind() {
                    ValueKind::String => key.to_string(),
                    ValueKind::Bool if key.is_true() => "true".to_owned(),
                    ValueKind::Bool => "false".to_owned(),
                    ValueKind::None => "null".to_owned(),
                    _ => key.to_string(),
                };
                written(write_json_string(object.out, &name, style.ascii))?;
                written(object.out.write_str(&style.key_separator))?;
                write_json(object.out, &value.get_item(&key)?, style, depth + 1)?;
            }
            object.end('}')
        }
        kind => Err(Error::new(
            ErrorKind::BadSerialization,
            format!("a value of type {kind} has no JSON form"),
        )),
    }
}

/// The commas and line breaks between the items of a list or object.
struct JsonItems<'o, 's> {
    out: &'o mut Bounded,
    style: &'s JsonStyle,
    depth: usize,
    count: usize,
}

impl JsonItems<'_, '_> {
    fn begin_item(&mut self) -> Result<(), Error> {
        if self.count > 0 {
            written(self.out.write_str(&self.style.item_separator))?;
        }
        self.count += 1;
        self.line_break(self.depth + 1)
    }

    fn end(&mut self, bracket: char) -> Result<(), Error> {
        if self.count > 0 {
            self.line_break(self.depth)?;
        }
        written(self.out.write_char(bracket))
    }

    fn line_break(&mut self, depth: usize) -> Result<(), Error> {
        let Some(indent) = self.style.indent else {
            return Ok(());
        };
        written(write!(
            self.out,
            "\n{:1$}",
            "",
            indent.saturating_mul(depth).min(1 << 16)
        ))
    }
}

fn write_json_string(out: &mut Bounded, text: &str, ascii: AsciiOnly) -> std::fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32)?,
            c if ascii == AsciiOnly::Yes && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "value is nested too deeply",
        ));
    }
    Ok(())
}

/// The only error of a [`Bounded`] is that it is full.
fn written(result: std::fmt::Result) -> Result<(), Error> {
    result.map_err(|_| Error::new(ErrorKind::WriteFailure, "output is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_float(number: f64, expected: &str) {
        let mut out = Bounded::new(100);
        write_float(&mut out, number).unwrap();
        assert_eq!(out.into_string(), expected, "{number:e}");
    }

    #[test]
    fn floats_are_written_as_python_does() {
        check_float(1.0, "1.0");
        check_float(-0.0, "-0.0");
        check_float(0.1, "0.1");
        check_float(1e15, "1000000000000000.0");
        check_float(1e16, "1e+16");
        check_float(1.5e-7, "1.5e-07");
        check_float(0.0001, "0.0001");
        check_float(0.000_01, "1e-05");
        check_float(1e100, "1e+100");
    }

    #[test]
    fn a_full_string_is_an_error() {
        let mut out = Bounded::new(5);
        assert!(write_str(&mut out, &Value::from("123456")).is_err());
        assert!(write_str(&mut out, &Value::from(vec![1, 2, 3])).is_err());
        assert!(out.into_string().len() <= 5);
    }
}
