"""All ways to damage a partition that an audit is to name the cause of."""

from __future__ import annotations

from typing import Final

from tests.pipeline.damages import file_damages, producer_damages, segment_damages
from tests.pipeline.damages.model import Damage

DAMAGES: Final[tuple[Damage, ...]] = (
    *segment_damages.DAMAGES,
    *file_damages.DAMAGES,
    *producer_damages.DAMAGES,
)
