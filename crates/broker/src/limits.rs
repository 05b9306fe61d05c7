//! Every limit of the broker's edge, in one place, each with its reason.
//!
//! What lies beyond a limit gets a clear answer, or is closed; nothing waits without an end. The
//! limits of amounts and names are the core's, those of bodies and pages the wire's.

use std::time::Duration;

const KIB: usize = 1024;

/// How much the broker takes, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all. An idle one costs some 30 KiB. Answers that are not taken come on top: as
    /// many as there are turns, as much as `answer_bytes`, and none for longer than `write`; and of every
    /// HTTP/2 request the last 8 KiB, which hyper keeps until they are taken or the connection ends.
    pub connections: usize,
    /// Connections of one cluster. A Go agent opens up to 10, ours two.
    pub connections_per_cluster: usize,
    /// Handshakes at the same time, of peers that have begun: they cost a stranger little and us
    /// much, and whoever is connected already should not have to wait for all of them.
    pub handshakes: usize,
    /// The same of one address, so that one cannot hold them all.
    pub handshakes_per_address: usize,
    /// Connections of one address whose handshake is not over: far fewer than there may be in all,
    /// and more than the agents behind one NAT.
    pub arrivals_per_address: usize,
    /// For the TLS handshake, its wait for a turn included. Go's client gives up after the same.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its headers; on HTTP/2, from the handshake to
    /// the first request.
    pub head: Duration,
    /// Without a request; on HTTP/2, up to twice that. Longer than the 90 s of Go's client, so that it
    /// closes first.
    pub idle: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// For an answer, the wait for the disk included. Well under the 30 s of a Go agent.
    pub request: Duration,
    /// For a peer to take what was sent, or, on HTTP/2, a part of any answer that is ready for it.
    pub write: Duration,
    /// For open requests and streams when the broker ends, or the authority is replaced that let
    /// their connection in.
    pub drain: Duration,
    /// Bodies that are read at the same time and are beyond the ordinary length already.
    pub large_bodies: usize,
    /// The same of one cluster: it has one agent, and its second try.
    pub large_bodies_per_cluster: usize,
    /// Bytes of answers that are made and not delivered yet, of those beyond 8 KiB, in all. A page of a
    /// thousand reservations has some 650 KiB. What is smaller comes to 8 KiB for each turn at most:
    /// 64 MiB with all ordinary turns taken.
    pub answer_bytes: usize,
    /// The same of one cluster. A single answer may have more: the whole list of an older Go agent has
    /// as much as there is.
    pub answer_bytes_per_cluster: usize,
    /// Of the path and query of one request: no URL of ours has a thousand.
    pub uri_bytes: usize,
    /// Of all headers of one request. Twice that is read, so that an answer can say so.
    pub head_bytes: usize,
    /// Headers of one request. Some more are read, for the same reason.
    pub headers: usize,
    /// Requests at the same time on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// TLS sessions that can be resumed.
    pub sessions: usize,
    /// New requests and lists in work at the same time, in all.
    pub ordinary: usize,
    /// The same of one cluster.
    pub ordinary_per_cluster: usize,
    /// Heartbeats, releases, acknowledgements and renewals in work at the same time, in all.
    /// A heartbeat takes two of the engine's places for these, so there must be twice as many.
    pub urgent: usize,
    /// Turns of operators beside those, so that a flood cannot keep them from revoking its sender.
    pub operators: usize,
    /// The same of one cluster.
    pub urgent_per_cluster: usize,
    /// Requests per second of one cluster, in each of the two lanes.
    pub rate_per_cluster: u32,
    /// Messages between agents that are taken in at the same time, in all: they are small, rare and
    /// may get lost, so they have places of their own.
    pub messages_taken: usize,
    /// The same of one cluster.
    pub messages_taken_per_cluster: usize,
    /// Messages per second of one cluster. A link takes three of each side.
    pub message_rate_per_cluster: u32,
    /// Messages that are kept of one cluster for another one: a link uses eight slots at most, and
    /// there are two of a pair.
    pub messages_per_pair: usize,
    /// Messages that are kept of one cluster.
    pub messages_per_cluster: usize,
    /// Bytes that are kept of one cluster's messages.
    pub message_bytes_per_cluster: usize,
    /// Bytes that are kept of all messages.
    pub message_bytes: usize,
    /// Open streams of one cluster. An agent has one, and a second while it reconnects.
    pub streams_per_cluster: usize,
    /// Between two signs of life on a stream. Clients go by the wire's.
    pub keep_alive: Duration,
    /// Between two looks at certificates and policy.
    pub reload: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            connections_per_cluster: 128,
            handshakes: 1024,
            handshakes_per_address: 32,
            arrivals_per_address: 2048,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_mins(2),
            body: Duration::from_secs(15),
            request: Duration::from_secs(20),
            write: Duration::from_secs(30),
            drain: Duration::from_secs(20),
            large_bodies: 16,
            large_bodies_per_cluster: 2,
            answer_bytes: 256 * 1024 * KIB,
            answer_bytes_per_cluster: 16 * 1024 * KIB,
            uri_bytes: 4 * KIB,
            head_bytes: 16 * KIB,
            headers: 64,
            streams_per_connection: 100,
            sessions: 1024,
            ordinary: 8192,
            ordinary_per_cluster: 1024,
            urgent: 3840,
            operators: 64,
            urgent_per_cluster: 256,
            rate_per_cluster: 1000,
            messages_taken: 256,
            messages_taken_per_cluster: 32,
            message_rate_per_cluster: 100,
            messages_per_pair: 32,
            messages_per_cluster: 2048,
            message_bytes_per_cluster: 4096 * KIB,
            message_bytes: 64 * 1024 * KIB,
            streams_per_cluster: 8,
            keep_alive: Duration::from_millis(sublet_wire::limits::KEEP_ALIVE.as_millis()),
            reload: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use sublet_log::Writer;

    use super::*;
    use crate::engine::Options;

    #[test]
    fn the_engine_has_a_place_for_every_turn() {
        let (limits, options) = (Limits::default(), Options::alone(Writer(1)));
        assert!(limits.ordinary <= options.queue_max);
        // Whether a message may be sent is looked up on the way of the urgent.
        let taken = limits.operators + limits.messages_taken;
        assert!(2 * limits.urgent + taken <= options.queue_max);
    }
}
