//! Flags with one dash, as Go's programs take them beside those with two.

use std::ffi::OsString;

use clap::Command;

/// Writes the flags of these commands that have one dash with two.
pub fn doubled(
    arguments: impl IntoIterator<Item = OsString>,
    commands: &[Command],
) -> Vec<OsString> {
    let known = |name: &str| {
        commands.iter().flat_map(Command::get_arguments).any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(name) || aliases.contains(&name)
        })
    };
    let two = |argument: OsString| {
        let text = argument.to_str().and_then(|text| text.strip_prefix('-'));
        let name = text.map(|text| text.split_once('=').map_or(text, |(name, _)| name));
        if name.is_some_and(|name| name.len() > 1 && known(name)) {
            let mut doubled = OsString::from("-");
            doubled.push(argument);
            return doubled;
        }
        argument
    };
    arguments.into_iter().map(two).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn only_the_flags_that_are_known_get_a_second_dash() {
        let known = Command::new("x").arg(Arg::new("port").long("http-port").alias("port"));
        let typed = ["x", "-http-port=1", "-port", "2", "--http-port", "-v", "-other", "-"];
        let doubled = doubled(typed.map(OsString::from), &[known]);
        let expected = ["x", "--http-port=1", "--port", "2", "--http-port", "-v", "-other", "-"];
        assert_eq!(doubled, expected.map(OsString::from));
    }
}
