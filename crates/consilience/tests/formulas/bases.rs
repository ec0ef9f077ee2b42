//! Splines, intervals and references: the columns are R's, whatever the split.

use super::agreement::{close, error, number, recipe, table, text, truth};
use consilience::data::Table;

const X: [f64; 8] = [1.0, 2.5, 4.0, 4.25, 6.0, 7.125, 9.0, 10.0];

fn whole() -> Table {
    let g = ["b", "a", "c", "a", "b", "c", "c", "a"];
    let y: Vec<f64> = (1..=8).map(f64::from).collect();
    let late = [true, false, true, false, true, true, false, false];
    table(vec![
        ("y", number(&y)),
        ("x", number(&X)),
        ("g", text(&g)),
        ("late", truth(&late)),
        ("n", number(&[1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0])),
    ])
}

/// The same rows on one shard, on two, and on four.
fn splits() -> Vec<Vec<Table>> {
    let whole = whole();
    let part = |rows: &[usize]| whole.select(rows);
    vec![
        vec![whole.clone()],
        vec![part(&[6, 1, 3]), part(&[0, 2, 4, 5, 7])],
        vec![part(&[7]), part(&[0, 4]), part(&[1, 2, 3]), part(&[5, 6])],
    ]
}

/// The rows of a formula's design on all rows, without the intercept, as every split agrees on it.
fn rows(formula: &str) -> Vec<Vec<f64>> {
    let mut found: Option<Vec<Vec<f64>>> = None;
    for shards in splits() {
        let made = recipe(formula, None, &shards).unwrap_or_else(|e| panic!("{formula}: {e}"));
        let columns = made.design(&whole()).unwrap().columns;
        let rows: Vec<Vec<f64>> =
            (0..8).map(|row| columns[1..].iter().map(|c| c[row]).collect()).collect();
        if let Some(found) = &found {
            assert_eq!(found, &rows, "{formula}: the split matters");
        }
        found = Some(rows);
    }
    found.unwrap()
}

