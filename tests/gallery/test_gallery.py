"""Enrol, verify, identify: what goes in, what comes out, what is refused."""

import io
from itertools import count
from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image

from likewise.data import Preparation
from likewise.gallery import Embedder, Gallery, Incompatible, Limits
from likewise.gallery.embedding import module_embedder
from likewise.gallery.store import Model
from likewise.networks import build_network, save_network
from tests.gallery.people import model_of, people

SIDE = 8


def picture(number: int) -> numpy.ndarray:
    """A picture that is another one for every number."""
    return numpy.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), dtype=numpy.uint8)


def flat(images: list[numpy.ndarray]) -> list[list[float]]:
    """The plainest model: pixels about their middle."""
    return [(image.astype(float).ravel() - 127.5).tolist() for image in images]


def encoded(pixels: numpy.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_every_kind_of_image_gives_the_same_template(tmp_path: Path) -> None:
    pixels = picture(1)
    path = tmp_path / "one.png"
    path.write_bytes(encoded(pixels))
    kinds = [str(path), path, encoded(pixels), pixels, torch.from_numpy(pixels), Image.fromarray(pixels)]
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        gallery.enrol("ann", pixels)
        for kind in kinds:
            assert gallery.verify("ann", kind).squared < 1e-12
        assert gallery.enrol("bob", kinds).templates == 6
        assert gallery.enrol("eve", numpy.stack([pixels, picture(2)])).templates == 2
        assert (len(gallery), "bob" in gallery, "rob" in gallery, 7 in gallery) == (3, True, False, False)


def test_a_picture_lies_as_its_file_does(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter turn
    path = tmp_path / "turned.png"
    Image.fromarray(picture(1)).save(path, exif=turned)
    Image.fromarray(picture(2)).convert("RGBA").save(tmp_path / "clear.png")
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        for file in (path, tmp_path / "clear.png"):
            gallery.enrol("ann", file)
            with Image.open(file) as opened:
                assert gallery.verify("ann", opened).squared < 1e-12
        assert gallery.verify("ann", picture(1)).squared > 0.1


class Foreign:
    """A vector of another library, as dlib's: neither a sequence nor an array."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> float:
        return self.numbers[place]


def test_vectors_of_any_library_are_taken(tmp_path: Path) -> None:
    def half(images: list[numpy.ndarray]) -> torch.Tensor:
        return torch.tensor(flat(images)).bfloat16().requires_grad_()

    whole = flat([picture(1)])[0]
    for number, call in enumerate(
        [
            lambda images: [Foreign(row) for row in flat(images)],
            lambda images: [torch.tensor(row, requires_grad=True) for row in flat(images)],
            lambda images: [[round(each) for each in row] for row in flat(images)],
            lambda images: numpy.array(flat(images), numpy.float16),
            half,
        ]
    ):
        with Gallery.open(tmp_path / f"{number}.db", call, model="foreign") as gallery:
            gallery.enrol("ann", [picture(1), picture(2)])
            assert gallery.verify("ann", Foreign(whole)).squared < 1e-4


def test_too_many_are_refused_before_any_is_embedded(tmp_path: Path) -> None:
    def never(images: list[numpy.ndarray]) -> None:
        pytest.fail(f"{len(images)} images were embedded")

    limits = Limits(probes=4, templates_each=3)
    with Gallery.open(tmp_path / "a.db", never, model="never", limits=limits) as gallery:
        for images in ([picture(1)] * 5, numpy.stack([picture(1)] * 5), (picture(n) for n in count())):
            with pytest.raises(ValueError, match="identify: probes must be at most 4 in one call; got 5"):
                gallery.identify(images)
        with pytest.raises(ValueError, match="enrol: images must be at most 3 in one call; got 4"):
            gallery.enrol("ann", [picture(1)] * 4)
        gallery.store.add_model(Model(0, "never", gallery.embedder.fingerprint, 3, True, "float32"), current=True)
        with pytest.raises(ValueError, match="strangers must be at most 4 in one call; got 5"):
            gallery.calibrate(strangers=[picture(1)] * 5)
        with pytest.raises(ValueError, match=r"strangers must be at least 3 / fpir, 6; got 4\."):
            gallery.calibrate(strangers=[picture(1)] * 4, fpir=0.5)


def test_what_cannot_be_read_is_skipped_and_listed(tmp_path: Path) -> None:
    (tmp_path / "diary.jpg").write_bytes(b"a diary")
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        found = gallery.enrol("ann", [picture(1), tmp_path / "diary.jpg", tmp_path / "none.jpg", b"", object()])
        assert (found.templates, len(found.skipped)) == (1, 4)
        assert found.skipped[0].why == "no picture in a known format"
        with pytest.raises(ValueError, match=r"images must hold one that can be read; got .*diary\.jpg: no pict"):
            gallery.enrol("bob", tmp_path / "diary.jpg")
        assert "bob" not in gallery
        answers = gallery.identify([tmp_path / "diary.jpg", picture(1)])
        assert [answer.outcome for answer in answers] == ["unreadable", "undecided"]
        assert answers[1].candidates[0].identity == "ann"
        with pytest.raises(ValueError, match="verify: probe must be readable; got no picture in a known format"):
            gallery.verify("ann", tmp_path / "diary.jpg")


def test_without_a_threshold_nothing_is_decided(tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db") as gallery:
        assert [each.outcome for each in gallery.identify(numpy.ones((1, 3)))] == ["unknown"]
        gallery.enrol("ann", [[3.0, 4.0]])
        found = gallery.verify("ann", [4.0, 3.0])
        assert (found.same, found.threshold, found.rate) == (None, None, None)
        assert round(found.squared, 6) == 0.08
        assert found.odds == "false accept rate not known"
        assert "calibrate() first" in found.warnings[0]
        [who] = gallery.identify([4.0, 3.0])
        assert (who.outcome, who.identity, who.candidates[0].identity) == ("undecided", None, "ann")
        assert "calibrate(strangers=...) first" in who.warnings[0]


def test_the_nearest_template_of_each_identity_counts(tmp_path: Path) -> None:
    everybody = people(5, 40)
    with Gallery.open(tmp_path / "a.db") as gallery:
        for name, rows in everybody.items():
            gallery.enrol(name, rows)
        [found] = gallery.identify(everybody["person 2"][7], top=5)
        assert len({each.identity for each in found.candidates}) == 5  # although one person has 40 nearer templates
        for each in found.candidates:
            least = ((everybody[each.identity] - everybody["person 2"][7]).astype(float) ** 2).sum(1).min()
            assert each.squared == pytest.approx(least, abs=1e-6)
        assert len(gallery.identify(everybody["person 2"][7], top=50)[0].candidates) == 5


def test_a_gallery_keeps_its_model(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Gallery.open(path, model="dlib", unit=False) as gallery:
        gallery.enrol("ann", [[3.0, 4.0]])
    with Gallery.open(path) as gallery:
        assert gallery.verify("ann", [3.0, 5.0]).squared == 1.0  # not scaled: unit is kept with the model
        assert model_of(gallery).name == "dlib"
    with Gallery.open(path, model="other") as gallery:
        for ask in (lambda: gallery.verify("ann", [3.0, 5.0]), lambda: gallery.enrol("bob", [[1.0, 1.0]])):
            with pytest.raises(Incompatible, match=r"embed must be of dlib \(\w+\) or compatible with it; got other\."):
                ask()
    with (
        Gallery.open(path, model="dlib", unit=True) as gallery,
        pytest.raises(Incompatible, match=r"unit must be False, as dlib \(\w+\) has it; got True"),
    ):
        gallery.identify([3.0, 5.0])


def test_a_network_of_ours_and_any_module_embed(tmp_path: Path) -> None:
    options = {"channels": 1, "embedding_dim": 7}
    network = build_network("resnet8", options).eval()
    preparation = Preparation((SIDE, SIDE), channels=1)
    file = tmp_path / "net.safetensors"
    saved = save_network(network, file, name="resnet8", options=options, preparation=preparation)
    with Gallery.open(tmp_path / "a.db", file) as gallery:
        gallery.enrol("ann", picture(1))
        assert model_of(gallery).fingerprint.hex() == saved
        [found] = gallery.store.templates(1)
        with torch.no_grad():
            wanted = network(preparation(picture(1))[None]).numpy()
        numpy.testing.assert_allclose(found.rows, wanted, atol=1e-5)
    embedder = module_embedder(network, preparation, name="mine")
    changed = module_embedder(network, Preparation((SIDE, SIDE), channels=1, mean=0.4), name="mine")
    assert embedder.fingerprint != changed.fingerprint
    with Gallery.open(tmp_path / "b.db", embedder) as gallery:
        gallery.enrol("ann", [picture(1), picture(2)])
        assert gallery.verify("ann", picture(2)).squared < 1e-9


def test_codes_take_one_byte_a_number_and_agree_by_angle(tmp_path: Path) -> None:
    everybody = people(31, 2, width=128)
    with Gallery.open(tmp_path / "f.db") as floats, Gallery.open(tmp_path / "c.db", codes=True) as codes:
        for name, rows in everybody.items():
            floats.enrol(name, rows)
            codes.enrol(name, rows)
        [found] = codes.store.templates(1)
        assert (found.rows.dtype, found.rows.nbytes) == (numpy.int8, 2 * 128)
        for name, rows in everybody.items():
            a, b = (each.identify(rows[0])[0].candidates for each in (floats, codes))
            assert a[0].identity == b[0].identity == name
            assert abs(a[1].squared - b[1].squared) < 0.02
    with pytest.raises(ValueError, match="codes must go with unit vectors"):
        Gallery.open(tmp_path / "d.db", unit=False, codes=True)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 201, "\u202eb", 5])
def test_odd_names_are_refused(name: str, tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db") as gallery:
        with pytest.raises(ValueError, match=r"enrol: identity must be"):
            gallery.enrol([name], [[1.0, 0.0]])
        assert len(gallery) == 0


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, float("nan")]], "vectors must be finite; got 1 that are not"),
        ([[0.0, 0.0]], "vectors must not be 0, which has no direction; got 1 that are"),
        (numpy.zeros((0, 2)), "images must hold one that can be read; got nothing"),
        ([picture(0)], "images must be vectors: this gallery was opened without a model; got ndarray"),
        (7, "images must be images or vectors; got int"),
    ],
)
def test_odd_vectors_are_refused(vectors: object, message: str, tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db") as gallery:
        with pytest.raises(ValueError, match=message):
            gallery.enrol("ann", vectors)
        assert len(gallery) == 0


def test_a_model_that_answers_oddly_is_refused(tmp_path: Path) -> None:
    for number, call in enumerate(
        [lambda images: None, lambda images: [[1.0, 2.0]] * 3, lambda images: ["a"], lambda images: {"vectors": images}]
    ):
        with Gallery.open(tmp_path / f"{number}.db", call, model="odd") as gallery:
            with pytest.raises(ValueError, match="embed must give one vector for each of 2 images"):
                gallery.enrol("ann", [picture(1), picture(2)])
            assert len(gallery) == 0
    with pytest.raises(ValueError, match="name must be given with a function; got none"):
        Gallery.open(tmp_path / "x.db", flat)
    with pytest.raises(ValueError, match=r"a torch module must be given as module_embedder\(.*; got Identity\."):
        Gallery.open(tmp_path / "x.db", torch.nn.Identity(), model="identity")


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", "http://a"])
def test_an_unknown_engine_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"url must be a path, sqlite:///, .*; got '(mysql|http)'"):
        Gallery.open(url)


def test_a_url_of_sqlite_is_a_path(tmp_path: Path) -> None:
    with Gallery.open(f"sqlite:///{tmp_path}/a.db") as gallery:
        gallery.enrol("ann", [[1.0, 0.0]])
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600


def test_another_process_sees_what_is_written(tmp_path: Path) -> None:
    everybody = people(2500)
    path = tmp_path / "a.db"
    names = list(everybody)
    with Gallery.open(path) as one, Gallery.open(path, Embedder(None, "vectors")) as two:
        one.enrol(names[:3], numpy.concatenate([everybody[name] for name in names[:3]]))
        assert two.identify(everybody["person 1"])[0].candidates[0].identity == "person 1"
        one.enrol(names[3:2400], numpy.concatenate([everybody[name] for name in names[3:2400]]))
        two.enrol(names[2400:], numpy.concatenate([everybody[name] for name in names[2400:]]))
        for gallery in (one, two):
            for name in ("person 2", "person 1999", "person 2499"):
                [found] = gallery.identify(everybody[name])
                assert found.candidates[0].identity == name
        one.forget("person 1999")
        [found] = two.identify(everybody["person 1999"])
        assert found.candidates[0].identity != "person 1999"
