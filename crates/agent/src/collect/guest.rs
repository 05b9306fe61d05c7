//! Pods that another cluster runs here, as Liqo marks them.
//!
//! A reservation is one slice, of the same name. Liqo's webhook lets pods into a slice by the user of
//! its certificate, and writes that user on them; so that name cannot be claimed by another cluster.
//! Versions that do not write it still say the slice and the cluster that it came from.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

const MANAGED_BY: &str = "liqo.io/managed-by";
const SHADOW_POD: &str = "shadowpod";
const USER: &str = "liqo.io/creator-user";
const SLICE: &str = "offloading.liqo.io/nodename";
const ORIGIN: &str = "offloading.liqo.io/origin";

/// Whose pod it is, as far as its labels say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guest {
    /// By the user whose quota it takes from.
    User(Box<str>),
    /// By the slice that it was sent through, and the cluster that sent it.
    Slice {
        /// The name of the slice.
        name: Box<str>,
        /// The cluster.
        origin: Box<str>,
    },
}

impl Guest {
    /// The guest that these labels are about; none if the pod is at home here.
    pub fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        let label = |key: &str| labels.get(key).filter(|value| !value.is_empty());
        if labels.get(MANAGED_BY).is_none_or(|by| by != SHADOW_POD) {
            return None;
        }
        if let Some(user) = label(USER) {
            return Some(Self::User(user.as_str().into()));
        }
        let (name, origin) = (label(SLICE)?.as_str().into(), label(ORIGIN)?.as_str().into());
        Some(Self::Slice { name, origin })
    }

    /// The labels of what it has here, as a selector. Who says its user is not another's, whatever else it
    /// says.
    pub(crate) fn selector(&self) -> String {
        match self {
            Self::User(user) => format!("{USER}={user}"),
            Self::Slice { name, origin } => format!("!{USER},{SLICE}={name},{ORIGIN}={origin}"),
        }
    }

    /// The same of its pods alone.
    pub(crate) fn pods(&self) -> String {
        format!("{MANAGED_BY}={SHADOW_POD},{}", self.selector())
    }

    /// How the pods of a slice may be marked: by either of these.
    pub fn in_slice(name: &str, origin: &str) -> [Self; 2] {
        [
            Self::User(quota_user(name, origin).into()),
            Self::Slice { name: name.into(), origin: origin.into() },
        ]
    }
}

/// Pods of other clusters, as a selector.
pub(crate) fn guests() -> String {
    format!("{MANAGED_BY}={SHADOW_POD}")
}

/// What came through some slice and says no user, as a selector.
pub(crate) fn unclaimed() -> String {
    format!("!{USER},{SLICE},{ORIGIN}")
}

/// What says its user, as a selector.
pub(crate) fn claimed() -> String {
    USER.to_owned()
}

/// The user that something says, and the slice that is this user's.
pub(crate) fn claimant(labels: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    let user = labels.get(USER)?;
    let (slice, _) = user.rsplit_once('-')?;
    Some((user, slice))
}

/// The slice and the cluster that something came from which says no user.
pub(crate) fn came_through(labels: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    let label = |key: &str| labels.get(key).map(String::as_str);
    if label(USER).is_some() {
        return None;
    }
    Some((label(SLICE)?, label(ORIGIN)?))
}

/// The longest that a label's value may be.
const LABEL_MAX: usize = 63;

/// Can pods say that they are this user's? If not, nobody has any, and the API server does not look for them.
pub(crate) fn may_have_pods(user: &str) -> bool {
    user.len() <= LABEL_MAX
}

/// The user of a slice's certificate: its name, and twelve digits of a hash of the cluster's.
pub(crate) fn quota_user(slice: &str, origin: &str) -> String {
    let hash = Sha256::digest(origin);
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(12);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    format!("{slice}-{}", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_pod_is_a_guest_by_the_labels_that_liqo_writes() {
        let shadow = (MANAGED_BY, SHADOW_POD);
        let slice = [(SLICE, "rsv-a"), (ORIGIN, "shop")];
        let [user, by_slice] = Guest::in_slice("rsv-a", "shop");
        let Guest::User(name) = &user else { panic!("the first is by user") };
        let both = [shadow, (USER, name), slice[0], slice[1]];
        assert_eq!(Guest::of(&labels(&both)), Some(user.clone()));
        assert_eq!(Guest::of(&labels(&[shadow, slice[0], slice[1]])), Some(by_slice));
        for at_home in [&[][..], &[(USER, "x")], &slice, &[shadow], &[shadow, slice[0]]] {
            assert_eq!(Guest::of(&labels(at_home)), None, "{at_home:?}");
        }
        assert_eq!(Guest::of(&labels(&[(MANAGED_BY, "somebody"), (USER, "x")])), None);
    }

    #[test]
    fn what_a_guest_has_is_selected_by_the_same_labels() {
        let [user, by_slice] = Guest::in_slice("rsv-a", "shop");
        assert_eq!(user.selector(), "liqo.io/creator-user=rsv-a-8d9001d32c6a");
        assert_eq!(
            by_slice.pods(),
            "liqo.io/managed-by=shadowpod,!liqo.io/creator-user,\
             offloading.liqo.io/nodename=rsv-a,offloading.liqo.io/origin=shop"
        );
        let slice = [(SLICE, "rsv-a"), (ORIGIN, "shop")];
        assert_eq!(came_through(&labels(&slice)), Some(("rsv-a", "shop")));
        assert_eq!(came_through(&labels(&[slice[0], slice[1], (USER, "x")])), None);
        assert_eq!(came_through(&labels(&slice[..1])), None);
    }

    #[test]
    fn the_user_is_the_slice_and_twelve_digits_of_a_hash_of_the_cluster() {
        // printf shop | sha256sum
        assert_eq!(quota_user("rsv-a", "shop"), "rsv-a-8d9001d32c6a");
    }
}
