"""Write fencepost/protocol/messages/ from kio's schemas and from the drafts.

Beside each module is a file of the schemas of all versions: see `tools.kio_schemas`.

One module for each API that is served, with one class for each struct, for all versions, as
Kafka's own ``*RequestData`` classes are: every field of every version, with its default.
Run it after an update of kio, a new API or a new draft; ``--check`` only compares, and exits 1 when
the files differ from what it would write. Modules of APIs that are not served are deleted.

usage: python -m tools.generate_messages [--check]
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from fencepost.protocol.apis import APIS
from fencepost.protocol.codec.drafts import DRAFTS, Draft, DraftField
from tools.kio_schemas import field_name, schema_lines, split_type

TARGET = Path(__file__).parent.parent / "fencepost" / "protocol" / "messages"
SCALARS = {
    "string": ("str", '""'),
    "bytes": ("bytes", 'b""'),
    "bool": ("bool", "False"),
    "presence": ("bool", "False"),
    "float64": ("float", "0.0"),
    "uuid": ("UUID | None", "None"),
}


@dataclass
class Member:
    """A field of a struct, over all versions."""

    type: str
    default: str
    versions: list[int] = field(default_factory=list)
    draft: str | None = None
    """The draft that alone has this field; None where kio has it."""


@dataclass
class Struct:
    """A struct of an API: its fields in wire order of the newest version."""

    name: str
    members: dict[str, Member] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)


def scalar(kafka_type: str, request: bool) -> tuple[str, str]:
    """Python type and zero value of a wire type."""
    if kafka_type == "records":
        return ("Buffer | None", "None") if request else ("tuple[Buffer, ...] | None", "None")
    return SCALARS.get(kafka_type, ("int", "0"))


def default_of(f: Any, zero: str) -> str:
    """Source text of a field's default."""
    value = f.default
    if value is MISSING:
        return zero
    if value is None or isinstance(value, (bool, str, bytes, float, tuple)):
        return repr(value) if not isinstance(value, str) else f'"{value}"'
    if is_dataclass(value):
        return f"{type(value).__name__}()"
    if hasattr(value, "total_seconds"):
        return str(round(value.total_seconds() * 1000))
    if hasattr(value, "timestamp"):
        return str(round(value.timestamp() * 1000))
    return str(int(value))


def member_of(f: Any, request: bool) -> Member:
    inner, array, nullable = split_type(f.type)
    if isinstance(inner, type) and is_dataclass(inner):
        type_, zero = inner.__name__, f"{inner.__name__}()"
    else:
        kafka_type = f.metadata["kafka_type"]
        type_, zero = scalar(kafka_type, request)
        if kafka_type == "datetime_i64" and nullable:  # kio reads -1 as None; Kafka has plain longs
            return Member("int", "-1")
    zero = "()" if array else zero
    return Member(whole_type(type_, array=array, nullable=nullable), default_of(f, zero))


def whole_type(type_: str, *, array: bool, nullable: bool) -> str:
    """The type of a field whose value, or whose array's elements, have this type."""
    if array:
        type_ = f"tuple[{type_}, ...]"
    return f"{type_} | None" if nullable and not type_.endswith("None") else type_


def nested(cls: Any) -> Iterator[Any]:
    for f in fields(cls):
        inner, _, _ = split_type(f.type)
        if is_dataclass(inner):
            yield from nested(inner)
            yield inner


def merge(structs: dict[str, Struct], cls: Any, version: int, request: bool) -> None:
    struct = structs.setdefault(cls.__name__, Struct(cls.__name__))
    if version in struct.versions:
        return
    struct.versions.append(version)
    for f in fields(cls):
        member = member_of(f, request)
        known = struct.members.get(field_name(f))
        if known is not None:
            member.versions = known.versions
            if "None" in known.type and "None" not in member.type:
                member.type += " | None"
        member.versions.append(version)
        struct.members[field_name(f)] = member


def span(versions: list[int], oldest: int, newest: int) -> str:
    """The versions that have a field; empty for all."""
    first, last = min(versions), max(versions)
    if (first, last) == (oldest, newest):
        return ""
    if last == newest:
        return f"v{first}+"
    return f"v{first}-v{last}" if first != last else f"v{first} only"


def add_draft_fields(structs: dict[str, Struct], api: str, draft: Draft) -> None:
    """Add the fields that kio does not have; those that it has must be of the same type."""
    for (name, _), version in draft.versions.items():
        if name != api:
            continue
        for struct, layout in (*version.request.items(), *version.response.items()):
            for f in layout:
                if isinstance(f, DraftField):
                    add_draft_field(structs[struct], f, draft)


