//! Files as they are found: other marks of missing values, decimal commas, blanks between values, names of rows, types
//! that nobody asked for; and what is said where a file is not what it seems.

use super::*;
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, TimestampSecondArray};
use consilience::data::Tables;
use consilience::data::read::{Reader, column_names, unreadable_columns};
use consilience::engine::Silent;
use consilience::plan::{Plan, Room};
use consilience::run::study_hash;
use consilience::study::{Overrides, Study, StudyFile};
use std::sync::Arc;

fn format(na: &[&str], decimal: char) -> TextFormat {
    TextFormat { na: names(na), decimal, ..TextFormat::default() }
}

fn read_as(name: &str, content: &str, format: &TextFormat) -> Result<Table, Error> {
    let dir = Dir::new();
    Ok(read_table(&[dir.write(name, content)], format, &Wanted::All)?.table)
}

/// A study of `y ~ x` (or another formula) over a file of this content.
fn plan(name: &str, content: &str, more: &str, formula: &str) -> Result<Plan, Error> {
    let dir = Dir::new();
    dir.write(name, content);
    let study = format!(
        "[data]\npath = \"{name}\"\n{more}\n[[model]]\nformula = \"{formula}\"\nfamily = \"gaussian\"\n"
    );
    let study = StudyFile::parse(&study, &dir.path("study.toml"))?;
    Plan::new(study, 1, &Silent)
}

/// Columns y and x of so many rows, the last of which says this of x.
fn rows(count: usize, delimiter: &str, x: impl Fn(usize) -> String, last: &str) -> String {
    let mut text = format!("y{delimiter}x\n");
    for i in 0..count {
        text += &format!("{}{delimiter}{}\n", i % 7, x(i));
    }
    text + &format!("3{delimiter}{last}\n")
}

#[test]
fn marks_of_missing_values_are_words_and_numbers_in_any_file() {
    let table = read_as("t.csv", "a,b\n-999,x\n2,.\n-999.0,y\n", &format(&["-999", "."], '.'));
    let table = table.unwrap();
    assert_eq!(values(&table, "a"), "? 2 ?");
    assert_eq!(values(&table, "b"), "'x' ? 'y'");
    // Without them these are a number and a word.
    let table = read_as("t.csv", "a,b\n-999,x\n2,.\n", &TextFormat::default()).unwrap();
    assert_eq!((values(&table, "a"), values(&table, "b")), ("-999 2".into(), "'x' '.'".into()));

    let dir = Dir::new();
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![-999.0, 2.0, 0.5]));
    let singles: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![1.0, -999.0, 0.5]));
    let words: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["a", "-999", "."]));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("s", singles), ("w", words)]).unwrap();
    let path = dir.path("t.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let format = format(&["-999", "."], '.');
    let table = read_table(std::slice::from_ref(&path), &format, &Wanted::All).unwrap().table;
    assert_eq!(values(&table, "n"), "? 2 0.5");
    assert_eq!(values(&table, "s"), "1 ? 0.5");
    assert_eq!(values(&table, "w"), "'a' ? ?");
    // And block by block.
    let source = Reader::new(&format).source(&[path], &Wanted::All).unwrap();
    let block = source.blocks(10).next().unwrap().unwrap();
    assert_eq!(values(&block, "w"), "'a' ? ?");
}

#[test]
fn decimals_behind_commas() {
    let table = read_as("t.csv", "a;b\n1,5;x\n-2;y\n,25;z\n", &format(&[], ',')).unwrap();
    assert_eq!(
        (values(&table, "a"), values(&table, "b")),
        ("1.5 -2 0.25".into(), "'x' 'y' 'z'".into())
    );
    // Quoted, commas may separate as well; without a header the commas of numbers do not.
    let table = read_as("t.csv", "a,b\n\"1,5\",2\n", &format(&[], ',')).unwrap();
    assert_eq!((values(&table, "a"), values(&table, "b")), ("1.5".into(), "2".into()));
    let given = TextFormat { columns: Some(names(&["a", "b"])), ..format(&[], ',') };
    assert_eq!(values(&read_as("t.csv", "1,5;2,5\n", &given).unwrap(), "b"), "2.5");
    refused(read_as("t.csv", "a\n1\n", &format(&[], '\'')), &["cannot stand before decimals"]);
}

