//! How a story is told.

use super::{Plan, Refusal, Reply, ReservationId, Script, Time};
use std::fmt::Write as _;
use sublet_core::decision::explain;
use sublet_core::event::{Event, Subject};
use sublet_core::reservation::Reservation;

use crate::world::World;

impl Script {
    pub(super) fn say(&mut self, text: &str) {
        writeln!(self.told, "    {text}").unwrap();
    }

    /// What was decided, and why.
    pub(super) fn tell(&mut self, result: Result<Plan, Refusal>) {
        let plan = match result {
            Err(refusal) => return self.say(&format!("refused: {refusal}")),
            Ok(plan) => plan,
        };
        let now = self.world.now;
        for event in plan.events.iter().flat_map(|event| event.steps(now)) {
            let text = self.event(&event);
            if !text.is_empty() {
                self.say(&text);
            }
        }
        match &plan.reply {
            Reply::Reservation { explanation: Some(why), .. } => {
                self.say(&format!("because {why}"));
            }
            Reply::Reservation { id, .. } if plan.events.is_empty() => {
                let text = self.one(*id);
                self.say(&format!("nothing changes: {text}"));
            }
            Reply::WouldGrant { provider, explanation } => {
                self.say(&format!("would be reserved on {provider} because {explanation}"));
            }
            Reply::Advertised { news: false } => self.say("older than what is known: ignored"),
            Reply::KeyReleased if plan.events.is_empty() => self.say("released before"),
            Reply::Swept { .. } if plan.events.is_empty() => self.say("nothing is due"),
            _ => {}
        }
    }

    /// Why one that waits still does.
    pub(super) fn say_why(&mut self, id: ReservationId) {
        let World { books, policy, now, .. } = &self.world;
        let why = explain::waiting(books, self.world.reservation(id), policy, *now);
        self.say(&format!("because {why}"));
    }

    fn name(&self, id: ReservationId) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| self.requester_and_key(id))
    }

    fn requester_and_key(&self, id: ReservationId) -> String {
        let known = self.world.books.ledger().reservation(id);
        let text = |r: &Reservation| r.key.as_ref().map(|key| format!("{}/{key}", r.requester));
        known.and_then(text).unwrap_or_else(|| id.to_string())
    }

    /// A time, counted from the beginning of the story.
    fn time(&self, time: Time) -> String {
        format!("+{}", time.since(self.start))
    }

    fn until(&self, time: Option<Time>) -> String {
        time.map_or(", without end".to_owned(), |time| format!(", until {}", self.time(time)))
    }

    fn event(&self, event: &Event) -> String {
        let name = event.reservation().map(|id| self.name(id)).unwrap_or_default();
        let holds = |id: &ReservationId| {
            let known = self.world.books.ledger().reservation(*id);
            known.and_then(|r| r.holding()).map_or(String::new(), |g| format!("; {} held", g.held))
        };
        match event {
            // A grant in the same record says it better.
            Event::Requested { until, .. } if *until == self.world.now => String::new(),
            Event::Requested { priority, until, .. } => {
                format!("{name} waits with priority {priority}, until {}", self.time(*until))
            }
            Event::Granted { provider, amounts, expires_at, activate_by, .. } => {
                let confirm = activate_by.map_or(String::new(), |time| {
                    format!(", to be activated by {}", self.time(time))
                });
                let until = self.until(*expires_at);
                format!("{name} reserved on {provider}: {amounts}{until}{confirm}")
            }
            Event::Activated { .. } => format!("{name} active"),
            Event::Renewed { expires_at, .. } => {
                format!("{name} renewed{}", self.until(*expires_at))
            }
            Event::Resized { id, amounts, .. } => {
                format!("{name} resized to {amounts}{}", holds(id))
            }
            Event::Acknowledged { id, generation } => {
                format!("{name} acknowledged, generation {generation}{}", holds(id))
            }
            Event::Ending { reason, .. } => format!("{name} releasing: {reason:?}"),
            Event::Ended { reason, confirmation, .. } => {
                format!("{name} over: {reason:?}, {confirmation:?}")
            }
            Event::Adopted { provider, amounts, expires_at, .. } => {
                format!("{name} adopted on {provider}: {amounts}{}", self.until(*expires_at))
            }
            Event::KeyReleased { requester, key } => {
                format!("key {key} of {requester} released before its request")
            }
            Event::Forgotten { reservations, tombstones } => {
                format!(
                    "{} ended, {} released keys forgotten",
                    reservations.len(),
                    tombstones.len()
                )
            }
            _ => operation(event),
        }
    }

    fn one(&self, id: ReservationId) -> String {
        let Some(known) = self.world.books.ledger().reservation(id) else { return String::new() };
        let name = self.name(id);
        let Some(grant) = known.grant() else { return format!("{name} {}", known.phase()) };
        let (provider, amounts) = (&grant.provider, &grant.amounts);
        let more = if grant.held == grant.amounts || known.holding().is_none() {
            String::new()
        } else {
            format!(" ({} held)", grant.held)
        };
        format!("{name} {} on {provider}: {amounts}{more}", known.phase())
    }

    /// Who lends what, and how every reservation stands.
    pub(super) fn show(&mut self) {
        let books = &self.world.books;
        let mut lines = vec![format!("at {}", self.time(self.world.now))];
        for (cluster, entry) in books.market().entries() {
            let fresh = entry.freshness(&self.world.policy.silence, self.world.now);
            let (held, room) = (books.held(cluster), books.room(cluster));
            let ghosts = books.overlap(cluster).ghosts;
            let ghosts =
                if ghosts.is_zero() { String::new() } else { format!("; keeps {ghosts} unasked") };
            lines.push(format!("{cluster} {fresh}: lends {held}; {room} free{ghosts}"));
        }
        let mut all: Vec<_> = books.ledger().reservations(None).collect();
        all.sort_by_key(|reservation| reservation.arrival);
        lines.extend(all.iter().map(|reservation| self.one(reservation.id)));
        for line in lines {
            self.say(&line);
        }
    }
}

fn operation(event: &Event) -> String {
    match event {
        Event::Cordoned { cluster, drain: true, .. } => format!("{cluster} draining"),
        Event::Cordoned { cluster, .. } => format!("{cluster} cordoned"),
        Event::Uncordoned { cluster, .. } => format!("{cluster} uncordoned"),
        Event::Capped { cluster, .. } => format!("{cluster} capped"),
        Event::Revoked { subject: Subject::Cluster(who), .. } => format!("{who} revoked"),
        Event::Reinstated { subject: Subject::Cluster(who), .. } => format!("{who} reinstated"),
        Event::Lost { cluster, note } => format!("{cluster} given up: {}", note.why),
        Event::Returned { cluster } => format!("{cluster} is back"),
        Event::Reconciled { cluster, .. } => format!("{cluster} may lend again"),
        other => format!("{other:?}"),
    }
}
