"""``--api-max API=VERSION``: which API is meant, and whether the version will do."""

from fencepost.protocol.apis import APIS, BY_KEY, Api


def read_ceiling(text: str) -> tuple[str, int]:
    """The API's name, and the highest version of it that is to be served.

    An API may be named in any spelling (``ListOffsets``, ``list_offsets``, ``list-offsets``) or by
    its key.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    name, equals, version = text.partition("=")
    if not name or not equals:
        raise ValueError("is not API=VERSION, such as fetch=8")
    api = _find(name)
    low, high = api.min_version, api.max_version
    if not (version.isascii() and version.isdigit()) or not low <= int(version) <= high:
        raise ValueError(f"is not a version of {api.title} from {low} to {high}")
    return api.name, int(version)


def _find(name: str) -> Api:
    if name.isascii() and name.isdigit():
        found = BY_KEY.get(int(name))
        if found is None:
            raise ValueError("names no API that is served; fetch is 1, metadata is 3")
        return found
    by_letters = {_letters(api.name): api for api in APIS}
    letters = _letters(name)
    if letters in by_letters:
        return by_letters[letters]
    # difflib takes milliseconds to import, and few ever mistype a name.
    from difflib import get_close_matches

    near = get_close_matches(letters, by_letters, n=1, cutoff=0.6)
    hint = f"; did you mean {by_letters[near[0]].name}?" if near else ""
    raise ValueError(f"names no API that is served{hint}")


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character not in "_- ")
