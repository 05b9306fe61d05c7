//! The body of a request, within its bounds of length and time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use sublet_wire::{Code, Problem, limits};

use super::call::{Call, busy};
use crate::admission::{Admission, Share, Turn};
use crate::authorize::Endpoint;

/// What is read of a body that is too long after that is known, as Go's server does.
const DISCARDED_MAX: usize = 256 * 1024;
/// And for how long.
const DISCARD_PATIENCE: Duration = Duration::from_secs(2);
/// What is copied sooner than kept where it is.
const COPIED_MAX: usize = 4096;

/// The whole body of a call.
pub(super) async fn read(call: &Call, mut body: Body) -> Result<Bytes, Problem> {
    let Call { app, peer, row, .. } = call;
    let is_large = row.endpoint == Endpoint::Advertise;
    let most = if is_large { limits::ADVERTISEMENT_BODY_MAX } else { limits::BODY_MAX };
    // As far as it was announced.
    if hyper::body::Body::size_hint(&body).lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        discard(body).await;
        return Err(too_large(most));
    }
    let read = collect(&app.admission, &peer.share, &mut body, most);
    match tokio::time::timeout(app.limits.body, read).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(problem)) => {
            discard(body).await;
            Err(problem)
        }
        Err(_) => {
            let said = format!("the body did not arrive within {} s", app.limits.body.as_secs());
            Err(Problem::new(Code::RequestTimeout, said))
        }
    }
}

/// A few large bodies at a time, so that they cannot fill the memory together: each has its place for
/// as long as it is there, also while it is understood and answered. Whoever has sent little so far
/// takes no place, whatever was announced.
async fn collect(
    admission: &Admission,
    share: &Share,
    body: &mut Body,
    most: usize,
) -> Result<Bytes, Problem> {
    let (mut first, mut all, mut place) = (None, BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let broken = |_| Problem::new(Code::InvalidBody, "the body did not arrive as announced");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let length = first.as_ref().map_or(all.len(), Bytes::len).saturating_add(data.len());
        if length > most {
            return Err(too_large(most));
        }
        if length > limits::BODY_MAX && place.is_none() {
            place = Some(admission.large_body(share).map_err(busy)?);
        }
        // Nearly always it is one piece.
        match first.take() {
            None if all.is_empty() => first = Some(data),
            before => {
                all.extend_from_slice(&before.unwrap_or_default());
                all.extend_from_slice(&data);
            }
        }
    }
    let whole = first.map_or_else(|| all.freeze(), own);
    Ok(match place {
        Some(place) => Bytes::from_owner(Large { whole, _place: place }),
        None => whole,
    })
}

/// A large body, in its place until nobody has it any more.
struct Large {
    whole: Bytes,
    _place: Turn,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.whole
    }
}

/// A small piece of a connection's buffer is copied, so that nothing of the buffer is kept; see [`Call`].
fn own(piece: Bytes) -> Bytes {
    if piece.len() <= COPIED_MAX { Bytes::copy_from_slice(&piece) } else { piece }
}

/// Reads on for a little: who is still sending when the connection closes never sees the answer.
async fn discard(body: Body) {
    let mut rest = Limited::new(body, DISCARDED_MAX);
    let read = async { while let Some(Ok(_)) = rest.frame().await {} };
    // Whoever sends more, or slowly, is not waited for.
    drop(tokio::time::timeout(DISCARD_PATIENCE, read).await);
}

fn too_large(most: usize) -> Problem {
    let mut problem =
        Problem::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
    problem.details.limit = Some(most.to_string());
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Caller;
    use crate::limits::Limits;

    #[tokio::test]
    async fn a_large_body_keeps_its_place_for_as_long_as_it_is_there() {
        let admission = Admission::new(Limits { large_bodies: 1, ..Limits::default() });
        let (share, _seat) = admission.connect(&Caller::Operator("ada".into())).unwrap();
        let read = async |length: usize| {
            let mut body = Body::from(vec![b' '; length]);
            collect(&admission, &share, &mut body, limits::ADVERTISEMENT_BODY_MAX).await
        };
        let large = limits::BODY_MAX + 1;
        let first = read(large).await.unwrap();
        assert_eq!(first.len(), large);
        assert_eq!(read(large).await.unwrap_err().code(), Some(Code::RateLimited));
        assert_eq!(read(limits::BODY_MAX).await.unwrap().len(), limits::BODY_MAX);
        drop(first);
        assert!(read(large).await.is_ok());
    }
}
