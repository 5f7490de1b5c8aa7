"""Every layout gives the same examples that went into it."""

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from likewise.data import Examples, Unreadable, decode, digits, folders, lfw, open_examples
from likewise.data.arrays import cifar10, idx
from likewise.data.lfw import lfw_protocol, pair_rows
from likewise.data.opening import is_lfw
from tests.data.drawing import archive, encoded, face, people, picture

PEOPLE = {"Ann": 3, "Bo_Li": 1, "Cy": 2}
LISTS = {
    "people.txt": "2\n2\nAnn\t3\nBo_Li\t1\n1\nCy\t2\n",
    "pairs.txt": "2\t1\nAnn\t1\t3\nAnn\t2\tBo_Li\t1\nCy\t1\t2\nCy\t1\tAnn\t1\n",
    "peopleDevTrain.txt": "2\nAnn\t3\nCy\t2\n",
    "peopleDevTest.txt": "1\nBo_Li\t1\n",
    "pairsDevTrain.txt": "1\nAnn\t1\t2\nAnn\t2\tCy\t1\n",
    "pairsDevTest.txt": "0\n",
}


def test_folders_are_identities_and_odd_files_are_listed(tmp_path: Path) -> None:
    root = people(tmp_path / "set", PEOPLE)
    (root / "Cy" / "deep").mkdir()
    (root / "Cy" / "deep" / "x.png").write_bytes(encoded(picture()))
    (root / "Cy" / "notes.txt").write_text("a diary")
    (root / "Cy" / "empty.jpg").write_bytes(b"")
    (root / "readme.md").write_text("beside")
    (tmp_path / "secret.png").write_bytes(encoded(picture()))
    (root / "Ann" / "link.png").symlink_to(tmp_path / "secret.png")
    os.mkfifo(root / "Ann" / "pipe")
    found = folders(root)
    assert found.identities == ("Ann", "Bo_Li", "Cy")
    assert found.items[-1] == "Cy/deep/x.png"
    assert found.labels.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert dict(found.skipped) == {
        "Ann/link.png": "a link that leads out of the folder",
        "Ann/pipe": "no regular file",
        "Cy/empty.jpg": "no picture in a known format",
        "Cy/notes.txt": "no picture in a known format",
        "readme.md": "belongs to no identity: it stands beside the folders",
    }
    assert numpy.array_equal(found.read(1), decode(face(2)))


def test_a_file_that_vanishes_is_unreadable(tmp_path: Path) -> None:
    found = folders(people(tmp_path / "set", {"Ann": 1}))
    (tmp_path / "set" / "Ann" / "Ann_0001.jpg").unlink()
    with pytest.raises(Unreadable, match="No such file"):
        found.read(0)


