//! Whether one side did not believe the other, found in what hyper wraps it in.

use std::error::Error;
use std::io;

use rustls::AlertDescription as Alert;

/// The TLS error at the bottom of `error`, if that is what it is.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // The source of an I/O error is what its inner error names, not that error itself.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// Did the broker refuse our certificate? With TLS 1.3 it says so only when we have begun to send,
/// but it has carried out nothing then.
pub(super) fn is_about_trust(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::AlertReceived(
            Alert::AccessDenied
                | Alert::BadCertificate
                | Alert::CertificateExpired
                | Alert::CertificateRequired
                | Alert::CertificateRevoked
                | Alert::CertificateUnknown
                | Alert::DecryptError
                | Alert::HandshakeFailure
                | Alert::UnknownCA
                | Alert::UnsupportedCertificate
        )
    )
}
