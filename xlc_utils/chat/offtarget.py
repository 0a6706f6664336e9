"""Which language a reply is written in."""

from __future__ import annotations

from xlc_utils.registry import scripts
from xlc_utils.registry.languages import Language

MIN_LETTERS = 20  # shorter texts are too little to tell


class LanguageDetector:
    """py3langid, with the near varieties that it takes for one another counted as the language asked for.

    Args:
        languages: the registry; a language's ``off_target`` entry names its py3langid code and its near codes.
    """

    def __init__(self, languages: dict[str, Language]):
        self._languages = languages
        self._key_of = {x.off_target.langid: key for key, x in languages.items() if x.off_target.langid}

    def language(self, text: str, expected: str) -> str | None:
        """Key of the language that ``text`` is in; None when it is too short to tell or ``expected`` has no detector.

        A code that our registry does not hold is returned as py3langid calls it.
        """
        entry = self._languages[expected]
        if sum(c.isalpha() for c in text) < MIN_LETTERS or entry.off_target.langid is None:
            return None
        import py3langid

        code, _ = py3langid.classify(text)
        if code == entry.off_target.langid or code in entry.off_target.near:
            return self._in_its_script(text, expected)
        return self._key_of.get(code, code)

    def _in_its_script(self, text: str, expected: str) -> str:
        """The key of the same label in whose script the text is: Serbian has one label for two scripts."""
        label = self._languages[expected].off_target.langid
        same = [expected, *(key for key, other in self._languages.items() if other.off_target.langid == label)]
        return max(same, key=lambda key: scripts.share(text, self._languages[key].script))
