//! Who asks, as of now: a certificate may have been revoked, or its time may be over, since the
//! connection was made. The API and the metrics ask the same.

use std::sync::Arc;

use sublet_core::time::Time;
use sublet_wire::{Code, Problem};

use crate::connection::Peer;
use crate::identity::Identity;
use crate::revoked::Shut;

/// There is none.
pub(super) fn no_certificate() -> Problem {
    Problem::new(Code::CertificateRequired, "Client certificate required")
}

/// Who a peer is, if it is still believed at `now`.
pub(crate) fn identify(peer: &Peer, revoked: &Shut, now: Time) -> Result<Arc<Identity>, Problem> {
    let identity = peer.identity.as_ref();
    let identity =
        identity.map_err(|error| Problem::new(Code::InvalidIdentity, error.to_string()))?;
    if revoked.covers(identity) {
        let said = "this certificate was revoked: ask an operator for a new one";
        return Err(Problem::new(Code::CertificateRevoked, said));
    }
    if identity.expires_at < now {
        let said = "the client certificate has expired: renew it and connect again";
        return Err(Problem::new(Code::CertificateRequired, said));
    }
    Ok(Arc::clone(identity))
}
