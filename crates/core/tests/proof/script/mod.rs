//! A small language for stories about clusters: one command a line, and what came of it below.
//!
//! Every line goes through `plan` and `apply` as in the engine, and what waits is tried after every
//! line, as the engine does. `scripts/README.md` lists the commands.

mod line;
mod say;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use line::Line;
use sublet_core::advertisement::{Advertisement, Capabilities};
use sublet_core::event::Subject;
use sublet_core::id::{Generation, ReservationId};
use sublet_core::plan::{Action, Command, Fill, Plan, Refusal, Reply, Which};
use sublet_core::policy::{Allowance, Policy};
use sublet_core::quantity::Round;
use sublet_core::reservation::{Actor, Ask};
use sublet_core::resources::Limits;
use sublet_core::time::Time;

use crate::world::{Backup, World, cluster, key};

/// A story being told.
pub(crate) struct Script {
    world: World,
    start: Time,
    names: BTreeMap<ReservationId, String>,
    backup: Option<Backup>,
    told: String,
}

/// The transcript of a whole script.
pub(crate) fn transcript(script: &str) -> String {
    let world = World::new(Policy::default());
    let start = world.now;
    let names = BTreeMap::new();
    let mut story = Script { world, start, names, backup: None, told: String::new() };
    for line in script.lines() {
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            writeln!(story.told, "{}", line.trim()).unwrap();
        } else {
            writeln!(story.told, "> {text}").unwrap();
            story.play(&Line::parse(text));
        }
    }
    story.told
}

impl Script {
    fn play(&mut self, line: &Line) {
        self.world.next_record();
        match line.verb.as_str() {
            "anew" => {
                self.world = World::new(Policy::default());
                self.names.clear();
            }
            "policy" => self.set_policy(line),
            "tick" => self.world.tick(line.subject().parse().unwrap()),
            "show" => self.show(),
            "why" => self.say_why(self.id(line)),
            "use" => self.use_grant(line),
            "carry" => self.world.carry_out(&line.cluster("by"), self.id(line)),
            "backup" => self.backup = Some(self.world.backup()),
            "restore" => {
                let backup = self.backup.take().expect("a backup comes first");
                self.world.restore(&backup);
                self.say("restored: nothing is lent before its provider has reported");
            }
            "restart" => self.world.restart(),
            "advertise" => {
                let advertisement = self.advertisement(line);
                let flagged = advertisement.cluster.clone();
                let plan = self.world.hear(advertisement);
                self.tell(Ok(plan));
                if self.world.books.is_overcommitted(&flagged) {
                    self.say(&format!("{flagged} has less than it owes: flagged"));
                }
            }
            _ => {
                if line.verb == "acknowledge" && line.option("generation").is_none() {
                    let id = self.id(line);
                    let provider = self.world.grant(id).provider.clone();
                    self.world.carry_out(&provider, id);
                }
                let command = self.command(line);
                let result = self.world.run(&command);
                if let (Command::Reserve { requester, key, .. }, Ok(plan)) = (&command, &result)
                    && let Reply::Reservation { id, .. } = plan.reply
                {
                    self.names.entry(id).or_insert(format!("{requester}/{key}"));
                }
                self.tell(result);
            }
        }
        self.fill();
    }

    /// What waits is granted as soon as it fits.
    fn fill(&mut self) {
        let mut after = None;
        loop {
            let plan = self.world.run(&Command::Fill(Fill { after, ..Fill::default() })).unwrap();
            match plan.reply {
                Reply::Filled { place, .. } => after = Some(place),
                Reply::NotYetFilled { place, .. } => {
                    after = Some(place);
                    continue;
                }
                _ => return,
            }
            self.tell(Ok(plan));
        }
    }

