from __future__ import annotations

from tests.shape.source import ROOT

from agentrecipes.cli.reference import field_table, main, page
from agentrecipes.recipe.schema import Rollout


def test_the_page_of_fields_is_the_one_that_the_records_make():
    stored = (ROOT / "docs" / "recipe.md").read_text(encoding="utf-8")
    assert page() == stored, "make docs writes it anew"


def test_a_field_has_its_type_default_and_meaning():
    rows = {line.split("|")[1].strip(): line for line in field_table(Rollout).splitlines()}
    assert rows["`group_size`"] == "| `group_size` | int ≥ 1 | `8` | attempts a task |"
    assert "`native`" in rows["`engine`"]


def test_the_page_goes_where_it_is_told(tmp_path):
    main([str(tmp_path / "docs" / "page.md")])
    assert (tmp_path / "docs" / "page.md").read_text(encoding="utf-8") == page()
