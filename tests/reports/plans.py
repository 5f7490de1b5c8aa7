"""The smallest study of real attention, and the smallest of embeddings, that have every part."""

from likewise.reports import embeddings
from likewise.reports.learning import Recipe
from likewise.reports.real_attention import Plan

TINY = Plan(
    text=Recipe(num_layers=2, num_heads=2, dim=10, steps=3, batch=2, rate=1e-3),
    images=Recipe(num_layers=1, num_heads=2, dim=10, steps=2, batch=3, rate=1e-3),
    context=23,
    sequences=3,
    text_within=(3, 7),
    held_out=11,
    images_within=(5,),
    widths=(4, 12),
    draws=2,
)

FEW = embeddings.Plan(
    old_channels=2, channels=3, embedding_dim=7, old_steps=2, steps=5, head_steps=3, identities=11, faces=2, runs=2
)
