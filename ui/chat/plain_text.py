"""What a person typed, as changes for the view: shown as it is, but for fenced code."""

from __future__ import annotations

from ui.bidi import is_rtl
from ui.chat.markdown_blocks import Span, TextBlock, language_of
from ui.chat.markdown_stream import FENCE, Change, CodeClosed, CodeOpened, CodeText, Finished


def plain_changes(text: str) -> list[Change]:
    """What a person typed: fenced code becomes code, everything else stays as it was typed."""
    changes: list[Change] = []
    fence: str | None = None
    code: list[str] = []
    blank = 0  # lines that are shown only if words follow: beside code there is room anyway

    def close() -> None:
        changes.extend((CodeText("\n".join(code)), CodeClosed()))

    for line in text.replace("\r\n", "\n").strip("\n").split("\n"):
        mark = line.strip()
        if fence is not None:
            if len(mark) >= len(fence) and not mark.strip(fence[0]):
                close()
                fence = None
            else:
                code.append(line)
        elif match := FENCE.match(line):
            fence, code, blank = match[2], [], 0
            changes.append(CodeOpened(language_of(match[3]), 0))
        elif not mark:
            blank += 1
        else:
            after_code = bool(changes) and isinstance(changes[-1], CodeClosed)
            for _ in range(0 if after_code else blank):
                changes.append(Finished(TextBlock(tight=True)))
            blank = 0
            changes.append(Finished(TextBlock(spans=(Span(line),), tight=True, rtl=is_rtl(line))))
    if fence is not None:
        close()
    return changes
