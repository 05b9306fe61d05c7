//! What an agent does once it is its turn: measures, publishes, and does what the broker wants done.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use sublet_core::advertisement::Capabilities;
use sublet_core::id::ClusterId;
use sublet_core::time::Span;
use sublet_process::Ready;
use sublet_wire::client::{Credentials, Options};
use tokio::sync::watch;

use crate::advertise::Profile;
use crate::collect::NodeRules;
use crate::config::Config;
use crate::controllers::{self, Context};
use crate::error::Error;
use crate::join::Join;
use crate::metrics::Metrics;
use crate::peering::Peering;
use crate::publish::{Grid, Object, Publisher};
use crate::run::Tasks;
use crate::transport::{Broker, Http, Local};
use crate::watch::{Collector, Grants, Told};
use crate::{clock, kinds};

/// What it works with.
pub(crate) struct Work<'a> {
    pub(crate) config: &'a Config,
    pub(crate) client: Client,
    pub(crate) cluster: ClusterId,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ready: Ready,
}

impl Work<'_> {
    /// Begins.
    pub(crate) async fn begin(self, tasks: &mut Tasks) -> Result<(), Error> {
        let Self { config, client, cluster, metrics, ready } = self;
        let broker = broker(config)?;
        let join =
            Join { config, client: &client, cluster: &cluster, broker: &broker, metrics: &metrics };
        let peering = join.begin(tasks).await?;
        let profile = profile(config, cluster, peering.as_ref());
        profile.check().map_err(Error::Profile)?;
        let (namespace, name) = (&config.advertisement_namespace, &config.advertisement_name);
        let object = Object::open(&client, namespace, name).await?;
        kinds::check(&client, namespace, &config.instruction_namespace, &profile.cluster).await?;
        let rules = NodeRules { tolerated: config.tolerated.clone() };
        let instructions = &config.instruction_namespace;
        let (mut collector, told) =
            Collector::new(&client, instructions, rules, Arc::clone(&metrics));
        let (grants, blind) = (collector.grants(), collector.blind());
        let grid = Grid::new(&profile.cluster, config.interval, config.spread);
        let unwilling = peering.unwilling();
        let desk = Context::new(client, Arc::clone(&broker), peering, instructions, clock::now)
            .with_metrics(Arc::clone(&metrics));
        let contact = desk.contact();
        let publisher = Publisher::new(profile, grid, broker, object, metrics)
            .unless(unwilling)
            .that_may_not_see(blind);
        tasks.own("the readiness", become_ready(told.clone(), ready, tasks.stopping()));
        tasks.own("the publisher", publisher.run(told, contact, tasks.stopping()));
        tasks.own("the watches", collector.run(tasks.stopping()));
        tasks.own("the controllers", act(desk, grants, tasks.stopping()));
        Ok(())
    }
}

/// Does what is to be done until everything stops; it can be cut anywhere.
async fn act(desk: Context, grants: Grants, mut stopping: watch::Receiver<bool>) {
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => {}
        never = controllers::run(desk, Some(grants)) => match never {},
    }
}

/// Ready from when everything was listed once, until everything stops.
async fn become_ready(mut told: Told, ready: Ready, mut stopping: watch::Receiver<bool>) {
    let listed = async {
        // Without a collector the agent ends anyhow.
        let listed = told.wait_for(Option::is_some).await.is_ok();
        ready.set(listed);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => ready.set(false),
        () = listed => {}
    }
}

fn profile(config: &Config, cluster: ClusterId, peering: &dyn Peering) -> Profile {
    let can = Capabilities {
        acknowledge: true,
        activate: true,
        renew: true,
        stream: true,
        backends: [peering.backend()].into(),
    };
    Profile {
        name: config.advertisement_name.clone(),
        labels: config.labels.clone(),
        region: config.region.clone(),
        cost: config.cost.clone(),
        capabilities: (&can).into(),
        lending: config.lend,
        offer: config.offer.clone(),
        ..Profile::plain(cluster)
    }
}

fn broker(config: &Config) -> Result<Arc<dyn Broker>, Error> {
    let Some(at) = &config.broker else { return Ok(Arc::new(Local)) };
    let credentials = Credentials::from_folder(&at.cert_path).map_err(Error::Credentials)?;
    let options = Options::new(at.urls.clone(), credentials);
    let poll_every = config.poll_every.map(duration);
    Ok(Arc::new(Http::new(options, poll_every).map_err(Error::Broker)?))
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.as_millis())
}
