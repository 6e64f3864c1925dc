"""A world of three rooms that needs no library: what episodes are played in here."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


class State(SimpleNamespace):
    """What TextWorld gives back: text by key, the rest by name."""

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


class Interpreter:
    """A game: two steps east for a point each; a step west from the first room is the end."""

    def __init__(self) -> None:
        self.room, self.closed = 0, False

    def state(self) -> State:
        """Where the player stands."""
        return State(
            feedback=f"\n\n-= Room {self.room} =-\nIt is   quiet.\n\n>     -= Room =-0/3",
            admissible_commands=["go east", "go west"],
            score=max(self.room, 0),
            max_score=2,
            won=self.room == 2,
            lost=self.room < 0,
        )

    def step(self, command: str) -> tuple[State, float, bool]:
        """The state after a command."""
        if command == "break":
            raise OSError("the lamp broke")
        self.room += {"go east": 1, "go west": -1}.get(command, 0)
        return self.state(), 0.0, False

    def close(self) -> None:
        """Nothing can be said any more."""
        self.closed = True


@dataclass
class World:
    """A world in Gymnasium's form: right is 1; the third field is the goal; a step costs 0.25."""

    field: int = 0
    closed: bool = False

    def step(self, action: int) -> tuple[tuple[int, int], float, bool, bool, dict[str, Any]]:
        """One field on, or back."""
        if action == 2:
            raise ValueError("no such thing")
        self.field = max(0, self.field + (1 if action == 1 else -1))
        over = self.field == 2
        return (self.field, 2 - self.field), 1.0 if over else -0.25, over, False, {}

    def render(self) -> str:
        """A drawing in colours."""
        fields = ["S", "F", "G"]
        fields[self.field] = f"\x1b[41m{fields[self.field]}\x1b[0m"
        return "  (Right)\n" + "".join(fields) + "\n\n"

    def close(self) -> None:
        """It is over."""
        self.closed = True
