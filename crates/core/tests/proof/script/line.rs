//! One line: a verb, mostly a subject, then `name=value` and flags in any order.

use std::collections::BTreeMap;

use sublet_core::id::ClusterId;
use sublet_core::quantity::{Quantity, Round};
use sublet_core::reservation::Actor;
use sublet_core::resources::{Kind, Resources};
use sublet_core::time::Span;

use crate::world::cluster;

pub(super) struct Line {
    pub(super) verb: String,
    words: Vec<String>,
    options: BTreeMap<String, String>,
}

impl Line {
    pub(super) fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let verb = words.next().unwrap().to_owned();
        let (options, words): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let pair = |word: &str| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let options = options.into_iter().filter_map(pair).collect();
        Self { verb, words: words.into_iter().map(str::to_owned).collect(), options }
    }

    pub(super) fn subject(&self) -> &str {
        self.words.first().unwrap_or_else(|| panic!("{} what?", self.verb))
    }

    pub(super) fn cluster_subject(&self) -> ClusterId {
        cluster(self.subject())
    }

    /// The first half of `requester/key`.
    pub(super) fn requester(&self) -> ClusterId {
        cluster(self.subject().split('/').next().unwrap())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.words.iter().skip(1).any(|word| word == name)
    }

    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(super) fn cluster(&self, name: &str) -> ClusterId {
        cluster(self.option(name).unwrap_or_else(|| panic!("{name}=…")))
    }

    pub(super) fn actor(&self, name: &str, default: ClusterId) -> Actor {
        match self.option(name) {
            None => Actor::Cluster(default),
            Some("operator") => Actor::Operator("ops".into()),
            Some(other) => Actor::Cluster(cluster(other)),
        }
    }

    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.option(name).map(|text| text.parse().unwrap())
    }

    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let label = |(name, value): (&String, &String)| {
            name.strip_prefix("label.").map(|name| (name.to_owned(), value.clone()))
        };
        self.options.iter().filter_map(label).collect()
    }

    /// The amounts among the options that begin with `prefix`; what is no amount is something else.
    pub(super) fn resources(&self, prefix: &str, round: Round) -> Resources {
        const OTHERS: [&str; 14] = [
            "key",
            "wait",
            "for",
            "priority",
            "target",
            "by",
            "generation",
            "requester",
            "priority-max",
            "duration-default",
            "duration-max",
            "lost-after",
            "allocated",
            "held",
        ];
        self.options.iter().fold(Resources::default(), |sum, (name, value)| {
            let Some(name) = name.strip_prefix(prefix) else { return sum };
            let dotted = name.split_once('.').is_some_and(|(first, rest)| {
                matches!(first, "allocated" | "label" | "held") && !rest.is_empty()
            });
            if OTHERS.contains(&name) || dotted {
                return sum;
            }
            let kind: Kind = name.parse().unwrap();
            let quantity: Quantity = value.parse().unwrap();
            let amount = kind.amount(&quantity, round).unwrap();
            sum.with(kind, amount).unwrap()
        })
    }
}
