"""What an entry of the audit is, and how the functions that recompute a statement become entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from xlc_utils.reporting import published

HOLDS = "holds"
AS_PUBLISHED = "holds only as published"
DOES_NOT_HOLD = "does not hold"
CANNOT_BE_CHECKED = "cannot be checked"

#: The verdicts and what each of them says.
VERDICTS = {
    HOLDS: "what is recomputed agrees with the statement.",
    AS_PUBLISHED: "it agrees under the paper's own procedure, choice of data or reading of a word, and not under "
    "another one that is named beside it.",
    DOES_NOT_HOLD: "what is recomputed disagrees with the statement, or another printed statement excludes it.",
    CANNOT_BE_CHECKED: "what would decide it is neither printed nor released; what can be said without it is said.",
}


@dataclass(frozen=True)
class Finding:
    """What recomputing one statement gave.

    Attributes:
        verdict: key of `VERDICTS`.
        recomputed: what was recomputed and what it gave, in sentences.
        numbers: every number that the verdict rests on, by name.
        inference: whether the verdict or the explanation needs something that is neither printed nor released.
    """

    verdict: str
    recomputed: str
    numbers: dict[str, float] = field(default_factory=dict)
    inference: bool = False


@dataclass(frozen=True)
class Entry:
    """One printed statement beside what was recomputed.

    Attributes:
        name: what `xlc audit NAME` calls it.
        paper: "A" or "B".
        where: the place in the paper, such as "§5.2" or "Table 4".
        printed: the statement, quoted.
        finding: see `Finding`.
    """

    name: str
    paper: str
    where: str
    printed: str
    finding: Finding

    @property
    def command(self) -> str:
        """What a person types to see the numbers."""
        return f"xlc audit {self.name}"


@dataclass(frozen=True)
class _Statement:
    name: str
    where: str
    printed: str
    recompute: Callable[[], Finding]

    def entry(self) -> Entry:
        return Entry(self.name, self.name[0].upper(), self.where, self.printed, self.recompute())


#: Every statement of the audit by name, in the order in which they were declared.
STATEMENTS: dict[str, _Statement] = {}


def statement(
    name: str, claim: str = "", where: str = "", printed: str = ""
) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Declare the decorated function as what recomputes a statement.

    Args:
        name: begins with "a-" or "b-", the paper.
        claim: id of the statement in the transcribed claims, which then give `where` and `printed`.
        where, printed: the place and the quotation of a statement that is not among the claims.
    """
    if claim:
        where, printed = _claims(claim[0].lower())[claim]

    def declare(recompute: Callable[[], Finding]) -> Callable[[], Finding]:
        STATEMENTS[name] = _Statement(name, where, printed, recompute)
        return recompute

    return declare


@lru_cache
def _claims(paper: str) -> dict[str, tuple[str, str]]:
    claims = published.load(f"paper_{paper}_claims")
    return {claim.id: (claim.where, claim.quote) for claim in claims.itertuples()}


def joined(items: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)
