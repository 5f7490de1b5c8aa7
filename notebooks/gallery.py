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
# # Who is this: a gallery
#
# A gallery keeps embeddings of identities. It verifies, identifies (with *unknown* as an answer), and forgets. Here an
# identity is a digit's class and an embedding is the image itself: ten identities show how it works, not how well.

# %%
import tempfile

from sklearn.datasets import load_digits

from likewise.gallery import Gallery

digits = load_digits()
images = {str(digit): digits.data[digits.target == digit] for digit in range(10)}
known = {digit: rows for digit, rows in images.items() if digit != "9"}  # 9 is a stranger

folder = tempfile.TemporaryDirectory()
gallery = Gallery.open(f"{folder.name}/digits.db", model="pixels, version 1")
for digit, rows in known.items():
    gallery.enrol(digit, rows[:20])
print(len(gallery), "identities")

# %% [markdown]
# Nothing guesses a threshold. Without calibration an answer has a distance and a warning.

# %%
answer = gallery.verify("3", images["3"][50])
print(answer.same, answer.warnings)

# %% [markdown]
# `calibrate` finds thresholds on identities of your own, with intervals by identity, and stores them with the model.

# %%
calibration = gallery.calibrate(
    {digit: rows[20:80] for digit, rows in known.items()}, far=0.01, strangers=images["9"][:60], fpir=0.1
)
for warning in calibration.warnings:
    print("warning:", warning)
answers = [gallery.verify("3", image).same for image in images["3"][100:140]]
others = [gallery.verify("3", image).same for image in images["8"][100:140]]
print(f"accepted as a 3: {sum(answers)} of 40 threes, {sum(others)} of 40 eights")

# %%
for digit in ("3", "9"):
    outcomes = [found.outcome for found in gallery.identify(images[digit][100:140])]
    print(f"a {digit}:", {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})

# %% [markdown]
# `forget` erases: the proof is a search of every byte of the gallery's files.

# %%
erasure = gallery.forget("3", prove=True)
print(erasure.status, erasure.templates, "templates,", erasure.found, "found afterwards")
gallery.close()
folder.cleanup()
