//! What clients wrote down while they asked, and what speaks against the broker because of it.
//!
//! A client writes what it is about to send before it sends it, and what it was answered before it
//! does anything else. So what the journal calls acknowledged was acknowledged, whatever happened to
//! the broker since.

use std::collections::BTreeMap;

use sublet_core::id::ReservationId;
use sublet_wire::v1::Reservation;

use crate::recount::{Amounts, Name, Recount, Stand};

/// What happened to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) asked: Amounts,
    /// Every answer that said it was granted, and where.
    pub(crate) granted: Vec<(ReservationId, String)>,
    /// Whether its release was sent, which it may or may not have survived.
    pub(crate) releasing: bool,
    /// Whether its release was acknowledged.
    pub(crate) released: bool,
}

/// What happened to every request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(pub(crate) BTreeMap<Name, Line>);

impl Journal {
    /// Somebody is about to ask.
    pub(crate) fn asks(&mut self, name: &Name, asked: Amounts) {
        let line = Line { asked, ..Line::default() };
        assert!(self.0.insert(name.clone(), line).is_none(), "{name:?} is used twice");
    }

    /// The line of a request that was asked.
    pub(crate) fn line(&mut self, name: &Name) -> &mut Line {
        self.0.get_mut(name).expect("it was asked before")
    }

    /// Somebody was told that he has it.
    pub(crate) fn granted(&mut self, name: &Name, answer: &Reservation) -> ReservationId {
        let id = answer.id.parse().unwrap();
        self.line(name).granted.push((id, answer.target_cluster_id.clone()));
        id
    }
}

/// What speaks against the broker.
///
/// `acknowledged` is the journal from before the log was read: all of it must be there. `sent` is
/// the journal from after: nothing else may be there.
pub(crate) fn audit(acknowledged: &Journal, sent: &Journal, recount: &Recount) -> Vec<String> {
    let mut objections = recount.objections.clone();
    for (name, line) in &acknowledged.0 {
        let Some((id, provider)) = line.granted.first() else { continue };
        if line.granted.iter().any(|answer| answer != &line.granted[0]) {
            objections.push(format!("{name:?} has several answers: {:?}", line.granted));
        }
        let same = |grant: &&_| {
            let crate::recount::Grant { id: other, provider: at, amounts, .. } = grant;
            other == id && at == provider && *amounts == line.asked
        };
        match recount.grants.get(name).filter(same) {
            None => objections.push(format!("{id} of {name:?} was acknowledged and is lost")),
            Some(grant) if line.released && grant.stand == Stand::Held => {
                objections.push(format!("{id} was released and is held again"));
            }
            Some(_) => {}
        }
    }
    for (name, grant) in &recount.grants {
        match sent.0.get(name) {
            Some(line) if line.asked == grant.amounts => {
                if grant.stand != Stand::Held && !line.releasing {
                    objections.push(format!("{} ended and nobody released it", grant.id));
                }
            }
            _ => objections.push(format!("{} was granted and nobody asked so", grant.id)),
        }
    }
    objections
}

/// What is still open although everybody was answered: a grant that its client does not know of.
pub(crate) fn unsettled(journal: &Journal, recount: &Recount) -> Vec<String> {
    let unknown = |name: &&Name| journal.0.get(*name).is_none_or(|line| line.granted.is_empty());
    let found = recount.grants.keys().filter(unknown);
    found.map(|name| format!("{name:?} was granted and its client was told no")).collect()
}
