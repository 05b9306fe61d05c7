//! What a step of the script does to the world.

use sublet_core::event::Subject;
use sublet_core::id::ClusterId;
use sublet_core::plan::{Action, Command, Which};
use sublet_core::reservation::Actor;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Time;
use sublet_log::{Log, snapshot};

use super::agent::{FPGA, draw_labels, fpgas, with_fpgas};
use super::client::Request;
use super::{EPOCH_MS, Task, World};
use crate::dice::Dice;
use crate::home::Fate;
use crate::message::{Order, Party};
use crate::script::{Act, Step};

/// Jumps of a wall clock, from a second to ten years.
const JUMPS_MS: [i64; 6] =
    [1000, 60_000, 3_600_000, 23 * 3_600_000, 30 * 24 * 3_600_000, 3650 * 24 * 3_600_000];

impl World {
    pub(super) fn act(&mut self, step: Step) {
        let mut dice = Dice::new(step.dice);
        self.trace.say(self.now, format_args!("step {} {:?}", step.number, step.act));
        let (broker, agent) = (dice.index(self.brokers.len()), dice.index(self.agents.len()));
        let longest = if dice.chance(200) { 150_000 } else { 8000 };
        let until = self.now + dice.between(200, longest);
        match step.act {
            Act::Ask => self.ask(dice),
            Act::Crowd => self.crowd(&mut dice),
            Act::CrashBroker => self.kill(broker, dice.between(10, 8000)),
            Act::PauseBroker => {
                // A later pause does not end an earlier one.
                let paused = &mut self.brokers[broker].paused_until;
                *paused = (*paused).max(until.min(self.now + 40_000));
            }
            Act::PowerLoss => self.lose_power(&mut dice),
            Act::JumpWall => self.jump_wall(broker, &mut dice),
            Act::CutLog => self.brokers[broker].cut_until = until,
            Act::CutAgent => {
                self.cuts.insert((agent, broker), until);
            }
            Act::CrashAgent => self.kill_agent(agent, dice.between(10, 60_000)),
            Act::Pods => self.move_pods(agent, &mut dice),
            Act::Nodes => self.move_nodes(agent, &mut dice),
            Act::Operate => self.decide(&mut dice),
            Act::Snapshot => {
                if let Err(error) = snapshot::take(&self.home.handle(Fate::Fine)) {
                    self.fail("I20", format!("no snapshot can be taken: {error}"));
                }
            }
            Act::Restore => self.restore(&mut dice),
            Act::Compact => {
                let all = Time::from_millis(u64::MAX);
                drop(self.home.handle(Fate::Fine).compact(all));
            }
        }
    }

    fn lose_power(&mut self, dice: &mut Dice) {
        for broker in 0..self.brokers.len() {
            self.kill(broker, dice.between(10, 8000));
        }
        self.known = self.home.lose_power();
        self.audit.truncated(&self.home.since(0));
    }

    /// The log is lost, and a backup from some time ago takes its place. With it everything stops:
    /// what was on its way is lost, and agents begin anew with what their clusters keep.
    fn restore(&mut self, dice: &mut Dice) {
        if self.brokers.len() != 1 || self.home.durable().0 == 0 {
            return;
        }
        self.queue.retain(|_, task| matches!(task, Task::Operate { .. }));
        self.kill(0, dice.between(10, 8000));
        self.brokers[0].forget_market();
        self.requests.iter_mut().for_each(Request::forget);
        for at in 0..self.agents.len() {
            self.kill_agent(at, dice.between(10, 20_000));
            self.agents[at].forget_ends();
        }
        let (back, now) = (dice.below(300), Time::from_millis(EPOCH_MS + self.now));
        if let Err(error) = self.home.restore(back, now) {
            return self.fail("I20", format!("the log cannot be restored: {error}"));
        }
        self.known = self.home.count();
        self.audit.restored(&self.home.since(0), &self.agents);
        self.sometimes.hit("restored");
    }

    fn jump_wall(&mut self, at: usize, dice: &mut Dice) {
        let jump = JUMPS_MS[dice.index(JUMPS_MS.len())];
        let skew = &mut self.brokers[at].wall_skew_ms;
        *skew = if dice.chance(500) { skew.saturating_add(jump) } else { -jump };
        if dice.chance(500) {
            self.kill(at, dice.between(10, 3000));
        }
    }

