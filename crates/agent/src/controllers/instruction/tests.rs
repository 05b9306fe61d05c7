//! What to do next about an instruction, case by case.

use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_core::time::Time;

use super::next::{Look, Step, Told, overrides};
use super::record::{Record, Seen, Standing};
use crate::transport::Order;

const NOW: Time = Time::from_millis(1_000_000);

fn order(side: Side, duty: Duty, generation: u32) -> Order {
    Order {
        reservation: "rsv-a".to_owned(),
        side,
        peer: "rome".parse().unwrap(),
        duty,
        amounts: Resources::new(500, 1 << 28),
        expires_at: None,
        generation: Some(Generation(generation)),
    }
}

fn seen(order: &Order, in_force: bool, applied: Option<u32>, acknowledged: Option<u32>) -> Seen {
    let standing = Standing { in_force, applied, acknowledged, conditions: Vec::new() };
    Seen { order: Some(order.clone()), standing, is_deleting: false }
}

fn next(told: &Told, seen: Option<&Seen>, now: Time) -> Step {
    super::next(told, seen, now, Look::Believing)
}

fn step(told: &Order, seen: Option<&Seen>) -> Step {
    next(&Told::Order(told.clone()), seen, NOW)
}

fn closely(told: Told, seen: &Seen) -> Step {
    super::next(&told, Some(seen), NOW, Look::Closely)
}

#[test]
fn what_is_in_force_is_brought_about_again_when_it_is_looked_at_closely() {
    let keep = order(Side::Provider, Duty::Keep, 1);
    let known = seen(&keep, true, Some(1), Some(1));
    assert_eq!(closely(Told::Order(keep.clone()), &known), Step::Establish(keep.clone()));
    assert_eq!(closely(Told::Nothing, &known), Step::Rest, "nobody has said that it stands");
    let old = Order { generation: None, ..order(Side::Requester, Duty::Keep, 0) };
    let known = seen(&old, true, None, None);
    assert_eq!(closely(Told::Never, &known), Step::Establish(old));
    let down = order(Side::Provider, Duty::TakeDown, 2);
    let known = seen(&down, false, Some(2), Some(2));
    assert_eq!(closely(Told::Order(down), &known), Step::Rest);
}

#[test]
fn after_a_whole_list_a_restored_brokers_lower_number_holds() {
    let (first, fifth) =
        (order(Side::Provider, Duty::Keep, 1), order(Side::Provider, Duty::Keep, 5));
    let recorded = seen(&fifth, true, Some(5), Some(5));
    assert_eq!(step(&first, Some(&recorded)), Step::Rest);
    assert_eq!(closely(Told::Order(first.clone()), &recorded), Step::Record(first.clone()));
    let recorded = seen(&first, true, Some(5), Some(5));
    assert_eq!(step(&first, Some(&recorded)), Step::Establish(first.clone()));
    let established = seen(&first, true, Some(1), Some(5));
    assert_eq!(step(&first, Some(&established)), Step::Tell(Generation(1)));
}

#[test]
fn what_an_old_broker_only_mentions_ends_by_our_clock() {
    let end = |millis| Some(Time::from_millis(millis));
    let old = Order { generation: None, ..order(Side::Provider, Duty::Keep, 0) };
    let later = Order { expires_at: end(1_005_000), ..old.clone() };
    let over = Order { expires_at: end(999_000), ..old };
    let told =
        |order: &Order, seen: Option<&Seen>| next(&Told::Mentioned(order.clone()), seen, NOW);
    assert_eq!(told(&later, None), Step::Record(later.clone()));
    assert_eq!(told(&over, None), Step::Rest);
    let new = seen(&later, false, None, None);
    assert_eq!(told(&later, Some(&new)), Step::Establish(later.clone()));
    let kept = seen(&later, true, None, None);
    assert_eq!(told(&later, Some(&kept)), Step::Until(Time::from_millis(1_005_000)));
    let kept = seen(&over, true, None, None);
    let down = Order { duty: Duty::TakeDown, ..over.clone() };
    assert_eq!(told(&over, Some(&kept)), Step::Record(down.clone()));
    let recorded = seen(&down, true, None, None);
    assert_eq!(told(&over, Some(&recorded)), Step::Retire(down));
}

#[test]
fn what_is_to_be_kept_is_recorded_established_told_and_left_alone() {
    for side in [Side::Provider, Side::Requester] {
        let keep = order(side, Duty::Keep, 1);
        assert_eq!(step(&keep, None), Step::Record(keep.clone()));
        let new = seen(&keep, false, None, None);
        assert_eq!(step(&keep, Some(&new)), Step::Establish(keep.clone()));
        let done = seen(&keep, true, Some(1), None);
        assert_eq!(step(&keep, Some(&done)), Step::Tell(Generation(1)));
        let known = seen(&keep, true, Some(1), Some(1));
        assert_eq!(step(&keep, Some(&known)), Step::Rest);
    }
}

#[test]
fn a_higher_number_overrides_and_a_lower_one_does_not() {
    let (first, mut second) =
        (order(Side::Provider, Duty::Keep, 1), order(Side::Provider, Duty::Keep, 2));
    second.amounts = Resources::new(700, 1 << 28);
    let old = seen(&first, true, Some(1), Some(1));
    assert_eq!(step(&second, Some(&old)), Step::Record(second.clone()));
    let recorded = seen(&second, true, Some(1), Some(1));
    assert_eq!(step(&second, Some(&recorded)), Step::Establish(second.clone()));
    assert_eq!(step(&first, Some(&recorded)), Step::Rest);
    let down = order(Side::Provider, Duty::TakeDown, 2);
    assert!(overrides(&second, &first) && !overrides(&first, &second));
    assert!(overrides(&down, &second) && !overrides(&second, &down));
}

