"""Instrument every matrix product of the library, on any CPU.

Modules of `summula` are rewritten while they are imported: `a @ b`, `np.matmul(a, b)` and `np.dot(a, b)` become calls
of `Products.multiply`. (Kernels are left alone: compiled loops do not call BLAS.) `install`, called before `summula` is
imported, sets this up; `PRODUCTS` then records the operands of each product, and computes it as a BLAS would whose
summation order follows the memory layout of its operands, as OpenBLAS does for small matrices on CPUs with AVX-512.

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

__all__ = ["PRODUCTS", "Operand", "Product", "install"]

ALIGNMENT = 64  # bytes
FILTERS = ("neighbors/search/indexes.py",)  # results do not depend on bits of these: their candidates are recomputed
MANY_ROWS = 1_000  # more than a matrix of solver variables has in these tests


class Operand(NamedTuple):
    """The operand passed to BLAS: everything but the numbers."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    alignment: int


class Product(NamedTuple):
    """One product, and the line it was computed in."""

    place: str
    left: Operand | None
    right: Operand | None


def _operand(value: Any) -> Operand | None:
    """The description of a dense operand; None for sparse matrices and scalars."""
    if not isinstance(value, np.ndarray):
        return None
    # Steps along an axis of length 1 are never taken.
    strides = tuple(step if n > 1 else 0 for n, step in zip(value.shape, value.strides, strict=True))
    alignment = ALIGNMENT if _is_block(value) else 16
    return Operand(value.shape, strides, value.dtype.str, value.ctypes.data % alignment)


def _is_block(operand: Any) -> bool:
    """Whether an operand holds rows of the data; NumPy aligns other arrays to 16 bytes, for every source alike."""
    return operand.ndim == 2 and max(operand.shape) >= MANY_ROWS and min(operand.shape) > 1


class Products:
    """Implementation of products: mode "plain", or "by layout", which also records the operands if `recorded` is a list."""

    def __init__(self) -> None:
        self.mode = "plain"
        self.recorded: list[Product] | None = None
        self.count = 0

    def multiply(self, left: Any, right: Any, place: str, out: Any = None) -> Any:
        """Compute left @ right, into `out` if it is given."""
        self.count += 1
        if self.mode == "by layout":
            if self.recorded is not None and not place.startswith(FILTERS):
                self.recorded.append(Product(place, _operand(left), _operand(right)))
            product = _by_layout(left, right)
        else:
            product = left @ right
        if out is None:
            return product
        out[...] = product
        return out


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

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = {n.id for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
        return node if names & {"kernel", "intrinsic", "njit"} else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._product(node, [node.left, node.right], []) if isinstance(node.op, ast.MatMult) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_product = ast.unparse(node.func) in ("np.matmul", "np.dot") and len(node.args) == 2
        return self._product(node, node.args, node.keywords) if is_product else node

    def _product(self, node: ast.expr, operands: list[ast.expr], keywords: list[ast.keyword]) -> ast.AST:
        arguments = [*operands, ast.Constant(f"{self.file}:{node.lineno}")]
        call = ast.Call(ast.Name("__multiply__", ast.Load()), arguments, keywords)
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:  # past the cache of compiled modules
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        file = str(path).rpartition("summula/")[2]
        tree = _Rewriter(file).visit(ast.parse(data, path))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: Any) -> None:
        module.__multiply__ = PRODUCTS.multiply
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
