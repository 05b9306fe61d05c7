//! A broker that cannot be asked for a change or a renewal just now, again and again.

use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_crds::ResourceRequest;

use super::super::next::{Said, Step, View, next};
use super::super::status::{Change, Fact, after};
use super::trouble::{accepted, objected};
use super::{NOW, finalized, promise, promised, said, told};
use crate::transport::{Error, Promise, Refusal};

const HOUR: u64 = 3_600_000;

fn at(millis: u64) -> Time {
    Time::from_millis(NOW.as_millis() + millis)
}

fn overdue() -> Error {
    Error::Transient { why: "a provider is overdue".to_owned(), retry_after: None }
}

fn is(request: &ResourceRequest, holds: &str, why: &str) {
    assert_eq!(accepted(request), (holds.to_owned(), why.to_owned()));
}

/// The request after this, if that is news.
fn noted(request: &mut ResourceRequest, fact: &Fact<'_>, now: Time) -> Option<Change> {
    let mut change = after(request, fact, now)?;
    request.status = Some(std::mem::take(&mut change.status));
    Some(change)
}

fn active() -> Promise {
    Promise { expires_at: Some(at(HOUR)), ..promise(Phase::Active) }
}

/// One whose change or renewal failed, and the step that is taken again.
fn unmade(request: ResourceRequest, now: Time) -> (ResourceRequest, Step) {
    let mut request = promised(request, &active());
    request.spec.renew = Some(true);
    request.metadata.generation = Some(2);
    let mut request = promised(request, &active());
    let known = told(&active(), Some(1));
    let answer = said(active());
    let view = View { request: &request, instruction: Some(&known), said: &answer, now };
    let step = next(&view);
    assert!(noted(&mut request, &Fact::Unchanged(&overdue()), now).is_some());
    is(&request, "False", "BrokerUnavailable");
    (request, step)
}

#[test]
fn what_fails_the_same_way_each_round_is_written_once_and_tried_until_it_is_made() {
    let mut bigger = finalized();
    bigger.spec.amounts.cpu = "1".to_owned();
    bigger.spec.duration = Some("1h".to_owned());
    let mut running = finalized();
    running.spec.duration = Some("1h".to_owned());
    let resize = Step::Resize(Resources::new(1000, 256 << 20));
    let renew = Step::Renew(Span::from_secs(3600));
    for (request, is_observed, wanted) in [(bigger, false, resize), (running, true, renew)] {
        let now = at(HOUR / 2 + 1000);
        let (mut request, _) = unmade(request, now);
        if is_observed {
            request.status.as_mut().unwrap().observed_generation = Some(2);
        }
        let known = told(&active(), Some(1));
        for round in 1..5 {
            // So soon after the last write that a renewal would not be due for its own sake.
            let now = at(HOUR / 2 + 1000 + round * 500);
            let step = |request: &ResourceRequest, said: &Said| {
                next(&View { request, instruction: Some(&known), said, now })
            };
            assert_eq!(step(&request, &Said::Unasked), Step::Look);
            assert!(noted(&mut request, &Fact::Promise(&active()), now).is_none(), "a write");
            assert_eq!(step(&request, &said(active())), wanted);
            assert!(noted(&mut request, &Fact::Unchanged(&overdue()), now).is_none(), "a write");
        }
        is(&request, "False", "BrokerUnavailable");
        assert!(request.status.as_ref().unwrap().message.starts_with("The change was not made"));
        // The broker does it at last.
        let amounts = request.spec.ask().unwrap().resources;
        let made = Promise { amounts, expires_at: Some(at(2 * HOUR)), ..active() };
        noted(&mut request, &Fact::Promise(&made), at(HOUR));
        noted(&mut request, &Fact::Observed, at(HOUR));
        is(&request, "True", "Done");
        let made = Fact::Promise(&made);
        noted(&mut request, &made, at(HOUR));
        assert!(request.status.unwrap().message.starts_with("Resources reserved"));
    }
}

#[test]
fn what_is_found_to_be_made_or_wanted_no_more_is_not_said_to_be_unmade() {
    let known = told(&active(), Some(1));
    let mut bigger = finalized();
    bigger.spec.amounts.cpu = "1".to_owned();
    let (request, step) = unmade(bigger, NOW);
    let made = Promise { amounts: Resources::new(1000, 256 << 20), ..active() };
    assert_eq!(step, Step::Resize(made.amounts.clone()));
    let then = |request: &ResourceRequest, promise: &Promise| {
        let request = promised(request.clone(), promise);
        let answer = said(promise.clone());
        next(&View { request: &request, instruction: Some(&known), said: &answer, now: NOW })
    };
    assert_eq!(then(&request, &made), Step::Observe, "the answer alone was lost");
    let (mut request, _) = unmade(finalized(), NOW);
    request.status.as_mut().unwrap().observed_generation = Some(2);
    assert_eq!(then(&request, &active()), Step::Observe, "there is nothing to renew");
    // It ends, so nothing will be changed any more; and another edit is another matter.
    is(&promised(request.clone(), &promise(Phase::Releasing)), "True", "Done");
    request.metadata.generation = Some(3);
    is(&promised(request, &active()), "True", "Done");
}

#[test]
fn a_broker_that_cannot_be_asked_does_not_unsay_what_was_said_of_a_spec() {
    let mut request = finalized();
    request.spec.duration = Some("1h".to_owned());
    request.spec.renew = Some(true);
    let mut request = objected(promised(request, &active()));
    for round in 1..4 {
        let now = at(HOUR / 2 + round * 1000);
        assert!(noted(&mut request, &Fact::Unchanged(&overdue()), now).is_none(), "a write");
        is(&request, "False", "InvalidSpec");
        let known = told(&active(), Some(1));
        let answer = said(active());
        let view = View { request: &request, instruction: Some(&known), said: &answer, now };
        assert_eq!(next(&view), Step::Renew(Span::from_secs(3600)), "it is not objected to again");
    }
    let no = Error::Refused(Refusal { status: 409, message: "no".into(), ..Refusal::default() });
    assert!(noted(&mut request, &Fact::Unchanged(&no), at(HOUR)).is_some());
    assert!(noted(&mut request, &Fact::Unchanged(&overdue()), at(HOUR)).is_none());
    is(&request, "False", "Refused");
}
