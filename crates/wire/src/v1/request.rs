//! What a requester asks for.

use serde::{Deserialize, Serialize};
use sublet_core::advertisement::{Backend, Backends};
use sublet_core::decision::{self, Match, Strategy};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Resources};
use sublet_core::time::{self, Span};

use super::{Quantities, is_false};
use crate::decode::{leaf, object};
use crate::problem::Invalid;

/// What a requester asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReservationRequest {
    /// How much; some cpu and some memory at least.
    pub requested_resources: Quantities,
    /// Higher goes first among those that arrive or wait together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// For how long, as a Go duration such as `1h30m`; without it, the operator's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The one provider that will do, if only one will.
    #[serde(rename = "targetClusterID", default, skip_serializing_if = "Option::is_none")]
    pub target_cluster_id: Option<String>,
    /// What the provider's labels must be like; all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How to choose: `headroom`, `binpack` or `cost`; without it, as the broker does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// How long it may wait for something to fit, as a Go duration; without it, not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// Whether the answer comes with its reasons.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explain: bool,
    /// Whether the requester will confirm use; there is a deadline for that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub activates: bool,
    /// How the requester can be joined: `liqo`, `liqoctl`, `none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
}

/// What a provider's label must be like, with the meanings of Kubernetes' selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Constraint {
    /// The label.
    pub key: String,
    /// What is asked of it.
    pub operator: Operator,
    /// For `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What is asked of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub enum Operator {
    /// One of the values.
    #[default]
    In,
    /// None of the values, or absent.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

leaf!(Operator);
object!(Constraint { "key" => key, "operator" => operator, "values" => values });
object!(ReservationRequest {
    "requestedResources" => requested_resources,
    "priority" => priority,
    "duration" => duration,
    "targetClusterID" => target_cluster_id,
    "constraints" => constraints,
    "strategy" => strategy,
    "wait" => wait,
    "explain" => explain,
    "activates" => activates,
    "backends" => backends,
});

impl ReservationRequest {
    /// What is asked, checked in the Go broker's order and refused in its words.
    pub fn to_core(&self) -> Result<Ask, Invalid> {
        let resources = asked(&self.requested_resources)?;
        let target = given(self.target_cluster_id.as_deref());
        let target =
            target.map(|id| id.parse().map_err(|e| at("targetClusterID", e))).transpose()?;
        let strategy = given(self.strategy.as_deref()).map(strategy).transpose()?;
        let wait = given(self.wait.as_deref());
        let wait = wait.map(|text| text.parse().map_err(|e: time::Error| at("wait", e)));
        Ok(Ask {
            resources,
            priority: self.priority,
            target,
            constraints: constraints(&self.constraints)?,
            strategy,
            duration: duration(self.duration.as_deref())?,
            wait: wait.transpose()?,
            activates: self.activates,
            backends: backends(&self.backends, "backends")?,
        })
    }
}

/// What an agent sends; it is read back as the same.
impl From<&Ask> for ReservationRequest {
    fn from(ask: &Ask) -> Self {
        Self {
            requested_resources: (&ask.resources).into(),
            priority: ask.priority,
            duration: ask.duration.map(|span| span.to_string()),
            target_cluster_id: ask.target.as_ref().map(ToString::to_string),
            constraints: ask.constraints.iter().map(Constraint::from).collect(),
            strategy: ask.strategy.map(|strategy| strategy_name(strategy).to_owned()),
            wait: ask.wait.map(|span| span.to_string()),
            explain: false,
            activates: ask.activates,
            backends: ask.backends.iter().map(|one| backend_name(one).to_owned()).collect(),
        }
    }
}

/// The amounts of a request; cpu and memory must be there and be more than nothing.
pub(crate) fn asked(amounts: &Quantities) -> Result<Resources, Invalid> {
    const FIELD: &str = "requestedResources";
    if amounts.cpu.is_empty() || amounts.memory.is_empty() {
        let said = "requestedResources.cpu and requestedResources.memory are required";
        return Err(Invalid::said(FIELD, said.to_owned()));
    }
    let cpu = basic("requestedResources.cpu", "CPU", &amounts.cpu)?;
    let memory = basic("requestedResources.memory", "memory", &amounts.memory)?;
    if cpu.signum() <= 0 || memory.signum() <= 0 {
        let said = "Requested CPU and memory must be greater than zero";
        return Err(Invalid::said(FIELD, said.to_owned()));
    }
    if amounts.gpu.is_some() || amounts.storage.is_some() || !amounts.others.is_empty() {
        return amounts.resources(FIELD, Round::Up);
    }
    let amount = |kind: Kind, quantity: &Quantity| {
        let field = || format!("{FIELD}.{kind}");
        kind.amount(quantity, Round::Up).map_err(|error| Invalid::field(field(), error))
    };
    Ok(Resources::new(amount(Kind::Cpu, &cpu)?, amount(Kind::Memory, &memory)?))
}

