//! Whether one side did not believe the other, found in what hyper wraps it in.

use std::error::Error;
use std::io;

/// The TLS error at the bottom of `error`, if that is what it is: nothing was carried out then.
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
