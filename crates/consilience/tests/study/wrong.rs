//! Studies that are wrong, and what is said about them.

use super::*;

/// Asserts that the study is refused, at this line (0: none), with these words.
fn refused(text: &str, line: u64, needles: &[&str]) {
    let error = match parse(text) {
        Ok(study) => panic!("{text}\nwas read as {study:?}"),
        Err(error) => error,
    };
    assert!(error.is_input(), "{error}");
    let said = error.to_string();
    let place = match line {
        0 => "folder/study.toml: ".to_string(),
        line => format!("folder/study.toml, line {line}: "),
    };
    assert!(said.starts_with(&place), "{text}\n{said}\nis not at {place}");
    for needle in needles {
        assert!(said.contains(needle), "{text}\n{said}\nlacks {needle}");
    }
}

#[test]
fn unknown_keys_and_tables() {
    for (text, line, needles) in [
        ("[splitt]\n", 1, &["a study has no `splitt`", "did you mean `split`?", "`evidence`"][..]),
        ("[[models]]\n", 1, &["`models`", "did you mean `model`?"]),
        ("[data]\n\npth = 1\n", 3, &["[data] has no `pth`", "`path`?", "`weights`", "`comment`"]),
        ("[split]\nshard = 3", 2, &["[split] has no `shard`", "did you mean `shards`?"]),
        ("[evidence]\nse_targt = 3", 2, &["[evidence] has no `se_targt`", "`se_target`?"]),
        // The first in the file, not the first by name.
        ("[split]\nzz = 1\naa = 1", 2, &["`zz`"]),
        // Keys of other tables.
        ("[split]\ndraws = 1000", 2, &["`draws`; it belongs under [evidence]"]),
        ("seed = 1", 1, &["a study has no `seed`; it belongs under [split] or [evidence]"]),
        ("formula = 'y ~ x'", 1, &["belongs under [[model]]"]),
        ("[prior]\nage = 'normal(0, 1)'", 2, &["[prior] has no `age`", "[prior.parameters]"]),
        ("\"sp\\u001blit\" = 1", 1, &["`sp\\u{1b}lit`"]),
    ] {
        refused(&format!("{text}\n"), line, needles);
    }
    for (text, line, needles) in [
        ("fomula = 1", 6, &["[[model]] has no `fomula`", "`formula`?", "`probability`"][..]),
        (
            "intercept = 'normal(0, 1)'",
            6,
            &["`intercept`; it belongs under [prior] or [model.prior]"],
        ),
        ("[model.priors]", 6, &["[[model]] has no `priors`", "did you mean `prior`?"]),
        ("[model.prior]\ncoeficients = 'x'", 7, &["[model.prior] has no", "`coefficients`?"]),
        ("[model.prior]\nage = 'x'", 7, &["under [model.prior.parameters]"]),
    ] {
        refused(&format!("{DATA}{MODEL}{text}\n"), line, needles);
    }
}

