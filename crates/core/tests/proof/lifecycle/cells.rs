//! The table of every phase and every command: what is answered, which events come, where it leads.

use std::fmt::Write as _;

use sublet_core::id::{Generation, ReservationId};
use sublet_core::plan::{Action, Command, Plan, Refusal, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Phase};
use sublet_core::resources::Resources;

use crate::world::{World, ask, cluster, key, secs};

pub(crate) const GOLDEN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proof/lifecycle/table.txt");

#[expect(clippy::disallowed_methods, reason = "a person asks for a new table")]
pub(crate) fn updating() -> bool {
    std::env::var("UPDATE").is_ok()
}

/// A phase, and whether the provider's agent is one of the Go system.
const STATES: [(Phase, bool); 8] = [
    (Phase::Pending, false),
    (Phase::Reserved, false),
    (Phase::Reserved, true),
    (Phase::Active, false),
    (Phase::Active, true),
    (Phase::Releasing, false),
    (Phase::Released, false),
    (Phase::Failed, false),
];

/// The request of every cell: two of four cores, for an hour, to be activated.
fn request() -> Ask {
    Ask { duration: Some(secs(3600)), wait: Some(secs(600)), activates: true, ..ask(2, 2) }
}

/// A world in which `c2` has one reservation, in that phase; `c1` is the provider.
fn stage(phase: Phase, old: bool) -> (World, ReservationId) {
    let mut world = World::new(Policy::default());
    if phase != Phase::Pending {
        advertise(&mut world, old);
    }
    let id = world.reserve("c2", "a", request()).unwrap();
    if matches!(phase, Phase::Active | Phase::Releasing | Phase::Released) {
        world.run(&Command::Activate { by: cluster("c2"), id }).unwrap();
    }
    if matches!(phase, Phase::Releasing | Phase::Released) {
        world.release("c2", id);
    }
    if phase == Phase::Released {
        world.acknowledge(id);
    }
    if phase == Phase::Failed {
        world.run(&Command::Fail { by: cluster("c2"), id, why: None }).unwrap();
        world.acknowledge(id);
    }
    assert_eq!(world.phase(id), phase);
    (world, id)
}

fn advertise_after(world: &mut World, seconds: u64) -> Vec<Plan> {
    world.tick(secs(seconds));
    vec![world.advertise_old("c1", 4, 4)]
}

fn advertise(world: &mut World, old: bool) -> Plan {
    if old { world.advertise_old("c1", 4, 4) } else { world.advertise("c1", 4, 4) }
}

type Answer = Result<Vec<Plan>, Refusal>;
type Cell = fn(&mut World, ReservationId) -> Answer;

fn one(world: &mut World, command: Command) -> Answer {
    world.run(&command).map(|plan| vec![plan])
}

fn actor(name: &str) -> Actor {
    Actor::Cluster(cluster(name))
}

fn release(world: &mut World, by: Actor, which: Which) -> Answer {
    one(world, Command::Release { by, which })
}

fn reserve(world: &mut World, ask: Ask) -> Answer {
    one(world, Command::Reserve { requester: cluster("c2"), key: key("a"), ask, explain: false })
}

fn resize(world: &mut World, by: &str, id: ReservationId, cpu: u64) -> Answer {
    one(world, Command::Resize { by: actor(by), id, resources: Resources::new(cpu, cpu) })
}

fn renew(world: &mut World, by: &str, id: ReservationId) -> Answer {
    one(world, Command::Renew { by: actor(by), id, duration: Some(secs(7200)) })
}

fn acknowledge(world: &mut World, id: ReservationId, off: i64) -> Answer {
    let newest = world.reservation(id).grant().map_or(0, |grant| i64::from(grant.generation.0));
    let generation = Generation(u32::try_from(newest + off).unwrap());
    one(world, Command::Acknowledge { by: cluster("c1"), id, generation })
}

fn operate_and_sweep(world: &mut World, action: Action) -> Vec<Plan> {
    vec![world.operate(action), world.sweep()]
}

fn later_sweep(world: &mut World, seconds: u64) -> Vec<Plan> {
    world.tick(secs(seconds));
    vec![world.sweep()]
}

