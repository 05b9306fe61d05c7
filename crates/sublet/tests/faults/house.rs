//! Certificates for everybody, and broker processes that can be started on any folder, with
//! anything preloaded, and be watched while they end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sublet_core::resources::Resources;
use sublet_testkit::wait::PATIENCE;
use sublet_wire::Code;
use sublet_wire::client::{Client, Credentials, Error, Options, ReservationQuery};
use sublet_wire::v1::{Advertisement, Quantities, Reservation, ReservationRequest};
use tempfile::TempDir;

use crate::word;

/// Looks again and again until there is something; a test that waits in vain fails.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    sublet_testkit::wait_for(what, PATIENCE, look).unwrap_or_else(|late| panic!("{late}"))
}

/// A folder with the certificates of a broker, the operator anna, and the clusters shop and edge.
pub(crate) struct House {
    home: TempDir,
}

impl House {
    /// In memory where possible: what is tried here is failing disks, not slow ones.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { &std::env::temp_dir() };
        let house = Self { home: tempfile::tempdir_in(place).unwrap() };
        house.ok("ca init");
        house.ok("ca issue broker --server --out certs/broker");
        house.ok("ca issue anna --operator --out certs/anna");
        for cluster in ["shop", "edge"] {
            house.ok(&format!("ca issue {cluster} --out certs/{cluster}"));
        }
        // What is due ends soon after a start, so that no test has to wait for it.
        fs::write(house.path("policy.toml"), "recovery_grace = \"1s\"\n").unwrap();
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sublet"));
        command.args(words.split_whitespace()).current_dir(self.home.path()).env_clear();
        command.env("HOME", self.home.path()).stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub(crate) fn ok(&self, words: &str) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The command line of a broker on the folder `data`.
    pub(crate) fn broker(&self, data: &Path) -> Command {
        let line = "broker --policy policy.toml --http-cert-path certs/broker --http-port 0 \
             --http-bind-address 127.0.0.1 --health-probe-bind-address 0 --end-with-stdin \
             --address-file at.json --data-dir";
        let mut command = self.command(line);
        command.arg(data);
        command
    }

    /// Starts a broker; it may end instead of serving.
    pub(crate) fn start(&self, mut command: Command) -> Broker {
        let (at, log) = (self.path("at.json"), self.path("broker.log"));
        drop(fs::remove_file(&at));
        let output = File::create(&log).unwrap();
        command.stdin(Stdio::piped()).stdout(output.try_clone().unwrap()).stderr(output);
        let mut broker = Broker { child: command.spawn().unwrap(), log, url: None };
        broker.url = wait_for("the broker or its end", || {
            if broker.child.try_wait().unwrap().is_some() {
                return Some(None);
            }
            let at: serde_json::Value = serde_json::from_slice(&fs::read(&at).ok()?).unwrap();
            Some(Some(format!("https://{}", at["http"].as_str().unwrap())))
        });
        broker
    }

    /// A client that asks once and hides nothing, and that a machine that stands still for a while
    /// does not make impatient.
    pub(crate) fn client(&self, name: &str, broker: &Broker) -> Client {
        let credentials = Credentials::from_folder(&self.path(&format!("certs/{name}"))).unwrap();
        let url =
            broker.url.clone().unwrap_or_else(|| panic!("it never served: {}", broker.said()));
        let usual = Options::new(vec![url], credentials);
        Client::new(Options { attempts: 1, request_timeout: PATIENCE, ..usual }).unwrap()
    }

    /// Every reservation there is, as the operator sees it, by id.
    pub(crate) async fn reservations(&self, broker: &Broker) -> BTreeMap<String, Reservation> {
        let (anna, mut query) = (self.client("anna", broker), ReservationQuery::default());
        let mut found = BTreeMap::new();
        loop {
            let list = anna.reservations(&query).await.unwrap();
            for reservation in list.reservations {
                let twice = found.insert(reservation.id.clone(), reservation);
                assert_eq!(twice, None, "listed twice");
            }
            query.page.after = list.next;
            if query.page.after.is_none() {
                return found;
            }
        }
    }
}

/// A broker process; it does not outlive its test.
pub(crate) struct Broker {
    child: Child,
    log: PathBuf,
    /// None when it ended before it served.
    pub(crate) url: Option<String>,
}

impl Broker {
    /// Everything that it said.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it ends by itself, and gives its exit status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        wait_for("the end of the broker", || self.child.try_wait().unwrap()).code()
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(self.ended(), Some(0), "{}", self.said());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Gone already is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What edge says of itself: so many cores and GiB, all of them free.
pub(crate) fn advertisement(cores: u64) -> Advertisement {
    word::advertisement("edge", &Resources::new(cores * 1000, cores << 30))
}

/// A core and a GiB, for so long.
pub(crate) fn ask(duration: Option<&str>) -> ReservationRequest {
    let one = Quantities { cpu: "1".into(), memory: "1Gi".into(), ..Quantities::default() };
    let duration = duration.map(str::to_owned);
    ReservationRequest { requested_resources: one, duration, ..ReservationRequest::default() }
}

/// The code of an error, also of one that leaves doubt.
pub(crate) fn code(error: &Error) -> Option<Code> {
    error.problem().and_then(sublet_wire::Problem::code)
}
