"""`likewise evaluate` shows what the library finds, as text, as JSON and as a page."""

import importlib
import json
import os
import re
import signal
from itertools import combinations
from pathlib import Path

import pytest
import torch

from likewise import cli
from likewise.cost import cost
from likewise.data import Preparation, folders, open_examples
from likewise.data.pair_lists import read_pairs
from likewise.evaluation import evaluate
from likewise.evaluation.protocols import Everyone, lfw_pairs, own_pairs
from likewise.networks import build_classifier, build_network, load_network, save_network
from likewise.networks.classifiers import save_classifier
from likewise.training.jobs import held_out_identities
from tests.data.drawing import archive, face, people

door = importlib.import_module("likewise.cli.evaluate")  # in its room the name is the verb
COUNTS = {"Ann": 4, "Bo": 4, "Cy": 4, "Di": 4, "Ed": 4, "Flo": 4, "Gus": 1}
TRAIN = "--network resnet8 --embedding-dim 6 --identities 3 --faces 3 --random 2 --size 8x9 --steps 2 --workers 0"

pytestmark = pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Faces, others to be trained on, and a network."""
    folder = tmp_path_factory.mktemp("evaluate")
    people(folder / "faces", COUNTS)
    people(folder / "others", {"Ida": 4, "Jo": 4, "Kai": 3, "Lou": 3, "Max": 3})
    assert run("train", str(folder / "others"), *TRAIN.split(), "--out", str(folder / "m.safetensors")) == 0
    return folder


def shown(place: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run("evaluate", str(place / "m.safetensors"), *arguments, "--workers", "0", "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_folder_is_judged_by_all_pairs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(place, capsys, str(place / "faces"), "--far", "0.1", "--clusters", "--worst", "2", "--splits", "2")
    saved = load_network(place / "m.safetensors")
    expected = evaluate(
        saved.network,
        saved.preparation,
        folders(place / "faces"),
        far=0.1,
        protocol=Everyone(2),
        clusters=True,
        worst=2,
    )
    assert found["rates"] == expected.to_json()["rates"]
    assert found["clusters"] == expected.to_json()["clusters"]
    assert (found["images"], found["identities"], found["protocol"]) == (25, 7, "all pairs")
    assert found["hash"] == saved.hash
    assert (found["tables"], found["report"]) == ([], None)


def test_the_text_names_the_unit_and_the_worst(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", str(place / "m.safetensors"), str(place / "faces"), "--far", "0.1", "--workers", "0"]
    assert run(*arguments, "--mirror", "--clusters") == 0
    out = capsys.readouterr().out
    assert out.startswith("faces, all pairs: 25 images of 7 identities, each with its mirror image\n")
    assert "thresholds and distances are squared Euclidean distances" in out
    for text in ("accuracy ", "VAL at FAR 0.1 ", "in 6 bytes", "its FAR, 95 %", "area under ROC", "of 7 people"):
        assert text in out
    assert len(re.findall(r"^  \d\.\d{4}  \w+/\w+\.jpg  \w+/\w+\.jpg$", out, flags=re.MULTILINE)) == 6


def test_a_list_of_pairs_is_known_by_its_name(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = sorted(path.relative_to(place / "faces").as_posix() for path in (place / "faces").rglob("*.jpg"))
    lines = [f"{a}\t{b}\t{int(a[:2] == b[:2])}" for a, b in combinations(names[:20], 2)]
    file = place / "faces" / "pairs.tsv"
    file.write_text("\n".join(lines))
    try:
        found = shown(place, capsys, str(file), "--far", "0.1", "--folds", "4")
        listed, saved = read_pairs(file), load_network(place / "m.safetensors")
        expected = evaluate(
            saved.network, saved.preparation, listed.examples, far=0.1, protocol=own_pairs(listed, folds=4)
        )
        assert found["rates"] == expected.to_json()["rates"]
        assert len(found["rates"]["folds"]) == 4
        file.write_text("\n".join([*lines, "Ann Bo 1"]))
        assert run("evaluate", str(place / "m.safetensors"), str(file)) == 2
        assert "read_pairs, line 191: the line must be two image paths and 1 or 0" in capsys.readouterr().err
    finally:
        file.unlink()


def lfw_archive(folder: Path) -> Path:
    """Two folds of two people each, every pair of the same person and two different ones."""
    names = ["Ann", "Bo", "Cy", "Di"]
    members = {f"{name}/{name}_{n:04d}.jpg": face(9 * k + n) for k, name in enumerate(names) for n in range(1, 5)}
    same = [(a, b) for a, b in combinations(range(1, 5), 2)]

    def part(one: str, two: str) -> str:
        lines = [f"{who}\t{a}\t{b}" for who in (one, two) for a, b in same]
        lines += [f"{one}\t{a}\t{two}\t{b}" for a in range(1, 5) for b in range(1, 4)]
        return "\n".join(lines) + "\n"

    lists = {
        "people.txt": "2\n2\nAnn\t4\nBo\t4\n2\nCy\t4\nDi\t4\n",
        "peopleDevTrain.txt": "2\nAnn\t4\nBo\t4\n",
        "peopleDevTest.txt": "2\nCy\t4\nDi\t4\n",
        "pairs.txt": f"2\t12\n{part('Ann', 'Bo')}{part('Cy', 'Di')}",
        "pairsDevTrain.txt": f"12\n{part('Ann', 'Bo')}",
        "pairsDevTest.txt": f"12\n{part('Cy', 'Di')}",
    }
    return archive(folder / "lfw.tar", {**members, **{name: text.encode() for name, text in lists.items()}})


@pytest.mark.slow
def test_lfw_by_view_and_by_fold(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from likewise.data import lfw
    from likewise.data.lfw import lfw_protocol

    file = str(lfw_archive(tmp_path))
    saved, some, lists = load_network(place / "m.safetensors"), lfw(file), lfw_protocol(file)
    for options, chosen in (
        ([], lfw_pairs(some, lists)),
        (["--fold", "2"], lfw_pairs(some, lists, fold=2)),
        (["--view", "1"], lfw_pairs(some, lists, view=1)),
    ):
        found = shown(place, capsys, file, "--far", "0.3", *options)
        expected = evaluate(saved.network, saved.preparation, some, far=0.3, protocol=chosen)
        assert found["rates"] == expected.to_json()["rates"]
        assert found["protocol"] == chosen.title
    everyone = shown(place, capsys, file, "--far", "0.3", "--protocol", "folders")
    assert everyone["protocol"] == "all pairs"


@pytest.mark.full
def test_a_page_holds_everything_and_fetches_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = place / "report.html"
    found = shown(
        place, capsys, str(place / "faces"), "--far", "0.1", "--table", "4", "--robustness", "--out", str(page)
    )
    assert found["report"] == str(page)
    titles = [table["title"] for table in found["tables"]]
    assert titles == ["Table 4: image quality", "Robustness"]
    text = page.read_text()
    assert all(title in text for title in titles)
    assert text.count('src="data:image/jpeg;base64,') == 2 * (len(found["worst_same"]) + len(found["worst_different"]))
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_warnings_stand_beside_the_rates_in_every_output(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", str(place / "m.safetensors"), "--far", "0.1", "--workers", "0"]
    page, seen = place / "warned.html", "These are the images that the network was trained on: the rates say nothing of"
    few = "115 different pairs are fewer than 30 / far, 300"  # 17 * 16 / 2 less 21 same pairs
    assert run(*arguments, str(place / "others"), "--out", str(page)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"warning: {seen}")
    assert lines[2].startswith(f"warning: evaluate: {few}")
    assert lines[3].startswith("accuracy")
    head = page.read_text().partition("</header>")[0]
    assert seen in head
    assert few in head
    found = shown(place, capsys, str(place / "others"), "--far", "0.1")
    assert [text[:20] for text in found["warnings"]] == [seen[:20], f"evaluate: {few}"[:20]]
    assert run(*arguments, str(place / "faces")) == 0
    assert "trained on" not in "".join(capsys.readouterr())


def test_images_of_training_are_counted_where_a_part_was_held_out(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, images = tmp_path / "m.safetensors", str(place / "others")
    assert run("train", images, *TRAIN.split(), "--held-out", "0.4", "--out", str(model)) == 0
    trained = open_examples(images).without(held_out_identities(["Ida", "Jo", "Kai", "Lou", "Max"], 0.4))
    capsys.readouterr()
    found = shown(tmp_path, capsys, images, "--far", "0.1")
    assert found["warnings"][0].startswith(f"The network was trained on {len(trained)} of these 17 images: the rates")
    (tmp_path / "m.checkpoint").unlink()
    again = tmp_path / "again.safetensors"
    start = ["--start", str(model), "--network", "resnet8"]
    assert run("train", str(place / "faces"), *TRAIN.split(), *start, "--out", str(again)) == 0
    assert load_network(again).trained_on == (trained.origin, folders(place / "faces").origin)


@pytest.mark.slow
def test_a_damaged_checkpoint_beside_the_network_does_not_matter(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.safetensors").write_bytes((place / "m.safetensors").read_bytes())
    (tmp_path / "m.checkpoint").write_bytes((place / "m.checkpoint").read_bytes()[:100])
    for images in ("faces", "others"):
        alone = shown(tmp_path, capsys, str(place / images), "--far", "0.1")
        beside = shown(place, capsys, str(place / images), "--far", "0.1")
        assert (alone["rates"], alone["warnings"]) == (beside["rates"], beside["warnings"])


def test_what_is_left_out_is_said_as_far_as_it_is_known(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = people(tmp_path / "faces", {"Ann": 4, "Bo": 4, "Cy": 4, "Di": 4})
    names = sorted(path.relative_to(tmp_path).as_posix() for path in root.rglob("*.jpg"))
    same = [int(Path(a).parent == Path(b).parent) for a, b in combinations(names, 2)]
    lines = [f"{a}\t{b}\t{kind}\n" for (a, b), kind in zip(combinations(names, 2), same, strict=True)]
    (tmp_path / "mine.tsv").write_text("".join(lines))
    damaged = root / "Bo" / "Bo_0002.jpg"
    damaged.write_bytes(damaged.read_bytes()[:400])
    for data, more in (("faces", ""), ("mine.tsv", ", with 15 listed pairs")):
        arguments = ["evaluate", str(place / "m.safetensors"), str(tmp_path / data), "--far", "0.2", "--workers", "0"]
        assert run(*arguments) == 0
        assert f"left out: 1 unreadable{more}" in capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_tables_that_train_go_on_after_ctrl_c(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ["evaluate", str(place / "m.safetensors"), str(place / "faces"), "--table", "6", "--far", "0.3"]
    table += ["--held-out", "0.5", "--steps", "3", "--workers", "0", "--json", "--runs"]
    assert run(*table, str(tmp_path / "whole")) == 0
    whole = json.loads(capsys.readouterr().out)
    assert "rates" not in whole
    [made] = whole["tables"]
    assert [row["note"] for row in made["rows"]] == ["2 identities", "2 identities", "2 identities", "3 identities"]
    bar = door.progress_bar

    class Pressing:
        def __enter__(self):
            self.bar = bar()
            progress = self.bar.__enter__()

            def press(done: float, doing: str) -> None:
                progress(done, doing)
                if doing.startswith("images 5, step 2,"):
                    os.kill(os.getpid(), signal.SIGINT)

            return press

        def __exit__(self, *error: object) -> None:
            self.bar.__exit__(None, None, None)

    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", Pressing)
        assert run(*table, str(tmp_path / "parts")) == 130
    [stopped] = json.loads(capsys.readouterr().out)["tables"]
    assert (stopped["rows"], stopped["finished"]) == ([], False)
    assert run(*table, str(tmp_path / "parts")) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == whole["tables"]
    table.remove("--json")
    assert run(*table, str(tmp_path / "parts")) == 0
    heading, *rows = capsys.readouterr().out.strip().splitlines()[2:]
    assert heading.split() == ["VAL", "at", "FAR", "0.3", "accuracy", "threshold"]
    assert [row.split()[:2] for row in rows] == [["images", "5"]] * 3 + [["images", "9"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "7"], "evaluate: --table must be 3, 4, 5 or 6; got 7"),
        (["--fold", "1"], "evaluate: --fold must be for --protocol lfw; got 1"),
        (["--folds", "2"], "evaluate: --folds must be for --protocol pairs; got 2"),
        (["--protocol", "lfw"], "evaluate: --protocol must not be lfw for data that is not LFW"),
        (["--protocol", "pairs"], "read_pairs: path must be a text file of pairs"),
        (["--out", "nowhere/page.html"], "evaluate --out: path must be in a folder that exists"),
        (["--far", "0.0001"], "evaluate: far must be at least 3 / "),
        (["--table", "5", "--held-out", "2"], "held_out: share must be between 0 and 1; got 2.0"),
    ],
)
def test_wrong_usage_is_one_line(
    place: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", str(place / "m.safetensors"), str(place / "faces"), "--workers", "0", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_table_3_sets_networks_beside_their_multiply_adds(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = tmp_path / "larger.safetensors"
    options = {"channels": 3, "embedding_dim": 6}
    network = build_network("resnet14", options)
    save_network(network, larger, name="resnet14", options=options, preparation=Preparation((8, 9), 3))
    page = tmp_path / "page.html"
    beside = ["--far", "0.1", "--beside", str(larger), "--out", str(page)]
    [table] = shown(place, capsys, str(place / "faces"), *beside)["tables"]
    assert (table["title"], table["far"]) == ("Table 3: networks", 0.1)
    assert [row["note"] for row in table["rows"]] == ["m.safetensors", "larger.safetensors"]
    small = load_network(place / "m.safetensors")
    alone = evaluate(small.network, small.preparation, folders(place / "faces"), far=0.1).rates
    assert (table["rows"][0]["val"], table["rows"][0]["threshold"]) == (alone.val, alone.threshold)
    macs = [row["value"] for row in table["rows"]]
    assert macs == [cost(each, torch.zeros(1, 3, 8, 9)).macs for each in (small.network, network.eval())]
    assert f"{macs[1]:,}" in page.read_text()
    arguments = ["evaluate", str(place / "m.safetensors"), str(place / "others"), "--workers", "0"]
    assert run(*arguments, *beside[:4]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"multiply-adds {macs[0]:,} .* m.safetensors, trained on these images\n", out)
    assert run(*arguments, "--table", "3") == 2
    message = "--table must not be 3 for one network; got 3. Name other networks with --beside."
    assert message in capsys.readouterr().err


def test_a_classifier_is_called_one(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.safetensors"
    network = build_classifier("resnet8", channels=3, num_classes=2)
    save_classifier(network, file, name="resnet8", classes=["a", "b"], preparation=Preparation((8, 9), 3))
    assert run("evaluate", str(file), str(place / "faces")) == 2
    error = capsys.readouterr().err
    assert "load_network: path must be a network; got a classifier, " in error
    assert "For a classifier: likewise depth, likewise exits." in error


def test_a_missing_network_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", str(place / "none.safetensors"), str(place / "faces")) == 2
    assert "load_network: path must be a network that likewise wrote" in capsys.readouterr().err
