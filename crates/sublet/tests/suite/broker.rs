//! A broker in a process of its own, with certificates and contexts for everybody.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sublet_core::resources::Resources;
use sublet_wire::client::{Client, Credentials, Options};
use sublet_wire::v1::Advertisement;

use crate::program::{Ended, Person};
use crate::word::advertisement;

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
pub(crate) fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    for _ in 0..1500 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} did not come");
}

/// Sends a process of ours a signal.
pub(crate) fn signal(process: &Child, which: &str) {
    let pid = process.id().to_string();
    assert!(Command::new("kill").args([which, &pid]).status().unwrap().success());
}

/// Starts a broker on a port, and says on which.
fn serve(anna: &Person, port: &str) -> (Owned, String) {
    let line = "broker --policy policy.toml --data-dir data --http-cert-path certs/broker --address-file at.json \
                --http-bind-address 127.0.0.1 --health-probe-bind-address 0 --end-with-stdin --http-port";
    let words: Vec<_> = line.split_whitespace().chain([port]).collect();
    let log = File::options().create(true).append(true).open(anna.path("broker.log")).unwrap();
    // What an earlier one said of itself is not this one's.
    drop(std::fs::remove_file(anna.path("at.json")));
    let mut command = anna.command(&words);
    let command = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
    let broker = Owned(command.spawn().unwrap());
    let text = wait_for("the broker", || std::fs::read(anna.path("at.json")).ok());
    let at: serde_json::Value = serde_json::from_slice(&text).unwrap();
    (broker, at["http"].as_str().unwrap().rsplit(':').next().unwrap().to_owned())
}

/// A broker and those who use it: the operator anna, whose context is in use, and two clusters.
pub(crate) struct Town {
    pub(crate) anna: Person,
    pub(crate) url: String,
    broker: Option<Owned>,
}

impl Town {
    pub(crate) fn new() -> Self {
        let anna = Person::new();
        anna.ok("ca init");
        anna.ok("ca issue broker --server --out certs/broker");
        anna.ok("ca issue anna --operator --out certs/anna");
        for cluster in ["shop", "edge"] {
            anna.ok(&format!("ca issue {cluster} --out certs/{cluster}"));
        }
        // What is due ends soon after a start, so that no test has to wait for it.
        std::fs::write(anna.path("policy.toml"), "recovery_grace = \"1s\"\n").unwrap();
        let (broker, port) = serve(&anna, "0");
        let url = format!("https://127.0.0.1:{port}");
        for name in ["anna", "shop", "edge"] {
            let path = format!("--cert-path certs/{name} --broker-url {url}");
            anna.ok(&format!("config set-context {name} {path}"));
        }
        Self { anna, url, broker: Some(broker) }
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
        let port = self.url.rsplit(':').next().unwrap();
        self.broker = Some(serve(&self.anna, port).0);
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
        let list = self.anna.ok(&format!("get reservations {id} -o json"));
        serde_json::from_str::<serde_json::Value>(&list).unwrap()[0].clone()
    }

    pub(crate) fn follow(&self, who: &str, line: &str) -> Owned {
        let words: Vec<_> = line.split(' ').chain(["--context", who]).collect();
        let child = self.anna.command(&words).stdout(Stdio::piped()).spawn();
        Owned(child.unwrap())
    }
}
