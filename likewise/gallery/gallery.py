"""Enrolment, verification, open-set identification and erasure of identities, by templates of a model."""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy
import torch

from likewise.checks import refuse, require, require_count, require_number
from likewise.files import require_place
from likewise.gallery.answers import Candidate, Enrolled, Identified, Verified
from likewise.gallery.batches import Batches, Waiting
from likewise.gallery.calibration import (
    Calibration,
    IdentifyThreshold,
    VerifyThreshold,
    identify_threshold,
    listed_threshold,
    require_strangers,
    verify_threshold,
)
from likewise.gallery.dumps import people_of, read_dump, write_dump
from likewise.gallery.embedding import Embedder, Vectors, bounded, open_embedder, vectors_of, vectors_of_each
from likewise.gallery.grouping import Grouped, Grouping
from likewise.gallery.opening import open_store
from likewise.gallery.search import squared_between
from likewise.gallery.sqlite import SqliteStore
from likewise.gallery.store import (
    Absent,
    Array,
    Correction,
    Damaged,
    Erasure,
    Incompatible,
    Kind,
    Limits,
    Model,
    Person,
    Search,
    Store,
    require_name,
)
from likewise.gallery.upgrading import Upgrade, heirs_in, judge_upgrade
from likewise.metric import quantised, restored
from likewise.progress import Progress, part, silent

VECTORS = "vectors"  # the model of a gallery that was never told one


