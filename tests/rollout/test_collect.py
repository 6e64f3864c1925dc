"""Many episodes at once: who is sampled together, what is waited for, and for how long."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from playground import BROKEN, House, Room, tokenizer

from agentrecipes.engines.native import Native
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.errors import EngineError, RecipeError
from agentrecipes.models.tiny import Tiny
from agentrecipes.records import Stop, Task
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect

TOKENIZER = tokenizer()
CHAT = Chat(TOKENIZER)


@dataclass
class Watched:
    """A scripted engine that notes who was sampled together, as (task, turn) pairs."""

    answer: object
    seconds: float = 0.0
    batches: list[list[tuple[str, int]]] = field(default_factory=list)

    async def generate(self, requests):
        self.batches.append([(r.key[-4], r.key[-2]) for r in requests])
        await asyncio.sleep(self.seconds)
        return await ScriptedEngine(TOKENIZER, self.answer).generate(requests)


@dataclass
class Joinable(Watched):
    """One that can be joined; the turns of task 0 wait for `gate`, if there is one."""

    gate: asyncio.Event | None = None
    given: list[asyncio.Future] = field(default_factory=list)

    def submit(self, requests):
        self.batches.append([(r.key[-4], r.key[-2]) for r in requests])
        made = [asyncio.ensure_future(self.one(request)) for request in requests]
        self.given += made
        return made

    async def one(self, request):
        if self.gate is not None and request.key[-4] == "0":
            await self.gate.wait()
        [sample] = await ScriptedEngine(TOKENIZER, self.answer).generate([request])
        return sample


def turns_of(*numbers: int):
    """Task i answers after numbers[i] turns of looking."""
    return lambda r: "say yes !" if r.key[-2] >= numbers[int(r.key[-4])] else "look door !"


def jobs(count, **data: float):
    return [Job(Task(str(i), "train", "ask", data=data), str(i)) for i in range(count)]


def setting(engine, house=None, **fields: object):
    return Setting(house or House(), engine, CHAT, **fields)


def test_in_fixed_order_all_are_sampled_together_at_every_turn():
    engine = Watched(turns_of(0, 2, 1))
    found = collect(jobs(3), setting(engine))
    assert engine.batches == [[("0", 0), ("1", 0), ("2", 0)], [("1", 1), ("2", 1)], [("1", 2)]]
    assert [t.task.id for t in found] == ["0", "1", "2"]
    assert [len(t.turns) for t in found] == [1, 3, 2]


def test_in_fixed_order_the_slowest_tool_is_waited_for():
    made = jobs(3)
    made[0] = Job(replace(made[0].task, data={"delay": 0.05}), "0")
    engine = Watched(turns_of(1, 1, 1))
    collect(made, setting(engine))
    assert engine.batches == [[(n, turn) for n in "012"] for turn in (0, 1)]


def test_in_ready_order_a_slow_tool_delays_only_its_own_episode():
    made = jobs(3)
    made[0] = Job(replace(made[0].task, data={"delay": 0.2}), "0")
    engine = Watched(turns_of(1, 2, 2))
    found = collect(made, setting(engine, order="ready"))
    assert engine.batches[0] == [("0", 0), ("1", 0), ("2", 0)]
    assert engine.batches[-1] == [("0", 1)]
    assert [t.task.id for t in found] == ["0", "1", "2"]


@pytest.mark.parametrize("order", ["fixed", "ready"])
def test_no_more_episodes_run_at_once_than_allowed(order):
    house, engine = House(), Watched(turns_of(*[1] * 5))
    found = collect(jobs(5), setting(engine, house, order=order, concurrency=2))
    assert max(map(len, engine.batches)) == 2
    assert [t.task.id for t in found] == list("01234")
    assert all(room.closed for room in house.opened)


def test_an_episode_that_fails_leaves_the_others_alone():
    house = House(outcomes={"wall": BROKEN["wall"]})
    engine = Watched(lambda r: "look wall !" if r.key[-4] == "1" else turns_of(2, 2, 2)(r))
    found = collect(jobs(3), setting(engine, house))
    assert [t.stop for t in found] == [Stop.ANSWERED, Stop.TOOL_ERROR, Stop.ANSWERED]


@pytest.mark.parametrize("order", ["fixed", "ready"])
def test_a_sampler_that_fails_ends_the_collection(order):
    def fail(_: object) -> str:
        raise EngineError("out of memory.")

    house = House()
    with pytest.raises(EngineError, match="out of memory"):
        collect(jobs(3), setting(Watched(fail), house, order=order))
    assert all(room.closed for room in house.opened)


def test_a_sampler_that_hangs_ends_the_collection_by_name():
    engine = Watched(turns_of(0, 0), seconds=30)
    with pytest.raises(EngineError, match=r"nothing within 0\.05 s"):
        collect(jobs(2), setting(engine, engine_seconds=0.05))


def test_progress_is_told_after_every_episode():
    told = []
    collect(
        jobs(3), setting(Watched(turns_of(0, 1, 0)), on_progress=lambda *each: told.append(each))
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_nothing_to_collect_is_nothing():
    assert collect([], setting(Watched(turns_of()))) == []


def test_collecting_works_where_a_loop_is_running_already():
    async def notebook() -> list[str]:
        return [t.task.id for t in collect(jobs(2), setting(Watched(turns_of(0, 0))))]

    assert asyncio.run(notebook()) == ["0", "1"]


def test_a_role_that_the_template_lacks_stops_before_anything_is_sampled():
    made = tokenizer("{% for m in messages %}{% if m['role'] == 'tool' %}"
                     "{{ raise_exception('no tools') }}{% endif %}[{{ m['role'] }}]"
                     "{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}[assistant]"
                     "{% endif %}")  # fmt: skip
    engine, house = Watched(turns_of(0)), House()
    house.protocol = replace(house.protocol, observation_role="tool")
    with pytest.raises(RecipeError, match="no tools"):
        collect(jobs(1), Setting(house, engine, Chat(made)))
    assert engine.batches == []


def test_greedy_and_sampled_requests_say_so():
    for fields, expected in [
        ({"greedy": True, "top_p": 0.5}, (0.0, 1.0)),
        ({"top_p": 0.5}, (1.0, 0.5)),
    ]:
        engine = ScriptedEngine(TOKENIZER, lambda _: "say yes !")
        collect(jobs(1), setting(engine, **fields))
        assert [(r.temperature, r.top_p) for r in engine.requests] == [expected]


@pytest.fixture(scope="module")
def tiny():
    part = Tiny(layers=1, mlp=32)
    tokenizer = part.tokenizer()
    engine = Native().start(part.build(0), tokenizer)
    yield engine, Chat(tokenizer)
    engine.close()


def test_a_trajectory_does_not_depend_on_its_company_or_on_the_order(tiny):
    engine, chat = tiny
    made = [Job(j.task, j.group, attempt, key=(1,)) for j in jobs(3) for attempt in range(4)]
    shared = {"tokens_per_turn": 8, "tokens": 60}
    house = House(max_turns=3)
    together = collect(made, Setting(house, engine, chat, **shared))
    ready = collect(made, Setting(house, engine, chat, order="ready", **shared))
    waves = collect(made, Setting(house, engine, chat, concurrency=5, **shared))
    expected = [[turn.action for turn in each.turns] for each in together]
    for found in (ready, waves):
        assert [[turn.action for turn in each.turns] for each in found] == expected
    assert len({tuple(each) for each in map(tuple, expected)}) > 6  # attempts differ


def gated_house(gate, **fields: object):
    """The playground's house, in which a task with data "gate" waits for `gate` at its tool."""

    class Waiting(Room):
        async def step(self, action) -> object:
            if "gate" in self.task.data and action.answer is None:
                await gate.wait()
            return await super().step(action)

    class Gated(House):
        def open(self, task, seed) -> object:
            return Waiting(task, self.outcomes)

    return Gated(**fields)


