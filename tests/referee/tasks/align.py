"""The task `align`: short pairs of sequences, and all of their alignments written out.

An alignment is a path of columns. A column matches a letter of x and a letter of z, or has one
letter that faces a gap. With affine gaps the first column of a gap has another weight than the
further ones, and a row of gap columns of the same kind may be several gaps, each of them opened.
A local alignment begins and ends with a match, or is empty.

`--prior` and `--tied` add features `<k, psi>` for known directions k, with weights b. A model file
has the effective weights e = v + K b alone. Training starts at 0, or at a point with b = K' v, and
each step adds a combination of differences `(dpsi, K' dpsi)`, so that b = K' v at every point.
Hence (I + K'K) b = K'e, and v = e - K b: P can be recomputed, up to rounding of about 1e-16 |K b|.
For a prior the file also has its factor, which `weights` takes as it is and checks against b = k'v.

Not drawn: `--heldout`, `--folds` and `--gap-grid`, which belongs to the solver mle.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Candidate, Draw, Example, Key, Part, Weights

TRAIN = "train.jsonl"
PRIOR = "prior.txt"
NAMED = {"protein": "ACDEFGHIKLMNPQRSTVWY", "dna": "ACGT"}

# A part of BLOSUM62 (Henikoff and Henikoff 1992).
BLOSUM62 = {
    ("A", "A"): 4.0,
    ("A", "C"): 0.0,
    ("A", "D"): -2.0,
    ("A", "E"): -1.0,
    ("A", "W"): -3.0,
    ("C", "C"): 9.0,
    ("C", "D"): -3.0,
    ("C", "E"): -4.0,
    ("C", "W"): -2.0,
    ("D", "D"): 6.0,
    ("D", "E"): 2.0,
    ("D", "W"): -4.0,
    ("E", "E"): 5.0,
    ("E", "W"): -3.0,
    ("W", "W"): 11.0,
}


def blosum62(x: str, z: str) -> float:
    return BLOSUM62[min(x, z), max(x, z)]


# A path: its matches (i, j), and the counts of all of its features.
Path_ = tuple[tuple[tuple[int, int], ...], frozenset]


class Setting:
    """The letters, the marks and the options of a problem."""

    def __init__(self, records: list[dict], options: dict[str, Any], prior: str | None) -> None:
        self.options = options
        named = options.get("alphabet")
        texts = [text for record in records for text in self.texts(record, False)]
        self.letters = NAMED.get(named, named) if named else "".join(sorted(set("".join(texts))))
        marks = [text for record in records for text in self.texts(record, True)]
        self.marks = "".join(sorted(set("".join(marks))))
        self.gap_slots = 1 if options.get("gaps") == "linear" else 2
        self.loss = options.get("loss", "zero-one")
        self.is_local = options.get("alignment", "local") == "local"
        self.directions = self.known(prior)

    @staticmethod
    def texts(record: dict, is_marks: bool) -> list[str]:
        first, second, others = ("sx", "sz", "sdecoys") if is_marks else ("x", "z", "decoys")
        return [record.get(first, ""), record.get(second, ""), *record.get(others, [])]

    def keys(self) -> list[Key]:
        """All coordinates of the effective weights, in the order of the file."""
        found: list[Key] = [("letters", (a, b), 0) for a in self.letters for b in self.letters]
        found += [("gaps", k, 0) for k in range(self.gap_slots)]
        if self.marks:
            found += [("marks", (a, b), 0) for a in self.marks for b in self.marks]
            slots = range(self.gap_slots)
            found += [("gaps by mark", (a, k), 0) for a in self.marks for k in slots]
        return found

    def known(self, prior: str | None) -> list[dict[Key, float]]:
        """The directions K: that of the prior, then those of ties."""
        found = []
        options = self.options
        if "prior" in options:
            costs = options.get("prior_gaps", "11,1")
            direction: dict[Key, float] = {}
            table = read_table(prior) if prior is not None else None
            for x in self.letters:
                for z in self.letters:
                    score = blosum62(x, z) if table is None else table[x, z]
                    direction["letters", (x, z), 0] = score
            for slot, cost in enumerate(costs.split(",")):
                direction["gaps", slot, 0] = -float(cost)
            found.append(direction)
        if options.get("tied"):
            for block, alphabet in (("letters", self.letters), ("marks", self.marks)):
                if not alphabet:
                    continue
                pairs = [(a, b) for a in alphabet for b in alphabet]
                found.append({(block, (a, b), 0): 1.0 for a, b in pairs if a == b})
                found.append({(block, (a, b), 0): 1.0 for a, b in pairs if a != b})
        return found

    def of_match(self, x: tuple, z: tuple) -> Counter:
        """The features of a match of two residues, each a letter and its mark."""
        counts: Counter = Counter()
        if x[0] in self.letters and z[0] in self.letters:
            counts["letters", (x[0], z[0]), 0] += 1
        if self.marks:
            counts["marks", (x[1], z[1]), 0] += 1
        return counts

    def of_gap(self, residue: tuple, is_first: bool) -> Counter:
        """The features of a column in which a residue faces a gap."""
        slot = 0 if is_first else self.gap_slots - 1
        counts: Counter = Counter()
        counts["gaps", slot, 0] += 1
        if self.marks:
            counts["gaps by mark", (residue[1], slot), 0] += 1
        return counts

    def paths(self, x: list[tuple], z: list[tuple]) -> set[Path_]:
        """All alignments; those with the same matches and the same features are one."""
        # By place and kind of the last column.
        states: dict[tuple[int, int, str], set[Path_]] = {}
        empty: Path_ = ((), frozenset())
        if not self.is_local:
            states[0, 0, "begin"] = {empty}
        found: set[Path_] = {empty} if self.is_local else set()

        def extend(i: int, j: int, kinds: str, added: Counter, pair: tuple | None) -> set[Path_]:
            result = set()
            for kind in kinds.split():
                for matches, counts in states.get((i, j, kind), ()):
                    total = Counter(dict(counts))
                    total.update(added)
                    longer = matches + (pair,) if pair else matches
                    result.add((longer, frozenset(total.items())))
            return result

        for i in range(len(x) + 1):
            for j in range(len(z) + 1):
                if i and j:
                    added, pair = self.of_match(x[i - 1], z[j - 1]), (i - 1, j - 1)
                    new = extend(i - 1, j - 1, "begin match x z", added, pair)
                    if self.is_local:
                        new.add(((pair,), frozenset(added.items())))
                        found |= new
                    states[i, j, "match"] = new
                if i:
                    first, further = self.of_gap(x[i - 1], True), self.of_gap(x[i - 1], False)
                    new = extend(i - 1, j, "begin match x z", first, None)
                    states[i, j, "x"] = new | extend(i - 1, j, "x", further, None)
                if j:
                    first, further = self.of_gap(z[j - 1], True), self.of_gap(z[j - 1], False)
                    new = extend(i, j - 1, "begin match x z", first, None)
                    states[i, j, "z"] = new | extend(i, j - 1, "z", further, None)
        if not self.is_local:
            for kind in ("begin", "match", "x", "z"):
                found |= states.get((len(x), len(z), kind), set())
        return found

    def given(self, record: dict, x: list[tuple], z: list[tuple]) -> Path_:
        """The true alignment of a record; a local one without the gaps at its ends."""
        columns = list(zip(record["ax"], record["az"]))
        i = j = 0
        placed = []
        for a, b in columns:
            kind = "z" if a == "-" else "x" if b == "-" else "match"
            placed.append((kind, i, j))
            i, j = i + (kind != "z"), j + (kind != "x")
        if self.is_local:
            at = [k for k, column in enumerate(placed) if column[0] == "match"]
            placed = placed[at[0] : at[-1] + 1] if at else []
        matches = []
        counts: Counter = Counter()
        last = ""
        for kind, i, j in placed:
            if kind == "match":
                matches.append((i, j))
                counts.update(self.of_match(x[i], z[j]))
            else:
                counts.update(self.of_gap(x[i] if kind == "x" else z[j], kind != last))
            last = kind
        return tuple(matches), frozenset(counts.items())

    def loss_of(self, truth: Path_, other: Path_, residues: int) -> float:
        """The loss of an alignment of x with its homologue."""
        true, found = dict(truth[0]), dict(other[0])
        if self.loss == "q":
            return 1.0 - sum(found.get(i) == j for i, j in true.items()) / len(true)
        if self.loss == "q4":
            near = sum(i in found and abs(found[i] - j) <= 4 for i, j in true.items())
            return 1.0 - near / len(true)
        wrong = sum(true.get(i) != found.get(i) for i in {*true, *found})
        back, other_back = ({j: i for i, j in own.items()} for own in (true, found))
        wrong += sum(back.get(j) != other_back.get(j) for j in {*back, *other_back})
        return wrong / max(residues, 1)

    def candidate(self, loss: float, truth: Path_, other: Path_) -> Candidate | None:
        difference = Counter(dict(truth[1]))
        difference.subtract(Counter(dict(other[1])))
        counts = {key: count for key, count in difference.items() if count}
        if loss == 0.0 and not counts:
            return None
        parts = [
            Part(block, slot, {feature: 1.0}, float(count))
            for (block, slot, feature), count in sorted(counts.items(), key=repr)
        ]
        for number, direction in enumerate(self.directions):
            score = sum(count * direction.get(key, 0.0) for key, count in counts.items())
            if score:
                parts.append(Part("directions", number, {0: 1.0}, score))
        return Candidate(loss, parts)

    def example(self, record: dict) -> Example:
        x, z, *decoys = (list(pair) for pair in self.sequences(record))
        truth = self.given(record, x, z)
        found: dict = {}
        if self.loss == "zero-one":
            # Other alignments of the homologue are no outputs.
            others = [(1.0, path) for decoy in decoys for path in self.paths(x, decoy)]
        else:
            paths = self.paths(x, z)
            if truth not in paths:
                raise AssertionError(f"the given alignment is none: {record}")
            others = [(self.loss_of(truth, path, len(x) + len(z)), path) for path in paths]
        for loss, path in others:
            if (loss, path[1]) not in found:
                found[loss, path[1]] = self.candidate(loss, truth, path)
        return Example([candidate for candidate in found.values() if candidate])

    def sequences(self, record: dict) -> list[list[tuple]]:
        """x, z and the decoys as letters with marks."""
        letters = self.texts(record, False)
        marks = self.texts(record, True) if "sx" in record else [len(t) * " " for t in letters]
        return [list(zip(own, of_own)) for own, of_own in zip(letters, marks)]


def read_table(text: str) -> dict[tuple[str, str], float]:
    """A table of scores: a line of letters, then a line for each letter of x."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return {
        (row[0], letter): float(score)
        for row in lines[1:]
        for letter, score in zip(lines[0], row[1:])
    }


