//! A line between an agent and its API server that can be cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A line that passes everything on, until it is cut; whoever connects again is passed on again.
pub(super) struct Line {
    pub(super) address: SocketAddr,
    cuts: watch::Sender<u64>,
    _task: JoinSet<()>,
}

impl Line {
    pub(super) async fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = watch::Sender::new(0);
        let mut task = JoinSet::new();
        task.spawn(pass_on(listener, to, cuts.subscribe()));
        Self { address, cuts, _task: task }
    }

    /// Breaks every connection there is.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }
}

async fn pass_on(listener: TcpListener, to: SocketAddr, cuts: watch::Receiver<u64>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut near, _)) = listener.accept().await else { continue };
        let mut cuts = cuts.clone();
        cuts.mark_unchanged();
        connections.spawn(async move {
            // A server that is not there is a connection that breaks.
            let Ok(mut far) = TcpStream::connect(to).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = cuts.changed() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
