//! The steps of a life, each known by what everybody can see.

use serde_json::Value;

use super::{Life, World};

const AUTHENTICATION: &str = "/apis/authentication.liqo.io/v1beta1/namespaces";
const OFFLOADING: &str = "/apis/offloading.liqo.io/v1beta1/namespaces";
const OURS: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet";

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The request is there.
    Asked,
    /// The broker has granted it.
    Granted,
    /// The provider's agent has been told.
    Instructed,
    /// The requester is a tenant of the provider.
    Tenant,
    /// The requester has an identity there.
    Identity,
    /// The requester has asked for a slice.
    Slice,
    /// The provider has granted it.
    SliceGranted,
    /// Liqo has made a virtual node of it.
    VirtualNode,
    /// That is a node.
    Node,
    /// It is usable, by everybody's word.
    Active,
    /// The request is being deleted.
    Released,
    /// The node takes no more pods, or is gone.
    Cordoned,
    /// The virtual node is going, or gone.
    NodeGone,
    /// The slice is going, or gone.
    SliceGoing,
    /// Nothing is left of it at the provider.
    SliceGone,
    /// The broker has the capacity back.
    Free,
    /// The identity is gone.
    IdentityGone,
    /// The tenant is gone.
    TenantGone,
}

impl Step {
    /// Until it is usable.
    pub(super) const COMING: [Self; 10] = [
        Self::Asked,
        Self::Granted,
        Self::Instructed,
        Self::Tenant,
        Self::Identity,
        Self::Slice,
        Self::SliceGranted,
        Self::VirtualNode,
        Self::Node,
        Self::Active,
    ];
    /// Until nothing is left.
    pub(super) const GOING: [Self; 8] = [
        Self::Released,
        Self::Cordoned,
        Self::NodeGone,
        Self::SliceGoing,
        Self::SliceGone,
        Self::Free,
        Self::IdentityGone,
        Self::TenantGone,
    ];

    /// Whether there may be a virtual kubelet when it is taken.
    pub(super) fn has_kubelet(self) -> bool {
        (Self::VirtualNode..=Self::Cordoned).contains(&self)
    }

    /// Is it taken, or a later one? Not where that cannot be seen now.
    pub(super) fn is_taken(self, world: &World, life: &mut Life) -> Option<()> {
        // Whoever is killed at the first step is killed at once.
        if life.id.is_none() && self != Self::Asked {
            life.id = reservation(world, life);
        }
        let id = life.id();
        let slice = format!("{AUTHENTICATION}/liqo-tenant-edge/resourceslices/{id}");
        let copy = format!("{AUTHENTICATION}/liqo-tenant-shop/resourceslices/{id}");
        let virtual_node = format!("{OFFLOADING}/liqo-tenant-edge/virtualnodes/{id}");
        let node = format!("/api/v1/nodes/{id}");
        let identity = format!("{AUTHENTICATION}/liqo-tenant-edge/identities/controlplane-edge");
        let tenant = format!("{AUTHENTICATION}/liqo-tenant-shop/tenants/shop");
        let (shop, edge) = (&world.shop, &world.edge);
        let is_there = match self {
            // The deletion has just been asked for, as the request has.
            Self::Asked | Self::Released => true,
            Self::Granted => life.id.is_some(),
            Self::Instructed => {
                edge.get(&format!("{OURS}/providerinstructions/{id}-provider")).is_some()
            }
            Self::Tenant => edge.get(&tenant).is_some(),
            Self::Identity => shop.get(&identity).is_some(),
            Self::Slice => shop.get(&slice).is_some(),
            Self::SliceGranted => edge.get(&copy).is_some_and(|slice| is_granted(&slice)),
            Self::VirtualNode => shop.get(&virtual_node).is_some(),
            Self::Node => shop.get(&node).is_some(),
            Self::Active => shop.request(&life.request)?["status"]["phase"] == "Active",
            Self::Cordoned => {
                shop.is_gone(&node) || shop.get(&node)?["spec"]["unschedulable"] == true
            }
            Self::NodeGone => is_going(shop, &virtual_node),
            Self::SliceGoing => is_going(shop, &slice),
            Self::SliceGone => edge.is_gone(&copy),
            Self::Free => reservation_phase(world, id)? == "Released",
            Self::IdentityGone => shop.is_gone(&identity),
            Self::TenantGone => edge.is_gone(&tenant),
        };
        is_there.then_some(())
    }
}

/// The reservation of this life, by the broker's word.
fn reservation(world: &World, life: &Life) -> Option<String> {
    let request = world.shop.request(&life.request)?;
    let key = request["metadata"]["uid"].as_str()?.to_owned();
    let list = world.town.anna.run("get reservations --all -o json");
    let list: Value = serde_json::from_str(&list.out).ok()?;
    let found = list.as_array()?.iter().find(|one| one["key"] == key)?;
    found["id"].as_str().map(str::to_owned)
}

fn reservation_phase(world: &World, id: &str) -> Option<String> {
    let list = world.town.anna.run(&format!("get reservations {id} -o json"));
    let list: Value = serde_json::from_str(&list.out).ok()?;
    list[0]["status"]["phase"].as_str().map(str::to_owned)
}

fn is_going(side: &super::Side, path: &str) -> bool {
    match side.get(path) {
        Some(object) => object["metadata"]["deletionTimestamp"].is_string(),
        None => side.is_gone(path),
    }
}

fn is_granted(slice: &Value) -> bool {
    condition(slice, "Resources") == Some("Accepted")
}

pub(super) fn is_ready(node: &Value) -> bool {
    condition(node, "Ready") == Some("True")
}

fn condition<'a>(object: &'a Value, about: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == about)?["status"].as_str()
}
