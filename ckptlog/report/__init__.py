"""What an analysis looks like: text, JSON, Markdown."""
