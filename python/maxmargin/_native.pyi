"""What the Rust library does for the package. Nothing here is for users."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Rows:
    """Sparse rows of numbers, as the library has them: 32-bit, without zeros. For one use: who trains or predicts takes them."""

    @staticmethod
    def dense(array: NDArray[Any]) -> Rows:
        """Of a 2-D array of float32 or float64, in C order. ValueError where a value is not finite: names sample and feature."""

    @staticmethod
    def csr(indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], columns: int) -> Rows:
        """Of a CSR matrix: indptr and indices int32 or int64, data float32 or float64; columns of a row ascend, none twice."""

    @property
    def shape(self) -> tuple[int, int]: ...

class Model:
    """A model file of any task, in memory."""

    def __new__(cls, data: bytes) -> Model:
        """ValueError where the bytes are no model file."""

    @property
    def task(self) -> str:
        """binary, multiclass, taxonomy, tag, parse, multilabel, graph or align."""

    @property
    def labels(self) -> list[str]:
        """The words of classes (binary: the negative one first), of the classes of a taxonomy, labels of sets, tags; else none."""

    @property
    def features(self) -> int:
        """Of binary, multiclass, taxonomy and multilabel: columns that the model knows, without the bias; else 0."""

    def scores(self, rows: Rows, threads: int) -> NDArray[np.float64]:
        """Of binary and multiclass (n x classes; binary: -1/2 and +1/2 of the decision value), of taxonomies (n x classes), of
        label sets (n x labels: what the label gains beside the others of the best set). Columns beyond `features` count for nothing."""

    def sets(self, rows: Rows, threshold: float, threads: int) -> list[list[int]]:
        """The best label sets, as places in `labels`."""

    def nodes(self, rows: Rows, depth_threshold: float | None, threads: int) -> list[str]:
        """Of taxonomies: the name of the node of each row; with a threshold possibly an inner one."""

    def ask(self, command: str, options: Sequence[str], text: bytes) -> tuple[bytes, list[str]]:
        """`maxmargin predict`, `evaluate` or `inspect` with this model: what it writes to standard output, and its notes."""

def train_text(
    task: str, options: Sequence[str], text: bytes, weights: NDArray[np.float64] | None, on_round: Callable[[str], object] | None
) -> tuple[bytes, str, list[str]]:
    """`maxmargin train` of text in the task's format: the bytes of the model file, the summary and the notes. `weights`: how much
    each example counts, positive.

    `on_round` gets each line of --log (JSON); what it raises comes out again, and so does KeyboardInterrupt. True from it stops
    training and keeps the model so far (status `interrupted`).
    Of more than 10,000 rounds it gets every second one, then every fourth and so on.
    """

def train_sentences(
    options: Sequence[str],
    sequences: Any,
    tags: Any,
    weights: NDArray[np.float64] | None,
    on_round: Callable[[str], object] | None,
    threads: int,
) -> tuple[bytes, str, list[str]]:
    """The same of sentences with tags, `--format crfsuite`, without the text: tokens as for crfsuite_text. `threads`: how
    many put them together; 0 is one a core."""

def distinct_words(lists: list[Any]) -> list[str] | None:
    """The distinct words of lists, in the order of their first appearance. None where not all are plain lists of plain strings."""

def train_rows(
    task: str,
    options: Sequence[str],
    rows: Rows,
    names: Sequence[str],
    ids: NDArray[np.uint32],
    costs: NDArray[np.float64] | None,
    on_round: Callable[[str], object] | None,
) -> tuple[bytes, str, list[str]]:
    """The same of rows. `names`: distinct labels, for binary and multiclass in the order of the classes (binary: negative first),
    for taxonomies names of nodes, for sets `a,b,c` (places in `names` are distinct sets; 4294967295 is the empty one); `ids`: the
    place of each row's label in them; `costs`: weights of the rows, positive."""

