//! Numbers: evidences, posteriors and their error bars against closed forms, quadrature, exact values and laws.
//! One program for all of them: it links once, and its tests share the cores.

mod alleles;
mod arviz;
mod chains;
#[path = "../common/mod.rs"]
mod common;
mod comparison;
mod conjugate;
mod derivatives;
mod effects;
mod effects_limits;
mod exactness;
mod families;
mod family_inputs;
mod family_words;
mod few;
mod g_priors;
mod g_priors_glm;
mod gaussian_exact;
mod gibbs;
mod hard;
mod higgs;
mod jump;
mod kernels;
#[path = "../common/conjugate.rs"]
mod known_sd;
mod laplace_metropolis;
mod laws;
mod methods;
mod multinomial;
mod never_wrong;
mod normals;
mod nuts;
mod own_model;
mod own_parameters;
mod paper_data;
mod posterior;
mod quadrature;
mod schemes;
mod shards_left_out;
mod space;
mod sums;
mod truth;
mod units;
mod views;
