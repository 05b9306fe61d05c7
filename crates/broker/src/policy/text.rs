//! How a policy is written: durations and amounts as text, clusters as a list or `"any"`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sublet_core::decision::Strategy;
use sublet_core::id::ClusterId;
use sublet_core::policy::{Allowance, Clusters, Policy, Rule, Silence, Visibility};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::resources::{Kind, Limits};
use sublet_core::time::Span;

/// A value that is written as text.
struct Text<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Read<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text in quotes")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Read(PhantomData)).map(Self)
    }
}

/// `"any"`, or a list of names.
struct Who(Clusters);

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Clusters;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"any\" or a list of clusters")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Clusters, E> {
                let unexpected = de::Unexpected::Str(text);
                if text == "any" {
                    Ok(Clusters::Any)
                } else {
                    Err(E::invalid_value(unexpected, &self))
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Clusters, A::Error> {
                let mut clusters = BTreeSet::new();
                while let Some(name) = names.next_element::<ClusterId>()? {
                    clusters.insert(name);
                }
                Ok(Clusters::These(clusters))
            }
        }
        deserializer.deserialize_any(Read).map(Self)
    }
}

/// Bounds by resource, as Kubernetes writes amounts.
struct Bounds(Limits);

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amounts = BTreeMap::<Kind, Text<Quantity>>::deserialize(deserializer)?;
        let bounds = amounts.into_iter().map(|(kind, Text(quantity))| {
            // A bound rounds down: it never lets more than was written.
            let amount = kind.amount(&quantity, Round::Down);
            amount.map(|amount| (kind, amount)).map_err(de::Error::custom)
        });
        bounds.collect::<Result<_, _>>().map(|bounds| Self(Limits(bounds)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    requesters: Who,
    providers: Who,
    allow: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AllowanceText {
    held: Option<Bounds>,
    priority_max: Option<i32>,
    reservations_max: Option<u32>,
    waiting_max: Option<u32>,
    keys_max: Option<u32>,
}

impl AllowanceText {
    /// What is not said is as in `base`.
    fn over(self, base: &Allowance) -> Allowance {
        Allowance {
            held: self.held.map_or_else(|| base.held.clone(), |bounds| bounds.0),
            priority_max: self.priority_max.unwrap_or(base.priority_max),
            reservations_max: self.reservations_max.unwrap_or(base.reservations_max),
            waiting_max: self.waiting_max.unwrap_or(base.waiting_max),
            keys_max: self.keys_max.unwrap_or(base.keys_max),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SilenceText {
    intervals: Option<u32>,
    suspect_min: Option<Text<Span>>,
    stale_after: Option<Text<Span>>,
}

impl SilenceText {
    fn over(self, base: Silence) -> Silence {
        Silence {
            intervals: self.intervals.unwrap_or(base.intervals),
            suspect_min: span(self.suspect_min, base.suspect_min),
            stale_after: span(self.stale_after, base.stale_after),
        }
    }
}

fn span(text: Option<Text<Span>>, base: Span) -> Span {
    text.map_or(base, |Text(span)| span)
}

/// The whole file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    strategy: Strategy,
    visibility: Visibility,
    duration_default: Option<Text<Span>>,
    duration_max: Option<Text<Span>>,
    wait_max: Option<Text<Span>>,
    waiting_max: Option<u32>,
    activate_within: Option<Text<Span>>,
    lost_after: Option<Text<Span>>,
    recovery_grace: Option<Text<Span>>,
    key_retention: Option<Text<Span>>,
    silence: SilenceText,
    lending: Vec<RuleText>,
    allowance: AllowanceText,
    requesters: BTreeMap<ClusterId, AllowanceText>,
}

impl File {
    pub(super) fn into_policy(self) -> Policy {
        let base = Policy::default();
        let allowance = self.allowance.over(&base.allowance);
        let named = self.requesters.into_iter();
        let named = named.map(|(cluster, text)| (cluster, text.over(&allowance))).collect();
        let lending = self.lending.into_iter().map(|RuleText { requesters, providers, allow }| {
            Rule { requesters: requesters.0, providers: providers.0, allow }
        });
        Policy {
            strategy: self.strategy,
            visibility: self.visibility,
            silence: self.silence.over(base.silence),
            duration_default: self.duration_default.map(|Text(span)| span),
            duration_max: self.duration_max.map(|Text(span)| span),
            wait_max: span(self.wait_max, base.wait_max),
            waiting_max: self.waiting_max.unwrap_or(base.waiting_max),
            activate_within: span(self.activate_within, base.activate_within),
            lost_after: self.lost_after.map(|Text(span)| span),
            recovery_grace: span(self.recovery_grace, base.recovery_grace),
            key_retention: span(self.key_retention, base.key_retention),
            lending: lending.collect(),
            allowance,
            requesters: named,
        }
    }
}
