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
# # Exit early, with a bound on the risk
#
# Easy examples leave a network at an earlier layer. Thresholds are chosen on calibration examples so that at most a
# stated share of the answers changes, with a stated certainty.

# %%
import torch
from sklearn.datasets import load_digits

from likewise.exits import EarlyExit, MaxProbability, control_risk, evaluate_exits, exit_costs
from likewise.exits import matched_path, observe, split_examples, train_exits
from likewise.networks import resnet8

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
parts = split_examples(images, torch.tensor(digits.target), selection=0.05, calibration=0.35, test=0.25)
{part.role: len(part) for part in (parts.train, parts.selection, parts.calibration, parts.test)}

# %% [markdown]
# Network and heads are trained together.

# %%
torch.manual_seed(0)
exits = EarlyExit(resnet8(channels=1, num_classes=10), heads=["block1", "block2"])
trained = train_exits(exits, parts.train, steps=150, body="joint")

# %% [markdown]
# With certainty 95 % at most 5 % of the answers differ from the whole network's.

# %%
path = matched_path(observe(exits, parts.selection, criterion=MaxProbability()))
controlled = control_risk(exits, parts.calibration, risk=0.05, delta=0.05, path=path)
print(controlled.text)

# %% [markdown]
# On test data, which nothing was chosen on:

# %%
seen = observe(exits, parts.test, criterion=MaxProbability())
found = evaluate_exits(seen, policy=controlled.policy, costs=exit_costs(exits, parts.test.inputs[:1]))
print(f"accuracy {found.accuracy:.1%}, whole network {found.full_accuracy:.1%}, disagreement {found.disagreement:.1%}")
print(f"multiply-adds {found.full_macs / found.macs:.2f} times fewer; leaving at each head and the end: {found.shares}")
