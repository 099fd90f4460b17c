//! A request as its reader reads it, with bodies that it takes.

use assay_api::FieldError;
use assay_api::record::{Event, record};
use serde_json::Value;

/// A request of one route.
pub struct Request {
    /// Its name among the document's schemas.
    pub component: &'static str,
    /// Its name in the tables of words: `chat`.
    pub key: &'static str,
    /// Its reader.
    pub(crate) read: fn(&[u8]) -> Result<Read, FieldError>,
    /// Fields that hold objects by names of the client's.
    pub(crate) maps: &'static [&'static str],
    /// Bodies that it takes; together they lead its reader everywhere.
    pub samples: Vec<Sample>,
}

/// What a reader made of a body.
pub(crate) struct Read {
    /// Everything, so that two can be compared.
    pub(crate) shown: String,
    /// Paths of fields that it does not know.
    pub(crate) ignored: Vec<String>,
}

/// A body that a reader takes.
pub struct Sample {
    /// What it shows, where it stands in the document; clients may send it as it is.
    pub summary: Option<&'static str>,
    /// The body.
    pub body: Value,
}

/// A body that stands in the document.
pub(crate) fn example(summary: &'static str, body: Value) -> Sample {
    Sample {
        summary: Some(summary),
        body,
    }
}

/// A body that leads the reader to a place that no example does.
pub(crate) fn sample(body: Value) -> Sample {
    Sample {
        summary: None,
        body,
    }
}

impl Request {
    /// Reads a body.
    pub(crate) fn read(&self, body: &Value) -> Result<Read, FieldError> {
        (self.read)(body.to_string().as_bytes())
    }

    /// Reads a body, and tells what the reader did.
    pub(crate) fn recorded(&self, body: &Value) -> (Result<Read, FieldError>, Vec<Event>) {
        record(|| self.read(body))
    }
}
