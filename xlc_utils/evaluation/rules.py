"""What becomes of an answer that is not simply ok: scored from its text, scored 0, or left out.

Paper A states none of this. FActScore leaves answers without claims out of its mean, which flatters a system that
often declines; scoring them 0 lowers it. Both are a choice, so the tables say how many answers it concerned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlc_utils.registry.outcomes import Outcome

#: A name beside the outcomes that `excluded_outcomes` takes: the answer has a text, and the text states nothing.
NO_CLAIMS = "no_claims"


@dataclass(frozen=True)
class Rules:
    """By outcome: ``excluded`` answers are left out, ``scored`` ones scored from their text, all others scored 0."""

    scored: tuple[str, ...] = (Outcome.OK, Outcome.TRUNCATED)
    excluded: tuple[str, ...] = (Outcome.ERROR,)

    @classmethod
    def of(cls, params) -> Rules:
        """As a run's parameters `scored_outcomes` and `excluded_outcomes` say."""
        return cls(tuple(params.scored_outcomes), tuple(params.excluded_outcomes))

    def reads(self, outcomes: pd.Series) -> np.ndarray:
        """(n,) booleans: whose text is scored."""
        return (outcomes.isin(self.scored) & ~outcomes.isin(self.excluded)).to_numpy()

    def reasons(self, outcomes: pd.Series, english_outcomes: pd.Series) -> np.ndarray:
        """Why a response is not scored from its text.

        Args:
            outcomes: (n,) of the responses.
            english_outcomes: (n,) of the English response to the same prompt; missing where there is none.

        Returns:
            (n,) texts: "no English answer", "excluded outcome", "scored 0", or "" for what is scored from its text.
        """
        has_english, excluded = self.reads(english_outcomes), outcomes.isin(self.excluded).to_numpy()
        conditions = [~has_english, excluded, ~self.reads(outcomes)]
        return np.select(conditions, ["no English answer", "excluded outcome", "scored 0"], "").astype(object)


def english_outcomes(answers: pd.DataFrame, prompt_ids: Sequence[str]) -> pd.Series:
    """The outcome of the English answer to each of ``prompt_ids``; missing where there is none."""
    english = answers[answers["language"] == "en"].set_index("prompt_id")["outcome"]
    return pd.Series(english.reindex(prompt_ids).to_numpy())
