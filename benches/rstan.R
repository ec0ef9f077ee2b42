# One shard by rstan + bridgesampling beside nuts+warp3, in one go: CPU seconds, effective draws, log
# evidence, and the ratio of CPU times.
#
#     Rscript benches/rstan.R
#
# Run from the repository's top folder. Needs R with rstan and bridgesampling (Debian: r-cran-rstan,
# r-cran-bridgesampling). Both sides draw 10,000 after 2,000 of warm-up in one chain; compilation of
# the Stan programs is not counted. The subposterior carries the prior to the power 1/S, as ours does.
suppressMessages({library(rstan); library(bridgesampling)})
# Debian's StanHeaders look for the system's boost.
if (file.exists("/usr/include/boost")) rstan_options(boost_lib = "/usr/include")

# Each model twice: with the likelihood written out, as most Stan programs have it, and with Stan's
# fused functions for generalised linear models.
logistic <- "
data { int n; int p; matrix[n, p] x; int y[n]; real w; }
parameters { vector[p] beta; }
model {
  target += LIKELIHOOD;
  target += w * normal_lpdf(beta | 0, 1);
}"
gaussian <- "
data { int n; int p; matrix[n, p] x; vector[n] y; real w; }
parameters { vector[p] beta; real u; }
model {
  target += LIKELIHOOD;
  target += w * (normal_lpdf(beta | 0, 1) + normal_lpdf(u | 0, 1));
}"

likelihoods <- list(
  flights = c(plain = "bernoulli_logit_lpmf(y | x * beta)", fused = "bernoulli_logit_glm_lpmf(y | x, 0, beta)"),
  gauss = c(plain = "normal_lpdf(y | x * beta, exp(u))", fused = "normal_id_glm_lpdf(y | x, 0, beta, exp(u))"))

folder <- tempfile("shards"); dir.create(folder)
cpu <- function(time) sum(time[c("user.self", "sys.self")])
status <- system2("cargo", c("bench", "--quiet", "--workspace", "--bench", "samplers", "--", "--shards", folder))
stopifnot(status == 0)
ours <- read.csv(file.path(folder, "ours.csv"))

for (i in seq_len(nrow(ours))) {
  case <- ours$case[i]
  table <- read.csv(file.path(folder, paste0(case, ".csv")), check.names = FALSE)
  x <- as.matrix(table[, -1]); y <- table[, 1]
  program <- if (case == "flights") logistic else gaussian
  data <- list(n = nrow(x), p = ncol(x), x = x, y = y, w = 1 / ours$shards[i])
  cat(sprintf("%s, 1 of %d shards (%d rows, %d parameters)\n", case, ours$shards[i], nrow(x), ours$parameters[i]))
  cat(sprintf("  nuts+warp3                    %8.2f CPU-s, ESS %6.0f, log Z %.3f +- %.4f\n", ours$seconds[i], ours$ess[i], ours$log_z[i], ours$se[i]))
  for (form in c("fused", "plain")) {
    code <- sub("LIKELIHOOD", likelihoods[[case]][[form]], program, fixed = TRUE)
    model <- stan_model(model_code = code)
    time <- system.time(fit <- sampling(model, data, chains = 1, iter = 12000, warmup = 2000, seed = 1, refresh = 0))
    bridge_time <- system.time(z <- bridge_sampler(fit, method = "warp3", silent = TRUE))
    total <- cpu(time) + cpu(bridge_time)
    ess <- min(summary(fit)$summary[, "n_eff"])
    cat(sprintf("  rstan + bridgesampling, %s %8.2f CPU-s, ESS %6.0f, log Z %.3f: %.1f times the CPU, %.1f times per effective draw\n",
                form, total, ess, z$logml, total / ours$seconds[i], (total / ess) / (ours$seconds[i] / ours$ess[i])))
  }
}
