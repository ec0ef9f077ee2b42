//! What kind a column is of, over one file and over several.

use crate::{Dir, names, read, read_one, refused, values};
use consilience::data::Column;
use consilience::data::read::{TextFormat, Wanted, read_table};

#[test]
fn a_column_is_what_all_its_values_are() {
    let dir = Dir::new();
    let file = dir.write(
        "t.csv",
        "number,logical,text,mixed,late,none,flags\n\
         1,TRUE,a,1,,NA,TRUE\n\
         -2.5e-3,false,\"b,c\",TRUE,,,\n\
         NA,,N/A,x,2,null,1\n\
         .5,True,NULL,,x,NULL,FALSE\n",
    );
    let table = read(&[file]).expect("a table").table;
    assert_eq!(values(&table, "number"), "1 -0.0025 ? 0.5");
    assert_eq!(values(&table, "logical"), "true false ? true");
    assert_eq!(values(&table, "text"), "'a' 'b,c' ? ?");
    assert_eq!(values(&table, "mixed"), "'1' 'TRUE' 'x' ?");
    assert_eq!(values(&table, "late"), "? ? '2' 'x'");
    assert_eq!(values(&table, "none"), "? ? ? ?");
    assert_eq!(values(&table, "flags"), "'TRUE' ? '1' 'FALSE'");
    assert!(matches!(table.column("none"), Ok(Column::Number(_))));
}

#[test]
fn text_keeps_its_spelling() {
    let column = read_one("a\n 01 \n1.0\n\" x y \"\n1\n01\n").expect("a column");
    let Column::Text { codes, levels } = column else { panic!("{column:?}") };
    assert_eq!(*levels, ["01", "1.0", "x y", "1"]);
    assert_eq!(codes, [0, 1, 2, 3, 0]);
}

#[test]
fn what_is_not_finite_is_refused_among_numbers() {
    for value in ["NaN", "nan", "inf", "-Infinity", "+INF", "1e999", "-1e400"] {
        for (content, line) in [
            (format!("a,b\n1,2\n#\n{value},3\n"), 4),
            (format!("a,b\n{value},3\n1,2\n"), 2),
            (format!("a,b\n,3\n{value},3\n"), 3),
            (format!("a,b\nTRUE,3\n{value},3\n"), 3),
        ] {
            let file = Dir::new();
            let at = format!("t.csv, line {line}, column `a`");
            let parts = [at.as_str(), &format!("`{value}`"), "empty or write NA"];
            refused(read(&[file.write("t.csv", content)]), &parts);
        }
    }
}

#[test]
fn what_is_not_finite_is_a_word_among_words() {
    let spelled = |content: &str| match read_one(content).expect("a column") {
        Column::Text { levels, .. } => levels.join(" "),
        other => panic!("{other:?}"),
    };
    assert_eq!(spelled("a\nNan\nPat\nInf\n"), "Nan Pat Inf");
    assert_eq!(spelled("a\n1\ninf\nx\n"), "1 inf x");
    assert_eq!(spelled("a\nTRUE\nnan\n1\n"), "TRUE nan 1");
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    let dir = Dir::new();
    let files = [
        dir.write("1.csv", "a,b,c\n1,1,x\n1,inf,y\nnan,1,inf\n"),
        dir.write("2.csv", "a,b,c\nnan,1,x\n"),
    ];
    refused(read(&files), &["1.csv, line 3, column `b`", "`inf`"]);
    let wanted = names(&["a"]);
    let wanted = Wanted::Named(&wanted);
    refused(read_table(&files, &TextFormat::default(), &wanted), &["1.csv, line 4, column `a`"]);
}

#[test]
fn files_decide_together() {
    let dir = Dir::new();
    let files = [
        dir.write("1.csv", "same,mix,flag,gap,odd\n1,01,TRUE,,inf\n2,2,FALSE,NA,\n"),
        dir.write("2.csv", "odd,gap,flag,mix,same\nx,q,1,x,3\n"),
        dir.write("3.csv", "same,mix,flag,gap,odd\n4,x,TRUE,q,y\n"),
    ];
    let table = read(&files).expect("a table").table;
    assert_eq!(table.names(), ["same", "mix", "flag", "gap", "odd"]);
    assert_eq!(values(&table, "same"), "1 2 3 4");
    assert_eq!(values(&table, "mix"), "'01' '2' 'x' 'x'");
    assert_eq!(values(&table, "flag"), "'TRUE' 'FALSE' '1' 'TRUE'");
    assert_eq!(values(&table, "gap"), "? ? 'q' 'q'");
    assert_eq!(values(&table, "odd"), "'inf' ? 'x' 'y'");
    let Ok(Column::Text { levels, .. }) = table.column("mix") else { panic!() };
    assert_eq!(**levels, ["01", "2", "x"]);
}

#[test]
fn rows_keep_their_file_and_line() {
    let dir = Dir::new();
    let files = [
        dir.write("b.csv", "# c\na,b\n1,\"x\ny\"\n\n# c\n2,z\n"),
        dir.write("a.tsv", "b\ta\nw\t3\n#\n#\n"),
    ];
    let read = read(&files).expect("a table");
    assert_eq!(values(&read.table, "a"), "1 2 3");
    assert_eq!(values(&read.table, "b"), "'x\ny' 'z' 'w'");
    assert_eq!(read.table.origin().rows, [(0, 3), (0, 7), (1, 2)]);
    assert!(read.table.place(2, Some("a")).to_string().ends_with("a.tsv, line 2, column `a`"));
    assert_eq!(read.comments, 3);
}

#[test]
fn many_files_come_in_order_every_time() {
    let dir = Dir::new();
    let files: Vec<_> =
        (0..40).map(|i| dir.write(&format!("{i}.csv"), format!("a,b\n{i},l{}\n", i % 7))).collect();
    let first = read(&files).expect("a table");
    assert_eq!(first.table.rows(), 40);
    assert_eq!(
        values(&first.table, "a"),
        (0..40).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")
    );
    assert_eq!(read(&files).expect("a table"), first);
    // The first file's error, whichever is noticed first.
    std::fs::write(&files[3], "a,b\n1\n").expect("a file");
    std::fs::write(&files[30], "").expect("a file");
    refused(read(&files), &["3.csv, line 2"]);
}
