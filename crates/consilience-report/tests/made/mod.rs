//! Documents of any size, as the program writes them, with numbers that look like real ones.

#![allow(dead_code, reason = "every test uses some of them")]

use serde_json::{Value, json};

/// Numbers that are the same in every run.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Between 0 and 1.
    pub fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

/// What a comparison holds beside the least.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// Evidences of single shards.
    pub parts: bool,
    pub prior_scale: bool,
    pub leave_one_out: bool,
    pub warnings: bool,
}

pub const ALL: Wishes =
    Wishes { parts: true, prior_scale: true, leave_one_out: true, warnings: true };

fn estimate(value: f64, se: f64) -> Value {
    json!({"value": value, "se": se})
}

fn warning(code: &str, level: &str, shard: Option<usize>) -> Value {
    json!({"code": code, "level": level, "shard": shard, "value": 3.0,
        "message": "the subposteriors are not normal: that may move the log evidence by 17.2 nats (at most 1)",
        "advice": "use combine = \"exact\", or fewer shards"})
}

/// A comparison of so many models on so many shards.
pub fn compare(models: usize, shards: usize, wishes: Wishes) -> Value {
    let mut n = Numbers::new(models as u64 * 1000 + shards as u64);
    let logs: Vec<f64> = (0..models).map(|i| -147111.98 - 1.7 * i as f64 - n.share()).collect();
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
    let name = |i: usize| {
        match i {
        0 => "dose and age".to_string(),
        1 => "a slope per carrier, with a rather long name for a model that people still want to read".to_string(),
        _ => format!("model {i}: x{i} + z"),
    }
    };
    let strength = |factor: f64| match 2.0 * factor {
        ..2.0 => "not worth more than a bare mention",
        ..6.0 => "positive",
        ..10.0 => "strong",
        _ => "very strong",
    };
    let mut list = Vec::new();
    for (i, &log) in logs.iter().enumerate() {
        let p = (log - most).exp() / total;
        let shard = |s: usize, n: &mut Numbers| {
            json!({"index": s, "rows": 6547.0 + s as f64, "share": 1.0 / shards as f64,
                "log_evidence": if wishes.parts { estimate(log / shards as f64 + 0.3 * n.normal(), 0.05) } else { Value::Null },
                "method": null, "draws": 1000, "ess": 900.0 + 50.0 * n.share(), "k_hat": 0.2 + 0.2 * n.share(),
                "chains": if wishes.parts { json!({"r_hat": 1.001 + 0.01 * n.share(), "divergences": 0}) } else { Value::Null },
                "agreement": if shards > 1 { json!({"chi_square": (17.0 + 6.0 * n.normal()).max(0.0) + if s == 7 { 50.0 } else { 0.0 },
                    "degrees_of_freedom": 17.0, "p_value": if s.is_multiple_of(5) { Value::Null } else { json!(n.share()) }, "parameters": []}) } else { Value::Null }})
        };
        let shard_list: Vec<Value> = (0..shards).map(|s| shard(s, &mut n)).collect();
        let parameter = |k: usize, n: &mut Numbers| {
            let (mean, sd) = (n.normal(), 0.1 + 0.2 * n.share());
            json!({"name": if k == 0 { "(Intercept)".into() } else { format!("carrier{k}:dep_delay") }, "mean": mean, "sd": sd,
                "low": mean - 1.96 * sd, "median": mean, "high": mean + 1.96 * sd, "prior": "normal(0, 1)"})
        };
        let parameters: Vec<Value> = (0..3 + i % 6).map(|k| parameter(k, &mut n)).collect();
        let mut warnings = Vec::new();
        if wishes.warnings {
            warnings.extend((0..shards.min(30)).map(|s| warning("level-missing", "note", Some(s))));
            if i == 1 {
                warnings.push(warning("not-normal", "unreliable", None));
            }
        }
        list.push(json!({
            "name": name(i), "formula": "late ~ 0 + dep_delay + carrier", "family": "logistic",
            "log_evidence": estimate(log, 0.05), "log_bayes_factor": estimate(log - most, if log == most { 0.0 } else { 0.07 }),
            "strength": if log == most { Value::Null } else { json!(strength(most - log)) },
            "probability": p, "probability_interval": [(p - 0.03f64).max(0.0), (p + 0.03).min(1.0)], "prior_probability": 1.0 / models as f64,
            "parts": {"shards": if wishes.parts { estimate(log - 110.0, 0.02) } else { Value::Null },
                "overlap": if wishes.parts { estimate(110.0, 0.8) } else { Value::Null }, "log_alpha": 2428.0 + 40.0 * i as f64,
                "subevidences": null, "overlap_share": null, "correction": null, "shape_error": null, "bounds": null},
            "parameters": parameters,
            "combination": {"method": "importance", "newton_rounds": 8, "weigh_rounds": 2, "peaks": [], "draws": 1000,
                "ess": 976.8, "k_hat": 0.2 + 0.1 * (i % 7) as f64, "chains": null},
            "warnings": warnings, "shards": shard_list}));
    }
    let best = logs.iter().position(|l| *l == most).unwrap();
    let factors: Vec<Vec<Value>> =
        logs.iter().map(|a| logs.iter().map(|b| estimate(a - b, 0.07)).collect()).collect();
    let averaged = ["(Intercept)", "carrier1:dep_delay"].map(|name| {
        json!({"name": name, "inclusion_probability": 0.9, "mean": 0.1, "sd": 0.2, "included_mean": 0.2, "included_sd": 0.3})
    });
    let scaled = |scale: f64| {
        let of: Vec<Value> = (0..models)
            .map(|i| json!({"name": name(i), "log_evidence": estimate(logs[i] - scale.ln() * i as f64, 0.05),
                "log_bayes_factor": estimate(0.0, 0.1), "probability": 1.0 / models as f64, "warnings": []}))
            .collect();
        json!({"scale": scale, "best": name(best), "reordered": scale > 2.0, "models": of})
    };
    let without = |s: usize, n: &mut Numbers| {
        let of: Vec<Value> = (0..models)
            .map(|i| json!({"name": name(i), "log_evidence": estimate(logs[i], 0.1), "log_predictive": estimate(-3.0, 0.1),
                "pull": estimate(0.5 * n.normal() - 0.3, 0.05), "probability": 1.0 / models as f64, "ess": 500.0, "k_hat": 0.1, "reliable": s != 3}))
            .collect();
        json!({"shard": s, "rows": 6547.0, "best": name(if s == 2 { models - 1 } else { best }), "models": of})
    };
    let all_without: Vec<Value> = (0..shards).map(|s| without(s, &mut n)).collect();
    json!({
        "version": 1, "models": list, "best": {"name": name(best), "certainty": 0.987},
        "bayes_factors": if models <= 100 { json!(factors) } else { Value::Null },
        "averages": {"reason": null, "parameters": averaged},
        "prior_sensitivity": if wishes.prior_scale { json!([0.5, 1.0, 2.0, 5.0].map(scaled)) } else { Value::Null },
        "leave_one_out": if wishes.leave_one_out && shards > 1 { json!(all_without) } else { Value::Null },
        "warnings": if wishes.warnings { json!([warning("too-close", "caution", None)]) } else { json!([]) },
        "partition": {"shards": shards, "rows": 327346, "dropped": 12, "by": "random", "seed": 1, "hash": "feba954939f89722"},
        "rounds": 13, "bytes_moved": 34837207, "traffic": {"rounds": 13, "bytes_sent": 28853950, "bytes_received": 5983257},
        "seconds": 0.347
    })
}