#[test]
fn what_is_to_go_is_withdrawn_before_the_broker_hears_of_it() {
    let (keep, down) =
        (order(Side::Provider, Duty::Keep, 1), order(Side::Provider, Duty::TakeDown, 2));
    let running = seen(&keep, true, Some(1), Some(1));
    assert_eq!(step(&down, Some(&running)), Step::Record(down.clone()));
    let recorded = seen(&down, true, Some(1), Some(1));
    assert_eq!(step(&down, Some(&recorded)), Step::Withdraw(down.clone()));
    let withdrawn = seen(&down, false, Some(2), Some(1));
    assert_eq!(step(&down, Some(&withdrawn)), Step::Tell(Generation(2)));
    let told = seen(&down, false, Some(2), Some(2));
    assert_eq!(step(&down, Some(&told)), Step::Rest);
    assert_eq!(step(&down, None), Step::Withdraw(down.clone()));
    let mine = order(Side::Requester, Duty::TakeDown, 2);
    assert_eq!(step(&mine, Some(&seen(&mine, false, Some(2), Some(1)))), Step::Rest);
}

#[test]
fn what_is_gone_is_retired_and_what_is_not_known_is_left() {
    let keep = order(Side::Provider, Duty::Keep, 1);
    let running = seen(&keep, true, Some(1), Some(1));
    // The record says so first: others go by it, and would bring back what is being taken down.
    let down = Order { duty: Duty::TakeDown, ..keep.clone() };
    assert_eq!(next(&Told::Gone, Some(&running), NOW), Step::Record(down.clone()));
    let recorded = seen(&down, true, Some(1), Some(1));
    let gone = Order { duty: Duty::Gone, ..keep.clone() };
    assert_eq!(next(&Told::Gone, Some(&recorded), NOW), Step::Retire(gone));
    assert_eq!(next(&Told::Gone, None, NOW), Step::Rest);
    assert_eq!(next(&Told::Nothing, Some(&running), NOW), Step::Rest);
    let nonsense = Seen { order: None, ..running.clone() };
    assert_eq!(next(&Told::Gone, Some(&nonsense), NOW), Step::Remove);
    assert_eq!(step(&keep, Some(&nonsense)), Step::Record(keep.clone()));
    let deleting = Seen { is_deleting: true, ..running };
    assert_eq!(next(&Told::Gone, Some(&deleting), NOW), Step::Rest);
    let foreign = Order { peer: "turin".parse().unwrap(), ..keep.clone() };
    let going = Order { duty: Duty::TakeDown, ..foreign.clone() };
    let said = step(&keep, Some(&seen(&foreign, true, Some(1), Some(1))));
    assert_eq!(said, Step::Record(going.clone()));
    let undone = Step::Retire(Order { duty: Duty::Gone, ..foreign });
    assert_eq!(step(&keep, Some(&seen(&going, true, Some(1), Some(1)))), undone);
}

#[test]
fn what_an_old_broker_let_us_borrow_holds_until_its_end_by_our_clock() {
    let end = |millis| Some(Time::from_millis(millis));
    let old = Order { generation: None, ..order(Side::Requester, Duty::Keep, 0) };
    let never =
        |order: &Order, in_force| next(&Told::Never, Some(&seen(order, in_force, None, None)), NOW);
    assert_eq!(never(&old, false), Step::Establish(old.clone()));
    assert_eq!(never(&old, true), Step::Rest);
    let later = Order { expires_at: end(1_005_000), ..old.clone() };
    assert_eq!(never(&later, true), Step::Until(Time::from_millis(1_005_000)));
    let over = Order { expires_at: end(999_000), ..old.clone() };
    let down = Order { duty: Duty::TakeDown, ..over.clone() };
    assert_eq!(never(&over, true), Step::Record(down.clone()));
    assert_eq!(never(&down, true), Step::Retire(down.clone()));
    let given_back = Order { duty: Duty::TakeDown, ..old };
    assert_eq!(never(&given_back, true), Step::Retire(given_back.clone()));
}

#[test]
fn objects_say_what_was_ordered_but_for_parts_of_a_second() {
    fn told<K: Record>(order: &Order) -> Order {
        let text = serde_json::to_string(&K::new_of(order)).unwrap();
        serde_json::from_str::<K>(&text).unwrap().order().unwrap()
    }
    for (duty, generation) in [(Duty::Keep, 3), (Duty::TakeDown, 4)] {
        let expires_at = Some(Time::from_millis(1_794_780_000_123));
        let lent = Order { expires_at, ..order(Side::Provider, duty, generation) };
        let borrowed = Order { expires_at, ..order(Side::Requester, duty, generation) };
        let recorded = told::<sublet_crds::ProviderInstruction>(&lent);
        assert_eq!(
            step(
                &lent,
                Some(&seen(&recorded, duty == Duty::Keep, Some(generation), Some(generation)))
            ),
            Step::Rest
        );
        let recorded = told::<sublet_crds::ReservationInstruction>(&borrowed);
        assert_eq!(
            step(
                &borrowed,
                Some(&seen(&recorded, duty == Duty::Keep, Some(generation), Some(generation)))
            ),
            Step::Rest
        );
    }
}
