//! Figures as people say them.

use anstyle::{AnsiColor, Style};
use sublet_core::time::Time;
use sublet_wire::v1::Quantities;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long ago `then` was, in at most two units, as kubectl says it.
pub(crate) fn age(then: Option<Time>, now: Time) -> String {
    then.map_or_else(|| "-".into(), |then| short(seconds(then, now)))
}

/// How long it is until `then`; `due` when it is over. Rounded to what is shown, so that an hour is
/// not 59 minutes as soon as somebody looks.
pub(crate) fn left(then: Option<Time>, now: Time) -> String {
    match then.map(|then| then.since(now).as_millis().div_ceil(1000)) {
        None => "never".into(),
        Some(0) => "due".into(),
        Some(seconds) if seconds < 10 * MINUTE => short(seconds),
        Some(seconds) if seconds < 2 * DAY => short(seconds + MINUTE / 2),
        Some(seconds) => short(seconds + HOUR / 2),
    }
}

fn seconds(from: Time, to: Time) -> u64 {
    to.since(from).as_millis() / 1000
}

fn short(seconds: u64) -> String {
    let two = |big: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{big}{unit}"),
        rest => format!("{big}{unit}{rest}{small}"),
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 2 * DAY => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s => two(s / DAY, "d", s % DAY / HOUR, "h"),
    }
}

/// A text, or a dash where there is none, so that columns can be cut.
pub(crate) fn or_dash(text: impl Into<String>) -> String {
    Some(text.into()).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".into())
}

/// Amounts that have no column of their own.
pub(crate) fn others(amounts: &Quantities) -> String {
    let storage = amounts.storage.iter().map(|amount| format!("storage={amount}"));
    let others = amounts.others.iter().map(|(name, amount)| format!("{name}={amount}"));
    or_dash(storage.chain(others).collect::<Vec<_>>().join(","))
}

/// The colour of a phase or state: green goes well, yellow is on its way, red has failed.
pub(crate) fn paint(word: &str) -> Style {
    let colour = match word {
        "Active" => AnsiColor::Green,
        "Reserved" => AnsiColor::Cyan,
        "Pending" | "Releasing" | "Suspect" | "Cordoned" | "Draining" => AnsiColor::Yellow,
        "Failed" | "Stale" | "Lost" | "Revoked" | "revoked" => AnsiColor::Red,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn ages_have_at_most_two_units() {
        let words = [(0, "0s"), (119, "119s"), (125, "2m5s"), (3_599, "59m"), (10_860, "3h1m")];
        for (seconds, word) in words {
            assert_eq!(age(Some(at(0)), at(seconds)), word);
        }
        assert_eq!(age(Some(at(0)), at(3 * DAY + HOUR)), "3d1h");
        assert_eq!(age(None, at(0)), "-");
    }

    #[test]
    fn what_is_over_is_due_and_what_has_no_end_never_ends() {
        assert_eq!(left(Some(at(5)), at(5)), "due");
        assert_eq!(left(Some(at(65)), at(5)), "60s");
        let hour = |gone: u64| left(Some(at(3600)), Time::from_millis(gone));
        assert_eq!([hour(0), hour(1), hour(29_000), hour(31_000)], ["60m", "60m", "60m", "59m"]);
        assert_eq!(left(Some(at(599)), Time::from_millis(100)), "9m59s");
        assert_eq!(left(None, at(5)), "never");
    }
}