/// A choice among all subsets of so many terms.
pub fn select(terms: usize, listed: usize) -> Value {
    let mut n = Numbers::new(terms as u64);
    let names: Vec<String> = (0..terms)
        .map(|i| {
            if i == 2 { "poly(age, 3):treatment with a long name".into() } else { format!("x{i}") }
        })
        .collect();
    let inclusion: Vec<Value> = names
        .iter()
        .map(|t| json!({"term": t, "probability": n.share(), "se": 0.01 * n.share(), "prior": 0.5}))
        .collect();
    let models: Vec<Value> = (0..listed)
        .map(|i| {
            let of: Vec<&String> = names.iter().filter(|_| n.share() < 0.6).collect();
            json!({"terms": of, "probability": 0.2 / (1 + i) as f64, "se": 0.001, "log_evidence": -105.6 - i as f64, "log_evidence_se": 0.007})
        })
        .collect();
    let coefficients: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let (mean, sd) = (n.normal() * 10f64.powi(i as i32 % 4), 0.2 * 10f64.powi(i as i32 % 4));
            json!({"name": t, "term": t, "inclusion": 0.5, "mean": mean / 2.0, "sd": sd, "mean_if_in": mean, "sd_if_in": sd / 2.0})
        })
        .collect();
    let sizes: Vec<Value> =
        (0..=terms).map(|_| estimate(1.0 / (terms + 1) as f64, 0.002)).collect();
    json!({
        "version": 1, "method": "search", "family": "logistic", "outcome": "type", "always": "1", "space": 2f64.powi(terms as i32),
        "prior": "beta-binomial(1, 1)", "heredity": "strong", "inclusion": inclusion, "models": models,
        "outside": estimate(0.43, 0.001), "unseen": estimate(0.001, 0.0), "log_normaliser": estimate(-105.8, 0.002), "sizes": sizes,
        "median_model": names[..terms.min(3)], "best_model": names[..terms.min(4)], "coefficients": coefficients,
        "named": [{"terms": names[..1], "log_evidence": estimate(-107.0, 0.01), "log_bayes_factor": estimate(0.0, 0.0), "probability": 0.01}],
        "diagnostics": {"models": 128.0, "pairs": 8023, "ess": 7178.0, "k_hat": 0.2, "recentred": 1, "centres": 4, "nodes": null},
        "warnings": [warning("se-target", "caution", None)],
        "partition": {"shards": 4, "rows": 200, "dropped": 0, "by": "random", "seed": 1, "hash": "2ecd84f29b847d9c"},
        "traffic": {"rounds": 12, "bytes_sent": 4132000, "bytes_received": 572000}, "seconds": 0.1
    })
}

