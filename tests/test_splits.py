"""Splits: nothing crosses, order and additions change nothing, and a frozen file defends itself."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.errors import InputError
from training.datasets.groups import base_name, connected, group_records
from training.datasets.splits import (
    FROZEN,
    Side,
    Splits,
    freeze,
    read,
    side_of,
    source_body,
    verify,
    write,
)


@dataclass(frozen=True)
class Item:
    """A record as far as splits see one."""

    name: str
    family: str
    fingerprint: str
    architecture: str
    aliases: tuple[str, ...] = ()


def digest(number: int) -> str:
    return f"{number * 2654435761 % 2**64:016x}" * 2


def items(count: int, seed: int = 0, families: int = 12) -> list[Item]:
    """Records with as many architectures as half of them, some under two names or families."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        architecture = draw.randrange(max(1, count // 2))
        family = f"family{architecture % families}"
        name = f"source/net{architecture}-{draw.randrange(3)}@{number}"
        made.append(Item(name, family, digest(number + 1), digest(10**6 + architecture)))
    return made


RECORDS = st.builds(items, st.integers(1, 60), st.integers(0, 10**6), families=st.integers(1, 12))


@settings(max_examples=50, deadline=None)
@given(records=RECORDS, seed=st.integers(0, 1000))
def test_splits_do_not_depend_on_the_order_of_records(records: list[Item], seed: int) -> None:
    shuffled = records[:]
    random.Random(seed).shuffle(shuffled)
    assert freeze(records).to_json() == freeze(shuffled).to_json()


@settings(max_examples=50, deadline=None)
@given(records=RECORDS)
def test_nothing_crosses(records: list[Item]) -> None:
    splits = freeze(records)
    assert verify(splits, records) == ()
    for key in (lambda r: r.architecture, lambda r: base_name(r.name)):
        places: dict[str, set[tuple[Side, int]]] = {}
        for record in records:
            place = (splits.side(record.fingerprint), splits.family_fold(record.family))
            places.setdefault(key(record), set()).add(place)
        assert all(len(found) == 1 for found in places.values())


@settings(max_examples=50, deadline=None)
@given(records=RECORDS, more=RECORDS)
def test_records_of_other_groups_change_no_side(records: list[Item], more: list[Item]) -> None:
    others = [
        replace(
            record,
            name="other" + record.name,
            fingerprint="f" + record.fingerprint[1:-1],
            architecture=record.architecture[::-1][:-1] + "0",
        )
        for record in more
    ]
    known = {record.architecture for record in records}
    others = [r for r in others if r.architecture not in known]
    taken = {record.fingerprint[:12] for record in records}
    others = [r for r in others if r.fingerprint[:12] not in taken]
    before, after = freeze(records), freeze([*records, *others])
    for record in records:
        assert before.side(record.fingerprint) is after.side(record.fingerprint)


@settings(max_examples=50, deadline=None)
@given(records=RECORDS, data=st.data())
def test_frozen_groups_and_folds_stay_when_records_join(
    records: list[Item], data: st.DataObject
) -> None:
    before = freeze(records)
    joined = data.draw(st.sampled_from(records))
    new = Item("new/net@1", "new", digest(10**7), "0" * 32, aliases=(joined.name,))
    after = freeze([*records, new], previous=before)
    assert {f: after.groups[f] for f in before.groups} == dict(before.groups)
    assert {f: after.families[f] for f in before.families} == dict(before.families)
    assert after.side(new.fingerprint) is before.side(joined.fingerprint)
    assert after.family_fold("new") == before.family_fold(joined.family)


def test_a_record_between_two_frozen_groups_joins_them_on_one_side() -> None:
    records = items(40, seed=3)
    before = freeze(records)
    groups = sorted({before.groups[r.fingerprint[:12]]: r for r in records}.items())
    (_, one), (_, two) = next(
        (a, b)
        for a in groups
        for b in groups
        if side_of(a[0]) is not side_of(b[0]) and a[1].family != b[1].family
    )
    between = Item("new/x", one.family, digest(10**7), "f" * 32, (one.name, two.name))
    after = freeze([*records, between], previous=before)
    assert verify(before, [*records, between]) != ()
    assert verify(after, [*records, between]) == ()
    assert after.side(one.fingerprint) is after.side(two.fingerprint)
    assert after.family_fold(one.family) == after.family_fold(two.family)


def test_sides_are_70_15_15_of_many_groups() -> None:
    sides = Counter(side_of(digest(number)[:12]) for number in range(20_000))
    # Three standard deviations of a binomial share are 1%.
    for side, share in ((Side.TRAIN, 0.70), (Side.VALIDATION, 0.15), (Side.TEST, 0.15)):
        assert sides[side] / 20_000 == pytest.approx(share, abs=0.01)


def test_sides_of_known_hashes_never_change() -> None:
    # printf 'dippm-lite random split 1: %s' GROUP | sha256sum, its first 8 bytes / 2^64 by bc.
    places = {
        "deadbeef0002": 0.022758, "333333333333": 0.566613, "000000000000": 0.748038,
        "666666666666": 0.760862, "aaaaaaaaaaaa": 0.887074, "222222222222": 0.993021,
    }  # fmt: skip
    for group, place in places.items():
        expected = "train" if place < 0.70 else "validation" if place < 0.85 else "test"
        assert side_of(group).value == expected


