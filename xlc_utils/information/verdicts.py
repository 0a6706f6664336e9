"""supported(f, s): is claim f supported by text s? (paper A §3.1). One small class a verifier.

All but `ModelVerifier` give a score only, higher for better supported; `Calibrated` turns scores into verdicts with a
threshold set on answers of which the truth is known.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from xlc_utils.chat.base import Chat, ChatModel, Reply, Sampling
from xlc_utils.chat.encoder import Encoder
from xlc_utils.information import factscore
from xlc_utils.information.claims import json_object
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.text.english import sentences_of


@dataclass(frozen=True)
class Verdict:
    """``supported`` means something only when the outcome is ok."""

    score: float
    supported: bool
    outcome: Outcome = Outcome.OK
    detail: str = ""


class Scorer(Protocol):
    """Scores claims; ``fit`` is called once with pairs of known truth where ``needs_fit``."""

    name: str

    def scores(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Shape (n,): how well reference i supports claim i, higher is better; NaN where it cannot be said."""
        ...


_NEGATION = frozenset({"not", "no", "never", "none", "nothing", "neither", "nor", "without", "cannot", "hardly"})
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@cache
def _lemma(word: str) -> str:
    from simplemma import lemmatize

    return lemmatize(word, lang="en")


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


@cache
def content(text: str) -> frozenset[str]:
    """Lemmas of the words that carry meaning."""
    return frozenset(_lemma(w) for w in _TOKEN.findall(text.lower()) if w not in _stop_words())


@cache
def numbers(text: str) -> frozenset[str]:
    return frozenset(n.replace(",", "") for n in _NUMBER.findall(text))


@cache
def negated(text: str) -> bool:
    return any(w in _NEGATION or w.endswith("n't") for w in _TOKEN.findall(text.lower().replace("’", "'")))


@dataclass(frozen=True)
class Overlap:
    """What words say about a claim and the reference sentence most like it."""

    best: float  # share of the claim's content words in that sentence
    whole: float  # share of them anywhere in the reference
    numbers_missing: float  # share of the claim's numbers that the reference lacks
    negation_differs: bool  # one of claim and sentence is negated, the other is not

    @classmethod
    def of(cls, claim: str, reference: str) -> Overlap:
        words = content(claim) or frozenset(_TOKEN.findall(claim.lower())) or frozenset({claim})
        best, sentence = max((len(words & content(s)) / len(words), s) for s in sentences_of(reference))
        lacking = numbers(claim) - numbers(reference)
        return cls(
            best=best,
            whole=len(words & content(reference)) / len(words),
            numbers_missing=len(lacking) / len(numbers(claim)) if numbers(claim) else 0.0,
            negation_differs=negated(claim) != negated(sentence),
        )


