"""What the trainer does about an engine that samples from something else, or that fails."""

import math

import pytest
from small import Quiet, collector, experiment, ready, small

from agentrecipes.errors import EngineError, RunStopped
from agentrecipes.experiment import run
from agentrecipes.recipe.schema import Stage
from agentrecipes.training import checkpoints
from agentrecipes.training.position import Position
from agentrecipes.training.stage import StageRun

SHORT = ("stages.imitate.steps=1", "evaluation.every=0")


def astray(**fields: object) -> str:
    inside = "".join(f", {name}: {value}" for name, value in fields.items())
    return "rollout.engine={name: astray" + inside + "}"


def stage_run(folder, *overrides: str):
    """A collecting stage that is ready to run, its observer and the run."""
    made, fields, sampler = ready(small(*SHORT, *overrides), folder / "run")
    observer = Quiet()

    def at(iteration: int) -> Stage:
        return fields

    return StageRun(at, made.policy.module, sampler, observer), observer, made


@pytest.mark.parametrize("minibatches", [1, 2])
def test_the_gap_to_the_sampler_is_measured_before_the_weights_move(tmp_path, minibatches):
    stage, observer, _ = stage_run(
        tmp_path,
        astray(nats=0.25),
        f"stages.reinforce.trainer.minibatches={minibatches}",
        "stages.reinforce.iterations=1",
        "stages.reinforce.optimizer.learning_rate=1",
    )
    stage.run(Position())
    assert math.isclose(observer.figures[0]["sync/logp_gap_max"], 0.25, abs_tol=1e-4)


def test_a_gap_within_the_bound_is_no_matter(tmp_path):
    stage, observer, _ = stage_run(
        tmp_path, astray(nats=0.25, most=0.3), "stages.reinforce.iterations=1"
    )
    stage.run(Position())
    assert len(observer.figures) == 1


@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_gap_beyond_the_bound_stops_before_anything_is_trained(tmp_path, minibatches):
    stage, _, made = stage_run(
        tmp_path,
        astray(nats=0.25, most=0.2),
        f"stages.reinforce.trainer.minibatches={minibatches}",
    )
    before = {name: t.clone() for name, t in made.policy.module.model.state_dict().items()}
    with pytest.raises(RunStopped, match=r"0\.25 nats .* 0\.25 on average, and 0\.2 is allowed"):
        stage.run(Position())
    after = made.policy.module.model.state_dict()
    assert all(bool((after[name] == tensor).all()) for name, tensor in before.items())


def test_a_run_that_samples_from_elsewhere_is_stopped_and_says_why(tmp_path):
    summary = run(experiment(small(*SHORT, astray(nats=0.5, most=0.01)), tmp_path / "run"))
    assert summary["status"] == "stopped"


def test_an_engine_that_fails_ends_the_run_with_a_checkpoint_of_where_it_stood(tmp_path):
    # Version 1 after imitation, 2 after the first iteration: the second one cannot be collected.
    recipe = small(*SHORT, astray(fails_at=2), "stages.reinforce.trainer.checkpoint_every=100")
    with pytest.raises(EngineError, match="it went away"):
        run(experiment(recipe, tmp_path / "run"))
    found = checkpoints.newest(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert (found.state["stage"], found.state["position"]["iteration"]) == (1, 1)


def test_the_engine_rests_while_the_trainer_trains(tmp_path):
    made, fields, _ = collector(tmp_path, astray())
    made.iteration(fields, Position())
    assert made._sampler.engine.rests == 1
