"""The models page over a real store and a local Hub: search, get, chat, delete, and what goes wrong."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app import paths
from app.settings import Settings, SettingsFile
from model_store.local_path import HIDDEN
from model_store.pairs import Pairs, paired_drafter
from tests.model_store.local_hub import Fault, LocalHub
from tests.models.eagle3 import write_eagle3
from tests.tiny_gguf import Tiny, write_llama
from tests.ui.conftest import MakeWindow
from ui.main_window import CHATS, MODELS, SETTINGS, MainWindow
from ui.models.card_group import CardGroup
from ui.models.card_view import CardView
from ui.models.delete_question import DeleteQuestion
from ui.models.model_card import ModelCard
from ui.models.models_page import ModelsPage
from ui.models.trouble_note import TroubleNote
from ui.theme import Theme

WAIT = 30_000
REPO = "someone/Tiny-Llama-GGUF"
KEY = f"hub:{REPO}"
SHAPE = Tiny(n_layer=8)


def click(qtbot: QtBot, button: QAbstractButton) -> None:
    """Once it is laid out: before that there is nothing to click on."""
    qtbot.waitUntil(lambda: button.isVisible() and button.height() > 8, timeout=WAIT)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def page_of(window: MainWindow) -> ModelsPage:
    window.show_page(MODELS)
    page = window.page(MODELS)
    assert isinstance(page, ModelsPage)
    return page


@pytest.fixture
def hub(local_hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """Has a model in two quantisations with a drafter, and nothing of what the catalogue names."""
    monkeypatch.setenv("HF_ENDPOINT", local_hub.url)
    # What this machine's own programs keep is nobody's business here.
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    target = write_llama(tmp_path / "target.gguf", SHAPE)
    head = write_eagle3(tmp_path / "head.gguf", SHAPE)
    files = {"Tiny-Q4_0.gguf": target, "Tiny-Q8_0.gguf": target, "eagle3-Tiny.gguf": head}
    local_hub.add(REPO, files, downloads=1234)
    return local_hub


def slow_down(hub: LocalHub, pause: float, name: str = "Tiny-Q4_0.gguf") -> None:
    hub.file(REPO, name).piece_pause = pause


def search(page: ModelsPage, qtbot: QtBot, text: str, key: str = KEY) -> ModelCard:
    page.search.setText(text)
    qtbot.keyClick(page.search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: key in page.found.group.cards, timeout=WAIT)
    return page.found.group.cards[key]


def looked_up(page: ModelsPage, qtbot: QtBot) -> ModelCard:
    card = search(page, qtbot, "tiny")
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.view.action == "get", timeout=WAIT)
    return card


def got(page: ModelsPage, qtbot: QtBot) -> ModelCard:
    card = looked_up(page, qtbot)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.view.action == "chat", timeout=WAIT)
    page.search.clear()
    return card


def models() -> Path:
    return paths.models_dir()


def local(name: str, shape: Tiny = SHAPE) -> Path:
    models().mkdir(parents=True, exist_ok=True)
    return write_llama(models() / f"{name}.gguf", shape)


def ready_card(page: ModelsPage, qtbot: QtBot, path: Path) -> ModelCard:
    """The card of a model that is here, once its header was read."""
    key = f"file:{path}"
    qtbot.waitUntil(lambda: key in page.ready.group.cards, timeout=WAIT)
    card = page.ready.group.cards[key]
    qtbot.waitUntil(lambda: card.view.mark is not None or card.view.trouble is not None, timeout=WAIT)
    return card


def facts(card: ModelCard) -> str:
    return card.facts.text()


def pick(card: ModelCard, words: str) -> None:
    menu = card.menu()
    [action] = [action for action in menu.actions() if action.text() == words]
    action.trigger()
    menu.deleteLater()


def trouble_of(card: ModelCard) -> TroubleNote:
    assert card.trouble is not None
    return card.trouble


def question_of(card: ModelCard) -> DeleteQuestion:
    assert card.question is not None
    return card.question


def offered(card: ModelCard) -> list[str]:
    menu = card.menu()
    texts = [action.text() for action in menu.actions() if action.text()]
    menu.deleteLater()
    return texts


# ---- from the search to the chat


def test_search_get_and_chat_with_the_drafter(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    slow_down(hub, 0.05)
    window = make_window(draft_model="/somewhere/else.gguf")
    page = page_of(window)
    card = search(page, qtbot, "tiny")
    assert card.title.text() == "Tiny-Llama-GGUF"
    assert "1,234 downloads" in facts(card)
    assert card.button.text() == "Look up"
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.button.text() == "Get", timeout=WAIT)
    assert facts(card) == "Q4_0, 1 MB + 1 MB drafter · drafts with EAGLE-3 · apache-2.0"
    assert card.mark.text == "Fits"
    for words in ("Needs about", "Weights: ", "KV cache: ", "Compute buffers: ", "Drafter: ", "are free"):
        assert words in card.mark.toolTip()
    shares: set[int] = set()
    window.session.downloads.changed.connect(lambda _: shares.add(card.bar.value()))
    height = card.height()
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.button.text() == "Pause" and card.bar.value() > 0, timeout=WAIT)
    assert "of 2 MB" in facts(card)
    assert card.height() == height, "nothing moves while it downloads"
    [row] = page.downloads.rows.values()
    assert page.downloads.isVisible()
    assert row.name.text() == "Tiny"
    qtbot.waitUntil(lambda: card.button.text() == "Chat", timeout=WAIT)
    assert len(shares) > 3, "the bar grows while it downloads"
    path = models() / "someone/Tiny-Llama-GGUF/Tiny-Q4_0.gguf"
    page.search.clear()
    here = ready_card(page, qtbot, path)
    assert facts(here) == "1 MB + 1 MB drafter · drafter: EAGLE-3, fits"
    assert paired_drafter(path) == path.with_name("eagle3-Tiny.gguf")
    click(qtbot, here.button)
    assert window.stack.currentWidget() is window.chat
    state = window.session.controller
    qtbot.waitUntil(
        lambda: state.state.report is not None and state.state.report.path == str(path), timeout=WAIT
    )
    assert window.session.settings.model == str(path)
    assert window.session.settings.draft_model is None, "the worker loads what it is paired with"
    qtbot.waitUntil(lambda: here.tag.text() == "in use", timeout=WAIT)
    window.show_page(MODELS)
    click(qtbot, row.cancel)
    assert not page.downloads.rows and not page.downloads.isVisible()


def test_the_worker_loads_what_came_together(theme: Theme, qtbot: QtBot, hub: LocalHub) -> None:
    settings = Settings(theme="light", model=str(local("first", Tiny(n_layer=1))), n_threads=1)
    window = MainWindow(theme, SettingsFile(), settings, (sys.executable, "-m", "app.worker"))
    qtbot.addWidget(window)
    window.show()
    window.start()
    page = page_of(window)
    card = got(page, qtbot)
    click(qtbot, ready_card(page, qtbot, models() / "someone/Tiny-Llama-GGUF/Tiny-Q4_0.gguf").button)
    state = window.session.controller
    qtbot.waitUntil(
        lambda: state.state.report is not None and "Tiny-Q4_0" in state.state.report.path, timeout=WAIT
    )
    report = state.state.report
    assert report is not None and report.draft_model_path is not None
    assert Path(report.draft_model_path).name == "eagle3-Tiny.gguf"
    assert [link.reason for link in report.drafters if link.name == "eagle3"] == [None]
    assert card.view.action == "chat"


def test_double_click_on_get_does_not_stop_it(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    card = search(page, qtbot, "tiny")
    click(qtbot, card.button)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.view.action == "get", timeout=WAIT)


def test_typing_waits_for_a_pause_and_another_text_ends_the_search(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    hub.add("someone/Other-GGUF", {"Other-Q4_0.gguf": b"GGUF" * 99})
    page = page_of(make_window())
    qtbot.keyClicks(page.search, "tin")
    page.found.search_now()
    qtbot.keyClicks(page.search, "y")
    page.search.setText("other")
    qtbot.waitUntil(lambda: bool(page.found.group.cards), timeout=WAIT)
    assert list(page.found.group.cards) == ["hub:someone/Other-GGUF"]
    qtbot.waitUntil(lambda: not page.found.group.words.isVisible(), timeout=WAIT)
    assert list(page.found.group.cards) == ["hub:someone/Other-GGUF"]
    assert not hub.requests("search=tiny&"), "what was typed on is not searched for"
    page.search.clear()
    assert not page.found.group.isVisible()


@pytest.mark.parametrize("text", [REPO, "{url}/" + REPO, "{url}/" + REPO + "/blob/main/Tiny-Q8_0.gguf"])
def test_link_is_looked_up_at_once(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub, text: str) -> None:
    page = page_of(make_window())
    card = search(page, qtbot, text.format(url=hub.url))
    qtbot.waitUntil(lambda: card.view.action == "get", timeout=WAIT)
    assert facts(card).startswith("Q8_0" if text.endswith("Q8_0.gguf") else "Q4_0")


def test_quantisation_and_drafter_can_be_chosen(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    card = looked_up(page, qtbot)
    card.options.setChecked(True)
    panel = card.panel
    assert panel is not None
    labels = [panel.quantisation.itemText(each) for each in range(panel.quantisation.count())]
    assert labels == ["Q4_0 · 1 MB · Fits", "Q8_0 · 1 MB · Fits"]
    drafters = [panel.drafter.itemText(each) for each in range(panel.drafter.count())]
    assert drafters == ["EAGLE-3 · 1 MB · fits", "None: n-gram look-ups"]
    panel.quantisation.setCurrentIndex(1)
    panel.quantisation.activated.emit(1)
    qtbot.waitUntil(lambda: facts(card).startswith("Q8_0, 1 MB + 1 MB drafter"), timeout=WAIT)
    panel.drafter.setCurrentIndex(1)
    panel.drafter.activated.emit(1)
    qtbot.waitUntil(lambda: facts(card).startswith("Q8_0, 1 MB · drafts with n-gram"), timeout=WAIT)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.view.action == "chat", timeout=WAIT)
    folder = models() / "someone/Tiny-Llama-GGUF"
    assert [path.name for path in folder.iterdir()] == ["Tiny-Q8_0.gguf"]


# ---- downloads


def test_pause_resume_and_cancel(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    slow_down(hub, 0.1)
    page = page_of(make_window())
    card = looked_up(page, qtbot)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: bool(page.downloads.rows), timeout=WAIT)
    [row] = page.downloads.rows.values()
    qtbot.waitUntil(lambda: row.job.files[0].received > 0, timeout=WAIT)
    assert card.button.text() == "Pause"
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.button.text() == "Resume", timeout=WAIT)
    assert "paused" in facts(card)
    assert row.rate.text() == "paused"
    kept = row.job.files[0].received
    click(qtbot, row.button)
    qtbot.waitUntil(lambda: row.job.state == "active" and row.job.files[0].received > kept, timeout=WAIT)
    asked = hub.requests(hub.file(REPO, "Tiny-Q4_0.gguf").sha256)
    assert asked[-1].range is not None, "it goes on from there"
    click(qtbot, row.cancel)
    qtbot.waitUntil(lambda: not page.downloads.rows, timeout=WAIT)
    assert card.button.text() == "Get"
    qtbot.waitUntil(lambda: not list(models().rglob("Tiny-Q4_0*")), timeout=WAIT)  # nothing is left of it


def test_closing_the_window_keeps_the_download_for_the_next_one(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    slow_down(hub, 0.2)
    window = make_window()
    first = page_of(window)
    click(qtbot, looked_up(first, qtbot).button)
    qtbot.waitUntil(lambda: bool(first.downloads.rows), timeout=WAIT)
    [row] = first.downloads.rows.values()
    qtbot.waitUntil(lambda: row.job.files[0].received > 0, timeout=WAIT)
    window.show_page(CHATS)
    window.close()
    folder = models() / HIDDEN / "downloads"
    assert [path.suffix for path in folder.glob("*.job")] == [".job"]
    assert sum(path.stat().st_size for path in folder.glob("*.part")) > 0
    slow_down(hub, 0.0)
    again = make_window()
    path = models() / "someone/Tiny-Llama-GGUF/Tiny-Q4_0.gguf"
    qtbot.waitUntil(path.exists, timeout=WAIT)
    assert again.shown == CHATS, "it goes on by itself"
    page = page_of(again)
    assert "EAGLE-3" in facts(ready_card(page, qtbot, path))


# ---- what goes wrong


def test_gated_repository_says_where_to_accept_and_where_the_token_goes(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub, tmp_path: Path
) -> None:
    hub.add("someone/Gated-GGUF", {"G-Q4_0.gguf": tmp_path / "target.gguf"}, gated=frozenset({hub.token}))
    window = make_window()
    page = page_of(window)
    card = search(page, qtbot, "gated", "hub:someone/Gated-GGUF")
    assert "licence to accept" in facts(card)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.trouble is not None and card.trouble.isVisible(), timeout=WAIT)
    assert "has a licence to accept first" in trouble_of(card).what.text()
    assert trouble_of(card).link.isVisible()
    assert f"{hub.url}/someone/Gated-GGUF" in trouble_of(card).link.toolTip()
    assert card.button.text() == "Retry"
    with qtbot.waitSignal(window.session.action_asked) as asked:
        click(qtbot, trouble_of(card).token)
    assert asked.args == ["settings:storage"] and window.shown == SETTINGS


def test_server_error_can_be_tried_again(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    qtbot.waitUntil(lambda: len(page.suggested.group.cards) == 6, timeout=WAIT)
    qtbot.waitUntil(lambda: page.suggested.settled, timeout=WAIT)
    card = search(page, qtbot, "tiny")
    hub.api_faults.append(Fault("status_503"))
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.trouble is not None and card.trouble.isVisible(), timeout=WAIT)
    assert trouble_of(card).what.text() == "The Hub has a problem (status 503): try again later."
    assert card.button.text() == "Retry"
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.button.text() == "Get", timeout=WAIT)
    assert card.trouble is not None and not card.trouble.isVisible()


def test_full_disk_says_what_is_needed(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    for name in ("Tiny-Q4_0.gguf", "Tiny-Q8_0.gguf"):
        hub.file(REPO, name).size = 1 << 50
    card = looked_up(page, qtbot)
    assert card.mark.text == "Too large"
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: card.trouble is not None and card.trouble.isVisible(), timeout=WAIT)
    assert "Not enough room on the disk" in trouble_of(card).what.text()
    assert card.button.text() == "Retry"
    [row] = page.downloads.rows.values()
    assert row.rate.text() == "stopped"
    assert "Not enough room" in row.rate.toolTip()


def test_without_a_network_models_here_stay_and_the_page_says_so(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = local("mine")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    page = page_of(make_window())
    assert ready_card(page, qtbot, path).button.text() == "Chat"
    group = page.suggested.group
    qtbot.waitUntil(lambda: "cannot be reached" in group.words.text(), timeout=WAIT)
    assert group.cards, "what the catalogue says needs no network"
    page.search.setText("tiny")
    qtbot.keyClick(page.search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "cannot be reached" in page.found.group.words.text(), timeout=WAIT)
    for found in (group, page.found.group):
        assert not found.again.isHidden()
        found.again.click()
        assert found.again.isHidden()  # it is being tried
        qtbot.waitUntil(lambda found=found: not found.again.isHidden(), timeout=WAIT)  # type: ignore[misc]


def test_nothing_found_is_said_in_words(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    page.search.setText("no such model")
    qtbot.keyClick(page.search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "no GGUF models" in page.found.group.words.text(), timeout=WAIT)
    assert page.ready.group.words.text() == "Nothing here matches."


# ---- models that are here


def test_delete_asks_frees_and_says_how_much(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    got(page, qtbot)
    folder = models() / "someone/Tiny-Llama-GGUF"
    size = sum(path.stat().st_size for path in folder.iterdir())
    card = ready_card(page, qtbot, folder / "Tiny-Q4_0.gguf")
    pick(card, "Delete…")
    assert question_of(card).isVisible()
    assert question_of(card).with_drafter.text() == "Its drafter eagle3-Tiny as well (1 MB)"
    click(qtbot, question_of(card).keep)
    assert not question_of(card).isVisible() and folder.exists()
    pick(card, "Delete…")
    click(qtbot, question_of(card).delete)
    qtbot.waitUntil(lambda: "free again" in page.noticed, timeout=WAIT)
    assert f"{size:,} bytes are free again" in page.noticed
    assert not folder.exists()
    qtbot.waitUntil(lambda: f"file:{folder / 'Tiny-Q4_0.gguf'}" not in page.ready.group.cards, timeout=WAIT)


def test_model_in_use_is_not_deleted(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    path = local("mine")
    window = make_window(model=str(path))
    page = page_of(window)
    qtbot.waitUntil(lambda: window.session.controller.state.report is not None, timeout=WAIT)
    card = ready_card(page, qtbot, path)
    pick(card, "Delete…")
    click(qtbot, question_of(card).delete)
    qtbot.waitUntil(lambda: card.trouble is not None and card.trouble.isVisible(), timeout=WAIT)
    assert "it is loaded" in trouble_of(card).what.text()
    assert path.exists()


def test_verify_tells_good_from_damaged(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    got(page, qtbot)
    path = models() / "someone/Tiny-Llama-GGUF/Tiny-Q4_0.gguf"
    card = ready_card(page, qtbot, path)
    pick(card, "Verify")
    qtbot.waitUntil(lambda: card.news.text().startswith("Verified"), timeout=WAIT)
    with path.open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    pick(card, "Verify")
    qtbot.waitUntil(lambda: card.trouble is not None and card.trouble.isVisible(), timeout=WAIT)
    assert "damaged" in trouble_of(card).what.text()
    assert trouble_of(card).kept.text() == "Delete it and get it again."


def test_models_of_another_program_are_listed_and_never_deleted(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub, tmp_path: Path
) -> None:
    theirs = tmp_path / "nobody/.lmstudio/models/pub/repo"
    theirs.mkdir(parents=True)
    shutil.copy(tmp_path / "target.gguf", theirs / "theirs.gguf")
    page = page_of(make_window())
    qtbot.waitUntil(lambda: "LM Studio" in page.foreign.buttons, timeout=WAIT)
    click(qtbot, page.foreign.buttons["LM Studio"])
    card = ready_card(page, qtbot, theirs / "theirs.gguf")
    assert card.tag.text() == "from LM Studio"
    assert offered(card) == ["Verify", "Show in folder", "Take off the list"]
    qtbot.waitUntil(lambda: not page.foreign.isVisible(), timeout=WAIT)
    pick(card, "Take off the list")
    qtbot.waitUntil(lambda: "off the list" in page.noticed, timeout=WAIT)
    assert (theirs / "theirs.gguf").exists()
    qtbot.waitUntil(lambda: page.foreign.isVisible(), timeout=WAIT)


def test_drafters_can_be_seen_and_deleted(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    models().mkdir(parents=True, exist_ok=True)
    head = write_eagle3(models() / "head.gguf", SHAPE)
    page = page_of(make_window())
    group = page.others.group
    qtbot.waitUntil(lambda: group.isVisible(), timeout=WAIT)
    assert not group.cards, "they are shown when asked for"
    click(qtbot, group.more)
    [card] = group.cards.values()
    assert not card.button.isVisible()
    pick(card, "Delete…")
    click(qtbot, question_of(card).delete)
    qtbot.waitUntil(lambda: "free again" in page.noticed, timeout=WAIT)
    assert not head.exists()
    qtbot.waitUntil(lambda: not group.isVisible(), timeout=WAIT)


def test_drafter_is_chosen_and_given_up(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    path = local("mine")
    head = write_eagle3(models() / "head.gguf", SHAPE)
    write_eagle3(models() / "misfit.gguf", Tiny(n_layer=8, n_embd=128))
    page = page_of(make_window())
    card = ready_card(page, qtbot, path)
    assert facts(card) == "1 MB · drafts with n-gram look-ups"
    card.options.setChecked(True)
    panel = card.panel
    assert panel is not None
    qtbot.waitUntil(lambda: panel.drafter.count() == 3, timeout=WAIT)
    texts = [panel.drafter.itemText(each) for each in range(3)]
    assert texts == ["None: n-gram look-ups", "head · EAGLE-3 · 1 MB · fits", "misfit · does not fit"]
    assert "misfit" in panel.words.text() and "128" in panel.words.text(), "it says why"
    panel.drafter.setCurrentIndex(1)
    panel.drafter.activated.emit(1)
    qtbot.waitUntil(lambda: "drafter: EAGLE-3, fits" in facts(card), timeout=WAIT)
    assert Pairs(models()).drafter_of(path) == head
    pick(card, "Draft without it")
    qtbot.waitUntil(lambda: "n-gram" in facts(card), timeout=WAIT)
    assert Pairs(models()).drafter_of(path) is None


def test_model_in_use_is_loaded_again_only_for_another_drafter(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    path = local("mine")
    write_eagle3(models() / "head.gguf", SHAPE)
    window = make_window(model=str(path))
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)
    phases: list[str] = []
    window.session.engine_changed.connect(lambda: phases.append(window.session.controller.state.phase))
    page = page_of(window)
    card = ready_card(page, qtbot, path)
    click(qtbot, card.button)
    assert window.shown == CHATS and "loading" not in phases
    window.show_page(MODELS)
    card.options.setChecked(True)
    panel = card.panel
    assert panel is not None
    qtbot.waitUntil(lambda: panel.drafter.count() == 2, timeout=WAIT)
    panel.drafter.setCurrentIndex(1)
    panel.drafter.activated.emit(1)
    qtbot.waitUntil(lambda: "loads it again" in card.news.text(), timeout=WAIT)
    click(qtbot, card.button)
    assert "loading" in phases
    assert "loads it again" not in card.news.text()


def test_drafter_that_does_not_fit_says_why(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    path = local("mine")
    misfit = write_eagle3(models() / "misfit.gguf", Tiny(n_layer=8, n_embd=128))
    Pairs(models()).pair(path, misfit)
    card = ready_card(page_of(make_window()), qtbot, path)
    assert "drafter does not fit: misfit.gguf" in facts(card)
    assert "128" in card.facts.toolTip()


def test_unusable_file_is_shown_with_its_reason(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    path = local("cut")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    card = ready_card(page_of(make_window()), qtbot, path)
    assert "incomplete" in trouble_of(card).what.text()
    assert not card.button.isVisible()
    assert "Delete…" in offered(card)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file names")
def test_names_are_never_read_as_html(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    name = "<img src='file:x'> & <b>bold</b>"
    path = local(name.replace("/", "∕"))
    card = ready_card(page_of(make_window()), qtbot, path)
    assert card.title.text() == path.stem
    assert card.title.textFormat() == Qt.TextFormat.PlainText
    assert "&lt;img" in card.title.toolTip() and "<img" not in card.title.toolTip()


def test_thousands_of_models_make_a_few_cards(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub, tmp_path: Path
) -> None:
    models().mkdir(parents=True, exist_ok=True)
    for number in range(2000):
        (models() / f"model-{number:04}.gguf").write_bytes(b"GGUF")
    page = page_of(make_window())
    group = page.ready.group
    qtbot.waitUntil(lambda: group.count.text() in ("2,000", "2,001"), timeout=60_000)
    assert len(group.cards) == 12
    card = next(iter(group.cards.values()))
    click(qtbot, group.more)
    assert len(group.cards) == 36
    assert card in group.cards.values(), "cards that are there stay"
    page.search.setText("model-1234")
    assert list(group.cards) == [f"file:{models() / 'model-1234.gguf'}"]


# ---- disk, keyboard, names


def test_disk_use_and_leftovers(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    path = local("mine")
    folder = models() / HIDDEN / "downloads"
    folder.mkdir(parents=True)
    left = folder / "gone-0123456789abcdef.part"
    left.write_bytes(bytes(3_000_000))
    os.utime(left, (1, 1))
    window = make_window()
    # Starting the queue sweeps as well: here only the panel does.
    window.session.downloads.start = lambda: None  # type: ignore[method-assign]
    page = page_of(window)
    page.use.setChecked(True)
    qtbot.waitUntil(lambda: page.disk.clean.isVisible(), timeout=WAIT)
    assert page.disk.clean.text() == "Clean up 3 MB of broken downloads"
    assert f"Models take {path.stat().st_size / 1e6:.0f} MB" in page.disk.words.text()
    assert "are free on this disk" in page.disk.words.text()
    assert "free" in page.use.text()
    click(qtbot, page.disk.clean)
    qtbot.waitUntil(lambda: page.noticed == "3,000,000 bytes are free again.", timeout=WAIT)
    assert not left.exists()


def test_every_control_has_a_name(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    slow_down(hub, 0.1)
    page = page_of(make_window())
    assert page.window().focusWidget() is page.search
    card = looked_up(page, qtbot)
    card.options.setChecked(True)
    click(qtbot, card.button)
    qtbot.waitUntil(lambda: bool(page.downloads.rows), timeout=WAIT)
    nameless = [
        f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        for widget in page.findChildren(QWidget)
        if widget.isVisible()
        and isinstance(widget, QAbstractButton | QLineEdit)
        and not isinstance(widget.parentWidget(), QLineEdit)
        and not (widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text()))
    ]
    assert nameless == []


def test_keys_alone_lead_through_the_cards(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    page = page_of(make_window())
    card = looked_up(page, qtbot)
    page.search.setFocus()
    seen: list[QWidget] = []
    for _ in range(12):
        qtbot.keyClick(page.focusWidget() or page, Qt.Key.Key_Tab)
        focused = page.window().focusWidget()
        assert focused is not None
        seen.append(focused)
    assert card.button in seen and card.options in seen and card.more in seen


def test_cards_stand_beside_each_other_where_there_is_room(
    make_window: MakeWindow, qtbot: QtBot, hub: LocalHub
) -> None:
    page = page_of(make_window())
    group: CardGroup = page.suggested.group
    qtbot.waitUntil(lambda: len(group.cards) == 6, timeout=WAIT)

    def columns() -> int:
        return len({card.x() for card in group.cards.values()})

    for width, wanted in ((700, 1), (1100, 2), (1700, 3)):
        page.window().resize(width, 800)
        qtbot.waitUntil(lambda wanted=wanted: columns() == wanted, timeout=WAIT)  # type: ignore[misc]


def test_from_chat_to_models_by_the_picker(make_window: MakeWindow, qtbot: QtBot, hub: LocalHub) -> None:
    window = make_window()
    window.show_page(CHATS)
    window.chat.picker.fill()
    [more] = [each for each in window.chat.picker.menu().actions() if each.text() == "Get more models…"]
    more.trigger()
    assert isinstance(window.stack.currentWidget(), ModelsPage)


def test_a_card_alone_is_as_wide_as_those_below_it(theme: Theme, qtbot: QtBot) -> None:
    groups = [CardGroup(theme, "cards", lambda key: CardView(key=key, title=key)) for _ in range(2)]
    for group, count in zip(groups, (1, 3), strict=True):
        qtbot.addWidget(group)
        group.resize(1000, 600)
        group.show_keys([f"card {number}" for number in range(count)])
        group.show()
        qtbot.waitExposed(group)
    alone, first = (group.cards["card 0"] for group in groups)
    qtbot.waitUntil(lambda: alone.width() == first.width() > 0)
    groups[0].show_keys([f"card {number}" for number in range(3)])
    qtbot.waitUntil(lambda: groups[0].cards["card 1"].geometry() == groups[1].cards["card 1"].geometry())
