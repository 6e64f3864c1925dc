"""The one LightningModule: every pass over the policy goes through its forward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import lightning as L
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from agentrecipes.algorithms.protocol import Algorithm, Outputs
from agentrecipes.models.value_head import OwnTrunk, linear
from agentrecipes.training import optimizer as optimizers
from agentrecipes.training.attention import install
from agentrecipes.training.batch import MicroBatch
from agentrecipes.training.pack import Strip

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LOGIT_BYTES = 2**30  # above this the head runs in chunks, recomputed in the backward pass


@dataclass(frozen=True, slots=True)
class Update:
    """What an update needs to know of its iteration."""

    algorithm: Algorithm
    temperature: float  # of the samples: logp is that of softmax(logits / temperature)
    accumulate: int  # micro-batches per optimizer step
    rate: Callable[
        [int], float
    ]  # share of the peak learning rate in an optimizer step of the stage


class PolicyModule(L.LightningModule):
    """The policy, its value head where a stage needs one, and the reference where one is asked for.

    One optimizer with parameter groups; it is handed in, so that its state outlives a Trainer.
    """

    def __init__(self, model: PreTrainedModel, value_head: torch.nn.Module | None) -> None:
        super().__init__()
        install(_causal(model))
        self.model = model
        self.value_head = value_head
        self.own = torch.nn.ParameterDict()  # of the algorithm itself
        self.update: Update | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        self.steps = 0  # optimizer steps of the stage so far
        self.terms: dict[str, float] = {}  # since the last report: loss terms summed, extremes kept
        self._reference: list[PreTrainedModel] = []  # in a list: it is no sub-module of ours
        self._counted = 0  # optimizer steps since the last report
        self._empty = True  # no micro-batch of this optimizer step weighed anything

    def keep_reference(self, model: PreTrainedModel | None) -> None:
        """Hold a frozen model for reference passes; None: the adapter is switched off instead."""
        self._reference = [] if model is None else [model]

    def forward(
        self,
        strip: Strip,
        *,
        temperature: float = 1.0,
        value: bool = False,
        entropy: bool = False,
        reference: bool = False,
    ) -> Outputs:
        """(B, T) log-probabilities in nats, values and entropies if asked for; 0 off the scored."""
        model = self._reference[0] if reference and self._reference else self.model
        with self._adapter_off() if reference and not self._reference else nullcontext():
            picked = _hidden(model, strip)  # (M, D)
            head = _causal(model).get_output_embeddings()
            logp, ent = _score(
                head, picked, strip.targets, temperature=temperature, entropy=entropy
            )
        values = None
        if value and self.value_head is not None:
            below = picked.detach() if self._detached else picked
            if isinstance(self.value_head, OwnTrunk):
                below = _hidden(self.value_head.trunk, strip)
            values = linear(self.value_head)(below)[:, 0].float()
        return Outputs(
            logp=strip.spread(logp),
            value=None if values is None else strip.spread(values),
            entropy=None if ent is None else strip.spread(ent),
            own=dict(self.own.items()),
        )

    @torch.no_grad()
    def hits(self, strip: Strip) -> Tensor:
        """(B, T) bool: the most likely token is the one that stands there; False off the scored."""
        picked = _hidden(self.model, strip)
        head: Any = _causal(self.model).get_output_embeddings()
        best = head(picked).argmax(-1)  # (M,)
        return strip.spread(torch.eq(best, strip.targets).long()).bool()

    def _adapter_off(self) -> AbstractContextManager[Any]:
        adapted: Any = self.model
        off: AbstractContextManager[Any] = adapted.disable_adapter()
        return off

    def training_step(self, micro: MicroBatch, batch_index: int) -> Tensor:
        """The micro-batch's share of the step's loss, times what Lightning divides it by."""
        update = self._update()
        if micro.empty:
            told = self(micro.strip)
            nothing: Tensor = sum((each.sum() for each in told.own.values()), told.logp.sum()) * 0.0
            return nothing
        self._empty = False
        needs = update.algorithm.needs
        outputs = self(
            micro.strip, temperature=update.temperature, value=needs.value, entropy=needs.entropy
        )
        batch = micro.batch
        if micro.exact:
            batch = replace(batch, logp_old=outputs.logp.detach())
        loss = update.algorithm.loss(outputs, batch)
        share = loss.total * (update.accumulate * self.trainer.world_size)
        if not math.isfinite(loss.total.detach()):  # its gradient may be: the step is to be skipped
            return share * math.nan
        shares = {f"loss/{name}": value for name, value in loss.terms.items()}
        self._record({"loss/total": loss.total.detach(), **shares})
        if batch.logp_rollout.numel():
            gap = torch.where(batch.action_mask, outputs.logp.detach() - batch.logp_rollout, 0.0)
            self._record({"sync/logp_gap_max": gap.abs().max()})
        return share

    def _record(self, terms: Mapping[str, Tensor]) -> None:
        """Sum shares over micro-batches; of what is called ``…_max`` keep the largest."""
        for name, value in terms.items():
            old, new = self.terms.get(name), float(value)
            if old is None:
                self.terms[name] = new
            else:
                self.terms[name] = max(old, new) if name.endswith("_max") else old + new

    def report(self) -> dict[str, float]:
        """The terms since the last report: means over optimizer steps, extremes and counts."""
        count = max(self._counted, 1)
        told = {
            name: value if name.endswith(("_max", "_steps")) else value / count
            for name, value in self.terms.items()
        }
        self.terms, self._counted = {}, 0
        return told

    @property
    def _detached(self) -> bool:
        return self.update is not None and self.update.algorithm.needs.detached_value

    def _update(self) -> Update:
        if self.update is None:
            raise RuntimeError(
                "the module has no update to do: the stage sets it before its first batch"
            )
        return self.update

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The stage's optimizer, as it stands."""
        if self.optimizer is None:
            raise RuntimeError("the module has no optimizer: the stage sets it before training")
        return self.optimizer

    def groups(self) -> list[dict[str, Any]]:
        """Trainable parameters by label: "policy" and, where there are any, "value" and "own"."""
        policy = [p for p in self.model.parameters() if p.requires_grad]
        critic = [] if self.value_head is None else list(self.value_head.parameters())
        value = [p for p in critic if p.requires_grad]
        own = list(self.own.parameters())
        labelled = (("policy", policy), ("value", value), ("own", own))
        return [{"params": p, "label": label} for label, p in labelled if p or label == "policy"]

    def tables(self) -> list[torch.nn.Parameter]:
        """The weights by token: the embeddings, and the output head where it is not the same."""
        ends = (self.model.get_input_embeddings(), self.model.get_output_embeddings())
        return [own for end in ends if end is not None for own in end.parameters()]

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip by the global norm and keep the norm for the log.

        A step in which nothing weighed anything, or whose loss or gradient is not finite, is
        skipped whole (weight decay and momentum included) and counted.
        """
        limit = float("inf") if gradient_clip_val is None else float(gradient_clip_val)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        if self._empty or not torch.isfinite(norm):
            optimizer.zero_grad(set_to_none=True)  # without gradients a step moves nothing at all
            self._record({"loss/skipped_steps": torch.ones(())})
            return
        self._record({"policy/gradient_norm_max": norm})

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step at this step's learning rate; the arguments are Lightning's own."""
        optimizers.set_rate(self.configure_optimizers(), self._update().rate(self.steps))
        super().optimizer_step(*args, **kwargs)
        self._counted += 1
        self._empty = True
        self.steps += 1

    def transfer_batch_to_device(
        self, batch: MicroBatch, device: torch.device, dataloader_idx: int
    ) -> MicroBatch:
        return batch.to(device)