/// The values that `scripts/formula_reference.R` gives.
#[test]
fn splines_are_r_s() {
    let reference: [(&str, &[&[f64]]); 8] = [
        (
            "bs(x, knots = c(4, 6))",
            &[
                &[0.0, 0.0, 0.0, 0.0, 0.0],
                &[0.5450000000000002, 0.30500000000000005, 0.025000000000000005, 0.0, 0.0],
                &[0.16, 0.6400000000000001, 0.20000000000000004, 0.0, 0.0],
                &[
                    0.10718749999999999,
                    0.6389641203703702,
                    0.2536313657407407,
                    0.00021701388888888888,
                    0.0,
                ],
                &[0.0, 0.2962962962962963, 0.5925925925925926, 0.1111111111111111, 0.0],
                &[
                    0.0,
                    0.11001699942129631,
                    0.5106223777488427,
                    0.35711330837673616,
                    0.022247314453125,
                ],
                &[0.0, 0.004629629629629629, 0.10300925925925926, 0.4704861111111111, 0.421875],
                &[0.0, 0.0, 0.0, 0.0, 1.0],
            ],
        ),
        (
            "bs(x, df = 5)",
            &[
                &[0.0, 0.0, 0.0, 0.0, 0.0],
                &[0.5787065163370912, 0.2647303718166642, 0.021151586368977675, 0.0, 0.0],
                &[0.2358388109139626, 0.5949287559669207, 0.1692126909518214, 0.0, 0.0],
                &[
                    0.1772211720226842,
                    0.6077349414698652,
                    0.21499429317279473,
                    4.959333465582253e-05,
                    0.0,
                ],
                &[
                    0.004784971644612461,
                    0.35655790445255015,
                    0.5632318610581637,
                    0.07542526284467373,
                    0.0,
                ],
                &[
                    0.0,
                    0.13731265799927767,
                    0.5631119078976454,
                    0.2980392483952934,
                    0.0015361857077833506,
                ],
                &[
                    0.0,
                    0.005778259299386058,
                    0.12544394348981347,
                    0.5369616843295987,
                    0.3318161128812018,
                ],
                &[0.0, 0.0, 0.0, 0.0, 1.0],
            ],
        ),
        (
            "bs(x, knots = 5, degree = 2, intercept = TRUE, Boundary.knots = c(0, 12))",
            &[
                &[0.64, 0.3433333333333333, 0.016666666666666666, 0.0],
                &[0.25, 0.6458333333333333, 0.10416666666666666, 0.0],
                &[0.04, 0.6933333333333334, 0.26666666666666666, 0.0],
                &[0.022500000000000006, 0.6764583333333335, 0.3010416666666667, 0.0],
                &[0.0, 0.42857142857142855, 0.5510204081632653, 0.02040816326530612],
                &[0.0, 0.2829241071428571, 0.6249202806122449, 0.09215561224489796],
                &[0.0, 0.10714285714285714, 0.5663265306122449, 0.32653061224489793],
                &[0.0, 0.047619047619047616, 0.44217687074829926, 0.510204081632653],
            ],
        ),
        (
            "ns(x, knots = c(4, 6))",
            &[
                &[0.0, 0.0, 0.0],
                &[-0.13237221596315663, 0.39343053990789156, -0.23605832394473494],
                &[-0.03370234134297531, 0.5842558533574383, -0.35055351201446305],
                &[0.020671784326435433, 0.582615967424652, -0.34943937212145787],
                &[0.4694437318737615, 0.4189832629081888, -0.18472329107824662],
                &[0.5139155591919798, 0.34888035476889323, 0.027187086617830758],
                &[0.14796005831052753, 0.35810911348294044, 0.4893011985769024],
                &[-0.15789473684210528, 0.39473684210526316, 0.763157894736842],
            ],
        ),
        (
            "ns(x, df = 4)",
            &[
                &[0.0, 0.0, 0.0, 0.0],
                &[
                    0.047270265279743956,
                    -0.14146966967752925,
                    0.42808354590732867,
                    -0.28661387622979945,
                ],
                &[
                    0.37339801186939475,
                    -0.1445955519994519,
                    0.44174707293942156,
                    -0.2957619887491406,
                ],
                &[
                    0.45874380764370637,
                    -0.12205274101469016,
                    0.3887945737283852,
                    -0.2603088133117085,
                ],
                &[
                    0.6214555318248841,
                    0.27007405164211207,
                    0.11548514592084412,
                    -0.06967572062859424,
                ],
                &[
                    0.3118107643740104,
                    0.5401972187674464,
                    0.16674883481825692,
                    -0.020351082951591333,
                ],
                &[0.013372248666366313, 0.2746107668878916, 0.3398963460768726, 0.3721206383688696],
                &[0.0, -0.14206306029283064, 0.42987913049648746, 0.7121839297963432],
            ],
        ),
        (
            "ns(x, knots = 5, intercept = TRUE, Boundary.knots = c(2, 9))",
            &[
                &[-0.8354604872361384, 0.6741299023891956, -0.42899175606585166],
                &[-0.25187492183872223, 0.5488591276738026, -0.3487328647967488],
                &[0.250362734826181, 0.43689896205698203, -0.2433945775860448],
                &[0.31225596282928825, 0.4218081098777875, -0.2191132777144362],
                &[0.46079087828724424, 0.36275927646842687, 0.038633707182429644],
                &[0.31618544832655127, 0.36408456183284177, 0.2783481258303993],
                &[-0.14069897432803719, 0.4016161313098136, 0.7444260982573914],
                &[-0.4120469962463947, 0.4261615274073114, 1.0015335734680746],
            ],
        ),
        (
            "ns(x)",
            &[
                &[0.0],
                &[0.1336306209562122],
                &[0.26726124191242445],
                &[0.2895330120717931],
                &[0.44543540318737396],
                &[0.5456583689045331],
                &[0.7126966450997984],
                &[0.8017837257372731],
            ],
        ),
        (
            "bs(x, knots = 5, Boundary.knots = c(2, 9))",
            &[
                &[-1.5359032501889647, 0.17233560090702946, -0.006802721088435375, 0.0],
                &[0.3884164777021919, 0.03202947845804988, 0.0008503401360544217, 0.0],
                &[0.5729402872260014, 0.3356009070294784, 0.05442176870748299, 0.0],
                &[0.5194515306122449, 0.3874362244897959, 0.07748724489795918, 0.0],
                &[0.1377551020408163, 0.4477040816326531, 0.3989158163265306, 0.015625],
                &[0.03363161670918367, 0.2505555444834183, 0.5658799774792729, 0.149932861328125],
                &[0.0, 0.0, 0.0, 1.0],
                &[-0.005102040816326529, 0.1262755102040816, -1.074298469387755, 1.953125],
            ],
        ),
    ];
    for (spline, expected) in reference {
        for (row, expected) in rows(&format!("y ~ {spline}")).iter().zip(expected) {
            close(row, expected);
        }
    }
}