class Lexical:
    """Content-word overlap with the best sentence, halved for a number the reference lacks and for a negation that
    only one side has."""

    name = "lexical"

    def scores(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        found = (Overlap.of(c, r) for c, r in zip(claims, references, strict=True))
        return np.array([o.best * (1 - o.numbers_missing / 2) * (0.5 if o.negation_differs else 1.0) for o in found])


class Embedding:
    """Highest cosine similarity of the claim to a sentence of the reference. It cannot see a contradiction."""

    name = "embedding"

    def __init__(self, encoder: Encoder):
        self._encoder = encoder

    def scores(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        texts = list(dict.fromkeys([*claims, *(s for r in references for s in sentences_of(r))]))
        vectors = dict(zip(texts, self._encoder.encode(texts), strict=True))
        pairs = zip(claims, references, strict=True)
        return np.array([max(float(vectors[c] @ vectors[s]) for s in sentences_of(r)) for c, r in pairs])


class Fused:
    """Logistic regression over what `Lexical` and `Embedding` see, fitted on answers of known truth."""

    name = "fused"

    def __init__(self, encoder: Encoder):
        self._embedding, self._model = Embedding(encoder), None

    def fit(self, claims: Sequence[str], references: Sequence[str], supported: np.ndarray, weights=None) -> None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        self._model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
        features = self._features(claims, references)
        self._model.fit(features, supported, logisticregression__sample_weight=weights)

    def scores(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        return self._model.predict_proba(self._features(claims, references))[:, 1]

    def _features(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        found = [Overlap.of(c, r) for c, r in zip(claims, references, strict=True)]
        words = np.array([[o.best, o.whole, o.numbers_missing, o.negation_differs] for o in found], float)
        return np.column_stack([words, self._embedding.scores(claims, references)])


def by_reference(references: Sequence[str]) -> list[int]:
    """Positions in an order in which equal references follow each other, so that a server's prefix cache pays."""
    place = {reference: n for n, reference in enumerate(dict.fromkeys(references))}
    return sorted(range(len(references)), key=lambda i: place[references[i]])


class Likelihood:
    """Mean log-probability per token that a language model gives the claim after the reference.

    Args:
        model: a model that can be held to a text (`Chat.forced`); one that says anything else gives no score.
    """

    name = "likelihood"

    def __init__(self, model: ChatModel):
        self._model = model

    def scores(self, claims: Sequence[str], references: Sequence[str]) -> np.ndarray:
        order = by_reference(references)
        chats = [Chat(completion=f"{references[i]}\n\nIn short:", forced=" " + claims[i]) for i in order]
        found = np.full(len(claims), np.nan)
        for i, reply in zip(order, self._model.complete(chats, Sampling(logprobs=1)), strict=True):
            if reply.logprobs and reply.text == claims[i].strip():
                found[i] = np.mean([p for _, p, _ in reply.logprobs])
        return found


def best_threshold(scores: np.ndarray, supported: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The threshold with the best balanced accuracy on pairs of known truth.

    Args:
        scores: shape (n,), NaN where there is none.
        supported: shape (n,), the truth.
        weights: shape (n,), how much each pair counts; all alike if not given.

    Returns:
        The middle of the gap between two scores, or what is just below all of them; the lowest of equally good ones.

    Raises:
        Problem: pairs of one kind only have scores, so that nothing can be told apart.
    """
    known = ~np.isnan(scores)
    scores, supported = scores[known], np.asarray(supported, bool)[known]
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, float)[known]
    if supported.all() or not supported.any():
        raise Problem(
            "the known answers",
            "a verifier scores no supported claim or no unsupported one, so it has no threshold",
            "take it out of `claim_verifiers`, or give more `languages` and `information_prompts`",
        )
    levels = np.unique(scores)
    cuts = np.concatenate([[np.nextafter(levels[0], -np.inf)], (levels[1:] + levels[:-1]) / 2])
    above = scores[:, None] > cuts
    yes, no = weights[supported], weights[~supported]
    right = yes @ above[supported] / yes.sum() + no @ ~above[~supported] / no.sum()
    return float(cuts[int(np.argmax(right))])


class Calibrated:
    """A scorer with a threshold from known answers: a claim is supported when its score is above it.

    Args:
        scorer: one of the above.
        claims, references, supported: pairs of known truth.
        weights: how much each pair counts; all alike if not given.
    """

    def __init__(
        self,
        scorer: Scorer,
        claims: Sequence[str],
        references: Sequence[str],
        supported: np.ndarray,
        weights: np.ndarray | None = None,
    ):
        self.name, self._scorer, self.fitted = scorer.name, scorer, hasattr(scorer, "fit")
        if self.fitted:
            scorer.fit(claims, references, supported, weights)
        self.threshold = best_threshold(scorer.scores(claims, references), supported, weights)

    def verdicts(
        self, claims: Sequence[str], references: Sequence[str], answers: Sequence[str] | None = None
    ) -> list[Verdict]:
        """One verdict a claim, in order. ``answers`` says which answer each claim is about, for a verifier that takes
        all claims of an answer at once."""
        if not claims:
            return []
        return [self._verdict(float(s)) for s in self._scorer.scores(claims, references)]

    def _verdict(self, score: float) -> Verdict:
        if np.isnan(score):
            return Verdict(score, False, Outcome.ERROR, "no score")
        return Verdict(score, score > self.threshold)


@cache
def schema(n: int) -> str:
    """What a list of n verdicts looks like. Without the n a small model that is held to a schema never ends the list.
    That the verdicts match the claims one to one is checked when the list is read."""
    entry = {
        "type": "object",
        "properties": {"claim": {"type": "integer"}, "supported": {"type": "boolean"}},
        "required": ["claim", "supported"],
        "additionalProperties": False,
    }
    return json.dumps(
        {
            "type": "object",
            "properties": {"verdicts": {"type": "array", "items": entry, "minItems": n, "maxItems": n}},
            "required": ["verdicts"],
            "additionalProperties": False,
        }
    )


#: Alternatives of each token that are asked for: True and False are among the first of them or there is no doubt.
TOP = 5


class ModelVerifier:
    """An LLM says whether a reference supports claims. Any reply that does not say so is `unparsed`, never support.

    The score is the probability of True where the model gives log-probabilities, else 1 or 0. Calls that share a
    reference follow each other (`by_reference`); the same call is made once.

    Args:
        model: any chat model.
        instruction: the task with ``{reference}`` and ``{claim}`` (or ``{claims}``), of params/prompts/instructions.
        unit: "claim", one call a claim as in FActScore, or "answer", a list of verdicts for all claims of an answer.
        reading: "corrected", or "as_published": True and False are read as FActScore reads them.
        seed: of the run.
        logprobs: whether the model can be asked for log-probabilities of its tokens.
    """

    def __init__(
        self,
        model: ChatModel,
        instruction: str,
        unit: str = "claim",
        reading: str = "corrected",
        seed: int = 0,
        logprobs: bool = False,
    ):
        self.name, self._model, self._instruction = model.name, model, instruction
        self._lists, self._read = unit == "answer", published_verdict if reading == "as_published" else parse_verdict
        self._sampling = Sampling(max_tokens=2048 if self._lists else 16, seed=seed, logprobs=TOP if logprobs else None)

    def verdicts(
        self, claims: Sequence[str], references: Sequence[str], answers: Sequence[str] | None = None
    ) -> list[Verdict]:
        """See `Calibrated.verdicts`."""
        calls: dict[tuple, list[int]] = {}
        for i in by_reference(references):
            share = (answers[i] if answers is not None else "") if self._lists else claims[i]
            calls.setdefault((references[i], share), []).append(i)
        chats = [self._chat([claims[i] for i in own], reference) for (reference, _), own in calls.items()]
        out: list[Verdict] = [Verdict(np.nan, False)] * len(claims)
        for reply, own in zip(self._model.complete(chats, self._sampling), calls.values(), strict=True):
            found = parse_verdicts(reply, len(own)) if self._lists else [self._read(reply)] * len(own)
            for i, verdict in zip(own, found, strict=True):
                out[i] = verdict
        return out

    def _chat(self, claims: Sequence[str], reference: str) -> Chat:
        """All is filled in at once: a reference may hold the text "{claim}" itself."""
        listed = "\n".join(f"{n}. {claim}" for n, claim in enumerate(claims, 1))
        given = {"{reference}": reference, "{claim}": claims[0], "{claims}": listed}
        shared, *rest = (
            re.sub(r"\{(?:reference|claims?)\}", lambda place: given[place[0]], part)
            for part in re.split(r"(?=\{claims?\})", self._instruction, maxsplit=1)
        )
        form = schema(len(claims)) if self._lists else None
        return Chat.user("".join([shared, *rest]), shared=len(shared.rstrip(" ")), json_schema=form)


_VERDICT = re.compile(r"[\W_]*(?:answer\s*[*_]*[:：])?[\W_]*(true|false)(?![^\W_])(?!\W*\?)", re.IGNORECASE)


def parse_verdict(reply: Reply) -> Verdict:
    """True or False at the start of a reply, with at most "Answer:" and punctuation before it; "True?" is neither."""
    if reply.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return Verdict(np.nan, False, reply.outcome, reply.detail)
    match = _VERDICT.match(reply.text)
    both = re.search(r"\btrue\b", reply.text, re.IGNORECASE) and re.search(r"\bfalse\b", reply.text, re.IGNORECASE)
    if not match or both:
        return Verdict(np.nan, False, Outcome.UNPARSED, f"neither True nor False: {reply.text[:60]!r}")
    supported = match.group(1).lower() == "true"
    return Verdict(_score(supported, _truths(reply)[:1]), supported)


def published_verdict(reply: Reply) -> Verdict:
    """FActScore's decision about a reply, an empty one included."""
    if reply.outcome not in (Outcome.OK, Outcome.TRUNCATED, Outcome.EMPTY):
        return Verdict(np.nan, False, reply.outcome, reply.detail)
    supported = factscore.supported(reply.text)
    return Verdict(_score(supported, _truths(reply)[:1]), supported)


def parse_verdicts(reply: Reply, n: int) -> list[Verdict]:
    """The verdicts on claims 1 to n, each of them exactly once in the reply's list; else all are `unparsed`."""
    if reply.outcome is not Outcome.OK:
        return [Verdict(np.nan, False, reply.outcome, reply.detail)] * n
    found = json_object(reply.text, "verdicts")
    entries = found["verdicts"] if found else None
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        detail = f"no list of verdicts in the reply: {reply.text[:80]!r}"
    elif sorted(e["claim"] for e in entries) != list(range(1, n + 1)):
        detail = f"the verdicts do not match claims 1 to {n} one to one: {reply.text[:80]!r}"
    else:
        said = _truths(reply)
        one_to_one = [word for word, _ in said] == [e["supported"] for e in entries]
        verdicts = {}
        for i, e in enumerate(entries):
            own = said[i : i + 1] if one_to_one else []
            verdicts[e["claim"]] = Verdict(_score(e["supported"], own), e["supported"])
        return [verdicts[k] for k in range(1, n + 1)]
    return [Verdict(np.nan, False, Outcome.UNPARSED, detail)] * n


def _truths(reply: Reply) -> list[tuple[bool, float]]:
    """Each token of a reply that is the word true or false: which, and the probability of true against false there."""
    found = []
    for token, _, alternatives in reply.logprobs:
        if (word := _word(token)) in ("true", "false"):
            p = {w: sum(math.exp(logp) for t, logp in alternatives if _word(t) == w) for w in ("true", "false")}
            found += [(word == "true", p["true"] / sum(p.values()))] if any(p.values()) else []
    return found


def _word(token: str) -> str:
    return token.strip(" \n\"'*_.,:").lower()


def _score(supported: bool, said: list[tuple[bool, float]]) -> float:
    """The probability of True where the token that decided is known, else 1 or 0."""
    return said[0][1] if said and said[0][0] == supported else float(supported)


def _is_entry(entry: object) -> bool:
    """{"claim": a number, "supported": true or false} and nothing else; true is a number to Python."""
    return (
        isinstance(entry, dict)
        and set(entry) == {"claim", "supported"}
        and type(entry["claim"]) is int
        and type(entry["supported"]) is bool
    )