def read(folder: Path, draw: Draw) -> tuple[list[dict], Setting]:
    text = (Path(folder) / TRAIN).read_text()
    records = [json.loads(line) for line in text.splitlines() if line.strip()]
    has_prior = draw.traits["options"].get("prior") == PRIOR
    prior = (Path(folder) / PRIOR).read_text() if has_prior else None
    return records, Setting(records, draw.traits["options"], prior)


# The interface of task modules.


def arguments_of(options: dict[str, Any]) -> list[str]:
    found = ["align", TRAIN]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        found += [flag] if name == "tied" else [flag, str(value)]
    return found


def draw(random: np.random.Generator, scale: float) -> Draw:
    """One to four records and options. `scale` is the size of the scores of a prior table."""

    def chance(p: float) -> bool:
        return random.random() < p

    def pick(items: Any) -> Any:
        return items[int(random.integers(len(items)))]

    letters = pick(["ACD", "AC", "ACDEW", "A", "xyé"])
    options: dict[str, Any] = {"loss": pick(["zero-one", "zero-one", "q", "q4", "hamming"])}
    if options["loss"] == "zero-one" and chance(0.3):
        del options["loss"]
    loss = options.get("loss", "zero-one")
    if chance(0.7):
        options["alignment"] = pick(["local", "global"])
    if chance(0.7):
        options["gaps"] = pick(["linear", "affine"])
    is_protein = letters.startswith("A")
    if chance(0.3):
        options["alphabet"] = letters
        if is_protein and chance(0.5):
            options["alphabet"] = letters[::-1] if chance(0.5) else "protein"
    if chance(0.3):
        options["tied"] = True
    files = {}
    if chance(0.35):
        is_linear = options.get("gaps") == "linear"
        fits = is_protein and options.get("alphabet") != "protein"
        if fits and chance(0.4):
            options["prior"] = "blosum62"
            if is_linear:
                options["prior_gaps"] = pick(["4", "0.5"])
            elif chance(0.5):
                options["prior_gaps"] = pick(["10,0.5", "3,3"])
        else:
            options["prior"] = PRIOR
            options["prior_gaps"] = pick(["2", "0"]) if is_linear else pick(["11,1", "0,2.5"])
            known = NAMED["protein"] if options.get("alphabet") == "protein" else letters
            size = min(scale, 30.0)
            rows = ["# drawn at random", " ".join(known)]
            for letter in random.permutation(list(known)):
                scores = np.round(size * random.standard_normal(len(known)), 3)
                rows.append(" ".join([str(letter), *map(str, scores.tolist())]))
            files[PRIOR] = "\n".join(rows) + "\n"
    has_marks = chance(0.25)
    marks = pick(["H", "HE"])
    # A letter without weights now and then.
    stranger = "?" if "alphabet" in options and chance(0.5) else ""

    def sequence(least: int, most: int) -> str:
        own = "".join(pick(letters) for _ in range(int(random.integers(least, most + 1))))
        return own + stranger if len(own) > 2 and chance(0.3) else own

    def marks_of(text: str) -> str:
        return "".join(pick(marks) for _ in text)

    def alignment(x: str, z: str) -> tuple[str, str]:
        ax = az = ""
        i = j = 0
        must_match = loss in ("q", "q4")
        while i < len(x) or j < len(z):
            both = i < len(x) and j < len(z)
            kinds = ["match"] * (3 if both else 0)
            # The last way to a match is taken where the loss needs one.
            has_match = any(a != "-" and b != "-" for a, b in zip(ax, az))
            is_free = has_match or not must_match
            if i < len(x) and (is_free or len(x) - i > 1 or not both):
                kinds.append("x")
            if j < len(z) and (is_free or len(z) - j > 1 or not both):
                kinds.append("z")
            kind = pick(kinds)
            ax += "-" if kind == "z" else x[i]
            az += "-" if kind == "x" else z[j]
            i, j = i + (kind != "z"), j + (kind != "x")
        return ax, az

    records = []
    for _ in range(int(random.integers(1, 5))):
        x, z = sequence(1, 4), sequence(1, 4)
        if loss == "q4" and chance(0.5):
            x, z = sequence(1, 2), sequence(5, 7)
        ax, az = alignment(x, z)
        record: dict[str, Any] = {"x": x, "z": z, "ax": ax, "az": az}
        count = int(random.integers(0, 4))
        decoys = [sequence(0 if chance(0.2) else 1, 4) for _ in range(count)]
        if decoys or chance(0.5):
            record["decoys"] = decoys
        if has_marks:
            record["sx"], record["sz"] = marks_of(x), marks_of(z)
            if decoys or chance(0.5):
                record["sdecoys"] = [marks_of(decoy) for decoy in decoys]
                record["decoys"] = decoys
        records.append(record)
    if loss == "zero-one" and not any(record.get("decoys") for record in records):
        decoy = sequence(1, 4)
        records[0]["decoys"] = [decoy]
        if has_marks:
            records[0]["sdecoys"] = [marks_of(decoy)]
    files[TRAIN] = "".join(json.dumps(record) + "\n" for record in records)
    traits: dict[str, Any] = {"options": options}
    if loss != "zero-one":
        # With slack rescaling these losses are searched, and the certificate is an estimate.
        traits["formulations"] = [("margin", "linear"), ("slack", "linear"), ("slack", "quadratic")]
    if "prior" not in options and "tied" not in options:
        traits["solvers"] = ["mle"]
    return Draw(files, arguments_of(options), None, traits)


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    records, setting = read(folder, draw)
    return [setting.example(record) for record in records]


