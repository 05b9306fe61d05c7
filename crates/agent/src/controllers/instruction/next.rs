//! What to do next about one instruction, given what the broker says and what is there: pure.

use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::time::Time;

use super::record::{Seen, Standing};
use crate::transport::Order;

/// What the broker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing yet: what is there stays as it is.
    Nothing,
    /// This.
    Order(Order),
    /// Everything, and this was not in it.
    Gone,
    /// This, in passing: an old broker that is not asked for its list does not say when it is over.
    Mentioned(Order),
    /// Nothing ever: an old broker says nothing to borrowers. What is recorded holds until it ends
    /// by our clock.
    Never,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All is as it should be.
    Rest,
    /// All is as it should be until then.
    Until(Time),
    /// Write down what is to be done.
    Record(Order),
    /// Bring it about.
    Establish(Order),
    /// Take it down, and keep the object until the broker knows.
    Withdraw(Order),
    /// Tell the broker that this was carried out.
    Tell(Generation),
    /// Take it down, and remove the object.
    Retire(Order),
    /// Remove an object that says nothing sensible.
    Remove,
}

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// What was carried out, and written down as such, is so.
    Believing,
    /// It is made sure of: after a start, a whole list, or a change that nobody ordered. What the
    /// broker has just said as a whole holds whatever its number.
    Closely,
}

/// What to do next.
pub(crate) fn next(told: &Told, seen: Option<&Seen>, now: Time, look: Look) -> Step {
    if seen.is_some_and(|seen| seen.is_deleting) {
        // Once it is gone, it is looked at again.
        return Step::Rest;
    }
    match (told, seen) {
        (Told::Order(order), seen) if order.duty != Duty::Gone => ordered(order, seen, look),
        (Told::Mentioned(order), seen) => match (ordered(order, seen, look), seen) {
            (Step::Record(order), seen) if is_over(&order, now) => {
                seen.map_or(Step::Rest, |seen| unattended(seen, now, look))
            }
            (Step::Rest | Step::Establish(_), Some(seen)) => unattended(seen, now, look),
            (step, _) => step,
        },
        (Told::Never, Some(seen)) => unattended(seen, now, look),
        (Told::Order(_) | Told::Gone, Some(seen)) => match &seen.order {
            Some(order) => retired(order, Duty::Gone),
            None => Step::Remove,
        },
        _ => Step::Rest,
    }
}

fn ordered(order: &Order, seen: Option<&Seen>, look: Look) -> Step {
    let Some(seen) = seen else {
        return match order.duty {
            // Nothing is recorded; something may be there all the same.
            Duty::TakeDown => Step::Withdraw(order.clone()),
            _ => Step::Record(order.clone()),
        };
    };
    match &seen.order {
        // A word that is on its way may be older. A whole list is not, unless the broker itself is:
        // then it was restored, and is right all the same.
        Some(known) if known.generation > order.generation && look == Look::Believing => Step::Rest,
        // What was done with the other one is undone first.
        Some(known) if known.peer != order.peer => retired(known, Duty::Gone),
        Some(known) if is_same(known, order) => carry_out(order, &seen.standing, look),
        _ => Step::Record(order.clone()),
    }
}

fn carry_out(order: &Order, standing: &Standing, look: Look) -> Step {
    let number = order.generation.map(|generation| generation.0);
    let keeps = order.duty == Duty::Keep;
    if standing.in_force != keeps || standing.applied != number {
        let order = order.clone();
        return if keeps { Step::Establish(order) } else { Step::Withdraw(order) };
    }
    if keeps && look == Look::Closely {
        return Step::Establish(order.clone());
    }
    // That it is taken down, the broker wants to hear from the provider alone.
    let is_heard = keeps || order.side == Side::Provider;
    match order.generation {
        Some(generation) if is_heard && standing.acknowledged != number => Step::Tell(generation),
        _ => Step::Rest,
    }
}

/// What nobody says anything about.
fn unattended(seen: &Seen, now: Time, look: Look) -> Step {
    let Some(order) = &seen.order else { return Step::Rest };
    if is_over(order, now) || order.duty != Duty::Keep {
        return retired(order, Duty::TakeDown);
    }
    match (carry_out(order, &seen.standing, look), order.expires_at) {
        (Step::Establish(order), _) => Step::Establish(order),
        (_, Some(end)) => Step::Until(end),
        (_, None) => Step::Rest,
    }
}

/// What is recorded goes. The record says so first: whoever else goes by it, as the class of our slices
/// does, would bring back what is being taken down.
fn retired(recorded: &Order, duty: Duty) -> Step {
    match recorded.duty {
        Duty::Keep => Step::Record(Order { duty: Duty::TakeDown, ..recorded.clone() }),
        Duty::TakeDown | Duty::Gone => Step::Retire(Order { duty, ..recorded.clone() }),
    }
}

fn is_over(order: &Order, now: Time) -> bool {
    order.expires_at.is_some_and(|end| end <= now)
}

/// Do they say the same? Objects keep whole seconds.
fn is_same(a: &Order, b: &Order) -> bool {
    let seconds = |order: &Order| order.expires_at.map(|time| time.as_millis() / 1000);
    seconds(a) == seconds(b) && Order { expires_at: b.expires_at, ..a.clone() } == *b
}

/// Of two words about one instruction, the one that holds: the later number, and of one number what
/// comes later in a life.
pub(crate) fn overrides(new: &Order, known: &Order) -> bool {
    let age = |duty: Duty| match duty {
        Duty::Keep => 0,
        Duty::TakeDown => 1,
        Duty::Gone => 2,
    };
    (new.generation, age(new.duty)) >= (known.generation, age(known.duty))
}
