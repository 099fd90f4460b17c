//! From a receipt to the text that leaves, and back: sealed with hashes, so that any character changed since is found,
//! and the member named that it stands in.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::canonical::canonical_sha256;
use crate::record::{FORMAT, Receipt};

/// Largest receipt that is read, in bytes.
pub const MAX_RECEIPT_BYTES: usize = 64 << 20;

/// The hash of all the rest.
const RECEIPT_SHA256: &str = "receipt_sha256";
/// Short hashes of each member, which name the one that was changed.
const MEMBER_SHA256: &str = "member_sha256";
/// Hex digits of a member's hash: they point, `receipt_sha256` proves.
const MEMBER_DIGITS: usize = 16;

/// Why a text is no receipt as it was made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// Too much to read.
    #[error("it has {found} bytes; a receipt has at most {MAX_RECEIPT_BYTES}")]
    TooLarge {
        /// Bytes of the text.
        found: usize,
    },
    /// Nothing that could be one.
    #[error("it is no receipt: {0}")]
    NotAReceipt(String),
    /// One of a form that is not known here.
    #[error("it has the form {found}; this program reads {FORMAT}")]
    OtherFormat {
        /// Its form.
        found: String,
    },
    /// Changed since it was made.
    #[error("it was changed after it was made: {}", .members.join(", "))]
    Altered {
        /// Members that differ from what their hashes were made of.
        members: Vec<String>,
    },
}

/// `receipt` as the JSON object that leaves.
pub fn seal(receipt: &Receipt) -> Value {
    let written = serde_json::to_value(receipt);
    let Ok(Value::Object(mut members)) = written else {
        unreachable!("a struct of plain values is written as an object");
    };
    let hashes = members
        .iter()
        .map(|(name, member)| (name.clone(), Value::from(member_hash(member))));
    let hashes: Map<String, Value> = hashes.collect();
    members.insert(MEMBER_SHA256.to_owned(), Value::Object(hashes));
    let hash = canonical_sha256(&Value::Object(members.clone()));
    members.insert(RECEIPT_SHA256.to_owned(), json!(hash));
    Value::Object(members)
}

/// The hash that a sealed receipt names itself by.
pub fn seal_of(sealed: &Value) -> Option<&str> {
    sealed.get(RECEIPT_SHA256)?.as_str()
}

/// Reads a sealed receipt, or the one in a reply, and checks its hashes.
///
/// # Errors
/// [`SealError`]; [`SealError::Altered`] names every member that was changed.
pub fn open(text: &[u8]) -> Result<Receipt, SealError> {
    if text.len() > MAX_RECEIPT_BYTES {
        return Err(SealError::TooLarge { found: text.len() });
    }
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| SealError::NotAReceipt(format!("not JSON: {error}")))?;
    let Value::Object(mut members) = value else {
        return Err(SealError::NotAReceipt("not a JSON object".to_owned()));
    };
    if !members.contains_key(RECEIPT_SHA256) {
        let inner = ["receipt", "x_receipt"].iter().find_map(|name| {
            let inner = members.remove(*name)?;
            inner.is_object().then_some(inner)
        });
        match inner {
            Some(Value::Object(inner)) => members = inner,
            _ => {
                let message = format!("it has no `{RECEIPT_SHA256}`");
                return Err(SealError::NotAReceipt(message));
            }
        }
    }
    check(&mut members)?;
    match members.get("format").and_then(Value::as_str) {
        Some(FORMAT) => {}
        found => {
            let found = found.unwrap_or("of no name").to_owned();
            return Err(SealError::OtherFormat { found });
        }
    }
    serde_json::from_value(Value::Object(members))
        .map_err(|error| SealError::NotAReceipt(error.to_string()))
}

/// Checks the hashes and takes them out.
fn check(members: &mut Map<String, Value>) -> Result<(), SealError> {
    let seal = members.shift_remove(RECEIPT_SHA256);
    let is_whole = seal == Some(json!(canonical_sha256(&Value::Object(members.clone()))));
    let hashes = members.shift_remove(MEMBER_SHA256);
    if is_whole {
        return Ok(());
    }
    let Some(Value::Object(hashes)) = hashes else {
        let members = vec![MEMBER_SHA256.to_owned()];
        return Err(SealError::Altered { members });
    };
    let differs =
        |(name, member): &(&String, &Value)| hashes.get(*name) != Some(&json!(member_hash(member)));
    let changed = members.iter().filter(differs).map(|(name, _)| name.clone());
    let missing = hashes
        .keys()
        .filter(|name| !members.contains_key(*name))
        .cloned();
    let mut altered: Vec<String> = changed.chain(missing).collect();
    if altered.is_empty() {
        altered.push(RECEIPT_SHA256.to_owned());
    }
    Err(SealError::Altered { members: altered })
}

fn member_hash(member: &Value) -> String {
    let mut hash = canonical_sha256(member);
    hash.truncate(MEMBER_DIGITS);
    hash
}
