//! Who is killed with SIGKILL, and started again as he was.

use std::time::Duration;

use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Controller, Part, Process, wait_for};

use super::step::Step;
use super::{Life, Side, World};

/// How long somebody is looked for who may be gone.
const A_MOMENT: Duration = Duration::from_secs(5);

/// Somebody who can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    RequesterAgent,
    ProviderAgent,
    Broker,
    RequesterManager,
    ProviderManager,
    RequesterReplicator,
    ProviderReplicator,
    RequesterWebhook,
    ProviderWebhook,
    VirtualKubelet,
    RequesterApiServer,
    ProviderApiServer,
}

impl Victim {
    /// All of them.
    pub(super) const ALL: [Self; 12] = [
        Self::RequesterAgent,
        Self::ProviderAgent,
        Self::Broker,
        Self::RequesterManager,
        Self::ProviderManager,
        Self::RequesterReplicator,
        Self::ProviderReplicator,
        Self::RequesterWebhook,
        Self::ProviderWebhook,
        Self::VirtualKubelet,
        Self::RequesterApiServer,
        Self::ProviderApiServer,
    ];

    /// Does he live when this step is taken?
    pub(super) fn is_there(self, step: Step) -> bool {
        self != Self::VirtualKubelet || step.has_kubelet()
    }

    /// Kills him, and starts him again.
    pub(super) fn die_and_rise(self, world: &mut World, step: Step, life: &Life) {
        match self {
            Self::RequesterAgent => restart(&world.shop.agent),
            Self::ProviderAgent => restart(&world.edge.agent),
            Self::Broker => world.town.restart(),
            Self::RequesterManager => restart_controller(&world.shop, Controller::Manager),
            Self::ProviderManager => restart_controller(&world.edge, Controller::Manager),
            Self::RequesterReplicator => restart_controller(&world.shop, Controller::Replicator),
            Self::ProviderReplicator => restart_controller(&world.edge, Controller::Replicator),
            Self::RequesterWebhook => restart_controller(&world.shop, Controller::Webhook),
            Self::ProviderWebhook => restart_controller(&world.edge, Controller::Webhook),
            Self::VirtualKubelet => restart_virtual_kubelet(&world.shop, step, life),
            Self::RequesterApiServer => restart_api_server(&world.shop),
            Self::ProviderApiServer => restart_api_server(&world.edge),
        }
    }
}

fn restart(process: &Process) {
    process.restart().unwrap();
}

/// It is started a little after its virtual node is made. Once that is to go, there may be none any more.
fn restart_virtual_kubelet(side: &Side, step: Step, life: &Life) {
    let must_come = step <= Step::Active;
    let patience = if must_come { PATIENCE } else { A_MOMENT };
    match wait_for("a virtual kubelet", patience, || side.liqo.virtual_kubelet(life.id())) {
        Ok(kubelet) => restart(&kubelet),
        Err(late) => assert!(!must_come, "{late}"),
    }
}

fn restart_controller(side: &Side, controller: Controller) {
    restart(side.liqo.controller(controller).expect("it is in the full tier"));
}

fn restart_api_server(side: &Side) {
    let cluster = &side.member.cluster;
    cluster.part(Part::ApiServer).kill();
    cluster.start_part(Part::ApiServer).unwrap();
}
