//! Simulated data, and text files without a header line.

use super::*;

#[test]
fn simulated_data_are_written_once_and_can_be_compared() {
    let folder = Folder::empty();
    let simulate = |more: &[&str]| {
        folder.run(&[&["simulate", "higgs", "--rows", "3000", "--out"], more].concat())
    };
    let run = simulate(&["h.parquet"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.out.contains("3000 rows, 29 columns, seed 1"), "{run:?}");
    let first = std::fs::read(folder.path("h.parquet")).unwrap();
    simulate(&["h.parquet"]).failed("again", 2, &["h.parquet", "there already", "--force"]);
    assert_eq!(simulate(&["h.parquet", "--force"]).code, Some(0));
    assert_eq!(std::fs::read(folder.path("h.parquet")).unwrap(), first, "the same seed");
    assert_eq!(simulate(&["h.parquet", "--force", "--seed", "2"]).code, Some(0));
    assert_ne!(std::fs::read(folder.path("h.parquet")).unwrap(), first, "another seed");
    // Nothing half written is left beside it.
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1);

    assert_eq!(simulate(&["h.csv.gz", "--seed", "2"]).code, Some(0));
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/higgs.toml");
    let study = study.to_str().unwrap();
    let json = |data: &str| -> Value {
        let run = folder.run(&["compare", study, "--data", data, "--shards", "3", "--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        serde_json::from_str(&run.out).expect("JSON")
    };
    let (parquet, text) = (json("h.parquet"), json("h.csv.gz"));
    for model in 0..2 {
        let of = |run: &Value| run["models"][model]["log_evidence"]["value"].as_f64().unwrap();
        // Digits beyond those of an f32 are not in the text.
        assert!((of(&parquet) - of(&text)).abs() < 1e-3, "{} {}", of(&parquet), of(&text));
    }
}

#[test]
fn the_papers_data_have_their_size_and_their_studies() {
    let folder = Folder::empty();
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        path.to_str().unwrap().to_string()
    };
    let run = folder.run(&["simulate", "toy", "--out", "t.parquet"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.out.contains("10000 rows, 16 columns, seed 1"), "{run:?}");
    assert!(run.out.contains("compare examples/toy.toml --data t.parquet"), "{run:?}");
    let run = folder.run(&["compare", &example("toy.toml"), "--data", "t.parquet", "--json"]);
    let document: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!((run.code, &document["best"]["name"]), (Some(0), &"model 6".into()), "{run:?}");

    let run = folder.run(&["simulate", "rjmcmc", "--out", "r.csv"]);
    assert!(run.out.contains("4000 rows, 6 columns, seed 1"), "{run:?}");
    assert!(run.out.contains("select examples/rjmcmc.toml --data r.csv"), "{run:?}");
    let run = folder.run(&["select", &example("rjmcmc.toml"), "--data", "r.csv", "--json", "-q"]);
    let document: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!((run.code, &document["partition"]["rows"]), (Some(0), &4000.into()), "{run:?}");
    let few = folder.run(&["simulate", "toy", "--rows", "7", "--out", "few.csv"]);
    assert!(few.out.contains("7 rows, 16 columns"), "{few:?}");
    let how_many = folder.run(&["simulate", "alleles", "--out", "a.csv"]);
    how_many.failed("no rows", 2, &["--rows N"]);
    let fixed = folder.run(&["simulate", "toy", "--columns", "3", "--out", "c.csv"]);
    fixed.failed("columns", 2, &["leave --columns out"]);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let folder = Folder::empty();
    let run = |arguments: &[&str]| folder.run(&[&["simulate"], arguments].concat());
    let out = |name| run(&["higgs", "--rows", "10", "--out", name]);
    out("x.txt").failed("ending", 2, &["x.txt", ".parquet .pq .csv .csv.gz"]);
    out("no/x.csv").failed("folder", 2, &["no/x.csv", "no such folder"]);
    out(".").failed("a folder", 2, &["none of"]);
    for rows in ["0", "-3", "x", "1e6"] {
        let run = run(&["higgs", "--rows", rows, "--out", "x.csv"]);
        run.failed(rows, 2, &["a whole number is needed, 1 to"]);
    }
    run(&["dice", "--rows", "1", "--out", "x.csv"]).failed("what", 2, &["higgs"]);
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0);
}

#[test]
fn a_file_without_a_header_is_noticed_and_can_be_read() {
    // As the UCI repository writes its numbers.
    let row = |i: u32| format!("{}.000000000000000000e+00,{i}.250000000000000000e-01\n", i % 2);
    let rows: String = (0..40).map(row).collect();
    let folder = Folder::with(STUDY, &rows);
    folder.run(&["check", "s.toml"]).failed("no names", 2, &["d.csv, line 1", "no header line"]);
    folder.write("s.toml", STUDY.replacen("\n\n", "\ncolumns = [\"y\", \"x\"]\n\n", 1));
    assert_eq!(folder.json(0, &[])["partition"]["rows"], 40);
    folder.write("s.toml", STUDY.replacen("\n\n", "\ncolumns = [\"y\"]\n\n", 1));
    folder.run(&["check", "s.toml"]).failed("few names", 2, &["no column `x`"]);
}

#[test]
fn alleles_have_as_many_columns_as_asked_for() {
    let folder = Folder::empty();
    let simulate = |more: &[&str]| {
        folder.run(&[&["simulate", "alleles", "--rows", "50", "--out", "a.csv"], more].concat())
    };
    let run = simulate(&["--columns", "3"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.out.contains("50 rows, 4 columns, seed 1"), "{run:?}");
    assert!(run.out.contains("examples/alleles.toml"), "{run:?}");
    let text = std::fs::read_to_string(folder.path("a.csv")).unwrap();
    assert!(text.starts_with("y,locus_1,locus_2,locus_3\n"), "{text}");
    assert_eq!(text.lines().count(), 51);
    for columns in ["0", "-1", "x", "100000"] {
        let run = simulate(&["--columns", columns, "--force"]);
        run.failed(columns, 2, &["a whole number is needed, 1 to 10000"]);
    }
    let higgs = ["simulate", "higgs", "--rows", "5", "--columns", "3", "--out", "h.csv"];
    folder.run(&higgs).failed("columns", 2, &["leave --columns out"]);
}