    fn command(&self, line: &Line) -> Command {
        let (id, by) = (|| self.id(line), || line.actor("by", line.requester()));
        match line.verb.as_str() {
            "request" => Command::Reserve {
                explain: true,
                requester: line.cluster_subject(),
                key: key(line.option("key").expect("key=…")),
                ask: ask(line),
            },
            "dry-run" => Command::DryRun { requester: line.cluster_subject(), ask: ask(line) },
            "release" => Command::Release { by: by(), which: Which::Id(id()) },
            "release-key" => {
                let requester = line.cluster_subject();
                let which = Which::Key(requester.clone(), key(line.option("key").expect("key=…")));
                Command::Release { by: Actor::Cluster(requester), which }
            }
            "renew" => Command::Renew { by: by(), id: id(), duration: line.span("for") },
            "resize" => {
                Command::Resize { by: by(), id: id(), resources: line.resources("", Round::Up) }
            }
            "activate" => Command::Activate { by: line.requester(), id: id() },
            "acknowledge" => self.acknowledge_command(line),
            "fail" => Command::Fail { by: line.cluster("by"), id: id(), why: None },
            "sweep" => Command::Sweep { expire: true },
            _ => Command::Operate {
                operator: "ops".into(),
                why: "script".into(),
                action: action(line),
            },
        }
    }

    fn acknowledge_command(&self, line: &Line) -> Command {
        let id = self.id(line);
        let grant = self.world.grant(id);
        let said = line.option("generation").map(|text| Generation(text.parse().unwrap()));
        let by = grant.provider.clone();
        Command::Acknowledge { by, id, generation: said.unwrap_or(grant.generation) }
    }

    /// The reservation that a line is about, by its requester and key.
    fn id(&self, line: &Line) -> ReservationId {
        let found = self.names.iter().find(|(_, name)| *name == line.subject());
        *found.unwrap_or_else(|| panic!("no reservation {}", line.subject())).0
    }

    fn advertisement(&mut self, line: &Line) -> Advertisement {
        let name = line.cluster_subject();
        let kept = self.world.kept.entry(name.clone()).or_default().clone();
        let own = line.resources("allocated.", Round::Up);
        let used = kept.values().map(|report| &report.used);
        let allocated = used.fold(own, |sum, used| sum.checked_add(used).unwrap());
        let plain = Advertisement::plain(name, line.resources("", Round::Down), allocated);
        if line.flag("old") {
            return plain;
        }
        let number = Some(self.world.number());
        Advertisement {
            number,
            grants: Some(kept.into_values().collect()),
            labels: line.labels(),
            capabilities: Capabilities { acknowledge: true, activate: true, ..<_>::default() },
            lending: !line.flag("not-lending"),
            ..plain
        }
    }

    /// Pods inside a grant take this much from now on.
    fn use_grant(&mut self, line: &Line) {
        let id = self.id(line);
        let provider = self.world.grant(id).provider.clone();
        let kept = self.world.kept.get_mut(&provider).and_then(|kept| kept.get_mut(&id));
        kept.expect("the provider acknowledged it").used = line.resources("", Round::Up);
    }

    fn set_policy(&mut self, line: &Line) {
        let policy = &mut self.world.policy;
        policy.duration_default = line.span("duration-default").or(policy.duration_default);
        policy.duration_max = line.span("duration-max").or(policy.duration_max);
        policy.lost_after = line.span("lost-after").or(policy.lost_after);
        if let Some(requester) = line.option("requester") {
            let held = line.resources("held.", Round::Down);
            let mut allowance = Allowance { held: Limits(held.iter().collect()), ..<_>::default() };
            if let Some(most) = line.option("priority-max") {
                allowance.priority_max = most.parse().unwrap();
            }
            policy.requesters.insert(cluster(requester), allowance);
        }
    }
}

fn ask(line: &Line) -> Ask {
    Ask {
        resources: line.resources("", Round::Up),
        priority: line.option("priority").map_or(0, |text| text.parse().unwrap()),
        target: line.option("target").map(cluster),
        duration: line.span("for"),
        wait: line.span("wait"),
        activates: line.flag("activates"),
        ..Ask::default()
    }
}

fn action(line: &Line) -> Action {
    let who = line.cluster_subject();
    match line.verb.as_str() {
        "cordon" => Action::Cordon { cluster: who, drain: false },
        "drain" => Action::Cordon { cluster: who, drain: true },
        "uncordon" => Action::Uncordon(who),
        "cap" => {
            let limits = line.resources("", Round::Down);
            Action::Cap(who, Limits(limits.iter().collect()))
        }
        "revoke" => Action::Revoke(Subject::Cluster(who)),
        "reinstate" => Action::Reinstate(Subject::Cluster(who)),
        "lost" => Action::DeclareLost(who),
        "vouch" => Action::Vouch(who),
        verb => panic!("no command {verb}"),
    }
}
