"""Recipes of bi-encoders: params/bi_encoders.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from xlc_utils.registry.files import StrictModel, parse, read_yaml, shown, wrong
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

Rate = Annotated[float, Field(gt=0)]
Epochs = Annotated[int, Field(ge=1)]


class Setting(StrictModel):
    """What the search on the dev part chooses."""

    learning_rate: Rate
    epochs: Epochs


class Recipe(StrictModel):
    """All that determines a bi-encoder besides the data and the seed; the keys are explained in the file."""

    id: str
    revision: str | None
    licence: str
    learning_rates: Annotated[list[Rate], Field(min_length=1)]
    epochs: Annotated[list[Epochs], Field(min_length=1)]
    chosen: dict[Literal["ER", "IP", "EX"], Setting] | None
    batch_size: Annotated[int, Field(ge=1)]
    dropout: Annotated[float, Field(ge=0, lt=1)]
    attention_heads: Annotated[int, Field(ge=1)]
    tune_seeker: bool
    max_length: Annotated[int, Field(ge=8)]

    @field_validator("chosen")
    @classmethod
    def _all_three(cls, chosen: dict | None) -> dict | None:
        if chosen is not None and set(chosen) != set(MECHANISMS):
            raise wrong("it does not name all of ER, IP and EX", "name the three, or write null to search")
        return chosen

    @property
    def grid(self) -> list[Setting]:
        """Every setting, the cheapest first."""
        return [Setting(learning_rate=r, epochs=e) for e in sorted(self.epochs) for r in sorted(self.learning_rates)]


def load(root: Path) -> dict[str, Recipe]:
    """The recipes by name.

    Raises:
        Problem: naming the key that is wrong.
    """
    path = root / "params" / "bi_encoders.yaml"
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise Problem(shown(path), "it holds no recipes", "write one entry a bi-encoder, or bring it back")
    return {name: parse(Recipe, entry, f"{shown(path)}: {name}") for name, entry in data.items()}
