//! The response header that lists fields which the server does not know.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

pub(crate) const X_ASSAY_IGNORED: HeaderName = HeaderName::from_static("x-assay-ignored");

/// Longest list of ignored fields, in bytes; clients' header limits are not ours.
const MAX_IGNORED_BYTES: usize = 1_024;

/// Puts the list on a response, where there is one.
pub(crate) fn list(ignored: &[String], response: &mut Response) {
    if let Some(header) = ignored_header(ignored) {
        response.headers_mut().insert(X_ASSAY_IGNORED, header);
    }
}

/// The list, with everything but plain letters replaced, as the names are client text.
fn ignored_header(ignored: &[String]) -> Option<HeaderValue> {
    let mut list = String::new();
    for path in ignored {
        if list.len() + path.len() > MAX_IGNORED_BYTES {
            list.push_str(if list.is_empty() { "..." } else { ", ..." });
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        list.extend(path.chars().map(|c| if plain(c) { c } else { '?' }));
    }
    let list = (!list.is_empty()).then_some(list)?;
    Some(HeaderValue::from_str(&list).expect("only plain letters were kept"))
}
