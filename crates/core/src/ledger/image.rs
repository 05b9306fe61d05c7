//! The ledger as it is written into a snapshot: only what is not derived.

use alloc::collections::BTreeMap;
use alloc::{sync::Arc, vec::Vec};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Bond, Ledger, Stamp, Standing};
use crate::bugs::{Bug, planted};
use crate::event::{Note, Subject};
use crate::id::{ClusterId, Key, Revision};
use crate::reservation::Reservation;
use crate::time::Time;

#[derive(Deserialize)]
struct Image {
    revision: Revision,
    time: Time,
    arrivals: u64,
    reservations: Vec<Reservation>,
    tombstones: Vec<(Time, ClusterId, Key)>,
    standings: BTreeMap<ClusterId, Standing>,
    revoked: Vec<(Subject, Note)>,
    restored: Option<Revision>,
    #[serde(default)]
    restored_at: Option<Time>,
    #[serde(default)]
    horizon: Option<Revision>,
    #[serde(default)]
    horizon_at: Option<Time>,
}

struct Sequence<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Sequence<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut image = serializer.serialize_struct("Ledger", 11)?;
        image.serialize_field("revision", &self.stamp.revision)?;
        image.serialize_field("time", &self.stamp.time)?;
        image.serialize_field("arrivals", &self.arrivals)?;
        let reservations = self.reservations.values().map(Arc::as_ref);
        image.serialize_field("reservations", &Sequence(reservations))?;
        let kept = if planted(Bug::LosesSnapshotKeys) { 0 } else { usize::MAX };
        image.serialize_field("tombstones", &Sequence(self.tombstones.iter().take(kept)))?;
        image.serialize_field("standings", &self.standings)?;
        image.serialize_field("revoked", &Sequence(self.revoked.iter()))?;
        image.serialize_field("restored", &self.restored.map(|at| at.revision))?;
        image.serialize_field("restored_at", &self.restored.map(|at| at.time))?;
        image.serialize_field("horizon", &self.horizon.revision)?;
        image.serialize_field("horizon_at", &self.horizon.time)?;
        image.end()
    }
}

impl<'de> Deserialize<'de> for Ledger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let image = Image::deserialize(deserializer)?;
        // A snapshot without it is from before the time was kept: it was not later than this one.
        let time = image.restored_at.unwrap_or(image.time);
        // The same holds for what was forgotten, and for the first record.
        let horizon = Stamp {
            revision: image.horizon.unwrap_or(image.revision),
            time: image.horizon_at.unwrap_or(image.time),
        };
        let restored = image.restored.map(|revision| Stamp { revision, time });
        let mut ledger = Self {
            stamp: Stamp { revision: image.revision, time: image.time },
            arrivals: image.arrivals,
            standings: image.standings,
            revoked: image.revoked.into_iter().collect(),
            restored,
            horizon,
            ..Self::default()
        };
        for reservation in image.reservations {
            if let Some(key) = &reservation.key {
                let bond = Bond::Reservation(reservation.id);
                let taken = ledger.put_bond(&reservation.requester, key, Some(bond));
                refuse(taken.is_some(), "a key is bound twice")?;
            }
            let old = ledger
                .put(reservation.id, Some(Arc::new(reservation)))
                .map_err(de::Error::custom)?;
            refuse(old.is_some(), "a reservation is there twice")?;
        }
        for (at, requester, key) in image.tombstones {
            let taken = ledger.put_bond(&requester, &key, Some(Bond::Tombstone(at)));
            refuse(taken.is_some(), "a key is bound twice")?;
        }
        Ok(ledger)
    }
}

fn refuse<E: de::Error>(wrong: bool, why: &'static str) -> Result<(), E> {
    if wrong { Err(E::custom(why)) } else { Ok(()) }
}
