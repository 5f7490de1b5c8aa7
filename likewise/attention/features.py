"""Feature maps phi with phi(q).phi(k) = or ~ a kernel; every map names its kernel."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from likewise.attention.kernels import Exponential, Induced, Polynomial, PositiveInduced, SimilarityKernel, Truncated
from likewise.attention.transforms import has_tangent, is_transformed
from likewise.checks import require, require_count
from likewise.similarity import wide


class Scaled(NamedTuple):
    """Features kept as value * exp(log), so that neither overflows; None stands for value 1 or log 0.

    `log` is as wide as the features, or 1 wide when a whole row shares one factor.
    """

    value: Tensor | None
    log: Tensor | None

    @property
    def width(self) -> int:
        """The number of features F."""
        return max(part.shape[-1] for part in self if part is not None)

    def plain(self) -> Tensor:
        """The features themselves; they may overflow where the two parts do not."""
        if self.log is None:
            assert self.value is not None
            return self.value
        return self.log.exp() if self.value is None else self.value * self.log.exp()

    def logs(self) -> Tensor:
        """The logarithms of positive features."""
        if self.log is None:
            assert self.value is not None
            return self.value.log()
        return self.log if self.value is None else self.value.log() + self.log


class FeatureMap(nn.Module, ABC):
    """A map phi from keys of width K to features of width F, and the kernel that phi(q).phi(k) equals or estimates.

    exact: phi(q).phi(k) equals the kernel. unbiased: it does so on average over the frequencies.
    positive: every phi(q).phi(k) is > 0, so an attention denominator cannot vanish.
    dim: the width F; None when it is the width of the input. kv_heads: how many key-value heads have their own
    frequencies; 1 is one set shared by all. logarithmic: which logarithms `split_keys` and `split_queries` give beside
    values: none, one for each row, or one for each feature.
    """

    exact: ClassVar[bool] = True
    unbiased: ClassVar[bool] = True
    positive: ClassVar[bool] = False
    dim: int | None = None
    key_dim: int | None = None
    kv_heads: int = 1
    logarithmic: Literal["no", "rows", "features"] = "no"
    trusted: ClassVar[tuple[float, float] | None] = None  # denominators outside this range give output 0
    has_warned: bool = False  # of a denominator that nearly vanished: once is enough

    def __init__(self, kernel: SimilarityKernel | None = None) -> None:
        super().__init__()
        name = type(self).__name__
        hint = f"The width is that of the input: {name}()." if isinstance(kernel, int) else ""
        right = kernel is None or isinstance(kernel, SimilarityKernel)
        require(right, name, "kernel", "be a kernel such as Exponential()", repr(kernel), hint)
        self._kernel = kernel

    @property
    def kernel(self) -> SimilarityKernel:
        """The kernel that `queries(q) @ keys(k).mT` equals or estimates; without an older name, the one it induces."""
        if self._kernel is not None:
            return self._kernel
        if self.positive and self.logarithmic != "no":
            return PositiveInduced(self.queries, self.keys, self.split_queries, self.split_keys)
        return Induced(self.queries, self.keys)

    @property
    def has_named_kernel(self) -> bool:
        """Whether the kernel is known without the features."""
        return self._kernel is not None

    def width(self, key_dim: int) -> int:
        """The number of features F of keys of a width."""
        return key_dim if self.dim is None else self.dim

    def log_width(self, key_dim: int) -> int | None:
        """The number of logarithms of each row; None for none."""
        return {"no": None, "rows": 1, "features": self.width(key_dim)}[self.logarithmic]

    @abstractmethod
    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        """The features of keys, as value and logarithm."""

    def split_queries(self, x: Float[Tensor, "*B T K"]) -> Scaled:
        """The features of queries, as value and logarithm; the same map as for keys unless a map says otherwise."""
        return self.split_keys(x)

    def direct(self) -> "FeatureMap | None":
        """The same map without logarithms, if there is one: faster, and right where a denominator is `trusted`."""
        return None

    def queries(self, x: Float[Tensor, "*B T K"]) -> Float[Tensor, "*B T F"]:
        """phi of queries, as a plain tensor."""
        self.check_width(x)
        return (self.direct() or self).split_queries(x.to(wide(x.dtype))).plain().to(x.dtype)

    def keys(self, x: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S F"]:
        """phi of keys, as a plain tensor."""
        self.check_width(x)
        return (self.direct() or self).split_keys(x.to(wide(x.dtype))).plain().to(x.dtype)

    @property
    def projection_id(self) -> str:
        """Names what the features are made of: states of two maps can be joined only when their ids are equal."""
        return f"{type(self).__name__}({self.extra_repr()})"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # model.bfloat16() must not round frequencies or weights: they would be those of another map.
        before = {name: buffer.detach() for name, buffer in self.named_buffers()}
        super()._apply(fn, recurse)
        for module_name, module in self.named_modules():
            for name, buffer in module.named_buffers(recurse=False):
                wide = before[f"{module_name}.{name}" if module_name else name]
                if buffer.dtype.itemsize < wide.dtype.itemsize:
                    setattr(module, name, wide.to(buffer.device))
        return self

    def check_width(self, x: Tensor) -> None:
        """Refuse input of a width, or with a number of heads, that this map was not made for."""
        name, width = type(self).__name__, x.shape[-1]
        require(self.key_dim in (None, width), name, "input", f"have width key_dim = {self.key_dim}", width)
        if self.kv_heads > 1:
            heads = x.shape[-3] if x.dim() >= 3 else 0
            rule = f"have a multiple of kv_heads = {self.kv_heads} heads at dimension -3"
            require(heads > 0 and heads % self.kv_heads == 0, name, "input", rule, tuple(x.shape))


class Elu(FeatureMap):
    """phi(x) = elu(x) + 1 = x + 1 where x > 0, else e^x. The kernel is the one it induces.

    >>> Elu().keys(torch.tensor([[0.0, 2.0]]))
    tensor([[1., 3.]])

    Paper: Transformers are RNNs, arXiv 2006.16236, eq. 7. Differs: kept as (1 + max(x, 0)) e^min(x, 0), the second
    factor by its logarithm: elu(x) + 1 cancels to 0 in bfloat16 from about x = -6.3 on, and products of e^x underflow
    in float32 from about x = -46 on. Above LARGE all of it is a logarithm, since products of x overflow: there float64,
    which does not need it for numbers of float32, is more exact.
    """

    positive = True
    logarithmic = "features"
    LARGE: ClassVar[dict[torch.dtype, float]] = {torch.float32: 1e4, torch.float64: 1e90}

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        most = self.LARGE[wide(x.dtype)]
        large = x > most
        usual = x.masked_fill(large, 0)
        return Scaled(usual.relu() + 1, torch.where(large, x.clamp(min=most).log(), usual.clamp(max=0)))

    def direct(self) -> FeatureMap | None:
        return _DIRECT_ELU if type(self) is Elu else None  # a subclass may have other features


class _DirectElu(FeatureMap):
    """max(x, 0) + e^min(x, 0), without logarithms.

    Below 1e-20 a denominator may have lost terms that underflow: in float32 products are rounded by up to 1e-45. Its
    gradient has the square of its inverse, which overflows from 5e-20 on. Above 1e20 sums of products with large values
    may overflow. The range keeps clear of all three.
    """

    positive = True
    trusted = (1e-12, 1e16)

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        if x.requires_grad and not is_transformed() and not has_tangent(x):
            return Scaled(_EluPlusOne.apply(x), None)
        return Scaled(_elu_plus_one(x), None)


_DIRECT_ELU = _DirectElu()


def _elu_plus_one(x: Tensor) -> Tensor:
    """max(x, 0) + e^min(x, 0)."""
    return x.clamp(max=0).exp_().add_(x.relu())


class _EluPlusOne(torch.autograd.Function):
    """Its derivative, 1 where x > 0 and else e^x, is min(phi, 1): two operators where autograd would need five."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        features = _elu_plus_one(x)
        ctx.save_for_backward(features)
        return features

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        return features.clamp(max=1) * grads[0]


