//! Where converted copies of large text files are kept.

use clap::Args;
use std::env;
use std::path::PathBuf;

/// Where to keep converted copies.
#[derive(Debug, Args)]
pub struct CacheArguments {
    /// Folder for converted copies of large text files (16 MiB or more), which are read many times faster as long as a file stays the same; the result does not depend on it [default: XDG_CACHE_HOME/consilience, or ~/.cache/consilience]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub cache: Option<PathBuf>,
    /// Parse text files every time and keep no copies; with --memory they must then fit into memory
    #[arg(long)]
    pub no_cache: bool,
}

impl CacheArguments {
    /// The folder; none if none is wanted, or nobody can say where it should be.
    pub fn folder(&self) -> Option<PathBuf> {
        if self.no_cache {
            return None;
        }
        self.cache.clone().or_else(|| {
            let variable = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
            let caches = variable("XDG_CACHE_HOME");
            Some(
                caches
                    .or_else(|| variable("HOME").map(|home| home.join(".cache")))?
                    .join("consilience"),
            )
        })
    }
}
