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
# # Check an assistant's answer
#
# `check_answer` reads the formulas of a text and runs each statement. No model is asked.

# %%
from likewise.reading import check_answer

answer = check_answer(
    r"""
Let $q, k \in \mathbb{R}^D$ and $w \sim \mathcal{N}(0, \sqrt{D} I)$. Then

$$\mathbb{E}[\cos(w^T (q - k))] = \exp\left(-\frac{\|q - k\|^2}{2\sqrt{D}}\right)$$

since $\|q - k\|^2 = \|q\|^2 - 2 q^T k + \|k\|^2$.
"""
)
for statement in answer.statements:
    print(f"line {statement.line}: {statement.verdict or statement.role:12} {statement.source[:60]}")

# %% [markdown]
# A refuted statement has a counterexample: numbers to compute by hand.

# %%
for statement in answer.statements:
    if statement.verdict == "refuted":
        print(statement.claim)
        print("  ", statement.detail)

# %% [markdown]
# The same as a page, with room for a person's marks: `likewise review answer.md --serve --open`.
# In Python a review is a value:

# %%
from likewise.review import Mark, review

text = "The squares add up to $1^2 + 2^2 + 3^2 = 15$."
found = review(text, [Mark(1, 24, "right")], name="answer.md")
print(found.summary.words)
print(found.disagreements[0].words)