/// A sweep over these numbers of shards.
pub fn sweep(models: usize, by: &[&str], shards: &[u64], repeats: u64) -> Value {
    let mut n = Numbers::new(models as u64 + repeats);
    let names: Vec<String> = (0..models).map(|i| format!("m{}", i + 1)).collect();
    let truth = |m: usize| -5000.0 - 4.0 * m as f64;
    let combinations = ["normal", "normal-uncorrected", "cmc-is", "exact"];
    let size = |method: usize| [0.02, 1.5, 0.1, 0.004][method];
    let error = |method: usize, s: u64, n: &mut Numbers| {
        size(method) * (s as f64).powf(0.8) * (1.0 + 0.3 * n.normal())
    };
    let mut cells = Vec::new();
    let mut groups = Vec::new();
    let mut times = Vec::new();
    let mut lines = Vec::new();
    for b in by {
        for &s in shards {
            for repeat in 1..=repeats {
                let of: Vec<Value> = combinations
                    .iter()
                    .enumerate()
                    .map(|(k, method)| {
                        if *method == "cmc-is" && s > 100 {
                            return json!({"method": method, "error": "too many shards", "chooses": null, "models": []});
                        }
                        let each: Vec<Value> = (0..models)
                            .map(|m| json!({"log_evidence": estimate(truth(m) + error(k, s, &mut n), 0.05), "shards": null, "overlap": null,
                                "overlap_share": -0.001, "correction": null, "shape_error": null, "log_a": null, "log_b": null, "unreliable": s > 500}))
                            .collect();
                        json!({"method": method, "error": null, "chooses": 0, "models": each})
                    })
                    .collect();
                cells.push(json!({"by": b, "shards": s, "repeat": repeat, "split_seed": repeat, "seed": 1, "partition": "5f8d0c", "rows": 10000,
                    "combinations": of, "votes": []}));
                times.push(json!({"by": b, "shards": s, "repeat": repeat, "slowest_shard": 3.0 / s as f64, "all_shards": 3.0 + 0.1 * s as f64, "models": null}));
            }
            for (k, method) in
                combinations.iter().chain(&["majority vote", "Borda count"]).enumerate()
            {
                let vote = k >= combinations.len();
                let wrong = if vote { (repeats as f64 * n.share()) as u64 } else { 0 };
                let each: Vec<Value> = (0..models)
                    .map(|m| {
                        let e = if vote { 0.0 } else { error(k, s, &mut n) };
                        let some = |v: f64| if vote { Value::Null } else { json!(v) };
                        json!({"mean": truth(m) + e, "sd": some(0.3), "bias": some(e), "rmse": some(e.abs()), "rmse_percent": some(e.abs() / 50.0),
                            "bias2_over_variance": some(2.0), "epsilon1": if k < 2 { json!(e) } else { Value::Null },
                            "epsilon2": if k < 2 { json!(-0.4 * e) } else { Value::Null }, "overlap": if k < 2 { json!(-3.0 * s as f64) } else { Value::Null },
                            "overlap_share": some(0.0004 * s as f64), "correction": null, "log_a": null, "log_b": null,
                            "log_bayes_factor": if m == 0 || vote { Value::Null } else { json!({"mean": 4.0 * m as f64 + 0.1 * e, "sd": 0.4, "bias": 0.1, "rmse": 0.2, "rmse_percent": 1.0}) }})
                    })
                    .collect();
                let mut chosen = vec![0; models];
                chosen[0] = repeats - wrong;
                chosen[models - 1] += wrong;
                groups.push(json!({"by": b, "shards": s, "method": method, "score": if vote { "share of shards" } else { "log evidence" },
                    "counted": repeats, "failed": 0, "unreliable": 0, "chosen": chosen, "models": each}));
            }
        }
        for m in 0..models {
            for what in ["epsilon1", "epsilon2"] {
                lines.push(json!({"by": b, "method": "normal", "model": m, "what": what, "intercept": 0.01, "slope": 0.02}));
            }
        }
    }
    let reference: Vec<Value> = (0..models).map(|m| estimate(truth(m), 0.01)).collect();
    json!({
        "version": 1, "kind": "sweep", "models": names, "reference": {"method": "exact", "log_evidence": reference},
        "shards": shards, "repeats": repeats, "by": by, "combinations": combinations, "cells": cells, "groups": groups, "lines": lines,
        "advice": [{"by": by[0], "method": "normal", "within_tenth_nat": 10, "same_choice": 50,
            "text": "With normal, up to 10 shards keep the log evidence within a tenth of a nat; the choice is the same up to 50."},
            {"by": by[0], "method": "majority vote", "within_tenth_nat": null, "same_choice": null, "text": "Votes choose another model from 10 shards on."}],
        "warnings": [], "times": times
    })
}
