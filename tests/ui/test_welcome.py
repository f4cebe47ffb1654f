"""The first minute: three models of the catalogue in the empty chat, and getting one there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import paths
from app.suggestions import first_choices, suggestions
from model_store.catalog import load_catalog
from model_store.fit import FreeMemory
from tests.model_store.local_hub import LocalHub
from tests.tiny_gguf import Tiny, write_llama
from tests.ui.conftest import MakeWindow
from tests.ui.test_models_page import click
from ui.main_window import MODELS, MainWindow
from ui.models.model_card import ModelCard
from ui.models.models_page import ModelsPage
from ui.models.welcome import Welcome

WAIT = 30_000


@pytest.fixture
def hub(local_hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """Has every model of the catalogue, each a tiny one under its right name."""
    monkeypatch.setenv("HF_ENDPOINT", local_hub.url)
    monkeypatch.setattr("ui.session.Session.free_memory", lambda self: FreeMemory(10_000_000_000))
    model = write_llama(tmp_path / "target.gguf", Tiny(n_layer=8))
    for entry in load_catalog(paths.assets_dir() / "catalog.json").entries:
        if entry.target is not None:
            local_hub.add(entry.target.repo, {entry.target.file.replace("*", "x"): model})
    return local_hub


def welcome_of(window: MainWindow, qtbot: QtBot) -> Welcome:
    control = window.chat._welcome
    qtbot.waitUntil(lambda: control.welcome is not None and control.welcome.isVisible(), timeout=WAIT)
    assert control.welcome is not None
    return control.welcome


def bring_into_view(page: ModelsPage, qtbot: QtBot, card: ModelCard) -> None:
    def in_view() -> bool:
        page.area.ensureWidgetVisible(card)
        return card.button.visibleRegion().boundingRect() == card.button.rect()

    qtbot.waitUntil(in_view, timeout=WAIT)


def facts_of(card: ModelCard) -> str:
    return card.facts.text()


def test_three_models_that_fit_are_offered_without_asking_the_hub(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    welcome = welcome_of(make_window(), qtbot)
    catalog = load_catalog(paths.assets_dir() / "catalog.json")
    wanted = first_choices(suggestions(catalog.entries, FreeMemory(10_000_000_000)))
    assert [row.title.text() for row in welcome.rows.values()] == [each.entry.title for each in wanted]
    assert len(welcome.rows) == 3
    for row in welcome.rows.values():
        assert row.mark.text == "Fits"
        assert "10.0 GB are free" in row.mark.toolTip()
        assert row.button.accessibleName().startswith("Get: ")
    assert hub.seen == []


def test_get_shows_progress_there_and_ends_in_a_chat(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    window = make_window()
    welcome = welcome_of(window, qtbot)
    row = next(iter(welcome.rows.values()))
    entry = welcome._found[row.view.key].entry
    assert entry.target is not None
    hub.file(entry.target.repo, entry.target.file.replace("*", "x")).piece_pause = 0.05
    height = row.height()
    click(qtbot, row.button)
    qtbot.waitUntil(lambda: row.button.text() == "Pause" and row.bar.value() > 0, timeout=WAIT)
    assert row.height() == height
    qtbot.waitUntil(lambda: row.button.text() == "Chat", timeout=WAIT)
    qtbot.waitUntil(lambda: bool(window.session.library.entries), timeout=WAIT)
    assert welcome.isVisible(), "what was got here can be chatted with from here"
    click(qtbot, row.button)
    qtbot.waitUntil(
        lambda: (
            (report := window.session.controller.state.report) is not None
            and entry.target is not None
            and entry.target.repo in report.path
        ),
        timeout=WAIT,
    )


def test_the_page_knows_what_was_begun_in_the_chat(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    window = make_window()
    welcome = welcome_of(window, qtbot)
    row = next(iter(welcome.rows.values()))
    entry = welcome._found[row.view.key].entry
    assert entry.target is not None
    hub.file(entry.target.repo, entry.target.file.replace("*", "x")).piece_pause = 0.2
    click(qtbot, row.button)
    qtbot.waitUntil(lambda: row.button.text() == "Pause", timeout=WAIT)
    click(qtbot, welcome.more)
    page = window.stack.currentWidget()
    assert isinstance(page, ModelsPage)
    qtbot.waitUntil(lambda: row.view.key in page.suggested.group.cards, timeout=WAIT)
    card = page.suggested.group.cards[row.view.key]
    assert card.button.text() == "Pause"
    bring_into_view(page, qtbot, card)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: row.button.text() == "Resume", timeout=WAIT)


def test_what_arrives_above_pushes_nothing_away(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    window = make_window()
    window.resize(700, 500)
    window.show_page(MODELS)
    page = window.stack.currentWidget()
    assert isinstance(page, ModelsPage)
    group = page.suggested.group
    qtbot.waitUntil(lambda: len(group.cards) == 6, timeout=WAIT)
    qtbot.waitUntil(lambda: page.ready.group.count.text() == "1", timeout=WAIT)
    card = list(group.cards.values())[1]
    qtbot.waitUntil(lambda: page.suggested.settled, timeout=WAIT)
    assert facts_of(card).startswith("Q4_K_M, 1 MB"), "sizes come from the Hub's listing"
    assert not [seen for seen in hub.seen if seen.range], "no header was read for it"
    bring_into_view(page, qtbot, card)
    click(qtbot, card.button)
    before = card.mapTo(page, card.rect().topLeft())
    qtbot.waitUntil(lambda: page.ready.group.count.text() == "2", timeout=WAIT)
    qtbot.waitUntil(lambda: card.button.text() == "Chat", timeout=WAIT)
    assert abs(card.mapTo(page, card.rect().topLeft()).y() - before.y()) <= 1


def test_whoever_has_models_is_not_welcomed(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    paths.models_dir().mkdir(parents=True, exist_ok=True)
    write_llama(paths.models_dir() / "mine.gguf", Tiny())
    window = make_window()
    with qtbot.waitSignal(window.session.library.listed, timeout=WAIT):
        window.session.library.refresh()
    assert window.session.library.entries
    assert window.chat._welcome.welcome is None


def test_low_window_stays_possible(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    window = make_window()
    welcome_of(window, qtbot)
    window.resize(640, 400)
    assert window.height() <= 420
