"""Settings for the tests of the reports."""

from __future__ import annotations

from hypothesis import settings

# a busy machine is no failure
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
