//! A broker in a process of its own, with certificates and contexts for everybody.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use sublet_core::resources::Resources;
use sublet_testkit::Port;
use sublet_testkit::wait::PATIENCE;
use sublet_wire::client::{Client, Credentials, Options};
use sublet_wire::v1::Advertisement;

use crate::program::{Ended, Person};
use crate::word::advertisement;

/// How a command ends that the broker did not answer.
const UNANSWERED: i32 = 5;

/// A process that does not outlive its test.
pub(crate) struct Owned(pub(crate) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Looks again and again until there is something; a test that waits in vain fails.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    sublet_testkit::wait_for(what, PATIENCE, look).unwrap_or_else(|late| panic!("{late}"))
}

/// Sends a process of ours a signal.
pub(crate) fn signal(process: &Child, which: &str) {
    let pid = process.id().to_string();
    assert!(Command::new("kill").args([which, &pid]).status().unwrap().success());
}

/// Starts a broker on a port with these flags beside the usual ones, and returns when it serves there.
fn serve(anna: &Person, port: &Port, flags: &'static str) -> Owned {
    let line = "broker --policy policy.toml --data-dir data --http-cert-path certs/broker --address-file at.json \
                --http-bind-address 127.0.0.1 --health-probe-bind-address 0 --end-with-stdin --http-port";
    let port = port.number().to_string();
    let words = line.split_whitespace().chain([port.as_str()]);
    let words: Vec<_> = words.chain(flags.split_whitespace()).collect();
    let log = File::options().create(true).append(true).open(anna.path("broker.log")).unwrap();
    // What an earlier one said of itself is not this one's.
    drop(std::fs::remove_file(anna.path("at.json")));
    let mut command = anna.command(&words);
    let command = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut broker = Owned(command.spawn().unwrap());
    wait_for("the broker", || {
        let ended = broker.0.try_wait().unwrap();
        assert!(ended.is_none(), "the broker ended: {}", anna.read("broker.log"));
        anna.path("at.json").exists().then_some(())
    });
    broker
}

/// A broker and those who use it: the operator anna, whose context is in use, and two clusters.
pub(crate) struct Town {
    pub(crate) anna: Person,
    pub(crate) url: String,
    broker: Option<Owned>,
    /// Kept while the broker is away: no outgoing connection gets it then, nor another test.
    port: Port,
    flags: &'static str,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With these flags of the broker.
    pub(crate) fn with(flags: &'static str) -> Self {
        let anna = Person::new();
        anna.ok("ca init");
        anna.ok("ca issue broker --server --out certs/broker");
        anna.ok("ca issue anna --operator --out certs/anna");
        for cluster in ["shop", "edge"] {
            anna.ok(&format!("ca issue {cluster} --out certs/{cluster}"));
        }
        // What is due ends soon after a start, so that no test has to wait for it.
        std::fs::write(anna.path("policy.toml"), "recovery_grace = \"1s\"\n").unwrap();
        let port = Port::reserve().unwrap();
        let broker = serve(&anna, &port, flags);
        let url = format!("https://127.0.0.1:{}", port.number());
        for name in ["anna", "shop", "edge"] {
            let path = format!("--cert-path certs/{name} --broker-url {url}");
            anna.ok(&format!("config set-context {name} {path}"));
        }
        Self { anna, url, broker: Some(broker), port, flags }
    }

    /// edge says that it has so many cores, a GiB for each, all of them free.
    pub(crate) fn edge_has(&self, cores: u64) {
        self.edge_says(&advertisement("edge", &Resources::new(cores * 1000, cores << 30)));
    }

    /// edge says this of itself.
    pub(crate) fn edge_says(&self, word: &Advertisement) {
        let credentials = Credentials::from_folder(&self.anna.path("certs/edge")).unwrap();
        let client = Client::new(Options::new(vec![self.url.clone()], credentials)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(client.advertise(word)).unwrap();
    }

    pub(crate) fn stop(&mut self) {
        self.broker = None;
    }

    /// Sends the broker a signal, such as `-STOP`.
    pub(crate) fn signal(&self, which: &str) {
        signal(&self.broker.as_ref().unwrap().0, which);
    }

    /// Kills the broker, and starts it again where it was.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.broker = Some(serve(&self.anna, &self.port, self.flags));
    }

    /// Runs a command as shop or edge.
    #[track_caller]
    pub(crate) fn ok_as(&self, who: &str, line: &str) -> String {
        self.anna.ok(&format!("{line} --context {who}"))
    }

    #[track_caller]
    pub(crate) fn fails_as(&self, who: &str, line: &str, status: i32, saying: &str) {
        self.anna.fails(&format!("{line} --context {who}"), status, saying);
    }

    pub(crate) fn run_as(&self, who: &str, line: &str) -> Ended {
        self.anna.run(&format!("{line} --context {who}"))
    }

    /// One reservation, as the operator sees it.
    #[track_caller]
    pub(crate) fn reservation(&self, id: &str) -> serde_json::Value {
        self.asked(&format!("get reservations {id} -o json"))[0].clone()
    }

    /// What the operator is answered, in JSON. A connection may break on a machine that stands still for a
    /// while; to ask again changes nothing.
    #[track_caller]
    pub(crate) fn asked(&self, line: &str) -> serde_json::Value {
        wait_for(line, || {
            let ended = self.anna.run(line);
            if ended.status == UNANSWERED {
                return None;
            }
            assert_eq!(ended.status, 0, "{line}: {ended:?}");
            Some(serde_json::from_str(&ended.out).unwrap())
        })
    }

    pub(crate) fn follow(&self, who: &str, line: &str) -> Owned {
        let words: Vec<_> = line.split(' ').chain(["--context", who]).collect();
        let child = self.anna.command(&words).stdout(Stdio::piped()).spawn();
        Owned(child.unwrap())
    }
}
