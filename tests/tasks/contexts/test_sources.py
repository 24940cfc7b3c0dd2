"""Texts from files and text sets: what has a number is kept, what is wrong is said in a line."""

from __future__ import annotations

import json
import sys

import pytest

from mechnum.errors import MechnumError
from mechnum.tasks.contexts import context_prompts, hub_texts, read_texts
from tests.tasks.contexts.test_contexts import MODEL

TEXTS = ["Chapter 1 has 30 pages.", "No number here.", "It is 12 miles to town."]


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def test_plain_text_and_json_lines_give_the_same_texts(tmp_path):
    plain = read_texts(written(tmp_path, "a.txt", "\n".join(TEXTS) + "\n\n"))
    lines = "\n".join(json.dumps({"body": text, "id": 7}) for text in TEXTS)
    rows = read_texts(written(tmp_path, "b.jsonl", lines), "novel", key="body")
    assert plain.texts == rows.texts == (TEXTS[0], TEXTS[2])
    assert (plain.name, rows.name) == ("a", "novel")
    (tmp_path / "marked.jsonl").write_text(lines, encoding="utf-8-sig")
    assert read_texts(tmp_path / "marked.jsonl", key="body").texts == plain.texts
    assert read_texts(tmp_path / "a.txt", limit=1).texts == (TEXTS[0],)
    groups = context_prompts(MODEL, (plain,), range(10), 3)
    assert sum(group.values.numel() for group in groups) >= 30


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"1 \xff\xfe")
    for match, path in {
        "cannot read": tmp_path / "missing.txt",
        "no text in UTF-8": tmp_path / "bytes.txt",
        "no text with a number": written(tmp_path, "none.txt", "words\n"),
        "line 2 of .* is no JSON": written(tmp_path, "x.jsonl", '{"text": "1"}\n{"text"\n'),
        r"no 'text': .*'body'": written(tmp_path, "y.jsonl", '{"body": "1"}'),
        "no text as 'text'": written(tmp_path, "number.jsonl", '{"text": 1}'),
        "no object": written(tmp_path, "z.jsonl", "[1]"),
    }.items():
        with pytest.raises(MechnumError, match=match):
            read_texts(path)


def test_a_hub_set_without_the_library_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MechnumError, match="`datasets` is not installed"):
        hub_texts("nobody/nothing")


@pytest.mark.slow
def test_a_hub_set_is_streamed_or_refused_in_a_line(tmp_path):
    """A folder of JSON lines is a text set; an id that cannot be reached is none."""
    lines = "\n".join(json.dumps({"body": text}) for text in TEXTS)
    written(tmp_path, "train.jsonl", lines)
    found = hub_texts(str(tmp_path), key="body", limit=5)
    assert found.texts == (TEXTS[0], TEXTS[2])
    with pytest.raises(MechnumError, match="has no 'text'"):
        hub_texts(str(tmp_path))
    with pytest.raises(MechnumError, match="cannot read the text set") as caught:
        hub_texts("nobody/nothing")
    assert "\n" not in str(caught.value)
