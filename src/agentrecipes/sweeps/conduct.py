"""A sweep while it runs: trials are handed to workers, judged as they go, and never run twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optuna.trial import TrialState

from agentrecipes.errors import RunStopped
from agentrecipes.sweeps.curve import Curve
from agentrecipes.sweeps.load import Sweep
from agentrecipes.sweeps.places import Places
from agentrecipes.sweeps.pool import Pool, Said
from agentrecipes.sweeps.storage import HEARTBEAT_SECONDS
from agentrecipes.sweeps.study import OVER, Study
from agentrecipes.sweeps.trials import Live, Trials
from agentrecipes.training.signals import StopFlag

LISTEN_SECONDS = 0.5  # between two looks at the wish to stop
HOPELESS = 3  # trials that fail before any succeeds: then the sweep itself is wrong


class Conductor:
    """Hands out trials until the study has as many as it wants."""

    def __init__(
        self, study: Study, places: Places, pool: Pool, *, say: Callable[[str], None]
    ) -> None:
        self.sweep: Sweep = study.sweep
        self.study = study
        self._trials = Trials(study, places, say)
        self.pool = pool
        self.say = say
        self.stop = StopFlag()
        self.on_end: Callable[[Live, str], None] = lambda live, state: None
        self._busy: dict[int, Live] = {}
        self._waiting: list[Live] = []
        self._seen = 0.0

    def go(self) -> bool:
        """Run until all trials are over; False where a wish to stop came first.

        Raises:
            StorageLost: the storage went away; what was under way is saved.
            RunStopped: one trial after the other failed.
        """
        try:
            with self.stop:
                told = False
                while self._hand_out() or self._busy:
                    if self.stop.asked and not told:
                        told = True
                        self.say("stopping: the runs under way are being saved")
                        self.pool.stop()
                    said = self.pool.hear(LISTEN_SECONDS)
                    if said is not None:
                        self._heard(said)
                    self._sign_of_life()
        finally:
            self.pool.stop()  # a no-op for workers without a job
            self.pool.close()
        return not self.stop.asked

    # What is done next.

    def _hand_out(self) -> bool:
        """Give each idle worker a job; whether any was given."""
        given = False
        for worker in self.pool.numbers:
            if worker in self._busy or self.stop.asked:
                continue
            live = self._next()
            if live is None:
                break
            self._busy[worker] = live
            self.pool.send(worker, self._trials.job(live))
            given = True
        return given

    def _next(self) -> Live | None:
        """The next trial that passes the recipe's check."""
        while (live := self._candidate()) is not None:
            _, problems = self.sweep.recipe_of(
                live.values, self.sweep.seed(len(live.results), live.values)
            )
            errors = [str(problem) for problem in problems if problem.severity == "error"]
            if not errors:
                return live
            self._end(live, TrialState.FAIL, reason=errors[0])
        return None

    def _candidate(self) -> Live | None:
        if self._waiting:
            return self._waiting.pop(0)
        return self._trials.candidate({live.number for live in self._busy.values()})

    # What workers say.

    def _heard(self, said: Said) -> None:
        live = self._busy.get(said.worker)
        match said.message["do"]:
            case "evaluation" if live is not None:
                self.pool.send(said.worker, {"do": "answer", "go": self._goes_on(live, said)})
            case "done" if live is not None:
                del self._busy[said.worker]
                self._done(live, said.message["status"], said.message["reason"])
            case "gone":
                code = self.pool.forget(said.worker)
                if live is not None:
                    del self._busy[said.worker]
                    self._killed(live, code)

    def _goes_on(self, live: Live, said: Said) -> bool:
        curve = Curve(self.sweep, tuple(result[0] for result in live.results))
        point = curve.point(said.message["row"])
        return point is None or not self.study.report(live.trial, *point)

    def _done(self, live: Live, status: str, reason: str) -> None:
        if status == "interrupted":
            if not self.stop.asked:
                self._waiting.append(live)
        elif status == "pruned":
            self._end(live, TrialState.PRUNED)
        elif status != "finished":
            self._end(live, TrialState.FAIL, reason=reason or status)
        elif (result := self._trials.result(live)) is None:
            self._end(live, TrialState.FAIL, reason="its metric was never measured")
        else:
            self._judge(replace(live, results=(*live.results, result)))

    def _judge(self, live: Live) -> None:
        """One seed more is done."""
        before = tuple(result[0] for result in live.results[:-1])
        point = Curve(self.sweep, before).after_seed(live.results[-1][0])
        prune = point is not None and self.study.report(live.trial, *point)
        if len(live.results) == self.sweep.fields.seeds:
            self._end(live, TrialState.COMPLETE)
        elif prune:
            self._end(live, TrialState.PRUNED)
        else:
            self._waiting.insert(0, live)

    def _killed(self, live: Live, code: int) -> None:
        if self.stop.asked:
            return
        live = replace(live, tries=live.tries + 1)
        self.study.keep(live.trial, tries=live.tries)
        how = (
            f"its process was killed by signal {-code}" if code < 0 else f"its process ended {code}"
        )
        if live.tries > self.sweep.fields.retries:
            self._end(live, TrialState.FAIL, reason=f"{how}, {live.tries} times")
        else:
            self.say(f"trial {live.number}: {how}; trying again")
            self._waiting.insert(0, live)

    def _end(self, live: Live, state: TrialState, reason: str = "") -> None:
        if reason:
            self.study.keep(live.trial, reason=reason)
        values = live.means() if state == TrialState.COMPLETE else None
        self.study.tell(live.trial, values, state)
        shown = " ".join(f"{value:.4g}" for value in values or ())
        word = state.name.lower() if state != TrialState.FAIL else f"failed: {reason}"
        self.say(f"trial {live.number}: {shown or word}  {_short(live.values)}")
        self.on_end(live, word)
        trials = self.study.trials()
        failed = [trial for trial in trials if trial.state == TrialState.FAIL]
        if len(failed) >= HOPELESS and not any(t.state in OVER[:2] for t in trials):
            raise RunStopped(f"the first {len(failed)} trials failed. The last: {reason}")

    def _sign_of_life(self) -> None:
        if time.monotonic() - self._seen < HEARTBEAT_SECONDS:
            return
        self._seen = time.monotonic()
        self.study.alive([live.trial for live in (*self._busy.values(), *self._waiting)])


def _short(values: dict[str, Any]) -> str:
    """Values under the last word of their paths, for a line."""
    shown = []
    for path, value in values.items():
        words = path.split(".")
        name = ".".join(words[-2:]) if words[-1] == "name" else words[-1]
        shown.append(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}")
    return " ".join(shown)
