//! The Slurm engine against real Slurm: two nodes on this host, in namespaces of their own
//! (scripts/slurm-test-cluster). Needs root and Debian's slurm-wlm and munge; where these are missing it
//! is skipped with a word on stderr, but fails where CI=true.

#![cfg(target_os = "linux")]

mod shared;

use serde_json::Value;
use shared::files;
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

/// Whether clusters cannot be had here; says so.
fn skipped() -> bool {
    let Some(why) = lacking() else { return false };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no Slurm test: {why}");
    // Not by a macro, whose output the test harness keeps to itself.
    let word = format!("\nSKIPPED: the Slurm engine is not tested here: {why}\n\n");
    std::io::stderr().write_all(word.as_bytes()).unwrap();
    true
}

/// All at once, each on a cluster of its own: most of their time is waiting.
#[test]
fn the_engine_on_real_slurm() {
    if skipped() {
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(a_cluster_gives_the_bits_of_threads_even_if_a_node_dies);
        scope.spawn(flights_and_all_flags_have_the_bits_of_threads);
        scope.spawn(interrupts_cancel_jobs_and_failures_end_the_run_with_their_log);
    });
}

/// A study of pima_tr.csv with two models.
fn study(evidence: &str) -> String {
    let data = root().join("data/pima_tr.csv");
    format!(
        "[data]\npath = {data:?}\n[split]\nshards = 6\n[[model]]\nformula = \"type ~ scale(glu)\"\nfamily = \"logistic\"\n[[model]]\nformula = \"type ~ scale(glu) + scale(bmi)\"\nfamily = \"logistic\"\n[evidence]\n{evidence}\n"
    )
}

fn a_cluster_gives_the_bits_of_threads_even_if_a_node_dies() {
    let folder = tempfile::tempdir().unwrap();
    let text = study("local = \"nuts+warp3\"\ndraws = 100000\ncombine = \"normal\"");
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
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

/// Flights in 50 shards, both models, `exact`; and what a run delivers beside the comparison.
fn flights_and_all_flags_have_the_bits_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("s.toml"), study("")).unwrap();
    std::fs::write(
        path("n.toml"),
        study("combine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 300"),
    )
    .unwrap();
    let flights = root().join("examples/flights.toml");
    let choice = root().join("examples/select.toml");
    on_cluster(
        folder.path(),
        &format!(
            r#"
        both() {{    # a study on threads and on the cluster, with these flags
            local study=$1 name=$2
            shift 2
            "$PROGRAM" compare $study --json --quiet "$@" --posterior $name-1 > $name-1.json || [ $? = 1 ]
            "$PROGRAM" compare $study --json --quiet "$@" --posterior $name-2 > $name-2.json \
                --engine slurm --run $name.run --slurm-tasks 4 || [ $? = 1 ]
        }}
        both {flights:?} flights
        both s.toml wishes --leave-one-out --prior-scale 0.5,2
        both n.toml draws --keep-draws chains
        "$PROGRAM" select {choice:?} --json --quiet > choice-1.json
        "$PROGRAM" select {choice:?} --json --quiet --engine slurm --run choice.run > choice-2.json
        "$PROGRAM" select {choice:?} --quiet --engine slurm --run detached.run --detach
        sweep="--shards 1,3 --repeats 2 --local importance --combine normal,cmc-is,exact --quiet"
        "$PROGRAM" sweep s.toml $sweep --out sweep-1 > /dev/null
        "$PROGRAM" sweep s.toml $sweep --out sweep-2 --engine slurm > /dev/null
        for _ in $(seq 600); do [ -f detached.run/result.json ] && break; sleep 0.25; done
        "#
        ),
    );
    for name in ["flights", "wishes", "draws"] {
        let [threads, slurm] = [1, 2].map(|k| result(&path(&format!("{name}-{k}.json"))));
        assert_eq!(slurm, threads, "{name}");
        let [threads, slurm] = [1, 2].map(|k| files(&path(&format!("{name}-{k}"))));
        assert!(slurm == threads && threads.len() == 2, "{name}: the draws differ");
    }
    for other in ["choice-2.json", "choice.run/result.json", "detached.run/result.json"] {
        assert_eq!(result(&path(other)), result(&path("choice-1.json")), "{other}");
    }
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("sweep-1/sweep.json"), read("sweep-2/sweep.json"));
    assert!(files(&path("sweep-2/runs")).is_empty(), "run directories are left");
    let wished = result(&path("wishes-2.json"));
    assert!(wished["leave_one_out"].is_array() && wished["prior_sensitivity"].is_array());
    assert_eq!(result(&path("flights-2.json"))["partition"]["shards"], 50);
    assert_eq!(files(&path("chains")).len(), 12);
}