def train_task(
    task: Any,
    inputs: list[Any],
    outputs: list[Any],
    weights: NDArray[np.float64] | None,
    size: int,
    options: Sequence[str],
    on_round: Callable[[str], object] | None,
    start: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], str]:
    """Trains a task on one thread (`options` as for train_text; give --threads 1): w, and the summary (JSON).

    Called back: `task.features(i, y)`, as the user has them, `task.kind` (dict, pair or array) and, where these are not plain
    ascending arrays, `task.psi(i, y, features) -> (uint32 array, float64 array)`, ascending; `task.loss(i, y) -> float` against the truth of example
    i; `task.argmax(i, w, y_true or None) -> y`; `task.max_loss(i) -> float`. w is one array, filled anew for each call. Each distinct
    output (==) is asked for its features and its loss once.
    """

def survey(task: str, options: Sequence[str], data: bytes, name: str) -> bytes:
    """What the dictionaries have to know of one partition of text, for `merge` alone to read; messages call it `name`."""

def merge(task: str, options: Sequence[str], surveys: Sequence[bytes], name: str) -> bytes:
    """The dictionaries of all partitions, whose surveys come in their order: a model file whose weights are zero."""

def blank(task: str, options: Sequence[str], rows: Rows, names: Sequence[str], ids: NDArray[np.uint32]) -> bytes:
    """The same of rows: `names` are all labels of all partitions; `rows` tell the columns and, with `ids`, how often a label is there."""

class Partition:
    """Examples of one partition, as the solvers take them; a thread of its own serves them."""

    @staticmethod
    def of_text(task: str, options: Sequence[str], blank: bytes, data: bytes, name: str) -> Partition:
        """Of text in the task's format, plain or compressed. ValueError names `name` and the line."""

    @staticmethod
    def of_rows(
        task: str,
        options: Sequence[str],
        blank: bytes,
        rows: Rows,
        names: Sequence[str],
        ids: NDArray[np.uint32],
        costs: NDArray[np.float64] | None = None,
    ) -> Partition:
        """Of rows, as for train_rows."""

    @property
    def examples(self) -> int: ...
    @property
    def dimension(self) -> int:
        """Of w."""

    @property
    def max_loss(self) -> float:
        """The sum over the examples of their largest loss."""

    @property
    def is_exact(self) -> bool:
        """Does the oracle find the maximum for all of them?"""

    @property
    def checksum(self) -> int:
        """Of the data."""

    def cut(self, w: NDArray[np.float64], threads: int = 0) -> tuple[NDArray[np.float64], float]:
        """Sums over its examples: a function of w, the same bits for any number of threads."""

    def loss(self, w: NDArray[np.float64], threads: int = 0) -> float:
        """The sum of the losses of the predictions at w."""

    def close(self) -> None:
        """Frees the memory."""

def train_partitions(
    task: str,
    options: Sequence[str],
    blank: bytes,
    facts: Sequence[tuple[int, float, bool, int]],
    ask: Callable[[NDArray[np.float64]], list[tuple[Any, float]]],
    loss: Callable[[NDArray[np.float64]], float],
    on_round: Callable[[str], object] | None,
) -> tuple[bytes, str, list[str]]:
    """Trains from cuts: what train_text returns.

    `facts`: examples, max_loss, is_exact and checksum of each group of partitions, one group unless the options say --groups. `ask(w)`
    is called once a round and returns a cut of each group, (lhs, rhs): sums over its examples, lhs dense or (places, values).
    `loss(w)`: the sum of the training losses, asked for once in the end. What they raise comes out again.
    """

def crfsuite_text(sequences: Any, tags: Any | None) -> bytes:
    """Sentences whose tokens are dicts, lists of attributes, strings or vectors of numbers (named 0, 1, ..), in the text format of CRFsuite, which `--format crfsuite`
    reads. A value of a dict may be a number, a bool, a word (KEY:WORD) or a dict, list or vector of those (KEY:SUB). ValueError names
    sentence and token. Sentences without tokens are left out of the text; `tags` None writes `?` for each."""

def generate(task: str, options: Sequence[str]) -> bytes:
    """`maxmargin generate`."""

def features(options: Sequence[str], text: bytes) -> bytes:
    """`maxmargin features`."""

def options(command: str) -> str:
    """The options of a command as they are declared: JSON list of name, heading, help, values, takes_value, is_repeated."""

def version() -> str: ...
