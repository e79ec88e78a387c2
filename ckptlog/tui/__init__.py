"""The interactive timeline: ``ckptlog tui LOG``.

``lanes``, ``columns``, ``scale`` and ``raster`` turn a report into cells without a screen; the
widgets show them; ``loading`` feeds the engine in a thread; ``app`` puts it together.
"""