#[test]
fn wrong_values_of_data_split_and_evidence() {
    for (table, key, needles) in [
        ("data", "path = 3", &["`data.path` must be a path", "not an integer"][..]),
        ("data", "path = ''", &["`data.path` is empty"]),
        ("data", "path = []", &["`data.path` is an empty list"]),
        ("data", "path = ['a', 2]", &["`data.path[1]` must be a path", "not an integer"]),
        ("data", "path = [['a']]", &["`data.path[0]`", "not a list"]),
        (
            "data",
            "missing = 'dropp'",
            &["`data.missing`: ", "`dropp`; did you mean `drop`?", "`error`"],
        ),
        (
            "data",
            "missing = true",
            &["`data.missing` must be one of \"drop\", \"error\", not true or false"],
        ),
        ("data", "weights = ''", &["`data.weights` is empty", "name of a column"]),
        ("data", "columns = 'y'", &["`data.columns` must be a list of the names"]),
        ("data", "columns = []", &["`data.columns` must be a list of the names"]),
        ("data", "columns = ['y', 2]", &["`data.columns[1]`", "not an integer"]),
        ("data", "columns = ['y', '']", &["`data.columns[1]` is empty"]),
        ("data", "columns = ['y', ' y']", &["`data.columns[1]` names `y` a second time"]),
        (
            "data",
            "delimiter = ';;'",
            &["`data.delimiter` must be one character", "`;;`", "\"tab\""],
        ),
        ("data", "delimiter = ''", &["`data.delimiter` must be one character"]),
        ("data", "delimiter = 'x'", &["`data.delimiter`", "punctuation", "`x`"]),
        ("data", "delimiter = '\"'", &["`data.delimiter`", "no quote"]),
        ("data", "delimiter = '§'", &["`data.delimiter`", "ASCII"]),
        ("data", "delimiter = '#'", &["`data.delimiter` is `#`", "`data.comment`"]),
        ("data", "comment = '//'", &["`data.comment` must be one character", "for none"]),
        (
            "split",
            "sizes = 'multinomal'",
            &["`split.sizes`: ", "did you mean `multinomial`?", "`equal`"],
        ),
        (
            "split",
            "by = 'outcome'\nsizes = 'multinomial'",
            &["`split.sizes` = \"multinomial\"", "\"outcome\"", "no strata", "by = \"random\""],
        ),
        (
            "split",
            "by = 'file'\nsizes = 'multinomial'",
            &["`split.sizes` = \"multinomial\"", "\"file\"", "leave `sizes` out"],
        ),
        ("split", "shards = 0", &["`split.shards` must be at least 1, but is 0"]),
        ("split", "shards = -3", &["`split.shards` must not be negative, but is -3"]),
        ("split", "shards = 1.5", &["`split.shards` must be an integer, not 1.5"]),
        ("split", "shards = '50'", &["must be an integer, not a text; write 50"]),
        ("split", "shards = 'many'", &["must be an integer, not a text"]),
        ("split", "shards = 1000001", &["must be at most 1000000"]),
        ("split", "shards = 1979-05-27", &["must be an integer, not a date or time"]),
        ("split", "by = 'randm'", &["`split.by`: ", "`random`?", "`column:NAME`"]),
        ("split", "by = 'column'", &["`split.by`: ", "write column:NAME"]),
        ("split", "by = 'column: '", &["`split.by`: ", "write column:NAME"]),
        ("split", "by = 'colum:hospital'", &["did you mean `column:hospital`?"]),
        ("split", "by = ['file']", &["`split.by` must be one of \"random\", "]),
        ("split", "share = 'row'", &["`split.share`: ", "did you mean `rows`?"]),
        ("split", "seed = -1", &["`split.seed` must not be negative"]),
        ("split", "seed = 18446744073709551616", &["`split.seed` is too large"]),
        ("split", "clusters = 0", &["`split.clusters` must be at least 1"]),
        ("evidence", "local = 'laplce'", &["`evidence.local`: ", "`laplace`?", "`importance`"]),
        ("evidence", "combine = 'exat'", &["`evidence.combine`: ", "`exact`?", "`normal`"]),
        (
            "evidence",
            "combine = 'normal'\nlocal = 'none'",
            &["local = \"auto\", or combine = \"exact\""],
        ),
        // Draws that are weighed have to be more than those of a chain.
        (
            "evidence",
            "draws = 199",
            &["`evidence.draws` must be at least 200, but is 199: draws are weighed"],
        ),
        (
            "evidence",
            "combine = 'normal'\nlocal = 'importance'\ndraws = 199",
            &["`evidence.draws` must be at least 200, but is 199"],
        ),
        (
            "evidence",
            "combine = 'normal'\nlocal = 'nuts+warp3'\ndraws = 99",
            &["`evidence.draws` must be at least 100, but is 99"],
        ),
        (
            "evidence",
            "combine = 'cmc-is'\nproposals = 199",
            &["`evidence.proposals` must be at least 200, but is 199"],
        ),
        ("evidence", "draws = 100000001", &["`evidence.draws` must be at most 100000000"]),
        ("evidence", "draws = 1e4", &["`evidence.draws` must be an integer, not 1e4"]),
        ("evidence", "se_target = 0", &["`evidence.se_target` must be a positive number"]),
        ("evidence", "se_target = -0.1", &["must be a positive number, but is -0.1"]),
        ("evidence", "se_target = inf", &["`evidence.se_target` must be a finite number"]),
        ("evidence", "se_target = 1e999", &["must be a finite number"]),
        ("evidence", "se_target = '0.01'", &["must be a number, not a text; write 0.01"]),
        ("evidence", "rounds = 1", &["`evidence.rounds` must be at least 2"]),
        ("evidence", "seed = 'x'", &["`evidence.seed` must be an integer, not a text"]),
    ] {
        // The value is on the last line of its table; [data] comes with a path of its own.
        let line = 1 + key.lines().count() as u64;
        let data = if table == "data" { "" } else { DATA };
        refused(&format!("[{table}]\n{key}\n{data}{MODEL}"), line, needles);
    }
    refused(
        &format!("split = 5\n{DATA}{MODEL}"),
        1,
        &["`split` must be a table, [split], not an int"],
    );
    refused(
        &format!("[[split]]\n{DATA}{MODEL}"),
        1,
        &["`split` must be a table, [split], not a list"],
    );
    refused(&format!("\n[data]\n{MODEL}"), 2, &["`data.path` is missing", "path = \"data.csv\""]);
    refused(MODEL, 0, &["`data.path` is missing"]);
}

