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
    // Where a table is too wide, the numbers stand on a line of their own below the name.
    let row = |name: &str| {
        let mut lines = run.out.lines().skip_while(|line| !line.starts_with(name));
        let first = lines.next().unwrap().to_string();
        first + lines.next().filter(|line| line.starts_with("  ")).unwrap_or("")
    };
    assert!(row("normal").starts_with("normal (unreliable)"), "{}", run.out);
    assert!(!row("exact").contains("unreliable"), "{}", run.out);
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
