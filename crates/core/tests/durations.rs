//! Spans read and print as Go's durations do.

use proptest::prelude::*;
use sublet_core::time::{Error, Span};

/// The most milliseconds that Go can count.
const MILLIS_MAX: u64 = 9_223_372_036_854;

fn read(text: &str) -> Result<u64, Error> {
    text.parse::<Span>().map(Span::as_millis)
}

#[test]
fn what_go_reads_is_read() {
    let table = [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("-0s", 0),
        ("0h0m0s", 0),
        ("5s", 5_000),
        ("+5s", 5_000),
        ("1478s", 1_478_000),
        ("5.0s", 5_000),
        ("5.6s", 5_600),
        ("5.s", 5_000),
        (".5s", 500),
        ("1.004s", 1_004),
        ("1.0040s", 1_004),
        ("100.00100s", 100_001),
        ("300ms", 300),
        ("15m", 900_000),
        ("16h", 57_600_000),
        ("1.5h", 5_400_000),
        ("3h30m", 12_600_000),
        ("10.5s4m", 250_500),
        ("1m1m", 120_000),
        ("39h9m14.425s", 140_954_425),
        ("52763797000000ns", 52_763_797),
        ("0.3333333333333333333h", 1_200_000),
        ("0.100000000000000000000h", 360_000),
        ("9223372036854ms", MILLIS_MAX),
        ("2562047h47m16.854s", MILLIS_MAX),
    ];
    for (text, millis) in table {
        assert_eq!(read(text), Ok(millis), "{text}");
    }
}

#[test]
fn a_part_of_a_millisecond_counts_as_a_whole_one() {
    for text in ["1ns", "1us", "1\u{b5}s", "1\u{3bc}s", "0.5ms", "999999ns", "1us1ns", "1000us"] {
        assert_eq!(read(text), Ok(1), "{text}");
    }
    assert_eq!(read("1h2m3s4ms5us6ns"), Ok(3_723_005));
    // Go cuts off what is below a nanosecond, so to it this is zero.
    assert_eq!(read("0.1ns"), Ok(0));
}

#[test]
fn what_go_refuses_is_refused_by_name() {
    let malformed = |rest: &str| Error::Malformed { rest: rest.to_string() };
    let unknown = |unit: &str| Error::UnknownUnit { unit: unit.to_string() };
    let table = [
        ("", Error::Empty),
        ("-", malformed("")),
        ("s", malformed("s")),
        (".", malformed(".")),
        ("-.s", malformed(".s")),
        ("+.s", malformed(".s")),
        ("1s.s", malformed(".s")),
        ("--1s", malformed("-1s")),
        (" 1s", malformed(" 1s")),
        ("3", Error::MissingUnit),
        ("1h30", Error::MissingUnit),
        ("00", Error::MissingUnit),
        ("1d", unknown("d")),
        ("1 s", unknown(" s")),
        ("1S", unknown("S")),
        ("1s ", unknown("s ")),
        ("1h-30m", unknown("h-")),
        ("\u{663}s", malformed("\u{663}s")),
        ("9223372036854775808ns", Error::TooLarge),
        ("-9223372036854775809ns", Error::TooLarge),
        ("99999999999999999999ns", Error::TooLarge),
        ("9223372036854776us", Error::TooLarge),
        ("9223372036854775.808us", Error::TooLarge),
        ("9223372036854ms775us808ns", Error::TooLarge),
        ("3000000h", Error::TooLarge),
    ];
    for (text, error) in table {
        assert_eq!(read(text), Err(error), "{text}");
    }
    assert_eq!(read(&"0".repeat(257)), Err(Error::TooLong { length: 257 }));
}

#[test]
fn negative_spans_have_an_error_of_their_own() {
    for text in ["-5s", "-1ns", "-2m3.4s", "-9223372036854775808ns"] {
        assert_eq!(read(text), Err(Error::Negative), "{text}");
    }
}

#[test]
fn the_last_part_of_a_millisecond_that_go_counts_is_refused() {
    // Rounded up it would print as something that neither Go nor we can read again.
    assert_eq!(read("9223372036854000000ns"), Ok(MILLIS_MAX));
    assert_eq!(read("9223372036854775807ns"), Err(Error::TooLarge));
}

#[test]
fn spans_print_as_go_prints_them() {
    let table = [
        (0, "0s"),
        (1, "1ms"),
        (300, "300ms"),
        (1_000, "1s"),
        (1_001, "1.001s"),
        (1_500, "1.5s"),
        (2_050, "2.05s"),
        (60_000, "1m0s"),
        (303_300, "5m3.3s"),
        (3_600_000, "1h0m0s"),
        (3_600_001, "1h0m0.001s"),
        (5_400_000, "1h30m0s"),
        (172_800_000, "48h0m0s"),
        (u64::MAX, "5124095576030h25m51.615s"),
    ];
    for (millis, text) in table {
        assert_eq!(Span::from_millis(millis).to_string(), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_reading_gives_the_same_span(millis in 0..=MILLIS_MAX, shift in 0_u32..44) {
        let span = Span::from_millis(millis >> shift);
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "\\PC{0,20}|([0-9]{0,20}\\.?[0-9]{0,20}(ns|us|µs|ms|s|m|h)){0,4}",
    ) {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }

    #[test]
    fn parts_add_up(hours in 0..2_000_000_u64, minutes in 0..600_u64, millis in 0..600_000_u64) {
        let text = format!("{hours}h{minutes}m{millis}ms");
        prop_assert_eq!(read(&text), Ok(hours * 3_600_000 + minutes * 60_000 + millis));
    }
}
