"""The floor: a link whose drafts are seldom right is paused, and tried again now and then.

Pure: driven by counts of drafted and accepted tokens and of passes. It knows no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

# A draft counts half once so many tokens were drafted after it.
_MEMORY = 64.0
# What it takes to judge a link: one bad draft, however long, is no verdict.
_LEAST_TOKENS, _LEAST_DRAFTS = 40.0, 3
_TRIAL = 16.0  # tokens it takes to pause one again that is just back
# Passes until a paused link is tried again, doubled each time it fails, and the length it is tried with.
_FIRST_PAUSE, _LONGEST_PAUSE = 16, 128
_PROBE_LENGTH = 4
_SHORT = 8  # a link whose drafts of this length fail is paused, longer ones are made shorter first
_SHORTENING = 4
_KEPT = 24.0  # tokens of longer drafts that count towards the verdict on shorter ones
_NO_LIMIT = 1 << 20
UNFIT_AFTER = 100  # drafted tokens without a single accepted one


@dataclass
class _Record:
    """What is known of one link; ``drafted`` and ``accepted`` fade."""

    drafted: float = 0.0
    accepted: float = 0.0
    drafts: int = 0  # since it began, or began again
    longest: int = _NO_LIMIT  # what its next draft may hold
    paused: bool = False
    on_probation: bool = False  # back from a pause by a few right tokens
    left: int = 0  # passes until it is tried again
    pause: int = _FIRST_PAUSE  # the next pause
    unproven: int = 0  # tokens drafted in all, while none was ever accepted
    settled: bool = False  # one was accepted, or a person was told

    def words(self, floor: float) -> str:
        rate = self.accepted / self.drafted
        return (
            f"{100 * rate:.0f} % of about {round(self.drafted)} recent drafted tokens were right, "
            f"the floor is {100 * floor:.0f} %"
        )


class Floor:
    """Watches the links of a model over its answers.

    A link under suspicion first gets shorter drafts, then a pause. ``rate`` is the acceptance rate
    (accepted over drafted, 0 to 1) below which that happens; 0 pauses nobody.
    """

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate
        self._records: dict[str, _Record] = {}
        self._news: list[str] = []

    def begin(self) -> None:
        """An answer starts. Its text may suit a link that is paused, so that is found out soon."""
        for record in self._records.values():
            record.left = min(record.left, _FIRST_PAUSE)

    def limit(self, link: str) -> int:
        """How many tokens the next draft of ``link`` may hold; 0 while it is paused."""
        record = self._records.get(link)
        if record is None or not self.rate:
            return _NO_LIMIT
        if record.paused:
            return 0 if record.left > 0 else _PROBE_LENGTH
        return record.longest

    def paused(self, link: str) -> str | None:
        """The figures behind a pause, in words; None for a link that is not paused."""
        record = self._records.get(link)
        return record.words(self.rate) if record is not None and record.paused and self.rate else None

    def record(self, link: str, drafted: int, accepted: int) -> None:
        """A draft of ``link`` was verified."""
        if not drafted:
            return
        record = self._records.setdefault(link, _Record())
        self._prove(link, record, drafted, accepted)
        if not self.rate:
            return
        fade = 0.5 ** (drafted / _MEMORY)
        record.drafted = record.drafted * fade + drafted
        record.accepted = record.accepted * fade + accepted
        record.drafts += 1
        if record.paused:
            self._probed(record, drafted, accepted)
            return
        is_known = record.drafted >= _LEAST_TOKENS and record.drafts >= _LEAST_DRAFTS
        if accepted >= self.rate * drafted:
            record.longest = min(2 * record.longest, _NO_LIMIT)
        if record.accepted >= self.rate * record.drafted:
            if is_known:
                record.on_probation, record.pause = False, _FIRST_PAUSE
        elif record.on_probation and record.drafted >= _TRIAL:
            self._wait(record)
        elif is_known and drafted <= _SHORT:
            self._wait(record)
            self._news.append(f"{link} is paused: low acceptance ({record.words(self.rate)}).")
        elif drafted > _SHORT:
            self._shorten(record, drafted)

    def passed(self) -> None:
        """One target pass is over."""
        for record in self._records.values():
            if record.left > 0:
                record.left -= 1

    def news(self) -> tuple[str, ...]:
        """What a person should be told, each thing once."""
        if not self._news:
            return ()
        news, self._news = self._news, []
        return tuple(news)

    @staticmethod
    def _shorten(record: _Record, drafted: int) -> None:
        """Of many tokens few are right even where most of the first are: that is no verdict yet."""
        record.longest = max(_SHORT, drafted // _SHORTENING)
        kept = min(1.0, _KEPT / record.drafted)
        record.drafted *= kept
        record.accepted *= kept

    def _probed(self, record: _Record, drafted: int, accepted: int) -> None:
        if accepted < self.rate * drafted:
            self._wait(record)
            return
        record.paused, record.on_probation = False, True
        record.drafted, record.accepted, record.drafts = float(drafted), float(accepted), 1
        record.longest = _SHORT
        record.pause = max(_FIRST_PAUSE, record.pause // 2)

    @staticmethod
    def _wait(record: _Record) -> None:
        record.paused, record.left = True, record.pause
        record.pause = min(2 * record.pause, _LONGEST_PAUSE)

    def _prove(self, link: str, record: _Record, drafted: int, accepted: int) -> None:
        if record.settled:
            return
        record.unproven += drafted
        record.settled = accepted > 0
        if not record.settled and record.unproven >= UNFIT_AFTER:
            record.settled = True
            self._news.append(
                f"{link} does not fit: none of its {record.unproven} drafted tokens was accepted."
            )
