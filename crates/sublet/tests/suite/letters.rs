//! Two agents and a broker in a process of its own: letters that are signed and sealed, over mTLS, with
//! the certificates that `sublet ca` issues.

use std::path::Path;
use std::sync::Arc;

use rcgen::{KeyPair, PKCS_ED25519};
use sublet_agent::metrics::Metrics;
use sublet_agent::relay::seal::{Key, Lock};
use sublet_agent::relay::{
    Content, Header, Letter, LinkId, LiqoKey, Nonce, Opened, Signer, TenantOffer, Verifier,
};
use sublet_agent::transport::{Broker as _, Feed, Http, News};
use sublet_core::id::ClusterId;
use sublet_core::time::{Span, Time};
use sublet_testkit::wait::PATIENCE;
use sublet_wire::client::{Credentials, Options};
use sublet_wire::v1::Message;

use crate::broker::Town;

/// One cluster's agent, as far as it writes and reads letters.
struct Agent {
    id: ClusterId,
    http: Http,
    feed: Box<dyn Feed>,
    signer: Signer,
    verifier: Verifier,
    liqo: LiqoKey,
    metrics: Arc<Metrics>,
}

fn now() -> Time {
    let millis = jiff::Timestamp::now().as_millisecond();
    Time::from_millis(u64::try_from(millis).unwrap())
}

impl Agent {
    fn new(town: &Town, name: &str) -> Self {
        let folder = town.anna.path(&format!("certs/{name}"));
        let credentials = Credentials::from_folder(&folder).unwrap();
        let http = Http::new(Options::new(vec![town.url.clone()], credentials), None).unwrap();
        let (id, metrics): (ClusterId, _) = (name.parse().unwrap(), Arc::new(Metrics::new()));
        let liqo = KeyPair::generate_for(&PKCS_ED25519).unwrap().serialize_pem();
        Self {
            feed: http.feed(),
            http,
            signer: Signer::new(folder.clone()),
            verifier: Verifier::new(id.clone(), folder, Arc::clone(&metrics)),
            liqo: LiqoKey::from_pem(liqo.as_bytes()).unwrap(),
            id,
            metrics,
        }
    }

    fn header(&self, to: &Self, requester: &Self, link: &LinkId) -> Header {
        let (from, to, requester) = (self.id.clone(), to.id.clone(), requester.id.clone());
        let expires_at = now().checked_add(Span::from_secs(60)).unwrap();
        Header { from, to, requester, link: link.clone(), expires_at }
    }

    async fn send(&self, letter: &Letter, slot: &str) {
        let content = self.signer.write(letter, &self.liqo).unwrap();
        let (to, slot) = (letter.header.to.to_string(), slot.to_owned());
        let ttl = Some("1m".to_owned());
        let message = Message { to, slot, content, ttl, ..Message::default() };
        self.http.send(&message).await.unwrap();
    }

    /// The next news that is wanted.
    async fn next<T>(&mut self, wanted: impl Fn(News) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = wanted(self.feed.next().await) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("news")
    }

    async fn message(&mut self) -> Message {
        self.next(|news| if let News::Message(message) = news { Some(message) } else { None }).await
    }

