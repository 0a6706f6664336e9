"""Controlled generation: customer-support dialogues from the same draws of parameters in every language.

Paper B, section 2.1 and appendix B (tables 3 to 5). The sets that are drawn from are params/prompts/dialogues.yaml, the
prompts params/prompts/instructions/dialogue_system.txt and dialogue_user.txt.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from xlc_utils.chat.base import Chat, ChatModel, Reply, Sampling, whole_characters
from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.judges.released import PARAMETERS, SENDERS, Turn
from xlc_utils.registry import languages, prompts
from xlc_utils.registry.files import Names, StrictModel, parse, project_root, read_yaml, shown, wrong
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

#: How dialogues are generated: room for 16 e-mails in any of the languages, and the temperature of the authors'
#: released code (the paper states none).
SAMPLING = Sampling(max_tokens=4096, temperature=0.8)

COLUMNS = [
    "dialogue_id", "language", "generator", *PARAMETERS, "n_messages", "n_agents", "agent_emails",
    "turns", "n_turns", "count_as_asked", "n_agents_found", "agents_sequential", "share_right_language",
    "outcome", "detail",
]  # fmt: skip

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "messages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "sender": {"type": "string", "enum": list(SENDERS)},
                        "name": {"type": "string"},
                        "text": {"type": "string"},
                    },
                    "required": ["sender", "name", "text"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["messages"],
        "additionalProperties": False,
    }
)

# What models call the two sides in the four languages, though the prompt asks for the English words.
_SENDER_OF = {
    label: sender
    for sender, labels in {
        "agent": (
            "agent", "support agent", "support", "representative",
            "klienditeenindaja", "klienditugi", "teenindaja", "esindaja",
            "agentti", "asiakaspalvelija", "asiakaspalvelu", "edustaja",
            "ügynök", "ügyintéző", "ügyfélszolgálat", "ügyfélszolgálatos", "munkatárs",
        ),
        "customer": ("customer", "client", "klient", "asiakas", "ügyfél", "vásárló"),
    }.items()
    for label in labels
}  # fmt: skip
_LABEL = "|".join(sorted(map(re.escape, _SENDER_OF), key=len, reverse=True))
# "AGENT:", "**Agent 1:**", "2. Customer (Anna):" and "Anna (customer):"; what stands beside the label is for `_name` to
# judge. All repetitions have a limit: with none, a long line of asterisks would take forever.
_TURN = re.compile(
    rf"[\s>*_#-]{{0,12}}(?:\d{{1,3}}[.)]\s{{0,3}})?[*_]{{0,3}}"
    rf"(?:(?P<first>{_LABEL})(?![^\W\d_])(?P<after>[^:：]{{0,40}})|(?P<before>[^:：()]{{1,40}})\((?P<last>{_LABEL})\)[*_]{{0,3}})"
    rf"[:：][*_]{{0,3}}(?P<text>.*)",
    re.IGNORECASE,
)


class Malformed(ValueError):
    """A reply does not have the form that was asked for; the message says in what."""


class DialogueOptions(StrictModel):
    """The sets of params/prompts/dialogues.yaml.

    Of problems, channels, experience and type the keys are the labels, the values the user prompt's sentences for them.
    """

    company: str
    industries: Names
    problems: dict[str, str]
    channels: dict[str, str]
    agent_experiences: dict[str, str]
    agent_types: dict[str, str]
    message_counts: tuple[int, ...] = Field(strict=False)
    message_weights: tuple[float, ...] = Field(strict=False)
    numbers_of_agents: tuple[int, ...] = Field(strict=False)
    agent_emails: Names

    @model_validator(mode="after")
    def _can_be_drawn(self) -> DialogueOptions:
        for name in type(self).model_fields:
            if not getattr(self, name):
                raise wrong(f"`{name}` is empty", "give at least one")
        if len(self.message_weights) != len(self.message_counts):
            raise wrong("`message_weights` and `message_counts` differ in length", "give each count its weight")
        if min(self.message_weights) < 0 or abs(sum(self.message_weights) - 1) > 1e-9:
            raise wrong("`message_weights` are no probabilities", "write numbers from 0 that add up to 1")
        if not 1 <= min(self.numbers_of_agents) <= max(self.numbers_of_agents) <= len(self.agent_emails):
            raise wrong("`numbers_of_agents` does not fit `agent_emails`", "ask for 1 agent to as many as there are")
        return self

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of each of the five recorded parameters (`PARAMETERS`)."""
        sets = self.industries, self.problems, self.channels, self.agent_experiences, self.agent_types
        return {name: tuple(labels) for name, labels in zip(PARAMETERS, sets, strict=True)}


