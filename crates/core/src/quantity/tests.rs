//! Examples of what the golden rows do not show: constructors, limits and refusals.

use super::*;

fn refusal(text: &str) -> Error {
    text.parse::<Quantity>().expect_err(text)
}

#[test]
fn constructors_print_what_kubernetes_prints() {
    let printed = [
        (Quantity::from_milli(0), "0"),
        (Quantity::from_milli(2500), "2500m"),
        (Quantity::from_milli(3000), "3"),
        (Quantity::from_milli(u64::MAX), "18446744073709551615m"),
        (Quantity::from_bytes(0), "0"),
        (Quantity::from_bytes(512), "512"),
        (Quantity::from_bytes(5 << 30), "5Gi"),
        (Quantity::from_bytes(7_340_033 << 10), "7340033Ki"),
        (Quantity::from_bytes(1_000_000), "1000000"),
        (Quantity::from_bytes(1 << 63), "8Ei"),
        (Quantity::from_count(3), "3"),
        (Quantity::from_count(12_000), "12k"),
    ];
    for (quantity, text) in printed {
        assert_eq!(quantity.to_string(), text);
    }
}

#[test]
fn a_binary_amount_that_1024_does_not_divide_prints_as_bare_digits_as_in_kubernetes() {
    for (text, printed) in [("218.75Ki", "224000"), ("1.5Ki", "1536"), ("15.625Mi", "16000Ki")] {
        assert_eq!(text.parse::<Quantity>().expect(text).to_string(), printed);
    }
}

#[test]
fn offers_round_down_and_requests_round_up() {
    let cpu: Quantity = "1500001u".parse().expect("a quantity");
    assert_eq!((cpu.to_milli(Round::Down), cpu.to_milli(Round::Up)), (Ok(1500), Ok(1501)));
    assert_eq!((cpu.to_units(Round::Down), cpu.to_units(Round::Up)), (Ok(1), Ok(2)));
}

#[test]
fn what_is_not_ours_to_count_is_refused_by_name() {
    let negative: Quantity = "-1n".parse().expect("a quantity");
    assert_eq!(negative.to_units(Round::Down), Err(Error::Negative));
    let largest: Quantity = "18446744073709551615".parse().expect("a quantity");
    assert_eq!(largest.to_units(Round::Up), Ok(u64::MAX));
    assert_eq!(largest.to_milli(Round::Up), Err(Error::TooLarge));
    let beyond: Quantity = "18446744073709551615001m".parse().expect("a quantity");
    assert_eq!(beyond.to_units(Round::Down), Ok(u64::MAX));
    assert_eq!(beyond.to_units(Round::Up), Err(Error::TooLarge));
    let far_beyond: Quantity = "1e9999".parse().expect("a quantity");
    assert_eq!(far_beyond.to_units(Round::Down), Err(Error::TooLarge));
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(refusal(""), Error::Empty);
    assert_eq!(refusal(&"1".repeat(257)), Error::TooLong { length: 257 });
    assert_eq!(refusal("2GiB"), Error::Suffix { suffix: "GiB".to_string() });
    assert_eq!(refusal(" 1"), Error::Suffix { suffix: " 1".to_string() });
    assert_eq!(refusal("1.2.3"), Error::Suffix { suffix: ".3".to_string() });
    assert_eq!(refusal("Ei"), Error::NoDigits);
    assert_eq!(refusal("1e10002"), Error::Exponent);
    assert_eq!(refusal("9991000E9999"), Error::Exponent);
    assert_eq!(refusal("1e-4294967299"), Error::Exponent);
    assert_eq!(refusal("1e4294967299"), Error::Exponent);
    assert_eq!(
        refusal("1K").to_string(),
        "\"K\" cannot follow the number of a quantity; use n, u, m, k, M, G, T, P or E, \
         Ki, Mi, Gi, Ti, Pi or Ei, an exponent such as e3, or nothing"
    );
}

#[test]
fn the_longest_and_largest_texts_are_read() {
    let longest: Quantity = "9".repeat(MAX_DIGITS).parse().expect("a quantity");
    assert_eq!(longest.to_string(), "9".repeat(MAX_DIGITS));
    let zeros: Quantity = format!("1{}", "0".repeat(MAX_LENGTH - 1)).parse().expect("a quantity");
    assert_eq!(zeros.to_string(), "1e255");
    let largest: Quantity = "1e9999".parse().expect("a quantity");
    let smallest: Quantity = "1e-9999".parse().expect("a quantity");
    assert_eq!((largest.to_string(), smallest.to_string()), ("1e9999".into(), "1e-9".into()));
    assert!(smallest < largest);
    assert_eq!(largest.plus(&smallest).minus(&largest), smallest);
}

#[test]
fn beyond_the_last_letter_exponents_go_on() {
    let quantity: Quantity = "1000E".parse().expect("a quantity");
    assert_eq!(quantity.to_string(), "1e21");
}
