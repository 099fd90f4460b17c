//! Ranges of numbers and dates as lists of values, each with one spelling.

use serde_json::{Number, Value, json};

use super::calendar::{date_text, day_number};
use super::read::SchemaFields;
use super::{FieldKind, MAX_VALUES};
use crate::error::FieldError;
use crate::fields::wrong_type;
use crate::json::quote;

/// Digits behind the point at most.
const MAX_DECIMALS: u32 = 9;

/// Values in ascending order, with their spellings and what they are called together.
pub(super) struct Range {
    pub(super) values: Vec<Value>,
    pub(super) texts: Vec<String>,
    pub(super) described: String,
    pub(super) kind: FieldKind,
}

/// A number with `decimals` digits behind the point: `scaled` times ten to the minus that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    scaled: i64,
    decimals: u32,
}

impl Decimal {
    /// Reads a JSON number in its shortest spelling; `None` with an exponent or too many digits.
    fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let fraction = fraction.trim_end_matches('0');
        let decimals = u32::try_from(fraction.len()).ok()?;
        let scaled = format!("{whole}{fraction}").parse().ok()?;
        (decimals <= MAX_DECIMALS).then_some(Self { scaled, decimals })
    }

    /// The same number in steps of ten to the minus `decimals`; `None` where it lies between two.
    fn in_steps(self, decimals: u32) -> Option<i64> {
        let power = 10i64.checked_pow(decimals.abs_diff(self.decimals))?;
        if decimals >= self.decimals {
            self.scaled.checked_mul(power)
        } else {
            (self.scaled % power == 0).then_some(self.scaled / power)
        }
    }

    fn text(self) -> String {
        if self.decimals == 0 {
            return self.scaled.to_string();
        }
        let power = 10u64.pow(self.decimals);
        let (size, sign) = (
            self.scaled.unsigned_abs(),
            if self.scaled < 0 { "-" } else { "" },
        );
        let width = usize::try_from(self.decimals).unwrap_or(0);
        format!("{sign}{}.{:0width$}", size / power, size % power)
    }
}

/// `integer` or `number` with its bounds.
pub(super) fn numbers(schema: &mut SchemaFields, is_integer: bool) -> Result<Range, FieldError> {
    let step = match schema.number("multipleOf")? {
        None if is_integer => Decimal {
            scaled: 1,
            decimals: 0,
        },
        None => return Err(schema.needed("multipleOf", "how fine a number is, such as 0.01")),
        Some((path, number)) => match Decimal::of(&number) {
            Some(step)
                if step.scaled >= 1
                    && (is_integer && step.decimals == 0
                        || !is_integer && is_power_of_ten(step)) =>
            {
                step
            }
            _ => {
                let allowed = if is_integer {
                    "a positive integer"
                } else {
                    "a power of ten, from 0.000000001 on"
                };
                return Err(wrong_type(&path, allowed, &Value::Number(number)));
            }
        },
    };
    // A coarse power of ten, such as 10, steps over whole numbers.
    let decimals = step.decimals;
    let least = bound(schema, ["minimum", "exclusiveMinimum"], decimals, 1)?;
    let most = bound(schema, ["maximum", "exclusiveMaximum"], decimals, -1)?;
    let step = step.scaled;
    let first = least.div_euclid(step) + i64::from(least.rem_euclid(step) != 0);
    let last = most.div_euclid(step);
    let count = count(first, last, schema)?;
    let decimal = |index: i64| Decimal {
        scaled: index * step,
        decimals,
    };
    let texts: Vec<String> = (first..=last).map(|index| decimal(index).text()).collect();
    debug_assert_eq!(texts.len(), count);
    let values = (first..=last).map(|index| {
        let text = decimal(index).text();
        let number: Option<Number> = if decimals == 0 {
            text.parse::<i64>().ok().map(Number::from)
        } else {
            text.parse().ok().and_then(Number::from_f64)
        };
        number.map_or(Value::Null, Value::Number)
    });
    let noun = if decimals == 0 {
        "an integer"
    } else {
        "a number"
    };
    let ends = (
        texts.first().map_or("", String::as_str),
        texts.last().map_or("", String::as_str),
    );
    let mut described = format!("{noun} from {} to {}", ends.0, ends.1);
    if decimals == 0 && step > 1 {
        described.push_str(&format!(" in steps of {step}"));
    }
    Ok(Range {
        values: values.collect(),
        described,
        texts,
        kind: FieldKind::Number,
    })
}

/// `string` with `format: date` and its bounds.
pub(super) fn dates(schema: &mut SchemaFields) -> Result<Range, FieldError> {
    let mut day = |keyword: &str| {
        let Some((path, text)) = schema.string(keyword)? else {
            return Err(schema.needed(keyword, "a date: the days are read one by one"));
        };
        let message = || {
            format!(
                "`{path}`: must be a date such as 2025-12-31, not {}",
                quote(&text)
            )
        };
        day_number(&text).ok_or_else(|| FieldError::new(path.clone(), message()))
    };
    let (first, last) = (day("formatMinimum")?, day("formatMaximum")?);
    count(first, last, schema)?;
    let texts: Vec<String> = (first..=last).map(date_text).collect();
    Ok(Range {
        values: texts.iter().map(|text| json!(text)).collect(),
        described: format!(
            "a date from {} to {}, written YYYY-MM-DD",
            date_text(first),
            date_text(last)
        ),
        texts,
        kind: FieldKind::Date,
    })
}

fn is_power_of_ten(step: Decimal) -> bool {
    let mut scaled = step.scaled;
    while scaled % 10 == 0 {
        scaled /= 10;
    }
    scaled == 1
}

/// The bound that one of the keywords sets, in steps of ten to the minus `decimals`; an excluded one moves `inward`.
fn bound(
    schema: &mut SchemaFields,
    keywords: [&str; 2],
    decimals: u32,
    inward: i64,
) -> Result<i64, FieldError> {
    let read = |found: Option<(String, Number)>| {
        let Some((path, number)) = found else {
            return Ok(None);
        };
        let steps = Decimal::of(&number).and_then(|decimal| decimal.in_steps(decimals));
        // Room for sums of bounds and steps.
        let steps = steps.filter(|steps| steps.unsigned_abs() < 1 << 60);
        match steps {
            Some(steps) => Ok(Some(steps)),
            None => Err(wrong_type(
                &path,
                "a bound that the field's steps reach",
                &Value::Number(number),
            )),
        }
    };
    let [included, excluded] = keywords;
    let included_bound = read(schema.number(included)?)?;
    let excluded_bound = read(schema.number(excluded)?)?.map(|bound| bound + inward);
    match (included_bound, excluded_bound) {
        (Some(a), Some(b)) if inward > 0 => Ok(a.max(b)),
        (Some(a), Some(b)) => Ok(a.min(b)),
        (Some(bound), None) | (None, Some(bound)) => Ok(bound),
        (None, None) => Err(schema.needed(included, "a bound: the values are read one by one")),
    }
}

fn count(first: i64, last: i64, schema: &SchemaFields) -> Result<usize, FieldError> {
    let path = schema.path();
    let count = last
        .checked_sub(first)
        .and_then(|span| usize::try_from(span.checked_add(1)?).ok());
    match count {
        Some(count) if (1..=MAX_VALUES).contains(&count) => Ok(count),
        Some(count) if count > 0 => {
            let message = format!(
                "`{path}`: has {count} values; at most {MAX_VALUES} are read: narrow its bounds"
            );
            Err(FieldError::new(path, message))
        }
        _ => {
            let message = format!("`{path}`: no value lies between its bounds");
            Err(FieldError::new(path, message))
        }
    }
}
