//! Disks that are full and disks that cannot be written to: real ones, small and in memory, mounted where
//! only the test sees them. That needs root; elsewhere it is skipped with a word on stderr, but fails where
//! CI=true.

use crate::{Folder, NULL, STUDY, data};
use serde_json::Value;
use std::io::Write;
use std::process::Command;

/// What a shell does on a disk of its own; `fails CODE TEXT COMMAND…` expects a failure.
const SCRIPT: &str = r#"
set -euo pipefail
fails() {
    local code=$1 text=$2 got=0
    shift 2
    "$@" > out 2> err || got=$?
    [ $got = $code ] || { echo "$*: code $got and not $code:"; cat out err; exit 1; }
    grep -qF "$text" err || { echo "$*: no '$text' in:"; cat err; exit 1; }
    [ ! -s out ] || { echo "$*: stdout is not empty:"; cat out; exit 1; }
}
full="No space left on device (os error 28); make room there and run the same command again"
mkdir disk
mount -t tmpfs -o size=12k tmpfs disk

# No room for the shards.
fails 3 "$full" "$PROGRAM" split s.toml --run disk/r
fails 2 "no run directory" "$PROGRAM" work disk/r
mount -o remount,size=4m disk
"$PROGRAM" split s.toml --run disk/r

# No room for questions, then for answers: as far as it goes, and no further.
rounds=0
until "$PROGRAM" combine disk/r --json > disk.json 2> err; do
    [ $? = 4 ] || { cat err; exit 1; }
    rounds=$((rounds + 1))
    head -c 4m /dev/zero > disk/filler 2> /dev/null || true
    fails 3 "$full" "$PROGRAM" work disk/r --quiet
    rm disk/filler
    "$PROGRAM" work disk/r --quiet
    if [ $rounds = 3 ]; then
        head -c 4m /dev/zero > disk/filler 2> /dev/null || true
        fails 3 "$full" "$PROGRAM" combine disk/r
        rm disk/filler
    fi
done
head -c 4m /dev/zero > disk/filler 2> /dev/null || true
fails 3 "$full" "$PROGRAM" compare s.toml --out disk/out
rm disk/filler
[ -z "$(find disk -name '.*.tmp')" ] || { echo "left behind:"; find disk; exit 1; }

# Read-only: looking is fine, writing is not.
mount -o remount,ro disk
only="Read-only file system (os error 30); nothing can be written there"
fails 3 "$only" "$PROGRAM" combine disk/r
fails 3 "$only" "$PROGRAM" work disk/r
fails 3 "$only" "$PROGRAM" split s.toml --run disk/other
fails 3 "$only" "$PROGRAM" compare s.toml --posterior disk/draws
"$PROGRAM" status disk/r | grep -q Finished
mount -o remount,rw disk
"$PROGRAM" combine disk/r --json > again.json
"#;

#[test]
fn a_full_or_read_only_disk_is_named_and_nothing_is_lost() {
    let id = Command::new("id").arg("-u").output().expect("there is `id`");
    if id.stdout.trim_ascii() != b"0" {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "full disks need root");
        // Not by a macro, whose output the test harness keeps to itself.
        let word = "\nSKIPPED: full and read-only disks are not tested here: that needs root\n\n";
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return;
    }
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let output = Command::new("unshare")
        .args(["--mount", "bash", "-c", SCRIPT])
        .env("PROGRAM", env!("CARGO_BIN_EXE_consilience"))
        .current_dir(folder.path(""))
        .output()
        .expect("there is `unshare`");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let mut straight = folder.json(0, &[]);
    straight["seconds"] = Value::Null;
    for name in ["disk.json", "again.json"] {
        assert_eq!(serde_json::from_str::<Value>(&folder.read(name)).unwrap(), straight, "{name}");
    }
}
