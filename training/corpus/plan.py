"""Which networks the corpus holds: names for the catalog, source by source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from training.corpus.diffusion_networks import DIFFUSION
from training.corpus.modal_networks import MODAL
from training.corpus.neusight_networks import NEUSIGHT
from training.corpus.plain_networks import PLAIN
from training.corpus.published import published_names
from training.corpus.random_networks import FORMS
from training.corpus.recommender_networks import RECOMMENDERS
from training.corpus.recurrent_networks import CELLS
from training.corpus.text_configurations import DECODERS, ENCODER_DECODERS, ENCODERS
from training.corpus.varied_networks import FAMILIES

__all__ = ["PLANS", "plan"]

TIMM_EXTRA_SIZES = (
    ("ese_vovnet57b", 224),
    ("mobilenetv3_large_150d", 224),
    ("resnext101_32x4d", 288),
    ("sam2_hiera_tiny", 224),
    ("seresnext101_32x4d", 288),
)
"""Resolutions in timm's published benchmark tables that its configurations no longer name."""

TORCHVISION_SIZES = {"segmentation": (320,), "detection": (), "video": ()}
"""Second resolutions of torchvision's networks, by the module that defines them."""


def timm_names() -> list[str]:
    """Every model of timm at every resolution that one of its pretrained variants is used at."""
    import timm

    sizes: dict[str, set[int]] = {}
    for variant in (*timm.list_models(), *timm.list_pretrained()):
        config = timm.get_pretrained_cfg(variant)
        found = sizes.setdefault(variant.split(".")[0], set())
        for size in (config.input_size, config.test_input_size) if config is not None else ():
            if size is not None:
                found.add(size[-1])
    for name, size in TIMM_EXTRA_SIZES:
        if name in sizes:
            sizes[name].add(size)
    names = []
    for name, found in sorted(sizes.items()):
        config = timm.get_pretrained_cfg(name)
        default = config.input_size[-1] if config is not None and config.input_size else 224
        names.append(f"timm/{name}")
        names += [f"timm/{name}@{size}" for size in sorted(found - {default})]
    return names


def torchvision_names() -> list[str]:
    """Every model of torchvision but the quantised ones."""
    from torchvision import models

    names = []
    for name in models.list_models(exclude="quantized_*"):
        names.append(f"torchvision/{name}")
        module = models.get_model_builder(name).__module__.split(".")[-2]
        names += [f"torchvision/{name}@{size}" for size in TORCHVISION_SIZES.get(module, ())]
    return names


TOKENS = {"encoders": (128, 512), "decoders": (128, 1024), "encoder_decoders": (128, 512)}
"""Numbers of tokens; a decoder's step has as many in its cache as the longest prompt has."""

VARIATIONS = 150
"""Networks drawn of each of DIPPM's families."""

RANDOM = 300
"""Networks drawn of each form of random networks."""


RECURRENT = 50
"""Networks drawn of each kind of recurrent cell."""


def transformers_names() -> list[str]:
    """Every configuration at every number of tokens, then the decoders' steps."""
    tables = (
        (ENCODERS, TOKENS["encoders"]),
        (DECODERS, TOKENS["decoders"]),
        (ENCODER_DECODERS, TOKENS["encoder_decoders"]),
    )
    names = [
        f"transformers/{key}@{tokens}"
        for table, lengths in tables
        for key in table
        for tokens in lengths
    ]
    return names + [f"step/{key}@{max(TOKENS['decoders'])}" for key in DECODERS]


PLANS: Mapping[str, Callable[[], list[str]]] = {
    "plain": lambda: [f"plain/{name}" for name in PLAIN],
    "neusight": lambda: [f"neusight/{name}" for name in NEUSIGHT],
    "transformers": transformers_names,
    "modal": lambda: [f"modal/{name}" for name in MODAL],
    "diffusion": lambda: [f"diffusion/{name}" for name in DIFFUSION],
    "recommender": lambda: [f"recommender/{name}" for name in RECOMMENDERS],
    "recurrent": lambda: [f"recurrent/{name}-{n}" for n in range(RECURRENT) for name in CELLS],
    "published": published_names,
    "torchvision": torchvision_names,
    "timm": timm_names,
    "varied": lambda: [f"varied/{name}-{n}" for n in range(VARIATIONS) for name in FAMILIES],
    "random": lambda: [f"random/{name}-{n}" for n in range(RANDOM) for name in FORMS],
}


def plan(sources: tuple[str, ...] = ()) -> list[str]:
    """Names of all networks of the given sources, or of all.

    Raises:
        KeyError: no such source.
    """
    return [name for source in (sources or PLANS) for name in PLANS[source]()]
