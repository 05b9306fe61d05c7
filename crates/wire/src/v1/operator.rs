//! What operators decide: each with a reason in their words, which the log keeps.

use serde::Serialize;
use sublet_core::event::{self, Subject};
use sublet_core::id::ClusterId;
use sublet_core::resources::Limits;

use super::reservation_text::actor;
use super::{Amounts, is_false};
use crate::decode::object;
use crate::problem::Invalid;

/// The body of a decision that needs no more than its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Why {
    /// Why, for whoever reads the log later; not empty.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub why: String,
}

/// The body of a decision about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ClusterDecision {
    /// Why, for whoever reads the log later; not empty.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub why: String,
    /// Also about a cluster that nobody has heard of; without it that is taken for a slip.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// The most that a cluster lends in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Cap {
    /// By resource; what is not named is not bounded, and an empty one lifts the cap.
    #[serde(default)]
    pub limits: Amounts,
    /// Why, for whoever reads the log later; not empty.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub why: String,
    /// Also about a cluster that nobody has heard of; without it that is taken for a slip.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// A cluster, or one certificate, that is believed no longer, or again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Revocation {
    /// Every certificate of this cluster.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Or one certificate, by its serial number in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Who decided it; only in answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, for whoever reads the log later; not empty.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub why: String,
}

/// Everything that is revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RevocationList {
    /// Clusters, then serial numbers.
    pub revocations: Vec<Revocation>,
}

/// Who decided something, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Note {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

object!(Why { "why" => why });
object!(ClusterDecision { "why" => why, "force" => force });
object!(Cap { "limits" => limits, "why" => why, "force" => force });
object!(Revocation { "clusterID" => cluster_id, "serial" => serial, "by" => by, "why" => why });
object!(RevocationList { "revocations" => revocations });
object!(Note { "by" => by, "why" => why });

/// A reason that says something: what operators decide is in the log with who and why.
pub fn why(sent: String) -> Result<String, Invalid> {
    if sent.trim().is_empty() {
        let what = "say why, for whoever reads the log later";
        return Err(Invalid::field("why".to_owned(), what));
    }
    Ok(sent)
}

impl Cap {
    /// The bounds.
    pub fn to_core(&self) -> Result<Limits, Invalid> {
        self.limits.limits("limits")
    }
}

impl Revocation {
    /// The longest serial number, in hex digits. RFC 5280 allows 40, but what a broker believes it must
    /// be able to revoke.
    pub const SERIAL_MAX: usize = 128;

    /// What is meant: a cluster or a serial number, not both.
    pub fn to_core(&self) -> Result<Subject, Invalid> {
        match (&self.cluster_id, &self.serial) {
            (Some(cluster), None) => cluster
                .parse::<ClusterId>()
                .map(Subject::Cluster)
                .map_err(|error| Invalid::field("clusterID".to_owned(), error)),
            (None, Some(serial)) => Self::plain(serial).map(Subject::Serial).ok_or_else(|| {
                let what = "write a serial number of at most 128 hex digits, as openssl prints it";
                Invalid::field("serial".to_owned(), what)
            }),
            _ => {
                let what = "name a cluster or a serial number, one of the two";
                Err(Invalid::field("clusterID".to_owned(), what))
            }
        }
    }

    /// A serial number as the ledger keeps it: lower-case hex without colons and leading zeros.
    pub fn plain(serial: &str) -> Option<String> {
        let digits: String = serial.chars().filter(|c| *c != ':').collect();
        let number = digits.trim_start_matches('0').to_ascii_lowercase();
        let number = if number.is_empty() && !digits.is_empty() { "0".to_owned() } else { number };
        let fits = (1..=Self::SERIAL_MAX).contains(&number.len());
        (fits && number.bytes().all(|b| b.is_ascii_hexdigit())).then_some(number)
    }

    /// As the broker knows it.
    pub fn of(subject: &Subject, note: &event::Note) -> Self {
        let (cluster_id, serial) = match subject {
            Subject::Cluster(cluster) => (Some(cluster.to_string()), None),
            Subject::Serial(serial) => (None, Some(serial.clone())),
        };
        Self { cluster_id, serial, by: Some(actor(&note.by)), why: note.why.clone() }
    }
}

impl From<&event::Note> for Note {
    fn from(note: &event::Note) -> Self {
        Self { by: actor(&note.by), why: note.why.clone() }
    }
}
