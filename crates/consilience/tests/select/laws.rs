//! What must hold whatever the data.

use super::*;

#[test]
fn a_factor_comes_and_goes_whole_and_orphans_are_never_listed() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "d.csv", HEADER, &lines(&rows(300)));
    let terms = "x1 * x2 * x3 + g + g:x1";
    for (heredity, models) in [("strong", 0), ("weak", 0), ("none", 512)] {
        let more = format!("heredity = \"{heredity}\"\ntop = 600");
        let searched = logistic(terms, &format!("{more}\nmethod = \"search\""));
        let found = select(&data, 2, &searched);
        let exact = select(&data, 1, &logistic(terms, &format!("{more}\nmethod = \"enumerate\"")));
        assert!(models == 0 || found.space == f64::from(models));
        let has = |terms: &[String], term: &str| terms.iter().any(|t| t == term);
        for model in &found.models {
            for term in &model.terms {
                let parts: Vec<&str> = term.split(':').collect();
                let known = parts.iter().filter(|p| has(&model.terms, p)).count();
                match heredity {
                    "strong" => assert_eq!(known, parts.len(), "{:?}", model.terms),
                    "weak" => assert!(known > 0, "{:?}", model.terms),
                    _ => {}
                }
            }
        }
        // One entry for all dummies of the factor, and as many coefficients as it has.
        assert_eq!(found.inclusion.iter().filter(|i| i.term == "g").count(), 1);
        let dummies = found.coefficients.iter().filter(|c| c.term.as_deref() == Some("g"));
        assert_eq!(dummies.count(), 2);
        let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
        for z in z_scores(&found, &inclusion(&exact), &errors) {
            assert!(z.abs() < 4.0, "{heredity}: {z}");
        }
        let before: f64 = found.inclusion.iter().map(|i| i.prior.unwrap()).sum();
        assert!(before > 0.0 && before < found.inclusion.len() as f64);
    }
}

#[test]
fn splits_labels_and_weights_do_what_they_must() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(400);
    let data = file(&folder, "d.csv", HEADER, &lines(&all));
    let rest = logistic("x1 + x2 + x3 + g", "method = \"search\"");
    let whole = select(&data, 1, &rest);
    // The same draws, the same sums but for rounding.
    for shards in [2, 10, 50] {
        let split = select(&data, shards, &rest);
        for (a, b) in inclusion(&whole).iter().zip(inclusion(&split)) {
            assert!((a - b).abs() < 1e-9, "{shards}: {a} {b}");
        }
        assert!((total(&whole).value - total(&split).value).abs() < 1e-8);
    }
    // Other names and another order: other draws, the same answer.
    let other = select(&data, 1, &logistic("g + x3 + x2 + x1", "method = \"search\""));
    for term in &whole.inclusion {
        let same = other.inclusion.iter().find(|i| i.term == term.term).unwrap();
        let se = term.se.unwrap().hypot(same.se.unwrap());
        assert!((term.probability - same.probability).abs() < 4.0 * se + 1e-9);
    }
    // Every row twice is every row with weight 2.
    let twice: Vec<String> = lines(&all).into_iter().flat_map(|l| [l.clone(), l]).collect();
    let twice = file(&folder, "twice.csv", HEADER, &twice);
    let weighted: Vec<String> = lines(&all).into_iter().map(|l| format!("{l},2")).collect();
    let weighted = file(&folder, "weighted.csv", &format!("{HEADER},w"), &weighted);
    let weights = format!(
        "[data]\npath = {weighted:?}\nweights = \"w\"\n[prior]\ndefault = \"normal(0, 1)\"\n{rest}"
    );
    let weights = StudyFile::parse(&weights, Path::new("select.toml")).unwrap();
    let weights = Plan::new(weights, 1, &Silent).unwrap().select(&Silent).unwrap();
    for (a, b) in inclusion(&select(&twice, 1, &rest)).iter().zip(inclusion(&weights)) {
        assert!((a - b).abs() < 1e-8, "{a} {b}");
    }
}

#[test]
fn other_engines_give_the_bits_of_threads_and_pick_up_where_they_were_left() {
    use consilience::run::{Run, Stop};
    let rest = logistic("x1 + x2 + x3 + g", "method = \"search\"");
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "d.csv", HEADER, &lines(&rows(300)));
    let bits =
        |s: &Selection| serde_json::to_string(&Selection { seconds: None, ..s.clone() }).unwrap();
    for rest in [
        rest.clone(),
        rest.replace("search", "enumerate"),
        rest.replace("search", "reversible-jump") + "\n[evidence]\ndraws = 500\nwarmup = 200",
    ] {
        let known = select(&data, 3, &rest);
        let place = folder.path().join(format!("{}.run", known.method));
        let run = Run::split(study(&data, 3, &rest), &place).unwrap();
        let mut stops = 0;
        // The coordinator knows nothing but the folder.
        let found = loop {
            let run = Run::open(run.folder()).unwrap();
            match run.select(&[], &Stop, &Silent) {
                Ok(found) => break found,
                Err(consilience::Error::Waiting(_)) => stops += 1,
                Err(other) => panic!("{other}"),
            }
            let work = run.work_all(&[0, 1, 2], 1, false, &(), &Default::default());
            assert!(work.unwrap().answered > 0);
        };
        assert!(stops > 3 || known.method != "search");
        assert_eq!(bits(&found), bits(&known), "{}", known.method);
    }
}

#[test]
fn terms_that_cannot_matter_change_nothing_in_a_space_too_large_to_walk() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(200);
    let header =
        format!("{HEADER},{}", (0..40).map(|j| format!("n{j}")).collect::<Vec<_>>().join(","));
    let noise = |i: usize, j: usize| ((i * 37 + j * 101) as f64 * 0.754_877_666).fract() - 0.5;
    let wide: Vec<String> = lines(&all)
        .into_iter()
        .enumerate()
        .map(|(i, l)| l + &(0..40).map(|j| format!(",{:.4}", noise(i, j))).collect::<String>())
        .collect();
    let data = file(&folder, "wide.csv", &header, &wide);
    let few = "x1 + x2 + x3 + g + x1:x2 + x1:x3 + x2:x3 + g:x1 + g:x2";
    let more = "heredity = \"none\"\nprior = \"uniform\"\nmethod = \"search\"\nse_target = 0.01";
    let exact = select(&data, 1, &logistic(few, more));
    let nulls: Vec<String> = (0..40).map(|j| format!("n{j}")).collect();
    let priors: String = nulls.iter().map(|n| format!("{n} = \"normal(0, 1e-6)\"\n")).collect();
    let rest = logistic(&format!("{few} + {}", nulls.join(" + ")), more);
    let rest = format!("[prior]\ndefault = \"normal(0, 1)\"\n[prior.parameters]\n{priors}{rest}");
    let found = select(&data, 1, &rest);
    assert_eq!(found.inclusion.len(), 49);
    for term in &exact.inclusion {
        let same = found.inclusion.iter().find(|i| i.term == term.term).unwrap();
        let se = term.se.unwrap().hypot(same.se.unwrap());
        let z = (term.probability - same.probability) / se.max(1e-6);
        assert!(z.abs() < 4.0, "{}: {term:?} {same:?}", term.term);
    }
}
