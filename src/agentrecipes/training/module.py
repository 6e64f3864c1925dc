"""The one LightningModule: every pass over the policy goes through its forward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lightning as L
import torch

from agentrecipes.algorithms.protocol import Outputs
from agentrecipes.errors import RunStopped
from agentrecipes.models.value_head import OwnTrunk, linear
from agentrecipes.records import Batch
from agentrecipes.training import optimizer as optimizers
from agentrecipes.training import ranks
from agentrecipes.training.attention import install
from agentrecipes.training.batch import MicroBatch
from agentrecipes.training.pack import Strip
from agentrecipes.training.scoring import causal, hidden, nothing, scores
from agentrecipes.training.shards import Shards
from agentrecipes.training.terms import merge
from agentrecipes.training.update import Update

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class PolicyModule(L.LightningModule):
    """The policy, its value head where a stage needs one, and the reference where one is asked for.

    One optimizer with parameter groups; it is handed in, so that its state outlives a Trainer.
    """

    def __init__(self, model: PreTrainedModel, value_head: torch.nn.Module | None) -> None:
        super().__init__()
        install(causal(model))
        self.model = model
        self.value_head = value_head
        self.own = torch.nn.ParameterDict()  # of the algorithm itself
        self.update: Update | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        self.steps = 0  # optimizer steps of the stage so far
        self.terms: dict[str, float] = {}  # since the last report: loss terms summed, extremes kept
        self.shards: Shards | None = None  # while its weights are in pieces
        self.context: Callable[[], AbstractContextManager[Any]] = nullcontext  # of training passes
        self._reference: list[PreTrainedModel] = []  # in a list: it is no sub-module of ours
        self._counted = 0  # optimizer steps since the last report
        self._too_far = ""  # how far the engine is, where that is too far
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
            picked = hidden(model, strip)  # (M, D)
            head = causal(model).get_output_embeddings()
            logp, ent = scores(
                head, picked, strip.targets, temperature=temperature, entropy=entropy
            )
        values = None
        if value and self.value_head is not None:
            below = picked.detach() if self._detached else picked
            if isinstance(self.value_head, OwnTrunk):
                below = hidden(self.value_head.trunk, strip)
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
        picked = hidden(self.model, strip)
        head: Any = causal(self.model).get_output_embeddings()
        best = head(picked).argmax(-1)  # (M,)
        return strip.spread(torch.eq(best, strip.targets).long()).bool()

    def _adapter_off(self) -> AbstractContextManager[Any]:
        adapted: Any = self.model
        off: AbstractContextManager[Any] = adapted.disable_adapter()
        return off

    def training_step(self, micro: MicroBatch, batch_index: int) -> Tensor:
        """The micro-batch's share of the step's loss, times what Lightning divides it by."""
        update = self._update()
        needs = update.algorithm.needs
        with self.context():
            outputs = self(
                micro.strip,
                temperature=update.temperature,
                value=needs.value,
                entropy=needs.entropy and not micro.empty,
            )
        if micro.empty:
            return nothing(outputs)
        self._empty = False
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
            self._gap(batch, update.max_gap)
        return share

    def _gap(self, batch: Batch, most: float | None) -> None:
        """Log how far the sampler is from the trainer at the start of the iteration.

        Further than the engine's bound, it does not sample from these weights; all ranks stop then.
        """
        gap = torch.where(batch.action_mask, batch.logp_old - batch.logp_rollout, 0.0).abs()
        self._record({"sync/logp_gap_max": gap.max()})
        if most is not None and not gap.max() <= most:
            self._too_far = (
                f"rollout.engine: the engine's log-probabilities are {float(gap.max()):.3g} nats "
                f"from the trainer's, {float(gap.sum() / batch.action_mask.sum()):.3g} on average, "
                f"and {most:g} is allowed: it samples from other weights, or computes otherwise. "
                "Compare dtype and trainer.precision; raise the engine's max_gap if that is it."
            )

    def _record(self, terms: Mapping[str, Tensor]) -> None:
        """Sum shares over micro-batches; of what is called ``…_max`` keep the largest."""
        merge(self.terms, {name: float(value) for name, value in terms.items()})

    def report(self) -> dict[str, float]:
        """The terms since the last report: means over optimizer steps, extremes and counts.

        Every rank has a share of each term; all ranks ask at the same time, and hear the same.
        """
        count = max(self._counted, 1)
        whole: dict[str, float] = {}
        for terms in ranks.gathered(self.terms):
            merge(whole, terms)
        told = {
            name: value if name.endswith(("_max", "_steps")) else value / count
            for name, value in whole.items()
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

        Raises:
            RunStopped: the engine does not sample from the trainer's weights.
        """
        if self.shards is not None and self.trainer.fit_loop._should_accumulate():
            return  # DeepSpeed asks at each micro-batch
        still = self._agreed_to_stay()
        if self.shards is not None:  # it clips the pieces itself, and skips what is not finite
            self.shards.still = still
            return
        limit = float("inf") if gradient_clip_val is None else float(gradient_clip_val)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        if still or not torch.isfinite(norm):
            optimizer.zero_grad(set_to_none=True)  # without gradients a step moves nothing at all
            self._record({"loss/skipped_steps": torch.tensor(1.0 if ranks.leads() else 0.0)})
            return
        self._record({"policy/gradient_norm_max": norm})

    def _agreed_to_stay(self) -> bool:
        """Whether nothing weighed anything in this step, on any rank.

        Raises:
            RunStopped: on every rank, where the engine is too far from the trainer on one of them.
        """
        told = ranks.gathered((self._empty, self._too_far))
        for _, too_far in told:
            if too_far:
                raise RunStopped(too_far)
        return all(empty for empty, _ in told)

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step at this step's learning rate; the arguments are Lightning's own."""
        optimizers.set_rate(self.configure_optimizers(), self._update().rate(self.steps))
        super().optimizer_step(*args, **kwargs)
        if self.trainer.fit_loop._should_accumulate():  # DeepSpeed is asked at each micro-batch
            return
        if self.shards is not None:
            self._record(self.shards.figures())
        self._counted += 1
        self._empty = True
        self.steps += 1

    def on_fit_start(self) -> None:
        """Bring the reference, which Lightning does not know, to where the policy is."""
        for model in self._reference:
            model.to(self.device)  # type: ignore[arg-type]

    @property
    def whole(self) -> PreTrainedModel:
        """The model with all its weights at hand, also while another copy is trained in pieces."""
        return self.model if self.shards is None else self.shards.model

    @property
    def whole_head(self) -> torch.nn.Module | None:
        """The value head with all its weights at hand."""
        return self.value_head if self.shards is None else self.shards.value_head

    def optimizer_state(self) -> dict[str, Any] | None:
        """The optimizer's state by parameter; under shards all ranks ask, and rank 0 is told."""
        if self.shards is not None:
            return self.shards.optimizer_state()
        return None if self.optimizer is None else self.optimizer.state_dict()

    def refresh(self) -> None:
        """Bring the whole model up to date with the pieces that are trained."""
        if self.shards is not None:
            self.shards.refresh()

    def with_whole_head(self, change: Callable[[torch.nn.Module | None], Batch]) -> Batch:
        """What `change` makes of the value head; training goes on with the head it leaves."""
        if self.shards is None:
            return change(self.value_head)
        made = change(self.shards.value_head)
        self.shards.push_head()
        return made

    def transfer_batch_to_device(
        self, batch: MicroBatch, device: torch.device, dataloader_idx: int
    ) -> MicroBatch:
        return batch.to(device)
