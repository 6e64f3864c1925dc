"""Optuna's samplers and pruners under the names of a sweep file."""

from __future__ import annotations

import optuna
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from agentrecipes.sweeps.curve import points
from agentrecipes.sweeps.load import Sweep


def sampler(sweep: Sweep, seed: int, *, workers: int = 1) -> BaseSampler:
    """The sampler of one trial; `seed` is the trial's own.

    A sampler that lived through a whole study would, after a resume, draw again what it drew first;
    so each trial has a new one, which reads all that the trials before it left in the storage.
    """
    fields = sweep.fields.sampler
    if fields.name == "tpe":
        return optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=fields.startup,
            multivariate=True,
            group=True,
            constant_liar=workers > 1,
        )
    if fields.name == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=fields.population)
    random = optuna.samplers.RandomSampler(seed=seed)
    if fields.name == "qmc":  # one sequence for the study: its seed is the study's
        return optuna.samplers.QMCSampler(
            scramble=True, seed=fields.seed, independent_sampler=random
        )
    return random  # a grid's points wait in the storage already


def pruner(sweep: Sweep) -> BasePruner:
    """The pruner of the study."""
    fields = sweep.fields.pruner
    if fields.name == "median":
        return optuna.pruners.MedianPruner(fields.startup, fields.warmup)
    if fields.name == "hyperband":
        most = points(sweep)
        return optuna.pruners.HyperbandPruner(
            min_resource=1, max_resource=most, reduction_factor=fields.reduction
        )
    if fields.name == "wilcoxon":
        return optuna.pruners.WilcoxonPruner(p_threshold=fields.p)
    return optuna.pruners.NopPruner()
