"""Conversations and prompts with their completions, as texts, and where their answers stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError
from .scoring import Ranges, answer_range

Conversation: TypeAlias = Sequence[Mapping[str, Any]]
Prompted: TypeAlias = Mapping[str, str]
_ANSWERS = "assistant"
# Roles as ShareGPT calls them.
_ROLES = {"human": "user", "gpt": _ANSWERS, "chatgpt": _ANSWERS}
# What a template holds that tells which tokens the assistant writes.
_MARKED = re.compile(r"\{%-?\s*generation\s*-?%\}")
_DATE = "26 Jul 2024"  # templates of Llama write the date: the same texts every day


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages, each with a role and a text.

    Examples
    --------
    >>> (
    ...     is_conversation([{"role": "user", "content": "Hello?"}]),
    ...     is_conversation(["Hello?"]),
    ... )
    (True, False)
    """
    if not isinstance(value, list) or not value:
        return False
    return all(map(_is_message, value))


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), str) for name in ("role", "content")
    )


def messages_of(value: Any) -> list[dict[str, Any]] | None:
    """Return a conversation with roles and texts as chat templates take them; None if it is none.

    ShareGPT writes ``from`` and ``value``; texts may be in parts, and calls of tools without one.

    Examples
    --------
    >>> messages_of([{"from": "human", "value": "Hello?"}])
    [{'role': 'user', 'content': 'Hello?'}]
    """
    if not isinstance(value, list) or not all(isinstance(m, Mapping) for m in value):
        return None
    made = [_message(dict(message)) for message in value]
    return made if is_conversation(made) else None


def is_prompted(value: Any) -> bool:
    """Return whether a value is a prompt with its completion.

    Examples
    --------
    >>> (
    ...     is_prompted({"prompt": "2 + 3 =", "completion": " 5"}),
    ...     is_prompted({"prompt": "2 + 3 ="}),
    ... )
    (True, False)
    """
    names = ("prompt", "completion")
    is_pair = isinstance(value, Mapping) and value.keys() == {*names}
    return is_pair and all(isinstance(value[name], str) for name in names)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    if {"from", "value"} <= message.keys():
        role = message.pop("from")
        text = message.pop("value")
        message |= {"role": _ROLES.get(str(role), role), "content": text}
    parts = message.get("content")
    if isinstance(parts, list):
        named = [part.get("text") for part in parts if isinstance(part, Mapping)]
        texts = [text for text in named if isinstance(text, str)]
        if len(texts) == len(parts):  # an image has none
            message["content"] = "".join(texts)
    elif parts is None and "tool_calls" in message:
        message["content"] = ""
    return message


def rendered(texts: list[Any], tokenizer: Any) -> tuple[list[str], list[Ranges] | None]:
    """Return texts, and of conversations and prompts the characters of their answers.

    Raises
    ------
    ArgumentError
        If only some are conversations, the tokenizer has no template or tells no places, or its
        template does not keep what it wrote when further messages follow.
    """
    plain = [isinstance(text, str) for text in texts]
    if all(plain):
        return texts, None
    prompted = [is_prompted(text) for text in texts]
    if any(plain) or len(set(prompted)) > 1:
        raise ArgumentError(
            "texts must be conversations, or prompts with completions, or none of them; got some "
            "of each."
        )
    if all(prompted):
        return [text["prompt"] + text["completion"] for text in texts], [
            answer_range(text["prompt"] + text["completion"], len(text["prompt"]))
            for text in texts
        ]
    if not getattr(tokenizer, "chat_template", None) or not getattr(
        tokenizer, "is_fast", False
    ):
        raise ArgumentError(
            "the texts are conversations, and the tokenizer has no chat template, or tells no "
            "places of characters; name one with --tokenizer, or a column of texts with "
            "--set inputs.field=NAME."
        )
    is_marked = bool(_MARKED.search(str(tokenizer.chat_template)))
    read = _marked if is_marked else _of_one
    pairs = [read(text, tokenizer) for text in texts]
    return [text for text, _ in pairs], [ranges for _, ranges in pairs]


def _marked(conversation: Conversation, tokenizer: Any) -> tuple[str, Ranges]:
    """Return the text, and the characters that the template itself marks as the assistant's."""
    messages = [dict(message) for message in conversation]
    text = _written(tokenizer, messages)
    encoded = tokenizer.apply_chat_template(
        messages,
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
        date_string=_DATE,
        tokenizer_kwargs={"return_offsets_mapping": True},
    )
    marked = zip(encoded["offset_mapping"], encoded["assistant_masks"], strict=True)
    return text, [(int(start), int(end)) for (start, end), mask in marked if mask]


def _of_one(conversation: Conversation, tokenizer: Any) -> tuple[str, Ranges]:
    messages = [dict(message) for message in conversation]
    text = _written(tokenizer, messages)
    ranges = []
    for place, message in enumerate(messages):
        if message["role"] != _ANSWERS:
            continue
        # What stands before an answer is what the model is given to answer.
        before = (
            _written(tokenizer, messages[:place], add_generation_prompt=True)
            if place
            else ""
        )
        answer = message["content"].strip()
        start = text.find(answer, len(before))
        if not text.startswith(before) or start < 0:
            raise ArgumentError(
                "the tokenizer's chat template writes messages in another way once further ones "
                "follow, and has no {% generation %} that marks what the assistant writes; give "
                "conversations with one answer each, a template with the mark, or score='all'. "
                f"The answer is {answer[:40]!r}."
            )
        ranges.append((start, start + len(answer)))
    return text, ranges


def _written(tokenizer: Any, messages: list[dict[str, Any]], **options: Any) -> str:
    try:
        options |= {"tokenize": False, "date_string": _DATE}
        return str(tokenizer.apply_chat_template(messages, **options))
    except Exception as error:
        # A template refuses roles that do not alternate, and the like.
        raise ArgumentError(
            f"the tokenizer's chat template refuses a conversation: {error}"
        ) from error


def at_answers(spans: np.ndarray | None, ranges: Ranges | None) -> np.ndarray:
    """Return (L,) True for the tokens of spans (L, 2) that lie in one of some ranges, or True.

    Examples
    --------
    >>> at_answers(np.array([[0, 2], [2, 5], [5, 5]]), [(2, 6)]).tolist()
    [False, True, False]
    """
    if spans is None or ranges is None:
        return np.array(True)
    first = spans[..., None, 0]
    last = spans[..., None, 1]
    starts, ends = np.array(ranges, dtype=int).reshape(-1, 2).T
    return np.any((first < ends) & (last > starts) & (last > first), axis=-1)