    async fn letter(&mut self) -> Opened {
        let message = self.message().await;
        self.verifier.open(&message, now()).unwrap()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Shop borrows of edge.
fn town() -> Town {
    let town = Town::new();
    town.edge_has(8);
    town.ok_as("shop", "request --cpu 1 --memory 1Gi");
    town
}

/// Whether any file in a folder has these bytes in it.
fn is_in_folder(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_handshake_passes_through_a_broker_that_learns_nothing_and_keeps_nothing() {
    let town = town();
    runtime().block_on(async {
        let (mut shop, mut edge) = (Agent::new(&town, "shop"), Agent::new(&town, "edge"));
        shop.send(&shop.header(&edge, &shop, &LinkId::none()).letter(Content::Call), "call").await;
        assert_eq!(edge.letter().await.letter.content, Content::Call);

        let nonce: Nonce = "A".repeat(88).parse().unwrap();
        let link = LinkId::derive(&shop.id, &edge.id, &nonce);
        let asks = edge.header(&shop, &shop, &link).letter(Content::Nonce { nonce });
        edge.send(&asks, "nonce").await;
        let opened = shop.letter().await;
        assert_eq!((&opened.letter, &opened.liqo_key), (&asks, edge.liqo.public()));

        let key = Key::generate().unwrap();
        let offer = TenantOffer {
            public_key: shop.liqo.public().clone(),
            csr: "a request".to_owned(),
            signature: vec![1; 64],
            seal_key: key.public(),
        };
        let offers = shop.header(&edge, &shop, &link).letter(Content::TenantOffer(offer));
        shop.send(&offers, "offer").await;
        let opened = edge.letter().await.pinned_to(shop.liqo.public()).unwrap();
        let Content::TenantOffer(offer) = opened.of_link(&link).unwrap().content else {
            panic!("not an offer");
        };

        let header = edge.header(&shop, &shop, &link);
        let sealed = Lock(offer.seal_key).seal(b"https://edge.example:6443", &header).unwrap();
        edge.send(&header.letter(Content::IdentityOffer { sealed }), "identity").await;
        let message = shop.message().await;
        assert!(!message.content.contains("edge.example"));
        let opened = shop.verifier.open(&message, now()).unwrap().letter;
        let Content::IdentityOffer { sealed } = &opened.content else { panic!("not an answer") };
        assert_eq!(key.open(sealed, &opened.header).unwrap(), b"https://edge.example:6443");

        let data = town.anna.path("data");
        assert!(is_in_folder(&data, "shop"), "this can fail");
        for text in ["certificates", "liqoSignature", &message.content[20..60]] {
            assert!(!is_in_folder(&data, text), "{text} is in the broker's data");
            assert!(!town.anna.read("broker.log").contains(text), "{text} is in its lines");
        }
    });
}

#[test]
fn a_broker_that_is_killed_loses_a_letter_and_one_that_is_sent_again_arrives() {
    let mut town = town();
    runtime().block_on(async {
        let (shop, mut edge) = (Agent::new(&town, "shop"), Agent::new(&town, "edge"));
        let call = || shop.header(&edge, &shop, &LinkId::none()).letter(Content::Call);
        // Nobody listens yet.
        shop.send(&call(), "lost").await;
        town.signal("-KILL");
        town.restart();
        shop.send(&call(), "again").await;
        let message = edge.message().await;
        assert_eq!((&*message.slot, &*message.from), ("again", "shop"));
        edge.verifier.open(&message, now()).unwrap();

        // The stream was open this time: it comes back by itself.
        town.signal("-KILL");
        town.restart();
        edge.next(|news| matches!(news, News::Interrupted(_)).then_some(())).await;
        let letter = shop.header(&edge, &shop, &LinkId::none()).letter(Content::Call);
        shop.send(&letter, "third").await;
        assert_eq!(edge.message().await.slot, "third");
    });
}

#[test]
fn a_letter_that_was_taken_down_on_the_way_is_refused_when_it_is_played_again() {
    let town = town();
    runtime().block_on(async {
        let (shop, mut edge) = (Agent::new(&town, "shop"), Agent::new(&town, "edge"));
        let letter = shop.header(&edge, &shop, &LinkId::none()).letter(Content::Call);
        shop.send(&letter, "call").await;
        let recorded = edge.message().await;
        edge.verifier.open(&recorded, now()).unwrap();
        let later = now().checked_add(Span::from_secs(180)).unwrap();
        let error = edge.verifier.open(&recorded, later).unwrap_err();
        assert_eq!(error.reason().0, "expired");
        // Edge itself, with its own certificate, cannot pass it on as its own either.
        let replayed = Message { to: "shop".into(), slot: "call".into(), ..recorded };
        let mut shop = shop;
        let posing = Message { from: String::new(), ..replayed };
        edge.http.send(&posing).await.unwrap();
        let message = shop.message().await;
        let error = shop.verifier.open(&message, now()).unwrap_err();
        assert_eq!(error.reason().0, "misdirected");
        let line = "sublet_agent_letters_refused_total{reason=\"misdirected\"} 1";
        assert!(shop.metrics.page().contains(line));
    });
}
