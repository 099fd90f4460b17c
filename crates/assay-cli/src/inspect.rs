//! `assay inspect FILE`: what a GGUF file holds, without loading a model.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use assay_formats::gguf::{Array, Value};
use assay_formats::packed_cache::CacheSummary;
use assay_formats::{GgufFile, TensorInfo};
use serde_json::json;

use crate::table::visible;

/// Longest shown text of a value.
const VALUE_COLUMNS: usize = 72;
/// Elements of an array that are shown.
const ARRAY_SHOWN: usize = 6;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Aligned columns.
    Text,
    /// One JSON object; arrays give their type and length only.
    Json,
}

/// Prints the header of `path`.
///
/// # Errors
/// If the file is not a GGUF file that we can read; the message names the place.
pub(crate) fn inspect(path: &Path, form: Form, out: &mut dyn Write) -> Result<()> {
    if let Ok(Some(cache)) = CacheSummary::read(path) {
        return write_cache(path, &cache, form, out).context("cannot print");
    }
    let file = GgufFile::open(path).with_context(|| {
        let shown = path.display();
        match path.exists() {
            true => format!("cannot read {shown}"),
            // A name of the model list is no path.
            false => format!(
                "there is no file {shown}; of a model that goes by a name, inspect the path that `assay pull NAME` prints"
            ),
        }
    })?;
    let written = match form {
        Form::Text => write_text(path, &file, out),
        Form::Json => write_json(path, &file, out),
    };
    written.context("cannot print")
}

fn write_cache(
    path: &Path,
    cache: &CacheSummary,
    form: Form,
    out: &mut dyn Write,
) -> io::Result<()> {
    match form {
        Form::Text => {
            writeln!(out, "{}", path.display())?;
            writeln!(
                out,
                "packed weights of assay, layout {}, numerics {}, {} bytes",
                cache.layout,
                visible(&cache.numerics),
                cache.file_bytes
            )?;
            let model = visible(&cache.model_sha256);
            writeln!(
                out,
                "{} matrices of the model with SHA-256 {model}",
                cache.num_parts
            )
        }
        Form::Json => {
            let whole = json!({
                "path": path.display().to_string(),
                "packed_layout": cache.layout,
                "numerics": cache.numerics,
                "bytes": cache.file_bytes,
                "matrices": cache.num_parts,
                "model_sha256": cache.model_sha256,
            });
            writeln!(out, "{whole:#}")
        }
    }
}

fn write_text(path: &Path, file: &GgufFile, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", path.display())?;
    writeln!(
        out,
        "GGUF version {}, {} bytes, alignment {}",
        file.version(),
        file.bytes().len(),
        file.alignment()
    )?;
    writeln!(out, "\n{} metadata keys", file.metadata().len())?;
    for (key, value) in file.metadata().iter() {
        writeln!(out, "  {key:<44} {:<16} {}", value.type_name(), show(value))?;
    }
    writeln!(out, "\n{} tensors", file.tensors().len())?;
    for tensor in file.tensors().iter() {
        writeln!(
            out,
            "  {:<44} {:<8} {:<20} {:>12} bytes at {}",
            tensor.name,
            tensor.dtype.name(),
            shape(&tensor),
            tensor.byte_len,
            tensor.byte_offset
        )?;
    }
    Ok(())
}

fn write_json(path: &Path, file: &GgufFile, out: &mut dyn Write) -> io::Result<()> {
    let metadata: serde_json::Map<String, serde_json::Value> = file
        .metadata()
        .iter()
        .map(|(key, value)| (key.to_owned(), value_json(value)))
        .collect();
    let tensors: Vec<serde_json::Value> = file
        .tensors()
        .iter()
        .map(|tensor| {
            json!({
                "name": tensor.name,
                "dtype": tensor.dtype.name(),
                "shape": &*tensor.shape,
                "byte_offset": tensor.byte_offset,
                "byte_len": tensor.byte_len,
            })
        })
        .collect();
    let whole = json!({
        "path": path.display().to_string(),
        "version": file.version(),
        "alignment": file.alignment(),
        "bytes": file.bytes().len(),
        "metadata": metadata,
        "tensors": tensors,
    });
    writeln!(out, "{whole:#}")
}

