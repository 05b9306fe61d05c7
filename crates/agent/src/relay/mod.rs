//! What travels between the agents of two clusters, through a broker that they need not believe.
//!
//! This module owns the [`Letter`]s of a link's handshake, how they are signed, checked and sealed.
//! It knows neither Kubernetes nor what a letter leads to. Everything here is decided from bytes,
//! files of credentials and a given time.
//!
//! A letter is signed twice over the same bytes: with the key of the agent's certificate, so that a
//! broker without the key of the authority can become nobody, and with the cluster's Liqo key, so
//! that even one that has it cannot become a cluster whose Liqo key is pinned. ADR 0016 has the
//! reasons.

mod credentials;
mod envelope;
mod error;
mod key;
mod letter;
pub mod seal;
mod sign;
mod verify;

#[cfg(test)]
mod tests;

pub use error::{Error, Reason};
pub use key::{LiqoKey, PublicKey};
pub use letter::{Content, Header, Letter, LinkId, Nonce, Objection, TenantOffer};
pub use sign::Signer;
pub use verify::{Opened, Verifier};

use sublet_core::time::Span;

/// How far ahead a letter may expire at most.
pub const AHEAD_MAX: Span = Span::from_secs(600);
/// How far apart the clocks of two clusters may be.
pub const SKEW: Span = Span::from_secs(60);
/// Every signature is over these bytes and then the letter. Liqo signs the other's nonce with the
/// same key: no nonce begins like this, because [`Nonce`] takes base64 alone.
const DOMAIN: &[u8] = b"sublet-link-v1\0";

/// What the two signatures are over.
fn to_be_signed(letter: &[u8]) -> Vec<u8> {
    [DOMAIN, letter].concat()
}
