//! The policy file: what the operator decided beforehand, in TOML, reloaded without a restart.
//!
//! [`parse`] is the only way from text to [`Policy`]; `sublet policy check` uses it too. An error
//! names the line and the field. A file that cannot be used is refused and the old policy kept. What
//! the file does not say is as [`Policy::default`] has it, where everybody may lend to everybody.

mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sublet_core::policy::Policy;
use sublet_process::file;

/// More than any policy that somebody can oversee.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the policy file: {0}")]
    Read(#[source] file::Error),
    /// Wrong in itself; the text shows the line and the field.
    #[error("the policy cannot be used: {0}")]
    Text(#[from] toml::de::Error),
    /// It says nothing, where the one before it said something.
    #[error(
        "the policy file says nothing any more, which would let everybody do everything: write it \
         again, or, if that is meant, restart the broker with the empty file"
    )]
    Emptied,
    /// Two fields that contradict each other.
    #[error("the policy cannot be used: {0}")]
    Contradiction(&'static str),
}

/// Reads a policy from the text of its file.
pub fn parse(text: &str) -> Result<Policy, Error> {
    let policy = toml::from_str::<text::File>(text)?.into_policy();
    let longer = |a: Option<_>, b: Option<_>| a.is_some() && b.is_some() && a > b;
    if longer(policy.duration_default, policy.duration_max) {
        return Err(Error::Contradiction("duration_default is longer than duration_max"));
    }
    if policy.silence.suspect_min > policy.silence.stale_after {
        return Err(Error::Contradiction("silence.suspect_min is longer than silence.stale_after"));
    }
    Ok(policy)
}

/// Reads the text of a policy file, within its bound.
pub fn read(path: &Path) -> Result<String, Error> {
    file::read_text(path, FILE_BYTES_MAX).map_err(Error::Read)
}

/// Does this text leave everything to the defaults?
pub fn is_empty(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.is_empty())
}

/// A policy file, and what was last read from it.
pub struct Source {
    path: PathBuf,
    /// What is in use; none where it could not be handed on.
    used: Option<String>,
    /// The last policy that was read said nothing.
    was_empty: bool,
    /// What was found the last time: another text is judged when it was found twice, because an
    /// editor may not have finished it.
    found: String,
}

impl Source {
    /// Reads the file for the first time.
    pub fn open(path: &Path) -> Result<(Self, Arc<Policy>), Error> {
        let text = read(path)?;
        let policy = Arc::new(parse(&text)?);
        let was_empty = is_empty(&text);
        let source =
            Self { path: path.to_owned(), used: Some(text.clone()), was_empty, found: text };
        Ok((source, policy))
    }

    /// What was read last could not be handed on: it is to be read again.
    pub fn forget(&mut self) {
        self.used = None;
    }

    /// Is what was found last what is in use?
    pub fn is_in_use(&self) -> bool {
        self.used.as_ref() == Some(&self.found)
    }

