"""Questions to be answered by searching a corpus, one or several queries a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import PartOf, component
from agentrecipes.environments.context import Context, context_problems, wandering
from agentrecipes.environments.halting import Halting, halting_problems, patient
from agentrecipes.environments.posed import Posed
from agentrecipes.environments.prompt import QUESTION, Text, options, prompt_problems, told_answers
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.environments.renaming import Renaming
from agentrecipes.environments.script import Faults, Script, guesser, reader
from agentrecipes.errors import Problem, TaskFailed
from agentrecipes.numerics.streams import derive
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Action, Call, Message, Passage, Task, ToolResult
from agentrecipes.retrievers.protocol import Retriever, Searcher, Waiting

NOTHING_FOUND = "Nothing was found."


@component("environment")
class Search(Posed):
    """RAG-R1's and Search-R1's setting: the policy searches until it answers.

    Training tasks of a dataset with interchangeable names are posed under a permutation of them
    that is drawn from the seed; dev and test tasks are posed as they are.
    """

    retriever: Annotated[Any, PartOf("retriever"), Field(validate_default=True)] = "bm25"
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "search_tags"
    max_turns: Annotated[int, Field(ge=1)] = 5
    on_invalid: OnInvalid = OnInvalid()
    context: Context = Context()  # which turns the policy goes on seeing
    halting: Halting = Halting()  # when an answer counts
    # of the retriever: the trajectory ends with tool_error, or is shown the error and goes on
    on_failure: Literal["stop", "error"] = "stop"
    system: Text | None = None  # a system message: text, or a file
    prompt: Text | None = None  # the user message with {question}, or a file; null: see `messages`

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A prompt must have a place for the question, and there must be something to search in."""
        yield from prompt_problems(self.prompt)
        yield from context_problems(self)
        yield from halting_problems(self)
        yield from told_answers(self, self._dataset)
        yield from getattr(self.retriever, "rules_of_corpus", tuple)()
        if not getattr(self.dataset, "has_corpus", True) and self.retriever_lacks_corpus:
            yield Problem(
                code="no_corpus",
                path="retriever",
                message="there is nothing to search in: the dataset has no corpus",
                suggestion="Write `retriever: {name: bm25, corpus: FILE}`.",
            )

    @property
    def retriever_lacks_corpus(self) -> bool:
        """Whether the retriever could have a corpus of its own and has none."""
        return getattr(self.retriever, "corpus", "elsewhere") is None

    @property
    def symbols(self) -> frozenset[str]:
        """Interchangeable names of the dataset."""
        return self._dataset.symbols

    @property
    def queries_per_turn(self) -> int:
        """Most queries that the protocol takes in one turn."""
        return int(getattr(self.protocol, "queries_per_turn", 1))

    def open(self, task: Task, seed: int) -> SearchEpisode:
        """`task` posed under the names of `seed`."""
        renaming = None
        if task.split == "train" and self.symbols:
            renaming = Renaming(self.symbols, seed)
            task = renaming.task(task)
        searcher = self._searcher(task.split)
        desk = Desk(searcher, self.protocol, self._dataset.spoken, renaming, self.on_failure)
        return SearchEpisode(task, self.messages(task.question, options(task)), desk)

    def messages(self, question: str, choices: str = "") -> tuple[Message, ...]:
        """The opening messages.

        Without a prompt of one's own, a question in a formal language stands alone, and one in
        natural language follows the protocol's instructions in the same message, as in RAG-R1.
        `choices` are the lines of a multiple choice, which stand below the question.
        """
        opening = (Message("system", self.system),) if self.system is not None else ()
        if self._dataset.spoken:
            question = question.strip()
            question = question if question.endswith("?") else f"{question}?"
        question += choices
        if self.prompt is not None:
            content = self.prompt.replace(QUESTION, question)
        elif self._dataset.spoken and self.system is None:
            content = (
                f"{self.protocol.system(('search', *self.context.tools))}\nQuestion: {question}"
            )
        else:
            content = question
        return (*opening, Message("user", content))

    def oracle(self, task: Task) -> Agent:
        """Follows the task's plan and reads what it finds; without a plan it knows the answer."""
        if "plan" in task.data:
            script = Script(task, self.queries_per_turn, faults=Faults(), random=Random(0))
            return patient(self, script)
        titles = task.data.get("supporting_titles", ())[: self.max_turns - 1]
        answer = task.gold_answers[0] if task.gold_answers else "unknown"
        return patient(self, reader(titles, answer, self.queries_per_turn))

    def random(self, task: Task, seed: int) -> Agent:
        """Searches and answers with words of the question and of what it was shown."""
        random = Random(derive(seed, "random", task.id))
        return wandering(self, guesser(task, self.symbols, random), random)

    def _searcher(self, split: str) -> Searcher:
        retriever: Retriever = self.retriever
        return retriever.open(self._dataset.corpus(split))


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an episode's queries are answered."""

    searcher: Searcher
    protocol: ActionProtocol
    spoken: bool
    renaming: Renaming | None
    on_failure: str = "stop"

    async def answer(self, calls: Sequence[Call]) -> list[ToolResult]:
        """One result per call and in their order; a call that is no search gets an error.

        Raises:
            TaskFailed: the retriever failed, and `on_failure` is "stop".
        """
        queries = [_query(call) for call in calls]
        wanted = [query for query in queries if query is not None]
        if self.renaming is not None:
            wanted = [self.renaming.original(query) for query in wanted]
        try:
            found = iter(await self._found(wanted))
        except TaskFailed as error:
            if self.on_failure == "stop":
                raise
            return [ToolResult(call, error=f"the search failed: {error}") for call in calls]
        return [
            ToolResult(call, error="only search takes calls here, with a query")
            if query is None
            else self._result(call, next(found))
            for call, query in zip(calls, queries, strict=True)
        ]

    async def _found(self, queries: Sequence[str]) -> list[list[Passage]]:
        """What is found; a searcher that waits for something else lets other episodes go on."""
        if isinstance(self.searcher, Waiting):
            return await self.searcher.find(queries)
        return self.searcher.search(queries)

    def _result(self, call: Call, passages: Sequence[Passage]) -> ToolResult:
        if self.renaming is not None:
            passages = [self.renaming.passage(passage) for passage in passages]
        if self.spoken:
            return ToolResult(call, "" if passages else NOTHING_FOUND, tuple(passages))
        # A formal language says all in its sentences: no numbers, no titles.
        return ToolResult(call, " ".join([p.text for p in passages]), tuple(passages))


@dataclass(frozen=True, slots=True)
class SearchEpisode:
    """One question being answered."""

    task: Task
    messages: tuple[Message, ...]
    desk: Desk

    async def step(self, action: Action) -> Outcome:
        """The end, if the action answers, else what its queries found.

        Raises:
            TaskFailed: the retriever failed.
        """
        if action.answer is not None:
            return Outcome(done=True, answer=action.answer)
        return Outcome(observation=self.desk.protocol.render(await self.desk.answer(action.calls)))

    async def close(self) -> None:
        """Nothing is held open."""


def _query(call: Call) -> str | None:
    query = call.arguments.get("query")
    return query if call.tool == "search" and isinstance(query, str) else None
