//! Signs of life of those who work on a run, and what those leave behind who were killed.

use consilience::run::{Held, Run};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nobody writes on a file for so many minutes without adding to it.
const WRITING: u64 = 10;

/// What a worker calls itself.
pub fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let id = std::process::id();
    match host.trim() {
        "" => format!("process {id}"),
        host => format!("process {id} on {host}"),
    }
}

/// The moment so many minutes ago.
pub fn minutes_ago(minutes: u64) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(Duration::from_secs(minutes.saturating_mul(60))).unwrap_or(UNIX_EPOCH)
}

/// Removes what was left half written.
pub fn tidy(run: &Run) {
    run.tidy(minutes_ago(WRITING));
}

/// Who holds which shards, in lines.
pub fn told(held: &[Held], folder: &str) -> String {
    let mut out = String::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    for Held { shard, by, last_sign } in held.iter().take(20) {
        let by = if by.is_empty() { "a worker" } else { by };
        let since = match last_sign.map(|at| now.saturating_sub(at) / 60) {
            None => String::new(),
            Some(0) => "; its last sign of life is less than a minute old".into(),
            Some(1) => "; its last sign of life is a minute old".into(),
            Some(minutes) => format!("; its last sign of life is {minutes} minutes old"),
        };
        let _ = writeln!(out, "\n{shard} is held by {by}{since}");
    }
    if held.len() > 20 {
        let _ = writeln!(out, "\n… and {} shards more", held.len() - 20);
    }
    if !held.is_empty() {
        let _ = writeln!(
            out,
            "If a worker was stopped or hangs, end it, or do its work as well: consilience work {folder} --pass-over 0"
        );
    }
    out
}
