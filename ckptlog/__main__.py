"""``python -m ckptlog``: the same as the ``ckptlog`` command."""

from __future__ import annotations

import sys

from ckptlog.cli import main

sys.exit(main())