@pytest.fixture(params=["folder", "tar"])
def faces(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        people(tmp_path / "lfw" / "images", PEOPLE, size=(250, 250))
        for name, text in LISTS.items():
            (tmp_path / "lfw" / name).write_text(text)
        return tmp_path / "lfw"
    root = people(tmp_path / "plain", PEOPLE, size=(250, 250))
    files = {f"images/{p.relative_to(root).as_posix()}": p.read_bytes() for p in root.rglob("*.jpg")}
    return archive(tmp_path / "lfw.tar", {**files, **{name: text.encode() for name, text in LISTS.items()}})


def test_lfw_is_the_centre_of_each_image(faces: Path) -> None:
    assert is_lfw(faces)
    found = open_examples(faces)
    assert found.items == tuple(
        f"{name}/{name}_{n:04d}.jpg" for name, count in PEOPLE.items() for n in range(1, count + 1)
    )
    assert found.labels.tolist() == [0, 0, 0, 1, 2, 2]
    assert found.read(1).shape == (114, 114, 3)
    assert numpy.array_equal(found.read(1), decode(face(2, size=(250, 250)))[68:182, 68:182])
    assert lfw(faces, crop=None).read(0).shape == (250, 250, 3)


def test_pipes_among_faces_are_listed(tmp_path: Path) -> None:
    root = people(tmp_path / "lfw", PEOPLE)
    os.mkfifo(root / "Cy" / "Cy_0003.jpg")
    found = lfw(root)
    assert found.items[-1] == "Cy/Cy_0002.jpg"
    assert found.skipped == (("Cy/Cy_0003.jpg", "no regular file"),)
    (root / "Cy" / "Cy_0002.jpg").unlink()
    (root / "Cy" / "Cy_0002.jpg").symlink_to(os.devnull)  # no file, as a pipe, but nobody would wait for it
    with pytest.raises(Unreadable, match="no regular file"):
        found.read(5)


def test_the_protocol_is_read_as_written(faces: Path) -> None:
    found, protocol = lfw(faces), lfw_protocol(faces)
    assert protocol.people == (("Ann", "Bo_Li"), ("Cy",))
    assert protocol.outside(1) == ("Ann", "Bo_Li")
    assert (protocol.train_people, protocol.test_people, protocol.test_pairs) == (("Ann", "Cy"), ("Bo_Li",), ())
    rows, same = pair_rows(found, [pair for fold in protocol.pairs for pair in fold])
    assert rows.tolist() == [[0, 2], [1, 3], [4, 5], [4, 0]]
    assert same.tolist() == [True, False, True, False]
    assert torch.equal(found.labels[rows[:, 0]] == found.labels[rows[:, 1]], same)


def test_names_that_lead_out_of_an_archive_are_listed(tmp_path: Path) -> None:
    names = ["../Eve/Eve_0001.jpg", "/Eve/Eve_0002.jpg", "a/../Eve/Eve_0003.jpg", "x/.DS_Store", "Ann/Ann_0001.jpg"]
    found = lfw(archive(tmp_path / "faces.tar", dict.fromkeys(names, face(1))))
    assert found.items == ("Ann/Ann_0001.jpg",)
    assert [why for _, why in found.skipped] == ["a name that leads out of the archive"] * 3 + [
        "not <Name>/<Name>_0001.jpg"
    ]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"people.txt": "1\n1\n../Eve\t1\n"}, "names must be plain; got '../Eve'"),
        ({"pairs.txt": "2\t1\nAnn\t1\t3\n"}, "pairs must be 4 lines, as the first line says; got 1"),
        ({"pairs.txt": "1\t1\nAnn\t1\nAnn\t1\t3\n"}, "pairs must have three or four columns; got 'Ann.t1'"),
    ],
)
def test_odd_lists_are_refused(tmp_path: Path, lists: dict[str, str], message: str) -> None:
    texts = {name: text.encode() for name, text in {**LISTS, **lists}.items()}
    with pytest.raises(ValueError, match=f"lfw_protocol: {message}"):
        lfw_protocol(archive(tmp_path / "faces.tar", texts))


@pytest.mark.parametrize("end", ["", ".gz"])
def test_idx_is_what_was_written(tmp_path: Path, end: str) -> None:
    images = numpy.arange(5 * 3 * 7, dtype=numpy.uint8).reshape(5, 3, 7)
    labels = numpy.array([5, 0, 5, 12, 2], numpy.uint8)
    for name, values in (("train-images-idx3-ubyte", images), ("train-labels-idx1-ubyte", labels)):
        sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
        data = bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes()
        (tmp_path / f"{name}{end}").write_bytes(gzip.compress(data) if end else data)
    found = open_examples(tmp_path)
    assert found.identities == ("0", "2", "5", "12")
    assert found.labels.tolist() == [2, 0, 2, 3, 1]
    assert numpy.array_equal(found.read(3)[..., 0], images[3])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\0\x0d\x03", "start as idx of unsigned bytes does"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "announce at most 2,147,483,648 values"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 9]) + b"1234", "hold the 9 values it announces; got 4"),
    ],
)
def test_odd_idx_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(data)
    with pytest.raises(ValueError, match=f"read_idx: file must {message}"):
        idx(tmp_path)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 99]) + bytes(range(99))))
    packed[12] ^= 0xFF
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(packed)
    with pytest.raises(ValueError, match=r"read_idx: file must be whole; got train-images-idx3-ubyte.gz"):
        idx(tmp_path)


def cifar(tmp_path: Path, form: str) -> tuple[Path, numpy.ndarray]:
    images = numpy.random.default_rng(1).integers(0, 255, (10, 32, 32, 3), numpy.uint8)
    labels = [3, 9, 0, 1, 2, 4, 5, 6, 7, 8]
    if form == "npz":
        files = [encoded(_picture(image)) for image in images]
        offsets = numpy.cumsum([0, *map(len, files)])
        joined = numpy.frombuffer(b"".join(files), numpy.uint8)
        numpy.savez(
            tmp_path / "c.npz", train_jpeg=joined, train_offset=offsets, train_label=numpy.array(labels, numpy.uint8)
        )
        return tmp_path / "c.npz", images
    for number in range(5):
        part = images[2 * number : 2 * number + 2].transpose(0, 3, 1, 2).reshape(2, -1)
        some = labels[2 * number : 2 * number + 2]
        if form == "bin":
            data = numpy.concatenate([numpy.array(some, numpy.uint8)[:, None], part], 1).tobytes()
            (tmp_path / f"data_batch_{number + 1}.bin").write_bytes(data)
        else:
            data = pickle.dumps({b"data": numpy.ascontiguousarray(part), b"labels": some}, protocol=4)
            (tmp_path / f"data_batch_{number + 1}").write_bytes(data)
    return tmp_path, images


