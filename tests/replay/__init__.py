"""Tests of the replay; a package, so that they can share the recorded logs."""
