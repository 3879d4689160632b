"""A cache of compiled schemas with a maximum size in bytes. A number of schemas would not limit the memory of a worker:
a compiled schema takes from some kilobytes to tens of megabytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from cachetools import LRUCache

from sink_job.connect.schema import Schema
from sink_job.connect.visitor import all_types

MAX_CACHE_SIZE: Final = 64 * 1024**2
"""The maximum size in bytes of the compiled schemas of a converter that are kept, as `compiled_size` estimates them."""

_TYPE_SIZE: Final = 2048
"""The size in bytes of a compiled type, and of a default; measured: 1,500 to 2,000."""

K = TypeVar("K")
V = TypeVar("V")


def cached_by_size(
    compile_schema: Callable[[K], V], size: Callable[[K, V], int], max_size: int | None = None
) -> Callable[[K], V]:
    """`compile_schema` with a cache of its last results. `size` is that of a result with its argument in bytes. A
    result that is larger than `max_size` (default: MAX_CACHE_SIZE) is not kept, and an exception neither."""
    limit = MAX_CACHE_SIZE if max_size is None else max_size
    cache: LRUCache[K, tuple[V, int]] = LRUCache(limit, getsizeof=lambda entry: entry[1])

    def find(key: K) -> V:
        found = cache.get(key)
        if found is None:
            value = compile_schema(key)
            found = value, size(key, value)
            if found[1] <= limit:
                cache[key] = found
        return found[0]

    return find


def compiled_size(schema: Schema) -> int:
    """The size of a compiled schema in bytes, estimated."""
    return sum(_TYPE_SIZE if each.default is None else 2 * _TYPE_SIZE for each in all_types(schema))
