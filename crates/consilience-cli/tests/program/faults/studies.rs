//! Wrong study files.

use super::{and, refused, with};
use crate::{Folder, NULL, data};

#[test]
fn files_that_are_no_study() {
    let folder = Folder::with("", &data());
    folder.write("d.parquet", b"PAR1\xff\xfe");
    for (file, parts) in [
        ("none.toml", &["none.toml: there is no such file", "name a study file (TOML)"][..]),
        ("s.toml", &["s.toml: there is no model; add [[model]] with formula = "]),
        (".", &[".: this is a folder; name the study file (TOML) in it"]),
        ("d.csv", &["d.csv, line 1", "not valid TOML", "is this the data?", "under [data] path"]),
        ("d.parquet", &["not UTF-8", "is this the data?"]),
    ] {
        folder.run(&["compare", file]).failed(file, 2, parts);
    }
}

#[test]
fn wrong_toml_keys_and_names() {
    let with_family = |family: &str| with("\"logistic\"", family);
    for (what, study, parts) in [
        ("no TOML", "[data\npath = 1".to_string(), &["s.toml, line 1: at column 6", "`]`"][..]),
        ("a key", with("shards", "shard"), &["line 5: [split] has no `shard`", "`shards`?"]),
        ("a table", and("[evidense]"), &["line 11", "no `evidense`; did you mean `evidence`?"]),
        ("a key of another table", with("shards", "draws"), &["line 5", "under [evidence]"]),
        ("[model]", with("[[model]]", "[model]"), &["line 7", "write [[model]], not [model]"]),
        ("a family", with_family("\"logit\""), &["line 10: `model.family`", "write \"logistic\""]),
        ("ols", with_family("\"ols\""), &["line 10: `model.family`", "write \"gaussian\""]),
        ("gaussian()", with_family("\"gaussian()\""), &["write \"gaussian\""]),
        ("a near one", with_family("\"gausian\""), &["did you mean `gaussian`?"]),
        ("a number", with_family("1"), &["line 10", "must be one of \"gaussian\"", "an integer"]),
        (
            "combine",
            and("[evidence]\ncombine = \"exakt\""),
            &["line 12: `evidence.combine`: there is no `exakt`; did you mean `exact`?"],
        ),
        (
            "local",
            and("[evidence]\nlocal = \"lapalce\""),
            &["line 12: `evidence.local`", "`laplace`? (known: `auto`, `none`"],
        ),
        (
            "by, a column's name",
            with("shards = 4", "by = \"island\""),
            &["line 5: `split.by`: there is no `island`", "write `column:island`"],
        ),
        (
            "by",
            with("shards = 4", "by = \"rnadom\""),
            &["line 5: `split.by`: there is no `rnadom`; did you mean `random`?"],
        ),
    ] {
        refused(what, &study, &data(), parts);
    }
}

#[test]
fn wrong_models_and_probabilities() {
    let other = |formula: &str, family: &str| {
        and(&format!("[[model]]\nname = \"other\"\nformula = \"{formula}\"\nfamily = \"{family}\""))
    };
    let gaussian = |study: String| study.replace("logistic", "gaussian");
    for (what, study, parts) in [
        ("none", "[data]\npath = \"d.csv\"".to_string(), &["s.toml: there is no model"][..]),
        ("no data", NULL.to_string(), &["s.toml: `data.path` is missing; add path = "]),
        (
            "no formula",
            with("formula = \"y ~ x\"\n", ""),
            &["line 7", "`model.formula` is missing"],
        ),
        (
            "no family",
            with("family = \"logistic\"\n", ""),
            &["line 7", "`model.family` is missing"],
        ),
        (
            "two of one name",
            and(&NULL.replace("null", "m")),
            &["line 12", "two models are called `m`, on lines 7 and 12", "another name"],
        ),
        (
            "a probability here, none there",
            and(&format!("probability = 0.7\n{NULL}")),
            &["line 13", "is missing here", "on line 7", "for all models, or for none"],
        ),
        ("negative", and("probability = -1"), &["line 11", "must be positive, but is -1"]),
        (
            "different left sides",
            other("n ~ x", "logistic"),
            &["line 13: model `other`: its left side `n` is not `y` as in model `m`"],
        ),
        (
            "density and probability",
            gaussian(other("y ~ 1", "poisson")),
            &["line 13: model `other`", "\"poisson\"", "\"gaussian\" of model `m`", "two studies"],
        ),
    ] {
        refused(what, &study, &data(), parts);
    }
}

