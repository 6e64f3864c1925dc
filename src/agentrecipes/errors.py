"""Every error that a user can meet, and whose fault it is.

A message reads ``<where>: <what was found>. <what to do>.``; values are quoted with ``!r``. Each
class also inherits its builtin, and names the exit code of the command that it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a recipe, and what to write instead.

    Example: ``Problem(code="unknown_key", path="rollout.task", message="no field is called 'task'",
    suggestion="Did you mean 'tasks'?", file="r.yaml", line=7, column=3)``.
    """

    code: str  # stable, for programs: unknown_key, unknown_part, wrong_type, ...
    path: str  # dotted, as on the command line; "" for the whole file
    message: str
    suggestion: str = ""
    severity: str = "error"  # "error" stops everything; "warning" is only shown
    file: str | None = None
    line: int | None = None  # from 1
    column: int | None = None  # from 1

    def __str__(self) -> str:
        place = ":".join(
            str(part) for part in (self.file, self.line, self.column) if part is not None
        )
        head = " ".join(part for part in (place, self.path) if part)
        text = f"{head}: {self.message}" if head else self.message
        return f"{text}. {self.suggestion}" if self.suggestion else f"{text}."

    def at(self, file: str | None, line: int | None, column: int | None) -> Problem:
        """The same problem with its place in a file."""
        return replace(self, file=file, line=line, column=column)

    def as_dict(self) -> dict[str, object]:
        """The keys of ``check --json``."""
        return asdict(self)


class AgentRecipesError(Exception):
    """What a command reports in one line instead of a traceback."""

    exit_code = 1


class RecipeError(AgentRecipesError, ValueError):
    """The recipe or the command line is wrong: nothing was started and nothing was written."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = [Problem(code="recipe", path="", message=problems.rstrip("."))]
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def about(cls, code: str, message: str, suggestion: str = "", *, path: str = "") -> RecipeError:
        """The error of one problem."""
        return cls([Problem(code, path, message, suggestion)])

    def __reduce__(self) -> tuple[type[RecipeError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class MissingExtra(AgentRecipesError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""

    exit_code = 3


def of_problems(problems: Sequence[Problem]) -> AgentRecipesError:
    """What to raise for errors in a recipe: it may be right, and only an extra be missing."""
    if problems and {problem.code for problem in problems} == {"missing_extra"}:
        return MissingExtra("\n".join(str(problem) for problem in problems))
    return RecipeError(problems)


class CheckFailed(AgentRecipesError, AssertionError):
    """A check did not hold: ``verify``, ``--locked``, a hash of a checkpoint or a bundle."""

    exit_code = 4


class TaskFailed(AgentRecipesError, RuntimeError):
    """An environment or a tool failed: recorded on its trajectory, never the end of a run."""


class EngineError(AgentRecipesError, RuntimeError):
    """The sampler failed: the run saves what it has and stops."""


class RunStopped(AgentRecipesError, RuntimeError):
    """A tripwire stopped the run; the message holds its evidence."""
