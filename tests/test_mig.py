"""Profile choice at, just under and just over each bound; placements against brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.devices import DEVICES
from dippm_lite.mig import (
    DEFAULT_MARGIN,
    fits,
    legal_placements,
    options,
    paper_profile,
    smallest_fit,
)

PROFILES = DEVICES["a100-sxm4-40gb"].mig_profiles
BY_NAME = {p.name: p for p in PROFILES}
MB = 1 / 1.048576  # in MiB


def choose(memory_mib, **kwargs):
    chosen = smallest_fit(options(PROFILES, memory_mib, **kwargs))
    return chosen.name if chosen else None


@pytest.mark.parametrize(
    ("megabytes", "under_or_at", "over"),
    [
        (5_000, "1g.5gb", "2g.10gb"),
        (10_000, "2g.10gb", "3g.20gb"),
        (20_000, "3g.20gb", "7g.40gb"),
        (40_000, "7g.40gb", None),
    ],
)
def test_paper_rule_has_no_gap_at_its_bounds(megabytes, under_or_at, over):
    assert paper_profile((megabytes - 0.01) * MB) == under_or_at
    assert paper_profile(megabytes * MB) == under_or_at
    assert paper_profile((megabytes + 0.01) * MB) == over


@given(st.floats(0, 39_999 * MB))
def test_paper_rule_always_answers_up_to_40_gb(memory_mib):
    assert paper_profile(memory_mib) is not None


def test_paper_rule_at_the_ends():
    assert paper_profile(0) == "1g.5gb"
    assert paper_profile(1e9) is None
    with pytest.raises(ValueError):
        paper_profile(-1)


@pytest.mark.parametrize(
    ("holds_mib", "name", "next_name"),
    [
        (4864, "1g.5gb", "1g.10gb"),
        (9856, "1g.10gb", "3g.20gb"),
        (19968, "3g.20gb", "7g.40gb"),
        (40192, "7g.40gb", None),
    ],
)
@pytest.mark.parametrize("margin", [0.0, DEFAULT_MARGIN, 0.1])
def test_choice_at_just_under_and_just_over_what_a_profile_holds(
    holds_mib, name, next_name, margin
):
    limit = holds_mib * (1 - margin)
    assert choose(limit - 0.5, margin=margin) == name
    assert choose(limit, margin=margin) == name
    assert choose(limit + 0.5, margin=margin) == next_name


def test_the_margin_is_taken_off_the_profile():
    profile = BY_NAME["1g.5gb"]
    assert fits(profile, 4864, margin=0)
    assert not fits(profile, 4864)
    assert fits(profile, 4864 * 0.98)


def test_the_smallest_profile_that_is_fast_enough():
    latency = {
        "1g.5gb": 70,
        "1g.10gb": 69,
        "2g.10gb": 35,
        "3g.20gb": 23,
        "4g.20gb": 17,
        "7g.40gb": 10,
    }
    assert choose(1000, latency_ms=latency) == "1g.5gb"
    assert choose(1000, latency_ms=latency, max_latency_ms=70) == "1g.5gb"
    assert choose(1000, latency_ms=latency, max_latency_ms=69.5) == "1g.10gb"
    assert choose(1000, latency_ms=latency, max_latency_ms=20) == "4g.20gb"
    assert choose(12_000, latency_ms=latency, max_latency_ms=50) == "3g.20gb"
    assert choose(1000, latency_ms=latency, max_latency_ms=9) is None


def test_a_profile_without_latency_is_not_said_to_keep_the_bound():
    assert choose(1000, latency_ms={"7g.40gb": 10}, max_latency_ms=100) == "7g.40gb"
    assert choose(1000, max_latency_ms=100) is None


def test_options_list_every_profile_from_small_to_large():
    rows = options(PROFILES, 6000, {"1g.5gb": 20.0}, batch_size=8)
    assert [row.profile.name for row in rows] == [
        "1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb",
    ]  # fmt: skip
    assert [row.fits for row in rows] == [False, False, True, True, True, True, True]
    first = rows[0]
    assert first.throughput_per_s == pytest.approx(400)
    assert first.card_throughput_per_s == pytest.approx(2800)
    assert first.instances == 7
    assert rows[2].latency_ms is rows[2].throughput_per_s is rows[2].card_throughput_per_s is None


@pytest.mark.parametrize("latency_ms", [0, -1, float("nan")])
def test_impossible_latencies_are_refused(latency_ms):
    with pytest.raises(ValueError, match=r"1g\.5gb"):
        options(PROFILES, 100, {"1g.5gb": latency_ms})


@given(st.floats(0, 50_000), st.floats(0, 50_000))
def test_needing_more_never_gives_a_smaller_profile(a, b):
    order = [None, *(row.profile.name for row in options(PROFILES, 0))]
    small, large = (choose(m) for m in sorted((a, b)))
    assert large is None or order.index(small) <= order.index(large)


def _brute_force(profiles):
    """Every combination of starts, then filtered: independent of the search in the package."""
    found = set()
    for starts in product(*(p.placements for p in profiles)):
        slices = [
            s
            for p, start in zip(profiles, starts, strict=True)
            for s in range(start, start + p.memory_slices)
        ]
        if len(slices) == len(set(slices)):
            found.add(frozenset((p.name, s) for p, s in zip(profiles, starts, strict=True)))
    legal = sum(p.compute_slices for p in profiles) <= 7 and all(
        sum(q.name == p.name for q in profiles) <= p.max_instances for p in profiles
    )
    return found if legal else set()


@given(st.lists(st.sampled_from(PROFILES), max_size=4))
def test_placements_are_all_and_only_the_legal_ones(profiles):
    placements = legal_placements(profiles)
    as_sets = [frozenset((p.name, s) for p, s in zip(profiles, x, strict=True)) for x in placements]
    assert len(set(as_sets)) == len(as_sets)
    assert set(as_sets) == _brute_force(profiles)


def _combinations_of_full_cards(names):
    """Multisets of profiles over all placements that leave no room for one more instance."""
    placed = {
        frozenset(zip(combo, starts, strict=True))
        for size in range(1, 8)
        for combo in combinations_with_replacement(sorted(names), size)
        for starts in legal_placements([BY_NAME[n] for n in combo])
    }
    everywhere = [(name, start) for name in names for start in BY_NAME[name].placements]
    full = (
        c for c in placed if not any(one not in c and c | {one} in placed for one in everywhere)
    )
    return {tuple(sorted(name for name, _ in combo)) for combo in full}


def test_known_combinations_of_the_a100():
    """Counted apart from this package, from NVIDIA's placements: 14 ways to fill a card without
    1g.10gb, among them 3g+4g and 4x1g+3g, which some published lists leave out; 38 with it."""
    names = ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]
    sets = _combinations_of_full_cards(names)
    assert len(sets) == 14
    assert ("3g.20gb", "4g.20gb") in sets
    assert ("1g.5gb",) * 4 + ("3g.20gb",) in sets
    assert len(_combinations_of_full_cards([*names, "1g.10gb"])) == 38


@pytest.mark.parametrize(
    ("names", "possible"),
    [
        (["1g.5gb"] * 7, True),
        (["1g.5gb"] * 8, False),
        (["1g.5gb+me"] * 2, False),
        (["3g.20gb", "3g.20gb"], True),
        (["4g.20gb", "3g.20gb"], True),
        (["4g.20gb", "4g.20gb"], False),
        (["3g.20gb", "3g.20gb", "1g.5gb"], False),  # compute is left, memory isn't
        (["1g.5gb"] * 4 + ["3g.20gb"], True),
        (["1g.5gb"] * 3 + ["4g.20gb"], True),
        (["2g.10gb", "2g.10gb", "3g.20gb"], True),
        (["7g.40gb", "1g.5gb"], False),
        ([], True),
    ],
)
def test_combinations_from_nvidia_s_guide(names, possible):
    assert bool(legal_placements([BY_NAME[n] for n in names])) is possible
