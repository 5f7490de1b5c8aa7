"""The same network, made for embedding many images: it only runs forwards, and sooner."""

import copy
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from likewise.networks.inception import ResponseNorm
from likewise.networks.segments import Network, require_finite
from likewise.similarity import keep_freed_memory

ROOM = 2**17  # numbers that a norm works on at a time: few enough for a core's cache, enough for two threads


def for_inference(network: Network) -> Network:
    """A network with the same segments and, but for rounding, the same values in evaluation mode; it has no gradient.

    Convolutions take in the BatchNorm and the ReLU behind them, and their weights are laid out once, not at every
    call; local response normalisation works on a few images at a time. The network given stays as it is; the one made
    keeps the weights that this one has now, and shares the memory of those it did not have to change. Weights that are
    not finite are refused, for the fused ReLU would make 0 of NaN.

    >>> from likewise.networks.resnet import resnet8
    >>> network = resnet8(channels=1)
    >>> ready, x = for_inference(network), torch.rand(3, 1, 8, 8)
    >>> network.training, ready.training, torch.allclose(ready(x), network.eval()(x), atol=1e-5)
    (True, False, True)
    """
    require_finite("for_inference", network.state_dict())
    keep_freed_memory()
    weights = {id(weight): nn.Parameter(weight.detach(), requires_grad=False) for weight in network.parameters()}
    made = copy.deepcopy(network, {**weights, **{id(buffer): buffer for buffer in network.buffers()}}).eval()
    for name, part in list(made.named_modules()):
        if isinstance(part, nn.Sequential):
            _fuse(part)
        elif isinstance(part, ResponseNorm):
            made.set_submodule(name, ForwardNorm(part.alpha))
    return made


def _fuse(chain: nn.Sequential) -> None:
    """Put the BatchNorm and the ReLU behind each convolution of a chain into it; nothing is left in their places."""
    for place in range(len(chain)):
        conv, after = chain[place], place + 1
        if not isinstance(conv, nn.Conv2d):
            continue
        if after < len(chain) and isinstance(norm := chain[after], nn.BatchNorm2d) and norm.running_mean is not None:
            conv = fuse_conv_bn_eval(conv, norm)
            chain[after], after = nn.Identity(), after + 1
        relu = after < len(chain) and isinstance(chain[after], nn.ReLU)
        if relu:
            chain[after] = nn.Identity()
        chain[place] = ForwardConv(conv, relu=relu)


class ForwardConv(nn.Module):
    """ReLU(conv(x)), or conv(x), with weights that oneDNN has laid out as it wants them for the first batch it gets.

    Left alone it lays them out anew at every call. Where it is not at work, this is the convolution and the ReLU.
    """

    def __init__(self, conv: nn.Conv2d, *, relu: bool) -> None:
        super().__init__()
        self.conv, self.relu = conv, relu
        self.laid_out: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "laid_out": None}  # it is opaque: neither copied nor written

    @torch.no_grad()
    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D Z W"]:
        conv = self.conv
        if not _packable(conv, x):
            y = conv(x)
            return y.relu_() if self.relu else y
        how = conv.padding, conv.stride, conv.dilation, conv.groups
        if self.laid_out is None:
            self.laid_out = torch.ops.mkldnn._reorder_convolution_weight(conv.weight, *how, x.shape)
        relu = "relu" if self.relu else "none"
        return torch.ops.mkldnn._convolution_pointwise(x, self.laid_out, conv.bias, *how, relu, [], "")


def _packable(conv: nn.Conv2d, x: Tensor) -> bool:
    """Whether oneDNN would convolve it."""
    plain = conv.padding_mode == "zeros" and not isinstance(conv.padding, str)
    return (
        plain
        and len(x) > 0
        and x.device.type == conv.weight.device.type == "cpu"
        and x.dtype == conv.weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_convolution_pointwise")  # torch may rename it
    )


class ForwardNorm(nn.Module):
    """`ResponseNorm`: y_c = x_c / s_c^(3/4), s_c the sum of (1 + alpha x_j^2) / 5 over the five channels j around c.

    Channels of a pixel lie side by side in memory, and two terms of 1/5 are put behind them, for the channels that are
    not there. So all sums are of five neighbours in one long line, whichever pixel they belong to.

    >>> ForwardNorm(5.0)(torch.tensor([3.0, 0.0, 0.0, 0.0])[None, :, None, None]).flatten()  # 3 / (1 + 9)^(3/4)
    tensor([0.5335, 0.0000, 0.0000, 0.0000])
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    @torch.no_grad()
    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B C Y X"]:
        pixels, channels = x.permute(0, 2, 3, 1), x.shape[1]
        out = torch.empty_like(pixels, memory_format=torch.contiguous_format)
        images = min(len(x), ROOM // max(1, pixels[:1].numel())) or 1
        line = x.new_full((images * pixels[:1, ..., 0].numel() * (channels + 2) + 4,), 1 / 5)
        for block, result in zip(pixels.split(images), out.split(images), strict=True):
            shape = *block.shape[:3], channels + 2
            terms = line[: math.prod(shape) + 4]
            torch.addcmul(line[0], block, block, value=self.alpha / 5, out=terms[2:-2].view(shape)[..., :channels])
            pairs = terms[1:] + terms[:-1]
            root = (pairs[:-3] + pairs[2:-1]).add_(terms[4:]).rsqrt_()
            power = root.sqrt().mul_(root).view(shape)
            torch.mul(power[..., :channels], block, out=result)
        return out.permute(0, 3, 1, 2)
