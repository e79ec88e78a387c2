"""Following a growing log: the same analysis as for a whole one, a turn told as soon as it ends."""
