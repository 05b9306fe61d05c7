//! A body cut into lines, of which none may be too long.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::limits::LINE_MAX;

/// Why there is no next line.
pub(super) enum End {
    /// The body is over; what was begun is not a line.
    Closed,
    /// The connection broke.
    Broken(hyper::Error),
    /// A line is longer than is read.
    TooLong,
}

/// A body and what of it was read too far.
pub(super) struct Lines {
    body: Incoming,
    chunk: Bytes,
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, chunk: Bytes::new(), begun: Vec::new() }
    }

    /// The next line without its newline. Nothing is lost when this future is dropped.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, End> {
        loop {
            if let Some(line) = take_line(&mut self.chunk, &mut self.begun)? {
                return Ok(line);
            }
            match self.body.frame().await {
                // Trailers say nothing to us.
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Err(End::Broken(error)),
                None => return Err(End::Closed),
            }
        }
    }
}

/// A line if the chunk ends one; what is left of the chunk otherwise goes to what was begun.
fn take_line(chunk: &mut Bytes, begun: &mut Vec<u8>) -> Result<Option<Vec<u8>>, End> {
    let end = chunk.iter().position(|byte| *byte == b'\n');
    let length = end.unwrap_or(chunk.len());
    if begun.len() + length > LINE_MAX {
        return Err(End::TooLong);
    }
    begun.extend_from_slice(&chunk.split_to(length));
    if end.is_none() {
        return Ok(None);
    }
    chunk.advance(1);
    Ok(Some(std::mem::take(begun)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of these chunks, and what was begun after the last.
    fn lines(chunks: &[&[u8]]) -> Option<(Vec<Vec<u8>>, Vec<u8>)> {
        let (mut found, mut begun) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while let Some(line) = take_line(&mut chunk, &mut begun).ok()? {
                found.push(line);
            }
        }
        Some((found, begun))
    }

    #[test]
    fn lines_may_be_cut_anywhere() {
        let text = b"one\n\ntwo\nthree";
        for at in 0..=text.len() {
            let (first, second) = text.split_at(at);
            let (found, begun) = lines(&[first, second]).expect("short lines");
            assert_eq!(found, [&b"one"[..], b"", b"two"]);
            assert_eq!(begun, b"three");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_not_kept_for_ever() {
        let chunk = vec![b'x'; LINE_MAX];
        assert!(lines(&[&chunk, b"\n"]).is_some());
        assert!(lines(&[&chunk, b"x"]).is_none());
    }
}
