"""What to say about a config name that nobody knows."""

from collections.abc import Iterable, Mapping


def suggest(name: str, known: Iterable[str], synonyms: Mapping[str, str], kind: str) -> str:
    """A clause that names what was probably meant, empty where nothing is near.

    ``synonyms`` leads from the names of the other kind of resource to this ``kind``'s.
    """
    if name in synonyms:
        return f"; the {kind} config is {synonyms[name]}"
    # difflib takes milliseconds to import, and few ever mistype a name.
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
