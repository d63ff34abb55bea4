"""What is posted: events of the cluster, and jobs that are asked about before they are submitted."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Literal

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field

from jobcast.live.server.etas import Question

MOST_EVENTS = 10_000
"""Events in one request."""
MOST_WIDTHS, MOST_ASKED = 8, 16
"""Of a job that is asked about, as many time limits, and of both together."""
Text = Field(default="", max_length=200)
Instant = Field(allow_inf_nan=False, ge=0, le=1e11)


class EventBody(BaseModel):
    """One event, as it is posted."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["submit", "change", "start", "requeue", "end", "look"]
    job_id: str = Text
    at_s: float = Instant
    known_s: float | None = Field(default=None, allow_inf_nan=False, ge=0, le=1e11)
    pool: str = Text
    gpus: int = Field(default=1, ge=0, le=1_000_000)
    user: str = Text
    tag: str = Text
    duration_s: float | None = Field(default=None, allow_inf_nan=False, ge=0, le=1e11)
    time_limit_s: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=1e11)
    dedicated: bool | None = None
    held: bool | None = None


class EventsBody(BaseModel):
    """Events, as they are posted."""

    model_config = ConfigDict(extra="forbid")
    events: list[EventBody] = Field(max_length=MOST_EVENTS)


Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
Limit = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e11)]


class EtaBody(BaseModel):
    """A job that is not submitted yet: every width with every limit."""

    model_config = ConfigDict(extra="forbid")
    pool: str = Text
    gpus: Gpus | Annotated[list[Gpus], Field(min_length=1, max_length=MOST_WIDTHS)]
    time_limit_s: Limit | Annotated[list[Limit], Field(min_length=1, max_length=MOST_WIDTHS)] | None = None
    user: str = Text
    tag: str = Text

    def questions(self) -> Iterator[Question]:
        """One for each width and limit."""
        widths = self.gpus if isinstance(self.gpus, list) else [self.gpus]
        limits = self.time_limit_s if isinstance(self.time_limit_s, list) else [self.time_limit_s or math.inf]
        if len(widths) * len(limits) > MOST_ASKED:
            raise HTTPException(422, f"more than {MOST_ASKED} widths times limits")
        for gpus, limit_s in product(widths, limits):
            yield Question(self.pool, gpus, limit_s, self.user, self.tag)
