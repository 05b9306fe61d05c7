//! The same by `liqoctl`, which has the kubeconfigs of both clusters' administrators.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sublet_testkit::binaries::{Binaries, Kit, Program};
use sublet_testkit::wait::wall;

use super::figures::Figures;
use super::life::is_ready;
use super::sight::{Eyes, Kind, Place, Sight};
use super::stage::{PROVIDER, Stage};
use super::{CPU, MEMORY, PODS};

/// `liqoctl peer`, and `liqoctl unpeer`, so many times.
pub(super) fn measure(stage: &Stage, trials: usize) -> Result<(Figures, Figures)> {
    let program = Binaries::of_this_machine(Kit::Liqoctl)?.path(Program::Liqoctl);
    let mut eyes = Eyes::open(stage.requester()?, stage.provider()?);
    let (mut peers, mut unpeers) = (Figures::default(), Figures::default());
    // The first one fills caches, and does not count.
    for number in 0..=trials {
        let (mut peer, mut unpeer) = (Figures::default(), Figures::default());
        let (peer, unpeer) = match number {
            0 => (&mut peer, &mut unpeer),
            _ => (&mut peers, &mut unpeers),
        };
        eyes.blink();
        let began = wall();
        let sizes = ["--cpu", CPU, "--memory", MEMORY, "--pods", PODS, "--create-virtual-node"];
        run(program, stage, &[&["peer", "--networking-disabled"], sizes.as_slice()].concat())?;
        let ended = wall();
        let ready = |sight: &&Sight| is_node(sight) && is_ready(sight);
        let ready = eyes.wait("its node", |log| log.iter().find(ready).map(|sight| sight.at))?;
        peer.add("node Ready", ready.saturating_sub(began));
        peer.add("liqoctl peer has ended", ended.saturating_sub(began));
        eyes.blink();
        let began = wall();
        run(program, stage, &["unpeer", "--delete-namespaces"])?;
        let ended = wall();
        let gone = |sight: &&Sight| is_node(sight) && sight.object.is_none();
        let gone = eyes.wait("no node", |log| log.iter().find(gone).map(|sight| sight.at))?;
        unpeer.add("node gone", gone.saturating_sub(began));
        unpeer.add("liqoctl unpeer has ended", ended.saturating_sub(began));
    }
    Ok((peers, unpeers))
}

/// The only virtual node of a pair has the name of the other cluster.
fn is_node(sight: &Sight) -> bool {
    (sight.place, sight.kind, sight.name.as_str()) == (Place::Requester, Kind::Node, PROVIDER)
}

fn run(program: &Path, stage: &Stage, words: &[&str]) -> Result<()> {
    let (requester, provider) = (stage.requester()?, stage.provider()?);
    let mut command = Command::new(program);
    command.args(words).args(["--timeout", "60s", "--skip-confirm"]);
    command.arg("--kubeconfig").arg(requester.kubeconfig());
    command.arg("--remote-kubeconfig").arg(provider.kubeconfig());
    let output = command.output().with_context(|| format!("starting {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "liqoctl {}: {said}\n{text}", words.join(" "));
    Ok(())
}
