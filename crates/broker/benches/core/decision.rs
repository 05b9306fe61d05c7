//! The index beside the naive scan over the same rows, and what an update of it costs.

use std::hint::black_box;

use sublet_core::decision::Strategy;
use sublet_core::decision::index::{Index, Row};
use sublet_core::id::ClusterId;
use sublet_core::resources::Resources;

use crate::clock::Rounds;
use crate::fleet::{self, Dice, Kind};
use crate::report::{Report, Table, ratio, time};

/// Whoever is found will do.
fn anyone(_: &ClusterId) -> bool {
    true
}

struct Fleet {
    kind: Kind,
    names: Vec<ClusterId>,
    rows: Vec<Row>,
    index: Index,
}

impl Fleet {
    fn new(kind: Kind, size: u64) -> Self {
        let mut dice = Dice::new(size);
        let names: Vec<_> = (0..size).map(fleet::name).collect();
        let row = |number| fleet::row(&fleet::advertisement(kind, number, &mut dice));
        let rows: Vec<_> = (0..size).map(row).collect();
        let mut index = Index::default();
        for (name, row) in names.iter().zip(&rows) {
            index.set(name, row.clone());
        }
        Self { kind, names, rows, index }
    }

    /// Nanoseconds by index and by scan, over these requests in turn.
    fn compare(&self, strategy: Strategy, asks: &[Resources], rounds: Rounds) -> (f64, f64) {
        let mut turn = asks.iter().cycle();
        let index = rounds.nanos(|| {
            let ask = turn.next().expect("a cycle has no end");
            self.index.best(black_box(ask), strategy, anyone)
        });
        let mut turn = asks.iter().cycle();
        let scan = rounds.nanos(|| {
            let ask = turn.next().expect("a cycle has no end");
            self.index.scan(black_box(ask), strategy, anyone)
        });
        (index, scan)
    }

    /// Nanoseconds to replace one row by one with other room.
    fn update(&mut self, rounds: Rounds) -> f64 {
        let mut dice = Dice::new(3);
        let size = u64::try_from(self.rows.len()).expect("a size");
        rounds.nanos(|| {
            let at = usize::try_from(dice.below(size)).expect("a place");
            let mut row = self.rows[at].clone();
            row.room.cpu = dice.below(row.allocatable.cpu);
            self.index.set(&self.names[at], row);
        })
    }
}

/// The worst of what has a target: the broker's default strategy, and all others.
#[derive(Default)]
struct Worst {
    default: Fits,
    others: Fits,
    none: f64,
    none_lopsided: f64,
}

#[derive(Default)]
struct Fits {
    at_10k: f64,
    at_100k: f64,
}

impl Worst {
    fn see_fits(&mut self, size: u64, strategy: Strategy, nanos: f64) {
        let default = strategy == Strategy::default();
        let fits = if default { &mut self.default } else { &mut self.others };
        match size {
            10_000 => fits.at_10k = fits.at_10k.max(nanos),
            100_000 => fits.at_100k = fits.at_100k.max(nanos),
            _ => {}
        }
    }

    fn see_none(&mut self, kind: Kind, (index, scan): (f64, f64)) {
        let lopsided = kind == Kind::Lopsided;
        let none = if lopsided { &mut self.none_lopsided } else { &mut self.none };
        *none = none.max(index / scan);
    }

    fn tell(&self, report: &mut Report) {
        for (name, fits) in [("headroom", &self.default), ("binpack, cost", &self.others)] {
            for (size, found, reach) in [("10⁴", fits.at_10k, 3e3), ("10⁵", fits.at_100k, 1e4)]
            {
                let what = format!("decision, {size} clusters, something fits: {name}");
                report.target(&what, format!("< {}", time(reach)), time(found), found < reach);
            }
        }
        for (name, ratio) in [("", self.none), (", lopsided fleet", self.none_lopsided)] {
            let what = format!("decision, nothing fits, any size{name}");
            let (reach, found) = ("≤ 1.00 of the scan".into(), format!("at most {ratio:.2}"));
            report.target(&what, reach, found, ratio <= 1.0);
        }
    }
}

pub(crate) fn run(report: &mut Report, quick: bool) {
    let columns = [
        "fleet, strategy, clusters",
        "fits: index",
        "scan",
        "scan ÷ index",
        "none fits: index",
        "scan",
        "scan ÷ index",
        "update",
    ];
    let mut table = Table::new("Decision: the index beside the naive scan", &columns);
    let mut worst = Worst::default();
    let largest = if quick { 5 } else { 6 };
    for kind in [Kind::Mixed, Kind::Identical, Kind::Lopsided] {
        for size in (2..=largest).map(|power| 10_u64.pow(power)) {
            measure(&mut table, &mut worst, (kind, size), Rounds::new(quick));
        }
    }
    table.note(
        "Requests: 64 sizes in turn. Mixed: a dozen flavours of 4 to 512 cores, loaded at random; \
         identical: everything is a tie; lopsided: half have only cpu left and half only memory.",
    );
    report.add(table);
    worst.tell(report);
}

fn measure(table: &mut Table, worst: &mut Worst, (kind, size): (Kind, u64), rounds: Rounds) {
    let mut fleet = Fleet::new(kind, size);
    let asks = fleet::asks(kind);
    let too_much = [fleet::too_much(kind, &fleet.rows)];
    let update = fleet.clone_index(|fleet| fleet.update(rounds));
    for strategy in Strategy::ALL {
        let some_fits = fleet.index.best(&asks[1], strategy, anyone).is_some();
        let fits = some_fits.then(|| fleet.compare(strategy, &asks, rounds));
        assert_eq!(fleet.index.best(&too_much[0], strategy, anyone), None, "nothing fits");
        let none = fleet.compare(strategy, &too_much, rounds);
        if let Some((index, _)) = fits {
            worst.see_fits(size, strategy, index);
        }
        worst.see_none(kind, none);
        let cells = |pair: Option<(f64, f64)>| {
            let dash = || "–".to_owned();
            let Some((index, scan)) = pair else { return [dash(), dash(), dash()] };
            [time(index), time(scan), ratio(scan, index)]
        };
        let name = format!("{}, {}, {size}", fleet.kind.name(), text(strategy));
        let figures = cells(fits).into_iter().chain(cells(Some(none)));
        table.row([name].into_iter().chain(figures).chain([time(update)]));
    }
}

fn text(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Headroom => "headroom",
        Strategy::Binpack => "binpack",
        Strategy::Cost => "cost",
    }
}

impl Fleet {
    /// Does something to the index that is taken back afterwards.
    fn clone_index<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.index.clone();
        let result = change(self);
        self.index = before;
        result
    }
}