fn basic(field: &str, name: &str, text: &str) -> Result<Quantity, Invalid> {
    text.parse().map_err(|error| Invalid::said(field, format!("Invalid {name} quantity: {error}")))
}

/// A duration that is longer than nothing; none when none was given.
pub(crate) fn duration(text: Option<&str>) -> Result<Option<Span>, Invalid> {
    let Some(text) = given(text) else { return Ok(None) };
    let refuse = |why: String| Invalid::said("duration", format!("Invalid duration: {why}"));
    match text.parse::<Span>() {
        Ok(span) if !span.is_zero() => Ok(Some(span)),
        Ok(_) | Err(time::Error::Negative) => {
            let why = "it must be longer than 0: leave it out, or write one such as 1h30m";
            Err(refuse(why.to_owned()))
        }
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// Go sends an empty text where nothing was set.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn at(field: &str, cause: impl std::fmt::Display) -> Invalid {
    Invalid::field(field.to_owned(), cause)
}

fn constraints(all: &[Constraint]) -> Result<Vec<decision::Constraint>, Invalid> {
    let checked = all.iter().enumerate().map(|(index, constraint)| {
        let needs = matches!(constraint.operator, Operator::In | Operator::NotIn);
        let what = match constraint {
            one if one.key.is_empty() => "a constraint needs a key: the label that it is about",
            one if needs && one.values.is_empty() => "In and NotIn need at least one value",
            one if !needs && !one.values.is_empty() => "Exists and DoesNotExist take no values",
            _ => return Ok(decision::Constraint::from(constraint)),
        };
        Err(Invalid::field(format!("constraints[{index}]"), what))
    });
    checked.collect()
}

fn strategy(name: &str) -> Result<Strategy, Invalid> {
    let found = Strategy::ALL.into_iter().find(|strategy| strategy_name(*strategy) == name);
    found.ok_or_else(|| {
        let known = Strategy::ALL.map(strategy_name).join(", ");
        at("strategy", format!("there is no such strategy: use one of {known}"))
    })
}

/// A strategy as the wire names it.
pub(crate) fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Headroom => "headroom",
        Strategy::Binpack => "binpack",
        Strategy::Cost => "cost",
    }
}

/// The backends that we know of those named. Unknown ones are passed over, because a newer agent
/// may have more; but naming only unknown ones is not the same as naming none, and is refused.
pub(crate) fn backends(names: &[String], field: &str) -> Result<Backends, Invalid> {
    let known = |name: &String| Backend::ALL.into_iter().find(|known| backend_name(*known) == name);
    let found: Backends = names.iter().filter_map(known).collect();
    if found.is_empty() && !names.is_empty() {
        let known = Backend::ALL.map(backend_name).join(", ");
        return Err(at(field, format!("none of these is known here: use one of {known}")));
    }
    Ok(found)
}

/// A backend as the wire names it.
pub(crate) fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Liqo => "liqo",
        Backend::Liqoctl => "liqoctl",
        Backend::None => "none",
    }
}

impl From<&Constraint> for decision::Constraint {
    fn from(constraint: &Constraint) -> Self {
        let values = || constraint.values.clone();
        let is = match constraint.operator {
            Operator::In => Match::In(values()),
            Operator::NotIn => Match::NotIn(values()),
            Operator::Exists => Match::Exists,
            Operator::DoesNotExist => Match::Absent,
        };
        Self { label: constraint.key.clone(), is }
    }
}

impl From<&decision::Constraint> for Constraint {
    fn from(constraint: &decision::Constraint) -> Self {
        let (operator, values) = match &constraint.is {
            Match::In(values) => (Operator::In, values.clone()),
            Match::NotIn(values) => (Operator::NotIn, values.clone()),
            Match::Exists => (Operator::Exists, Vec::new()),
            Match::Absent => (Operator::DoesNotExist, Vec::new()),
        };
        Self { key: constraint.label.clone(), operator, values }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}
