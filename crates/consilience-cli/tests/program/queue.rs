//! What the program asks of a batch system, where there is none: its commands in a few lines of shell, which run jobs at
//! once. The real one is tested in slurm.rs.

#![cfg(unix)]

use crate::{Folder, NULL, Run, STUDY, data};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const SBATCH: &str = r#"#!/bin/bash
if [ -s refusals ]; then
    head -n 1 refusals >&2
    sed -i 1d refusals
    exit 1
fi
last=0 log=/dev/null
for option in "$@"; do
    case $option in
        --array=0-*) last=${option#--array=0-} ;;
        --output=*) log=${option#--output=} ;;
    esac
done
script=${!#}
number=$(($(cat number 2> /dev/null || echo 100) + 1))
echo $number > number
if [[ $script == */step.sh ]]; then
    echo $number >> waiting
else
    for task in $(seq 0 $last); do SLURM_ARRAY_TASK_ID=$task bash "$script" > "$log" 2>&1; done
fi
echo $number
"#;

const SQUEUE: &str = r#"#!/bin/bash
if grep -qx "${!#}" waiting 2> /dev/null; then echo PENDING; exit; fi
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1
"#;

/// A folder with a study and these commands.
fn with_queue() -> Folder {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    for (name, text) in [("bin/sbatch", SBATCH), ("bin/squeue", SQUEUE)] {
        folder.write(name, text);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(name), executable).expect("its permissions");
    }
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.path("bin").display());
    let output = folder.command(arguments).env("PATH", path).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_job_that_is_not_taken_is_submitted_again() {
    let folder = with_queue();
    folder.write(
        "refusals",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\nsbatch: error: Batch job submission failed: Unspecified error\n",
    );
    let slurm = ["compare", "s.toml", "--engine", "slurm", "--run", "r", "--json", "--quiet"];
    let found = run(&folder, &slurm);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.err.contains("is asked again: sbatch failed"), "{}", found.err);
    let models = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["models"].clone();
    assert_eq!(models(&found.out), folder.json(0, &[])["models"]);
    // What does not pass is an error at once.
    folder.write("refusals", "sbatch: error: invalid partition specified: none\n".repeat(2));
    let refused = run(&folder, &["compare", "s.toml", "--engine", "slurm", "--run", "q"]);
    refused.failed("no such partition", 3, &["invalid partition", "--slurm-args"]);
    assert_eq!(folder.read("refusals").lines().count(), 1);
}

#[test]
fn a_detached_run_that_does_not_go_on_says_so() {
    let folder = with_queue();
    let begun = run(&folder, &["compare", "s.toml", "--engine", "slurm", "--run", "r", "--detach"]);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let step = folder.read("waiting").trim().to_string();
    let status = run(&folder, &["status", "r"]);
    assert!(status.out.contains("goes on by itself"), "{}", status.out);
    assert!(status.out.contains(&format!("(job {step})")), "{}", status.out);
    // Cancelled.
    folder.write("waiting", "");
    let status = run(&folder, &["status", "r"]);
    let part = format!("does not go on by itself any more: its next step (job {step})");
    assert!(status.out.contains(&part) && status.out.contains("--detach"), "{}", status.out);
    let json = run(&folder, &["status", "r", "--json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        (&json["detached"]["goes_on"], &json["detached"]["step"]),
        (&false.into(), &step.into())
    );
    // Where Slurm is not, it cannot be asked.
    let elsewhere = folder.command(&["status", "r"]).env("PATH", "").output().expect("it runs");
    let text = String::from_utf8_lossy(&elsewhere.stdout);
    assert!(elsewhere.status.success() && text.contains("cannot be asked"), "{text}");
    // The same command again has it go on.
    let again = run(&folder, &["compare", "s.toml", "--engine", "slurm", "--run", "r", "--detach"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(run(&folder, &["status", "r"]).out.contains("The run goes on by itself"));
    // Others' runs have no such line.
    assert_eq!(run(&folder, &["split", "s.toml", "--run", "o"]).code, Some(0));
    assert!(!run(&folder, &["status", "o"]).out.contains("by itself"));
}
