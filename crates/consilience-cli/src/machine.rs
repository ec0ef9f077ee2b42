//! What a run may use of this machine.

use crate::arguments::{threads, threads_or_all};
use crate::cache::CacheArguments;
use crate::memory::{self, MemoryArguments};
use clap::Args;
use consilience::Result;
use consilience::plan::Room;

/// Threads, memory and disk.
#[derive(Debug, Args)]
pub struct MachineArguments {
    /// Threads to work on [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<u64>,
    #[command(flatten)]
    pub memory: MemoryArguments,
    #[command(flatten)]
    pub cache: CacheArguments,
}

impl MachineArguments {
    /// What may be used of memory and disk: without a bound, what the machine's memory suggests.
    pub fn room(&self) -> Result<Room> {
        let room = match (self.memory.memory, memory::of_machine()) {
            (None, Some(all)) => Room::of_machine(all),
            _ => self.memory.room()?,
        };
        Ok(match self.cache.folder() {
            Some(folder) => room.with_cache(folder),
            None => room,
        })
    }

    /// How many threads.
    pub fn threads(&self) -> usize {
        threads_or_all(self.threads)
    }
}
