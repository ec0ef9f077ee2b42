//! What shells and `man` are told of the program: made of the arguments themselves, so that it is never behind.

use crate::arguments::Arguments;
use crate::print;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use consilience::{Error, Result, draft};
use std::path::PathBuf;

/// The shell to complete for.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

/// Where to put manual pages.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write a page for the program and for every command into DIR [default: the
    /// program's page to stdout]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  consilience completions bash > \\
      ~/.local/share/bash-completion/completions/consilience
  consilience completions zsh > ~/.zfunc/_consilience
  consilience completions fish > ~/.config/fish/completions/consilience.fish";

pub const MAN_EXAMPLES: &str = "\
Examples:
  consilience man | man -l -
  consilience man --out ~/.local/share/man/man1";

/// Prints a script by which a shell completes commands and flags.
pub fn completions(arguments: &CompletionsArguments) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "consilience", &mut script);
    // A script is no text to look at: nothing in it may be changed.
    crate::written(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, or writes all of them.
pub fn man(arguments: &ManArguments) -> Result<()> {
    let mut command = Arguments::command();
    command.build();
    let Some(folder) = &arguments.out else {
        return crate::written(&page(command)?);
    };
    draft::make_folder(folder)?;
    let mut pages = vec![("consilience.1".to_string(), page(command.clone())?)];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("consilience-{}", sub.get_name());
        if sub.get_name() != "help" {
            let own = sub.clone().display_name(name.clone());
            pages.push((format!("{name}.1"), page(own)?));
        }
    }
    for (name, text) in &pages {
        draft::write(&folder.join(name), text)?;
    }
    print(&format!("{} pages are in {}.\n", pages.len(), folder.display()))
}

fn page(command: clap::Command) -> Result<String> {
    let mut text = Vec::new();
    let made = clap_mangen::Man::new(command).render(&mut text);
    made.map_err(|source| Error::Io { path: "the manual page".into(), source })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
