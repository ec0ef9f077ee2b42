# One shard by rstan + bridgesampling beside nuts+warp3, in one go: CPU seconds, effective draws, log
# evidence, and the ratio of CPU times.
#
#     Rscript benches/rstan.R [FOLDER]
#
# With a folder it also leaves the shards and theirs.csv there, for benches/peers.
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

folder <- commandArgs(trailingOnly = TRUE)
if (length(folder) == 0) { folder <- tempfile("shards"); dir.create(folder) }
cpu <- function(time) sum(time[c("user.self", "sys.self")])
status <- system2("cargo", c("bench", "--quiet", "--workspace", "--bench", "samplers", "--", "--shards", folder))
stopifnot(status == 0)
ours <- read.csv(file.path(folder, "ours.csv"))

# The standard error of log Z by the formula of bridgesampling's error_measures (Fruehwirth-Schnatter
# 2004), which the package does not offer for warp3. q11 and q21 lack the constant that makes the
# warped posterior a density; at the estimate both means of the bridge are equal, which fixes it.
bridge_error <- function(z) {
  parts <- function(constant) {
    ratio <- function(p, g) 1 / (1 + exp(p + constant - g))   # g / (p + g), for equal numbers of draws
    list(f1 = 1 - ratio(z$q21, z$q22), f2 = ratio(z$q11, z$q12))
  }
  rough <- -median(z$q21 - z$q22)
  imbalance <- function(constant) { f <- parts(constant); log(mean(f$f1)) - log(mean(f$f2)) }
  f <- parts(uniroot(imbalance, rough + c(-5, 5), extendInt = "upX", tol = 1e-8)$root)
  chain <- coda::spectrum0.ar(f$f2)$spec / length(f$f2)       # the draws of a chain depend on each other
  sqrt(var(f$f1) / mean(f$f1)^2 / length(f$f1) + chain / mean(f$f2)^2)
}
theirs <- NULL

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
    se <- bridge_error(z)
    ess <- min(summary(fit)$summary[, "n_eff"])
    cat(sprintf("  rstan + bridgesampling, %s %8.2f CPU-s, ESS %6.0f, log Z %.3f +- %.4f: %.1f times the CPU, %.1f times per effective draw\n",
                form, total, ess, z$logml, se, total / ours$seconds[i], (total / ess) / (ours$seconds[i] / ours$ess[i])))
    theirs <- rbind(theirs, data.frame(case = case, form = form, seconds = total, log_z = z$logml, se = se))
  }
}
write.csv(theirs, file.path(folder, "theirs.csv"), row.names = FALSE)
