# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Linear attention: how wrong, how fast, one token at a time
#
# First ask what an approximation of softmax attention would cost in accuracy. `diagnose` measures it on your
# q, k and v.

# %%
import time

import torch
from likewise.attention import LinearState, diagnose, kernel_attention, linear_attention, softmax_attention
from likewise.attention import Elu, Polynomial, Quadratic

generator = torch.Generator().manual_seed(0)
q, k, v = torch.randn(3, 2, 3, 300, 16, generator=generator)  # tensors, batch, heads, positions, width
q[:, 0] *= 0.2  # a flat head
q[:, 2] *= 6.0  # a peaked head
for number, head in enumerate(diagnose(q, k, v, causal=True, generator=generator).heads):
    print(f"head {number}: {head.advice.text}")

# %% [markdown]
# Some maps are exact: attention with the kernel (q.k + 1)^2 is linear attention with quadratic features.

# %%
fast = linear_attention(q, k, v, features=Quadratic(16), causal=True)
plain = kernel_attention(q, k, v, kernel=Polynomial(degree=2, constant=1.0), causal=True)
print(f"largest difference: {(fast - plain).abs().max():.1e}")

# %% [markdown]
# The same function one token at a time. The state does not grow.

# %%
state = LinearState.empty(Quadratic(16), batch=2, kv_heads=3, value_dim=16)
out, state = state.prefill(q[:, :, :299], k[:, :, :299], v[:, :, :299])
last, state = state.step(q[:, :, 299:], k[:, :, 299:], v[:, :, 299:])
print(f"largest difference: {(last - fast[:, :, 299:]).abs().max():.1e}")

# %% [markdown]
# Time against length. Softmax attention grows with its square.


# %%
def seconds(run, repeats=3):
    """The least time of several."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


for length in (512, 1024, 2048, 4096):
    q, k, v = torch.randn(3, 1, 8, length, 64, generator=generator)
    linear = seconds(lambda: linear_attention(q, k, v, features=Elu(), causal=True))
    softmax = seconds(lambda: softmax_attention(q, k, v, causal=True))
    print(f"{length:5} positions: linear {1e3 * linear:6.1f} ms, softmax {1e3 * softmax:7.1f} ms")
