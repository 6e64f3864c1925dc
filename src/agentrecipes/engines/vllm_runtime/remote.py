"""vLLM over HTTP: token ids there and back, weights as a file that the servers read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.engines.vllm_runtime import process, setup, shares
from agentrecipes.engines.vllm_runtime.process import ServerProcess
from agentrecipes.engines.vllm_runtime.turns import Drawn, Turns, gathered
from agentrecipes.engines.vllm_runtime.worker import model_facts
from agentrecipes.errors import EngineError
from agentrecipes.numerics.streams import derive

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.vllm_server import VllmServer

UPDATE_SECONDS = 600.0  # longest wait for a server that takes new weights
KEY = "VLLM_API_KEY"  # environment variable: what servers of others ask for


class RemoteEngine:
    """The engine of `vllm_server`."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, part: VllmServer
    ) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="agentrecipes-vllm-")
        self._folder = Path(part.folder or self._place.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        own = Path(self._place.name) / "model"
        setup.write_folder(model, tokenizer, own)
        self._arguments = setup.arguments(part, model, own)
        self._turns = Turns(model, tokenizer, int(self._arguments["max_model_len"]))
        self._wanted = setup.shapes(model)
        self._facts = model_facts(model.config.get_text_config())
        self._dtype = self._arguments["dtype"]
        self._version: int | None = None
        self._asleep = False
        self._processes: list[ServerProcess] = []
        self._certificates = ssl.create_default_context()
        key = os.environ.get(KEY)
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            verify=self._certificates,
            trust_env=False,
            timeout=UPDATE_SECONDS,
        )
        try:
            if part.urls:
                self._urls = shares.asked([url.rstrip("/") for url in part.urls])
            else:
                starting = partial(self._start, part)
                self._urls = shares.started(part.devices or ((),), starting)
            for url in self._urls:
                self._require_same(url)
        except BaseException:
            self.close()
            raise

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """One sample per request, in their order; several calls may wait at once.

        Raises:
            EngineError: a request is empty or too long, or no server answers.
        """
        return await gathered(self.submit(requests))

    def submit(self, requests: Sequence[Request]) -> list[asyncio.Future[Sample]]:
        """A future by request, of the running event loop; cancelling it ends its sampling.

        Raises:
            EngineError: a request is empty or too long. What fails later is in the futures.
        """
        self._turns.check(requests)
        if self._version is None:
            raise EngineError("vllm_server engine: it has no weights to sample from.")
        self._wake()
        loop, client = asyncio.get_running_loop(), self._connections()
        open_calls = set(range(len(requests)))  # the last one takes the connections down with it

        async def call(number: int, request: Request) -> Sample:
            try:
                return await self._one(client, request)
            finally:
                open_calls.discard(number)
                if not open_calls:
                    await client.aclose()

        return [loop.create_task(call(*each)) for each in enumerate(requests)]

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights; turns that are being sampled go on with them, and say so.

        Raises:
            EngineError: a name or a shape is not the model's (the old weights stay), or a server
                does not take them.
        """
        from safetensors.torch import save_file

        path = self._folder / f"weights-{os.getpid()}-{version}.safetensors"
        pairs = dict(setup.checked(weights, self._wanted, self._dtype))
        written = path.with_suffix(".tmp")
        save_file(pairs, written)
        written.rename(path)
        try:
            self._wake()
            for url in self._urls:
                self._hand_over(url, path, version)
        finally:
            path.unlink(missing_ok=True)
        self._version = version

    def rest(self) -> None:
        """Where servers share GPUs with the trainer: give their memory back until the next load."""
        if self._arguments["enable_sleep_mode"] and not self._asleep:
            for url in self._urls:
                self._post(url, "/sleep?level=1")
            self._asleep = True

    def close(self) -> None:
        """End the servers that were started for this engine."""
        for server in self._processes:
            server.close()
        self._processes = []
        self._client.close()
        self._place.cleanup()

    def _start(self, part: VllmServer, entries: Mapping[int, Sequence[int]]) -> list[str]:
        """Start servers side by side and wait until they answer; their addresses."""
        own = []
        for number, gpus in entries.items():
            shared = {"tensor_parallel_size": len(gpus)} if len(gpus) > 1 else {}
            log = Path(tempfile.gettempdir()) / f"agentrecipes-vllm-{os.getpid()}-{number}.log"
            port = None if part.port is None else part.port + number
            own.append(ServerProcess({**self._arguments, **shared}, log, port=port, gpus=gpus))
            self._processes.append(own[-1])
        for server in own:
            server.wait(part.start_seconds)
        return [server.url for server in own]

    def _require_same(self, url: str) -> None:
        """Refuse a server that is none of ours, or serves another model."""
        try:
            found = self._rpc(url, "ar_facts")
        except EngineError as error:
            how = process.shown({**self._arguments, "model": "MODEL"}, port=8000)
            raise EngineError(f"{error} It has to be started like this: {how}") from error
        other = {
            name: (found[0].get(name), value)
            for name, value in self._facts.items()
            if found[0].get(name) != value
        }
        if other:
            told = ", ".join(f"{k} {theirs} (here {ours})" for k, (theirs, ours) in other.items())
            raise EngineError(
                f"vllm_server engine: {url} serves another model: {told}. Start it with the "
                "recipe's model, or name another server in `urls`."
            )

    def _hand_over(self, url: str, path: Path, version: int) -> None:
        """Pause, load, forget the keys of the old weights, go on."""
        self._post(url, "/pause?mode=keep")
        try:
            self._rpc(url, "ar_load_file", str(path.resolve()))
            self._post(url, "/update_weight_version", {"new_version": str(version)})
            self._post(url, "/reset_prefix_cache?reset_running_requests=true")
        finally:
            with contextlib.suppress(EngineError):
                self._post(url, "/resume")

    def _wake(self) -> None:
        if self._asleep:
            for url in self._urls:
                self._post(url, "/wake_up")
            self._asleep = False

    def _rpc(self, url: str, method: str, *args: str) -> list[Any]:
        answer = self._post(url, "/collective_rpc", {"method": method, "args": args})
        results: list[Any] = answer.json().get("results") or [None]
        return results

    def _post(self, url: str, route: str, body: object = None) -> httpx.Response:
        try:
            answer = self._client.post(url + route, json=body)
        except httpx.HTTPError as error:
            raise self._gone(url, error) from error
        if not answer.is_success:
            raise EngineError(_refused(url, route, answer))
        return answer

    async def _one(self, client: httpx.AsyncClient, request: Request) -> Sample:
        """The sample of a server; of the next one where it is gone: the draw is the same."""
        first = derive(*request.key[:-2]) % len(self._urls)  # an episode's turns share a cache
        began = time.perf_counter()
        body = {"token_ids": request.ids, "sampling_params": self._turns.asked(request)}
        for url in [*self._urls[first:], *self._urls[:first]]:
            try:
                answer = await client.post(f"{url}/inference/v1/generate", json=body)
            except httpx.HTTPError as error:
                failed = self._gone(url, error)
                continue
            if not answer.is_success:
                raise EngineError(_refused(url, "/inference/v1/generate", answer))
            return self._turns.sample(request, _drawn(answer.json(), began))
        raise failed

    def _gone(self, url: str, error: Exception) -> EngineError:
        own = [process for process in self._processes if process.url == url]
        more = own[0].last() if own and not own[0].alive else f"{type(error).__name__}: {error}."
        return EngineError(f"vllm_server engine: {url} does not answer: {more}")

    def _connections(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._client.headers,
            verify=self._certificates,
            trust_env=False,
            timeout=None,
            limits=httpx.Limits(max_connections=None),
        )


def _drawn(answer: Any, began: float) -> Drawn:
    [choice] = answer["choices"]
    logp = [content["logprob"] for content in choice["logprobs"]["content"]]
    spans = [(int(span["version"]), span["end"]) for span in choice["weight_versions"]]
    return Drawn(choice["token_ids"], logp, spans, time.perf_counter() - began)


def _refused(url: str, route: str, answer: httpx.Response) -> str:
    said = " ".join(answer.text.split())[:300].rstrip(".")
    return f"vllm_server engine: {url}{route} answers {answer.status_code}: {said}."
