//! Wrong flags, and failures on the way.

use super::refused_flags;
use crate::{Folder, STUDY, data};

#[test]
fn wrong_flags() {
    for (flags, parts) in [
        (&["--shard", "3"][..], &["--shard", "--shards"][..]),
        (&["--shards", "0"], &["`shards` must be at least 1, but is 0"]),
        (&["--shards", "41"], &["41 shards are more than the 40 rows; ask for fewer"]),
        (&["--shards", "three"], &["'three' for '--shards <N>': a whole number is needed"]),
        (&["--shards", "-3"], &["'-3' for '--shards <N>': a whole number is needed, 0 or more"]),
        (&["--seed", "99999999999999999999"], &["--seed", "at most 18446744073709551615"]),
        (&["--draws", "199"], &["`draws` must be at least 200, but is 199: draws are weighed"]),
        (
            &["--draws", "99", "--combine", "normal", "--local", "nuts+warp3"],
            &["`draws` must be at least 100, but is 99"],
        ),
        (&["--by", "hospital"], &["--by", "there is no `hospital`", "`random`", "`column:NAME`"]),
        (&["--by", "column:"], &["--by", "the column's name is missing"]),
        (&["--by", "column:nobody"], &["nobody"]),
        (&["--sizes", "multinomal"], &["--sizes", "did you mean `multinomial`?"]),
        (&["--sizes", "multinomial", "--by", "outcome"], &["`split.sizes`", "no strata"]),
        (&["--sizes", "multinomial", "--shards", "40"], &["of 40 shards got none", "fewer"]),
        (&["--warmup", "99"], &["`warmup` must be at least 100, but is 99"]),
        (&["--warmup", "-1"], &["'-1' for '--warmup <N>': a whole number is needed"]),
        (&["--chains", "0"], &["`chains` must be at least 1, but is 0"]),
        (&["--chains", "two"], &["'two' for '--chains <N>': a whole number is needed"]),
        (&["--threads", "0"], &["--threads", "1 to 1024"]),
        (&["--threads", "100000"], &["--threads", "1 to 1024"]),
        (&["--combine", "exakt"], &["--combine", "did you mean `exact`? (known: `exact`"]),
        (&["--local", "laplac"], &["--local", "did you mean `laplace`?"]),
        (&["--combine", "normal", "--local", "none"], &["do not go together; write local ="]),
        (&["--data", "no.csv"], &["no.csv: there is no such file", "start from here"]),
        (&["--data", ""], &["the data's path is empty; name a file"]),
        (&["--out", "d.csv"], &["d.csv: this is a file", "name a folder"]),
        (&["--out", "d.csv/sub"], &["d.csv/sub: ", "goes through one; name a folder"]),
    ] {
        refused_flags(flags, parts);
    }
    let nothing = Folder::empty().run(&[]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(2), ""));
    assert!(nothing.err.contains("compare") && nothing.err.contains("init"), "{nothing:?}");
}

/// A level that most shards lack, under a prior whose twentieth power has no finite integral.
#[test]
fn an_infinite_shard_evidence_is_named_and_exact_does_without() {
    let study = STUDY.replace("y ~ x", "y ~ g").replace("shards = 4", "shards = 20")
        + "[model.prior]\ncoefficients = \"cauchy(0, 1)\"\n";
    let row = |i: u32| {
        let g = if i == 5 { "rare" } else { ["a", "b"][i as usize % 2] };
        format!("{},{g}\n", i * 7 % 3 % 2)
    };
    let data = "y,g\n".to_string() + &(0..200).map(row).collect::<String>();
    let folder = Folder::with(&study, &data);
    let named = [
        "model `m`, shard 0, parameter `grare`: this shard's evidence is infinite",
        "power 0.050",
        "a normal prior would bound it",
        "it has 10 rows for 3 parameters",
        "fewer shards",
    ];
    let normal = folder.run(&["compare", "s.toml", "--combine", "normal"]);
    normal.failed("a cauchy prior", 3, &[&named[..], &["combine = \"exact\""]].concat());
    let fits = folder.json(0, &["--local", "importance"]);
    let warnings = fits["models"][0]["warnings"].as_array().unwrap();
    let warning = warnings.iter().find(|w| w["code"] == "shard-fit-failed").unwrap();
    let said = format!("{} {}", warning["message"], warning["advice"]);
    for part in named {
        assert!(said.contains(part), "{said}");
    }
    let exact = folder.json(0, &[]);
    assert!(exact["models"][0]["log_evidence"]["value"].as_f64().unwrap() < -100.0);
    assert!(exact["models"][0]["parts"]["log_alpha"].is_null());
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_a_failure_before_the_work() {
    let folder = Folder::with(STUDY, &data());
    // Even root cannot make folders there.
    let run = folder.run(&["compare", "s.toml", "--out", "/proc/consilience"]);
    run.failed("a folder of the system's", 3, &["/proc/consilience: "]);
}