def _causal(model: Any) -> Any:
    """The Hugging Face causal language model inside an adapter's wrapper, or `model` itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _hidden(model: Any, strip: Strip) -> Tensor:
    """(M, D) hidden states at the scored positions."""
    states: Tensor = (
        _causal(model)
        .get_decoder()(
            input_ids=strip.ids,
            position_ids=strip.positions,
            use_cache=False,
            segments=strip.segments,
        )
        .last_hidden_state[0]
    )  # (N, D)
    return states[strip.scored]


def _score(
    head: Any, hidden: Tensor, targets: Tensor, *, temperature: float, entropy: bool
) -> tuple[Tensor, Tensor | None]:
    """(M,) log-probabilities of `targets` and entropies, in float32, from (M, D) hidden states."""

    def piece(states: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = head(states).float()  # (m, V)
        if temperature != 1.0:
            logits = logits / temperature
        logp = -cross_entropy(logits, ids, reduction="none")
        if not entropy:
            return logp, logp.detach()
        norm = torch.logsumexp(logits, dim=-1)
        return logp, norm - (logits.softmax(-1) * logits).sum(-1)

    width = int(head.weight.shape[0])
    rows = max(1, LOGIT_BYTES // (width * 4 * 3))  # logits, their softmax and its gradient
    if len(targets) <= rows:
        logp, ent = piece(hidden, targets)
        return logp, ent if entropy else None
    parts = [
        checkpoint(piece, states, ids, use_reentrant=False)
        for states, ids in zip(hidden.split(rows), targets.split(rows), strict=True)
    ]
    logp, ent = (torch.cat(each) for each in zip(*parts, strict=True))
    return logp, ent if entropy else None
