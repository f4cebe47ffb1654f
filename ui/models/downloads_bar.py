"""The slim bar at the bottom of the models page: every download, how far it is, and its buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.bidi import visible
from ui.models.card_view import ACTION_WORDS, Action, job_action, job_trouble, job_words
from ui.models.downloads import Downloads
from ui.theme import Theme, numbers_font
from ui.tooltips import plain
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton

if TYPE_CHECKING:
    from model_store.download_job import JobProgress

_STEPS = 1000
_MOST_ROWS = 3  # that are seen without scrolling
_ICONS: dict[Action, str] = {"pause": "pause", "resume": "play", "retry": "again"}
_REST_PX = 260  # name, bar and buttons at their least
# What takes most room in each column.
_WIDEST = ("888.8 MB of 888.8 GB", "another program", "888 min left")


class DownloadsBar(QFrame):
    def __init__(self, theme: Theme, downloads: Downloads, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._downloads = downloads
        self.rows: dict[str, DownloadRow] = {}
        self.setObjectName("downloads")
        self.setAccessibleName("Downloads")
        self._inner = QWidget(self)
        self._inner.setObjectName("downloadRows")
        self._column = QVBoxLayout(self._inner)
        self._column.setContentsMargins(24, 8, 24, 8)
        self._column.setSpacing(4)
        self._area = QScrollArea(self)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._inner)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._area)
        downloads.jobs_changed.connect(self._fill)
        downloads.job_changed.connect(self._show)
        self._fill()

    def _fill(self) -> None:
        jobs = self._downloads.jobs
        for job_id in [job_id for job_id in self.rows if job_id not in jobs]:
            row = self.rows.pop(job_id)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        for job_id, job in jobs.items():
            if job_id not in self.rows:
                row = DownloadRow(self._theme, self._downloads, job, self._inner)
                self.rows[job_id] = row
                self._column.addWidget(row)
        self.setVisible(bool(jobs))
        self._fit()

    def _fit(self) -> None:
        heights = [row.sizeHint().height() for row in self.rows.values()][:_MOST_ROWS]
        self._area.setFixedHeight(sum(heights) + 4 * len(heights) + 12)

    def _show(self, job: JobProgress) -> None:
        row = self.rows.get(job.id)
        if row is None:
            return
        failed = row.job.state == "failed"
        row.show_job(job)
        if failed != (job.state == "failed"):
            self._fit()


class DownloadRow(QWidget):
    """Columns of fixed width, so that nothing moves while numbers change."""

    def __init__(
        self, theme: Theme, downloads: Downloads, job: JobProgress, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._downloads = downloads
        self.job = job
        self._action: Action | None = None
        self.name = ElidedLabel(parent=self)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.bar.setMinimumWidth(40)
        self.amount, self.rate, self.left = (self._number() for _ in _WIDEST)
        self.button = QuietButton(theme, "pause", "", self)
        self.button.clicked.connect(self._act)
        self.cancel = QuietButton(theme, "close", "", self)
        self.cancel.clicked.connect(self._cancel)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(0)
        for column, (widget, stretch) in enumerate(
            ((self.name, 3), (self.bar, 2), (self.amount, 0), (self.rate, 0), (self.left, 0))
        ):
            grid.addWidget(widget, 0, column)
            grid.setColumnStretch(column, stretch)
        buttons = nested(grid, QHBoxLayout(), cell=(0, 5))
        buttons.setSpacing(0)
        buttons.addWidget(self.button)
        buttons.addWidget(self.cancel)
        self.trouble = ElidedLabel(parent=self, role="danger")
        grid.addWidget(self.trouble, 1, 0, 1, 6)
        self._fonts()
        theme.changed.connect(self._fonts)
        self.show_job(job)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        numbers = self.amount.width() + self.rate.width() + self.left.width()
        self.left.setVisible(self.width() > numbers + _REST_PX)
        self.amount.setVisible(self.width() > self.amount.width() + self.rate.width() + _REST_PX)

    def show_job(self, job: JobProgress) -> None:
        self.job = job
        amount, rate, left = job_words(job)
        trouble = job_trouble(job)
        self.name.say(visible(job.title), visible(job.note or "") if job.note else "")
        self.bar.setValue(round(_STEPS * job.received / max(1, job.size)))
        self.bar.setAccessibleName(f"{job.title}: {job.received / max(1, job.size):.0%}")
        for label, text, help in (
            (self.amount, amount, "How much has come"),
            (self.rate, rate, trouble.what if trouble is not None else "How fast it comes, lately"),
            (self.left, left, "How long it still takes at this rate"),
        ):
            if label.text() != text:
                label.setText(text)
                label.setAccessibleName(text)
            label.setToolTip(plain(help))
        self.trouble.say(f"{trouble.what} {trouble.kept}".strip() if trouble is not None else "")
        self.trouble.setVisible(trouble is not None)
        self._show_buttons(job)

    def _show_buttons(self, job: JobProgress) -> None:
        action = job_action(job)
        self._action = action if action in _ICONS else None
        self.button.setEnabled(self._action is not None)
        if self._action is not None:
            self.button.show_icon(_ICONS[self._action])
            self.button.setToolTip(ACTION_WORDS[self._action])
            self.button.setAccessibleName(f"{ACTION_WORDS[self._action]}: {job.title}")
        self.button.setVisible(job.state != "complete")
        ended = job.state == "complete"
        self.cancel.setToolTip("Take off the list" if ended else "Cancel, and delete what is unfinished")
        self.cancel.setAccessibleName(f"{'Take off the list' if ended else 'Cancel'}: {job.title}")

    def _number(self) -> QLabel:
        label = QLabel(self)
        label.setProperty("role", "muted")
        label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        return label

    def _fonts(self) -> None:
        for label, widest in zip((self.amount, self.rate, self.left), _WIDEST, strict=True):
            label.setFont(numbers_font())
            label.setFixedWidth(label.fontMetrics().horizontalAdvance(widest) + 4)

    def _act(self) -> None:
        if self._action == "pause":
            self._downloads.pause(self.job.id)
        elif self._action is not None:
            self._downloads.resume(self.job.id)

    def _cancel(self) -> None:
        if self.job.state == "complete":
            self._downloads.dismiss(self.job.id)
        else:
            self._downloads.cancel(self.job.id)
