//! Workers and coordinators killed at random moments (SIGKILL): the run still ends with the same bytes.
//!
//! `KILLS=200 cargo test --release --workspace --test kill` kills more often than the default.

#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A sequence of numbers that look random, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn start(arguments: &[&str], folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_consilience"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

const WORKER: &[&str] = &["work", "run", "--wait", "--threads", "2"];
const COORDINATOR: &[&str] = &["combine", "run", "--wait", "--quiet"];

/// Runs to the end, killing so many times on the way; returns the result's bytes.
fn disturbed(folder: &Path, kills: u64, dice: &mut Dice) -> Vec<u8> {
    let mut left = kills;
    // A split that is killed can be made again.
    loop {
        let mut split = start(&["split", "s.toml", "--run", "run"], folder);
        if left > kills / 2 && dice.below(2) == 0 {
            std::thread::sleep(Duration::from_millis(dice.below(15)));
            split.kill().expect("it can be killed");
            split.wait().expect("it ends");
            left -= 1;
            continue;
        }
        assert!(split.wait().expect("it ends").success());
        break;
    }
    let (mut worker, mut coordinator) = (start(WORKER, folder), start(COORDINATOR, folder));
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(240), "the run does not end");
        std::thread::sleep(Duration::from_millis(dice.below(120)));
        if left > 0 {
            left -= 1;
            let (victim, again) = match dice.below(2) {
                0 => (&mut worker, WORKER),
                _ => (&mut coordinator, COORDINATOR),
            };
            victim.kill().expect("it can be killed");
            victim.wait().expect("it ends");
            *victim = start(again, folder);
        } else if let Some(status) = coordinator.try_wait().expect("it is ours") {
            assert!(status.success(), "the coordinator failed: {status}");
            break;
        }
    }
    assert!(worker.wait().expect("it ends").success());
    std::fs::read(folder.join("run/result.json")).expect("a result")
}

#[test]
fn a_run_survives_being_killed() {
    let kills: u64 = std::env::var("KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/pima_tr.csv");
    let study = format!(
        "[data]\npath = {data:?}\n[split]\nshards = 6\n[[model]]\nformula = \"type ~ scale(glu)\"\nfamily = \"logistic\"\n[[model]]\nformula = \"type ~ scale(glu) + scale(bmi)\"\nfamily = \"logistic\"\n[evidence]\nlocal = \"nuts+warp3\"\ndraws = 1000\n"
    );
    let mut dice = Dice(7);
    let mut run = |kills| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.toml"), &study).unwrap();
        disturbed(folder.path(), kills, &mut dice)
    };
    let calm = run(0);
    let mut left = kills;
    while left > 0 {
        let now = left.min(15);
        assert!(run(now) == calm, "the result of a run killed {now} times differs");
        left -= now;
    }
}
