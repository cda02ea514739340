"""Lint the prose: words that the project does not use, wherever they stand in its text.

    python -m tools.prose [FILE ...]

The list is exact and short. Each word hides the noun that the sentence needs: "whoever asks" is a
client, "what is told" is an answer. It applies to code, docstrings, help texts and pages alike.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent

STRUCK: Final = (
    "whoever",
    "whomever",
    "anew",
    "somebody",
    "had better",
    "comes of",
    *(
        f"what is {participle}"
        for participle in ("told", "asked", "said", "known", "held", "done", "there")
    ),
)
STRUCK_IN_CODE: Final = (*STRUCK, "nobody")
_PROSE: Final = frozenset({".md", ".html", ".yaml", ".yml", ".toml", ".j2", ".txt"})
_NOT_OURS: Final = frozenset({"LICENSE", "tools/prose.py", "tests/tools/test_prose.py"})
"""Files whose text is another's, or that have to name the words."""


class Finding(NamedTuple):
    """One struck word."""

    path: str
    line: int
    """From 1."""
    word: str


def find(path: str, text: str) -> Iterator[Finding]:
    """The struck words of one file, case ignored, also where a phrase is broken by a line's end.

    :param path: Relative to the root; its suffix says whether it is code.
    """
    words = STRUCK if Path(path).suffix in _PROSE else STRUCK_IN_CODE
    for match in _pattern(words).finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Finding(path, line, " ".join(match.group().lower().replace("#", " ").split()))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    # A line of a comment or a docstring may end within a phrase.
    phrases = (r"(?:\s+(?:# ?)?)".join(word.split()) for word in words)
    # An option of the command line keeps its name: --anew.
    return re.compile(rf"(?<!--)(?<!option\(\")\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


def project_files() -> list[str]:
    """Every text file that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if _is_read(path)]


def _is_read(path: str) -> bool:
    suffix = Path(path).suffix
    return path not in _NOT_OURS and suffix in {*_PROSE, ".py", ".mjs", ".java", ".go", ".sh"}


def main(arguments: Sequence[str]) -> int:
    """Print what is found; exit code 1 where there is any."""
    found = [
        finding
        for path in arguments or project_files()
        if (ROOT / path).is_file()
        for finding in find(path, (ROOT / path).read_text())
    ]
    for finding in found:
        print(
            f"{finding.path}:{finding.line}: {finding.word!r} is a word that this project strikes"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