class Relu(FeatureMap):
    """phi(x) = max(x, 0). Similarities can be 0: a query that shares no positive coordinate with any key gets output 0.

    >>> Relu().keys(torch.tensor([[-1.0, 2.0]]))
    tensor([[0., 2.]])
    """

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return Scaled(x.relu(), None)


class Monomials(FeatureMap):
    """All monomials of x up to a degree, weighted so that phi(q).phi(k) = (q.k + constant)^degree exactly.

    Each monomial stands once, with weight sqrt(multinomial * constant^(degree - its degree)): C(K + degree, degree)
    features, where the tensor power has (K + 1)^degree. With constant 0 only the monomials of full degree remain.

    >>> phi = Monomials(2, degree=3, constant=2.0)
    >>> x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    >>> phi.dim, round((phi.queries(x) @ phi.keys(y).mT).item(), 4)  # (1 + 2)^3
    (10, 27.0)
    """

    def __init__(self, key_dim: int, *, degree: int, constant: float = 1.0) -> None:
        super().__init__(Polynomial(degree, constant))
        require_count(type(self).__name__, "key_dim", key_dim)
        self.key_dim = key_dim
        orders = math.factorial(degree)
        self.table = _Monomials(key_dim, degree, lambda ones: orders * constant**ones / math.factorial(ones))
        self.dim = self.table.dim

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return Scaled(self.table(x), None)

    def extra_repr(self) -> str:
        return f"{self.key_dim}, {self.kernel}"


