//! The environment, read here and nowhere else.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::{Exit, Stop};

/// What is taken from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `SUBLET_CONFIG`: the file with the contexts.
    config: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    config_home: Option<PathBuf>,
    /// `HOME`.
    home: Option<PathBuf>,
    /// `SUBLET_CONTEXT`: which context, where the command line does not say.
    pub(crate) context: Option<String>,
    /// `USER`: who operates, where a certificate does not say.
    pub(crate) user: Option<String>,
}

impl Environment {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub(crate) fn read() -> Self {
        // An empty variable means the same as none, as it does for shells.
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let text = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
        Self {
            config: path("SUBLET_CONFIG"),
            config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
            context: text("SUBLET_CONTEXT"),
            user: text("USER"),
        }
    }

    /// Where our files are, if nothing else was said.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        if let Some(parent) = self.config.as_deref().and_then(Path::parent) {
            return Ok(parent.into());
        }
        let home = self.home.as_ref().map(|home| home.join(".config"));
        let base = self.config_home.clone().or(home).ok_or_else(|| {
            let hint = "neither SUBLET_CONFIG, XDG_CONFIG_HOME nor HOME is set: set one of them";
            Stop::new(Exit::Usage, hint)
        })?;
        Ok(base.join("sublet"))
    }

    /// The file with the contexts.
    pub(crate) fn config_file(&self) -> Result<PathBuf> {
        match &self.config {
            Some(file) => Ok(file.clone()),
            None => Ok(self.folder()?.join("config.toml")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_files_are_where_the_environment_says() {
        let none = Environment::default();
        assert!(none.folder().is_err());
        let home = Environment { home: Some("/home/a".into()), ..none };
        assert_eq!(home.config_file().unwrap(), Path::new("/home/a/.config/sublet/config.toml"));
        let xdg = Environment { config_home: Some("/x".into()), ..home };
        assert_eq!(xdg.folder().unwrap(), Path::new("/x/sublet"));
        let own = Environment { config: Some("/etc/s.toml".into()), ..xdg };
        assert_eq!(own.config_file().unwrap(), Path::new("/etc/s.toml"));
        assert_eq!(own.folder().unwrap(), Path::new("/etc"));
    }
}
