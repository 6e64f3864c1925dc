"""The report as its readers use it: with a mouse, a keyboard, a phone, and without JavaScript."""

from __future__ import annotations

import pytest
from tests.tracking.report_made import HOSTILE

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}
STROKE = 2.2  # the width of a line, which its box has too


def shown(page):
    """The names of the trajectories in the list that are not filtered out."""
    return page.locator("#list .option:not([hidden]) b").all_text_contents()


def told(page):
    """What the token under the pointer or the keys says, line by line."""
    return page.locator("#tip > *").all_inner_texts()


def test_the_curve_is_drawn_where_its_values_are(open_page):
    page = open_page()
    plot = page.locator("#score-0 .plot > svg")
    frame = plot.bounding_box()
    line = page.locator("#score-0 path.line").first.bounding_box()
    # From 0.0 at the start of the first stage to 0.75 at the end of the second, of an axis to 1.
    assert line["width"] == pytest.approx(frame["width"], rel=1e-2)
    assert line["height"] - STROKE == pytest.approx(0.75 * frame["height"], rel=1e-2)
    last = page.locator("#score-0 .dots:not(.single) circle").last.bounding_box()
    assert last["x"] + last["width"] / 2 == pytest.approx(frame["x"] + frame["width"], rel=1e-2)
    assert page.locator("#score-0 .band").count() == 1


def test_arrow_keys_open_trajectories_and_go_from_token_to_token(open_page):
    page = open_page()
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#open h3").inner_text() == "t0"
    active = page.locator("#list").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert told(page)[0] == '" Romulus"'
    page.keyboard.press("ArrowRight")
    # The second token: log-probability -0.25, so exp(-0.25) = 77.9 %; it was trained on.
    assert told(page) == [
        '"<answer>"',
        "token 7",
        "log-probability -0.2500 (p = 77.9 %)",
        "advantage 0.5, the trajectory's mean",
    ]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "list"
    assert page.locator("#tip").is_hidden()


def test_every_control_is_reached_by_the_tab_key(open_page):
    page = open_page()
    page.locator("#by-place").focus()
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached[:4] == ["by-reward", "by-stop", "by-text", "list"]


def test_trained_tokens_are_marked_and_those_of_an_evaluation_are_not(open_page):
    page = open_page()
    page.locator("#list .option", has_text="Remus").click()
    trained = page.locator("#open .tok.trained:not(.token-legend *)")
    assert trained.count() == 6  # two turns of three tokens
    assert "underline" in trained.first.evaluate("node => getComputedStyle(node).textDecoration")
    assert page.locator("#open .observation .tok").count() == 0
    page.locator("#list .option", has_text="test-0").click()
    assert page.locator("#open .tok.trained").count() == 0
    assert page.locator("#open .turns .tok.sampled").count() == 6


def test_a_trajectory_without_a_reward_was_not_trained_on(open_page):
    page = open_page()
    page.locator("#list .option", has_text="t1").last.click()
    assert page.locator("#open .tok.trained").count() == 0


def test_hovering_a_token_tells_its_figures(open_page):
    page = open_page()
    page.locator("#list .option", has_text="Remus").click()
    page.locator("#open .turns .tok").nth(2).hover()
    assert "log-probability -0.5000" in page.locator("#tip").inner_text()
    assert told(page)[-1] == "advantage -0.25"  # its own: the trajectory's mean is -0.5
    page.locator("#open .turns .tok").nth(5).hover()
    assert told(page)[-1] == "advantage -0.5"
    page.locator("h1").hover()
    assert page.locator("#tip").is_hidden()


def test_turns_read_as_a_conversation(open_page):
    page = open_page()
    page.locator("#list .option", has_text="Remus").click()
    said = page.locator("#open .who b").all_text_contents()
    assert said == ["Prompt", "Policy, turn 1", "Observation", "Policy, turn 2"]
    texts = page.locator("#open .turns .text").all_inner_texts()
    assert texts[0] == "question : who founded Rome?"
    assert texts[2] == " Rome Romulus"


def test_filters_by_place_reward_stop_and_words(open_page):
    page = open_page()
    everything = ["test-0", "test-1", "t0", "t0", "t1"]
    assert shown(page) == everything
    page.select_option("#by-reward", label="0 (1)")
    assert shown(page) == ["t0"]
    assert page.locator("#open h3").inner_text() == "t0"  # what is open is always in the list
    assert page.locator("#count").inner_text() == "1 of 5"
    page.select_option("#by-reward", label="could not be computed (1)")
    assert shown(page) == ["t1"]
    page.select_option("#by-reward", "")
    page.select_option("#by-stop", label="tool_error (1)")
    assert shown(page) == ["t1"]
    page.select_option("#by-stop", "")
    page.select_option("#by-place", label="training, reinforce 19 (3)")
    assert shown(page) == ["t0", "t0", "t1"]
    page.select_option("#by-place", "")
    page.fill("#by-text", "REMUS")
    assert shown(page) == ["t0"]
    page.fill("#by-text", "who founded")  # something the prompt says
    assert shown(page) == everything
    page.fill("#by-text", "nobody said this")
    assert shown(page) == []
    assert "No trajectory fits" in page.locator("#open").inner_text()


def test_the_attempts_of_a_group_are_a_click_apart(open_page):
    page = open_page()
    page.locator("#list .option", has_text="Remus").click()
    assert page.locator(".siblings button").all_inner_texts() == ["1", "0"]
    page.locator(".siblings button").first.click()
    assert "attempt 0" in page.locator("#open header").inner_text()
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"


def test_a_hostile_answer_is_read_and_not_run(open_page):
    page = open_page()
    page.locator("#list .option", has_text="test-1").click()
    assert HOSTILE in page.locator("#open .facts").inner_text()
    assert page.locator("img").count() == 0  # and the fixture fails on a dialog


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_a_tap_opens_a_trajectory(open_page, scheme):
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.locator("#list .option", has_text="Remus").tap()
    page.locator("#open .turns .tok").nth(1).tap()
    tip = page.locator("#tip").bounding_box()
    assert tip["x"] >= 0
    assert tip["x"] + tip["width"] <= PHONE["width"]
    assert "log-probability -0.2500" in page.locator("#tip").inner_text()
    labels = page.locator("#score-0 .grid text").first.evaluate(
        "node => parseFloat(getComputedStyle(node).fontSize)"
    )
    assert labels >= 12  # curves shrink on a phone, their words do not


def test_dark_and_light_are_the_reader_s_choice(open_page):
    colours = [
        open_page(color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(251, 250, 247)", "rgb(19, 22, 27)"]


def test_without_javascript_the_figures_are_there(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("#score-0 path.line").first.bounding_box()["height"] > 50
    assert page.locator("#browser").is_hidden()
    assert page.get_by_text("needs JavaScript").is_visible()
    page.get_by_text("The numbers").first.click()
    assert page.get_by_role("cell", name="0.750 ± 0.196").is_visible()