#[test]
fn blanks_separate() {
    let text = "  a    b\n 1  \"x y\"\n\n10   z \n";
    let table = read_as("t.txt", text, &TextFormat::default()).unwrap();
    assert_eq!((values(&table, "a"), values(&table, "b")), ("1 10".into(), "'x y' 'z'".into()));
    let given = TextFormat { delimiter: Some(' '), ..TextFormat::default() };
    let table = read_as("t.txt", "a,1\tb\n1\t 2\n", &given).unwrap();
    assert_eq!((values(&table, "a,1"), values(&table, "b")), ("1".into(), "2".into()));
    refused(
        read_as("t.txt", "a b\n1 2\n1 2 3\n", &TextFormat::default()),
        &["t.txt, line 3: this line has 3 values, but the header has 2 columns"],
    );
    refused(read_as("t.txt", "a b\n1 \"2\n", &TextFormat::default()), &["line 2", "never closed"]);
}

/// A spreadsheet says what separates values in a line of its own, and writes columns out that are empty.
#[test]
fn files_of_spreadsheets_are_read() {
    for (text, format) in [
        ("sep=;\r\na;b\r\n1;2\r\n3;4\r\n", TextFormat::default()),
        ("\u{feff}sep=\t\na\tb\n1\t2\n3\t4\n", TextFormat::default()),
        ("sep=,\na;b\n1;2\n3;4\n", TextFormat { decimal: ',', ..TextFormat::default() }),
        ("sep=,\na|b\n1|2\n3|4\n", TextFormat { delimiter: Some('|'), ..TextFormat::default() }),
        ("a,b,,\n1,2,, \n3,4,\n", TextFormat::default()),
        ("a,b,\n1,2\n3,4,\"\"\n", TextFormat::default()),
        (
            "a,b,\n1,2,\n3,4,\n",
            TextFormat { columns: Some(vec!["a".into(), "b".into()]), ..TextFormat::default() },
        ),
    ] {
        let table = read_as("t.csv", text, &format).unwrap();
        assert_eq!(table.names(), ["a", "b"], "{text:?}");
        let found = (values(&table, "a"), values(&table, "b"));
        assert_eq!(found, ("1 3".into(), "2 4".into()), "{text:?}");
    }
    // Lines are counted as they stand in the file.
    let sep = read_as("t.csv", "sep=;\na;b\n1;2;3\n", &TextFormat::default());
    refused(sep, &["t.csv, line 3: this line has 3 values"]);
}

#[test]
fn names_of_rows_get_a_name() {
    // As write.csv and write.table write them.
    let dir = Dir::new();
    let csv = dir.write("t.csv", "\"\",\"x\",\"y\"\n\"1\",0.5,2\n\"2\",1.5,3\n");
    let table = dir.write("t.txt", "\"x\" \"y\"\n# no row\n\"1\" 0.5 2\n\"2\" 1.5 3\n");
    for file in [csv, table] {
        let found = column_names(&file, &TextFormat::default()).unwrap();
        assert_eq!(found, ["row.names", "x", "y"]);
        let read = read(std::slice::from_ref(&file)).unwrap();
        assert_eq!(values(&read.table, "row.names"), "1 2");
        assert_eq!(values(&read.table, "y"), "2 3");
        assert_eq!(read.comments, u64::from(file.ends_with("t.txt")));
    }
    // `.` does not stand for them.
    let text = ",x,y\n1,0.5,2\n2,1.5,3\n3,1,1\n4,2,5\n";
    let plan = plan("d.csv", text, "", "y ~ .").unwrap();
    assert_eq!(
        plan.settings[0].model.parameters.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        ["(Intercept)", "x", "log_sd"]
    );
    // A name that is missing elsewhere is a slip.
    refused(
        read_as("t.csv", "a,,b\n1,2,3\n", &TextFormat::default()),
        &["column 2 of 3 has no name"],
    );
    refused(
        read_as("t.csv", ",row.names\n1,2\n", &TextFormat::default()),
        &["columns 1 and 2 are both named `row.names`"],
    );
}