#[test]
fn wrong_models() {
    let none = &["there is no model", "[[model]]", "family = \"gaussian\""][..];
    refused("", 0, none);
    refused(DATA, 0, none);
    for (text, line, needles) in [
        ("[model]\nformula = 'y ~ x'", 3, &["write [[model]], not [model]"][..]),
        ("[model.prior]", 3, &["write [[model]], not [model]"]),
        ("[[model]]", 3, &["`model.formula` is missing"]),
        (
            "[[model]]\nformula = 'y ~ x'",
            3,
            &["`model.family` is missing", "\"negative-binomial\""],
        ),
        ("[[model]]\nformula = ' '", 4, &["`model.formula` is empty"]),
        ("[[model]]\nformula = 7", 4, &["`model.formula` must be a formula", "not an integer"]),
        ("[[model]]\nformula = \"y ~ \\u001b\"", 4, &["`model.formula` has a control character"]),
        (
            "[[model]]\nformula = 'y ~ x'\nfamily = 'logistc'",
            5,
            &["`model.family`: ", "did you mean `logistic`?", "`poisson`"],
        ),
    ] {
        refused(&format!("{DATA}{text}\n"), line, needles);
    }
    refused("data.path = 'x'\nmodel = []\n", 2, &["`model` is an empty list"]);
    refused("data.path = 'x'\nmodel = 'y ~ x'\n", 2, &["`model` must be a list of tables"]);
    refused(
        "data.path = 'x'\nmodel = ['y ~ x']\n",
        2,
        &["`model[0]` must be a table, [[model]], not a text"],
    );
    for (key, needles) in [
        ("name = ''", &["`model.name` is empty"][..]),
        ("name = \"a\\nb\"", &["`model.name` must be a single line"]),
        ("name = 5", &["`model.name` must be a name, not an integer"]),
        ("probability = 0", &["`model.probability` must be positive, but is 0"]),
        ("probability = -0.5", &["`model.probability` must be positive"]),
        ("probability = nan", &["`model.probability` must be a finite number"]),
        ("probability = 'half'", &["`model.probability` must be a number, not a text"]),
        ("prior = 'normal(0, 1)'", &["`model.prior` must be a table, [model.prior], not a text"]),
    ] {
        refused(&format!("{DATA}{MODEL}{key}\n"), 6, needles);
    }
    let twice = &["two models are the same: `y ~ x`", "lines 3 and 6", "leave one out"];
    refused(&format!("{DATA}{MODEL}{MODEL}"), 6, twice);
    let twice = &["`model.name`", "called `y ~ x`", "lines 3 and 6", "another name"];
    let prior = "[model.prior]\nintercept = \"normal(0, 1)\"\n";
    refused(&format!("{DATA}{MODEL}{MODEL}{prior}"), 6, twice);
    let some = format!("{DATA}{MODEL}probability = 1\n{MODEL}name = 'b'\n");
    refused(&some, 7, &["`model.probability` is missing", "line 3", "or for none"]);
    let tiny =
        format!("{DATA}{MODEL}probability = 1e-320\n{MODEL}name = 'b'\nprobability = 1e300\n");
    refused(&tiny, 3, &["`model.probability` is 1e-320", "leave the model out"]);
}

