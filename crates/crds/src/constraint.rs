//! What a provider's label must be like.

use serde::{Deserialize, Serialize};
use sublet_core::decision::{self, Match, Strategy};
use sublet_core::time::Span;

use crate::{Cause, Invalid};

/// What a provider's label must be like; its schema is [`crate::schema::constraints`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// The label.
    pub key: String,
    /// What is asked of it.
    pub operator: Operator,
    /// For `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What is asked of a label, with the meanings of Kubernetes' selectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// One that this version does not know.
    #[serde(other)]
    Other,
}

/// In the core's terms; `field` is where the list stands.
pub(crate) fn all(field: &str, list: &[Constraint]) -> Result<Vec<decision::Constraint>, Invalid> {
    let one = |(index, constraint): (usize, &Constraint)| {
        let values = constraint.values.clone();
        let is = match constraint.operator {
            Operator::In if !values.is_empty() => Match::In(values),
            Operator::NotIn if !values.is_empty() => Match::NotIn(values),
            Operator::Exists if values.is_empty() => Match::Exists,
            Operator::DoesNotExist if values.is_empty() => Match::Absent,
            Operator::Other => {
                return Err(Invalid::new(format!("{field}[{index}].operator"), Cause::Operator));
            }
            _ => return Err(Invalid::new(format!("{field}[{index}].values"), Cause::Values)),
        };
        Ok(decision::Constraint { label: constraint.key.clone(), is })
    };
    list.iter().enumerate().map(one).collect()
}

/// A strategy by its name; nothing if none was given.
pub(crate) fn strategy(name: Option<&str>) -> Result<Option<Strategy>, Invalid> {
    let Some(name) = given(name) else { return Ok(None) };
    let written = |strategy: &Strategy| serde_json::to_value(strategy).unwrap_or_default();
    let found = Strategy::ALL.into_iter().find(|strategy| written(strategy) == name);
    found.map(Some).ok_or_else(|| {
        let all: Vec<_> = Strategy::ALL
            .iter()
            .filter_map(|strategy| written(strategy).as_str().map(str::to_owned))
            .collect();
        Invalid::new("spec.strategy", Cause::Strategy(all.join(", ")))
    })
}

/// A length of time above zero; nothing if none was given.
pub(crate) fn span(field: &str, text: Option<&str>) -> Result<Option<Span>, Invalid> {
    let Some(text) = given(text) else { return Ok(None) };
    let span: Span =
        text.parse().map_err(|error: sublet_core::time::Error| Invalid::new(field, error))?;
    if span.is_zero() { Err(Invalid::new(field, Cause::NoTime)) } else { Ok(Some(span)) }
}

/// Go has an empty text where nothing was set.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
