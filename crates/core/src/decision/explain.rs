//! Placeholder until the decision folder lands.
use super::Pick;
use crate::{books::Books, id::ClusterId, policy::Policy, reservation::Ask, time::Time};
use serde::{Deserialize, Serialize};
/// Why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {}
impl core::fmt::Display for Explanation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("-")
    }
}
/// Why it was granted.
pub fn granted(_: &Books, _: &ClusterId, _: &Ask, _: &Pick, _: &Policy, _: Time) -> Explanation {
    Explanation {}
}
/// Why it was refused.
pub fn refused(_: &Books, _: &ClusterId, _: &Ask, _: &Policy, _: Time) -> Explanation {
    Explanation {}
}
