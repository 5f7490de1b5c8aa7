"""The smallest studies that have every part."""

from likewise.exits.study import ExitPlan
from likewise.tour import embeddings
from likewise.tour.digit_depths import DigitsPlan
from likewise.tour.learning import Recipe
from likewise.tour.real_attention import RealAttentionPlan

TINY = RealAttentionPlan(
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
FEW_DIGITS = DigitsPlan(
    ExitPlan(risk=0.05, heads=2, steps=3, batch=32, joint=True, k=5, queries=20, sizes=(8, 16), repeats=1), examples=203
)

FEW = embeddings.EmbeddingsPlan(
    old_channels=2, channels=3, embedding_dim=7, old_steps=2, steps=5, head_steps=3, identities=11, faces=2, runs=2
)