class Quadratic(Monomials):
    """phi(x) = [c, sqrt(2c) x_i, x_i^2, sqrt2 x_i x_j (i < j)], so that phi(q).phi(k) = (q.k + c)^2 exactly.

    Width 1 + K + K(K+1)/2 (K(K+1)/2 with constant 0).

    >>> phi = Quadratic(2)
    >>> x = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> phi.dim, (phi.queries(x) @ phi.keys(x).mT)[0].round(decimals=4)
    (6, tensor([9., 1.]))

    ```claim quadratic-kernel
    given: q, k in R^K; c in R
    assume: c >= 0
    phi(x) = [c, sqrt(2*c)*x, x*x, sqrt(2)*pairs(x)]
    assert: dot(phi(q), phi(k)) == (dot(q, k) + c)^2
    ```
    """

    def __init__(self, key_dim: int, *, constant: float = 1.0) -> None:
        super().__init__(key_dim, degree=2, constant=constant)


class Taylor(FeatureMap):
    """phi(x) = [1, x_i, x_i^2/sqrt2, x_i x_j (i < j)] of x = sqrt(scale) q: exactly 1 + s + s^2/2 with s = scale q.k.

    The exponential's series to second order, never below 1/2. Width 1 + K + K(K+1)/2.

    >>> phi = Taylor(2, scale=1.0)
    >>> x = torch.tensor([[1.0, 1.0]])
    >>> phi.dim, round((phi.queries(x) @ phi.keys(x).mT).item(), 4)  # 1 + 2 + 2
    (6, 5.0)

    ```claim taylor
    given: q, k in R^K
    phi(x) = [1, x, x*x/sqrt(2), pairs(x)]
    assert: dot(phi(q), phi(k)) == 1 + dot(q, k) + dot(q, k)^2/2
    ```

    ```claim taylor-positive
    given: s in R
    assert: 1 + s + s^2/2 >= 1/2
    ```
    """

    positive = True

    def __init__(self, key_dim: int, *, scale: float | None = None) -> None:
        super().__init__(Truncated(scale))
        require_count("Taylor", "key_dim", key_dim)
        self.key_dim = key_dim
        self.input_scale = math.sqrt(Exponential(scale).scale_for(key_dim))
        # A monomial of degree d has the weight 1/d! of the series times the multinomial d!/prod(a_i!).
        self.table = _Monomials(key_dim, 2, lambda ones: 1.0)
        self.dim = self.table.dim

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return Scaled(self.table(x * self.input_scale), None)

    def extra_repr(self) -> str:
        return f"{self.key_dim}, {self.kernel}"


class _Monomials(nn.Module):
    """The products of `degree` coordinates of [x, 1], each product once.

    The product with x_i taken a_i times and the 1 `ones` times has the factor sqrt(weight(ones) / prod a_i!).
    """

    def __init__(self, key_dim: int, degree: int, weight: Callable[[int], float]) -> None:
        super().__init__()
        factors, weights = [], []
        for monomial in combinations_with_replacement(range(key_dim + 1), degree):  # key_dim is the 1
            repeats = math.prod(math.factorial(monomial.count(i)) for i in set(monomial) - {key_dim})
            square = weight(monomial.count(key_dim)) / repeats
            if square > 0:
                factors.append(monomial)
                weights.append(math.sqrt(square))
        self.dim = len(factors)
        self.register_buffer("factors", torch.tensor(factors).T.contiguous(), persistent=False)
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float64), persistent=False)
        self.factors: Tensor
        self.weights: Tensor

    def forward(self, x: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S F"]:
        with_one = torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)
        features = self.weights.to(x.dtype)
        for coordinate in self.factors:
            features = features * with_one.index_select(-1, coordinate)
        return features
