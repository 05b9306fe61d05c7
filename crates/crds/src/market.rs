//! What both kinds of advertisement share beside amounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What lending costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostInfo {
    /// Per core and hour, in decimals of the currency with at most six places.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu_cost: String,
    /// Per GB and hour, in the same way.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory_cost: String,
    /// As the operator writes it, for example EUR.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub currency: String,
}

/// Orders the advertisements of one cluster: a later start of the agent, then a later number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Number {
    /// Grows with each start of the agent.
    #[schemars(schema_with = "schema::counter")]
    pub incarnation: i64,
    /// Grows with each advertisement of one start.
    #[schemars(schema_with = "schema::counter")]
    pub sequence: i64,
}