#[test]
fn wrong_priors() {
    let prior = |text: &str| and(&format!("[prior]\n{text}"));
    for (what, study, parts) in [
        (
            "a name",
            prior("intercept = \"norml(0, 1)\""),
            &["line 12: `prior.intercept`: there is no prior `norml`; did you mean `normal`?"][..],
        ),
        ("no end", prior("intercept = \"normal(0, 1\""), &["write it as normal(mean, sd)"]),
        (
            "an argument too few",
            prior("intercept = \"normal(0)\""),
            &["line 12", "`normal(0)` has 1 argument(s), but normal(mean, sd) takes 2"],
        ),
        (
            "a negative sd",
            prior("coefficients = \"normal(0, -1)\""),
            &["line 12: `prior.coefficients`: the sd of `normal(0, -1)` must be positive"],
        ),
        (
            "a word",
            prior("coefficients = \"cauchy(zero, 1)\""),
            &["line 12", "the mean of", "must be a finite number, not `zero`"],
        ),
        (
            "for nobody",
            and("[prior.parameters]\nxx = \"normal(0, 1)\""),
            &["line 12: `prior.parameters` names `xx`", "`x`? (known: `(Intercept)`, `x`)"],
        ),
        (
            "for nobody in the model",
            and("[model.prior.parameters]\nxx = \"normal(0, 1)\""),
            &["line 12: `model.prior.parameters` names `xx`, but model `m` has no", "`x`?"],
        ),
        (
            "for another family",
            and("[model.prior]\nlog_sd = \"normal(0, 1)\""),
            &["line 12", "a logistic model has no log_sd", "move it to [prior]"],
        ),
        (
            "for no intercept",
            and("[model.prior]\nintercept = \"normal(0, 1)\"").replace("y ~ x", "y ~ 0 + x"),
            &["line 7", "model `m` has no intercept; leave it out"],
        ),
    ] {
        refused(what, &study, &data(), parts);
    }
}

#[test]
fn wrong_splits_and_evidence_options() {
    let split = |text: &str| with("shards = 4", text);
    let evidence = |text: &str| and(&format!("[evidence]\n{text}"));
    for (what, study, parts) in [
        (
            "more shards than rows",
            split("shards = 41"),
            &["s.toml, line 5: [split]: 41 shards are more than the 40 rows; ask for fewer"][..],
        ),
        (
            "shards that the files do not make",
            split("shards = 4\nby = \"file\""),
            &["line 5: [split]: by = \"file\" makes 1 shard of these data, not 4; leave `shards`"],
        ),
        (
            "shards that the column does not make",
            split("shards = 4\nby = \"column:g\""),
            &["line 5: [split]: by = \"column:g\" makes 3 shards of these data, not 4"],
        ),
        (
            "by an unknown column",
            split("by = \"column:gg\""),
            &["line 5: `split.by` names the column `gg`, which the data lack; did you mean `g`?"],
        ),
        ("no shards", split("shards = 0"), &["line 5", "must be at least 1, but is 0"]),
        (
            "draws that cannot be enough",
            evidence("draws = 100"),
            &[
                "line 12: `evidence.draws` must be at least 200, but is 100",
                "100 of them have to be",
            ],
        ),
        ("no error", evidence("se_target = 0"), &["line 12", "positive", "default is 0.01"]),
        (
            "normal with nothing to go by",
            evidence("combine = \"normal\"\nlocal = \"none\""),
            &["line 13", "do not go together; write local = \"auto\", or combine = \"exact\""],
        ),
    ] {
        refused(what, &study, &data(), parts);
    }
}
