//! The whole decision on the books: filters, freshness, policy and the basis of the grant included.

use std::hint::black_box;

use sublet_core::advertisement::Number;
use sublet_core::books::Books;
use sublet_core::decision::{self, Constraint, Match, explain};
use sublet_core::id::ClusterId;
use sublet_core::policy::{Clusters, Policy, Rule};
use sublet_core::reservation::Ask;
use sublet_core::resources::Resources;
use sublet_core::time::Time;

use crate::clock::Rounds;
use crate::fleet::{self, Dice, Kind};
use crate::report::{Report, Table, time};

const START: u64 = 1_800_000_000_000;
/// Long enough for a cluster that was not heard again to be Suspect.
const LATER: Time = Time::from_millis(START + 120_000);

/// A fleet of which one in `silent` was not heard again, if any.
fn books(size: u64, silent: Option<u64>) -> Books {
    let (mut books, mut dice) = (Books::default(), Dice::new(size));
    let silence = Policy::default().silence;
    for number in 0..size {
        let mut said = fleet::advertisement(Kind::Mixed, number, &mut dice);
        books.hear(said.clone(), Time::from_millis(START), &silence);
        if silent.is_none_or(|silent| !number.is_multiple_of(silent)) {
            said.number = Some(Number { incarnation: 1, sequence: 2 });
            books.hear(said, LATER, &silence);
        }
    }
    books
}

struct Case {
    name: &'static str,
    policy: Policy,
    ask: Ask,
}

fn cases(size: u64) -> Vec<Case> {
    let case = |name, policy, ask| Case { name, policy, ask };
    let everybody = Policy::default;
    let tenth = (0..size).filter(|number| number.is_multiple_of(10)).map(fleet::name).collect();
    let allow = Rule { requesters: Clusters::Any, providers: Clusters::These(tenth), allow: true };
    let deny = Rule { requesters: Clusters::Any, providers: Clusters::Any, allow: false };
    let region = Constraint { label: "region".into(), is: Match::In(vec!["region-3".into()]) };
    let labelled = Ask { constraints: vec![region], ..fleet::ask() };
    let huge = Ask { resources: Resources::new(1 << 50, 1 << 50), ..fleet::ask() };
    vec![
        case("something fits", everybody(), fleet::ask()),
        case("a label that one in eight has", everybody(), labelled),
        case(
            "a policy that allows one in ten",
            Policy { lending: vec![allow, deny], ..everybody() },
            fleet::ask(),
        ),
        case("nothing fits", everybody(), huge),
    ]
}

pub(crate) fn run(report: &mut Report, quick: bool) {
    let columns = ["decide on the books", "10⁴ clusters", "10⁵ clusters"];
    let mut table = Table::new("Decision: the whole of it, on the books", &columns);
    let rounds = Rounds::new(quick);
    let small = figures(10_000, rounds);
    let large = figures(100_000, rounds);
    for ((name, small), (_, large)) in small.into_iter().zip(large) {
        table.row([name, time(small), time(large)]);
    }
    table.note("Mixed fleet, headroom. Making the basis of the grant is part of it.");
    report.add(table);
}

fn figures(size: u64, rounds: Rounds) -> Vec<(String, f64)> {
    let all_heard = books(size, None);
    let cases = cases(size);
    let mut figures: Vec<_> =
        cases.iter().map(|case| (case.name.to_owned(), nanos(&all_heard, case, rounds))).collect();
    let (first, nothing) = (&cases[0], &cases[3]);
    let some_silent = books(size, Some(10));
    let silent = "something fits; one in ten is Suspect".to_owned();
    figures.push((silent, nanos(&some_silent, first, rounds)));
    let me = fleet::name(size / 2);
    let pick = decide(&all_heard, &me, first).expect("something fits");
    let granted = rounds.nanos(|| {
        explain::granted(&all_heard, &me, black_box(&first.ask), &pick, &first.policy, LATER)
    });
    figures.push(("explaining a grant".into(), granted));
    let refused = rounds.nanos(|| {
        explain::refused(&all_heard, &me, black_box(&nothing.ask), &nothing.policy, LATER)
    });
    figures.push(("explaining a refusal".into(), refused));
    figures
}

fn nanos(books: &Books, case: &Case, rounds: Rounds) -> f64 {
    let me: ClusterId = fleet::name(17);
    rounds.nanos(|| decide(books, &me, black_box(case)))
}

fn decide(books: &Books, me: &ClusterId, case: &Case) -> Result<decision::Pick, decision::NoPick> {
    decision::decide(books, me, &case.ask, &case.policy, LATER)
}
