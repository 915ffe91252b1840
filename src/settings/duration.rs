//! Durations as kubectl takes them: Go's notation.

use std::time::Duration;

/// Go's longest duration, about 292 years.
const MAX_NANOS: u128 = i64::MAX as u128;

/// Digits of a fraction that can matter: an hour is 3.6e12 ns, anything finer than that is dropped as Go does.
const FRACTION_DIGITS: usize = 18;

/// Why a text is no duration for a flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing there.
    #[error("is empty")]
    Empty,
    /// A bare number.
    #[error("has no unit")]
    MissingUnit,
    /// A unit that Go does not know, for example `d`.
    #[error("has the unknown unit `{0}` (known are h, m, s, ms, us, ns)")]
    UnknownUnit(String),
    /// Not of the form number-unit.
    #[error("is not a duration")]
    Malformed,
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// Zero where there has to be a limit.
    #[error("would mean no limit, which a drain here never has")]
    Zero,
    /// Does not fit.
    #[error("is too long")]
    TooLong,
}

/// Parses Go's notation: `1h30m`, `90s`, `1.5h`, `100ms`, `2m0s`, and a bare `0`.
pub fn parse_go_duration(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, tail) = take_part(rest)?;
        total = total.checked_add(nanos).filter(|sum| *sum <= MAX_NANOS).ok_or(DurationError::TooLong)?;
        rest = tail;
    }
    let total = u64::try_from(total).map_err(|_| DurationError::TooLong)?;
    Ok(Duration::from_nanos(total))
}

/// Parses `--timeout`: Go's notation, and there is always a limit.
pub fn parse_timeout(text: &str) -> Result<Duration, DurationError> {
    match parse_go_duration(text)? {
        Duration::ZERO => Err(DurationError::Zero),
        limit => Ok(limit),
    }
}

/// Parses `--request-timeout`: Go's notation or a bare number of seconds; zero is no limit.
pub fn parse_request_timeout(text: &str) -> Result<Option<Duration>, DurationError> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = if bare { parse_go_duration(&format!("{text}s"))? } else { parse_go_duration(text)? };
    Ok((limit != Duration::ZERO).then_some(limit))
}

/// One number with its unit from the front of `text`, as nanoseconds, and what follows it.
fn take_part(text: &str) -> Result<(u128, &str), DurationError> {
    let (whole, rest) = take_while(text, |c| c.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => take_while(after, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let (unit, rest) = take_while(rest, |c| c != '.' && !c.is_ascii_digit());
    if unit.is_empty() {
        return Err(DurationError::MissingUnit);
    }
    let scale: u128 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::UnknownUnit(unit.to_owned())),
    };
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| DurationError::TooLong)? };
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let mut nanos = u128::from(whole) * scale;
    if !fraction.is_empty() {
        let digits = fraction.parse::<u128>().map_err(|_| DurationError::Malformed)?;
        let divisor = fraction.bytes().fold(1_u128, |product, _| product * 10);
        nanos += digits * scale / divisor;
    }
    Ok((nanos, rest))
}

/// Splits `text` after its longest prefix of characters that `accept`.
fn take_while(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !accept(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_go_takes() {
        let cases = [
            ("1h30m", Duration::from_secs(5400)),
            ("90s", Duration::from_secs(90)),
            ("1.5h", Duration::from_secs(5400)),
            ("100ms", Duration::from_millis(100)),
            ("2m0s", Duration::from_secs(120)),
            (".5s", Duration::from_millis(500)),
            ("1.s", Duration::from_secs(1)),
            ("+5m", Duration::from_secs(300)),
            ("10\u{b5}s", Duration::from_micros(10)),
            ("10\u{3bc}s", Duration::from_micros(10)),
            ("0.3333333333333333333h", Duration::from_nanos(1_199_999_999_999)),
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_go_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        let cases = [
            ("", DurationError::Empty),
            ("30", DurationError::MissingUnit),
            ("1h30", DurationError::MissingUnit),
            ("1d", DurationError::UnknownUnit("d".to_owned())),
            ("1 h", DurationError::UnknownUnit(" h".to_owned())),
            ("5M", DurationError::UnknownUnit("M".to_owned())),
            ("m", DurationError::Malformed),
            (".s", DurationError::Malformed),
            ("+", DurationError::Malformed),
            ("abc", DurationError::Malformed),
            ("-1s", DurationError::Negative),
            ("99999999999h", DurationError::TooLong),
            ("99999999999999999999999h", DurationError::TooLong),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_go_duration(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn timeout_is_never_without_limit() {
        assert_eq!(parse_timeout("30m"), Ok(Duration::from_secs(1800)));
        for text in ["0", "0s", "0h0m"] {
            assert_eq!(parse_timeout(text), Err(DurationError::Zero), "{text}");
        }
    }

    #[test]
    fn request_timeout_takes_a_bare_number_as_seconds_and_zero_as_none() {
        assert_eq!(parse_request_timeout("5"), Ok(Some(Duration::from_secs(5))));
        assert_eq!(parse_request_timeout("1m"), Ok(Some(Duration::from_secs(60))));
        assert_eq!(parse_request_timeout("0"), Ok(None));
        assert_eq!(parse_request_timeout("0s"), Ok(None));
        assert_eq!(parse_request_timeout("-1"), Err(DurationError::Negative));
        assert_eq!(parse_request_timeout(""), Err(DurationError::Empty));
    }
}
