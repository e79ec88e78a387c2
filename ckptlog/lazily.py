"""``lazy``: a property worked out once.

``functools.cached_property`` takes a lock at every first access up to Python 3.11, which costs more than most of
what a verdict works out; no object here is shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # used as a decorator, so named like one
    def __init__(self, work: Callable[[Any], Value]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        # not a data descriptor: from now on the instance's own attribute is found first
        value = instance.__dict__[self._name] = self._work(instance)
        return value
