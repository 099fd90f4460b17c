//! That no document is made where readers, samples and words differ.

use assay_api::FieldError;
use assay_api::fields::Fields;
use serde_json::{Map, Value, json};

use crate::request::{Read, Request, sample};
use crate::request_schema::Writer;
use crate::words::Words;

/// Reads a body that may hold `n`, and what `more` reads.
fn read(body: &[u8], more: fn(&mut Fields) -> Result<(), FieldError>) -> Result<Read, FieldError> {
    let mut fields = Fields::new("", assay_api::json::parse(body)?)?;
    let n = fields.integer("n", 1..=4)?.unwrap_or(1);
    more(&mut fields)?;
    Ok(Read {
        shown: n.to_string(),
        ignored: fields.untaken().collect(),
    })
}

/// Writes the schema of a request with one sample; gives it and what is wrong.
fn write(
    read: fn(&[u8]) -> Result<Read, FieldError>,
    body: Value,
) -> (Map<String, Value>, Vec<String>) {
    let request = Request {
        component: "Made",
        key: "made",
        read,
        maps: &[],
        samples: vec![sample(body)],
    };
    let (mut schemas, mut faults) = (Map::new(), Vec::new());
    let words = Words::new(&mut faults);
    Writer::write(&request, &words, &mut schemas, &mut faults);
    (schemas, faults)
}

#[test]
fn ranges_and_defaults_are_the_readers() {
    let (schemas, faults) = write(|body| read(body, |_| Ok(())), json!({"n": 2}));
    assert_eq!(faults, Vec::<String>::new());
    let n = &schemas["Made"]["properties"]["n"];
    assert_eq!(n["maximum"], 4);
    assert_eq!(n["type"], json!(["integer", "null"]));
}

#[test]
fn what_differs_is_a_fault() {
    let undescribed = write(
        |body| read(body, |fields| fields.boolean("undescribed").map(drop)),
        json!({}),
    );
    let unsampled = write(
        |body| read(body, |fields| fields.object("stream_options").map(drop)),
        json!({}),
    );
    let unread = write(|body| read(body, |_| Ok(())), json!({"unread": 1}));
    let other_default = write(
        |body| {
            let mut fields = Fields::new("", assay_api::json::parse(body)?)?;
            Ok(Read {
                shown: fields.integer("n", 1..=4)?.unwrap_or(3).to_string(),
                ignored: Vec::new(),
            })
        },
        json!({}),
    );
    for ((_, faults), expected) in [
        (undescribed, "made: words: nothing is said of `undescribed`"),
        (
            unsampled,
            "made: no sample has an object in `stream_options`",
        ),
        (unread, "made: sample 0 has unknown fields: [\"unread\"]"),
        (other_default, "made: `n` is not 1 by default (sample 0)"),
    ] {
        assert_eq!(faults, [expected]);
    }
}

#[test]
fn the_page_for_readers_is_fresh() {
    let page = crate::document()
        .unwrap_or_else(|faults| panic!("{faults:?}"))
        .markdown();
    let committed = include_str!("../../../docs/api.md");
    assert!(
        page == committed,
        "docs/api.md is not as the code says: run `cargo xtask openapi`"
    );
}
