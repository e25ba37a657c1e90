"""Instrument every way in which the library hands arrays to BLAS and LAPACK, on any CPU.

Modules of `summula` are rewritten while they are imported: `a @ b`, `a @= b`, `np.matmul(a, b)`, `np.dot(a, b)` and
`a.dot(b)` become calls of `Products.multiply`; functions that may multiply inside (`np.einsum`, `np.inner`, `np.vdot`,
those of `np.linalg` and `scipy.linalg`) are called by `Products.call`. (Kernels are left alone: compiled loops do not
call BLAS.) `install`, called before `summula` is imported, sets this up; `PRODUCTS` then records the operands of each,
in order, and computes a product as a BLAS would whose summation order follows the memory layout of its operands, as
OpenBLAS does for small matrices on CPUs with AVX-512.

As a pytest plugin (`-p tests.products.instrument`) it does the latter for a whole run.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["PRODUCTS", "Operand", "Product", "install", "instrumented"]

ALIGNMENT = 64  # bytes
FILTERS = ("neighbors/search/indexes.py",)  # results do not depend on bits of these: their candidates are recomputed
# A block of rows has at least this number, and this many times as many rows as columns; solver variables have not.
FEWEST_ROWS, ELONGATED = 60, 5
MULTIPLIED = ("np.matmul", "np.dot")
CALLED = (
    "np.einsum",
    "np.inner",
    "np.vdot",
    "np.tensordot",
    "np.linalg.",
    "linalg.",
    "scipy.linalg.",
    "blas.",
    "lapack.",
)


class Operand(NamedTuple):
    """The operand passed to BLAS: everything but the numbers."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    alignment: int


class Product(NamedTuple):
    """One product or call, and the line it was computed in."""

    place: str
    operands: tuple[Operand | None, ...]

    @property
    def has_rows(self) -> bool:
        """Whether an operand is a block of rows."""
        return any(one is not None and _is_block(one) for one in self.operands)


def _operand(value: Any, aligned: bool = True) -> Operand | None:
    """The description of a dense operand; None for sparse matrices and scalars."""
    if not isinstance(value, np.ndarray):
        return None
    # Steps along an axis of length 1 are never taken.
    strides = tuple(step if n > 1 else 0 for n, step in zip(value.shape, value.strides, strict=True))
    alignment = ALIGNMENT if aligned and _is_block(value) else 16 if aligned else value.itemsize
    return Operand(value.shape, strides, value.dtype.str, value.ctypes.data % max(alignment, 1))


def _is_block(operand: Any) -> bool:
    """Whether an operand holds rows of the data, whose alignment must not depend on the source.

    NumPy aligns the variables of solvers, which are short or about square, to 16 bytes, for every source alike.
    """
    if len(operand.shape) != 2 or min(operand.shape) < 2:
        return False
    return max(operand.shape) >= max(FEWEST_ROWS, ELONGATED * min(operand.shape))


class Products:
    """Implementation of products: mode "plain", or "by layout", which also records the operands if `recorded` is a list."""

    def __init__(self) -> None:
        self.mode = "plain"
        self.recorded: list[Product] | None = None
        self.count = 0

    def multiply(self, left: Any, right: Any, place: str, out: Any = None) -> Any:
        """Compute left @ right, into `out` if it is given."""
        self._record(place, left, right)
        product = _by_layout(left, right) if self.mode == "by layout" else left @ right
        if out is None:
            return product
        out[...] = product
        return out

    def call(self, function: Any, place: str, *arguments: Any, **options: Any) -> Any:
        """Call a function of linear algebra; its result does not emulate another order."""
        # (einsum has loops of its own: what counts is the layout of rows, whatever their alignment.)
        own = function is np.einsum
        if not own or any(_is_block(one) for one in arguments if isinstance(one, np.ndarray)):
            self._record(place, *arguments, aligned=not own)
        return function(*arguments, **options)

    def _record(self, place: str, *operands: Any, aligned: bool = True) -> None:
        self.count += 1
        if self.mode == "by layout" and self.recorded is not None and not place.startswith(FILTERS):
            self.recorded.append(Product(place, tuple(_operand(one, aligned) for one in operands)))


def _by_layout(left: Any, right: Any) -> Any:
    """The product, its terms added in an order that depends on how both operands lie in memory."""
    dense = all(isinstance(a, np.ndarray) and a.ndim in (1, 2) and a.dtype.kind == "f" for a in (left, right))
    if not dense or left.shape[-1] < 2:
        return left @ right
    order = np.arange(left.shape[-1])
    for operand in (left, right):
        if operand.ndim == 2 and min(operand.shape) > 1 and not operand.flags.c_contiguous:
            order = order[::-1] if operand.flags.f_contiguous else np.roll(order, len(order) // 2)
        if _is_block(operand) and operand.ctypes.data % ALIGNMENT:
            order = np.roll(order, 1)
    terms = np.ascontiguousarray(left[..., order]), np.ascontiguousarray(right[order])
    return terms[0] @ terms[1]


PRODUCTS = Products()


class _Rewriter(ast.NodeTransformer):
    def __init__(self, file: str) -> None:
        self.file = file
        self.called = CALLED

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if (node.module or "").startswith(("scipy.linalg", "numpy.linalg")):
            self.called += tuple(name.asname or name.name for name in node.names)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = {n.id for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
        return node if names & {"kernel", "intrinsic", "njit"} else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._product(node, [node.left, node.right], []) if isinstance(node.op, ast.MatMult) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        value = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.copy_location(ast.Assign([node.target], self._product(node, [value, node.value], [])), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in MULTIPLIED and len(node.args) == 2:
            return self._product(node, node.args, node.keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "dot" and len(node.args) == 1:
            return self._product(node, [node.func.value, *node.args], node.keywords)
        if name.startswith(tuple(one for one in self.called if one.endswith("."))) or name in self.called:
            arguments = [node.func, self._place(node), *node.args]
            call = ast.Call(ast.Name("__call_linalg__", ast.Load()), arguments, node.keywords)
            return ast.fix_missing_locations(ast.copy_location(call, node))
        return node

    def _place(self, node: Any) -> ast.expr:
        return ast.Constant(f"{self.file}:{node.lineno}")

    def _product(self, node: Any, operands: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
        call = ast.Call(ast.Name("__multiply__", ast.Load()), [*operands, self._place(node)], keywords)
        return ast.fix_missing_locations(ast.copy_location(call, node))


def instrumented(source: Any, path: Any) -> CodeType:
    """Compile a module of the library with its products rewritten."""
    tree = _Rewriter(str(path).rpartition("summula/")[2]).visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:  # past the cache of compiled modules
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        return instrumented(data, path)

    def exec_module(self, module: Any) -> None:
        module.__multiply__, module.__call_linalg__ = PRODUCTS.multiply, PRODUCTS.call
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != "summula":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Rewrite the modules of `summula` that are imported from now on."""
    if "summula.core" in sys.modules:
        raise ImportError("summula is imported already, and its products cannot be instrumented any more")
    sys.meta_path.insert(0, _Finder())


def pytest_configure(config: Any) -> None:
    """Compute products by layout during a whole run of pytest."""
    install()
    PRODUCTS.mode = "by layout"
