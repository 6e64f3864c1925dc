"""A small environment of every awkward kind, and collections in it with a scripted engine."""

import asyncio
from dataclasses import dataclass, field

from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.environments.protocol import OnInvalid, Outcome
from agentrecipes.errors import TaskFailed
from agentrecipes.models.words import word_tokenizer
from agentrecipes.records import Action, Call, Message, Task
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect

WORDS = ("look", "say", " yes", " no", " door", " wall", " !", "seen", " it", "go", " on", "ask")
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tokenizer(template=None):
    made = word_tokenizer(WORDS)
    if template is not None:
        made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        made.eos_token = "<|im_end|>"
        made.chat_template = template
    return made


@dataclass(frozen=True)
class Orders:
    """``look … !`` calls the tool, ``say … !`` answers; anything else is no action."""

    observation_role: str = "inline"
    stop: tuple[str, ...] = (" !",)

    def parse(self, text):
        verb, _, rest = text.partition(" ")
        if verb == "look" and rest.endswith(" !"):
            return Action(calls=(Call("look", {"at": rest[:-2]}),))
        if verb == "say" and rest.endswith(" !"):
            return Action(answer=rest[:-2])
        return Action(error=f"what is {text!r}")

    def write(self, action):
        return (
            f"look {action.calls[0].arguments['at']} !"
            if action.calls
            else f"say {action.answer} !"
        )

    def hint(self, error):
        return "go on"


@dataclass
class Room:
    """An episode whose outcomes are looked up by what the action looks at."""

    task: Task
    outcomes: dict[str, object]
    delay: float = 0.0
    closed: bool = False
    messages: tuple[Message, ...] = (Message("user", "ask yes"),)

    async def step(self, action):
        if action.answer is not None:
            return Outcome(done=True, answer=action.answer)
        await asyncio.sleep(self.delay)
        outcome = self.outcomes.get(action.calls[0].arguments["at"], "seen it")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, Outcome) else Outcome(observation=outcome)

    async def close(self):
        self.closed = True


@dataclass
class House:
    """The environment: rooms for any task; a task may name its delay."""

    protocol: Orders = Orders()
    max_turns: int = 4
    on_invalid: OnInvalid = field(default_factory=OnInvalid)
    outcomes: dict[str, object] = field(default_factory=dict)
    opened: list[Room] = field(default_factory=list)

    def open(self, task, seed):
        room = Room(task, self.outcomes, delay=task.data.get("delay", 0.0))
        self.opened.append(room)
        return room


TASK = Task("t", "train", "ask", ("yes",))
BROKEN = {"wall": TaskFailed("the wall fell"), "door": KeyError("door")}


def play_texts(*texts: str, house=None, template=None, **limits: object):
    """The trajectory of one attempt that says `texts`, and the engine that said them."""
    made = tokenizer(template)
    engine = ScriptedEngine(made, lambda request: texts[request.key[-2]])
    setting = Setting(house or House(), engine, Chat(made), **limits)
    [trajectory] = collect([Job(TASK, "t", key=(7, "stage", 0, "rollout"))], setting)
    return trajectory, engine
