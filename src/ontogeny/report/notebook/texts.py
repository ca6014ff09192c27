"""Texts in a notebook and a terminal: since when tokens are predicted, and what the run writes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ...errors import ArgumentError
from ...markup import as_text
from ...trees import MergedResult
from ...words.content import Content, read_content
from ...words.formats import step_text
from ..colours import BASE, PROGRESS, contrast, ramp
from ..style import SHADES
from ..texts.dated import Dated, DatedTexts, Line, read_dated
from ..texts.written import Prompt, Written, read_written


class ResultTexts:
    """The dated text of a result and what the run writes, as ``result.texts()`` returns them.

    A notebook shows them, `rich.print` does so with colours, and ``print`` without.

    Parameters
    ----------
    result
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.
    step
        Step at which it writes: the last one that was read until then. None means the last.

    Raises
    ------
    ArgumentError
        If the result holds neither losses of tokens at enough steps nor written texts.
    """

    def __init__(self, result: MergedResult, step: int | None = None) -> None:
        content = read_content(result)
        self._clock = content.voice.unit
        self._dated = read_dated(content)
        self._written = read_written(content)
        if self._dated is None and self._written is None:
            raise ArgumentError(
                "the result holds no texts to show: they need the observables token-losses, with "
                "checkpoints of one run, or writing."
            )
        self._step, self._texts = _at(content, self._written, step)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        if self._dated is not None:
            yield Text(self._dated.sentence, style="bold")
            plain = console.color_system is None
            show = _listed if plain else _coloured
            yield from show(self._dated, self._clock)
        if self._written is not None:
            yield Text(f"\nWhat it writes at {self._clock} {self._step}", style="bold")
            for prompt, texts in zip(self._written.prompts, self._texts, strict=True):
                yield _grid(_rows(prompt, texts))

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        if self._dated is not None:
            parts.append(f"<h4>{escape(self._dated.sentence)}</h4>")
            parts += [
                _html_line(line, self._dated.numbers) for line in self._dated.lines
            ]
            parts.append(_html_key(self._dated, self._clock))
        if self._written is not None:
            parts.append(
                f"<h4>What it writes at {escape(self._clock)} {self._step}</h4>"
            )
            for prompt, texts in zip(self._written.prompts, self._texts, strict=True):
                rows = (
                    f"<dt><small>{name}</small></dt><dd dir='auto'>{escape(text)}</dd>"
                    for name, text in _rows(prompt, texts)
                )
                parts.append(f"<dl>{''.join(rows)}</dl>")
        return f"<div>{''.join(parts)}</div>"


def _at(
    content: Content, written: Written | None, step: int | None
) -> tuple[str, list[list[str]]]:
    """Return the step at which a run writes, and what."""
    if written is None:
        return "", []
    steps = written.payload["steps"]
    if step is None:
        return step_text(steps[-1]), written.payload["texts"][-1]
    earlier = [i for i, each in enumerate(steps) if each <= step]
    if not earlier:
        raise ArgumentError(
            f"step must be at least {steps[0]}, the first at which the run writes; got {step}."
        )
    return step_text(steps[earlier[-1]]), written.payload["texts"][earlier[-1]]


def _rows(prompt: Prompt, texts: list[str]) -> list[tuple[str, str]]:
    """Return what a prompt is called and what stands there, line by line."""
    gaps = " ____ " if prompt.after else ""
    rows = [
        ("prompt", f"{prompt.before}{gaps}{prompt.after}"),
        ("likeliest", texts[0]),
        ("one draw", texts[1]),
    ]
    return [*rows, ("the text", prompt.follows)] if prompt.follows else rows


def _grid(rows: list[tuple[str, str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), Text(text))
    grid.add_row()
    return grid


def _coloured(dated: DatedTexts, clock: str) -> Iterator[Any]:
    """Give the texts with their colours, and what the colours are."""
    from rich.text import Text

    for line in dated.lines:
        text = Text()
        for token in line.tokens:
            text.append(token.token.text, style=_style(token))
            text.append(" " if dated.numbers else "")
        yield text
    yield _key(dated, clock)


def _listed(dated: DatedTexts, clock: str) -> Iterator[Any]:
    """Give the texts and, as there are no colours, the tokens of each step."""
    from rich.text import Text

    since: dict[int, list[str]] = {}
    between = " " if dated.numbers else ""
    for line in dated.lines:
        yield Text(between.join(token.token.text for token in line.tokens))
        for token in line.tokens:
            if token.state == "good" and token.step is not None:
                since.setdefault(token.step, []).append(token.token.text.strip())
    yield _grid(
        [
            (f"from {clock} {step_text(step)}", " · ".join(since[step]))
            for step in sorted(since)
        ]
    )


def _key(dated: DatedTexts, clock: str) -> Any:
    """Return each shade with its first step."""
    from rich.text import Text

    line = Text(f"for good from {clock}  ")
    for step, ink, paper in _first_steps(dated):
        line.append(f" {step} ", style=f"{ink} on {paper}")
    return line.append(f"  {_marks(dated)}")


def _html_key(dated: DatedTexts, clock: str) -> str:
    steps = "".join(
        f'<span style="color:{ink};background:{paper}"> {step} </span>'
        for step, ink, paper in _first_steps(dated)
    )
    words = f"for good from {escape(clock)} {steps} {_marks(dated)}"
    return f'<p style="white-space:pre-wrap"><small>{words}</small></p>'


def _marks(dated: DatedTexts) -> str:
    states = {token.state for line in dated.lines for token in line.tokens}
    lost = "struck: by the base, not at the end; " if "lost" in states else ""
    return f"dim: not by the end; {lost}underlined: its first answer at the end"


def _first_steps(dated: DatedTexts) -> Iterator[tuple[str, str, str]]:
    """Give the first step of each shade, with its ink and paper."""
    first = {shade: step for step, _, _, shade in reversed(dated.key)}
    for shade in sorted(first):
        yield step_text(first[shade]), *_colours(shade)


def _style(token: Dated) -> str:
    if token.state == "lost":
        return "dim strike"
    if token.state in ("given", "never"):
        return "dim"
    ink, paper = _colours(token.shade)
    style = f"{ink} on {paper}" if token.state == "good" else "italic"
    return f"{style} underline" if token.leads else style


def _html_line(line: Line, numbers: bool) -> str:
    tokens = (" " if numbers else "").join(map(_html_token, line.tokens))
    return f'<p dir="{line.text.direction}" style="white-space:pre-wrap">{tokens}</p>'


def _html_token(token: Dated) -> str:
    text = escape(token.token.text)
    if token.step is None:
        line = "text-decoration:line-through;" if token.state == "lost" else ""
        return f'<span style="opacity:.6;{line}">{text}</span>'
    ink, paper = _colours(token.shade)
    colours = f"color:{ink};background:{paper};" if token.state == "good" else ""
    line = "text-decoration:underline;" if token.leads else ""
    return f'<span title="from {step_text(token.step)}" style="{colours}{line}">{text}</span>'


def _colours(shade: int) -> tuple[str, str]:
    """Return ink and paper of a shade, as the page has them in daylight."""
    paper = ramp(PROGRESS["light"], SHADES)[shade]
    inks = (BASE["light"]["ink"], BASE["light"]["paper"])
    return max(inks, key=lambda ink: contrast(paper, ink)), paper
