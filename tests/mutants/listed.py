"""Faults that the tests must find. Each is one edit of one file, and the reason why it matters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """In `file`, below src/agentrecipes, `old` occurs once; with `new` in its place it is wrong."""

    file: str
    old: str
    new: str
    reason: str


_FORMULAS = ("tests/numerics", "tests/algorithms/test_by_hand.py", "tests/algorithms")
TESTS = {  # the first folder or file that a mutant's path starts with: where it must die
    "numerics/": _FORMULAS,
    "algorithms/sft": ("tests/training/test_weighing.py", "tests/algorithms/test_by_loop.py"),
    "algorithms/": ("tests/algorithms/test_by_hand.py", "tests/algorithms"),
    "training/rows": ("tests/training/test_rows.py",),
    "training/pack": ("tests/training/test_tree.py", "tests/training/test_pack.py"),
    "training/attention": ("tests/training/test_tree.py", "tests/training/test_pack.py"),
    "training/spans": ("tests/training/test_attention.py", "tests/training/test_tree.py"),
    "training/blocks": ("tests/training/test_attention.py", "tests/training/test_tree.py"),
    "training/llama": ("tests/training/test_llama.py",),
    "training/scoring": ("tests/training/test_module.py", "tests/training/test_pack.py"),
    "training/tree": ("tests/training/test_tree.py",),
    "training/muon": ("tests/training/test_muon.py",),
    "training/critic": ("tests/training/test_critic.py",),
    "training/weighing": ("tests/training/test_weighing.py",),
    "training/batch": ("tests/training/test_batch.py", "tests/training/test_invariance.py"),
    "training/collecting": ("tests/training/test_collecting.py", "tests/training/test_stage.py"),
    "training/groups": ("tests/training/test_groups.py", "tests/training/test_collecting.py"),
    "training/position": ("tests/training/test_groups.py",),
    "rollout/episode": ("tests/rollout/test_taken_turns.py", "tests/rollout/test_episode.py"),
    "training/module": (
        "tests/training/test_module.py",
        "tests/training/test_collecting.py",
        "tests/training/test_pack.py",
        "tests/training/test_invariance.py",
    ),
    "rewards/length": ("tests/rewards/test_form_and_length.py",),
    "sampling/": ("tests/sampling",),
    "engines/draw": ("tests/engines/test_draw.py",),
    "curricula/": ("tests/curricula",),
    "schedules": ("tests/test_schedules.py",),
}


def finders(mutant: Mutant) -> tuple[str, ...]:
    """The tests that must find it, the quickest first."""
    return next(tests for start, tests in TESTS.items() if mutant.file.startswith(start))


def _in(file: str, *edits: tuple[str, str, str]) -> tuple[Mutant, ...]:
    return tuple(Mutant(file, old, new, reason) for old, new, reason in edits)


MUTANTS: tuple[Mutant, ...] = (
    *_in(
        "rewards/length.py",
        ("end // SHARE", "end // (SHARE + 1)", "the buffer is no fifth"),
        ("most if self.max is None else self.max", "most", "a bound that is written is not used"),
        ("(end - start), 1.0)", "(end - start), 2.0)", "the punishment goes below -1"),
    ),
    *_in(
        "numerics/preferences.py",
        (
            "own[returns[own].argmin()]",
            "own[returns[own].argmax()]",
            "the best is preferred to itself",
        ),
        ("& torch.isfinite(returns))", "& ~torch.isnan(returns))", "an infinite return is best"),
        ("side.sign() * masked", "side * masked", "the weight is in the margin too"),
        ("softplus(-margin)", "softplus(margin)", "the worst is preferred"),
    ),
    *_in(
        "training/weighing.py",
        ("(1.0 - self.balance, own", "(self.balance, own", "both parts have one share"),
        ("part / part.sum()", "part / len(part)", "a mean over the whole row"),
        ("part if alone else", "share * part if alone else", "without thoughts it weighs less"),
        ("action.rpartition(end)", "action.partition(end)", "a thought ends at the first end"),
        ("chat.encode(before + found)", "chat.encode(before)", "the end is no thought"),
    ),
    *_in(
        "algorithms/dpo.py",
        ("self.beta * margin", "margin", "beta has no effect"),
        ("outputs.logp - batch.logp_ref", "outputs.logp", "the reference has no effect"),
        ("batch.sequences / pairs", "1.0 / pairs", "a mean over trajectories"),
    ),
    *_in(
        "algorithms/rft.py",
        (">= self.at_least", "> self.at_least", "a bare success fails"),
        ("batch.action_tokens / kept.sum()", "1.0 / kept.sum()", "the mean is taken twice"),
        ("credit.finite(batch) & (", "(", "an infinite return is a success"),
    ),
    *_in(
        "numerics/masked.py",
        (
            "return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))",
            "return x * mask",
            "zero times NaN is NaN",
        ),
        (
            "variance = centred.square().sum() / (count - 1).clamp(min=1)",
            "variance = centred.square().sum() / count.clamp(min=1)",
            "whitening with the population's variance",
        ),
        (
            "mean = masked_sum(x, mask) / count.clamp(min=1)",
            "mean = masked_sum(x, mask) / mask.numel()",
            "the mean counts tokens off the mask",
        ),
        (
            "torch.rsqrt(variance + WHITEN_EPSILON)",
            "torch.rsqrt(variance)",
            "one token alone divides by zero",
        ),
        (
            "return together.to(rows.dtype) @ rows",
            "return rows",
            "the rows of a trajectory do not meet",
        ),
        ("tril(diagonal=-1)", "tril(diagonal=0)", "a row's own tokens come before it"),
        (
            "(before[:, None] + action_mask.cumsum(dim=1) - 1)[action_mask]",
            "(before[:, None] + action_mask.cumsum(dim=1))[action_mask]",
            "places start at one",
        ),
        (
            "return counts.cumsum(dim=1) - 1",
            "return counts - 1",
            "a turn's last token is counted from its own first",
        ),
    ),
    *_in(
        "numerics/advantages.py",
        (
            "sums.index_add(0, member, values) / counts",
            "sums.index_add(0, member, values) / len(values)",
            "a group's mean over the whole batch",
        ),
        (
            "variance = variance * size / (size - 1).clamp(min=1)",
            "variance = variance * 1.0",
            "the population's std for the sample's",
        ),
        ("return variance.sqrt()", "return variance", "variance for std"),
        ("(high > low)", "(high >= low)", "a degenerate group divides its rounding by epsilon"),
        (
            "(group_std(value, member, std=std) + epsilon)",
            "group_std(value, member, std=std)",
            "no epsilon",
        ),
        (
            "* size / (size - 1).clamp(min=1)\n    return _scatter",
            "* (size - 1) / size\n    return _scatter",
            "leave-one-out scaled the wrong way round",
        ),
        (
            "rewards + gamma * following - values",
            "rewards + gamma * values - following",
            "GAE swaps V_t and V_{t+1}",
        ),
        ("gamma * lam)", "gamma)", "GAE without lambda"),
        ("pad(values, (0, 1))[:, 1:]", "pad(values, (1, 0))[:, :-1]", "GAE looks one step back"),
        (
            "after = rewards[:, t] + gamma * after",
            "after = gamma * (rewards[:, t] + after)",
            "a reward is discounted before it is there",
        ),
        ("in reversed(range(", "in (range(", "returns run forwards in time"),
    ),
    *_in(
        "numerics/aggregation.py",
        (
            "return masked_sum(x, action_mask) / (action_tokens or 1.0)",
            "return masked_sum(x, action_mask) / action_mask.sum().clamp(min=1)",
            "a micro-batch divides by its own tokens",
        ),
        (
            "(sums / tokens.clamp(min=1)).sum() / (sequences or 1.0)",
            "(sums / tokens.clamp(min=1)).sum() / len(trajectory)",
            "a micro-batch divides by its own rows",
        ),
        (
            "tokens = trajectory_sum(action_mask.sum(dim=1).to(sums.dtype), trajectory)",
            "tokens = action_mask.sum(dim=1).to(sums.dtype)",
            "a trajectory that forked weighs twice",
        ),
        (
            "((sequences or 1.0) * max_tokens)",
            "(action_mask.sum().clamp(min=1) * max_tokens)",
            "Dr. GRPO divides by tokens",
        ),
        (
            "sums = masked(x, action_mask).sum(dim=1)",
            "sums = x.sum(dim=1)",
            "a sum without its mask",
        ),
    ),
    *_in(
        "numerics/divergences.py",
        ("(-d).expm1() + d ", "d.expm1() - d ", "k3 of the other direction"),
        ("0.5 * d.square()", "d.square()", "k2 without its half"),
        (
            "masked(logp - logp_ref, action_mask)",
            "masked(logp_ref - logp, action_mask)",
            "KL with its arguments swapped",
        ),
        (
            "min(max(measured / target - 1.0, -0.2), 0.2)",
            "measured / target - 1.0",
            "the coefficient jumps",
        ),
        ("(1.0 + error *", "(1.0 - error *", "the coefficient runs away from its target"),
    ),
    *_in(
        "numerics/ratios.py",
        (
            "masked(logp - logp_old, action_mask)",
            "masked(logp_old - logp, action_mask)",
            "the ratio upside down",
        ),
        (
            "masked(logp - logp_old, action_mask).clamp",
            "(logp - logp_old).clamp",
            "the ratio without its mask",
        ),
        (
            "action_mask).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)",
            "action_mask)",
            "a log-ratio without limits overflows",
        ),
        (
            "mean = total / count.clamp(min=1)",
            "mean = total",
            "GSPO's ratio as a product, not a geometric mean",
        ),
        ("clamp(max=cap)", "clamp(min=cap)", "importance weights truncated from below"),
        (
            "known = action_mask & torch.isfinite(log_ratios)",
            "known = action_mask",
            "a sampler's infinity becomes a weight",
        ),
        ("masked(log_ratios.detach(), known)", "masked(log_ratios, known)", "weights learn"),
        (
            "difference = total[:, None].expand_as(difference)",
            "difference = difference",
            "a sequence's weight by token",
        ),
        (
            "low = None if clip_low is None else 1.0 - clip_low\n"
            "    high = None if clip_high is None else 1.0 + clip_high",
            "low = None if clip_high is None else 1.0 - clip_high\n"
            "    high = None if clip_low is None else 1.0 + clip_low",
            "the clips swapped",
        ),
        (
            "surrogate = torch.minimum(",
            "surrogate = torch.maximum(",
            "the better of both, not the worse",
        ),
        (
            "torch.where(advantage < 0, floor, surrogate)",
            "floor",
            "dual clip of good tokens too",
        ),
        (
            "torch.maximum(surrogate, dual_clip * advantage)",
            "torch.minimum(surrogate, dual_clip * advantage)",
            "dual clip as a ceiling",
        ),
        (
            "return bounded * advantage < ratio * advantage",
            "return bounded * advantage <= ratio * advantage",
            "every token counts as clipped",
        ),
        (
            "torch.where(advantage > 0, positive",
            "torch.where(advantage < 0, positive",
            "tau's sign",
        ),
        ("* (4.0 / tau) *", "* 4.0 *", "the soft gate's slope is not one"),
    ),
    *_in(
        "algorithms/composition.py",
        (
            "aggregate(part, -objective * _importance(part, batch), batch)",
            "aggregate(part, objective * _importance(part, batch), batch)",
            "the objective is minimised",
        ),
        ("-objective * _importance(part, batch)", "-objective", "importance weights forgotten"),
        (
            "total = total + batch.kl_coefficient",
            "total = total - batch.kl_coefficient",
            "divergence is rewarded",
        ),
        ("total - part.entropy", "total + part.entropy", "entropy is punished"),
        ("return 0.5 * error", "return error", "the value loss twice"),
        (
            "torch.maximum(error, (near - target)",
            "torch.minimum(error, (near - target)",
            "the value clip takes the better error",
        ),
        (
            "loss.total + part.value_coefficient * value",
            "loss.total + value",
            "the value coefficient forgotten",
        ),
        (
            'every_row = reference or entropy or more.get("value", False)',
            "every_row = False",
            "rows with a KL term or a value are left out",
        ),
    ),
    *_in(
        "algorithms/credit.py",
        (
            "-penalty(batch, kl).sum(dim=1)",
            "penalty(batch, kl).sum(dim=1)",
            "the KL penalty is a bonus for groups",
        ),
        (
            "rewards = -at.pack(penalty(batch, kl))",
            "rewards = at.pack(penalty(batch, kl))",
            "the KL penalty is a bonus by token",
        ),
        ("accumulate=True", "accumulate=False", "two rewards on one token: one is lost"),
        (
            "tokens = whiten(tokens, trusted(batch))",
            "tokens = whiten(tokens, batch.action_mask)",
            "a trajectory without a return is whitened",
        ),
        (
            "return batch.action_mask & finite(batch)[batch.trajectory][:, None]",
            "return batch.action_mask",
            "a trajectory without a return is trusted",
        ),
        (
            "return batch.kl_coefficient * divergence",
            "return divergence",
            "the KL coefficient forgotten",
        ),
    ),
    *_in(
        "algorithms/turns.py",
        (
            "error.sum() / (batch.turns or 1.0)",
            "error.sum() / (batch.action_tokens or 1.0)",
            "values of turns averaged over tokens",
        ),
        (
            "steps.opening.unpack(by_step + values)",
            "steps.opening.unpack(by_step)",
            "the value predicts the advantage",
        ),
        (
            "turn_index >= before.cummax(dim=1).values",
            "turn_index > before.cummax(dim=1).values",
            "a turn after its neighbour has no opening",
        ),
        ("if part.whiten:", "if not part.whiten:", "whitening upside down"),
    ),
    *_in(
        "algorithms/gigpo.py",
        (
            "whole + self.step_weight * steps.spread(by_turn)",
            "whole + steps.spread(by_turn)",
            "omega forgotten",
        ),
        (
            "batch.group[:, None].expand_as(state)[taken], state[taken]",
            "state[taken], state[taken]",
            "states of two groups meet",
        ),
    ),
    *_in(
        "algorithms/turn_grpo.py",
        (
            "goes_on = (last[:, 0] > turn)",
            "goes_on = (last[:, 0] >= turn)",
            "an outcome is compared with turn rewards",
        ),
        (
            "advantages.discounted(relative, self.gamma)",
            "relative",
            "a turn gets nothing of later turns",
        ),
    ),
    *_in(
        "algorithms/ppo.py",
        (
            "(self._estimate(batch) + old)",
            "(self._estimate(batch))",
            "the value predicts the advantage",
        ),
        (
            "masked.whiten(advantage, credit.trusted(batch))",
            "masked.whiten(advantage, batch.action_mask)",
            "a trajectory without a return is whitened",
        ),
    ),
    *_in(
        "algorithms/cispo.py",
        (".exp().detach()", ".exp()", "CISPO's weight learns"),
    ),
    *_in(
        "algorithms/gspo.py",
        (
            "composition.surrogate_loss(self, sequence,",
            "composition.surrogate_loss(self, tokens,",
            "GSPO with a token's ratio",
        ),
    ),
    *_in(
        "algorithms/sapo.py",
        ("tau_positive=self.tau_positive", "tau_positive=self.tau_negative", "one tau for both"),
    ),
    *_in(
        "algorithms/reinforce_pp_baseline.py",
        (
            "masked.masked(masked.whiten(tokens, credit.trusted(batch)), signal)",
            "masked.whiten(tokens, credit.trusted(batch))",
            "a degenerate group gets minus the batch's mean",
        ),
    ),
    *_in(
        "algorithms/rloo.py",
        (
            "advantages.leave_one_out(returns, batch.group)",
            'advantages.group_advantages(returns, batch.group, std="none")',
            "the baseline holds the attempt itself",
        ),
    ),
    *_in(
        "algorithms/sft.py",
        (
            "batch.token_weight, batch.total_weight or 1.0",
            "batch.token_weight, float(batch.token_weight.sum()) or 1.0",
            "a micro-batch divides by its own weight",
        ),
        ("share / start, moved", "share, moved", "the balance's start counts twice"),
        ("(1.0 - share) / (1.0 - start)", "share / start", "both parts move together"),
        ("self.least + (self.most - self.least)", "self.most", "the balance has no lower bound"),
    ),
    *_in(
        "algorithms/dr_grpo.py",
        ('Std = "none"', 'Std = "sample"', "Dr. GRPO divides by the std"),
    ),
    *_in(
        "algorithms/dapo.py",
        ("ClipHigh = 0.28", "ClipHigh = 0.2", "DAPO without clip-higher"),
    ),
    *_in(
        "algorithms/grpo.py",
        ('Aggregation = "sequence_mean"', 'Aggregation = "token_mean"', "GRPO as DAPO averages"),
    ),
    *_in(
        "training/rows.py",
        (
            "[float(s == Source.POLICY) for s in self.sources]",
            "[float(s != Source.PROMPT) for s in self.sources]",
            "observations weigh like actions",
        ),
        (
            "turn.prompt[start:], turn.prompt_sources[start:]",
            "turn.prompt, turn.prompt_sources",
            "the history stands twice in the row",
        ),
        (
            "len(prompt) >= len(ids) and list(prompt[: len(ids)]) == list(ids)",
            "len(prompt) >= len(ids)",
            "a rewritten history goes on in the old row",
        ),
        (
            ", number, logp=turn.logp_rollout",
            ", number",
            "the sampler's log-probabilities are lost",
        ),
        (
            "turn.action, [Source.POLICY] * len(turn.action), number,",
            "turn.action, [Source.POLICY] * len(turn.action), number + 1,",
            "an action of the turn after",
        ),
        (
            "mask: np.ndarray = self.sources == Source.POLICY",
            "mask: np.ndarray = self.sources >= Source.POLICY",
            "observations in the mask",
        ),
    ),
    *_in(
        "training/pack.py",
        (
            "scored=torch.from_numpy(before[predicted])",
            "scored=torch.from_numpy(predicted)",
            "a token predicts itself",
        ),
        (
            "targets=torch.from_numpy(ids[predicted])",
            "targets=torch.from_numpy(ids[before[predicted]])",
            "shifted targets",
        ),
        (
            "depths = [node.start + np.arange(len(node.ids)) for",
            "depths = [np.arange(len(node.ids)) for",
            "positions start again in every node",
        ),
        (
            "before[places[1:]] = places[:-1]",
            "before[places[1:]] = places[1:] - 1",
            "a branch is predicted by the branch before it",
        ),
        (
            "np.full(len(ids) + 1, len(predicted), dtype=np.int64)",
            "np.full(len(ids) + 1, 0, dtype=np.int64)",
            "what is not scored reads the first",
        ),
        (
            "size = sizes[group] - less",
            "size = sizes[group]",
            "what is shared counts against the budget",
        ),
        (
            "room, size = budget, sizes[group]",
            "room, size = budget, size",
            "what a new micro-batch cannot share does not count",
        ),
        ("room -= size", "room -= 0", "a micro-batch never fills up"),
        (
            "row.trajectory if row.group is None else row.group, []",
            "row.trajectory, []",
            "a group's rows are torn apart",
        ),
        (
            "members.setdefault(row.trajectory if row.group is None",
            "members.setdefault(number if row.group is None",
            "a trajectory's rows are torn apart",
        ),
        (
            "max(tokens_per_batch - row_tokens + 1, 1)",
            "tokens_per_batch",
            "too few micro-batches are agreed on",
        ),
    ),
    *_in(
        "training/spans.py",
        (
            "few.pads[:, None], torch.inf",
            "few.pads[:, None], 0.0",
            "what is no token weighs",
        ),
        (
            "torch.sigmoid(sums - own[4])",
            "torch.sigmoid(own[4] - sums)",
            "two parts of a softmax swap their shares",
        ),
        ("into[:, :, place] += part", "into[:, :, place] = part", "a prompt forgets gradients"),
        ("pairwise(cuts[1:])", "pairwise(cuts)", "a part of a stretch sees all of itself"),
    ),
    *_in(
        "training/llama.py",
        ("_turned(above, cos, -sin)", "_turned(above, cos, sin)", "gradients turn the wrong way"),
        ("value=-1.0 / x.shape[-1]", "value=1.0 / x.shape[-1]", "a norm's gradient grows along x"),
    ),
    *_in(
        "training/blocks.py",
        (
            "is_causal=block.mask is None",
            "is_causal=False",
            "tokens see what comes after them",
        ),
        (
            "mask = (column_of <= depth[:, :, None])",
            "mask = (column_of <= depth[:, :, None] + 1)",
            "a branch's token sees the next one",
        ),
        (
            "for part in (*node.path, number):",
            "for part in (number, *node.path):",
            "a node's path stands behind it",
        ),
        (
            "(not node.path) == roots",
            "bool(node.start < 30) == roots",
            "a branch is taken for a root",
        ),
    ),
    *_in(
        "training/critic.py",
        ("critic is None or any(", "critic is None or not any(", "only a taught critic is reset"),
        (
            "torch.where(batch.action_mask, mean,",
            "torch.where(batch.action_mask, 0.0,",
            "old values",
        ),
        (
            "algorithm.value_targets(first)[batch.action_mask]",
            "algorithm.value_targets(first)",
            "off",
        ),
    ),
    *_in(
        "training/muon.py",
        ("a, b, c = QUINTIC", "a, b, c = 3.0, -3.2, 1.2", "another polynomial"),
        ("max(shape) ** 0.5", "min(shape) ** 0.5", "an update as large as its smaller side"),
        (
            'gradient.lerp(state["momentum_buffer"], MOMENTUM)',
            'state["momentum_buffer"].clone()',
            "no Nesterov momentum",
        ),
        (
            'matrix.mul_(1.0 - group["lr"] * group["weight_decay"])',
            'matrix.mul_(1.0 - group["lr"] * scale * group["weight_decay"])',
            "decay scaled like the update",
        ),
    ),
    *_in(
        "training/tree.py",
        (
            "nodes.append(Node(row[start:end], start, path))",
            "nodes.append(Node(row[start:end], 0, path))",
            "a branch begins at depth 0",
        ),
        (
            "end = len(row) if alone else min(common[first + 1 : last])",
            "end = len(row) if alone else max(common[first + 1 : last])",
            "rows share what only some have",
        ),
        (
            "tokens if tokens >= LEAST else 0",
            "tokens",
            "beginnings of any length are shared",
        ),
        (
            "length = min(len(one), len(other))",
            "length = min(len(one), len(other)) - 1",
            "the last common token is not shared",
        ),
    ),
    *_in(
        "training/scoring.py",
        (
            "logits = logits / temperature",
            "logits = logits * temperature",
            "temperature upside down",
        ),
    ),
    *_in(
        "training/module.py",
        (
            "update.accumulate * self.trainer.world_size",
            "1 * self.trainer.world_size",
            "the loss is divided by the number of micro-batches",
        ),
        (
            "below = picked.detach() if self._detached else picked",
            "below = picked.detach()",
            "the value loss does not reach the model",
        ),
        (
            "below = hidden(self.value_head.trunk, strip)",
            "below = picked",
            "a critic's own trunk is not used",
        ),
        ("return share * math.nan", "return share", "a loss that is infinite makes a step"),
    ),
    *_in(
        "training/batch.py",
        (
            "mask = mask & torch.isfinite(returns)[trajectory][:, None]",
            "mask = mask & True",
            "masked trajectories are trained on",
        ),
        ("values[name] = local", "values[name] = value[pick]", "a micro-batch keeps old numbers"),
        ("values[name] = value[whose]", "values[name] = value[: len(whose)]", "other returns"),
        ("{(row.trajectory, int(turn))", "{(0, int(turn))", "turns of all trajectories are one"),
        (
            "sequences = len({whose for whose, _ in turns})",
            "sequences = len(rows)",
            "forks count twice",
        ),
        ("each.turns[place - 1].observation_text", "turn.observation_text", "the state after"),
        (
            "observation_text if place else turn.prompt",
            'observation_text if place else ""',
            "an empty observation is the opening",
        ),
        (
            "wanted: list[bool] = taught[batch.trajectory].tolist()",
            "wanted: list[bool] = weighs.any(dim=1).tolist()",
            "a row is left out that its trajectory needs",
        ),
        ("batch.advantage != 0", "batch.advantage > 0", "bad attempts are left out"),
        (
            "mask = sources == Source.POLICY",
            "mask = sources != Source.PROMPT",
            "observations are actions",
        ),
        (
            "scored = [row.weight > 0 for row in own]",
            "scored = [row.weight >= 1 for row in own]",
            "what weighs little is not scored",
        ),
    ),
    *_in(
        "training/collecting.py",
        (
            "denominators([rows[n] for n in numbers])",
            "denominators(rows)",
            "a step divides by the iteration's tokens",
        ),
        (
            "used = [n for n in numbers if wanted[n]]",
            "used = numbers",
            "rows without advantage are computed",
        ),
        (
            "return scored.total is not None or scored.masked",
            "return scored.total is not None",
            "masked trajectories leave the batch",
        ),
        (
            "stage.trainer.minibatches == 1 and stage.trainer.epochs == 1",
            "stage.trainer.minibatches == 1",
            "the second epoch takes its own ratio for one",
        ),
    ),
    *_in(
        "sampling/dynamic.py",
        ("if rounds >= self.limit", "if rounds > self.limit", "one round too many"),
        ("is not None}) > 1", "is not None}) > 0", "equal totals count as signal"),
        (" if scored.total is not None}", "}", "a null counts as another total"),
    ),
    *_in(
        "sampling/branching.py",
        (
            "range(trajectory.taken_turns, ",
            "range(0, ",
            "a turn that was taken over branches again",
        ),
        ("len(trajectory.turns) - 1)", "len(trajectory.turns))", "nothing is left to branch"),
        ("place < group.seen or", "", "an attempt branches in every round"),
        ("range(self.width - 1)", "range(self.width)", "the attempt's own way is not counted"),
        ("yield number + 1, place", "yield number, place", "the turn that called is sampled again"),
        ("turns[number], group.words) - first", "turns[number], group.words)", "no change at all"),
        ("[: self.tokens]) / log(words)", "[: self.tokens])", "nats and no share of the most"),
    ),
    *_in(
        "training/groups.py",
        ("if len(added) > group.room:", "if False:", "the budget is exceeded"),
        ("whole[: branch.turns]", "whole", "a branch takes over the whole attempt"),
        ("start=first.attempt + len(attempts)", "start=first.attempt", "attempts with one number"),
        ("seen[name] = len(attempts)", "pass", "an attempt branches in every round"),
    ),
    *_in(
        "rollout/episode.py",
        (
            "decision.stop is not None or shown != turn.observation_text",
            "decision.stop is not None",
            "another answer of the environment is taken for the same",
        ),
    ),
    *_in(
        "training/position.py",
        ("max(plan.attempts, plan.room)", "plan.attempts", "two groups share an attempt's number"),
    ),
    *_in(
        "sampling/independent.py",
        ("Plan(task, group_size)", "Plan(task, group_size - 1)", "an attempt too few"),
    ),
    *_in(
        "engines/draw.py",
        ("target, right=True)", "target, right=False)", "a token without probability is drawn"),
        (
            "torch.where(greedy, 1.0, heat)",
            "torch.where(greedy, 2.0, heat)",
            "a greedy token's log-probability is another distribution's",
        ),
        (
            "dtype=torch.float64) - ordered",
            "dtype=torch.float64)",
            "top_p leaves out the token that reaches it",
        ),
        ("logits.float() / ways.temperature[:, None]", "logits.float()", "no temperature"),
    ),
    *_in(
        "curricula/drawing.py",
        ("times + extra", "times", "a task comes twice before the others come once"),
        ("np.floor(ends + uniforms(key, 1)[0])", "np.floor(ends)", "the last kind gets the rest"),
    ),
    *_in(
        "curricula/success_band.py",
        ("(1 - self.memory) * mean", "self.memory * mean", "the present weighs as the past"),
        ("newest - when)", "when)", "the oldest result weighs most"),
        ("now - newest > self.retry", "now - newest >= self.retry", "it is forgotten too early"),
        ("chain(unknown[:first], inside,", "chain(inside, unknown[:first],", "unknown comes last"),
        ("unknown[first:], outside", "outside", "unknown tasks above the share are left out"),
    ),
    *_in(
        "curricula/easy_to_hard.py",
        ("self.over, len(levels) - 1)", "self.over, len(levels) - 2)", "the last never opens"),
        ("level < reached)", "level > reached)", "harder levels stay in the draw"),
    ),
    *_in(
        "curricula/stages.py",
        ("phase.from_ <= done", "phase.from_ < done + 2", "a phase begins an iteration early"),
    ),
    *_in(
        "curricula/solvable.py",
        ("times < self.tries", "times <= self.tries", "one try too many"),
        ("lowest >= self.full_from", "highest >= self.full_from", "solved once counts as easy"),
        ("< self.easy)", "> self.easy)", "the share of easy tasks is what leaves"),
    ),
    *_in(
        "curricula/hard_pool.py",
        ("mean >= self.accept_from", "mean > self.accept_from", "nothing is ever accepted"),
        ("times >= self.loops", "times > self.loops", "one loop too many"),
    ),
    *_in(
        "curricula/replay_failures.py",
        ("[-self.capacity :]", "[: self.capacity]", "the oldest failures stay"),
        ("mean < self.below", "mean <= self.below", "what lies at the bound failed"),
        ("if task not in results]", "]", "a solved task is still a failure"),
    ),
    *_in(
        "curricula/weighted.py",
        ("waits / [weight", "waits * [weight", "what weighs much comes last"),
    ),
    *_in(
        "schedules.py",
        ("0.5 * (1.0 - math.cos(math.pi * share))", "share", "a cosine is a line"),
        ('iteration // schedule["every"]', '(iteration + 1) // schedule["every"]', "steps early"),
        ("float(value) if whole else value", "value", "a fraction is rounded"),
    ),
)