@dataclass(frozen=True)
class DialogueParameters:
    """One draw. The dialogues that any model writes from it in any language share its ``dialogue_id``."""

    dialogue_id: str
    industry: str
    problem: str
    channel: str
    agent_experience: str
    agent_type: str
    n_messages: int
    n_agents: int
    agent_emails: tuple[str, ...]


def read_options() -> DialogueOptions:
    """The project's params/prompts/dialogues.yaml.

    Raises:
        Problem: naming the key that is wrong.
    """
    path = project_root() / "params" / "prompts" / "dialogues.yaml"
    return parse(DialogueOptions, read_yaml(path), shown(path))


def draw_parameters(n: int, seed: int) -> list[DialogueParameters]:
    """n draws, the same for every language and model; the first k of them are those of ``draw_parameters(k, seed)``.

    Args:
        n: dialogues a language.
        seed: of the run; it is part of the ids, so that no dialogue is mistaken for one of another seed.
    """
    options = read_options()
    return [_draw(options, f"seed{seed}-{i:05d}", np.random.default_rng((seed, i))) for i in range(n)]


def _draw(options: DialogueOptions, dialogue_id: str, rng: np.random.Generator) -> DialogueParameters:
    drawn = {name: labels[rng.integers(len(labels))] for name, labels in options.labels.items()}
    n_agents = options.numbers_of_agents[rng.integers(len(options.numbers_of_agents))]
    agents = rng.permutation(len(options.agent_emails))[:n_agents]
    return DialogueParameters(
        dialogue_id=dialogue_id,
        **drawn,
        n_messages=options.message_counts[rng.choice(len(options.message_counts), p=options.message_weights)],
        n_agents=n_agents,
        agent_emails=tuple(options.agent_emails[i] for i in agents),
    )


def draws_table(draws: Sequence[DialogueParameters]) -> pd.DataFrame:
    """One row a draw, with the fields of `DialogueParameters`; e-mail addresses are joined by spaces."""
    names = list(DialogueParameters.__dataclass_fields__)
    rows = [asdict(draw) | {"agent_emails": " ".join(draw.agent_emails)} for draw in draws]
    return pd.DataFrame(rows, columns=names)


def filled(instruction: str, values: Mapping[str, str]) -> str:
    """An instruction with each ``{name}`` replaced by its value; braces in the values are left alone.

    Raises:
        Problem: the instruction has no place for one of the values, so that the model would not see it.
    """
    for name in values:
        if f"{{{name}}}" not in instruction:
            raise Problem(f"the instruction {instruction[:40]!r}…", f"it has no {{{name}}}", "write it in")
    return re.sub(r"\{(\w+)\}", lambda place: values.get(place[1], place[0]), instruction)


def chats(draws: Sequence[DialogueParameters], language: str) -> list[Chat]:
    """The request for each draw's dialogue in one language (code): but for the language's name the same in all."""
    options, root = read_options(), project_root()
    system, user = (prompts.instruction(root, f"dialogue_{part}") for part in ("system", "user"))
    name = languages.get(language).name
    return [
        Chat.user(filled(user, _words(draw, name, options)), system, language=language, prompt_id=draw.dialogue_id)
        for draw in draws
    ]


def _words(draw: DialogueParameters, language: str, options: DialogueOptions) -> dict[str, str]:
    """What stands for each placeholder of the user prompt."""
    return {
        "n_agents": "1 support agent" if draw.n_agents == 1 else f"{draw.n_agents} support agents",
        "agent_emails": ", ".join(draw.agent_emails),
        "language": language,
        "n_messages": str(draw.n_messages),
        "company": options.company,
        "industry": draw.industry,
        "agent_type": options.agent_types[draw.agent_type],
        "problem": options.problems[draw.problem],
        "channel": options.channels[draw.channel],
        "agent_experience": options.agent_experiences[draw.agent_experience],
    }