def weights(folder: Path, draw: Draw, model: Any) -> Weights:
    _, setting = read(folder, draw)
    record = model.record
    for name in ("letters", "marks"):
        if record[name] != getattr(setting, name):
            raise AssertionError(f"{name} {record[name]!r}, not {getattr(setting, name)!r}")
    keys = setting.keys()
    values = np.asarray(model.tensors["weights"], dtype=np.float64).ravel()
    if len(values) != len(keys):
        raise AssertionError(f"{len(values)} weights in the file, and {len(keys)} features")
    effective = dict(zip(keys, map(np.longdouble, values)))
    factors, own = lifted(effective, setting.directions)
    if "prior" in setting.options:
        known = np.longdouble(record["prior"]["factor"])
        # Cuts are rounded to single precision, which matters where C is large.
        rounding = np.longdouble(1e-9) * record["formulation"]["c"]
        size = np.longdouble(1e-6) * (1 + sum(abs(factor) for factor in factors)) + rounding
        if abs(known - factors[0]) > size:
            raise AssertionError(f"the prior's factor is {known}, and <w0, v> is {factors[0]}")
    linear: dict[Key, float] = dict(own)
    linear.update({("directions", k, 0): factor for k, factor in enumerate(factors)})
    return Weights(linear)


def lifted(effective: dict, directions: list[dict]) -> tuple[list, dict]:
    """The b and v with v + K b = e and b = K' v, in extended precision."""
    one = np.longdouble(1)
    size = len(directions)
    rows = np.zeros((size, size + 1), dtype=np.longdouble)
    for i, first in enumerate(directions):
        for j, second in enumerate(directions):
            rows[i, j] = sum(one * value * second.get(key, 0.0) for key, value in first.items())
        rows[i, i] += 1
        rows[i, size] = sum(effective[key] * value for key, value in first.items())
    for k in range(size):
        for other in range(size):
            if other != k:
                rows[other] -= rows[k] * (rows[other, k] / rows[k, k])
    factors = [rows[k, size] / rows[k, k] for k in range(size)]
    own = dict(effective)
    for factor, direction in zip(factors, directions):
        for key, value in direction.items():
            own[key] = own[key] - factor * value
    return factors, own