#[test]
fn types_that_nobody_asked_for_are_no_reason_to_refuse() {
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![1, 2, 3, 4]));
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2, 3, 4]));
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.0, 0.0]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 2.5, -999.0]));
    let batch = RecordBatch::try_from_iter([("day", dates), ("x", x), ("y", y), ("at", times)]);
    let batch = batch.unwrap();
    let dir = Dir::new();
    let path = dir.path("d.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let unreadable = unreadable_columns(&path).unwrap();
    assert_eq!(unreadable.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["day", "at"]);
    let study = |formula: &str| {
        let text = format!(
            "[data]\npath = \"d.parquet\"\nna = -999\n[[model]]\nformula = \"{formula}\"\nfamily = \"gaussian\"\n"
        );
        StudyFile::parse(&text, &dir.path("study.toml")).unwrap()
    };
    let of_files = Plan::new(study("y ~ x"), 1, &Silent).unwrap();
    let tables = || Tables::whole(vec![batch.clone()]).unwrap();
    let of_tables = Plan::of_tables(study("y ~ x"), tables(), 1, &Silent).unwrap();
    for plan in [of_files, of_tables] {
        assert_eq!((plan.partition.rows, plan.partition.dropped), (3, 1));
    }
    refused(
        Plan::new(study("y ~ day"), 1, &Silent).map(|_| ()),
        &["column `day`", "Date32 cannot be used"],
    );
    refused(
        Plan::of_tables(study("y ~ at"), tables(), 1, &Silent).map(|_| ()),
        &["column `at`", "cannot be used"],
    );
}

#[test]
fn numbers_that_came_out_as_text_are_named() {
    let comma = |i: usize| format!("{},{}", i / 3, i % 10);
    let said = |name: &str, text: &str, more: &str, parts: &[&str]| {
        refused(plan(name, text, more, "y ~ x").map(|_| ()), parts)
    };
    // 1: decimal commas.
    let text = rows(40, ";", comma, "1,5");
    said(
        "d.csv",
        &text,
        "",
        &[
            "d.csv, line 2, column `x`",
            "`0,0` seems to be a number with a comma",
            "decimal = \",\"",
        ],
    );
    plan("d.csv", &text, "decimal = \",\"", "y ~ x").unwrap();
    // 2: and a few words among them.
    said("d.csv", &rows(40, ";", comma, "-"), "", &["decimal = \",\" under [data]"]);
    said(
        "d.csv",
        &rows(40, ";", comma, "-"),
        "decimal = \",\"",
        &["line 42", "`-` is no number", "na = [\"-\"]"],
    );
    // 3: commas between thousands.
    said(
        "d.csv",
        &rows(30, ";", |i| format!("{},{:03}", 1 + i, i), "1,000"),
        "",
        &["between its thousands", "take these commas out"],
    );
    // 4: points where commas are asked for.
    said(
        "d.csv",
        &rows(30, ";", |i| format!("{i}.5"), "1.5"),
        "decimal = \",\"",
        &["line 2", "`0.5` has a point in it", "leave `decimal` out"],
    );
    // 5: a word among many numbers.
    let text = rows(40, ",", |i| i.to_string(), "n/a");
    said(
        "d.csv",
        &text,
        "",
        &[
            "d.csv, line 42, column `x`",
            "`n/a` is no number, and nearly all other values are",
            "na = [\"n/a\"] under [data]",
            "factor(x)",
        ],
    );
    let plan_of = |text: &str, more: &str, formula: &str| plan("d.csv", text, more, formula);
    assert_eq!(plan_of(&text, "na = [\"n/a\"]", "y ~ x").unwrap().partition.dropped, 1);
    // 6: whatever it is.
    said(
        "d.csv",
        &rows(40, ",", |i| format!("{i}.5"), "12..5"),
        "",
        &["`12..5` is no number", "correct it"],
    );
    // 7: within a function, and as the outcome.
    refused(plan_of(&text, "", "y ~ log(x)").map(|_| ()), &["`n/a` is no number"]);
    refused(
        plan_of("y,x\n1,1\n0,2\n5,4\n4,4\n3,4\n2,2\n-,3\n", "", "y ~ x").map(|_| ()),
        &["line 8, column `y`", "\"-\""],
    );
    // Few numbers may be categories: words among them are a slip if they are rare, or where a formula computes.
    let few = rows(12, ",", |i| (i % 4).to_string(), "-");
    let parts =
        ["line 14, column `x`", "\"-\"", "numbers in 12 of 13 rows", "na = [\"-\"] under [data]"];
    refused(plan_of(&few, "", "y ~ x").map(|_| ()), &parts);
    refused(plan_of(&few, "", "y ~ scale(x)").map(|_| ()), &["line 14", "na = [\"-\"]"]);
    let often = rows(12, ",", |i| ["1", "other", "more"][i % 3].to_string(), "2");
    plan_of(&often, "", "y ~ x").unwrap();
    // What is said to be categories is.
    plan_of(&text, "", "y ~ factor(x)").unwrap();
    let levels: Vec<String> = (0..40).map(|i| format!("\"{i}\"")).collect();
    let stated = format!("[schema]\nx = {{ levels = [{}, \"n/a\"] }}", levels.join(", "));
    plan_of(&text, &stated, "y ~ x").unwrap();
}

