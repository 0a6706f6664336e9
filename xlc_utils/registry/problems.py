"""The one way this package tells a person that an input is bad."""

from __future__ import annotations


class Problem(Exception):
    """Bad input, told in one sentence: where it is, what is wrong, and what to do about it.

    The command line prints it without a traceback and exits with code 2; a notebook shows it as its last line.

    Args:
        where: the file, with the key or row, or the part of the machine concerned.
        what: what is wrong there.
        remedy: what the person can do.
    """

    def __init__(self, where: str, what: str, remedy: str):
        self.where, self.what, self.remedy = where, what, remedy
        super().__init__(f"{where}: {what}; {remedy}.")
