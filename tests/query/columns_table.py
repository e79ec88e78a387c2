"""The tables of docs/filter-language.md that come from the code.

    python -m tests.query.columns_table

writes them anew; a test holds the file to them.
"""

from __future__ import annotations

import re
from pathlib import Path

from ckptlog.query.columns import TURN_COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "filter-language.md"
_TYPES = {"Int64": "number", "Float64": "number", "String": "text", "Boolean": "condition"}


def columns() -> str:
    rows = ["| column | type | is |", "|---|---|---|"]
    rows += [f"| `{c.name}` | {'word' if c.words else _TYPES[c.type]} | {c.about} |" for c in TURN_COLUMNS]
    return "\n".join(rows)


def words() -> str:
    rows = ["| column | words |", "|---|---|"]
    rows += [f"| `{c.name}` | {', '.join(f'`{w}`' for w in c.words)} |" for c in TURN_COLUMNS if c.words]
    return "\n".join(rows)


def filled(page: str) -> str:
    """The page with both tables as the code has them."""
    for name, table in (("columns", columns()), ("words", words())):
        page = re.sub(
            rf"(<!-- {name}\b[^>]*-->\n).*?(<!-- /{name} -->)",
            lambda found, table=table: f"{found[1]}{table}\n{found[2]}",  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