fn shape(tensor: &TensorInfo<'_>) -> String {
    let dimensions: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
    dimensions.join(" × ")
}

fn show(value: Value<'_>) -> String {
    let text = match value {
        Value::String(text) => visible(text),
        Value::F32(number) => number.to_string(),
        Value::F64(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(array) => return show_array(array),
        integer => integer
            .as_integer()
            .map(|number| number.to_string())
            .unwrap_or_default(),
    };
    shorten(&text)
}

fn show_array(array: Array<'_>) -> String {
    let first = first_elements(array);
    let dots = if array.len() > first.len() {
        ", …"
    } else {
        ""
    };
    format!("{} × [{}{dots}]", array.len(), shorten(&first.join(", ")))
}

/// The first few elements as text.
fn first_elements(array: Array<'_>) -> Vec<String> {
    fn shown<T>(elements: impl Iterator<Item = T>, text: impl Fn(T) -> String) -> Vec<String> {
        elements.take(ARRAY_SHOWN).map(text).collect()
    }
    let numbers = array
        .integers()
        .map(|v| shown(v, |n| n.to_string()))
        .or_else(|| array.f32s().map(|v| shown(v, |n| n.to_string())))
        .or_else(|| array.f64s().map(|v| shown(v, |n| n.to_string())));
    numbers
        .or_else(|| array.bools().map(|v| shown(v, |flag| flag.to_string())))
        .or_else(|| {
            array
                .strings()
                .map(|v| shown(v, |text| format!("{text:?}")))
        })
        .unwrap_or_default()
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(VALUE_COLUMNS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn value_json(value: Value<'_>) -> serde_json::Value {
    match value {
        Value::String(text) => json!(text),
        // JSON has no NaN or infinity: text keeps what the file says.
        Value::F32(number) if number.is_finite() => json!(number),
        Value::F32(number) => json!(number.to_string()),
        Value::F64(number) if number.is_finite() => json!(number),
        Value::F64(number) => json!(number.to_string()),
        Value::Bool(flag) => json!(flag),
        Value::Array(array) => json!({"array_of": array.element_type().name(), "len": array.len()}),
        integer => match integer.as_integer() {
            Some(number) => i64::try_from(number)
                .map(|n| json!(n))
                .unwrap_or_else(|_| json!(number.to_string())),
            None => serde_json::Value::Null,
        },
    }
}

#[cfg(test)]
mod tests {
    use assay_testkit::gguf_writer::GgufWriter;

    use super::*;

    fn printed(form: Form) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        let bytes = GgufWriter::new()
            .str("general.architecture", "llama")
            .f32("llama.nan", f32::NAN)
            .str_array("tokenizer.ggml.tokens", ["a", "b\n"])
            .build();
        std::fs::write(&path, bytes).unwrap();
        let mut out = Vec::new();
        inspect(&path, form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_forms_show_keys_and_values() {
        let text = printed(Form::Text);
        assert!(
            text.contains("general.architecture") && text.contains("2 × [\"a\", \"b\\n\"]"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&printed(Form::Json)).unwrap();
        assert_eq!(json["metadata"]["general.architecture"], "llama");
        assert_eq!(json["metadata"]["llama.nan"], "NaN");
        assert_eq!(json["metadata"]["tokenizer.ggml.tokens"]["len"], 2);
    }

    #[test]
    fn a_file_that_is_no_gguf_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gguf");
        std::fs::write(&path, b"PK\x03\x04").unwrap();
        let error = format!(
            "{:#}",
            inspect(&path, Form::Text, &mut Vec::new()).unwrap_err()
        );
        assert!(error.contains("x.gguf"), "{error}");
    }
}
