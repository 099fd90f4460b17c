//! What the compiler's grammars of `format` leave open, as patterns that hold beside them: days that a year does not
//! have, leap seconds that are none in UTC.

use std::fmt::Write as _;

/// A year divisible by 4 that is no century, or a century divisible by 400.
const LEAP_YEAR: &str =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DATE: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}[tT]";
/// A time whose seconds are below 60.
const PLAIN_TIME: &str = "[0-9]{2}:[0-9]{2}:[0-5]";
/// The seconds of a leap second, with a fraction or without.
const SIXTY: &str = "60(?:\\.[0-9]+)?";
/// Patterns that every text of `format` matches and that keep out what its grammar does not.
pub(super) fn patterns(format: &str) -> Vec<String> {
    match format {
        "date" => vec![days()],
        "date-time" => vec![days(), leap_minutes(DATE), leap_hours(DATE)],
        "time" => vec![leap_minutes(""), leap_hours("")],
        _ => Vec::new(),
    }
}

/// The 29th of February stands in leap years alone.
fn days() -> String {
    format!("^(?:[0-9]{{4}}-(?:0[13-9]|1[0-2]|02-(?:[01]|2[0-8]))|{LEAP_YEAR}-02-29)")
}

/// A leap second ends 23:59 in UTC: the minute that is written is 59 and the offset's minutes.
fn leap_minutes(date: &str) -> String {
    let mut pattern =
        format!("^{date}(?:{PLAIN_TIME}|[0-9]{{2}}:(?:59:{SIXTY}(?:[zZ]|[+-][0-9]{{2}}:00)");
    for minutes in 1..60 {
        let (after, before) = (minutes - 1, 59 - minutes);
        write!(
            pattern,
            "|{after:02}:{SIXTY}\\+[0-9]{{2}}:{minutes:02}|{before:02}:{SIXTY}-[0-9]{{2}}:{minutes:02}"
        )
        .expect("writing to a string does not fail");
    }
    pattern + "))"
}

/// The same for hours; ahead of UTC, the offset's minutes carry one over.
fn leap_hours(date: &str) -> String {
    let mut pattern = format!("^{date}(?:{PLAIN_TIME}|23:[0-9]{{2}}:{SIXTY}[zZ]");
    for hours in 0..24 {
        let (before, even) = (23 - hours, (23 + hours) % 24);
        write!(
            pattern,
            "|{before:02}:[0-9]{{2}}:{SIXTY}-{hours:02}:|{even:02}:[0-9]{{2}}:{SIXTY}\\+{hours:02}:00\
             |{hours:02}:[0-9]{{2}}:{SIXTY}\\+{hours:02}:(?:0[1-9]|[1-5])"
        )
        .expect("writing to a string does not fail");
    }
    pattern + ")"
}
