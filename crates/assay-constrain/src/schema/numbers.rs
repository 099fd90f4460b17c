//! Numbers in a schema: which ones the compiler below enforces exactly as written.
//!
//! It holds bounds as f64, turns integer bounds into i64, and divides by `multipleOf` in u32, all
//! without a check of its own; whatever would be rounded or wrapped there is refused here. Knows no
//! paths and no other keywords.

use serde_json::{Map, Number, Value};

use super::keywords::{Role, role, subschemas};

/// Integers beyond are not exact in f64.
const EXACT_INTEGER_MAX: u64 = 1 << 53;
/// Largest step without its decimal point: the compiler may walk through as many remainders, about
/// 1 s for 10^5, and nothing stops it on the way.
const STEP_DIGITS_MAX: u64 = 100_000;

/// Why a number of `value`, at any depth, is not kept exactly; `None` if all are.
pub(super) fn inexact_constant(value: &Value) -> Option<String> {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Number(number) if !is_exact(number) => return Some(beyond(number)),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    None
}

/// The same for a bound, which for exclusive ones is moved by 1 within f64.
pub(super) fn inexact_bound(number: &Number, is_exclusive: bool) -> Option<String> {
    let is_last = number.as_f64().is_some_and(|value| {
        // As f64 the next integer is this one again.
        value.abs() >= EXACT_INTEGER_MAX as f64
    });
    if is_exact(number) && !(is_exclusive && is_last) {
        None
    } else {
        Some(beyond(number))
    }
}

/// Why a `multipleOf` above 0 is not divided by exactly; `None` if it is.
pub(super) fn inexact_step(number: &Number) -> Option<String> {
    match Step::of(number) {
        _ if !is_exact(number) => Some(beyond(number)),
        Some(step) if step.fits() => None,
        _ => Some(format!(
            "{number} has too many digits; it must be at most {STEP_DIGITS_MAX} without its decimal \
             point"
        )),
    }
}

/// Why the steps of a whole schema cannot be combined where schemas are merged; `None` if they can.
pub(super) fn inexact_combination(root: &Value) -> Option<String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut has_merge = false;
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        if let Value::Object(members) = schema {
            has_merge |= merges(members);
            if let Some(Value::Number(number)) = members.get("multipleOf") {
                steps.extend(Step::of(number));
            }
        }
        pending.extend(subschemas(schema, "").into_iter().map(|(inner, _)| inner));
    }
    if !has_merge || steps.is_empty() {
        return None;
    }
    let decimals = steps.iter().map(|step| step.decimals).max().unwrap_or(0);
    let mut multiple = 1_u64;
    let mut largest = 1_u64;
    for step in steps {
        let digits = step.digits * 10_u64.pow(decimals - step.decimals);
        largest = largest.max(digits);
        multiple = (multiple / greatest_common_divisor(multiple, digits)).saturating_mul(digits);
    }
    let merged = Step {
        digits: multiple,
        decimals,
    };
    let product_fits = multiple.saturating_mul(largest) <= u64::from(u32::MAX);
    (!merged.fits() || !product_fits).then(|| {
        "the least common multiple of the schema's steps, which its combined schemas may need, has \
         too many digits"
            .to_owned()
    })
}

/// Whether the compiler may intersect several schemas to read this one.
fn merges(members: &Map<String, Value>) -> bool {
    let asserting = members
        .keys()
        .filter(|key| !matches!(key.as_str(), "$defs" | "definitions" | "$schema" | "$id"))
        .filter(|key| role(key) != Role::Annotation)
        .count();
    let has = |keyword: &str| members.contains_key(keyword);
    has("allOf")
        || has("patternProperties")
        || (asserting > 1 && (has("anyOf") || has("oneOf") || has("$ref")))
}

/// Integers up to ±2^53; fractions, since their shortest decimal form is read back as they were. A
/// number written with a point or exponent, or beyond 64 bits, has been rounded to f64 already:
/// 2^53 itself may have been another.
fn is_exact(number: &Number) -> bool {
    let integer = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    match integer {
        Some(magnitude) => magnitude <= EXACT_INTEGER_MAX,
        None => number
            .as_f64()
            .is_some_and(|value| value.abs() < EXACT_INTEGER_MAX as f64),
    }
}

fn beyond(number: &Number) -> String {
    format!("{number} is beyond ±2^53")
}

/// `digits` · 10^-`decimals`, without trailing zeros after the point.
#[derive(Clone, Copy)]
struct Step {
    digits: u64,
    decimals: u32,
}

impl Step {
    /// `None` for more digits than could ever fit.
    fn of(number: &Number) -> Option<Self> {
        let text = format!("{}", number.as_f64()?);
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let step = Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            decimals: u32::try_from(fraction.len()).ok()?,
        };
        step.fits().then_some(step)
    }

    /// Whether a remainder times 10 plus a digit stays within u32.
    fn fits(self) -> bool {
        let digit = 10_u64.checked_pow(self.decimals).unwrap_or(u64::MAX);
        let largest = self
            .digits
            .saturating_mul(10)
            .saturating_add(digit.saturating_mul(9));
        (1..=STEP_DIGITS_MAX).contains(&self.digits) && largest <= u64::from(u32::MAX)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}