    /// Reads the file again: a policy if it is another one, and an error for as long as it cannot be
    /// used. A text is judged only when it was found twice: a file that is just being written is
    /// empty for a moment, and an empty policy lets everybody do everything. That is also why a file
    /// that was emptied is refused: whoever means it can say so by a restart.
    pub fn reload(&mut self) -> Result<Option<Arc<Policy>>, Error> {
        let text = read(&self.path)?;
        let is_settled = self.found == text;
        self.found = text;
        if !is_settled || self.is_in_use() {
            return Ok(None);
        }
        let policy = parse(&self.found)?;
        let is_empty = is_empty(&self.found);
        if is_empty && !self.was_empty {
            return Err(Error::Emptied);
        }
        self.was_empty = is_empty;
        self.used = Some(self.found.clone());
        Ok(Some(Arc::new(policy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_core::decision::Strategy;
    use sublet_core::resources::Kind;
    use sublet_core::time::Span;

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_file_is_the_default_policy() {
        assert_eq!(parse("").unwrap(), Policy::default());
    }

    #[test]
    fn the_sample_says_what_it_explains() {
        let policy = parse(include_str!("../../../../docs/policy.sample.toml")).unwrap();
        assert_eq!(policy.strategy, Strategy::Headroom);
        assert_eq!(policy.duration_max, Some(Span::from_secs(24 * 3600)));
        let [guest, edge] = ["guest", "edge-7"].map(|name| name.parse().unwrap());
        assert!(!policy.allows(&guest, &"vault".parse().unwrap()));
        assert!(policy.allows(&guest, &edge));
        assert_eq!(policy.allowance(&guest).held.0.get(&Kind::Cpu), Some(&4000));
        assert_eq!(policy.allowance(&guest).priority_max, 0);
        assert_eq!(policy.allowance(&edge).held.0.get(&Kind::Cpu), Some(&32_000));
    }

    #[test]
    fn what_a_named_requester_does_not_say_is_as_for_all() {
        let text = "[allowance]\npriority_max = 5\nreservations_max = 9\n\
                    [requesters.c1]\npriority_max = 7\n";
        let policy = parse(text).unwrap();
        let allowance = policy.allowance(&"c1".parse().unwrap());
        assert_eq!((allowance.priority_max, allowance.reservations_max), (7, 9));
    }

    #[test]
    fn an_error_names_the_line_and_the_field() {
        let unknown = refused("strategy = \"cost\"\nduration_maxx = \"1h\"\n");
        assert!(unknown.contains("line 2") && unknown.contains("duration_maxx"), "{unknown}");
        let bad = refused("\n[allowance]\nheld = { cpu = \"many\" }\n");
        assert!(bad.contains("line 3") && bad.contains("held"), "{bad}");
        let rule =
            refused("[[lending]]\nrequesters = \"all\"\nproviders = \"any\"\nallow = true\n");
        assert!(rule.contains("line 2") && rule.contains("any"), "{rule}");
        let name = refused("[requesters.UPPER]\npriority_max = 1\n");
        assert!(name.contains("UPPER"), "{name}");
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused() {
        let text = refused("duration_default = \"2h\"\nduration_max = \"1h\"\n");
        assert!(text.contains("longer than duration_max"), "{text}");
    }

    #[test]
    fn a_bad_file_is_an_error_for_as_long_as_it_is_there_and_the_old_policy_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "waiting_max = 1\n").unwrap();
        let (mut source, policy) = Source::open(file.path()).unwrap();
        assert_eq!(policy.waiting_max, 1);
        assert!(source.reload().unwrap().is_none());
        std::fs::write(file.path(), "waiting_max = -1\n").unwrap();
        assert!(source.reload().unwrap().is_none());
        assert!(source.reload().is_err());
        assert!(source.reload().is_err());
        // What is there for a moment only is never used.
        std::fs::write(file.path(), "").unwrap();
        assert!(source.reload().unwrap().is_none());
        std::fs::write(file.path(), "waiting_max = 2\n").unwrap();
        assert!(source.reload().unwrap().is_none());
        assert_eq!(source.reload().unwrap().unwrap().waiting_max, 2);
    }

    #[test]
    fn a_file_that_was_emptied_is_refused_and_one_that_was_empty_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "waiting_max = 1\n").unwrap();
        let (mut source, _) = Source::open(file.path()).unwrap();
        for emptied in ["", "# waiting_max = 1\n"] {
            std::fs::write(file.path(), emptied).unwrap();
            assert!(source.reload().unwrap().is_none());
            for _ in 0..2 {
                assert!(matches!(source.reload(), Err(Error::Emptied)), "{emptied:?}");
            }
        }
        let (mut again, policy) = Source::open(file.path()).unwrap();
        assert_eq!(*policy, Policy::default());
        std::fs::write(file.path(), "").unwrap();
        assert!(again.reload().unwrap().is_none());
        assert_eq!(again.reload().unwrap(), Some(policy));
        std::fs::write(file.path(), "waiting_max = 2\n").unwrap();
        assert!(source.reload().unwrap().is_none());
        assert_eq!(source.reload().unwrap().unwrap().waiting_max, 2);
    }

    #[test]
    fn a_policy_that_could_not_be_handed_on_comes_again_also_an_empty_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["waiting_max = 1\n", ""] {
            std::fs::write(file.path(), text).unwrap();
            let (mut source, policy) = Source::open(file.path()).unwrap();
            assert!(source.reload().unwrap().is_none());
            source.forget();
            assert_eq!(source.reload().unwrap(), Some(policy));
            assert!(source.reload().unwrap().is_none());
        }
    }
}
