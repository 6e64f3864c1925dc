"""The list of mutants fits the code as it stands; running them is ``make mutate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mutants.listed import MUTANTS, TESTS, Mutant, finders
from tests.mutants.trial import keyword, mutated

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "agentrecipes"


def label(mutant: Mutant) -> str:
    return f"{mutant.file}: {mutant.reason}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_the_old_text_occurs_exactly_once(mutant):
    assert (SRC / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_the_new_text_is_another_and_still_python(mutant):
    text = (SRC / mutant.file).read_text(encoding="utf-8")
    assert mutant.new != mutant.old
    assert compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")


def test_there_are_enough_and_no_two_are_the_same():
    assert len(MUTANTS) >= 40
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_file_of_formulas_and_algorithms_has_a_mutant():
    # Those that are missing hold no formula of their own: fields, protocols, and compositions of
    # what has mutants elsewhere.
    none_of_its_own = {"fields", "protocol", "reinforce", "reinforce_pp", "step_ppo", "vl_dac"}
    none_of_its_own |= {"answer_text", "streams"}  # text and seeds
    files = [p for folder in ("numerics", "algorithms") for p in (SRC / folder).glob("[a-z]*.py")]
    with_mutants = {Path(mutant.file).stem for mutant in MUTANTS}
    assert {path.stem for path in files} - with_mutants == none_of_its_own


def test_the_tests_that_are_to_find_them_are_there():
    assert all((ROOT / test).exists() for tests in TESTS.values() for test in tests)
    assert all(finders(mutant) for mutant in MUTANTS)


def test_a_mutant_is_applied_to_the_copy_alone(tmp_path):
    mutant = next(mutant for mutant in MUTANTS if mutant.file == "algorithms/cispo.py")
    copy = tmp_path / "src" / "agentrecipes" / mutant.file
    copy.parent.mkdir(parents=True)
    original = (SRC / mutant.file).read_text(encoding="utf-8")
    copy.write_text(original, encoding="utf-8")
    mutated(tmp_path, mutant)
    assert copy.read_text(encoding="utf-8") == original.replace(mutant.old, mutant.new)
    assert (SRC / mutant.file).read_text(encoding="utf-8") == original
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutated(tmp_path, mutant)


def test_an_algorithms_own_file_is_tried_before_its_own_tests():
    assert keyword(Mutant("algorithms/gspo.py", "", "", "")) == "gspo"
    assert keyword(Mutant("algorithms/credit.py", "", "", "")) == ""
    assert keyword(Mutant("numerics/masked.py", "", "", "")) == ""
