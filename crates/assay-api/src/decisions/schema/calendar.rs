//! Days of the proleptic Gregorian calendar. Source: the usual count of days by eras of 400 years.

/// Days before the first of each month in a common year.
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400
}

fn days_before_month(year: i64, month: usize) -> Option<i64> {
    let before = DAYS_BEFORE.get(month.checked_sub(1)?)?;
    Some(before + i64::from(month > 2 && is_leap(year)))
}

fn days_in_month(year: i64, month: usize) -> Option<i64> {
    let next = if month == 12 {
        365 + i64::from(is_leap(year))
    } else {
        days_before_month(year, month + 1)?
    };
    Some(next - days_before_month(year, month)?)
}

/// Days since 0001-01-01 of `YYYY-MM-DD`; `None` of any other text, and of days that are in no calendar.
pub(super) fn day_number(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_date = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_date {
        return None;
    }
    let year: i64 = text.get(0..4)?.parse().ok()?;
    let month: usize = text.get(5..7)?.parse().ok()?;
    let day: i64 = text.get(8..10)?.parse().ok()?;
    let is_valid = year >= 1 && (1..=days_in_month(year, month)?).contains(&day);
    is_valid.then_some(days_before_year(year) + days_before_month(year, month)? + day - 1)
}

/// Days from 0001-01-01 to 1970-01-01.
const UNIX_EPOCH: i64 = 719_162;

/// `YYYY-MM-DD` of the day that is so many seconds after the beginning of 1970.
pub fn unix_date(seconds: u64) -> String {
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    date_text(UNIX_EPOCH + days)
}

/// `YYYY-MM-DD` of a day that is `days` after 0001-01-01, for years up to 9999.
pub(super) fn date_text(days: i64) -> String {
    // A year has 365.2425 days on average: the guess is at most one off.
    let mut year = days * 400 / 146_097 + 1;
    while days_before_year(year + 1) <= days {
        year += 1;
    }
    while days_before_year(year) > days {
        year -= 1;
    }
    let in_year = days - days_before_year(year);
    let begins =
        |month: &usize| days_before_month(year, *month).is_some_and(|before| before <= in_year);
    let month = (1..=12).rev().find(begins).unwrap_or(1);
    let day = in_year - days_before_month(year, month).unwrap_or(0) + 1;
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_a_thousand_years_reads_back_and_no_other() {
        let (first, last) = (
            day_number("1600-01-01").expect("a day"),
            day_number("2599-12-31").expect("a day"),
        );
        assert_eq!(
            last - first + 1,
            1_000 * 365 + 242 + 1,
            "leap years of ten centuries"
        );
        for day in first..=last {
            assert_eq!(day_number(&date_text(day)), Some(day), "{day}");
        }
        assert_eq!(day_number("1970-01-01"), Some(UNIX_EPOCH));
        assert_eq!(unix_date(1_700_000_000), "2023-11-14");
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-04-31",
            "0000-01-01",
            "2024-1-01",
            "2024-01-0a",
            "+024-01-01",
            "",
        ] {
            assert_eq!(day_number(text), None, "{text}");
        }
        assert_eq!(
            day_number("2000-02-29").map(date_text).as_deref(),
            Some("2000-02-29")
        );
        assert_eq!(
            day_number("9999-12-31").map(date_text).as_deref(),
            Some("9999-12-31")
        );
        assert_eq!(date_text(0), "0001-01-01");
    }
}
