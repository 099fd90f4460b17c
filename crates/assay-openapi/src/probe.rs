//! What a reader says of a field only when it is asked: whether it must be there, whether unknown ones may stand beside
//! it, whether the default that we name is the one it takes.

use serde_json::{Value, json};

use crate::path::{at, join};
use crate::request::Request;
use crate::shape::Object;

/// A field that no reader knows.
const UNKNOWN: &str = "x_unknown_field";

/// Whether the field `name` of `object` must be there: whether every sample has it, and is refused without it.
pub(crate) fn is_required(request: &Request, object: &Object, name: &str) -> bool {
    object.places.iter().all(|(sample, path)| {
        let mut body = request.samples[*sample].body.clone();
        let members = at(&mut body, path).and_then(Value::as_object_mut);
        let was_there = members.is_some_and(|members| members.remove(name).is_some());
        was_there
            && request
                .read(&body)
                .is_err_and(|error| error.param == Some(join(path, name)))
    })
}

/// Whether an unknown field in `object` is a fault.
pub(crate) fn is_closed(request: &Request, object: &Object) -> bool {
    object.places.iter().any(|(sample, path)| {
        let mut body = request.samples[*sample].body.clone();
        let Some(members) = at(&mut body, path).and_then(Value::as_object_mut) else {
            return false;
        };
        members.insert(UNKNOWN.to_owned(), json!(1));
        let error = request.read(&body).err();
        error.is_some_and(|error| error.param == Some(join(path, UNKNOWN)))
    })
}

/// The samples that read otherwise with the field `name` of `object` at `default` than without it.
pub(crate) fn differing_samples(
    request: &Request,
    object: &Object,
    name: &str,
    default: &Value,
) -> Vec<usize> {
    let mut differing = Vec::new();
    for (sample, path) in &object.places {
        let mut body = request.samples[*sample].body.clone();
        let Some(members) = at(&mut body, path).and_then(Value::as_object_mut) else {
            continue;
        };
        members.remove(name);
        // Some fields cannot be left out of a sample whose other fields need them.
        let Ok(without) = request.read(&body) else {
            continue;
        };
        if let Some(members) = at(&mut body, path).and_then(Value::as_object_mut) {
            members.insert(name.to_owned(), default.clone());
        }
        let with = request.read(&body);
        // What is not read beside other fields has no default there.
        if with.is_ok_and(|with| with.ignored.is_empty() && with.shown != without.shown) {
            differing.push(*sample);
        }
    }
    differing
}
