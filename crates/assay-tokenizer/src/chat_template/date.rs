//! The date templates see: fixed by the caller, so that one request gives one prompt on every day.
//!
//! There is no clock here. The time of day is midnight.

use std::fmt::Write as _;
use std::str::FromStr;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A day of the Gregorian calendar, years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateDate {
    year: u16,
    month: u8,
    day: u8,
}

/// Text that is no date `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no date of the form 2025-01-31")]
pub struct InvalidDate(String);

impl Default for TemplateDate {
    /// 2025-01-01.
    fn default() -> TemplateDate {
        TemplateDate {
            year: 2025,
            month: 1,
            day: 1,
        }
    }
}

impl FromStr for TemplateDate {
    type Err = InvalidDate;

    fn from_str(text: &str) -> Result<TemplateDate, InvalidDate> {
        let parse = || {
            let mut parts = text.split('-');
            let mut number = |digits: usize| {
                let part = parts.next()?;
                let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
                is_number.then(|| part.parse::<u16>().ok()).flatten()
            };
            let (year, month, day) = (number(4)?, number(2)?, number(2)?);
            let date = TemplateDate {
                year,
                month: u8::try_from(month).ok()?,
                day: u8::try_from(day).ok()?,
            };
            let exists = year >= 1
                && parts.next().is_none()
                && (1..=date.days_in_month()?).contains(&date.day);
            exists.then_some(date)
        };
        parse().ok_or_else(|| InvalidDate(text.to_owned()))
    }
}

impl std::fmt::Display for TemplateDate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl TemplateDate {
    fn is_leap_year(self) -> bool {
        let divides = |by: u16| self.year.is_multiple_of(by);
        divides(4) && (!divides(100) || divides(400))
    }

    fn days_in_month(self) -> Option<u8> {
        Some(match self.month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u8::from(self.is_leap_year()),
            1..=12 => 31,
            _ => return None,
        })
    }

    /// Days since 1 January of the same year.
    fn day_of_year(self) -> u16 {
        const BEFORE: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let before = BEFORE
            .get(usize::from(self.month).wrapping_sub(1))
            .copied()
            .unwrap_or_default();
        let leap_day = u16::from(self.month > 2 && self.is_leap_year());
        before + leap_day + u16::from(self.day) - 1
    }

    /// 0 for Sunday.
    fn weekday(self) -> usize {
        let years = u32::from(self.year) - 1;
        // 1 January of year 1 was a Monday.
        let days =
            years * 365 + years / 4 - years / 100 + years / 400 + u32::from(self.day_of_year());
        ((days + 1) % 7) as usize
    }

    /// Formats as C's `strftime` does in the C locale; `None` for a directive it does not have.
    pub(super) fn strftime(self, format: &str) -> Option<String> {
        let mut text = String::with_capacity(format.len() + 16);
        let mut rest = format.chars();
        let (year, month, day) = (self.year, self.month, self.day);
        let month_name = MONTHS
            .get(usize::from(month).wrapping_sub(1))
            .copied()
            .unwrap_or_default();
        let weekday = WEEKDAYS.get(self.weekday()).copied().unwrap_or_default();
        while let Some(character) = rest.next() {
            if character != '%' {
                text.push(character);
                continue;
            }
            let written = match rest.next()? {
                'Y' => write!(text, "{year:04}"),
                'y' => write!(text, "{:02}", year % 100),
                'm' => write!(text, "{month:02}"),
                'd' => write!(text, "{day:02}"),
                'e' => write!(text, "{day:2}"),
                'B' => write!(text, "{month_name}"),
                'b' | 'h' => write!(text, "{}", &month_name[..3]),
                'A' => write!(text, "{weekday}"),
                'a' => write!(text, "{}", &weekday[..3]),
                'w' => write!(text, "{}", self.weekday()),
                'j' => write!(text, "{:03}", self.day_of_year() + 1),
                'F' => write!(text, "{year:04}-{month:02}-{day:02}"),
                'D' | 'x' => write!(text, "{month:02}/{day:02}/{:02}", year % 100),
                'H' | 'M' | 'S' => write!(text, "00"),
                'I' => write!(text, "12"),
                'p' => write!(text, "AM"),
                'T' | 'X' => write!(text, "00:00:00"),
                'R' => write!(text, "00:00"),
                'f' => write!(text, "000000"),
                'c' => write!(
                    text,
                    "{} {} {day:2} 00:00:00 {year:04}",
                    &weekday[..3],
                    &month_name[..3]
                ),
                'Z' | 'z' => Ok(()),
                '%' => write!(text, "%"),
                '-' => match rest.next()? {
                    'd' | 'e' => write!(text, "{day}"),
                    'm' => write!(text, "{month}"),
                    'y' => write!(text, "{}", year % 100),
                    'j' => write!(text, "{}", self.day_of_year() + 1),
                    'H' | 'M' | 'S' => write!(text, "0"),
                    'I' => write!(text, "12"),
                    _ => return None,
                },
                _ => return None,
            };
            written.ok()?;
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_format(date: &str, format: &str, expected: &str) {
        let date: TemplateDate = date.parse().unwrap();
        assert_eq!(
            date.strftime(format).as_deref(),
            Some(expected),
            "{date} {format}"
        );
    }

    #[test]
    fn directives_match_c() {
        check_format("2025-01-01", "%d %b %Y", "01 Jan 2025");
        check_format(
            "2025-01-01",
            "%A, %B %-d (%j)",
            "Wednesday, January 1 (001)",
        );
        check_format("2024-02-29", "%a %y%m%d %j", "Thu 240229 060");
        check_format("2024-12-31", "%A %j %H:%M:%S %%", "Tuesday 366 00:00:00 %");
        check_format("1999-12-31", "%c", "Fri Dec 31 00:00:00 1999");
        assert_eq!(TemplateDate::default().strftime("%Q"), None);
        assert_eq!(TemplateDate::default().strftime("%"), None);
    }

    #[test]
    fn only_real_days_are_dates() {
        for text in [
            "2025-02-29",
            "2025-13-01",
            "2025-00-10",
            "2025-1-1",
            "0000-01-01",
            "2025-01-01-",
            "",
            "+025-01-01",
        ] {
            assert!(text.parse::<TemplateDate>().is_err(), "{text}");
        }
        assert_eq!(
            "2024-02-29".parse::<TemplateDate>().unwrap().to_string(),
            "2024-02-29"
        );
    }
}