#[test]
fn units_and_dates_are_named() {
    let plan_of = |text: &str, formula: &str| plan("d.csv", text, "", formula);
    let weights = rows(49, ",", |i| format!("{}kg", i + 1), "50kg");
    let days = rows(27, ",", |i| format!("2024-01-{:02}", i + 1), "2024-01-28");
    for (text, formula, parts) in [
        (&weights, "y ~ x", ["line 2, column `x`", "`1kg` seems to be a number", "take `kg` out"]),
        (&weights, "y ~ scale(x)", ["line 2", "`1kg` seems to be a number", "factor(x)"]),
        (&days, "y ~ x", ["line 2", "`2024-01-01` seems to be a date", "days since the first"]),
    ] {
        refused(plan_of(text, formula).map(|_| ()), &parts);
    }
    // What is said to be categories is; but there is a word on it, as on names of rows.
    let cautions = |plan: Plan| -> Vec<(String, Option<f64>)> {
        plan.warnings.into_iter().map(|w| (w.code, w.value)).collect()
    };
    let many = |count: f64| vec![("many-levels".to_string(), Some(count))];
    assert_eq!(cautions(plan_of(&weights, "y ~ factor(x)").unwrap()), many(50.0));
    let names = rows(30, ",", |i| format!("P{i}"), "P30");
    assert_eq!(cautions(plan_of(&names, "y ~ x").unwrap()), many(31.0));
    let half = rows(59, ",", |i| format!("P{}", i % 30), "P29");
    assert_eq!(cautions(plan_of(&half, "y ~ x").unwrap()), []);
    let few = rows(9, ",", |i| format!("P{i}"), "P9");
    assert_eq!(cautions(plan_of(&few, "y ~ x").unwrap()), []);
    assert_eq!(cautions(plan_of(&names.replace('P', ""), "y ~ x").unwrap()), []);
}

/// Doses and hours are categories where each has rows enough, however these are grouped; but there is a word on many.
#[test]
fn few_rows_of_a_unit_are_judged_by_all_rows() {
    let cautions = |plan: &Plan| -> Vec<(String, String)> {
        let warnings = plan.warnings.iter();
        warnings.map(|w| (w.code.clone(), w.message.clone())).collect()
    };
    // In 100 files, of which the first has about a dose a row.
    let dir = Dir::new();
    for file in 0..100 {
        let mut text = "y,x\n".to_string();
        (0..20).for_each(|i| text += &format!("{},{}mg\n", (i + file) % 7, 5 * (i % 15 + 1)));
        dir.write(&format!("{file:03}.csv"), text);
    }
    let study = |path: &str| {
        let text = format!(
            "[data]\npath = \"{path}\"\n[[model]]\nformula = \"y ~ x\"\nfamily = \"gaussian\"\n"
        );
        StudyFile::parse(&text, &dir.path("study.toml")).unwrap()
    };
    let bounded = Room::within(consilience::plan::LEAST_MEMORY, &dir.path("")).unwrap();
    for room in [Room::default(), bounded] {
        let plan = Plan::within(study("*.csv"), 1, &room, &Silent).unwrap();
        assert_eq!((plan.partition.rows, cautions(&plan)), (2000, vec![]));
    }
    let few = Plan::new(study("000.csv"), 1, &Silent);
    refused(few.map(|_| ()), &["line 2, column `x`", "take `mg` out"]);

    let plan_of = |text: &str| plan("d.csv", text, "", "y ~ x");
    let hour = |i: usize| format!("{}h", i % 24);
    let hours = cautions(&plan_of(&rows(239, ",", hour, "3h")).unwrap());
    let message = "`x` is taken for a factor of 24 levels, but `0h` seems to be a number with `h` written to it";
    assert_eq!(hours, [("many-levels".to_string(), message.to_string())]);
    refused(plan_of(&rows(110, ",", hour, "3h")).map(|_| ()), &["line 2", "take `h` out"]);
    let week = |i: usize| format!("2024-{:02}-{:02}", i % 13 % 12 + 1, i % 4 * 7 + 1);
    let weeks = cautions(&plan_of(&rows(519, ",", week, "2024-01-01")).unwrap());
    assert!(weeks.len() == 1 && weeks[0].1.contains("seems to be a date"), "{weeks:?}");
    // Versions, and codes of three numbers.
    for code in [|i: usize| format!("1.2.{}", i % 25), |i: usize| format!("01-02-{:02}", i % 40)] {
        assert_eq!(cautions(&plan_of(&rows(199, ",", code, &code(0))).unwrap()), []);
    }
    // Numbers with decimal commas are never left at that.
    let comma = |i: usize| format!("{},5", i % 3);
    let decimals = plan_of(&rows(500, ";", comma, "1,5"));
    refused(decimals.map(|_| ()), &["line 2", "`0,5` seems to be a number with a comma"]);
}

