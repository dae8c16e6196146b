"""Copies of the demo model with a fault."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.engines.model_files import DEMO_PATH

Edit = Callable[[Path], object]


def copy_demo(folder: Path, *edits: Edit) -> Path:
    """A copy of the demo model in a new folder, with the edits."""
    shutil.copytree(DEMO_PATH, folder)
    for edit in edits:
        edit(folder)
    return folder


def without(name: str) -> Edit:
    return lambda folder: (folder / name).unlink()


def with_json(name: str, change: Callable[[Any], Any]) -> Edit:
    """A JSON file of the model, changed."""

    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")

    return edit


def with_mel_bins(count: int) -> Edit:
    return with_json("preprocessor_config.json", lambda config: config | {"feature_size": count})


def with_alignment_heads(heads: Any) -> Edit:
    """None removes them."""
    return with_json(
        "config.json",
        lambda config: {
            name: value for name, value in (config | {"alignment_heads": heads}).items() if value
        },
    )


def with_large_v3_tokenizer() -> Edit:
    """A tokenizer with one language more, as that of large-v3: all later tokens have other numbers."""

    def change(tokenizer: dict[str, Any]) -> dict[str, Any]:
        added = tokenizer["added_tokens"]
        place = next(index for index, token in enumerate(added) if token["content"] == "<|su|>") + 1
        new = added[place] | {"content": "<|yue|>"}
        return tokenizer | {
            "added_tokens": [*added[:place], new, *(one | {"id": one["id"] + 1} for one in added[place:])]
        }

    return with_json("tokenizer.json", change)


def without_timestamps() -> Edit:
    """A tokenizer without the timestamps, as published for the models before large-v3."""
    return with_json(
        "tokenizer.json",
        lambda tokenizer: (
            tokenizer | {"added_tokens": [one for one in tokenizer["added_tokens"] if one["id"] <= 50363]}
        ),
    )
