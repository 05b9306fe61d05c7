//! What a field may hold, and what cannot be right in it.

use serde_json::{Value, json};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An amount that must be more than nothing.
    Some,
    /// An amount that may be nothing.
    Amount,
    /// A length of time that must be longer than nothing.
    Duration,
    /// A length of time that may be nothing.
    Patience,
    /// A length of time of two minutes at most.
    Brief,
    /// A short word of small letters.
    Slot,
    /// What has no control characters and is not empty.
    Plain,
    /// The name of a cluster.
    Name,
    /// The name of the cluster that asks.
    Oneself,
    /// The name of a reservation.
    Reservation,
    /// One of a few words.
    Word,
    /// Any text.
    Text,
    /// A text that says something.
    Reason,
    /// A whole number that is not negative, of 32 bits.
    Count,
    /// The same of 64 bits.
    Long,
    /// A whole number.
    Number,
    Bool,
    List,
    Object,
}

/// No amounts: neither as Kubernetes reads them nor as anybody does.
#[rustfmt::skip]
pub(super) const NO_AMOUNT: &[&str] = &[
    "1 ", " 1", "1.1.M", "1i", "0.1mi", "1K", "１", "1_000", "1,5", "0x10", "many", "1GB", "--1",
    "+-1", "1e", "1e+", "inf", "NaN", "1e1000", "1E1000", "1\u{200b}", "\u{0}", "1\n", "1;ls",
    "$(x)", "½", "1Ki ", "1Gii", "1g", "1MB", "1 Gi", "1e1.5", "1ee1", "one", "null", "-1", "-1m",
    "-0.5", "-1Gi", "-1e3",
];
/// Amounts of nothing; Go reads a sign or a suffix alone as such.
#[rustfmt::skip]
pub(super) const NOTHING: &[&str] = &[
    "0", "-0", "0.0", "0m", "0Gi", "0e5", "Gi", "-", "+", ".",
];
#[rustfmt::skip]
pub(super) const NO_DURATION: &[&str] = &[
    "-1h", "1", "1 day", "1d", "h", "1h1", ".", "+", "1e3s", "10000000000h", "1h\u{200b}", "soon",
    " 1h", "1h ", "1H", "1hour", "1h-1m", "--1h", "0x1h", "１h", "1_0h", "1,5h", "∞", "1w", "1y",
    "1h;ls", "\u{0}", "P1D", "1:00", "9223372036854775808ns",
];
#[rustfmt::skip]
pub(super) const NO_NAME: &[&str] = &[
    "A", "-rf", "--kubeconfig=/x", "a.b", "a_b", "$(x)", ";ls", "../../etc", "a/b", "<script>",
    "=1+1", "*", ".", "..", "xn--é", "а", "👍", "a\nb", "a\u{0}", "' OR 1=1", "a b", " a", "a ",
    "-a", "a-", "a--\u{200b}", "ａ", "a\tb", "a\r", "\u{202e}a", "a\\b", "a\"b", "`a`", "a&b",
    "a|b", "a;b", "a,b", "a:b", "a@b", "a#b", "a%b", "a+b", "a=b", "a?b", "a!b", "a~b", "a^b",
    "(a)", "[a]", "{a}", "@SUM(1)", "c1.", "C1", "c1/", "ı", "ﬁ", "İ",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];
#[rustfmt::skip]
pub(super) const NO_RESERVATION: &[&str] = &[
    "x", "rsv-", "rsv-AAAAAAAAAAAAAAAAAAAA", "rsv-aaaaaaaaaaaaaaaaaaa",
    "rsv-aaaaaaaaaaaaaaaaaaaaa", "rsv-0000000000000000000a", "rsv_aaaaaaaaaaaaaaaaaaaa", "../etc",
    "rsv-aaaaaaaaaaaaaaaaaaa\n", "rsv-aaaaaaaaaaaaaaaaaaa ", "rsv-aaaaaaaaaaaaaaaaaa-a",
    "rsv-ａaaaaaaaaaaaaaaaaaa",
];
#[rustfmt::skip]
pub(super) const NO_WORD: &[&str] = &[
    "x", "Headroom", " headroom", "headroom ", "luck", "👍", "\u{0}", "LIQO",
];

fn in_slots(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b'-'
}

impl Kind {
    /// Texts that cannot be right here, and the code that says so.
    pub(super) fn texts(self) -> (Vec<&'static str>, &'static str) {
        let texts = match self {
            Self::Some => [NO_AMOUNT, NOTHING].concat(),
            Self::Amount => NO_AMOUNT.to_vec(),
            Self::Duration => [NO_DURATION, &["0", "0s", "0h0m", "-0s"]].concat(),
            Self::Patience => NO_DURATION.to_vec(),
            Self::Brief => [NO_DURATION, &["0", "0s", "-0s", "121s", "2m1ms", "1h"]].concat(),
            Self::Slot => {
                let is_slot = |text: &str| text.len() <= 32 && text.bytes().all(in_slots);
                let names = NO_NAME.iter().copied().filter(|name| !is_slot(name));
                names.chain(["", "a1", "a.a"]).collect()
            }
            Self::Plain => vec!["", "\n", "a\u{0}b", "a\tb", "\u{85}", "\u{7f}"],
            Self::Name => NO_NAME.to_vec(),
            Self::Oneself => return (NO_NAME.to_vec(), "ClusterMismatch"),
            Self::Reservation => NO_RESERVATION.to_vec(),
            Self::Word => NO_WORD.to_vec(),
            Self::Text => Vec::new(),
            Self::Reason => vec!["", " ", "\n\t"],
            // A text is no number, no yes or no, and no list.
            _ => return (vec!["", "1", "true", "x", "[]", "{}"], "InvalidBody"),
        };
        (texts, "InvalidField")
    }

    /// Values of another type.
    pub(super) fn others(self) -> Vec<Value> {
        let all = [
            json!([0, 1, -1, 1.5, 1e300, u64::MAX, true, false]),
            json!([[], [1], [null], {}, {"a": 1}]),
        ];
        let all = all.iter().flat_map(|some| some.as_array().into_iter().flatten().cloned());
        let fits = |value: &Value| match self {
            Self::Count => value.as_u64().is_some_and(|number| number < u64::MAX),
            Self::Long => value.is_u64(),
            Self::Number => value.as_i64().is_some(),
            Self::Bool => value.is_boolean(),
            // What is in a list is the matter of other rows.
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            _ => false,
        };
        all.filter(|value| !fits(value)).collect()
    }
}
