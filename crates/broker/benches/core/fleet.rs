//! Fleets of clusters as they may be found, and requests to them; the same in every run.

use sublet_core::advertisement::{Advertisement, Backend, Capabilities, Cost, Number};
use sublet_core::decision::index::{Note, Row};
use sublet_core::id::{ClusterId, Key};
use sublet_core::plan::Command;
use sublet_core::reservation::Ask;
use sublet_core::resources::Resources;
use sublet_core::time::Span;

const GIB: u64 = 1 << 30;

/// Numbers without a pattern (`SplitMix64`).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What clusters a fleet is made of.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// A dozen flavours of 4 to 512 cores, each loaded at random.
    Mixed,
    /// All alike and alike loaded: everything is a tie.
    Identical,
    /// Half have only cpu left and half only memory: no bound on either tells that nothing fits.
    Lopsided,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Identical => "identical",
            Self::Lopsided => "lopsided",
        }
    }
}

/// Cores, GiB and GPUs.
const FLAVOURS: [(u64, u64, u64); 12] = [
    (4, 8, 0),
    (4, 16, 0),
    (8, 32, 0),
    (16, 32, 0),
    (16, 64, 1),
    (32, 128, 0),
    (48, 192, 4),
    (64, 256, 0),
    (96, 768, 0),
    (128, 512, 8),
    (256, 1024, 0),
    (512, 2048, 16),
];

fn amounts(cpu: u64, memory: u64, gpu: u64) -> Resources {
    let mut amounts = Resources::new(cpu, memory);
    amounts.gpu = gpu;
    amounts
}

/// The name of cluster `number`.
pub(crate) fn name(number: u64) -> ClusterId {
    format!("cluster-{number:07}").parse().expect("a valid name")
}

/// What cluster `number` says of itself.
pub(crate) fn advertisement(kind: Kind, number: u64, dice: &mut Dice) -> Advertisement {
    let (cores, gib, gpu) = match kind {
        Kind::Mixed => FLAVOURS[usize::try_from(dice.below(12)).expect("below 12")],
        Kind::Identical | Kind::Lopsided => (64, 256, 0),
    };
    let allocatable = amounts(cores * 1000, gib * GIB, gpu);
    let (cpu_load, memory_load) = match (kind, number % 2) {
        (Kind::Mixed, _) => (dice.below(96), dice.below(96)),
        (Kind::Identical, _) => (40, 40),
        (Kind::Lopsided, 0) => (5 + dice.below(5), 100),
        (Kind::Lopsided, _) => (100, 5 + dice.below(5)),
    };
    let used_gpu = if gpu == 0 { 0 } else { dice.below(gpu + 1) };
    let part =
        |whole: u64, percent: u64| if percent == 100 { whole } else { whole / 100 * percent };
    let allocated =
        amounts(part(allocatable.cpu, cpu_load), part(allocatable.memory, memory_load), used_gpu);
    let cost = Cost {
        cpu_micros: 10_000 + dice.below(30) * 1000,
        memory_micros: 1000 + dice.below(30) * 100,
        currency: "EUR".into(),
    };
    let labels = [("region", dice.below(8)), ("zone", dice.below(24)), ("tier", dice.below(3))];
    let labels = labels.map(|(label, value)| (label.into(), format!("{label}-{value}")));
    let backends = [Backend::Liqo].into();
    let (acknowledge, activate, renew, stream) = (true, true, true, true);
    Advertisement {
        number: Some(Number { incarnation: 1, sequence: 1 }),
        grants: Some(vec![]),
        labels: labels.into(),
        cost: Some(cost),
        capabilities: Capabilities { acknowledge, activate, renew, stream, backends },
        ..Advertisement::plain(name(number), allocatable, allocated)
    }
}

/// The same as the index knows it.
pub(crate) fn row(advertisement: &Advertisement) -> Row {
    let Advertisement { allocatable, allocated, cost, .. } = advertisement;
    Row {
        room: allocatable.minus_floor(allocated),
        allocatable: allocatable.clone(),
        cost: cost.clone(),
        note: Note::default(),
    }
}

/// Requests of many sizes, one in eight of them for a GPU.
pub(crate) fn asks(kind: Kind) -> Vec<Resources> {
    let mut dice = Dice::new(7);
    let ask = |n: u64| {
        let gpu = u64::from(kind == Kind::Mixed && n.is_multiple_of(8));
        let cpu = 250 * (1 + dice.below(16));
        amounts(cpu, GIB / 2 * (1 + dice.below(16)), gpu)
    };
    (0..64).map(ask).collect()
}

/// A request that nobody has room for. In the mixed fleet each of its amounts is free somewhere.
pub(crate) fn too_much(kind: Kind, rows: &[Row]) -> Resources {
    let most = |amount: fn(&Resources) -> u64| {
        rows.iter().map(|row| amount(&row.room)).max().unwrap_or_default()
    };
    let both = Resources::new(most(|room| room.cpu), most(|room| room.memory));
    match kind {
        Kind::Mixed if rows.iter().all(|row| !both.fits_in(&row.room)) => both,
        Kind::Lopsided => Resources::new(1000, GIB),
        _ => Resources::new(both.cpu + 1, both.memory),
    }
}

/// A requester's command, under a key of the usual length.
pub(crate) fn reserve(caller: u64, number: u64) -> Command {
    let key: Key = format!("5f1c09a2-7be4-4d1f-{caller:04x}-{number:012x}").parse().expect("a key");
    Command::Reserve { requester: name(caller), key, ask: ask(), explain: false }
}

/// An everyday request: half a core for an hour.
pub(crate) fn ask() -> Ask {
    Ask {
        resources: Resources::new(500, GIB),
        duration: Some(Span::from_secs(3600)),
        activates: true,
        backends: [Backend::Liqo].into(),
        ..Ask::default()
    }
}

/// A provider that is never full.
pub(crate) fn vast(number: u64) -> Advertisement {
    let vast = Resources::new(1 << 40, 1 << 56);
    let mut dice = Dice::new(number);
    let free = 30 + dice.below(60);
    Advertisement {
        allocated: Resources::new((1 << 40) / 100 * free, (1 << 56) / 100 * free),
        capacity: vast.clone(),
        allocatable: vast,
        ..advertisement(Kind::Identical, number, &mut dice)
    }
}
