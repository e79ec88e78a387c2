"""Typed events out of chunks of lines: shapes are parsed once, their lines in columns."""

from ckptlog.events.by_writer import Reading
from ckptlog.events.event import Event, Wording
from ckptlog.events.extract import Extractor
from ckptlog.events.tally import Drift, Tally

__all__ = ["Drift", "Event", "Extractor", "Reading", "Tally", "Wording"]
