//! Whether the kinds in the cluster are ours. The Go system's have the same names and fewer fields,
//! and an API server drops without a word what a schema does not have: whoever does not notice writes
//! the same thing again and again.

use kube::api::PostParams;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde_json::Value;
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::instruction::Duty;
use sublet_core::resources::Resources;
use sublet_crds::{
    Advertisement, AdvertisementSpec, Number, ProviderInstruction, ReservationInstruction,
    ResourceMetrics, ResourceQuantities, from_time,
};

use crate::clock;
use crate::controllers::Record;
use crate::transport::Order;

/// A part of an object that was written and did not come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kind {kind} in this cluster is not ours, it loses {field}: it is the Go system's, or of another \
     version. Install ours with `sublet crds --for agent | kubectl apply --server-side \
     --force-conflicts -f -`"
)]
pub struct Lost {
    kind: String,
    field: String,
}

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The API server did not take it, or was not there.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// It took it, and lost something of it.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Is everything of this part, `spec` or `status`, there that was written?
pub(crate) fn kept<K>(part: &str, written: &K, back: &K) -> Result<(), Lost>
where
    K: Resource<DynamicType: Default> + Serialize,
{
    // What cannot be written as JSON was not written.
    let [written, back] =
        [written, back].map(|object| serde_json::to_value(object).unwrap_or_default());
    match first_missing(&written[part], back.get(part)) {
        None => Ok(()),
        Some(rest) => {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            Err(Lost { kind, field: format!("{part}{rest}") })
        }
    }
}

/// The way to the first thing that is not there any more.
fn first_missing(written: &Value, back: Option<&Value>) -> Option<String> {
    match (written, back) {
        (Value::Object(written), Some(Value::Object(back))) => {
            written.iter().find_map(|(name, value)| {
                let rest = first_missing(value, back.get(name))?;
                Some(format!(".{name}{rest}"))
            })
        }
        (Value::Array(written), Some(Value::Array(back))) => {
            written.iter().enumerate().find_map(|(at, value)| {
                let rest = first_missing(value, back.get(at))?;
                Some(format!("[{at}]{rest}"))
            })
        }
        (Value::Null, _) | (_, Some(_)) => None,
        // An empty one says nothing.
        (Value::Object(all), None) if all.is_empty() => None,
        (Value::Array(all), None) if all.is_empty() => None,
        (_, None) => Some(String::new()),
    }
}

/// Looks whether the kinds keep what we write, without writing it. If that cannot be found out, it is
/// said, and found out later.
pub(crate) async fn check(
    client: &Client,
    advertisements: &str,
    instructions: &str,
    cluster: &ClusterId,
) -> Result<(), Lost> {
    let api = |namespace: &str| Api::namespaced(client.clone(), namespace);
    tried(&api(advertisements), &advertisement(cluster)).await?;
    let order = order(cluster);
    tried(&Api::namespaced(client.clone(), instructions), &ProviderInstruction::new_of(&order))
        .await?;
    tried(&Api::namespaced(client.clone(), instructions), &ReservationInstruction::new_of(&order))
        .await
}

async fn tried<K>(api: &Api<K>, object: &K) -> Result<(), Lost>
where
    K: Resource<DynamicType: Default>
        + Clone
        + std::fmt::Debug
        + Serialize
        + serde::de::DeserializeOwned,
{
    let only_look = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&only_look, object).await {
        Ok(back) => kept("spec", object, &back),
        Err(error) => {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, kind, "it cannot be looked whether this kind is ours");
            Ok(())
        }
    }
}

/// One with all that the Go system's has not.
fn advertisement(cluster: &ClusterId) -> Advertisement {
    let none = || ResourceQuantities::from(&Resources::default());
    let spec = AdvertisementSpec {
        cluster_id: cluster.to_string(),
        resources: ResourceMetrics {
            capacity: none(),
            allocatable: none(),
            allocated: none(),
            available: none(),
            used: None,
            lent: Some(none()),
        },
        cost: None,
        timestamp: from_time(clock::now()),
        labels: [("sublet".to_owned(), "probe".to_owned())].into(),
        number: Some(Number { incarnation: 1, sequence: 1 }),
        lending: Some(false),
    };
    Advertisement::new("sublet-probe", spec)
}

fn order(peer: &ClusterId) -> Order {
    Order {
        reservation: ReservationId::FIRST.to_string(),
        side: sublet_core::instruction::Side::Provider,
        peer: peer.clone(),
        duty: Duty::TakeDown,
        amounts: Resources::new(1000, 1 << 30),
        expires_at: None,
        generation: Some(Generation(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_did_not_come_back_is_named() {
        let written = json!({ "a": 1, "b": { "c": [{ "d": 1 }], "e": {} }, "f": null, "g": [] });
        let missing = |back: Value| first_missing(&written, Some(&back));
        assert_eq!(missing(written.clone()), None);
        assert_eq!(missing(json!({ "a": "1", "b": { "c": [{ "d": 2, "new": 1 }] } })), None);
        assert_eq!(missing(json!({ "b": { "c": [{ "d": 1 }] } })).as_deref(), Some(".a"));
        assert_eq!(missing(json!({ "a": 1, "b": { "c": [{}] } })).as_deref(), Some(".b.c[0].d"));
        assert_eq!(missing(json!({ "a": 1, "b": { "c": [] } })).as_deref(), Some(".b.c[0]"));
        assert_eq!(first_missing(&written, None).as_deref(), Some(""));
    }

    #[test]
    fn a_lost_field_is_told_with_what_to_do() {
        let written = advertisement(&"rome".parse().unwrap());
        let mut back = written.clone();
        assert_eq!(kept("spec", &written, &back), Ok(()));
        back.spec.number = None;
        let said = kept("spec", &written, &back).unwrap_err().to_string();
        assert!(said.starts_with(
            "the kind Advertisement in this cluster is not ours, it loses spec.number:"
        ));
        assert!(
            said.contains(
                "sublet crds --for agent | kubectl apply --server-side --force-conflicts"
            )
        );
        assert_eq!(kept("status", &written, &back), Ok(()), "there is none");
    }
}