def _picture(image: numpy.ndarray):
    from PIL import Image

    return Image.fromarray(image)


@pytest.mark.parametrize("form", ["npz", "bin", "pickle"])
def test_cifar_is_what_was_written(tmp_path: Path, form: str) -> None:
    path, images = cifar(tmp_path, form)
    found = open_examples(path)
    assert found.identities[3] == "cat"
    assert found.labels[:3].tolist() == [3, 9, 0]
    assert all(numpy.array_equal(found.read(row), images[row]) for row in range(10))


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


def test_a_pickle_that_names_anything_but_arrays_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Attack(), b"labels": []}))
    with pytest.raises(ValueError, match=r"cifar10: path must hold pickles of plain arrays only; got posix.system"):
        cifar10(tmp_path)


def damaged_npz(path: Path, how: str) -> None:
    arrays: dict[str, Any] = {
        "train_jpeg": numpy.zeros(9, numpy.uint8),
        "train_offset": numpy.array([0, 4, 9]),
        "train_label": numpy.array([3, 9]),
    }
    changes: dict[str, dict[str, Any]] = {
        "an object": {"train_label": numpy.array([3, None])},
        "a wide label": {"train_label": numpy.array([3, 200])},
        "a table of labels": {"train_label": numpy.array([[3], [9]])},
        "a fraction": {"train_offset": numpy.array([0, 4.5, 9])},
        "offsets that fall": {"train_offset": numpy.array([0, 9, 4], numpy.uint64)},
        "an offset below": {"train_offset": numpy.array([-4, 4, 9])},
    }
    numpy.savez(path, **{**arrays, **changes.get(how, {})})
    data = bytearray(path.read_bytes())
    if how == "a flipped bit":
        data[data.index(b"NUMPY") + 130] ^= 1
    path.write_bytes({"cut off": data[:300], "a text": b"a diary", "empty": b""}.get(how, data))


WHOLE_NPZ = r"be a whole .npz with arrays of numbers or texts, no objects; got '.*c.npz'.$"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("cut off", WHOLE_NPZ),
        ("a flipped bit", WHOLE_NPZ),
        ("a text", WHOLE_NPZ),
        ("empty", WHOLE_NPZ),
        ("an object", WHOLE_NPZ),
        ("a wide label", "have labels from 0 to 9; got 200 in '.*c.npz'"),
        ("a table of labels", "have train_jpeg in one row of bytes, .* in one row of whole numbers; got '.*c.npz'"),
        ("a fraction", "have train_jpeg in one row of bytes, .* in one row of whole numbers; got '.*c.npz'"),
        ("offsets that fall", "have an offset for each label, and the end; got 3, 2 in '.*c.npz'"),
        ("an offset below", "have an offset for each label, and the end; got 3, 2 in '.*c.npz'"),
    ],
)
def test_a_damaged_npz_is_refused_by_name(tmp_path: Path, how: str, message: str) -> None:
    damaged_npz(tmp_path / "c.npz", how)
    with pytest.raises(ValueError, match=f"cifar10: path must {message}"):
        open_examples(tmp_path / "c.npz")


def test_a_npz_must_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.npz").symlink_to(os.devnull)
    with pytest.raises(ValueError, match=r"cifar10: path must be a file; got '.*c.npz'"):
        open_examples(tmp_path / "c.npz")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("data_batch_1.bin", bytes(3072), "hold rows of 3,073 bytes; got 3,072 bytes in '.*data_batch_1.bin'"),
        ("data_batch_1.bin", b"", "hold rows of 3,073 bytes; got 0 bytes in '.*data_batch_1.bin'"),
        ("data_batch_1.bin", b"\xc8" + bytes(3072), "have labels from 0 to 9; got 200 in '.*data_batch_1.bin'"),
        ("data_batch_1", b"a diary", "hold whole pickles; got '.*data_batch_1'"),
        ("data_batch_1", pickle.dumps([1, 2])[:-1], "hold whole pickles; got '.*data_batch_1'"),
        ("data_batch_1", pickle.dumps([1, 2]), "hold data and labels in data_batch_1; got "),
        ("data_batch_1", pickle.dumps({b"data": 1, b"labels": 2}), "hold data and labels in data_batch_1; got "),
    ],
)
def test_damaged_cifar_is_refused_by_name(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"cifar10: path must {message}"):
        open_examples(tmp_path)


