"""What the entry point `likewise.programs` calls: everything of this room gets its name in the registry of claims.

A demonstration whose file imports torch or numpy at its top is imported when it runs.
"""

from typing import Any

from likewise.claims.registry import Counting, register_counting, register_demonstration, register_sampler
from likewise.programs.attention import register_attention
from likewise.programs.counting import count_file, count_program, prepare
from likewise.programs.demonstrations import attention, coursework
from likewise.programs.networks import register_networks


def register_programs() -> None:
    """Register programs, demonstrations and the counting; torch is not imported."""
    register_counting(Counting(prepare, count_program, count_file))
    register_attention()
    register_networks()
    for name, function in {**coursework.DEMONSTRATIONS, **attention.DEMONSTRATIONS}.items():
        register_demonstration(name, function)
    register_demonstration("probes.support_lost", _support_lost)
    register_demonstration("probes.deep_layer_gain", _deep_layer_gain)
    register_demonstration("probes.deep_example_gain", _deep_example_gain)
    register_sampler("demo.positive_features_r4", _positive_features_r4)


def _support_lost() -> int:
    from likewise.programs.demonstrations.probes import support_lost

    return support_lost()


def _deep_layer_gain() -> float:
    from likewise.programs.demonstrations.probes import deep_layer_gain

    return deep_layer_gain()


def _deep_example_gain() -> float:
    from likewise.programs.demonstrations.probes import deep_example_gain

    return deep_example_gain()


def _positive_features_r4(count: int, generator: Any) -> Any:
    from likewise.programs.demonstrations.positive_features import positive_features_r4

    return positive_features_r4(count, generator)
