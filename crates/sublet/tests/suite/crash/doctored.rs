//! The auditors can object: each of their rules is broken once, by hand, and noticed.

use sublet_core::event::Event;
use sublet_core::id::{Key, ReservationId, Revision};
use sublet_core::reservation::Reason;
use sublet_core::time::Time;
use sublet_wire::v1::Instruction;

use super::shared::Told;
use crate::fleet::UNIT;
use crate::journal::{Journal, audit, unsettled};
use crate::recount::{Grant, Name, Recount};

fn name() -> Name {
    ("shop".into(), "job-1".into())
}

fn id(revision: u64) -> ReservationId {
    let key: Key = "job-1".parse().unwrap();
    ReservationId::derive(&"shop".parse().unwrap(), &key, Revision(revision))
}

/// A grant that everybody agrees on.
fn sound() -> (Journal, Recount, Told) {
    let mut journal = Journal::default();
    journal.asks(&name(), UNIT);
    journal.line(&name()).granted.push((id(1), "edge".into()));
    let mut recount = Recount::new(&[("edge", UNIT)]);
    recount.take(Time::default(), &reserved(1, "job-1"));
    let mut told = Told::default();
    for (who, side) in [("edge", "Provider"), ("shop", "Requester")] {
        told.tell(who, instruction(side, "Keep", 1));
    }
    (journal, recount, told)
}

fn reserved(revision: u64, key: &str) -> Event {
    let text = format!(
        r#"{{"reserved": {{"id": "{}", "requester": "shop", "key": "{key}", "priority": 0,
        "ask": {{"resources": {{"cpu": {}, "memory": {}}}}}, "provider": "edge", "confirms": true,
        "basis": {{"received_at": 0, "suspect_after": 1, "allocatable": {{}}, "allocated": {{}}}}}}}}"#,
        id(revision),
        UNIT[0],
        UNIT[1]
    );
    serde_json::from_str(&text).unwrap()
}

fn instruction(side: &str, duty: &str, generation: u32) -> Instruction {
    Instruction {
        reservation_id: id(1).to_string(),
        side: side.into(),
        duty: duty.into(),
        generation,
        ..Instruction::default()
    }
}

/// That the auditors say this of a sound history after it was changed.
#[track_caller]
fn objects(to: &str, doctor: impl FnOnce(&mut Journal, &mut Recount, &mut Told)) {
    let (mut journal, mut recount, mut told) = sound();
    doctor(&mut journal, &mut recount, &mut told);
    let mut all = audit(&journal, &journal, &recount);
    all.extend(unsettled(&journal, &recount));
    all.extend(told.audit(&journal, &journal));
    assert!(all.iter().any(|objection| objection.contains(to)), "{to:?} is not in {all:?}");
}

fn grant(recount: &mut Recount) -> &mut Grant {
    recount.grants.get_mut(&name()).unwrap()
}

#[test]
fn a_sound_history_is_not_objected_to() {
    let (journal, recount, told) = sound();
    assert_eq!(audit(&journal, &journal, &recount), Vec::<String>::new());
    assert_eq!(unsettled(&journal, &recount), Vec::<String>::new());
    assert_eq!(told.audit(&journal, &journal), Vec::<String>::new());
}

#[test]
fn a_doctored_history_is_caught() {
    objects("was acknowledged and is lost", |_, recount, _| recount.grants.clear());
    objects("was acknowledged and is lost", |_, recount, _| grant(recount).id = id(2));
    objects("was acknowledged and is lost", |_, recount, _| {
        grant(recount).provider = "hall".into();
    });
    objects("has several answers", |journal, _, _| {
        journal.line(&name()).granted.push((id(2), "edge".into()));
    });
    objects("was released and is held again", |journal, _, _| {
        let line = journal.line(&name());
        (line.releasing, line.released) = (true, true);
    });
    objects("ended and nobody released it", |_, recount, _| {
        grant(recount).reason = Some(Reason::ReleasedByRequester);
    });
    objects("ended and nobody released it", |_, recount, _| {
        grant(recount).reason = Some(Reason::Expired);
    });
    objects("was activated and is not", |journal, _, _| journal.line(&name()).activated = true);
    objects("was acknowledged and is lost", |journal, _, _| {
        let line = journal.line(&name());
        line.sizes.push([2 * UNIT[0], 2 * UNIT[1]]);
        line.sized = 1;
    });
    objects("nobody asked so", |journal, _, _| journal.0.clear());
    objects("its client was told no", |journal, _, _| journal.line(&name()).granted.clear());
    objects("makes edge hold", |_, recount, _| {
        recount.take(Time::default(), &reserved(2, "job-2"));
    });
    objects("was granted twice", |_, recount, _| {
        recount.take(Time::default(), &reserved(1, "job-1"));
    });
    objects("was granted as", |_, recount, _| {
        recount.take(Time::default(), &reserved(2, "job-1"));
    });
}

#[test]
fn what_happens_too_early_too_often_or_to_nobody_is_noticed() {
    let event = |text: &str| -> Event {
        serde_json::from_str(&text.replace("ID", &id(1).to_string())).unwrap()
    };
    let take = |recount: &mut Recount, text: &str| {
        recount.take(Time::from_millis(5), &event(text));
    };
    objects("expired at", |_, recount, _| {
        take(recount, r#"{"ending": {"id": "ID", "reason": "Expired", "by": "broker"}}"#);
    });
    objects("was granted and did not wait", |_, recount, _| {
        take(
            recount,
            r#"{"granted": {"id": "ID", "provider": "edge", "amounts": {}, "confirms": true,
            "basis": {"received_at": 0, "suspect_after": 1, "allocatable": {}, "allocated": {}}}}"#,
        );
    });
    objects("makes edge hold", |_, recount, _| {
        take(
            recount,
            r#"{"resized": {"id": "ID", "amounts": {"cpu": 9999, "memory": 1}, "basis":
            {"received_at": 0, "suspect_after": 1, "allocatable": {}, "allocated": {}}}}"#,
        );
    });
    objects("was forgotten while it ran", |_, recount, _| {
        take(recount, r#"{"forgotten": {"reservations": ["ID"]}}"#);
    });
    objects("was in use and was buried", |_, recount, _| {
        take(recount, r#"{"keyReleased": {"requester": "shop", "key": "job-1"}}"#);
    });
    objects("was buried and is not", |journal, recount, _| {
        recount.grants.clear();
        let line = journal.line(&name());
        line.granted.clear();
        (line.releasing, line.released) = (true, true);
    });
}

#[test]
fn a_side_that_was_not_told_is_noticed() {
    objects("edge was not told to keep", |_, _, told| told.forget("edge"));
    objects("shop was not told to keep", |_, _, told| {
        told.tell("shop", instruction("Requester", "TakeDown", 2));
    });
    objects("edge keeps", |journal, _, _| {
        let line = journal.line(&name());
        (line.releasing, line.released) = (true, true);
    });
}
