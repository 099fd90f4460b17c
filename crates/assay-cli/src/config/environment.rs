//! Variables that look like settings and are none, most likely a misspelt name; and what the terminal's own say.

use std::collections::BTreeSet;

use clap::Command;

/// What all names of settings begin with.
const PREFIX: &str = "ASSAY_";

/// Whether people want colours where they would be seen: see <https://no-color.org>.
pub(crate) fn allows_colour() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && !is_dumb_terminal()
}

/// Whether the terminal shows escape sequences instead of following them.
pub(crate) fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Variables of this process that begin like a setting's and belong to no flag of `command` or its subcommands.
pub(crate) fn unknown_variables(command: &Command) -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown_among(command, names)
}

/// The same for any names.
pub(crate) fn unknown_among(
    command: &Command,
    names: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let known = known_variables(command);
    names
        .into_iter()
        .filter(|name| name.starts_with(PREFIX) && !known.contains(name))
        .collect()
}

fn known_variables(command: &Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str().map(str::to_owned));
    let inner = command.get_subcommands().flat_map(known_variables);
    own.chain(inner).collect()
}
