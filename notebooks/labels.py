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
# # Which labels are wrong
#
# Five in a hundred labels of scikit-learn's digits are changed. Cross-validation gives every example class
# probabilities from a model that has not seen it; `rank_labels` puts the changed labels first.

# %%
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from likewise.difficulty import rank_labels

digits = load_digits()
generator = torch.Generator().manual_seed(0)
truth = torch.tensor(digits.target)
labels = truth.clone()
changed = torch.randperm(len(truth), generator=generator)[: len(truth) // 20]
labels[changed] = (labels[changed] + torch.randint(1, 10, (len(changed),), generator=generator)) % 10

model = LogisticRegression(C=0.01, max_iter=1000)
probabilities = cross_val_predict(model, digits.data / 16, labels.numpy(), cv=5, method="predict_proba")
ranking = rank_labels(torch.tensor(probabilities), labels)
print(ranking)

# %%
wrong = labels != truth
flagged = wrong[ranking.flagged]
print(f"area under ROC {roc_auc_score(wrong, ranking.score):.3f}")
print(f"{int(flagged.sum())} of {len(flagged)} flagged labels are wrong; {int(wrong.sum())} are wrong in all")
for row in ranking.order[:5].tolist():
    print(f"image {row}: labelled {labels[row]}, suggested {ranking.suggested[row]}, truly {truth[row]}")
