//! A disk that is really full: a small file system of its own, which somebody else fills.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::disk::{Journal, ends_with_a_message};
use crate::house::{Broker, House, advertisement};

/// A file system that only we see; it goes away with the process that holds it.
struct SmallDisk {
    holder: Child,
    /// Whether it has a user namespace, too: who may not mount gets the right to by that.
    own_user: bool,
    at: PathBuf,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

impl SmallDisk {
    /// None where the system does not let us.
    fn new(at: &Path) -> Option<Self> {
        fs::create_dir(at).unwrap();
        ["-m", "-rm"].iter().find_map(|flags| {
            let hold = "mount -t tmpfs -o size=2m none \"$1\" && echo mounted && exec cat";
            let mut command = Command::new("unshare");
            command.args([flags, "sh", "-c", hold, "sh"]).arg(at);
            let holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
            let own_user = *flags == "-rm";
            let mut disk = Self { holder, own_user, at: at.to_owned() };
            let mut line = String::new();
            BufReader::new(disk.holder.stdout.take()?).read_line(&mut line).ok()?;
            (line == "mounted\n").then_some(disk)
        })
    }

    /// The same command, on this disk.
    fn inside(&self, command: &Command) -> Command {
        let mut entered = Command::new("nsenter");
        entered.arg(format!("--target={}", self.holder.id())).arg("--mount");
        if self.own_user {
            entered.args(["--user", "--preserve-credentials"]);
        }
        // The folder that it is started in is one outside.
        entered.arg(format!("--wd={}", command.get_current_dir().unwrap().display()));
        entered.arg("--").arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            entered.env(name, value.unwrap());
        }
        entered
    }

    /// A file on this disk, as it is seen from outside.
    fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.at.strip_prefix("/").unwrap()).join(name)
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = File::create(self.file("filler")).unwrap();
        while file.write(&[7; 4096]).is_ok_and(|written| written > 0) {}
    }

    fn make_room(&self) {
        fs::remove_file(self.file("filler")).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration but its environment")]
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Reserves until it no longer can; what was allocated before may hold another record or two.
async fn until_it_is_full(
    journal: &mut Journal,
    house: &House,
    broker: &Broker,
    from: usize,
) -> usize {
    let (shop, told) = (house.client("shop", broker), journal.codes.len());
    for round in from..from + 12 {
        if !journal.reserve(&shop, round).await {
            let codes = &journal.codes[told..];
            assert!(codes.iter().any(Option::is_some), "nobody was told why: {codes:?}");
            return round + 1;
        }
    }
    panic!("the disk is never full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_and_when_there_is_room_again_nothing_is_missing() {
    let house = House::new();
    let at = house.path("small");
    let Some(disk) = SmallDisk::new(&at) else {
        let why = "this system lets nobody mount a file system, so no disk was full";
        assert!(!is_ci(), "in CI nothing is left out: {why}");
        eprintln!("SKIPPED: {why}");
        return;
    };
    let mut journal = Journal::default();
    let mut broker = house.start(disk.inside(&house.broker(&at)));
    house.client("edge", &broker).advertise(&advertisement(64)).await.unwrap();
    let shop = house.client("shop", &broker);
    assert!(journal.reserve(&shop, 0).await, "{:?}", journal.codes);

    disk.fill();
    let mut round = until_it_is_full(&mut journal, &house, &broker, 1).await;
    ends_with_a_message(&mut broker, &at, "full");

    // Still full: it says so again instead of promising anything that does not fit.
    let mut again = house.start(disk.inside(&house.broker(&at)));
    disk.fill();
    if again.url.is_some() {
        house.client("edge", &again).advertise(&advertisement(64)).await.unwrap();
        round = until_it_is_full(&mut journal, &house, &again, round).await;
    }
    ends_with_a_message(&mut again, &at, "still full");
    assert!(round > 1);

    disk.make_room();
    let broker = house.start(disk.inside(&house.broker(&at)));
    journal.check(&house, &broker, "after").await;
    broker.stop();
    let checked = disk.inside(&house.command(&format!("fsck {}", at.display()))).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
