//! What holds for all quantities, tried on random ones.

use proptest::prelude::*;
use sublet_core::quantity::{Error, Quantity, Round};

const SUFFIXES: &str = "|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e0|e3|E-7|e21|e100|e-30";

/// Texts that are quantities, from everyday ones to ones that no integer holds.
fn texts() -> impl Strategy<Value = String> {
    let suffixes: Vec<&str> = SUFFIXES.split('|').collect();
    let number = prop_oneof!["[0-9]{1,5}", "[0-9]{0,30}\\.[0-9]{1,15}", "[0-9]{30,60}"];
    ("[+-]?", number, prop::sample::select(suffixes))
        .prop_map(|(sign, number, suffix)| format!("{sign}{number}{suffix}"))
}

fn quantities() -> impl Strategy<Value = Quantity> {
    texts().prop_map(|text| text.parse().expect("the texts above are quantities"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Only bare digits may come from a binary amount and read as a decimal one: `218.75Ki` is `224000`,
    /// and that is `224k`, as in Kubernetes.
    #[test]
    fn printing_and_reading_gives_the_same_amount_and_text(q in quantities()) {
        let printed = q.to_string();
        let again: Quantity = printed.parse().expect("what we print is a quantity");
        prop_assert_eq!(&again, &q);
        let settled = again.to_string();
        let bare = printed.bytes().all(|b| b == b'-' || b.is_ascii_digit());
        prop_assert!(settled == printed || bare, "{} became {}", printed, settled);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}|[-+0-9.eEinumkKMGTP]{0,300}") {
        if let Ok(q) = text.parse::<Quantity>() {
            prop_assert_eq!(q.to_string().parse::<Quantity>(), Ok(q));
        }
    }

    #[test]
    fn subtracting_undoes_adding(a in quantities(), b in quantities()) {
        prop_assert_eq!(a.plus(&b).minus(&b), a.clone());
        prop_assert_eq!(a.minus(&b).plus(&b), a.clone());
        prop_assert_eq!(a.plus(&b), b.plus(&a));
        prop_assert!(a.minus(&a).is_zero());
    }

    #[test]
    fn adding_is_associative(a in quantities(), b in quantities(), c in quantities()) {
        prop_assert_eq!(a.plus(&b).plus(&c), a.plus(&b.plus(&c)));
    }

    #[test]
    fn order_is_the_sign_of_the_difference(a in quantities(), b in quantities()) {
        prop_assert_eq!(a.cmp(&b) as i32, a.minus(&b).signum());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    }

    #[test]
    fn adding_the_same_keeps_the_order(a in quantities(), b in quantities(), c in quantities()) {
        prop_assert_eq!(a.plus(&c).cmp(&b.plus(&c)), a.cmp(&b));
    }

    #[test]
    fn rounding_up_and_down_encloses_the_amount(q in quantities()) {
        match (q.to_milli(Round::Down), q.to_milli(Round::Up)) {
            (Ok(down), Ok(up)) => {
                prop_assert!(Quantity::from_milli(down) <= q && q <= Quantity::from_milli(up));
                prop_assert!(up - down == u64::from(Quantity::from_milli(down) != q));
            }
            (Err(Error::Negative), Err(Error::Negative)) => prop_assert!(q.signum() < 0),
            (_, Err(Error::TooLarge)) => prop_assert!(q > Quantity::from_milli(u64::MAX)),
            other => prop_assert!(false, "{other:?}"),
        }
        match (q.to_units(Round::Down), q.to_units(Round::Up)) {
            (Ok(down), Ok(up)) => {
                prop_assert!(Quantity::from_count(down) <= q && q <= Quantity::from_count(up));
                prop_assert!(up - down == u64::from(Quantity::from_count(down) != q));
            }
            (Err(Error::Negative), Err(Error::Negative)) => prop_assert!(q.signum() < 0),
            (_, Err(Error::TooLarge)) => prop_assert!(q > Quantity::from_count(u64::MAX)),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn integers_come_back_from_what_is_printed_of_them(n in any::<u64>(), shift in 0_u32..64) {
        let n = n >> shift;
        let reread = |q: Quantity| q.to_string().parse::<Quantity>().expect("what we print");
        prop_assert_eq!(reread(Quantity::from_milli(n)).to_milli(Round::Down), Ok(n));
        prop_assert_eq!(reread(Quantity::from_count(n)).to_units(Round::Up), Ok(n));
        // Kubernetes caps binary amounts there; see `from_bytes`.
        let bytes = n.min(i64::MAX.unsigned_abs());
        prop_assert_eq!(reread(Quantity::from_bytes(bytes)).to_units(Round::Up), Ok(bytes));
    }
}