/// The same model under two names.
#[test]
fn models_that_are_the_same_are_named() {
    let dir = Dir::new();
    dir.write("d.csv", rows(30, ",", |i| (i % 5).to_string(), "3").replace(",3\n", ",4\n"));
    let cautions = |models: &[(&str, &str, &str)]| -> Vec<String> {
        let one = |(name, formula, more): &(&str, &str, &str)| {
            format!(
                "[[model]]\nname = \"{name}\"\nformula = \"{formula}\"\nfamily = \"gaussian\"\n{more}\n"
            )
        };
        let models: String = models.iter().map(one).collect();
        let text = format!("[data]\npath = \"d.csv\"\n{models}");
        let plan = Plan::new(StudyFile::parse(&text, &dir.path("s.toml")).unwrap(), 1, &Silent);
        let warnings = plan.unwrap().warnings.into_iter();
        warnings.filter(|w| w.code == "same-model").map(|w| w.message).collect()
    };
    let prior = "[model.prior]\ncoefficients = \"normal(0, 1)\"";
    let found = cautions(&[
        ("a", "y ~ x + I(x^2)", ""),
        ("b", "y ~ I(x ^ 2) + x", ""),
        ("c", "y ~ I(x^2) + x", prior),
        ("d", "y ~ 0 + x + I(x^2)", ""),
        ("e", "y ~ x + offset(x)", ""),
        ("f", "y ~ x", ""),
    ]);
    assert_eq!(found, ["the models `a` and `b` are the same, and are counted as two"]);
}

#[test]
fn numbers_that_may_be_missing_are_named() {
    let text = rows(
        60,
        ",",
        |i| (if i % 20 == 3 { "-999.0" } else { ["1", "2", "7"][i % 3] }).into(),
        "3",
    );
    let found = |text: &str, more: &str, formula: &str| -> Vec<String> {
        let plan = plan("d.csv", text, more, formula).unwrap();
        plan.warnings
            .iter()
            .filter(|w| w.code == "maybe-missing")
            .map(|w| format!("{}; {}", w.message, w.advice))
            .collect()
    };
    let said = found(&text, "", "y ~ x");
    let parts = ["`x` is -999 in 3 rows", "na = [\"-999\"] under [data]"];
    assert!(said.len() == 1 && parts.iter().all(|part| said[0].contains(part)), "{said:?}");
    assert_eq!(found(&text, "na = [\"-999\"]", "y ~ x"), [""; 0]);
    // Columns that the study does not use, and weights.
    assert_eq!(found(&text, "", "y ~ 1"), [""; 0]);
    assert_eq!(found(&text.replace("-999.0", "9999"), "weights = \"x\"", "y ~ 1"), [""; 0]);
}

#[test]
fn bounded_memory_changes_nothing_of_the_way_values_are_written() {
    let dir = Dir::new();
    let text = rows(3000, ";", |i| if i % 5 == 0 { "-999".into() } else { format!("{i},5") }, ".");
    let file = dir.write("d.csv", text);
    let format = format(&["-999", "."], ',');
    let whole = read_table(std::slice::from_ref(&file), &format, &Wanted::All).unwrap().table;
    let bound = consilience::data::read::Bound { words: 1 << 20, folder: dir.0.path() };
    let cache = dir.path("cache");
    for reader in [
        Reader { bound: Some(bound), ..Reader::new(&format) },
        Reader { cache: Some(&cache), large: 0, ..Reader::new(&format) },
    ] {
        let source = reader.source(std::slice::from_ref(&file), &Wanted::All).unwrap();
        let all: Vec<String> = source.blocks(700).map(|b| values(&b.unwrap(), "x")).collect();
        assert_eq!(all.join(" "), values(&whole, "x"));
    }
    // Line 999 is a line, whatever 999 stands for.
    let lines = TextFormat { na: names(&["999"]), ..format };
    let reader = Reader { cache: Some(&cache), large: 0, ..Reader::new(&lines) };
    let table = reader.table(&[file], &Wanted::All).unwrap().table;
    assert_eq!(table.place(997, None).line, Some(999));
}

