"""Events in order become runs, turns, and checkpoints from birth to death."""