#[test]
fn wrong_priors() {
    for (text, line, needles) in [
        ("coefficients = 'norml(0, 1)'", 2, &["`prior.coefficients`: ", "`normal`?"][..]),
        ("intercept = 'normal(0)'", 2, &["`prior.intercept`: ", "normal(mean, sd) takes 2"]),
        ("log_sd = 'normal(0, -1)'", 2, &["`prior.log_sd`: ", "positive"]),
        (
            "log_dispersion = 1",
            2,
            &["`prior.log_dispersion` must be a text such as", "not an integer"],
        ),
        ("parameters = 1", 2, &["`prior.parameters` must be a table, [prior.parameters]"]),
        ("[prior.parameters]\nage = 0.5", 3, &["`prior.parameters.age` must be a text such as"]),
        ("[prior.parameters]\na.b = 'fixed(0)'", 3, &["`prior.parameters.a`", "needs quotes"]),
        ("[prior.parameters]\nage = 'cauchi(0, 1)'", 3, &["`prior.parameters.age`: ", "`cauchy`?"]),
    ] {
        refused(&format!("[prior]\n{text}\n{DATA}{MODEL}"), line, needles);
    }
    let model = |family: &str, key: &str| {
        format!(
            "{DATA}[[model]]\nformula = 'y ~ x'\nfamily = '{family}'\n[model.prior]\n{key} = 'fixed(0)'\n"
        )
    };
    refused(
        &model("logistic", "log_sd"),
        7,
        &["`model.prior.log_sd`", "a logistic model has no log_sd", "move it to [prior]"],
    );
    refused(
        &model("gaussian", "log_dispersion"),
        7,
        &["a gaussian model has no log_dispersion", "its own parameter is `log_sd`"],
    );
    assert!(parse(&model("negative-binomial", "log_dispersion")).is_ok());
    assert!(parse(&model("gaussian", "log_sd")).is_ok());
    // For all models the study may speak of what only some have.
    let shared = model("logistic", "intercept") + "[prior]\nlog_sd = 'fixed(0)'\n";
    assert!(parse(&shared).is_ok());
}

#[test]
fn toml_errors_have_line_and_column() {
    for (text, line, needles) in [
        ("[data]\npath = d.csv", 2, &["at column 8: this is not valid TOML: "][..]),
        ("[data\n", 1, &["not valid TOML"]),
        ("é = 1 2", 1, &["column 1: "]),
        ("[data]\npath = 'a'\npath = 'b'", 3, &["column 1: ", "duplicate key"]),
        ("[data]\n[data]", 2, &["duplicate key"]),
        ("[model]\n[[model]]", 2, &["duplicate key"]),
        ("[data]\r\n\r\n  x = = 1", 3, &["column 7: ", "extra `=`"]),
        ("\u{feff}x = = 1", 1, &["column 5: "]),
        ("x = \"abc", 1, &["not valid TOML"]),
        ("[prior.parameters]\nI(x) = 'fixed(0)'", 2, &["not valid TOML"]),
    ] {
        refused(text, line, needles);
    }
}

#[test]
fn hostile_studies_neither_overflow_nor_flood() {
    let n = 100_000;
    for text in [
        format!("x = {}", "[".repeat(n)),
        format!("x = {}", "{a=".repeat(n)),
        format!("x = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("[{}]", vec!["a"; n].join(".")),
        format!("{} = 1", vec!["a"; n].join(".")),
        "[".repeat(n),
        format!("{} = 1", "k".repeat(n)),
        format!("[split]\nby = '{}'", "b".repeat(n)),
        format!("[split]\nby = 'column{}:x'", "b".repeat(n)),
        format!("[split]\nshards = {}", "9".repeat(n)),
        format!("[split]\nshards = -{}", "9".repeat(n)),
        format!("[split]\nshards = {}.5", "9".repeat(n)),
        format!("[data]\ndelimiter = '{}'", ";".repeat(n)),
        format!("[prior]\nintercept = 'normal({})'", "1,".repeat(n)),
        format!("[prior.parameters]\n{} = 1", "p".repeat(n)),
        format!("{DATA}{}", MODEL.replace("y ~ x", &"y".repeat(n)).repeat(2)),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.len() < 1000 && !error.contains('\n'), "{error}");
    }
    // The deepest that the parser lets through: keys in tables in keys.
    let path = ["a"; 79].join(".");
    let deep = format!("[{path}]\n{path} = {}1{}", format!("{{{path}=").repeat(79), "}".repeat(79));
    refused(&deep, 1, &["a study has no `a`"]);
}
