"""Rounds of training as they go by: history, progress, and what the user's callback says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Callback = Callable[[dict[str, Any]], Any]

# Seconds between two lines where there is no tqdm.
_PAUSE = 2.0


class Watch:
    """Is called with the JSON of every round, of very many with that of some: the library chooses them."""

    def __init__(self, callback: Callback | None, verbose: int) -> None:
        # As they come: they are parsed in the end, so that rounds stay cheap.
        self.lines: list[str] = []
        self.is_stopped = False
        self._callback = callback
        self._show: Callable[[str], None] | None = None
        self._close: Callable[[], None] = lambda: None
        if verbose:
            self._open()

    def _open(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            last = [-_PAUSE]

            def show(text: str) -> None:
                if time.monotonic() - last[0] >= _PAUSE:
                    last[0] = time.monotonic()
                    print(text, file=sys.stderr)

            self._show = show
            return
        bar = tqdm(unit=" rounds")

        def update(text: str) -> None:
            bar.set_postfix_str(text)
            bar.update()

        self._show, self._close = update, bar.close

    def __call__(self, line: str) -> bool:
        """One round. True: stop after it."""
        self.lines.append(line)
        if self._show is None and self._callback is None:
            return False
        entry = json.loads(line)
        if self._show is not None:
            parts = [f"{key} {entry[key]:.6g}" for key in ("primal", "dual", "gap") if entry.get(key) is not None]
            self._show(f"round {entry.get('round')}: " + ", ".join(parts))
        if self._callback is not None:
            answer = self._callback(entry)
            # Only True stops, of Python or of numpy: a callback may return something else by chance.
            # It stays so: another round may come before the solver looks.
            self.is_stopped |= isinstance(answer, (bool, np.bool_)) and bool(answer)
        return self.is_stopped

    def clear(self) -> None:
        """Begins anew."""
        self.lines.clear()

    def close(self) -> None:
        """No more rounds."""
        self._close()

    def history(self) -> dict[str, NDArray[Any]]:
        """An array for each figure, with an entry for each round, of very many for some; nan where a round does not know it."""
        rounds: list[dict[str, Any]] = json.loads(f"[{','.join(self.lines)}]")
        keys = dict.fromkeys(key for entry in rounds for key in entry)
        return {key: _column([entry.get(key) for entry in rounds]) for key in keys}


def _column(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
