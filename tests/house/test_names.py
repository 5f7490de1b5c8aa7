"""Public names are promises: other people's scripts import them from the room."""

import importlib
import types

import pytest

NAMES = {
    "likewise.attention": [
        "Argmax",
        "Attend",
        "DenominatorWarning",
        "Diagnosis",
        "Elu",
        "Exponential",
        "FeatureMap",
        "Fitted",
        "Fourier",
        "Gaussian",
        "Hyperbolic",
        "Induced",
        "Kernel",
        "KeyValueCache",
        "Linear",
        "LinearState",
        "Monomials",
        "MultiHeadAttention",
        "Polynomial",
        "Positive",
        "Quadratic",
        "Relu",
        "Scaled",
        "SimilarityKernel",
        "Softmax",
        "SoftmaxFourier",
        "Structure",
        "Taylor",
        "Truncated",
        "argmax_attention",
        "diagnose",
        "kernel_attention",
        "linear_attention",
        "softmax_attention",
    ],
    "likewise.cost": [
        "BreakEven",
        "Cost",
        "Growth",
        "NotPolynomial",
        "Operation",
        "Uncounted",
        "break_even",
        "cost",
        "cost_polynomial",
    ],
    "likewise.data": [
        "Augmentation",
        "Batch",
        "Batches",
        "Examples",
        "Pair",
        "Preparation",
        "Protocol",
        "Shuffled",
        "Skipped",
        "Source",
        "Stored",
        "Unreadable",
        "cifar10",
        "decode",
        "digits",
        "examples",
        "folders",
        "held",
        "idx",
        "in_order",
        "is_lfw",
        "lfw",
        "lfw_protocol",
        "open_examples",
        "pair_rows",
    ],
    "likewise.networks": [
        "Block",
        "ByteModel",
        "Captured",
        "Embedder",
        "Network",
        "Recorder",
        "Saved",
        "VisionTransformer",
        "attentions",
        "build_network",
        "capture",
        "embedder",
        "load_network",
        "nn1",
        "nn2",
        "nn3",
        "nn4",
        "nns1",
        "nns2",
        "resnet14",
        "resnet20",
        "resnet32",
        "resnet50",
        "resnet56",
        "resnet8",
        "save_network",
        "vit",
        "with_attends",
    ],
    "likewise.polynomial": ["Monomial", "Polynomial", "interpolate", "monomial"],
    "likewise.training": [
        "AdaGrad",
        "Classes",
        "Cosine",
        "Diverged",
        "EveryTriplet",
        "Feed",
        "Hardest",
        "Keep",
        "Objective",
        "RandomTriplets",
        "Record",
        "Schedule",
        "SemiHard",
        "Trained",
        "backward_in_chunks",
        "checkpoint_settings",
        "effective_rank",
        "mean_distance",
        "read_records",
        "train",
    ],
    "likewise.reports": ["Comparison", "Form", "compare", "compare_random"],
}


def broken_promises(module: types.ModuleType, promised: list[str]) -> list[str]:
    complaints = [f"{name} is promised and missing" for name in promised if not hasattr(module, name)]
    public = getattr(module, "__all__", [])
    complaints += [f"{name} is not in __all__" for name in promised if name not in public]
    return complaints + [f"{name} is public and not pinned here" for name in public if name not in promised]


@pytest.mark.parametrize("room", NAMES)
def test_public_names_are_the_pinned_ones(room: str) -> None:
    assert broken_promises(importlib.import_module(room), NAMES[room]) == []


def test_a_missing_or_unpinned_name_is_found() -> None:
    module = types.ModuleType("room")
    vars(module).update(kept=1, hidden=2, extra=3, __all__=["kept", "extra"])
    assert broken_promises(module, ["kept", "hidden", "lost"]) == [
        "lost is promised and missing",
        "hidden is not in __all__",
        "lost is not in __all__",
        "extra is public and not pinned here",
    ]
