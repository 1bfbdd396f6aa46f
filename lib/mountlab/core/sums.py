"""Sums in the texts of users, such as `10 * (4 + 1)`, as tools compute them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_LONGEST = 200
"""Characters; fio takes 100."""
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
}  # fmt: skip


def whole_sum(text: str) -> int:
    """Return the value of whole numbers with + - * / and brackets; a share is rounded down. Raises ValueError for any
    other text."""
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    try:
        return _of_tree(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from error


def _of_tree(tree: ast.expr) -> int:
    match tree:
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](_of_tree(left), _of_tree(right))
    raise ValueError(ast.dump(tree)[:60])
