"""Reads logs in every form they are met in, and gives chunks of whole lines.

Import what is needed from the modules: ``sources`` (no Polars), ``reader``, ``linestore``,
``unwrap``.
"""
