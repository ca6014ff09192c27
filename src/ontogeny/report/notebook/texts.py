"""Texts in a notebook and a terminal: since when tokens are predicted, and what the run writes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any

from ...errors import ArgumentError
from ...markup import as_text
from ...trees import MergedResult
from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content, read_content
from ...words.formats import step_text
from ..colours import BASE, PROGRESS, contrast, ramp
from ..style import SHADES
from ..texts.beyond_bigrams import BeyondBigrams, read_beyond_bigrams
from ..texts.dated import DatedTexts, read_dated
from ..texts.dated_lines import Dated, Line
from ..texts.written import Prompt, Written, read_written

Texts = DatedTexts | BeyondBigrams


class ResultTexts:
    """The dated text of a result and what the run writes, as ``result.texts()`` returns them.

    One model has no dates: its tokens stand beside what bigrams of the other texts give.

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
        self._dated = read_dated(content) or read_beyond_bigrams(content)
        self._written = read_written(content)
        if self._dated is None and self._written is None:
            raise ArgumentError(
                "the result holds no texts to show: they need the observables token-losses, with "
                "checkpoints of a run or one model, or writing."
            )
        self._step, self._texts = _at(content, self._written, step)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        if self._dated is not None:
            yield Text(self._dated.sentence, style="bold" if self._dated.sure else "")
            plain = console.color_system is None
            show = _listed if plain else _coloured
            yield from show(self._dated, self._clock)
        if self._written is not None:
            yield Text(f"\n{self._heading}", style="bold")
            for prompt, texts in zip(self._written.prompts, self._texts, strict=True):
                yield _grid(_rows(prompt, texts))

    @property
    def _heading(self) -> str:
        is_dated = self._written is not None and self._written.dated
        caption = CAPTIONS["written at" if is_dated else "written"]
        return caption.format(clock=self._clock, step=self._step)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        if self._dated is not None:
            parts.append(f"<h4>{escape(self._dated.sentence)}</h4>")
            for line in self._dated.lines:
                parts += [f"<b>{escape(line.of)}</b>"] if line.of else []
                parts.append(_html_line(line, self._dated.numbers))
            parts.append(_html_key(self._dated, self._clock))
        if self._written is not None:
            parts.append(f"<h4>{escape(self._heading)}</h4>")
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


def _coloured(dated: Texts, clock: str) -> Iterator[Any]:
    """Give the texts with their colours, and what the colours are."""
    from rich.text import Text

    for line in dated.lines:
        text = Text(f"{line.of}\n" if line.of else "", style="bold")
        for token in line.tokens:
            text.append(token.token.text, style=_style(token))
            text.append(" " if dated.numbers else "")
        yield text
    yield _key(dated, clock)


def _listed(dated: Texts, clock: str) -> Iterator[Any]:
    """Give the texts and, as there are no colours, the tokens of each step or gain."""
    from rich.text import Text

    between = " " if dated.numbers else ""
    for of, lines in groupby(dated.lines, lambda line: line.of):
        groups: dict[Any, list[str]] = {}
        if of:
            yield Text(of, style="bold")
        for line in lines:
            yield Text(between.join(token.token.text for token in line.tokens))
            for token in line.tokens:
                if token.state == "good":
                    key = token.shade if token.step is None else token.step
                    groups.setdefault(key, []).append(token.token.text.strip())
        yield _grid(
            [
                (_since(dated, clock, key), " · ".join(groups[key]))
                for key in sorted(groups)
            ]
        )


def _since(dated: Texts, clock: str, key: int) -> str:
    if isinstance(dated, BeyondBigrams):
        return f"from {dated.key[key][0]} nats"
    return f"from {clock} {step_text(key)}"


def _key(dated: Texts, clock: str) -> Any:
    """Return each shade with its first step, or its smallest gain."""
    from rich.text import Text

    line = Text(f"{_of_key(dated, clock)}  ")
    for step, ink, paper in _first_steps(dated):
        line.append(f" {step} ", style=f"{ink} on {paper}")
    return line.append(f"  {_marks(dated)}")


def _of_key(dated: Texts, clock: str) -> str:
    if isinstance(dated, BeyondBigrams):
        return CAPTIONS["likelier"].format(guess=dated.guess)
    return CAPTIONS["for good"].format(clock=clock)


def _html_key(dated: Texts, clock: str) -> str:
    steps = "".join(
        f'<span style="color:{ink};background:{paper}"> {step} </span>'
        for step, ink, paper in _first_steps(dated)
    )
    words = f"{escape(_of_key(dated, clock))} {steps} {_marks(dated)}"
    return f'<p style="white-space:pre-wrap"><small>{words}</small></p>'


def _marks(dated: Texts) -> str:
    if isinstance(dated, BeyondBigrams):
        return "dim: less than twice as likely"
    states = {token.state for line in dated.lines for token in line.tokens}
    return CAPTIONS["dim, struck" if "lost" in states else "dim"]


def _first_steps(dated: Texts) -> Iterator[tuple[str, str, str]]:
    """Give the first step of each shade, or its smallest gain, with its ink and paper."""
    if isinstance(dated, BeyondBigrams):
        for gain, shade in dated.key:
            yield str(gain), *_colours(shade)
        return
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
    if token.state not in ("good", "late"):
        line = "text-decoration:line-through;" if token.state == "lost" else ""
        return f'<span style="opacity:.6;{line}">{text}</span>'
    ink, paper = _colours(token.shade)
    colours = f"color:{ink};background:{paper};" if token.state == "good" else ""
    line = "text-decoration:underline;" if token.leads else ""
    since = "" if token.step is None else f' title="from {step_text(token.step)}"'
    return f'<span{since} style="{colours}{line}">{text}</span>'


def _colours(shade: int) -> tuple[str, str]:
    """Return ink and paper of a shade, as the page has them in daylight."""
    paper = ramp(PROGRESS["light"], SHADES)[shade]
    inks = (BASE["light"]["ink"], BASE["light"]["paper"])
    return max(inks, key=lambda ink: contrast(paper, ink)), paper
