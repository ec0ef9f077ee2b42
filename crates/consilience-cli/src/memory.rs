//! How much memory a run may take.

use clap::Args;
use consilience::plan::Room;
use std::path::{Path, PathBuf};

/// How much memory to take.
#[derive(Debug, Args)]
pub struct MemoryArguments {
    /// Memory to stay within, such as 2GiB: rows that have no room wait in a file on disk. Slower, and the result does not depend on it [default: all that the data need]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub memory: Option<usize>,
    /// Where that file goes, which has no name and is gone at the end [default: TMPDIR, or /var/tmp]
    #[arg(long, value_name = "DIR", requires = "memory")]
    pub scratch: Option<PathBuf>,
}

impl MemoryArguments {
    /// What a run may use.
    pub fn room(&self) -> consilience::Result<Room> {
        let Some(memory) = self.memory else { return Ok(Room::default()) };
        let folder = self.scratch.clone().unwrap_or_else(|| {
            // Where files go that are too large for /tmp, which may itself be memory.
            let usual = Path::new("/var/tmp");
            match std::env::var_os("TMPDIR") {
                None if usual.is_dir() => usual.to_path_buf(),
                _ => std::env::temp_dir(),
            }
        });
        Room::within(memory, &folder)
    }
}

/// The bytes of memory of this machine, or those that a control group, such as a batch job's, leaves of them; `None`
/// where neither is known.
pub fn of_machine() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok();
    let group = group.iter().flat_map(|text| text.lines()).find_map(|l| l.strip_prefix("0::/"));
    let mounted = Path::new("/sys/fs/cgroup");
    let folder = group.map_or(mounted.to_path_buf(), |group| mounted.join(group));
    let bound = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("memory.max")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let bounds = folder.ancestors().take_while(|above| above.starts_with(mounted));
    bounds.filter_map(bound).chain(machine).min()
}

/// Bytes by `/proc/meminfo`.
fn total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let number: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// `2GiB`, `500 MB`: bytes.
fn size(text: &str) -> Result<usize, String> {
    let wrong = || "a number and a unit are needed, such as 2GiB or 500MB".to_string();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_lowercase().as_str() {
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        "tib" | "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    if number.is_finite() && number >= 0.0 { Ok((number * unit) as usize) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        let text = "MemTotal:       24036872 kB\nMemFree:        21301044 kB\n";
        assert_eq!(total(text), Some(24_036_872 * 1024));
        assert_eq!((total(""), total("MemTotal: much")), (None, None));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("500 MB"), Ok(500_000_000));
        for wrong in ["", "2", "GiB", "-1GiB", "nanGiB", "2 pigs", "1e999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
