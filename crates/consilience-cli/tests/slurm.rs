//! The Slurm engine against real Slurm: two nodes on this host, in namespaces of their own
//! (scripts/slurm-test-cluster). Needs root and Debian's slurm-wlm and munge; where these are missing it
//! is skipped with a word on stderr, but fails where CI=true.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What is missing here to run a cluster.
fn lacking() -> Option<String> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return Some("it needs root".into());
    }
    let there = |program: &str| {
        let search = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&search)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .any(|folder| folder.join(program).is_file())
    };
    let programs = ["slurmctld", "slurmd", "munged", "sbatch", "squeue", "unshare", "ip"];
    let missing: Vec<&str> = programs.into_iter().filter(|p| !there(p)).collect();
    if missing.is_empty() {
        return None;
    }
    Some(format!("there is no {} (Debian: slurm-wlm munge iproute2)", missing.join(", ")))
}

/// Runs a script on a cluster; fails if it takes too long.
fn on_cluster(folder: &Path, script: &str) {
    let log = folder.join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut child = Command::new(root().join("scripts/slurm-test-cluster"))
        .arg(folder.join("cluster"))
        .args(["bash", "-euo", "pipefail", "-c", script])
        .env("PROGRAM", env!("CARGO_BIN_EXE_consilience"))
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(300) {
            // Its only child is the namespace's first process, with which everything in it ends.
            child.kill().unwrap();
            panic!("the cluster's script does not end: {}", std::fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(status.success(), "{status}: {}", std::fs::read_to_string(&log).unwrap());
}

fn result(path: &Path) -> Value {
    let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    value["seconds"] = Value::Null;
    value
}

#[test]
fn a_cluster_gives_the_bits_of_threads_even_if_a_node_dies() {
    if let Some(why) = lacking() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no Slurm test: {why}");
        eprintln!("\nSKIPPED: the Slurm engine is not tested here: {why}\n");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = root().join("data/pima_tr.csv");
    let study = format!(
        "[data]\npath = {data:?}\n[split]\nshards = 6\n[[model]]\nformula = \"type ~ scale(glu)\"\nfamily = \"logistic\"\n[[model]]\nformula = \"type ~ scale(glu) + scale(bmi)\"\nfamily = \"logistic\"\n[evidence]\nlocal = \"nuts+warp3\"\ndraws = 50000\ncombine = \"normal\"\n"
    );
    std::fs::write(folder.path().join("s.toml"), study).unwrap();
    on_cluster(
        folder.path(),
        r#"
        "$PROGRAM" compare s.toml --json --quiet > threads.json
        # Attached, several shards per task, a node killed in the middle of the round: slurmd, its
        # stepds and their tasks.
        "$PROGRAM" compare s.toml --engine slurm --run a.run --slurm-tasks 4 --json --quiet > attached.json &
        coordinator=$!
        for _ in $(seq 200); do
            pgrep -P "$(pgrep -d, -f 'slurmstepd: .*batch' || echo 0)" > /dev/null 2>&1 \
                && ls a.run/logs/round-0003-* > /dev/null 2>&1 && break
            sleep 0.1
        done
        kill -9 "$CLUSTER_NODE_1"
        for step in $(pgrep -f 'slurmstepd' || true); do
            if tr '\0' '\n' < "/proc/$step/environ" 2> /dev/null | grep -q node1 \
                || grep -q node1 "/proc/$step/cmdline" 2> /dev/null; then
                pkill -9 -P "$step" || true
                kill -9 "$step" || true
            fi
        done
        # The coordinator is killed too, and started again.
        kill -9 $coordinator || true
        wait $coordinator || true
        "$PROGRAM" compare s.toml --engine slurm --run a.run --slurm-tasks 4 --json --quiet > attached.json
        # Detached: the chain of jobs finishes by itself, on the node that is left.
        "$PROGRAM" compare s.toml --engine slurm --run b.run --detach
        for _ in $(seq 400); do [ -f b.run/result.json ] && break; sleep 0.25; done
        "$PROGRAM" combine b.run --json > detached.json
        "#,
    );
    let threads = result(&folder.path().join("threads.json"));
    for other in ["attached.json", "detached.json", "a.run/result.json", "b.run/result.json"] {
        assert_eq!(result(&folder.path().join(other)), threads, "{other}");
    }
}