fn interrupts_cancel_jobs_and_failures_end_the_run_with_their_log() {
    let folder = tempfile::tempdir().unwrap();
    let long = study("local = \"nuts+warp3\"\ndraws = 3000000\ncombine = \"normal\"");
    std::fs::write(folder.path().join("long.toml"), long).unwrap();
    std::fs::write(folder.path().join("s.toml"), study("")).unwrap();
    on_cluster(
        folder.path(),
        r#"
        # Ctrl-C in the middle of a round: nothing is left in the queue.
        "$PROGRAM" compare long.toml --engine slurm --run long.run --quiet > out 2> interrupted &
        coordinator=$!
        for _ in $(seq 600); do
            ls long.run/logs/round-0003-* > /dev/null 2>&1 && [ -n "$(squeue --noheader)" ] && break
            sleep 0.05
        done
        squeue --noheader > before
        kill -INT $coordinator
        code=0; wait $coordinator || code=$?
        echo $code > code
        for _ in $(seq 100); do [ -z "$(squeue --noheader)" ] && break; sleep 0.1; done
        squeue --noheader > after

        # A shard that cannot be read: submitted again with its log, and in the end given up.
        "$PROGRAM" split s.toml --run s.run
        printf x >> s.run/shards/000003.parquet
        code=0
        "$PROGRAM" compare s.toml --engine slurm --run s.run --quiet > out-2 2> failed || code=$?
        echo $code > code-2
        squeue --noheader > after-2
        "$PROGRAM" status s.run > status

        # Mended, it goes on, once it is told to.
        truncate --size=-1 s.run/shards/000003.parquet
        rm s.run/jobs/0001-*.json
        "$PROGRAM" compare s.toml --engine slurm --run s.run --quiet --json > mended.json || [ $? = 1 ]
        "$PROGRAM" compare s.toml --quiet --json > threads.json || [ $? = 1 ]

        # What sbatch does not like comes with advice.
        "$PROGRAM" compare s.toml --engine slurm --run t.run --slurm-args "--partition=none" 2> partition || true
        SLURM_CONF=/none/slurm.conf "$PROGRAM" compare s.toml --engine slurm --run u.run 2> unknown || true
        "#,
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(!read("before").is_empty(), "no job was there to be cancelled");
    assert_eq!(
        (read("code").as_str(), read("after").as_str()),
        ("3\n", ""),
        "{}",
        read("interrupted")
    );
    assert!(read("interrupted").contains("is cancelled; what was answered is kept"));

    let failed = read("failed");
    assert_eq!(
        (read("code-2").as_str(), read("out-2").as_str(), read("after-2").as_str()),
        ("3\n", "", ""),
        "{failed}"
    );
    for part in [
        "round 1: 1 shard did not answer; submitted again (2 of 4)",
        "submitted again (4 of 4)",
        "error: round 1: 1 shard did not answer in 4 jobs; the same command tries again once",
        "The log of one of its tasks",
        "000003.parquet: the shard was changed after the run was made (check sum)",
    ] {
        assert!(failed.contains(part), "{part}: {failed}");
    }
    let status = read("status");
    assert!(
        status.contains("5 of 6  1 (000003)") && status.contains("The run has failed: "),
        "{status}"
    );
    assert_eq!(
        result(&folder.path().join("mended.json")),
        result(&folder.path().join("threads.json"))
    );
    assert!(read("partition").contains("--slurm-args"), "{}", read("partition"));
    assert!(read("unknown").contains("knows of no cluster"), "{}", read("unknown"));
}