@pytest.mark.parametrize("kind", ["Watched", "Joinable"])
def test_in_ready_order_a_tool_that_hangs_delays_only_its_own_episode(kind):
    # Task 0's tool answers when all other episodes are over: fixed order would never end.
    gate, over = asyncio.Event(), []
    made = jobs(4)
    made[0] = replace(made[0], task=replace(made[0].task, data={"gate": 1.0}))
    engine = {"Watched": Watched, "Joinable": Joinable}[kind](turns_of(1, 2, 2, 0))
    watch = opener(gate, over)
    found = collect(made, setting(engine, gated_house(gate), order="ready", on_progress=watch))
    assert over == [1, 2, 3, 4]
    assert [len(t.turns) for t in found] == [2, 3, 3, 1]


def opener(gate, over):
    """A progress that notes what it is told, and opens `gate` when one episode is left."""

    def progress(done, total) -> None:
        over.append(done)
        if done == total - 1:
            gate.set()

    return progress


def test_in_ready_order_a_turn_that_is_long_delays_only_its_own_episode():
    gate, over = asyncio.Event(), []
    engine = Joinable(turns_of(1, 2, 0), gate=gate)
    found = collect(jobs(3), setting(engine, order="ready", on_progress=opener(gate, over)))
    assert over == [1, 2, 3]
    assert [len(t.turns) for t in found] == [2, 3, 1]
    assert engine.batches[0] == [("0", 0), ("1", 0), ("2", 0)]
    assert engine.batches[-1] == [("0", 1)]


def test_in_ready_order_a_sampler_that_hangs_ends_the_collection_by_name():
    engine = Joinable(turns_of(0, 0), gate=asyncio.Event())
    with pytest.raises(EngineError, match=r"nothing within 0\.05 s"):
        collect(jobs(2), setting(engine, order="ready", engine_seconds=0.05))
    assert all(future.done() for future in engine.given)


def test_in_ready_order_a_sampler_that_fails_half_way_ends_the_collection():
    def fail(request: object) -> str:
        raise EngineError("out of memory.")

    with pytest.raises(EngineError, match="out of memory"):
        collect(jobs(2), setting(Joinable(fail), order="ready"))


@pytest.mark.parametrize("order", ["fixed", "ready"])
def test_a_tool_that_takes_its_time_is_used_by_all_episodes_at_once(order):
    # The tools of 64 episodes give their answers when all 64 have been asked.
    gate, asked = asyncio.Event(), []

    class Counting(Room):
        async def step(self, action) -> object:
            if action.answer is None:
                asked.append(self.task.id)
                if len(asked) == 64:
                    gate.set()
                await gate.wait()
            return await super().step(action)

    class Hall(House):
        def open(self, task, seed) -> object:
            return Counting(task, self.outcomes)

    found = collect(jobs(64), setting(Watched(turns_of(*[1] * 64)), Hall(), order=order))
    assert [t.stop for t in found] == [Stop.ANSWERED] * 64