def generate_dialogues(
    model: ChatModel,
    draws: Sequence[DialogueParameters],
    language: str,
    detector: LanguageDetector,
    sampling: Sampling = SAMPLING,
) -> pd.DataFrame:
    """One call a draw, each dialogue whole in one reply (paper B, appendix B).

    A dialogue of another length or order than asked for is a dialogue and stays ``ok``; the columns say so and whoever
    wants may leave it out. Only ``ok`` and ``off_target`` dialogues have turns.

    Args:
        model: the generator, a chat model.
        draws: see `draw_parameters`.
        language: code of the language to write in.
        detector: tells the language of each turn.
        sampling: its ``json_schema`` is set here.

    Returns:
        One row a draw, in their order: dialogue_id, language, generator; the other fields of the draw; and

        - turns (JSON, see `turns_from_json`), n_turns, count_as_asked (n_turns is n_messages);
        - n_agents_found (told apart by name), agents_sequential (no agent comes back after another one; False without
          turns);
        - share_right_language: of the turns long enough to tell, NaN if none is;
        - outcome, detail. ``off_target``: more of these turns are in other languages than in the one asked for.
          ``unparsed``: see `parse_turns`.
    """
    replies = model.complete(chats(draws, language), replace(sampling, json_schema=SCHEMA))
    who = {"language": language, "generator": model.name}
    rows = [
        {**who, **drawn, **_checked(reply, drawn["n_messages"], language, detector)}
        for drawn, reply in zip(draws_table(draws).to_dict("records"), replies, strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _checked(reply: Reply, n_messages: int, language: str, detector: LanguageDetector) -> dict:
    """The turns of a reply and what was found of them."""
    turns, outcome, detail = _read(reply)
    share, foreign = language_share(turns, language, detector)
    agents = _agents(turns)
    if share < 0.5:
        outcome, detail = Outcome.OFF_TARGET, f"{1 - share:.0%} of its turns are not in {language}, mostly in {foreign}"
    return {
        "turns": turns_to_json(turns),
        "n_turns": len(turns),
        "count_as_asked": len(turns) == n_messages,
        "n_agents_found": len(set(agents)),
        "agents_sequential": bool(turns) and is_sequential(agents),
        "share_right_language": share,
        "outcome": str(outcome),
        "detail": detail,
    }


def _read(reply: Reply) -> tuple[tuple[Turn, ...], Outcome, str]:
    if reply.outcome is not Outcome.OK:
        return (), reply.outcome, reply.detail
    try:
        turns = parse_turns(reply.text)
    except Malformed as error:
        return (), Outcome.UNPARSED, str(error)
    return (turns, Outcome.OK, "") if turns else ((), Outcome.EMPTY, "a dialogue without messages")


def parse_turns(text: str) -> tuple[Turn, ...]:
    """The turns of a completion: JSON as asked for, or else lines that begin with who writes.

    JSON may stand in a code fence or between other text, and the list of messages may stand without the object around
    it. Lines are "AGENT: …" or "CUSTOMER: …", or the words for these in English, Estonian, Finnish or Hungarian, in any
    case, numbered or emphasised or not, with the name after the word or before it; lines without go with the turn
    above. Lines before the first turn and code fences are dropped. Nothing of the prompt is looked at.

    Raises:
        Malformed: neither is there, or a message has no known sender or no text.
    """
    messages = _json_messages(text)
    turns = tuple(_from_lines(text)) if messages is None else tuple(_turn(m, i) for i, m in enumerate(messages, 1))
    if messages is None and not turns:
        raise Malformed(f"neither JSON with messages nor lines of agent and customer: {text[:80]!r}")
    for number, turn in enumerate(turns, 1):
        if not turn.text:
            raise Malformed(f"message {number} has no text")
    return turns


def _json_messages(text: str) -> list | None:
    """The list of messages in the first JSON value that holds one."""
    decoder = json.JSONDecoder(strict=False)  # line breaks inside a text are often left unescaped
    for start in (match.start() for match in re.finditer(r"[{\[]", text)):
        try:
            found, _ = decoder.raw_decode(text, start)
        except RecursionError:  # brackets in brackets a thousand deep hold no dialogue
            return None
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("messages"), list):
            return found["messages"]
        if isinstance(found, list) and any(isinstance(message, dict) and "sender" in message for message in found):
            return found
    return None


def _turn(message: object, number: int) -> Turn:
    if not isinstance(message, dict):
        raise Malformed(f"message {number} is no object")
    label, name, text = message.get("sender"), message.get("name") or "", message.get("text") or ""
    sender = _SENDER_OF.get(label.strip().casefold()) if isinstance(label, str) else None
    if sender is None:
        raise Malformed(f"message {number} has no known sender: {brief(label)}")
    if not isinstance(text, str) or not isinstance(name, str):
        raise Malformed(f"message {number} has a name or a text that is no text")
    return Turn(sender, whole_characters(name).strip(), whole_characters(text).strip())


def brief(value: object) -> str:
    """A decoded JSON value as a message shows it; of one that is nested, perhaps deeply, only the kind."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]


def _from_lines(text: str) -> Iterator[Turn]:
    begun: Turn | None = None
    for line in text.splitlines():
        if line.strip().startswith("```"):
            continue
        new = _begins_turn(line)
        if new:
            if begun:
                yield replace(begun, text=begun.text.strip())
            begun = new
        elif begun:
            begun = replace(begun, text=f"{begun.text}\n{line}")
    if begun:
        yield replace(begun, text=begun.text.strip())


def _begins_turn(line: str) -> Turn | None:
    match = _TURN.match(line)
    if not match:
        return None
    # Ignoring case, "ı" matches "i", so that not everything that matches is a label.
    sender = _SENDER_OF.get((match["first"] or match["last"]).casefold())
    name = _name(match["after"] if match["first"] else match["before"])
    return None if sender is None or name is None else Turn(sender, name, match["text"])


def _name(beside_label: str) -> str | None:
    """The name beside a sender's label, "" if there is none; None where it is something else: "Customer service:"."""
    name = beside_label.strip(" ()[]*_#-–—,/|\t")
    in_brackets = beside_label.strip(" *_").startswith(("(", "["))
    looks_like_one = len(name.split()) <= 3 and not any(word[0].islower() for word in name.split())
    return name if in_brackets or looks_like_one else None


def language_share(turns: Sequence[Turn], language: str, detector: LanguageDetector) -> tuple[float, str]:
    """Share of the turns in ``language``, of those long enough to tell (NaN: none is), and the commonest other one."""
    found = [detector.language(turn.text, language) for turn in turns]
    told = Counter(code for code in found if code is not None)
    foreign = max((code for code in told if code != language), key=lambda code: told[code], default="")
    return (told[language] / told.total() if told else float("nan")), foreign


def _agents(turns: Sequence[Turn]) -> list[str]:
    """Who wrote each agent's turn that has a name; "robin.falk@…" and "Robin Falk" are the same."""
    names = (turn.name.split("@")[0].casefold() for turn in turns if turn.sender == "agent")
    return [name for name in (" ".join(re.split(r"[\s._-]+", name)).strip() for name in names) if name]


def is_sequential(agents: Sequence[str]) -> bool:
    """Whether no agent comes back after another one (paper B, table 3). Vacuously true of one agent, or none named."""
    changes = [name for i, name in enumerate(agents) if i == 0 or agents[i - 1] != name]
    return len(changes) == len(set(changes))


def turns_to_json(turns: Sequence[Turn]) -> str:
    """As the column ``turns`` holds them: a JSON list of {"sender", "name", "text"}."""
    return json.dumps([asdict(turn) for turn in turns], ensure_ascii=False)


def turns_from_json(text: str) -> tuple[Turn, ...]:
    """The inverse of `turns_to_json`."""
    return tuple(Turn(**turn) for turn in json.loads(text))


def first_draws(dialogues: pd.DataFrame, n: int) -> pd.DataFrame:
    """The dialogues of the first n draws (by id): the same draws of every language and generator, so that they pair."""
    ids = sorted(dialogues["dialogue_id"].unique())[:n]
    return dialogues[dialogues["dialogue_id"].isin(ids)].reset_index(drop=True)
