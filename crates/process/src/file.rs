//! Files that an operator names: read whole, but never without a bound, because the wrong one may be
//! named.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be what it should be.
    #[error("{} is larger than {most} bytes: is it the right file?", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// The bound.
        most: u64,
    },
}

/// The bytes of a file that has no more than `most` of them.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // Not by its size, which a device or a pipe does not have.
    let file = File::open(path).map_err(failed)?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        return Ok(bytes);
    }
    Err(Error::TooLarge { path: path.to_owned(), most })
}

/// The same, as text.
pub fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    let failed =
        |_| Error::Read { path: path.to_owned(), source: io::ErrorKind::InvalidData.into() };
    String::from_utf8(read(path, most)?).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_not_read_also_where_there_is_no_end() {
        let here = Path::new(file!())
            .file_name()
            .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name));
        let here = here.unwrap();
        let length = read(&here, 1 << 20).unwrap().len();
        let bound = u64::try_from(length).unwrap();
        assert_eq!(read(&here, bound).unwrap().len(), length);
        assert!(matches!(read(&here, bound - 1), Err(Error::TooLarge { .. })));
        assert!(matches!(read(Path::new("/dev/zero"), 9), Err(Error::TooLarge { .. })));
        assert!(matches!(read(Path::new("/no/such"), 9), Err(Error::Read { .. })));
        assert!(read_text(&here, bound).unwrap().contains("never without a bound"));
    }
}
