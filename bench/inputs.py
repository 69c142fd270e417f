"""The data sets, decompressed and cut to size in the build folder."""

import gzip
import itertools
import os
import shutil
from pathlib import Path

from measure import PROGRAM, ROOT, TARGET, relative, run, say

A9A = "binary/a9a.train"
A9A_TEST = "binary/a9a.test"
W8A = "binary/w8a.train"
RCV1 = "binary/rcv1_ccat.train"
COVERTYPE = "multiclass/covertype.train"
COVERTYPE_TEST = "multiclass/covertype.test"
LETTER = "multiclass/letter.train"
USPS = "multiclass/usps.train"
NEWSGROUPS = "taxonomy/newsgroups.train"
EWT_XPOS = "tag/ewt_xpos"
EWT_UPOS = "tag/ewt_upos"
SPANISH = "tag/spanish_ner"
OCR = "tag/ocr"
CRAFT = "parse/craft"

QUICK_DIVISOR = 16
GENERATED_EXAMPLES = 400_000


class MissingData(Exception):
    """A data set is not on this machine."""


class Inputs:
    """`quick` stands every data set's first sixteenth for the whole."""

    def __init__(self, quick):
        self.quick = quick
        self.source = Path(os.environ.get("MAXMARGIN_DATA", ROOT.parent / "shared" / "data")).resolve()
        self.folder = TARGET / "bench-data"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.made = set()

    def packed(self, name):
        """The file as it was published, such as multiclass/covertype.train.gz."""
        path = self.source / f"{name}.gz"
        if not path.is_file():
            raise MissingData(f"{path} does not exist (MAXMARGIN_DATA names the folder of data sets)")
        return path

    def unpacked(self, name):
        """All of it, as plain text."""
        packed = self.packed(name)
        return self.make(Path(name).name, lambda out: shutil.copyfileobj(gzip.open(packed), out, 1 << 20))

    def plain(self, name, divisor=1):
        """The first n / divisor lines, as plain text."""
        whole = self.unpacked(name)
        divisor *= QUICK_DIVISOR if self.quick else 1
        return whole if divisor == 1 else self.make(f"{whole.name}.{divisor}", lambda out: copy_head(whole, divisor, out))

    def lines(self, name, end, begin=0):
        """The lines from `begin` to `end`, as plain text."""
        whole = self.unpacked(name)
        begin, end = (at // (QUICK_DIVISOR if self.quick else 1) for at in (begin, end))
        span = f"{begin}-{end}" if begin else f"first{end}"
        return self.make(f"{whole.name}.{span}", lambda out: copy_lines(whole, begin, end, out))

    def joined(self, names, name):
        """What `plain` gives of several, one after the other, in a file of that name."""
        parts = [self.plain(part) for part in names]
        return self.make(name, lambda out: out.writelines(part.read_bytes() for part in parts))

    def one_against_rest(self, name, positive):
        """What `plain` gives with labels +1 and -1, for programs that cannot choose a class themselves."""
        return self.signed(self.plain(name), positive)

    def signed(self, plain, positive):
        """A file of ours with +1 for the label `positive`, and -1 for all others."""
        return self.make(f"{plain.name}.class{positive}", lambda out: copy_signed(plain, positive.encode(), out))

    def zstd(self, name):
        """The plain text compressed with zstd, or None where that program is missing."""
        plain = self.plain(name)
        if shutil.which("zstd") is None:
            return None
        packed = plain.with_name(f"{plain.name}.zst")
        run(["zstd", "--quiet", "--force", plain, "-o", packed])
        return packed

    def gzip(self, name):
        """What `plain` gives, compressed with gzip."""
        if not self.quick:
            return self.packed(name)
        plain = self.plain(name)
        return self.make(f"{plain.name}.gz", lambda out: out.write(gzip.compress(plain.read_bytes())))

    def generated(self, command):
        """A problem whose pass takes over 100 ms, made by `command`, which runs the program."""
        examples = GENERATED_EXAMPLES // (QUICK_DIVISOR if self.quick else 1)
        path = self.folder / f"generated.{examples}"
        sizes = ["--examples", examples, "--features", 200, "--classes", 20, "--nonzeros", 40, "--noise", 0.1, "--seed", 1]
        command(PROGRAM, "generate", "multiclass", *sizes, "-o", path)
        return path

    def checkers(self, command, examples, seed):
        """The board of YJ08, made by `command`, which runs the program."""
        examples //= QUICK_DIVISOR if self.quick else 1
        path = self.folder / f"checkers.{examples}.{seed}"
        if path not in self.made:
            command(PROGRAM, "generate", "binary", "--kind", "checkers", "--examples", examples, "--noise", 0.02, "--seed", seed, "-o", path)
            self.made.add(path)
        return path

    def crfsuite(self, name, command):
        """The built-in features of the sentences that `plain` gives, in CRFsuite's format, made by `command`, which runs the program."""
        plain = self.plain(name)
        path = plain.with_name(f"{plain.name}.crfsuite")
        if path not in self.made:
            command(PROGRAM, "features", plain, "-o", path)
            self.made.add(path)
        return path

    def make(self, name, write):
        """The file of that name in the build folder, written once a run: an older one may come from other data."""
        path = self.folder / name
        if path not in self.made:
            say(f"   making {relative(path)}")
            with path.open("wb") as out:
                write(out)
            self.made.add(path)
        return path


def copy_head(path, divisor, out):
    with path.open("rb") as lines:
        count = sum(1 for _ in lines) // divisor
        lines.seek(0)
        out.writelines(itertools.islice(lines, count))


def copy_lines(path, begin, end, out):
    with path.open("rb") as lines:
        out.writelines(itertools.islice(lines, begin, end))


def copy_signed(path, positive, out):
    with path.open("rb") as lines:
        for label, space, features in (line.partition(b" ") for line in lines):
            out.write((b"+1" if label == positive else b"-1") + space + features)


def blocks(path):
    """The sentences of a file that has an empty line after each, without it."""
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")


def tokens(path):
    """Number of lines that are not empty."""
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


def attributes(path):
    """Number of attributes of a file in CRFsuite's format."""
    with path.open("rb") as text:
        return sum(block.count(b"\t") for block in iter(lambda: text.read(1 << 20), b""))


def nonzeros(path):
    """Number of INDEX:VALUE tokens."""
    with path.open("rb") as text:
        return sum(block.count(b":") for block in iter(lambda: text.read(1 << 20), b""))
