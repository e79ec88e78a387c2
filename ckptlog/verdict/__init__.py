"""The verdict on a turn: which outcome, why, on which lines that shows, and the cheapest fix."""
