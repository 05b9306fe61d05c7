//! Why a request was granted where it was, or why not: a sentence, and the same in parts.
//!
//! Bounded whatever the size of the fleet, as the core makes it. What a cluster may see of others
//! was decided before it comes here (`seen_by`).

use std::collections::BTreeMap;

use serde::Serialize;
use sublet_core::decision::explain as core;
use sublet_core::decision::filter::Filter;
use sublet_core::policy::Visibility;

use super::{Amounts, Constraint, request};
use crate::decode::object;

/// Why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// In a sentence.
    pub text: String,
    /// Why there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Granted>,
    /// Why nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// What is not told here, why not, and who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// Why a request was granted where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// How it was chosen.
    pub strategy: String,
    /// Who was chosen.
    pub winner: Ranked,
    /// Who came next, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runners_up: Vec<Ranked>,
}

/// A cluster that fits, and the terms of its score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Ranked {
    /// Who.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// What it keeps free after the request, of each resource asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What it takes for it, where the price decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What stays free of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// Of what.
    pub resource: String,
    /// In hundredths of a percent of what the cluster has.
    pub hundredths_of_percent: u32,
}

/// What a request costs in an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Price {
    /// In millionths of the currency, rounded up.
    pub micros: u64,
    /// As the provider names it.
    pub currency: String,
}

/// Why a request was granted nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Refused {
    /// How many clusters are known.
    pub clusters: u64,
    /// How many each filter refused; each cluster is counted once, at its first reason. A target
    /// that nobody knows is `unknown`, and is none of the clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// How many would have taken it, were it not for the allowance.
    #[serde(default)]
    pub fitting: u64,
    /// How much less must be asked for to stay within the requester's allowance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Amounts>,
    /// The clusters that are short of the least, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Nearest>,
    /// Clusters with room that only one other reason stands against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<Lift>,
}

/// What would have been enough on a cluster that is only too full; each change by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Nearest {
    /// Who.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Ask for so much less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less: Option<Amounts>,
    /// So much more free there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Amounts>,
    /// Its cap raised by so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Amounts>,
}

/// One reason less, and a cluster with room would have been chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Lift {
    /// The reason.
    pub filter: String,
    /// A cluster that it alone stands against.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Which constraint is not met, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Constraint>,
}

object!(Explanation {
    "text" => text,
    "granted" => granted,
    "refused" => refused,
    "withheld" => withheld,
});

impl Explanation {
    /// As much of it as `visibility` lets a cluster see; if that is not all, it says so.
    pub fn seen_by(why: &core::Explanation, visibility: Visibility) -> Self {
        let seen = why.seen_by(visibility);
        let withheld = (seen != *why).then(|| withheld(visibility).to_owned());
        Self { withheld, ..Self::from(&seen) }
    }
}

fn withheld(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Counts => {
            "names and figures of other clusters are shown to operators alone \
             (the broker's policy: visibility = \"counts\")"
        }
        Visibility::Names => {
            "the figures of other clusters are shown to operators alone \
             (the broker's policy: visibility = \"names\")"
        }
        Visibility::Everything => "nothing",
    }
}

object!(Granted { "strategy" => strategy, "winner" => winner, "runnersUp" => runners_up });
object!(Ranked { "clusterID" => cluster_id, "left" => left, "price" => price });
object!(Left { "resource" => resource, "hundredthsOfPercent" => hundredths_of_percent });
object!(Price { "micros" => micros, "currency" => currency });
object!(Refused {
    "clusters" => clusters,
    "refused" => refused,
    "fitting" => fitting,
    "allowance" => allowance,
    "nearest" => nearest,
    "lifts" => lifts,
});
object!(Nearest { "clusterID" => cluster_id, "less" => less, "more" => more, "cap" => cap });
object!(Lift { "filter" => filter, "clusterID" => cluster_id, "constraint" => constraint });

impl From<&core::Explanation> for Explanation {
    fn from(why: &core::Explanation) -> Self {
        let (granted, refused) = match why {
            core::Explanation::Granted(granted) => (Some(granted.into()), None),
            core::Explanation::Refused(refused) => (None, Some(refused.into())),
        };
        Self { text: text(why), granted, refused, withheld: None }
    }
}

/// In a sentence. A target that nobody knows is none of the clusters that are counted, so it is told
/// apart from them: the counts add up.
pub(crate) fn text(why: &core::Explanation) -> String {
    let core::Explanation::Refused(refused) = why else { return why.to_string() };
    let mut others = refused.clone();
    if others.refused.remove(&Filter::Unknown).is_none() {
        return why.to_string();
    }
    format!("the target is unknown here; {}", core::Explanation::Refused(others))
}

impl From<&core::Granted> for Granted {
    fn from(granted: &core::Granted) -> Self {
        Self {
            strategy: request::strategy_name(granted.strategy).to_owned(),
            winner: (&granted.winner).into(),
            runners_up: granted.runners_up.iter().map(Ranked::from).collect(),
        }
    }
}

impl From<&core::Ranked> for Ranked {
    fn from(ranked: &core::Ranked) -> Self {
        Self {
            cluster_id: ranked.cluster.to_string(),
            left: ranked.left.iter().map(Left::from).collect(),
            price: ranked.price.as_ref().map(Price::from),
        }
    }
}

impl From<&core::Left> for Left {
    fn from(left: &core::Left) -> Self {
        Self {
            resource: left.resource.as_str().to_owned(),
            hundredths_of_percent: left.hundredths_of_percent,
        }
    }
}

impl From<&core::Price> for Price {
    fn from(price: &core::Price) -> Self {
        Self { micros: price.micros, currency: price.currency.clone() }
    }
}

impl From<&core::Refused> for Refused {
    fn from(refused: &core::Refused) -> Self {
        let counted = refused.refused.iter();
        Self {
            clusters: refused.clusters,
            refused: counted
                .map(|(f, n)| (super::candidate::filter_name(*f).to_owned(), *n))
                .collect(),
            fitting: refused.fitting,
            allowance: refused.allowance.as_ref().map(Amounts::from),
            nearest: refused.nearest.iter().map(Nearest::from).collect(),
            lifts: refused.lifts.iter().map(Lift::from).collect(),
        }
    }
}

impl From<&core::Nearest> for Nearest {
    fn from(nearest: &core::Nearest) -> Self {
        Self {
            cluster_id: nearest.cluster.to_string(),
            less: nearest.less.as_ref().map(Amounts::from),
            more: nearest.more.as_ref().map(Amounts::from),
            cap: nearest.cap.as_ref().map(Amounts::from),
        }
    }
}

impl From<&core::Lift> for Lift {
    fn from(lift: &core::Lift) -> Self {
        Self {
            filter: super::candidate::filter_name(lift.filter).to_owned(),
            cluster_id: lift.cluster.to_string(),
            constraint: lift.constraint.as_ref().map(Constraint::from),
        }
    }
}