#[test]
fn a_copy_is_good_for_one_way_of_reading_only() {
    let dir = Dir::new();
    let (file, cache) = (dir.write("d.csv", "a;b\n-1;1,5\n2;2,5\n"), dir.path("cache"));
    let read = |format: &TextFormat| {
        let reader = Reader { cache: Some(&cache), large: 0, ..Reader::new(format) };
        let table = reader.table(std::slice::from_ref(&file), &Wanted::All).unwrap().table;
        (values(&table, "a"), values(&table, "b"))
    };
    for _ in 0..2 {
        assert_eq!(read(&format(&[], '.')), ("-1 2".into(), "'1,5' '2,5'".into()));
        assert_eq!(read(&format(&[], ',')), ("-1 2".into(), "1.5 2.5".into()));
        assert_eq!(read(&format(&["-1"], ',')), ("? 2".into(), "1.5 2.5".into()));
    }
    assert_eq!(cache.read_dir().unwrap().count(), 3);
}

#[test]
fn the_home_folder_is_what_the_caller_says() {
    let dir = Dir::new();
    dir.write("data/a.csv", "y,x\n1,2\n2,3\n");
    let study = |path: &str, home: Option<&str>| {
        let text = format!(
            "[data]\npath = \"{path}\"\n[[model]]\nformula = \"y ~ x\"\nfamily = \"gaussian\"\n"
        );
        let home = home.map(|name| dir.path(name));
        let overrides = Overrides { home, ..Overrides::default() };
        StudyFile::parse_with(&text, &dir.path("s/study.toml"), &overrides).unwrap()
    };
    for path in ["~/a.csv", "~/*.csv"] {
        let study = study(path, Some("data"));
        assert_eq!(study.files().unwrap(), [dir.path("data/a.csv")]);
        // The study is the same for everybody.
        assert_eq!(study.study.data.path, [path]);
    }
    refused(
        study("~/a.csv", None).files(),
        &["study.toml, line 2", "home folder that is not known"],
    );
    refused(
        study("~bob/a.csv", Some("data")).files(),
        &["another user's home folder", "write the path out"],
    );
    refused(study("~/b.csv", Some("data")).files(), &["there is no such file"]);
}

#[test]
fn studies_say_how_values_are_written() {
    let study = |data: &str| {
        Study::from_toml(&format!(
            "[data]\npath = \"a.csv\"\n{data}\n[[model]]\nformula = \"y ~ x\"\nfamily = \"gaussian\"\n"
        ))
    };
    let plain = study("").unwrap();
    let own = study("na = [\"-999\", -1, 2.5, \" . \"]\ndecimal = \",\"\ndelimiter = \"blanks\"")
        .unwrap();
    assert_eq!(own.data.na, ["-999", "-1", "2.5", "."]);
    assert_eq!((own.data.decimal, own.data.delimiter), (',', Some(' ')));
    assert_eq!(Study::from_toml(&own.to_toml()).unwrap(), own);
    // What is left out keeps the hash that it had.
    assert_eq!(study_hash(&study("decimal = \".\"\nna = []").unwrap()), study_hash(&plain));
    assert_ne!(study_hash(&own), study_hash(&plain));
    for (data, parts) in [
        ("decimal = \"x\"", &["`data.decimal` must be \".\" or \",\", not `x`"][..]),
        ("decimal = 1", &["`data.decimal` must be \".\" or \",\""]),
        ("na = [\" \"]", &["`data.na`"]),
        ("na = [true]", &["`data.na", "must be"]),
        (
            "delimiter = \"spaces\"",
            &["`data.delimiter` must be one character, \"tab\" or \"blanks\", not `spaces`"],
        ),
        ("nas = [\"-\"]", &["no `nas`", "did you mean `na`?"]),
    ] {
        refused(study(data), parts);
    }
}
