//! Ways to choose side by side.

use crate::{Folder, shipped};

/// Two models of the repository's simulated data, on so many shards.
fn folder(shards: usize) -> Folder {
    let model =
        |formula: &str| format!("[[model]]\nformula = \"{formula}\"\nfamily = \"logistic\"\n");
    let study = format!(
        "[data]\npath = {:?}\n[split]\nshards = {shards}\n[evidence]\ndraws = 500\n{}{}",
        shipped("sim2.parquet"),
        model("y ~ x1 + x2"),
        model("y ~ x1 + x2 + x5")
    );
    Folder::with(&study, "")
}

#[test]
fn the_table_says_which_method_is_not_to_be_trusted() {
    let run = folder(80).run(&["baselines", "s.toml", "--quiet"]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), ""), "{run:?}");
    // The table is too wide for 80 columns: a row per method and model, on one line.
    let row = |name: &str| run.out.lines().find(|line| line.starts_with(name)).unwrap().to_string();
    let lines: Vec<&str> = run.out.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.len() % 2, 0, "a head, two models a method, and what marks mean: {lines:?}");
    let chosen = lines[1..].iter().filter(|line| line.ends_with('*')).count();
    assert_eq!(chosen, lines.len() / 2 - 1, "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", run.out);
    assert!(row("normal").starts_with("normal ! "), "{}", run.out);
    assert!(!row("exact").contains('!'), "{}", run.out);
    assert!(run.out.contains("! a method that is not to be trusted"), "{}", run.out);
    assert!(run.out.contains("unreliable [not-normal]"), "{}", run.out);
    for name in ["product of local", "upsampled mean ", "upsampled median", "cmc-is", "exact"] {
        assert!(row(name).contains(" ± "), "{name}: {}", run.out);
    }
}

#[test]
fn fine_methods_end_with_0() {
    let run = folder(2).run(&["baselines", "s.toml", "--quiet", "--draws", "4000"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(!run.out.contains("unreliable"), "{}", run.out);
}