def test_cifar_labels_must_have_names(tmp_path: Path) -> None:
    for label in (-1, 10, "cat"):
        data = {b"data": numpy.zeros((1, 3072), numpy.uint8), b"labels": [label]}
        (tmp_path / "data_batch_1").write_bytes(pickle.dumps(data))
        with pytest.raises(ValueError, match=f"cifar10: path must have labels from 0 to 9; got {label!r} in '.*1'"):
            cifar10(tmp_path)


def test_digits_are_numbers_in_grey() -> None:
    found = open_examples("digits")
    assert (len(found), found.identities) == (1797, tuple("0123456789"))
    assert found.read(0).shape == (8, 8, 1)
    assert max(int(found.read(row).max()) for row in range(20)) == 255


def subset_agrees(found: Examples, some: Examples) -> bool:
    rows = found.rows(some.items)
    same = all(numpy.array_equal(found.read(row), some.read(number)) for number, row in enumerate(rows))
    names = [found.identities[found.labels[row]] for row in rows]
    return same and names == [some.identities[label] for label in some.labels]


def test_some_examples_are_the_same_examples() -> None:
    found = digits().take(range(50))
    some = found.of(["7", "3"])
    assert some.identities == ("3", "7")
    assert subset_agrees(found, some)
    assert subset_agrees(found, some.take([5, 1, 2]))
    assert subset_agrees(found, found.without(["3", "7"]))
    assert len(found.without(["3", "7"])) + len(some) == 50
    assert found.with_at_least(1).fingerprint == found.fingerprint != some.fingerprint
    with pytest.raises(ValueError, match=r"Examples.of: identities must be in digits; got eleven"):
        found.of(["eleven"])
    with pytest.raises(ValueError, match=r"Examples.rows: items must be images of digits; got 'x'"):
        found.rows(["x"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: open_examples(path / "none"), "open_examples: data must be .digits. or a path that exists"),
        (lambda path: open_examples(path), "folders: path must hold folders with images"),
        (lambda path: idx(path), "idx: path must hold train-images-idx3-ubyte"),
        (lambda path: cifar10(path), "cifar10: path must hold data_batch_1 or data_batch_1.bin"),
        (lambda path: lfw(path), "lfw: path must hold <Name>/<Name>_0001.jpg"),
        (lambda path: lfw_protocol(path), "lfw_protocol: path must hold people.txt"),
        (lambda path: lfw(path, crop=0), "lfw: crop must be a whole number of at least 1"),
        (
            lambda path: idx(path, split="dev"),  # ty: ignore[invalid-argument-type]
            "idx: split must be one of 'train', 'test'",
        ),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_paths_are_refused(tmp_path: Path, make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(tmp_path)


@pytest.mark.full
@pytest.mark.skipif("LIKEWISE_LFW" not in os.environ, reason="LIKEWISE_LFW does not say where LFW is")
def test_the_real_lfw_has_its_published_counts() -> None:
    found, protocol = lfw(os.environ["LIKEWISE_LFW"]), lfw_protocol(os.environ["LIKEWISE_LFW"])
    assert (len(found), len(found.identities)) == (13233, 5749)
    assert list(map(len, protocol.people)) == [601, 555, 552, 560, 567, 527, 597, 601, 580, 609]
    assert list(map(len, protocol.pairs)) == [600] * 10
    assert (len(protocol.train_people), len(protocol.test_people)) == (4038, 1711)
    assert (len(protocol.train_pairs), len(protocol.test_pairs)) == (2200, 1000)
    assert [len(found.with_at_least(n).identities) for n in (2, 4, 10, 20, 40)] == [1680, 610, 158, 62, 19]
    for pairs in (*protocol.pairs, protocol.train_pairs, protocol.test_pairs):
        rows, same = pair_rows(found, pairs)
        assert torch.equal(found.labels[rows[:, 0]] == found.labels[rows[:, 1]], same)


@pytest.mark.skipif("LIKEWISE_CIFAR10" not in os.environ, reason="LIKEWISE_CIFAR10 does not say where CIFAR-10 is")
def test_the_real_cifar_has_its_published_counts() -> None:
    found = open_examples(os.environ["LIKEWISE_CIFAR10"])
    assert found.labels.bincount().tolist() == [5000] * 10
    assert found.read(0).shape == (32, 32, 3)
