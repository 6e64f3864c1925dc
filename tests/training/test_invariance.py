"""The gradient is that of the optimizer step, however the step is cut, ordered and packed.

Every algorithm, through the module that trains: the gradient by every weight equals that of one
plain forward pass a row, to 1e-6 in float32.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from makers import llama, trajectory, turn

from agentrecipes.algorithms.protocol import Outputs
from agentrecipes.components import names
from agentrecipes.models.value_head import value_head
from agentrecipes.recipe.schema import Trainer
from agentrecipes.records import Batch, Scored
from agentrecipes.training import fit
from agentrecipes.training.batch import collected_batch, computed, cut, filler, read_batch, take
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.rows import Row, trajectory_rows
from agentrecipes.training.update import Update
from algorithms.test_suite import PENALTY, TERMS, with_fields
from tolerances import FLOAT32

GRADIENT = {"rtol": 0.0, "atol": FLOAT32["atol"]}  # 1e-6, whatever the gradient's size
SIZES = (3, 2)  # attempts in each group


@cache
def module() -> PolicyModule:
    """A tiny random Llama with a value head, attached to a trainer of one process."""
    model = llama()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    head = value_head(model.config)  # it begins at 0, where no gradient passes it
    torch.nn.init.normal_(head.weight, std=0.2)
    made = PolicyModule(model, head)
    nothing = fit.EpochEnd(after_step=bool, after_epoch=bool)
    made.trainer = fit.trainer(Trainer(accelerator="cpu"), epochs=1, accumulate=1, callback=nothing)
    return made


@dataclass(frozen=True)
class Step:
    """What one optimizer step is made of: rows, and the batch before its advantages."""

    rows: list[Row]
    batch: Batch

    def prepared(self, algorithm) -> Batch:
        """The batch with advantages and value targets."""
        if algorithm.needs.demonstrations:
            return self.batch
        ready = replace(self.batch, advantage=algorithm.advantages(self.batch))
        return replace(ready, value_target=algorithm.value_targets(ready))


def some_step(seed: int) -> Step:
    """Two groups of trajectories of one to three turns; about every third turn forks."""
    rng = random.Random(seed)
    scored = []
    for group, size in enumerate(SIZES):
        for attempt in range(size):
            turns, seen = [], ids(rng, 2, 5)
            for _ in range(rng.randint(1, 3)):
                made = turn(seen, ids(rng, 1, 5), ids(rng, 0, 4))
                turns.append(made)
                forks = rng.random() < 0.3
                seen = ids(rng, 2, 5) if forks else [*made.prompt, *made.action, *made.observation]
            one = trajectory(*turns, group=str(group), attempt=attempt)
            rewards = tuple(rng.uniform(-1, 1) for _ in turns)
            scored.append(Scored(one, {}, sum(rewards), rewards))
    rows = trajectory_rows([each.trajectory for each in scored])
    batch = collected_batch(rows, scored, kl_coefficient=0.05)
    return Step(rows, moved(batch, rows, seed))


def ids(rng: random.Random, low: int, high: int) -> list[int]:
    return [rng.randrange(50) for _ in range(rng.randint(low, high))]


def moved(batch: Batch, rows: list[Row], seed: int) -> Batch:
    """The batch of a policy that has moved since: ratios from about 0.6 to 1.6."""
    with torch.no_grad():
        logp = module()(cut(rows, batch, range(len(rows))).strip).logp
    noise = torch.Generator().manual_seed(seed)

    def near(x: torch.Tensor, scale: float) -> torch.Tensor:
        apart = x + scale * torch.randn(x.shape, generator=noise)
        return torch.where(batch.action_mask, apart, 0.0)

    old = near(logp, 0.25)
    return replace(
        batch,
        logp_old=old,
        logp_rollout=near(old, 0.1),
        logp_ref=near(logp, 0.2),
        values_old=near(torch.zeros_like(logp), 0.5),
    )


def read_step(seed: int, observation_weight: float) -> Step:
    """The same rows as demonstrations: what is no action weighs `observation_weight`."""
    rows = [
        replace(row, weight=np.where(row.action_mask, 1.0, observation_weight).astype(np.float32))
        for row in some_step(seed).rows
    ]
    return Step(rows, read_batch(rows))


def gradients() -> dict[str, torch.Tensor]:
    """Those of every weight, which are forgotten."""
    found = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in named()}
    module().zero_grad(set_to_none=True)
    return found


def named():
    return list(module().named_parameters())


def plain(algorithm, step: Step) -> dict[str, torch.Tensor]:
    """Without packing: every row alone through the model, padded to (B, T), one loss."""
    batch = step.prepared(algorithm)
    longest = batch.action_mask.shape[1]
    logp, value, entropy = [], [], []
    for row in step.rows:
        tokens = torch.from_numpy(row.ids)
        states = module().model.get_decoder()(input_ids=tokens[None]).last_hidden_state[0]
        scores = module().model.lm_head(states).log_softmax(-1)  # (T, V)
        room = (1, longest - len(row))
        pad = torch.nn.functional.pad
        picked = scores[:-1].gather(1, tokens[1:, None])[:, 0]
        logp.append(pad(picked, room))
        below = states.detach() if algorithm.needs.detached_value else states
        value.append(pad(module().value_head(below)[:-1, 0], room))
        entropy.append(pad(-(scores.exp() * scores).sum(-1)[:-1], room))
    outputs = Outputs(*(torch.stack(each) for each in (logp, value, entropy)))
    algorithm.loss(outputs, batch).total.backward()
    return gradients()


def trained(algorithm, step: Step, parts: list[list[int]]) -> dict[str, torch.Tensor]:
    """Through the module: a micro-batch for each of `parts`, and a filler."""
    batch, own = step.prepared(algorithm), module()
    accumulate = len(parts) + 1
    own.update = Update(algorithm, 1.0, accumulate, lambda _: 1.0)
    micros = [cut(step.rows, batch, numbers) for numbers in parts]
    for number, micro in enumerate([*micros, filler(0)]):
        (own.training_step(micro, number) / accumulate).backward()
    return gradients()


def spoilt(step: Step) -> Step:
    """The step with NaN wherever the action mask is off."""
    batch = step.batch
    tokens = ("logp_old", "logp_rollout", "logp_ref", "values_old")
    wild = {n: torch.where(batch.action_mask, getattr(batch, n), torch.nan) for n in tokens}
    return replace(step, batch=replace(batch, **wild))


def longer(step: Step, rng: random.Random) -> Step:
    """The step with other tokens behind the last one that is scored."""

    def tail(row: Row) -> Row:
        end = int(np.flatnonzero(row.weight)[-1]) + 1
        other = np.array([rng.randrange(50) for _ in row.ids[end:]], dtype=np.int64)
        return replace(row, ids=np.concatenate([row.ids[:end], other]))

    return replace(step, rows=[tail(row) for row in step.rows])


def shuffled(step: Step, rng: random.Random) -> Step:
    """Trajectories in another order; the rows of one stay in theirs."""
    order = trajectories(step)
    rng.shuffle(order)
    flat = [n for own in order for n in own]
    batch = take(step.batch, flat, step.batch.action_mask.shape[1])
    return Step([step.rows[n] for n in flat], batch)


def trajectories(step: Step) -> list[list[int]]:
    """Row numbers of each trajectory."""
    members: dict[int, list[int]] = {}
    for number, whose in enumerate(step.batch.trajectory.tolist()):
        members.setdefault(whose, []).append(number)
    return list(members.values())


def groups(step: Step) -> list[list[int]]:
    """Row numbers of each group."""
    members: dict[int, list[int]] = {}
    for number, whose in enumerate(step.batch.trajectory.tolist()):
        members.setdefault(int(step.batch.group[whose]), []).append(number)
    return list(members.values())


def split(
    step: Step, rng: random.Random, numbers: set[int], *, whole_groups: bool
) -> list[list[int]]:
    """Those of `numbers` in up to four micro-batches, whole trajectories or groups in each."""
    parts: list[list[int]] = [[] for _ in range(4)]
    for own in groups(step) if whole_groups else trajectories(step):
        parts[rng.randrange(4)] += [n for n in own if n in numbers]
    return [part for part in parts if part]


# dr_grpo's constant and gspo's clips would leave too little gradient to compare.
WIDE = {"max_tokens": 16, "clip_low": 0.2, "clip_high": 0.28}
VARIANTS = {
    "plain": WIDE,
    "terms": {**TERMS, **WIDE, "observation_weight": 0.5},
    "penalty": {**PENALTY, **WIDE},
}
CASES = [(name, variant) for name in names("algorithm") for variant in VARIANTS]


@pytest.mark.parametrize(("name", "variant"), CASES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, phases=[Phase.generate])  # no seed is simpler
def test_the_gradient_does_not_depend_on_how_a_step_is_cut(name, variant, seed):
    algorithm, rng = with_fields(name, VARIANTS[variant]), random.Random(seed)
    if algorithm.needs.demonstrations:
        step = read_step(seed, algorithm.observation_weight)
        changed = longer(shuffled(step, rng), rng)
        needed = set(range(len(step.rows)))
    else:
        step = some_step(seed)
        changed = longer(shuffled(spoilt(step), rng), rng)
        wanted = computed(changed.prepared(algorithm), every_row=algorithm.needs.every_row)
        needed = {n for n, each in enumerate(wanted) if each}
    expected = plain(algorithm, step)
    assume(max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-4)
    parts = split(changed, rng, needed, whole_groups=algorithm.needs.whole_groups)
    found = trained(algorithm, changed, parts)
    for key, gradient in expected.items():
        torch.testing.assert_close(
            found[key], gradient, **GRADIENT, msg=lambda m, k=key: f"{k} {m}"
        )