const COMMANDS: [(&str, Cell); 28] = [
    ("the same request again", |w, _| reserve(w, request())),
    ("another request under its key", |w, _| reserve(w, ask(1, 1))),
    ("activate, by the requester", |w, id| one(w, Command::Activate { by: cluster("c2"), id })),
    ("activate, by the provider", |w, id| one(w, Command::Activate { by: cluster("c1"), id })),
    ("renew, by the requester", |w, id| renew(w, "c2", id)),
    ("renew, by the provider", |w, id| renew(w, "c1", id)),
    ("grow", |w, id| resize(w, "c2", id, 3)),
    ("grow beyond what is free", |w, id| resize(w, "c2", id, 5)),
    ("shrink", |w, id| resize(w, "c2", id, 1)),
    ("acknowledge the newest", |w, id| acknowledge(w, id, 0)),
    ("acknowledge what was never told", |w, id| acknowledge(w, id, 1)),
    ("acknowledge, by another", |w, id| {
        one(w, Command::Acknowledge { by: cluster("c3"), id, generation: Generation(1) })
    }),
    ("release, by the requester", |w, id| release(w, actor("c2"), Which::Id(id))),
    ("release, by its key", |w, _| release(w, actor("c2"), Which::Key(cluster("c2"), key("a")))),
    ("release, by the provider", |w, id| release(w, actor("c1"), Which::Id(id))),
    ("release, by an operator", |w, id| release(w, Actor::Operator("ops".into()), Which::Id(id))),
    ("release, by another", |w, id| release(w, actor("c3"), Which::Id(id))),
    ("peering failed, says the requester", |w, id| {
        one(w, Command::Fail { by: cluster("c2"), id, why: None })
    }),
    ("peering failed, says the provider", |w, id| {
        one(w, Command::Fail { by: cluster("c1"), id, why: None })
    }),
    ("fill", |w, _| Ok(vec![w.fill()])),
    ("a provider advertises, then fill", |w, _| Ok(vec![w.advertise("c1", 4, 4), w.fill()])),
    ("an old agent advertises", |w, _| Ok(vec![w.advertise_old("c1", 4, 4)])),
    ("an old agent is all that advertises", |w, _| Ok(advertise_after(w, 90))),
    ("sweep", |w, _| Ok(vec![w.sweep()])),
    ("sweep after 15 minutes", |w, _| Ok(later_sweep(w, 15 * 60))),
    ("sweep after a day and an hour", |w, _| Ok(later_sweep(w, 25 * 3600))),
    ("drain and sweep", |w, _| {
        Ok(operate_and_sweep(w, Action::Cordon { cluster: cluster("c1"), drain: true }))
    }),
    ("lost and sweep", |w, _| Ok(operate_and_sweep(w, Action::DeclareLost(cluster("c1"))))),
];

pub(crate) fn table() -> String {
    let mut text = String::from(
        "What each command does in each phase; `old` is a provider whose agent never confirms.\n",
    );
    for (name, cell) in COMMANDS {
        writeln!(text, "\n{name}").unwrap();
        for (phase, old) in STATES {
            let (mut world, id) = stage(phase, old);
            let answer = cell(&mut world, id);
            let old = if old { ", old" } else { "" };
            let state = format!("{phase}{old}");
            let line = format!("  {state:<14} {}", tell(&world, id, phase, answer));
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
    text
}

fn tell(world: &World, id: ReservationId, before: Phase, answer: Answer) -> String {
    let plans = match answer {
        Err(refusal) => return format!("refused: {}", first_word(&format!("{refusal:?}"))),
        Ok(plans) => plans,
    };
    let events = plans.iter().flat_map(|plan| &plan.events);
    let events: Vec<_> = events.map(|event| first_word(&format!("{event:?}"))).collect();
    let known = world.books.ledger().reservation(id);
    let after = known.map_or("forgotten".to_owned(), |known| known.phase().to_string());
    let held = known.and_then(|known| known.holding()).map(|grant| grant.held.cpu);
    let mut text = if events.is_empty() { "–".to_owned() } else { events.join(" ") };
    if after != before.to_string() {
        write!(text, " → {after}").unwrap();
    }
    match held {
        Some(held) if held != 2 => format!("{text}, holds {held}"),
        _ => text,
    }
}

fn first_word(debug: &str) -> String {
    debug.split([' ', '{']).next().unwrap_or_default().chars().take_while(|c| *c != '(').collect()
}