#[test]
fn levels_and_names_are_r_s() {
    for (term, names, sums) in [
        ("relevel(g, ref = \"b\")", &["a", "c"][..], &[1.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0]),
        (
            "cut(x, breaks = c(0, 4, 7, 10))",
            &["(4,7]", "(7,10]"],
            &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0],
        ),
        (
            "cut(x, breaks = c(-Inf, 4, Inf), right = FALSE)",
            &["[4, Inf)"],
            &[1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
        ),
        (
            "cut(x, breaks = c(1, 4, 10), include.lowest = TRUE)",
            &["(4,10]"],
            &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0],
        ),
        (
            "cut(x, breaks = c(0, 4, 10), labels = c(\"lo\", \"hi\"))",
            &["hi"],
            &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0],
        ),
    ] {
        let formula = format!("y ~ {term}");
        let made = recipe(&formula, None, &splits()[1]).unwrap();
        let expected: Vec<String> = names.iter().map(|level| format!("{term}{level}")).collect();
        assert_eq!(made.names()[1..], expected);
        let found: Vec<f64> =
            rows(&formula).iter().map(|row| 1.0 + row.iter().sum::<f64>()).collect();
        close(&found, sums);
    }
    let found: Vec<f64> = rows("y ~ log1p(x)").into_iter().flatten().collect();
    close(&found, &X.map(f64::ln_1p));
    let names = |term: &str| recipe(&format!("y ~ {term}"), None, &splits()[2]).unwrap();
    assert_eq!(
        names("ns(x, df = 3)").names()[1..],
        ["ns(x, df = 3)1", "ns(x, df = 3)2", "ns(x, df = 3)3"]
    );
    // Numbers have levels too, and so has what is true or false.
    assert_eq!(
        names("relevel(factor(n), ref = 2)").names()[1..],
        ["relevel(n, ref = \"2\")1", "relevel(n, ref = \"2\")3"]
    );
    assert_eq!(
        names("relevel(late, ref = \"TRUE\")").names()[1..],
        ["relevel(late, ref = \"TRUE\")FALSE"]
    );
}

/// However arguments are given, it is the same term, and its text is read as itself.
#[test]
fn arguments_have_names() {
    for (written, spelled) in [
        ("poly(x, degree = 2)", "poly(x, 2)"),
        ("poly(degree = 2, x)", "poly(x, 2)"),
        ("log(x, base = 10)", "log10(x)"),
        ("log(x, 2)", "log2(x)"),
        ("bs(x, 5)", "bs(x, df = 5)"),
        ("bs(x, knots = c(4, 6), df = 5)", "bs(x, knots = c(4, 6))"),
        ("ns(df = 3, x = x)", "ns(x, df = 3)"),
        ("ns(x, Bound = c(0, 12), knots = 5)", "ns(x, knots = 5, Boundary.knots = c(0, 12))"),
        ("cut(x, c(0, 4, 10), right = FALSE)", "cut(x, breaks = c(0, 4, 10), right = FALSE)"),
        ("cut(x, c(-Inf, -0.5, Inf))", "cut(x, breaks = c(-Inf, -0.5, Inf))"),
        ("relevel(ref = 'b', g)", "relevel(g, ref = \"b\")"),
    ] {
        let parse = |text: &str| consilience::data::Formula::parse(&format!("y ~ {text}")).unwrap();
        assert_eq!(parse(written).to_string(), format!("y ~ {spelled}"));
        assert_eq!(parse(written), parse(spelled));
    }
}

#[test]
fn what_the_data_do_not_bear_is_said() {
    let one = vec![whole()];
    for (formula, expected) in [
        (
            "y ~ cut(x, breaks = c(0, 4, 9))",
            "line 9, column `cut(x, breaks = c(0, 4, 9))`: x is 10 and lies in none",
        ),
        ("y ~ relevel(g, ref = \"d\")", "g has no level \"d\""),
        (
            "y ~ ns(x, knots = 12)",
            "has a knot at 12 that is not between the least and the greatest value, 1 and 10",
        ),
        ("y ~ bs(n, df = 8)", "so many equal values that knots at its quantiles coincide"),
        ("y ~ ns(I(x - x), df = 1)", "I(x - x) is the same in all rows"),
        ("y ~ bs(g, df = 5)", "a number is needed here"),
        ("y ~ log1p(I(x - 3))", "log1p() needs numbers above -1"),
    ] {
        let message = error(formula, None, &one);
        assert!(message.contains(expected), "{formula}: {message}");
    }
}
