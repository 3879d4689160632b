"""Values in the answers of a registry. Their types are checked, because the ledger keeps them."""

from __future__ import annotations

from typing import TypeGuard


def is_text(value: object) -> TypeGuard[str]:
    """True for a text that UTF-8 can encode."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