    /// The cluster's own pods take what they like; those in grants stay within them.
    fn move_pods(&mut self, at: usize, dice: &mut Dice) {
        let agent = &mut self.agents[at];
        for slice in agent.slices.values_mut() {
            slice.used = part_of(&slice.amounts, dice);
        }
        fit_pods(agent);
        if dice.chance(400) {
            let free = agent.has.minus_floor(&agent.used());
            agent.own = part_of(&free, dice);
        }
    }

    fn move_nodes(&mut self, at: usize, dice: &mut Dice) {
        let agent = &mut self.agents[at];
        let eighths = if dice.chance(500) { 8 } else { dice.between(3, 8) };
        agent.has.cpu = agent.base.cpu / 8 * eighths;
        agent.has.memory = agent.base.memory / 8 * eighths;
        // Devices go and come by themselves.
        agent.has.gpu = dice.between(agent.base.gpu / 2, agent.base.gpu);
        let extended = fpgas(&agent.base);
        agent.has = with_fpgas(agent.has.clone(), dice.between(extended / 2, extended));
        if dice.chance(200) {
            agent.labels = draw_labels(dice);
        }
        fit_pods(agent);
    }

    fn decide(&mut self, dice: &mut Dice) {
        let at = dice.index(self.agents.len());
        let cluster = self.agents[at].name.clone();
        let (action, undo) = draw_action(cluster, &self.agents[at].base, dice);
        let Some(action) = action else {
            let Some(id) = self.audit.some_live(dice) else { return };
            let by = Actor::Operator("olga".into());
            let release = Command::Release { by, which: Which::Id(id) };
            return self.operate(release, 0);
        };
        self.operate(operation(action), 0);
        if let Some(undo) = undo {
            let pause = dice.between(2000, 60_000);
            let command = Box::new(operation(undo));
            self.after(pause, Task::Operate { command, tries: 3 });
        }
    }

    /// Operators look whether it worked, which is modelled by saying it again to each broker.
    pub(super) fn operate(&mut self, command: Command, tries: u32) {
        let broker = usize::try_from(tries).unwrap_or(0) % self.brokers.len();
        self.send(Party::Operator, Order::Command(command.clone()), broker, None);
        if tries > 0 {
            let command = Box::new(command);
            self.after(5000, Task::Operate { command, tries: tries - 1 });
        }
    }
}

pub(super) fn operation(action: Action) -> Command {
    Command::Operate { operator: "olga".into(), why: "because".into(), action }
}

fn draw_action(
    cluster: ClusterId,
    base: &Resources,
    dice: &mut Dice,
) -> (Option<Action>, Option<Action>) {
    let uncordon = Some(Action::Uncordon(cluster.clone()));
    match dice.below(10) {
        0 | 1 => (Some(Action::Cordon { cluster, drain: false }), uncordon),
        2 => (Some(Action::Cordon { cluster, drain: true }), uncordon),
        3 => {
            let cpu = (Kind::Cpu, base.cpu / 3);
            let fpga = FPGA.parse().ok().map(|kind| (kind, fpgas(base) / 2));
            let all = [Some(cpu), fpga].into_iter().flatten();
            let limits = Limits(all.take(dice.index(2) + 1).collect());
            let lift = Action::Cap(cluster.clone(), Limits::default());
            (Some(Action::Cap(cluster, limits)), Some(lift))
        }
        4 => (Some(Action::DeclareLost(cluster)), None),
        5 => {
            let subject = Subject::Cluster(cluster);
            (Some(Action::Revoke(subject.clone())), Some(Action::Reinstate(subject)))
        }
        6 => (Some(Action::Vouch(cluster)), None),
        7 | 8 => (Some(Action::ConfirmClock), None),
        _ => (None, None),
    }
}

fn part_of(whole: &Resources, dice: &mut Dice) -> Resources {
    let eighths = dice.below(9);
    let part = |amount: u64| if eighths == 8 { amount } else { amount / 8 * eighths };
    let devices = |count: u64| count * eighths / 8;
    let mut resources = Resources::new(part(whole.cpu), part(whole.memory));
    resources.gpu = devices(whole.gpu);
    with_fpgas(resources, devices(fpgas(whole)))
}

/// Pods that have no node are gone: first those of others, then the cluster's own.
fn fit_pods(agent: &mut super::Agent) {
    agent.own = agent.own.min(&agent.has);
    let mut free = agent.has.minus_floor(&agent.own);
    for slice in agent.slices.values_mut() {
        let wanted = std::mem::take(&mut slice.used).min(&slice.amounts);
        if wanted.fits_in(&free) {
            free = free.minus_floor(&wanted);
            slice.used = wanted;
        }
    }
}