def test_folds_hold_about_as_many_records() -> None:
    records = items(3000, families=40)
    splits = freeze(records)
    sizes = Counter(splits.family_fold(record.family) for record in records)
    assert set(sizes) == {0, 1, 2, 3, 4}
    largest = max(Counter(record.family for record in records).values())
    assert max(sizes.values()) - min(sizes.values()) <= largest


def test_families_that_share_an_architecture_are_left_out_together() -> None:
    records = [
        Item("a/bert-base@128", "bert", digest(1), digest(100)),
        Item("a/electra-base@128", "electra", digest(2), digest(100)),
        Item("a/electra-odd@128", "electra", digest(3), digest(101)),
        Item("a/odd@64", "odd", digest(4), digest(101)),
        *(Item(f"a/{n}", f"alone{n}", digest(10 + n), digest(200 + n)) for n in range(20)),
    ]
    splits = freeze(records)
    assert len({splits.family_fold(f) for f in ("bert", "electra", "odd")}) == 1


def test_a_size_in_a_name_does_not_part_networks() -> None:
    # Their operators differ (a window that must be padded), their name says what they are.
    one = Item("timm/swin@224", "swin", digest(1), digest(100))
    two = Item("timm/swin@280", "swin", digest(2), digest(101))
    groups = group_records([one, two])
    assert len(set(groups.values())) == 1
    assert base_name("step/llama-7b@512") == base_name("transformers/llama-7b@128")


def test_groups_are_connected_components() -> None:
    found = connected([("d", "c"), ("a",), ("c", "b"), ("e", "f"), ("f", "e")])
    assert found == {"a": "a", "b": "b", "c": "b", "d": "b", "e": "e", "f": "e"}


def test_revisions_of_one_table_are_one_source() -> None:
    sources = {"trt_demobert_805810b1": 300, "trt_demobert_718a92f5": 280, "parvagpu": 5}
    sources |= {"MunQ-Lee/ParvaGPU_SC24": 9, "parvagpu_bert": 4, "ait_sd": 7, "sam2": 3}
    splits = freeze(items(10), sources)
    assert set(splits.sources) == {"trt_demobert", "parvagpu", "ait_sd", "sam2"}
    assert splits.source_fold("trt_demobert_805810b1") == splits.source_fold("trt_demobert_new")
    assert source_body("mlcommons/inference_results_v2.0") == source_body("mlperf_inf_v1.1")
    assert verify(splits, items(10), sources) == ()
    assert verify(splits, items(10), ["unheard"]) == ("source unheard is in no fold",)


def test_a_frozen_file_comes_back_as_it_was(tmp_path: Path) -> None:
    splits = freeze(items(50), {"a": 3, "b": 4})
    path = tmp_path / "splits" / "file.json"
    write(splits, path)
    assert read(path) == splits
    assert read(path).digest == splits.digest
    content = json.loads(path.read_text())
    assert sum(len(v) for side in content["random"].values() for v in side.values()) == 50


@pytest.mark.parametrize("change", ["family", "side", "group", "schema", "text", "missing"])
def test_a_changed_file_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "file.json"
    write(freeze(items(50)), path)
    content = json.loads(path.read_text())
    if change == "family":
        content["families"]["family1"] = (content["families"]["family1"] + 1) % 5
    elif change == "side":
        group, members = content["random"]["train"].popitem()
        content["random"]["test"][group] = members
    elif change == "group":
        one, two = list(content["random"]["train"])[:2]
        content["random"]["train"][one] += content["random"]["train"].pop(two)
    elif change == "schema":
        content["schema"] = "other/1"
    if change == "missing":
        path.unlink()
    else:
        path.write_text("{" if change == "text" else json.dumps(content))
    with pytest.raises(InputError):
        read(path)


def test_verify_finds_what_crosses() -> None:
    records = items(30)
    splits = freeze(records)
    group = splits.groups[records[0].fingerprint[:12]]
    other = next(g for g in map(str, range(1000)) if side_of(g) is not side_of(group))
    broken = replace(splits, groups={**splits.groups, records[0].fingerprint[:12]: other})
    partners = [r for r in records[1:] if r.architecture == records[0].architecture]
    assert any("stands on the sides" in p for p in verify(broken, [records[0], *partners]))
    alone = Item("x/y", "family0", digest(999), digest(999))
    assert verify(splits, [alone]) == ("x/y is not in the frozen splits",)
    stranger = replace(records[0], family="unheard")
    assert "is in no fold" in verify(splits, [stranger])[0]
    folds = Splits(splits.groups, {**splits.families, "twin": 9})
    twin = replace(records[0], name="x/twin", family="twin")
    assert any("in the folds" in p for p in verify(folds, [records[0], twin]))


def test_fingerprints_that_look_alike_are_refused() -> None:
    one = Item("a/b", "f", "ab" * 16, digest(1))
    with pytest.raises(ValueError, match="share the fingerprint"):
        freeze([one, replace(one, name="a/c", fingerprint="ab" * 15 + "00")])


def frozen_records() -> Sequence[Item]:
    from training.corpus.commands import RECORDS
    from training.corpus.records import Corpus

    return Corpus(RECORDS).records if (RECORDS / "index.jsonl").exists() else ()  # type: ignore[return-value]


@pytest.mark.skipif(not FROZEN.exists(), reason="no splits are frozen yet")
def test_the_frozen_splits_fit_the_records_of_the_repository() -> None:
    assert verify(read(), frozen_records()) == ()
