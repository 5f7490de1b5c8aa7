"""`torch.nn.MultiheadAttention` with another form of attention inside. Signature and masks are torch's, not ours."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.attention.heads import Attend, Softmax
from likewise.checks import refuse, require


class TorchMultiheadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` around `attend`, for code that expects that one: nn.TransformerEncoderLayer.

    Parameters have torch's names, so weights load; `from_torch` takes them from an existing module. In
    `key_padding_mask` and a bool `attn_mask` True means "leave out", as in torch. A float mask has 0 and -inf. A form
    by features takes only the causal `attn_mask`. The second output, the weights, is always None.

    >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    >>> layer.self_attn = TorchMultiheadAttention.from_torch(layer.self_attn, attend=Softmax())
    >>> layer(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        batch_first: bool = False,
        attend: Attend | None = None,
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first=batch_first)
        where = "TorchMultiheadAttention"
        require(attend is None or isinstance(attend, Attend), where, "attend", "be a form of attention", repr(attend))
        self.attend = Softmax() if attend is None else attend
        # In eval mode nn.TransformerEncoderLayer would compute softmax itself, from our weights, if this were True.
        self._qkv_same_embed_dim = False

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention, *, attend: Attend) -> Self:
        """The same module, sharing its weights, with another form of attention."""
        where = "TorchMultiheadAttention.from_torch"
        require(isinstance(module, nn.MultiheadAttention), where, "module", "be a torch.nn.MultiheadAttention", module)
        require(module.in_proj_weight is not None, where, "module", "have keys and values as wide as queries", "others")
        require(module.bias_k is None and not module.add_zero_attn, where, "module", "add no keys of its own", "some")
        bias = module.in_proj_bias is not None
        with torch.device("meta"):  # the weights are those of the module
            made = cls(module.embed_dim, module.num_heads, module.dropout, bias, batch_first=module.batch_first)
        made.in_proj_weight, made.in_proj_bias = module.in_proj_weight, module.in_proj_bias
        made.out_proj, made.attend = module.out_proj, attend
        return made.train(module.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """The outputs and None. Shapes and masks are those of torch.nn.MultiheadAttention."""
        where = "TorchMultiheadAttention"
        dropped = self.dropout if self.training else 0.0
        require(dropped == 0, where, "dropout", "be 0 in training", dropped, "There are no weights to drop.")
        batched = query.dim() == 3
        inputs = [x if batched else x.unsqueeze(0 if self.batch_first else 1) for x in (query, key, value)]
        inputs = inputs if self.batch_first else [x.transpose(0, 1) for x in inputs]
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (
            F.linear(x, w, b).unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
            for x, w, b in zip(inputs, weights, biases, strict=True)
        )
        padding = None if key_padding_mask is None else ~_left_out("key_padding_mask", key_padding_mask)
        padding = padding if padding is None or batched else padding[None]
        rows, positions = q.shape[2], k.shape[2]
        mask, causal = padding, False
        if attn_mask is None:
            require(not is_causal, where, "is_causal", "come with attn_mask, as in torch", "is_causal=True alone")
        else:
            left_out = _left_out("attn_mask", attn_mask)
            future = left_out.new_ones(rows, positions).triu(1)
            causal = rows == positions and left_out.dim() == 2 and torch.equal(left_out, future)
            if not causal:
                seen = ~(left_out if left_out.dim() == 2 else left_out.unflatten(0, (-1, self.num_heads)))
                shape = (q.shape[0], self.num_heads, rows, positions)
                mask = seen.expand(shape) if padding is None else seen & padding[:, None, None]
        joined = self.attend(q, k, v, causal=causal, mask=mask).transpose(1, 2).flatten(2)
        out = self.out_proj(joined)
        out = out if self.batch_first else out.transpose(0, 1)
        return out if batched else out.squeeze(0 if self.batch_first else 1), None


def _left_out(name: str, mask: Tensor) -> Tensor:
    """Torch's mask as bool, True for what is left out."""
    if mask.dtype == torch.bool:
        return mask
    left_out = mask == -torch.inf
    if not bool((left_out | (mask == 0)).all()):
        refuse("TorchMultiheadAttention", name, "be bool, or have only 0 and -inf", "other numbers")
    return left_out
