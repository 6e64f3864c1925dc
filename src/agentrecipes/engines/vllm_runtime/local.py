"""vLLM in this process: one thread owns it, and steps it while anything is asked for."""

from __future__ import annotations

import asyncio
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.engines.vllm_runtime.turns import Drawn, Turns, gathered
from agentrecipes.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.vllm import Vllm

T = TypeVar("T")


class LocalEngine:
    """The engine of `vllm`. Requests may be handed in at any time, from any thread or loop."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, part: Vllm
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agentrecipes-vllm-")
        setup.write_folder(model, tokenizer, Path(self._folder.name))
        self._arguments = setup.arguments(part, model, Path(self._folder.name))
        self._turns = Turns(model, tokenizer, int(self._arguments["max_model_len"]))
        self._wanted = setup.shapes(model)
        self._engine: Any = None
        self._asleep = False
        self._version: int | None = None  # of the weights that the engine has
        self._flights: dict[str, tuple[Request, float, Future[Sample]]] = {}
        self._number = 0
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="vllm-engine", daemon=True)
        self._thread.start()
        try:
            self._do(self._build)
        except BaseException:
            self.close()
            raise

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """One sample per request, in their order; several calls may wait at once.

        Raises:
            EngineError: a request is empty or too long, or vLLM failed.
        """
        return await gathered(self.submit(requests))

    def submit(self, requests: Sequence[Request]) -> list[asyncio.Future[Sample]]:
        """A future by request, of the running event loop; cancelling it ends its sampling.

        Raises:
            EngineError: a request is empty or too long. What fails later is in the futures.
        """
        self._turns.check(requests)
        self._require_open()
        futures: list[Future[Sample]] = [Future() for _ in requests]
        self._jobs.put(lambda: self._submit(requests, futures))
        return [self._awaited(future) for future in futures]

    def _awaited(self, future: Future[Sample]) -> asyncio.Future[Sample]:
        def abort(waited: asyncio.Future[Sample]) -> None:
            if waited.cancelled():
                self._jobs.put(lambda: self._abort(future))

        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(abort)
        return waiting

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights; turns that are being sampled go on with them, and say so.

        Raises:
            EngineError: a name or a shape is not the model's (the old weights stay), or vLLM does
                not take them.
        """
        dtype = str(self._arguments["dtype"])
        pairs = list(setup.checked(weights, self._wanted, dtype))
        self._do(lambda: self._load(pairs, version))

    def rest(self) -> None:
        """On a GPU: give its memory to the trainer until the next load or request."""
        if self._arguments["enable_sleep_mode"]:
            self._do(self._sleep)

    def close(self) -> None:
        """Stop vLLM; whoever still waits gets an EngineError."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()
        self._folder.cleanup()

    def _do(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises in vLLM's own thread."""
        self._require_open()
        result: Future[T] = Future()

        def job() -> None:
            try:
                result.set_result(function())
            except BaseException as error:
                result.set_exception(error)

        self._jobs.put(job)
        return result.result()

    def _require_open(self) -> None:
        if not self._thread.is_alive():
            raise EngineError("vllm engine: it is closed.")

    # What follows runs in vLLM's own thread.

    def _run(self) -> None:
        while True:
            while not (self._flights and self._jobs.empty()):
                job = self._jobs.get()
                if job is None:
                    self._drop()
                    return
                job()
            self._step()

    def _build(self) -> None:
        self._engine = setup.build(self._arguments)

    def _submit(self, requests: Sequence[Request], futures: Sequence[Future[Sample]]) -> None:
        running = [future.set_running_or_notify_cancel() for future in futures]
        try:
            if self._engine is None or self._version is None:
                raise EngineError("vllm engine: it has no weights to sample from.")
            self._wake()
            for request, future in zip(requests, futures, strict=True):
                self._number += 1
                params = setup.sampling(self._turns.asked(request))
                prompt = {"prompt_token_ids": list(request.ids)}
                self._engine.add_request(str(self._number), prompt, params)
                self._flights[str(self._number)] = (request, time.perf_counter(), future)
        except Exception as error:
            self._fail(error, [future for future, own in zip(futures, running, strict=True) if own])

    def _step(self) -> None:
        ended: list[Future[Sample]] = []
        try:
            for output in self._engine.step():
                if output.finished and output.request_id in self._flights:
                    request, began, future = self._flights.pop(output.request_id)
                    ended = [future]
                    future.set_result(self._turns.sample(request, _drawn(output.outputs[0], began)))
        except Exception as error:
            self._fail(error, ended)

    def _abort(self, future: Future[Sample]) -> None:
        """Nobody waits for it any more."""
        gone = [key for key, (*_, own) in self._flights.items() if own is future]
        for key in gone:
            del self._flights[key]
            self._engine.abort_request([key])

    def _load(self, pairs: list[tuple[str, Tensor]], version: int) -> None:
        try:
            self._take(pairs, version)
        except Exception:  # layers may be half loaded: nothing of this vLLM can be used
            self._drop()
            try:
                self._take(pairs, version)
            except Exception as error:
                self._drop()
                raise setup.failure("new weights were not taken", error) from error

    def _take(self, pairs: list[tuple[str, Tensor]], version: int) -> None:
        if self._engine is None:
            self._build()
        self._wake()
        self._engine.collective_rpc("ar_load", args=(pairs,))
        self._engine.set_weight_version(str(version))  # vLLM counts the tokens of each
        # keys and values of the old weights are forgotten, those of running turns too
        self._engine.reset_prefix_cache(reset_running_requests=bool(self._flights))
        self._version = version

    def _sleep(self) -> None:
        if self._engine is not None and not self._asleep and not self._flights:
            self._engine.sleep(level=1)
            self._asleep = True

    def _wake(self) -> None:
        if self._asleep:
            self._engine.wake_up()
            self._asleep = False

    def _fail(self, error: Exception, more: Sequence[Future[Sample]]) -> None:
        """Give up on all that is being sampled, and on this vLLM: its state is unknown."""
        known = error if isinstance(error, EngineError) else setup.failure("it failed", error)
        waiting, self._flights = [future for *_, future in self._flights.values()], {}
        for future in {*waiting, *more}:
            if not future.done():
                future.set_exception(known)
        self._drop()

    def _drop(self) -> None:
        waiting, self._flights = list(self._flights.values()), {}
        for *_, future in waiting:
            future.set_exception(EngineError("vllm engine: it was stopped while it sampled."))
        engine, self._engine, self._version, self._asleep = self._engine, None, None, False
        if engine is not None:
            setup.shut_down(engine)


def _drawn(output: Any, began: float) -> Drawn:
    spans = [(int(span.version), span.end) for span in output.weight_versions]
    ids, logp = list(output.token_ids), list(output.logprobs.logprobs)
    return Drawn(ids, logp, spans, time.perf_counter() - began)