class Gallery:
    """Identities and their templates, kept by a store.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Gallery.open(f"{folder}/people.db") as gallery:
    ...     gallery.enrol("ann", [[1.0, 0.0]]), gallery.enrol("bob", [[0.0, 1.0]])
    ...     answer = gallery.verify("ann", [0.6, 0.8])
    ...     gallery.forget("bob").status, len(gallery), "bob" in gallery, round(answer.squared, 6), answer.same
    (Enrolled(identities=1, templates=1, skipped=()), Enrolled(identities=1, templates=1, skipped=()))
    ('erased', 1, False, 0.8, None)
    """

    def __init__(self, store: Store, embedder: Embedder | None = None, *, codes: bool = False) -> None:
        self.store = store
        current = store.current()
        if embedder is None:
            embedder = Embedder(None, VECTORS)
            if current is not None:
                embedder = Embedder(None, current.name, current.fingerprint, current.unit)
        self._grouped: Grouped | None = None
        self.embedder, self.kind = embedder, "int8" if codes else "float32"
        require(not codes or embedder.unit, "Gallery.open", "codes", "go with unit vectors: they keep an angle", codes)

    @classmethod
    def open(
        cls,
        url: Path | str,
        embed: "Embedder | Path | str | Callable[..., Any] | None" = None,
        *,
        model: str = "",
        unit: bool = True,
        codes: bool = False,
        limits: Limits | None = None,
        search: Search = "exact",
    ) -> Self:
        """Open a gallery, or make one: a path, sqlite:///path, postgresql://host/database#name, milvus://host#name.

        embed: a file of `likewise train`, an `Embedder`, or a function from a list of images to vectors; None for
        vectors made elsewhere. model: the name and version of a function's or of the vectors' model. unit: scale
        vectors to length 1 and compare by angle (of a new gallery; the model keeps it). codes: one byte a number.
        search: "approximate" is faster and may miss the nearest template; only a server's index does it.
        """
        require(isinstance(url, str | Path), "Gallery.open", "url", "be a path or an address", repr(url))
        embedder = None
        if embed is not None:
            embedder = open_embedder(embed, name=model)
            if not isinstance(embed, Embedder | str | Path) and not unit:
                embedder = replace(embedder, unit=False)
        elif model:
            embedder = Embedder(None, model, unit=unit)
        elif not unit:
            embedder = Embedder(None, VECTORS, unit=False)
        store = open_store(url, limits, search)
        try:
            if embed is None and not model and store.current() is not None:
                embedder = None
            return cls(store, embedder, codes=codes)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self.store.count()[0]

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, str) and self.store.number(identity) > 0

    def __repr__(self) -> str:
        identities, templates = self.store.count()
        return f"Gallery({identities:,} identities, {templates:,} templates of {self.embedder.name})"

    def identities(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self.store.names().values())

    def metadata(self, identity: str) -> dict[str, Any]:
        """What was given when the identity was enrolled."""
        text = self.store.metadata(self._number("metadata", identity))
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            refuse("Gallery", "metadata", "be a JSON object", repr(text[:40]), error=Damaged)
        return found

    def sources(self, identity: str) -> tuple[str, ...]:
        """Paths of the images that an identity was enrolled from, where they are known."""
        found = self.store.templates(self._number("sources", identity))
        return tuple(text for each in found for text in each.sources if text)

    # Enrolment

    def enrol(
        self,
        identity: str | Sequence[str] | None,
        images: Any,
        *,
        metadata: Mapping[str, Any] | None = None,
        progress: Progress = silent,
    ) -> Enrolled:
        """Add templates of an identity, in one transaction; more of them if it is there already.

        identity: a name, or one name for each image or vector; None gives each a name of its own, "unnamed ...", for
        `cluster` and `assign` to sort. images: a path, bytes, an array, a PIL picture, several
        of these, or vectors. An image that cannot be read is skipped and listed; if none can, nothing is written.
        """
        where = "enrol"
        one = isinstance(identity, str)
        names = [require_name(where, name) for name in ([identity] if isinstance(identity, str) else identity or ())]
        require(one or metadata is None, where, "metadata", "be of one identity", "several identities")
        limits = self.store.limits
        most = limits.templates_each if one else limits.templates
        found = vectors_of(bounded(where, "images", images, most), self.embedder, progress=progress)
        if not len(found.vectors):
            why = "; ".join(f"{item}: {why}" for item, why in found.skipped[:3]) or "nothing"
            refuse(where, "images", "hold one that can be read", why)
        if one:
            groups = {names[0]: range(len(found.vectors))}
        elif identity is None:
            groups = {f"unnamed {secrets.token_hex(6)}": [row] for row in range(len(found.vectors))}
        else:
            fits = len(names) == len(found.vectors) + len(found.skipped)
            require(fits, where, "identity", "have one name for each image", f"{len(names)} names")
            require(not found.skipped, where, "images", "all be readable where each has a name", found.skipped[:1])
            groups = {}
            for row, name in enumerate(names):
                groups.setdefault(name, []).append(row)
        return self._add(groups, found, self._metadata_text(metadata))

    def enrol_each(self, found: Sequence[tuple[str, Vectors]]) -> int:
        """Add what the gallery's own `embedder` gave for several identities, in one transaction; how many templates."""
        if not found:
            return 0
        models = [self._writable(width) for width in dict.fromkeys(each.vectors.shape[1] for _, each in found)]
        return self.store.add(self._people_of(found, models[0]), models[0])

    def _people_of(self, found: Sequence[tuple[str, Vectors]], model: Model) -> list[Person]:
        return [
            Person(require_name("enrol", name), self._stored(each.vectors, model), each.sources) for name, each in found
        ]

    def _add(self, groups: Mapping[str, Sequence[int]], found: Vectors, metadata: str | None) -> Enrolled:
        model = self._writable(found.vectors.shape[1])
        rows = self._stored(found.vectors, model)
        people = [
            Person(name, _taken(rows, group), tuple([found.sources[row] for row in group]), metadata)
            for name, group in groups.items()
        ]
        return Enrolled(len(people), self.store.add(people, model), found.skipped)

    def _metadata_text(self, metadata: Mapping[str, Any] | None) -> str | None:
        if metadata is None:
            return None
        try:
            text = json.dumps(dict(metadata), allow_nan=False)
        except (TypeError, ValueError) as error:
            refuse("enrol", "metadata", "be plain JSON", str(error))
        most = self.store.limits.metadata
        require(len(text) <= most, "enrol", "metadata", f"be at most {most:,} characters of JSON", f"{len(text):,}")
        return text

    def _stored(self, vectors: Array, model: Model) -> Array:
        """Vectors as the model stores them."""
        if model.kind == "float32":
            return vectors
        return quantised(torch.from_numpy(vectors)).numpy()

    def _writable(self, width: int) -> Model:
        """The model of the embedder, registered if it is the first; another one than the gallery's is refused."""
        current = self.store.current()
        if current is not None:
            model = self._model()
            rule = f"have the width of {model.short}, {model.width}"
            require(width == model.width, "Gallery", "vectors", rule, width)
            return model
        most = self.store.limits.width
        require(0 < width <= most, "Gallery", "vectors", f"have 1 to {most} numbers", width)
        kind: Kind = "int8" if self.kind == "int8" else "float32"
        first = Model(0, self.embedder.name, self.embedder.fingerprint, width, self.embedder.unit, kind)
        return self.store.add_model(first, current=True)

    def _model(self) -> Model:
        """The embedder's model, if its vectors may be compared with the gallery's."""
        models, current = self.store.models(), self.store.current()
        assert current is not None
        own = next((model for model in models if model.fingerprint == self.embedder.fingerprint), None)
        if own is None or current.id not in _comparable(own, models):
            got = self.embedder.name if own is None else own.short
            hint = "Prove it with upgrade(), or enrol anew with reenrol()."
            rule = f"be of {current.short} or compatible with it"
            refuse("Gallery", "embed", rule, got, hint, error=Incompatible)
        if own.unit != self.embedder.unit:
            refuse("Gallery", "unit", f"be {own.unit}, as {own.short} has it", self.embedder.unit, error=Incompatible)
        return own

    # Questions

    def verify(self, identity: str, probe: Any) -> Verified:
        """Whether a probe shows the identity: one image or vector.

        Without a calibration the answer is a distance and no decision.
        """
        number = self._number("verify", identity)
        model = self._model()
        probes = self._probes("verify", probe)
        if not len(probes.vectors):
            refuse("verify", "probe", "be readable", probes.skipped[0].why if probes.skipped else "nothing")
        require(len(probes.vectors) == 1, "verify", "probe", "be one image or vector", len(probes.vectors))
        near, count = numpy.inf, 0
        for each in self.store.templates(number):
            if each.model.id in _comparable(model, self.store.models()):
                probe = self._stored(probes.vectors, each.model)
                near = min(near, float(squared_between(probe, each.rows[None], codes=each.model.kind == "int8").min()))
                count += len(each.rows)
        calibration = self.calibration.verify
        if calibration is None:
            note = "No threshold is set: calibrate() first. The distance alone does not say who this is."
            return Verified(identity, near, None, None, None, (note,))
        limit = calibration.limit(count)
        rate = min(1.0, count * calibration.rate(near))
        return Verified(identity, near, near <= limit, limit, rate, calibration.warnings, calibration.unseen(near))

    def identify(self, probes: Any, *, top: int = 5, progress: Progress = silent) -> tuple[Identified, ...]:
        """Who each probe is, or that nobody enrolled is near enough: open-set identification.

        top: how many identities to list. The nearest template of each identity counts. Without a threshold for
        identification, `calibrate(strangers=...)`, every outcome is undecided.
        """
        where, limits = "identify", self.store.limits
        require_count(where, "top", top)
        require(top <= limits.top, where, "top", f"be at most {limits.top}", top)
        probes = bounded(where, "probes", probes, limits.probes)
        found = self._probes(where, probes, part(progress, 0.0, 0.9))
        threshold = self.calibration.identify
        notes = self._identify_notes(threshold)
        answers = []
        candidates = self._candidates(found.vectors, top) if len(found.vectors) and len(self) else []
        for row in range(len(found.vectors)):
            near = candidates[row] if candidates else ()
            source = found.sources[row]
            rate = threshold.rate(near[0].squared) if threshold and near else None
            if threshold is None and near:
                answers.append(Identified("undecided", None, near, None, None, source, notes))
                continue
            known = threshold is not None and bool(near) and near[0].squared <= threshold.threshold
            limit = threshold.threshold if threshold else None
            name = near[0].identity if known else None
            unseen = threshold is not None and bool(near) and threshold.unseen(near[0].squared)
            answers.append(Identified("known" if known else "unknown", name, near, limit, rate, source, notes, unseen))
        progress(1.0, "searching")
        placed = dict(zip(found.places, answers, strict=True))
        unread = iter(Identified("unreadable", None, (), None, None, item, (why,)) for item, why in found.skipped)
        return tuple(placed[place] if place in placed else next(unread) for place in range(found.count))

    def _identify_notes(self, threshold: IdentifyThreshold | None) -> tuple[str, ...]:
        if threshold is None:
            return ("No identification threshold is set: calibrate(strangers=...) first.",)
        grown = threshold.outgrown(self.store.count()[1])
        return (*threshold.warnings, *([grown] if grown else []))

    def _candidates(self, vectors: Array, top: int) -> list[tuple[Candidate, ...]]:
        """The nearest identities of every probe: templates until there are enough different owners."""
        model, models = self._model(), self.store.models()
        searched = [each for each in models if each.id in _comparable(model, models)]
        people, _ = self.store.count()
        wanted, k = min(top, people), 2 * top
        while True:
            hits = [self.store.nearest(self._stored(vectors, each), each, k=k) for each in searched]
            owners = numpy.concatenate([each.identities for each in hits], axis=1)
            squared = numpy.concatenate([each.squared for each in hits], axis=1)
            found = [_first_of_each(*pair, wanted) for pair in zip(owners, squared, strict=True)]
            if all(len(each) >= wanted or k >= self.store.count()[1] for each in found):
                break
            k *= 4
        names = self.store.names([number for each in found for number in each])
        return [
            tuple(Candidate(names[number], value) for number, value in each.items() if number in names)
            for each in found
        ]

    def _probes(self, where: str, probes: Any, progress: Progress = silent) -> Vectors:
        found = vectors_of(probes, self.embedder, progress=progress)
        self._require_width(where, found)
        return found

    def _require_width(self, where: str, found: Vectors) -> None:
        if self.store.current() is not None and len(found.vectors):
            model = self._model()
            fits = found.vectors.shape[1] == model.width
            rule = f"have the width of {model.short}, {model.width}"
            require(fits, where, "probes", rule, found.vectors.shape[1])

    def _number(self, where: str, identity: str) -> int:
        number = self.store.number(require_name(where, identity))
        require(number > 0, where, "identity", "be in the gallery", repr(identity), error=Absent)
        return number

    # Erasure, copies

    def forget(self, identity: str, *, prove: bool = False) -> Erasure:
        """Delete an identity from the database, its log and free pages, and from every backup and dump made here.

        prove: search all these files for the bytes of its templates. The status is "pending" while another process
        reads pages from before; it is finished when a gallery is next opened, closed or asked to `settle`.
        """
        self._grouped = None  # which holds vectors
        return self.store.remove(require_name("forget", identity), prove=prove)

    def settle(self) -> bool:
        """Finish pending erasures, if readers have gone; whether none is left."""
        return self.store.settle()

    def backup(self, path: Path | str) -> None:
        """Write a copy of the embedded database, which `forget` will change, too."""
        if not isinstance(self.store, SqliteStore):
            refuse("backup", "gallery", "be a file", type(self.store).__name__, "dump() copies from any engine.")
        self.store.backup(path)

    def dump(self, path: Path | str) -> None:
        """Write the whole gallery as one .npz, which `forget` will rewrite."""
        place = Path(path)
        require_place("dump", place)
        self.store.add_copy(place, "dump")
        write_dump(self.store, place)
        self.store.settle()

    @classmethod
    def load(
        cls,
        path: Path | str,
        url: Path | str,
        embed: Any = None,
        *,
        limits: Limits | None = None,
        search: Search = "exact",
    ) -> Self:
        """Make a new gallery from a dump: the same templates, models, metadata, calibrations and corrections."""
        dump = read_dump(Path(path), limits or Limits())
        store = open_store(url, limits, search)
        try:
            require(store.current() is None, "Gallery.load", "url", "be a new gallery", repr(str(url)))
            numbers: dict[int, int] = {0: 0}
            templates: dict[int, int] = {}
            for model in dump.models:
                older = numbers.get(model.compatible_with, 0)
                added = store.add_model(replace(model, id=0, compatible_with=older), current=model.id == dump.current)
                numbers[model.id] = added.id
                people, places = people_of(dump, model.id)
                store.add(people, added)
                fresh = [number for *_, each in store.rows(added) for number in each.tolist()]
                templates |= dict(zip(dump.numbers[model.id][places].tolist(), fresh, strict=True))
            for number, kind, facts in dump.calibrations:
                store.set_calibration(numbers[number], kind, facts)
            store.correct(
                [Correction(templates[each.one], templates[each.two], each.same) for each in dump.corrections]
            )
            embedder = None if embed is None else open_embedder(embed)
            return cls(store, embedder)
        except BaseException:
            store.close()
            raise

    # Thresholds

    @property
    def calibration(self) -> Calibration:
        """The thresholds that are stored for the gallery's model."""
        current = self.store.current()
        if current is None:
            return Calibration(None, None)
        found = self.store.calibrations()
        verify, identify = (found.get((current.id, kind)) for kind in ("verify", "identify"))
        try:
            return Calibration(
                None if verify is None else VerifyThreshold.from_json(verify),
                None if identify is None else IdentifyThreshold.from_json(identify),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            refuse("Gallery", "calibration", "be one that likewise wrote", "another", error=Damaged)

    def calibrate(
        self,
        pairs: Mapping[str, Any] | Sequence[tuple[str, Any, str, Any]] | None = None,
        *,
        far: float = 1e-3,
        strangers: Any = None,
        fpir: float = 0.01,
        confidence: float = 0.95,
        seed: int = 0,
        progress: Progress = silent,
    ) -> Calibration:
        """Find thresholds on the user's own people, and store them with the model's fingerprint.

        pairs: images or vectors of each person, all pairs of which are compared; or rows (name, image, name, image);
        None takes the gallery's own templates, unless strangers are given. far: false accept rate of `verify`.
        strangers: images or vectors of people who are not enrolled, one each. fpir: the share of them that `identify`
        may take for somebody.
        """
        model = self._model() if self.store.current() is not None else None
        if model is None:
            refuse("calibrate", "gallery", "hold identities", "none")
        verify = identify = None
        both = strangers is not None and pairs is not None
        if strangers is not None:
            step = part(progress, 0.0, 0.5 if both else 1.0)
            identify = self._identify_threshold(strangers, model, fpir, confidence, step)
        if pairs is not None or strangers is None:
            verify = self._verify_threshold(pairs, model, far, confidence, seed, part(progress, 0.5 * both, 1.0))
        current = self.store.current()
        assert current is not None
        for kind, value in (("verify", verify), ("identify", identify)):
            if value is not None:
                self.store.set_calibration(current.id, kind, value.to_json())
        progress(1.0, "calibrating")
        return Calibration(verify, identify)

    def _identify_threshold(
        self, strangers: Any, model: Model, fpir: float, confidence: float, progress: Progress
    ) -> IdentifyThreshold:
        strangers = bounded("calibrate", "strangers", strangers, self.store.limits.probes)
        if isinstance(strangers, Sequence) and not isinstance(strangers, str | bytes):
            require_strangers(len(strangers), fpir)  # before any is embedded
        found = self._probes("calibrate", strangers, progress)
        models = self.store.models()
        each = [
            self.store.nearest(self._stored(found.vectors, other), other, k=1).squared[:, 0]
            for other in models
            if len(found.vectors) and other.id in _comparable(model, models)
        ]
        near = torch.from_numpy(numpy.minimum.reduce(each)) if each else torch.zeros(0)
        return identify_threshold(near, templates=self.store.count()[1], fpir=fpir, confidence=confidence)

    def _verify_threshold(
        self, pairs: Any, model: Model, far: float, confidence: float, seed: int, progress: Progress
    ) -> VerifyThreshold:
        codes = model.kind == "int8"
        if pairs is not None and not isinstance(pairs, Mapping):
            return self._listed_threshold(pairs, codes, far, confidence, seed)
        vectors, labels = [], []
        if pairs is None:
            models = self.store.models()
            for each in models:
                for rows, owners, _ in self.store.rows(each) if each.id in _comparable(model, models) else ():
                    vectors.append(restored(torch.from_numpy(rows.copy())).numpy() if each.kind == "int8" else rows)
                    labels.append(owners)
        else:
            for number, (name, found) in enumerate(vectors_of_each(pairs.items(), self.embedder)):
                require_name("calibrate", name)
                self._require_width("calibrate", found)
                vectors.append(found.vectors.reshape(len(found.vectors), model.width))
                labels.append(numpy.full(len(found.vectors), number))
                progress((number + 1) / (len(pairs) + 1), "embedding images")
        require(bool(vectors), "calibrate", "pairs", "be of two people at least", 0)
        return verify_threshold(
            torch.from_numpy(numpy.concatenate(vectors)),
            torch.from_numpy(numpy.concatenate(labels)),
            codes=codes,
            unit=model.unit,
            far=far,
            confidence=confidence,
            seed=seed,
        )

    def _listed_threshold(
        self, pairs: Iterable[Any], codes: bool, far: float, confidence: float, seed: int
    ) -> VerifyThreshold:
        rows = list(pairs)
        fits = all(isinstance(row, Sequence) and len(row) == 4 for row in rows)
        require(bool(rows) and fits, "calibrate", "pairs", "be rows of (name, image, name, image)", f"{rows[:1]!r:.80}")
        names = [(require_name("calibrate", row[0]), require_name("calibrate", row[2])) for row in rows]
        sides = [numpy.concatenate([self._probes("calibrate", row[side]).vectors for row in rows]) for side in (1, 3)]
        require(len(sides[0]) == len(sides[1]) == len(rows), "calibrate", "pairs", "all be readable", "some are not")
        first, second = (torch.from_numpy(side) for side in sides)
        if codes:
            first, second = restored(quantised(first)), restored(quantised(second))
        numbers = {name: number for number, name in enumerate(dict.fromkeys(n for pair in names for n in pair))}
        people = torch.tensor([[numbers[a], numbers[b]] for a, b in names])
        squared = (first.double() - second.double()).square().sum(1)
        same = people[:, 0] == people[:, 1]
        return listed_threshold(squared, same, people, far=far, confidence=confidence, seed=seed)

    # Clusters

    def cluster(self, *, threshold: float | None = None, settle: bool = False) -> Grouping:
        """Group templates by who they seem to be of, whatever their names: average-link agglomerative clustering.

        threshold: mean squared distance up to which two groups merge; that of `verify` unless given. What was enrolled
        or corrected since the last call changes only the components it touches; the result is that of clustering all
        at once. In a component of more than 4,096 templates newcomers only join the nearest group, and `exact` is
        False; settle: cluster these, too.
        """
        grouped = self._grouping(threshold)
        if settle:
            grouped.clusters.settle()
        return grouped.grouping()

    def correct(self, one: int, two: int, *, same: bool) -> None:
        """Say for good that two templates, by their numbers in a group, are of the same person or of different ones.

        What contradicts an earlier correction is refused. Corrections end with the templates that they are about.
        """
        self._correct(lambda grouped: [Correction(one, two, same)])

    def merge(self, templates: Sequence[int]) -> None:
        """Say for good that templates, say all of two groups, are of one person."""
        require(len(set(templates)) > 1, "merge", "templates", "be two at least", len(set(templates)))
        first, *others = dict.fromkeys(templates)
        self._correct(lambda grouped: [Correction(first, other, True) for other in others])

    def split(self, templates: Sequence[int]) -> None:
        """Take templates out of their group for good: they are of one person, and nobody else of the group is."""
        self._correct(lambda grouped: grouped.split(templates))

    def assign(self, templates: Sequence[int], identity: str) -> None:
        """Give templates to an identity, new or not; an identity that is left without any is deleted.

        Backups and dumps that were made before lose the identities that the templates came from: `forget` reaches
        copies by identity, and would not find there what moved. Make new ones afterwards.
        """
        self.store.assign(templates, require_name("assign", identity))

    def _correct(self, made: Callable[[Grouped], Sequence[Correction]]) -> None:
        grouped = self._grouping(None if self._grouped is None else self._grouped.threshold)
        grouped.correct(made(grouped))

    def _grouping(self, threshold: float | None) -> Grouped:
        """The clusters at a threshold, up to date."""
        where = "cluster"
        if self.store.current() is None:
            refuse(where, "gallery", "hold templates", "none")
        if threshold is None:
            verify = self.calibration.verify
            hint = "calibrate() finds one on your own people."
            require(verify is not None, where, "threshold", "be given where none is calibrated", None, hint)
            assert verify is not None
            threshold = verify.threshold
        require_number(where, "threshold", threshold)
        own, every = self._model(), self.store.models()
        models = [each for each in every if each.id in _comparable(own, every)]
        before = self._grouped
        if before is None or (before.threshold, before.models) != (threshold, tuple(models)):
            self._grouped = before = Grouped(self.store, models, threshold)
        before.refresh()
        return before

    # Versions

    def upgrade(
        self,
        embed: "Embedder | Path | str | Callable[..., Any]",
        held_out: Mapping[str, Any],
        *,
        model: str = "",
        old: Mapping[str, Any] | None = None,
        far: float | None = None,
        progress: Progress = silent,
    ) -> Upgrade:
        """Declare a new model compatible with the gallery's, if pairs of people that neither was trained on prove it.

        held_out: images of each person; or vectors of the new model, and then `old` has those of the old one, of the
        same images. far: as calibrated unless given, else 1e-3. If it is proved the gallery takes probes and new
        templates of the new model from now on, beside the old templates; if not, nothing changes. See `judge_upgrade`.
        """
        newer = open_embedder(embed, name=model)
        current = self.store.current()
        if current is None:
            refuse("upgrade", "gallery", "hold templates of an older model", "none")
        self._require_finished(current)
        before = self._model()
        require(newer.fingerprint != before.fingerprint, "upgrade", "embed", "be another model", newer.name)
        labels, sides = [], ([], [])
        for number, (name, images) in enumerate(held_out.items()):
            own = old[name] if old is not None and name in old else images
            found = vectors_of(images, newer), vectors_of(own, self.embedder)
            fits = len(found[0].vectors) == len(found[1].vectors)
            require(fits, "upgrade", "old", "have the images of held_out", f"others for {name!r}")
            for side, each in zip(sides, found, strict=True):
                if len(each.vectors):
                    side.append(each.vectors)
            labels += [number] * len(found[0].vectors)
            progress((number + 1) / (len(held_out) + 1), "embedding held-out images")
        require(len(labels) > 1, "upgrade", "held_out", "hold images of two people", len(labels))
        new, older = (torch.from_numpy(numpy.concatenate(side)) for side in sides)
        fits = new.shape[1] == before.width and newer.unit == before.unit
        rule = f"give vectors like those of {before.short}, width {before.width}, unit {before.unit}"
        require(fits, "upgrade", "embed", rule, f"width {new.shape[1]}, unit {newer.unit}")
        verify = self.calibration.verify
        share = far if far is not None else verify.far if verify else 1e-3
        verdict = judge_upgrade(new, older, torch.tensor(labels), far=share)
        if verdict.compatible:
            fresh = Model(0, newer.name, newer.fingerprint, before.width, before.unit, before.kind, before.id)
            added = self.store.add_model(fresh, current=True)
            for kind in ("verify", "identify"):  # the threshold of mixed pairs was judged: it goes on
                facts = self.store.calibrations().get((before.id, kind))
                if facts is not None:
                    self.store.set_calibration(added.id, kind, facts)
            self.embedder = newer
        return verdict

    def _require_finished(self, current: Model) -> None:
        others = [model.id for model in self.store.models() if model.id != current.id]
        waiting = self.store.waiting(others)
        hint = "Finish reenrol() first: compatibility is shown between two models, not along a chain."
        require(not waiting, "upgrade", "gallery", "hold templates of one model", f"{len(waiting)} older ones", hint)

    def outdated(self, embed: Embedder | None = None) -> tuple[str, ...]:
        """Identities that still have templates of another model than the embedder's, or than a given one."""
        own = (embed or self.embedder).fingerprint
        return self.store.waiting([each.id for each in self.store.models() if each.fingerprint != own])

    def reenrolling(self, embed: Embedder) -> bool:
        """Whether enrolling anew by a model has begun: it was proved compatible, or waits until everybody has some."""
        models, current = self.store.models(), self.store.current()
        own = next((each for each in models if each.fingerprint == embed.fingerprint), None)
        if own is None or current is None or own.id == current.id:
            return own is not None and len(models) > 1
        return current.id not in _comparable(own, models) and bool(self.store.waiting([own.id]))

    def reenrol(
        self,
        images: Mapping[str, Any] | Callable[[str], Any] | None = None,
        *,
        embed: Any = None,
        model: str = "",
        progress: Progress = silent,
        interrupted: Callable[[], bool] | None = None,
    ) -> Enrolled:
        """Replace templates of older models by those of the newest, identity by identity; goes on where it stopped.

        images: of each identity, by name or by a function; None reads the paths that they were enrolled from. embed: a
        model that is *not* compatible: its templates wait beside the old ones until everybody has some, then the
        gallery changes over at once, and its thresholds are dropped. interrupted: asked before each identity.
        Corrections of clusters pass to the new templates of the same images, by path, file name or order.
        """
        newer = self.embedder if embed is None else open_embedder(embed, name=model)
        models, current = self.store.models(), self.store.current()
        if current is None:
            refuse("reenrol", "gallery", "hold templates", "none")
        own = next((each for each in models if each.fingerprint == newer.fingerprint), None)
        together = own is not None and current.id in _comparable(own, models)
        older = [each.id for each in models if each.fingerprint != newer.fingerprint]
        done = set(self.store.waiting([own.id])) if own is not None and not together else set()
        names = [name for name in self.store.waiting(older) if name not in done]
        templates, people, skipped, finished = 0, 0, [], True

        def given() -> Iterator[tuple[str, Any]]:
            nonlocal finished
            for place, name in enumerate(names):
                if interrupted is not None and interrupted():
                    finished = False
                    return
                progress(place / len(names), "enrolling anew")
                yield name, self._images_of(name, images)

        def write(waiting: Sequence[Waiting]) -> None:
            nonlocal own, templates, people
            if own is None:
                kind: Kind = current.kind if newer.unit else "float32"
                width = waiting[0][1].vectors.shape[1]
                fresh = Model(0, newer.name, newer.fingerprint, width, newer.unit, kind)
                own = self.store.add_model(fresh, current=False)
            templates += self.store.add(self._people_of(waiting, own), own, replaces=older if together else ())
            people += len(waiting)

        with Batches(write) as batch:
            for name, found in vectors_of_each(given(), newer):
                skipped += found.skipped
                if len(found.vectors):
                    batch.put(name, found)
        if not finished:
            return Enrolled(people, templates, tuple(skipped))
        progress(1.0, "enrolling anew")
        if own is not None and not together and not set(self.store.waiting(older)) - set(self.store.waiting([own.id])):
            self.store.add_model(own, current=True)
            self.store.retire(older, heirs=heirs_in(self.store, older, own))
            self.embedder = newer
        return Enrolled(people, templates, tuple(skipped))

    def _images_of(self, name: str, images: Mapping[str, Any] | Callable[[str], Any] | None) -> Any:
        if images is None:
            paths = [text for each in self.store.templates(self.store.number(name)) for text in each.sources if text]
            hint = "Give reenrol the images of each identity."
            require(bool(paths), "reenrol", "images", "be known", f"no path for {name!r}", hint)
            return list(dict.fromkeys(paths))
        if isinstance(images, Mapping):
            require(name in images, "reenrol", "images", "have every identity", f"none for {name!r}")
            return images[name]
        return images(name)


def _comparable(model: Model, models: Sequence[Model]) -> set[int]:
    """Models whose templates may be compared with a model's vectors: itself, and what was proved, either way."""
    either = {each.id for each in models if each.id == model.compatible_with or each.compatible_with == model.id}
    return {model.id, *either}


def _first_of_each(owners: Array, squared: Array, most: int) -> dict[int, float]:
    """Identities and their least distances, nearest first."""
    found: dict[int, float] = {}
    for place in numpy.argsort(squared, kind="stable").tolist():
        number = int(owners[place])
        if number and number not in found:
            found[number] = float(squared[place])
            if len(found) == most:
                break
    return found


def _taken(rows: Array, group: Sequence[int]) -> Array:
    """Some rows, without a copy if they follow each other."""
    together = group[-1] - group[0] + 1 == len(group)
    return rows[group[0] : group[-1] + 1] if together else rows[list(group)]
