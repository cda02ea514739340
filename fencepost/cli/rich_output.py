"""The output of a command drawn on a terminal, with rich."""

from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Rich

from fencepost.cli.output import QUIET, STRONG, Block, Cell, Line, Table, plain

_PADDING: Final = 2
"""Columns between two cells."""
_UNFOLDED: Final = 16
"""Columns that a cell has at least before it is folded."""


def draw(blocks: Iterable[Block]) -> None:
    """Print blocks to standard output."""
    console = Console(highlight=False)
    for block in blocks:
        console.print(to_renderable(block, console.width))


def to_renderable(block: Block, width: int) -> RenderableType:
    """A block as rich shows it.

    :param width: Columns of the terminal.
    """
    if isinstance(block, Line):
        return rich_line(*block.parts)
    if _fits(block, width):
        return _grid(block)
    return _records(block)


def rich(cell: Cell) -> Rich:
    """A cell as rich shows it."""
    return Rich(plain(cell), style="" if isinstance(cell, str) else cell.style)


def rich_line(*cells: Cell) -> Rich:
    """Cells behind each other."""
    return Rich.assemble(*map(rich, cells))


def _fits(table: Table, width: int) -> bool:
    """Whether its rows can be shown side by side, long cells folded."""
    floors = _floors(table)
    return sum(floors) + _PADDING * len(floors) <= width


def _floors(table: Table) -> list[int]:
    """The fewest columns of the terminal that each cell of a row is given."""
    floors = []
    for header, *cells in zip(table.headers, *table.rows, strict=True):
        longest = max((len(plain(cell)) for cell in cells), default=0)
        floors.append(max(min(longest, _UNFOLDED), *map(len, header.split())))
    return floors


def _grid(table: Table) -> Grid:
    grid = Grid(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        header_style=STRONG,
    )
    for header, floor in zip(table.headers, _floors(table), strict=True):
        # A cell is folded where there is no room for it, never cut off.
        grid.add_column(header, overflow="fold", min_width=floor)
    for row in table.rows:
        grid.add_row(*map(rich, row))
    return grid


def _records(table: Table) -> Grid:
    """For a narrow terminal: a line for each cell, behind its header."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style=QUIET, overflow="fold")
    grid.add_column(overflow="fold")
    for number, row in enumerate(table.rows):
        if number:
            grid.add_row()
        for header, cell in zip(table.headers, row, strict=True):
            grid.add_row(header, rich(cell))
    return grid
