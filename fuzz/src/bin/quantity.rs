//! Any text is refused, or is an amount that survives printing and obeys the laws of numbers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_core::quantity::{Quantity, Round};

fuzz_target!(|text: &str| check(text));

/// The text is two amounts with a space between them, or one of them.
fn check(text: &str) {
    let (first, second) = text.split_once(' ').unwrap_or((text, "1"));
    let Ok(a) = first.parse::<Quantity>() else {
        return;
    };
    survives_printing(&a);
    rounds_within_bounds(&a);
    let Ok(b) = second.parse::<Quantity>() else {
        return;
    };
    let sum = a.plus(&b);
    assert_eq!(sum.minus(&b), a);
    assert_eq!(a.cmp(&b) as i32, a.minus(&b).signum());
}

/// A whole binary amount that 1024 does not divide prints as bare digits, which read as a decimal
/// one: `218.75Ki` is `224000`, and that is `224k`. Kubernetes prints so too, and goes no further.
fn survives_printing(a: &Quantity) {
    let printed = a.to_string();
    let again = read(&printed);
    assert_eq!(again, *a);
    let settled = again.to_string();
    let bare = printed.bytes().all(|b| b == b'-' || b.is_ascii_digit());
    assert!(settled == printed || bare, "{printed} became {settled}");
    assert_eq!(read(&settled).to_string(), settled);
}

fn read(printed: &str) -> Quantity {
    printed.parse().expect("what is printed can be read")
}

fn rounds_within_bounds(a: &Quantity) {
    if let (Ok(down), Ok(up)) = (a.to_milli(Round::Down), a.to_milli(Round::Up)) {
        assert!(Quantity::from_milli(down) <= *a && *a <= Quantity::from_milli(up));
        assert!(up - down <= 1);
    }
    if let (Ok(down), Ok(up)) = (a.to_units(Round::Down), a.to_units(Round::Up)) {
        assert!(Quantity::from_count(down) <= *a && *a <= Quantity::from_count(up));
        assert!(up - down <= 1);
    }
}
