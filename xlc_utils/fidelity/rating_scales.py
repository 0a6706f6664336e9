"""What human judges are asked about a text, and the answers they choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Choice:
    """One answer: the number that is stored, the key that chooses it, and what it means."""

    value: int
    key: str
    label: str
    sense: str

    @property
    def shown(self) -> str:
        """The answer as its button says it: with the number where that is the key."""
        return f"{self.value} · {self.label}" if self.key == str(self.value) else self.label


@dataclass(frozen=True)
class Question:
    """A question asked of every item.

    Attributes:
        name: its column in a spreadsheet and its key in an export.
        text: as the judge reads it. Here, in the senses of choices and in a scale's task, ``{language}`` stands for the
            language's name.
        choices: in the order shown.
    """

    name: str
    text: str
    choices: tuple[Choice, ...]

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(sorted(choice.value for choice in self.choices))


@dataclass(frozen=True)
class Scale:
    """What one sheet asks.

    Attributes:
        name: key of `SCALES`, written into exports.
        task: what to do, as the judge reads it.
        translated: whether an item has a translation beside its text.
        questions: with names and keys that differ from one another.
    """

    name: str
    task: str
    translated: bool
    questions: tuple[Question, ...]

    def worded(self, language: str) -> Scale:
        """The same with the language's name in its texts."""
        return replace(
            self,
            task=self.task.format(language=language),
            questions=tuple(
                replace(
                    question,
                    text=question.text.format(language=language),
                    choices=tuple(replace(c, sense=c.sense.format(language=language)) for c in question.choices),
                )
                for question in self.questions
            ),
        )


# Paper A, section 5.1 and appendix "Details about Human Study": how well the translation preserves the information of
# the original, 1 to 5, 5 the best. The words are ours; the paper prints a screenshot only.
FIDELITY = Scale(
    name="fidelity",
    task="Read the {language} text, then its English translation. Does the translation say what the original says? "
    "Judge the content only: clumsy English that keeps everything is a 5, fluent English that says something else a 1. "
    "Whether the statements are true does not matter.",
    translated=True,
    questions=(
        Question(
            "rating",
            "How much of the content does the translation keep?",
            (
                Choice(1, "1", "None", "it says something else, or makes no sense."),
                Choice(2, "2", "Little", "a few words or ideas are right; the main point is lost or wrong."),
                Choice(3, "3", "Most", "the main point is there; something that matters is missing, added or wrong."),
                Choice(4, "4", "Nearly all", "only a detail is missing, added or blurred."),
                Choice(5, "5", "All", "everything the original says, and nothing it does not say."),
            ),
        ),
    ),
)

# Paper B, appendix C.1 (its table 6), the sense in our words.
DIALOGUE = Scale(
    name="dialogue",
    task="Read the whole conversation between a company's support agent and a customer, then answer both questions. "
    "They are independent: a sensible conversation may be badly written, and a well written one may make no sense.",
    translated=False,
    questions=(
        Question(
            "coherence",
            "Does the content make sense?",
            (
                Choice(1, "y", "Yes", "questions and answers fit together and stay on the topic."),
                Choice(0, "n", "No", "they do not fit together, or no business would ever have such a problem or "
                "solution, or a message does not suit its channel, such as a chat's greeting in an e-mail."),
            ),
        ),
        Question(
            "fluency",
            "Is this fluent {language}, as a person would write it?",
            (
                Choice(0, "0", "Painful", "hardly to be read as {language}."),
                Choice(1, "1", "Poor", "several odd wordings and grammar mistakes, yet still {language}."),
                Choice(2, "2", "Good", "most messages pass as a fluent speaker's; one or two odd wordings, one or two "
                "slips of grammar (a wrong case, a mixed-up pronoun), or both."),
                Choice(3, "3", "Fluent", "a fluent speaker could have written every message."),
            ),
        ),
    ),
)  # fmt: skip

SCALES = {scale.name: scale for scale in (FIDELITY, DIALOGUE)}