def add_draft_field(struct: Struct, f: DraftField, draft: Draft) -> None:
    type_, zero = scalar(f.kind, request=True)
    type_ = whole_type(type_, array=f.array, nullable=f.nullable)
    added = Member(type_, default_of(f, zero), draft=draft.name)
    known = struct.members.setdefault(f.name, added)
    if known.type != added.type or known.default != added.default:
        raise SystemExit(
            f"{draft.name}: {struct.name}.{f.name} is {known.type} = {known.default},"
            f" not {added.type} = {added.default}"
        )


def render(api: str, key: int, drafts: Iterable[Draft] = tuple(DRAFTS.values())) -> str:
    table = schema_name_map[api]
    oldest, newest = min(table), max(table)
    structs: dict[str, Struct] = {}
    for kind in (EntityType.request, EntityType.response):
        side: dict[str, Struct] = {}
        for version in sorted(table):
            cls = resolve_name(table[version][kind])
            for struct in (*nested(cls), cls):
                merge(side, struct, version, kind is EntityType.request)
        for struct in ordered(side).values():
            add(structs, struct, side)
    for draft in drafts:
        add_draft_fields(structs, api, draft)
    body = "\n\n\n".join(render_struct(s, oldest, newest) for s in structs.values())
    head = [f'"""{title(api)} ({key}), versions {oldest} to {newest}.', ""]
    head += [
        "Written by tools/generate_messages.py from kio's schemas; not to be edited.",
        '"""',
        "",
    ]
    if "UUID" in body:
        head += ["from uuid import UUID", ""]
    head.append("from msgspec import Struct")
    if "Buffer" in body:
        head += ["", "from fencepost.protocol.byte_utils import Buffer"]
    return "\n".join(head) + "\n\n\n" + body + "\n"


def add(structs: dict[str, Struct], struct: Struct, side: dict[str, Struct]) -> None:
    """Put a struct of one side into the module; the response's gives way where the names clash."""
    other = structs.get(struct.name)
    if other is None:
        structs[struct.name] = struct
    elif {n: m.type for n, m in other.members.items()} != {
        n: m.type for n, m in struct.members.items()
    }:
        old, struct.name = struct.name, f"Response{struct.name}"
        structs[struct.name] = struct
        for holder in side.values():
            for member in holder.members.values():
                member.type = member.type.replace(f"[{old},", f"[{struct.name},")


def ordered(side: dict[str, Struct]) -> dict[str, Struct]:
    """Structs before those that hold them."""
    done: dict[str, Struct] = {}

    def visit(struct: Struct) -> None:
        if struct.name in done:
            return
        for member in struct.members.values():
            for name, other in side.items():
                if (
                    name != struct.name
                    and name in member.type.replace("[", " ").replace(",", " ").split()
                ):
                    visit(other)
        done[struct.name] = struct

    for struct in side.values():
        visit(struct)
    return done


def render_struct(struct: Struct, oldest: int, newest: int) -> str:
    lines = [f"class {struct.name}(Struct, frozen=True, kw_only=True, gc=False):"]
    for name, member in struct.members.items():
        versions = member.draft or span(member.versions, oldest, newest)
        note = f"  # {versions}" if versions else ""
        lines.append(f"    {name}: {member.type} = {member.default}{note}")
    if not struct.members:
        lines.append("    pass")
    return "\n".join(lines)


def title(api: str) -> str:
    return "".join(word.capitalize() for word in api.split("_"))


def main(check: bool) -> int:
    wanted = {}
    for api in APIS:
        text = wanted[f"{api.name}.py"] = render(api.name, api.key)
        classes = dict.fromkeys(re.findall(r"^class (\w+)\(", text, re.MULTILINE))
        wanted[f"{api.name}.txt"] = schema_lines(api.name, classes)
    stale = [
        name
        for name, text in wanted.items()
        if not (TARGET / name).exists() or (TARGET / name).read_text() != text
    ]
    unserved = sorted(path.name for path in TARGET.glob("[!_]*.*") if path.name not in wanted)
    if check:
        print("\n".join((*stale, *unserved)) or "messages are as generated")
        return 1 if stale or unserved else 0
    for name in stale:
        (TARGET / name).write_text(wanted[name])
    for name in unserved:
        (TARGET / name).unlink()
    print(f"{len(stale)} of {len(wanted)} files written, {len(unserved)} deleted")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
