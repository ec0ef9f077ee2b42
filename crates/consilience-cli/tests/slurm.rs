//! The Slurm engine against real Slurm: two nodes on this host, in namespaces of their own
//! (scripts/slurm-test-cluster). Needs root and Debian's slurm-wlm and munge; where these are missing it
//! is skipped with a word on stderr, but fails where CI=true.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::Write;
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
        // Not by a macro, whose output the test harness keeps to itself.
        let word = format!("\nSKIPPED: the Slurm engine is not tested here: {why}\n\n");
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = root().join("data/pima_tr.csv");
    let study = format!(
        "[data]\npath = {data:?}\n[split]\nshards = 6\n[[model]]\nformula = \"type ~ scale(glu)\"\nfamily = \"logistic\"\n[[model]]\nformula = \"type ~ scale(glu) + scale(bmi)\"\nfamily = \"logistic\"\n[evidence]\nlocal = \"nuts+warp3\"\ndraws = 100000\ncombine = \"normal\"\n"
    );
    std::fs::write(folder.path().join("s.toml"), study).unwrap();
    on_cluster(
        folder.path(),
        r#"
        # Whether a result is to be trusted is not the matter here, only whether it is the same.
        compare() { "$PROGRAM" compare s.toml "$@" || [ $? = 1 ]; }
        compare --json --quiet > threads.json
        # Attached, several shards per task. In the middle of the round of fits a node dies: slurmd, the
        # stepds and their tasks; the coordinator is killed too, and started again.
        "$PROGRAM" compare s.toml --engine slurm --run a.run --slurm-tasks 4 --json --quiet > first.json &
        coordinator=$!
        on_node_1() {
            for process in /proc/[0-9]*; do
                if tr '\0' '\n' < $process/environ 2> /dev/null | grep -qx SLURMD_NODENAME=node1; then
                    echo "${process#/proc/}"
                fi
            done
        }
        for _ in $(seq 600); do
            ls a.run/logs/round-0003-* > /dev/null 2>&1 && tasks=$(on_node_1) && [ -n "$tasks" ] && break
            sleep 0.05
        done
        kill -9 "$CLUSTER_NODE_1"
        for task in $tasks; do
            parent=$(awk '/^PPid/ { print $2 }' /proc/$task/status || true)
            if [ -n "$parent" ] && grep -q slurmstepd /proc/$parent/cmdline; then kill -9 $parent || true; fi
            if kill -9 $task; then echo $task >> killed; fi
        done
        kill -9 $coordinator
        wait $coordinator || true
        compare --engine slurm --run a.run --slurm-tasks 4 --json --quiet > attached.json
        # Detached: the chain of jobs finishes by itself, on the node that is left.
        compare --engine slurm --run b.run --detach
        for _ in $(seq 600); do [ -f b.run/result.json ] && break; sleep 0.25; done
        "$PROGRAM" combine b.run --json > detached.json || [ $? = 1 ]
        "#,
    );
    let killed = std::fs::read_to_string(folder.path().join("killed")).unwrap_or_default();
    assert!(killed.lines().count() > 0, "no task was running when the node was killed");
    let threads = result(&folder.path().join("threads.json"));
    for other in ["attached.json", "detached.json", "a.run/result.json", "b.run/result.json"] {
        assert_eq!(result(&folder.path().join(other)), threads, "{other}");
    }
}
