//! What liqoctl is told, as arguments.
//!
//! All of it is made of types that are checked: names of clusters and of resources, amounts, absolute
//! paths. The network is never touched: it is Liqo's own business.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sublet_core::id::ClusterId;

use super::names::RESERVATIONS;
use crate::peering::liqo::List;

/// How many reservations are named on a slice, at most: for people, and to know an orphan.
const NAMED_MAX: usize = 200;

/// With which two clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kubeconfigs {
    /// That of this cluster.
    pub(super) own: PathBuf,
    /// That of the provider.
    pub(super) remote: PathBuf,
}

/// `liqoctl peer`: the clusters are joined, and the one slice of the pair asks for exactly this. Run
/// again, it changes the size of the slice.
pub(super) fn peer(
    pair: &Kubeconfigs,
    sizes: &List,
    reservations: &[String],
    limit: Duration,
) -> Vec<OsString> {
    let mut all = common("peer", pair, limit);
    all.extend(["--networking-disabled", "--create-virtual-node"].map(OsString::from));
    for (name, amount) in sizes {
        match name.as_str() {
            "cpu" | "memory" | "pods" => {
                all.extend([format!("--{name}").into(), amount.0.clone().into()]);
            }
            name => all.extend(["--resource".into(), format!("{name}={}", amount.0).into()]),
        }
    }
    let named = format!("{RESERVATIONS}={}", named(reservations));
    all.extend(["--global-annotations".into(), named.into()]);
    all
}

/// `liqoctl unpeer`: slices, virtual nodes, identity, tenant, and what there is of a network.
pub(super) fn unpeer(pair: &Kubeconfigs, limit: Duration) -> Vec<OsString> {
    common("unpeer", pair, limit)
}

/// `liqoctl unauthenticate`: identity and tenant alone; it refuses while there are slices.
pub(super) fn unauthenticate(pair: &Kubeconfigs, limit: Duration) -> Vec<OsString> {
    common("unauthenticate", pair, limit)
}

/// The reservations of a slice, as they are written on it.
pub(super) fn named(reservations: &[String]) -> String {
    let known = reservations.iter().take(NAMED_MAX).map(String::as_str);
    known.collect::<Vec<_>>().join("/")
}

/// The reservations that were written on a slice.
pub(super) fn read_named(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').filter(|name| !name.is_empty())
}

/// Where the kubeconfig of a cluster is, in the folder of all of them.
pub(super) fn place(folder: &Path, cluster: &ClusterId) -> PathBuf {
    // The name of a cluster is a DNS label: it has neither dots nor slashes.
    folder.join(format!("{cluster}.kubeconfig"))
}

fn common(verb: &str, pair: &Kubeconfigs, limit: Duration) -> Vec<OsString> {
    vec![
        verb.into(),
        "--kubeconfig".into(),
        pair.own.clone().into(),
        "--remote-kubeconfig".into(),
        pair.remote.clone().into(),
        "--timeout".into(),
        format!("{}s", limit.as_secs().max(1)).into(),
        "--skip-confirm".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peering::liqo::{Extras, asked};
    use sublet_core::resources::{Kind, Resources};

    fn pair() -> Kubeconfigs {
        Kubeconfigs { own: "/k/rome.kubeconfig".into(), remote: "/k/milan.kubeconfig".into() }
    }

    fn text(all: &[OsString]) -> String {
        let all: Vec<_> = all.iter().map(|one| one.to_string_lossy()).collect();
        all.join(" ")
    }

    #[test]
    fn a_slice_is_asked_for_in_exactly_these_amounts() {
        let amounts = Resources::new(1500, 5 << 30).with(Kind::Gpu, 2).unwrap();
        let amounts = amounts.with("example.com/fpga".parse().unwrap(), 1).unwrap();
        let sizes = asked(&amounts, Extras { pods: 33, storage: 1 << 30 });
        let names = ["rsv-a".to_owned(), "rsv-b".to_owned()];
        let arguments = peer(&pair(), &sizes, &names, Duration::from_mins(5));
        assert_eq!(
            text(&arguments),
            "peer --kubeconfig /k/rome.kubeconfig --remote-kubeconfig /k/milan.kubeconfig \
             --timeout 300s --skip-confirm --networking-disabled --create-virtual-node \
             --cpu 1500m --resource ephemeral-storage=1Gi --resource example.com/fpga=1 \
             --memory 5Gi --resource nvidia.com/gpu=2 --pods 33 \
             --global-annotations sublet.io/reservations=rsv-a/rsv-b"
        );
    }

    #[test]
    fn the_end_is_asked_for_with_both_kubeconfigs() {
        let rest = "--kubeconfig /k/rome.kubeconfig --remote-kubeconfig /k/milan.kubeconfig \
                    --timeout 1s --skip-confirm";
        let limit = Duration::from_millis(10);
        assert_eq!(text(&unpeer(&pair(), limit)), format!("unpeer {rest}"));
        assert_eq!(text(&unauthenticate(&pair(), limit)), format!("unauthenticate {rest}"));
    }

    #[test]
    fn names_on_a_slice_are_read_as_they_were_written_and_bounded() {
        let names = ["rsv-a".to_owned(), "rsv-b.c".to_owned()];
        assert!(read_named(&named(&names)).eq(names.iter()));
        assert_eq!(read_named("").count(), 0);
        let many: Vec<_> = (0..1000).map(|number| format!("rsv-{number}")).collect();
        assert_eq!(read_named(&named(&many)).count(), NAMED_MAX);
    }
}
