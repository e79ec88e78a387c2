"""The keys as commands of the palette (ctrl+p)."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from ckptlog.tui.keys import KEYS, shown


class TimelineCommands(Provider):
    """Everything that has a key, by what it does."""

    def _commands(self) -> list[tuple[str, str]]:
        return [(f"{key.about}  ({shown(key.keys)})", key.action) for key in KEYS]

    async def discover(self) -> Hits:
        for text, action in self._commands():
            yield DiscoveryHit(text, partial(self.app.run_action, action))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, action in self._commands():
            score = matcher.match(text)
            if score > 0:
                yield Hit(score, matcher.highlight(text), partial(self.app.run_action, action), text=text)
