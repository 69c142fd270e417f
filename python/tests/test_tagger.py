"""Tags of sentences."""

import warnings

import numpy as np
import pytest

from maxmargin import SequenceTagger, datasets, metrics


@pytest.fixture(scope="module")
def words():
    return datasets.make_tags(80, tags=4, words=30, length=6, noise=0.05, random_state=1)


@pytest.fixture(scope="module")
def fitted(words):
    return SequenceTagger(C=1.0).fit(*words)


def _dicts(X):
    return [[{"word": w, "suffix": w[-2:], "length": len(w), "is_long": len(w) > 6, "bias": 1.0} for w in s] for s in X]


@pytest.mark.parametrize("form", ["strings", "dicts", "lists", "tuples"])
def test_tokens_of_all_kinds(words, form):
    X, y = words
    make = {
        "strings": lambda w: w,
        "dicts": lambda w: {"word": w, "tail": {"2": w[-2:], "1": w[-1:]}, "parts": [w[:2], w[2:4]]},
        "lists": lambda w: [f"w={w}", f"s={w[-2:]}"],
        "tuples": lambda w: (f"w={w}", f"s={w[-2:]}"),
    }[form]
    sentences = [[make(w) for w in s] for s in X]
    model = SequenceTagger().fit(sentences, y)
    assert model.score(sentences, y) > 0.8
    assert [len(s) for s in model.predict(sentences)] == [len(s) for s in X]


def test_numbers_in_dicts_count():
    X = [[{"x": float(v)} for v in row] for row in ([3, -2, 1], [-1, 2, -3])]
    y = [["+", "-", "+"], ["-", "+", "-"]]
    model = SequenceTagger(C=10).fit(X, y)
    assert model.predict([[{"x": 5.0}, {"x": -5.0}]]) == [["+", "-"]]
    assert ("x", "+") in model.state_features_


def test_columns(words):
    X, y = words
    text = "\n\n".join("\n".join(f"{w}\t{t}" for w, t in zip(s, tags, strict=True)) for s, tags in zip(X, y, strict=True)) + "\n"
    from_text = SequenceTagger(format="columns").fit(text)
    from_lists = SequenceTagger(format="columns").fit(X, y)
    from_rows = SequenceTagger(format="columns").fit([[[w] for w in s] for s in X], y)
    assert from_text.predict(X) == from_lists.predict(X) == from_rows.predict(X) == from_text.predict(text)
    assert from_text.score(text) == from_lists.score(X, y)
    assert from_text.classes_.tolist() == from_lists.classes_.tolist()
    with pytest.raises(ValueError, match="leave out y"):
        SequenceTagger(format="columns").fit(text, y)


def test_templates(words, tmp_path):
    X, y = words
    template = "U00:%x[0,0]\nU01:%x[-1,0]\n"
    (tmp_path / "template").write_text(template)
    model = SequenceTagger(format="columns", template=template).fit(X, y)
    assert model.model_ == SequenceTagger(format="columns", template=tmp_path / "template").fit(X, y).model_
    names = {feature for feature, _ in model.state_features_}
    assert any(name.startswith("U01") for name in names)
    assert all(name.startswith("U0") for name in names)


def test_text_of_other_formats():
    text = "A qid:1 1:1 2:0.5\nB qid:1 2:1\nA qid:2 1:1\n"
    assert SequenceTagger(format="svmhmm", C=10).fit(text).predict(text) == [["A", "B"], ["A"]]
    text = "A\tx\ty:0.5\nB\ty\n\nA\tx\n"
    assert SequenceTagger(format="crfsuite", C=10).fit(text).predict(text) == [["A", "B"], ["A"]]


@pytest.mark.parametrize("kinds", [("a", "b", "c"), (0, 1, 2), ((1, "x y"), (2, "z"), (3, "")), ("a b", "", "c"), (True, False, True)])
def test_tags_are_any_hashables(kinds):
    X = [["p", "q", "r"], ["q", "p", "p"]]
    y = [[kinds[0], kinds[1], kinds[2]], [kinds[1], kinds[0], kinds[0]]]
    model = SequenceTagger(C=10).fit(X, y)
    assert model.predict(X) == y
    assert model.score(X, y) == 1.0
    assert set(model.classes_.tolist()) == set(kinds)


def test_arrays_of_tags():
    model = SequenceTagger(C=10).fit(np.array([["p", "q"], ["q", "p"]]), np.array([[0, 1], [1, 0]]))
    assert model.predict([["q", "q"]]) == [[1, 1]]
    assert type(model.predict([["q"]])[0][0]) is int


def test_n_best(fitted, words):
    X, _ = words
    best = fitted.predict_n_best(X[:10], 4)
    assert [sequences[0][0] for sequences in best] == fitted.predict(X[:10])
    for sequences in best:
        scores = [score for _, score in sequences]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(tags) for tags, _ in sequences}) == len(sequences) == 4
    # A sentence of one token has as many sequences as there are tags.
    assert len(fitted.predict_n_best([X[0][:1]], 100)[0]) == 4


def test_n_best_of_columns_whose_words_look_like_heads():
    X = [["#", "0", "1.5"], ["#", "1", "x"]]
    y = [["A", "B", "C"], ["A", "B", "A"]]
    model = SequenceTagger(format="columns", C=10).fit(X, y)
    best = model.predict_n_best(X, 3)
    assert [sequences[0][0] for sequences in best] == y
    assert model.predict_n_best("# \n0 \n1.5 \n\n# \n1 \nx \n", 3) == best


def test_scores_are_sums_of_weights(fitted, words):
    X, _ = words
    tags, score = fitted.predict_n_best(X[:1], 1)[0][0]
    state, transition, told = fitted.state_features_, fitted.transition_features_, fitted.inspect(1)
    order = fitted.classes_.tolist()
    total = sum(state.get((w, t), 0.0) for w, t in zip(X[0], tags, strict=True))
    total += sum(transition[pair] for pair in zip(tags[:-1], tags[1:], strict=True))
    total += told["first"][order.index(tags[0])] + told["last"][order.index(tags[-1])]
    assert score == pytest.approx(total)


def test_margins(fitted, words):
    X, _ = words
    margins = fitted.predict_margins(X[:5])
    for sentence, row, sequences in zip(X[:5], margins, fitted.predict_n_best(X[:5], 2), strict=True):
        assert row.shape == (len(sentence),)
        # The second best sequence differs at the least sure token.
        assert row.min() == pytest.approx(sequences[0][1] - sequences[1][1])


def test_forced_tags(fitted, words):
    X, _ = words
    free = fitted.predict(X[:1])[0]
    other = next(tag for tag in fitted.classes_.tolist() if tag != free[0])
    forced = fitted.predict(X[:1], forced=[[other] + [None] * (len(X[0]) - 1)])[0]
    assert forced[0] == other
    with pytest.raises(ValueError, match="no tag 'nonsense'"):
        fitted.predict(X[:1], forced=[["nonsense"] * len(X[0])])


def test_empty_sentences(fitted, words):
    X, _ = words
    assert fitted.predict([[], X[0], []]) == [[], fitted.predict(X[:1])[0], []]
    assert fitted.predict([]) == []
    assert fitted.predict([[]]) == [[]]
    assert [len(row) for row in fitted.predict_margins([[], X[0]])] == [0, len(X[0])]
    assert fitted.predict_n_best([[], X[0]], 2)[0] == [([], 0.0)]


def test_schemes_and_costs():
    X = [["a", "b", "c"]] * 3
    y = [["B-X", "I-X", "O"]] * 3
    model = SequenceTagger(scheme="BIO", C=0.001).fit(X, y)
    for _, tags in (pair for best in [model.predict_n_best(X[:1], 50)] for pair in enumerate(t for t, _ in best[0])):
        metrics.chunks(tags)
        assert tags[0] != "I-X"
    with pytest.raises(ValueError, match="(?i)scheme|BIO"):
        SequenceTagger(scheme="BIO").fit([["a", "b"]], [["O", "I-X"]])
    forbid = SequenceTagger(forbid=[("B-X", "O")]).fit(X, y)
    assert all(("B-X", "O") not in zip(t[:-1], t[1:], strict=True) for t, _ in forbid.predict_n_best(X[:1], 50)[0])
    costs = SequenceTagger(tag_cost={"O": 5.0}).fit(X, y)
    assert costs.inspect(1)["loss"]["hamming"] == [1.0, 1.0, 5.0]


def test_tag_cost_of_tags_that_are_no_words():
    X, y = [["a", "b"]] * 2, [["x y", "z"]] * 2
    assert SequenceTagger(tag_cost={"x y": 5.0}).fit(X, y).predict(X) == y


def test_heldout(words):
    X, y = words
    for format in (None, "columns"):
        model = SequenceTagger(format=format).fit(X[:60], y[:60], heldout=(X[60:], y[60:]))
        assert model.report_["heldout_loss"] == pytest.approx(metrics.hamming(y[60:], model.predict(X[60:])))


def test_heldout_as_text():
    text = "the DT\ncat NN\n\nthe DT\ndog NN\n"
    model = SequenceTagger(format="columns").fit(text, heldout="the DT\ncat NN\n")
    assert model.report_["heldout_loss"] == 0.0


def test_token_features():
    tagger = SequenceTagger(format="columns", template="U0:%x[0,0]:a\nU1:%x[-1,0]\\\n")
    features = tagger.token_features([["the", "c:t"], ["she"]])
    assert features == [[["U0:the:a", "U1:_B-1\\"], ["U0:c:t:a", "U1:the\\"]], [["U0:she:a", "U1:_B-1\\"]]]
    built_in = SequenceTagger(format="columns").token_features("The DT\ncat NN\n")
    assert "w=The" in built_in[0][0]
    with pytest.raises(ValueError, match="format='columns'"):
        SequenceTagger().token_features([["a"]])


def test_unseen_features_are_no_error(fitted):
    assert len(fitted.predict([["never", "seen"]])[0]) == 2


def test_orders_and_baselines(words):
    X, y = words
    second = SequenceTagger(format="columns", order=2).fit(X[:20], y[:20])
    assert second.score(X[:20], y[:20]) > 0.9
    hmm = SequenceTagger(format="columns", template="U:%x[0,0]\n", solver="mle").fit(X, y)
    assert hmm.score(X, y) > 0.7


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["a", "b"]], [["x"]], "sentence 0 has 2 tokens, but 1 tags"),
        ([["a"], ["b"]], [["x"]], "inconsistent numbers of samples"),
        ([["a"], []], [["x"], []], "sentence 1 has no tokens"),
        (["ab"], [["x", "y"]], "sentence 0 is a str"),
        ([[{"w": object()}]], [["x"]], "(?i)sentence 0"),
        ([["a", 3.5]], [["x", "y"]], "(?i)sentence 0, token 1"),
        ([["a", "b"]], [["x", None]], "token 1 of sentence 0"),
        ([["a", "b"], ["c"]], [["x", "x"], [1]], "mixed: token 0 of sentence 0 has 'x' .* token 0 of sentence 1 has 1"),
        ([["a", "b"], ["c", "d"]], [[1, 1], [1, float("nan")]], "token 1 of sentence 1 has no label"),
        (None, [["x"]], "X is None; it must be a list of sentences"),
        (3, [["x"]], "X is 3"),
        ([["a"]], None, "requires y"),
        ("a x\n", None, "format"),
        ([], [], "no sentences"),
        ([[{"w": float("nan")}]], [["x"]], "(?i)sentence 0"),
    ],
)
def test_wrong_sentences(X, y, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit(X, y)


def test_unfitted():
    with pytest.raises(ValueError, match="not fitted"):
        SequenceTagger().predict([["a"]])
    assert not hasattr(SequenceTagger(), "transition_features_")


@pytest.mark.parametrize("n", [-1, 0, 1.5, "3"])
def test_n_is_a_number(fitted, n):
    with pytest.raises(ValueError, match=f"^n={n!r}: must be a whole number, at least 1"):
        fitted.predict_n_best([["a"]], n=n)


def test_wrong_columns():
    def tagger():
        return SequenceTagger(format="columns")

    for token in (None, 3, {"w": "b"}):
        with pytest.raises(ValueError, match="sentence 0, token 1 is .* a token is a word or a row of words"):
            tagger().fit([["a", token]], [["A", "B"]])
    with pytest.raises(ValueError, match="sentence 1, token 0: the number of columns is 1, sentence 0, token 0 has 2"):
        tagger().fit([[["a", "x"]], [["b"]]], [["A"], ["B"]])
    with pytest.raises(ValueError, match="sentence 0, token 1 has no columns"):
        tagger().fit([["a", []]], [["A", "B"]])
    fitted = tagger().fit([[["a", "x"], ["b", "y"]]], [["A", "B"]])
    for token in (["a"], ["a", "x", "A"]):
        # The empty sentence counts.
        with pytest.raises(ValueError, match=f"sentence 2, token 0: the number of columns is {len(token)}, the model was trained with 2"):
            fitted.predict([[["a", "x"]], [], [token]])


SURROGATE = "a\ud800"


@pytest.mark.parametrize("token", [SURROGATE, {SURROGATE: 1.0}, {SURROGATE: "x"}, {"x": SURROGATE}, ["x", SURROGATE], {"x": [SURROGATE]}])
def test_half_a_pair_of_surrogates_is_no_text(fitted, token):
    for use in (lambda X: SequenceTagger().fit(X, [["A"], ["A", "B"]]), fitted.predict):
        with pytest.raises(ValueError, match="sentence 1, token 1: 'a.ud800' is no Unicode text"):
            use([["a"], ["b", token]])


def test_half_a_pair_of_surrogates_in_columns_and_tags():
    with pytest.raises(ValueError, match="sentence 0, token 1: the column .* no Unicode text"):
        SequenceTagger(format="columns").fit([["a", SURROGATE]], [["A", "B"]])
    with pytest.raises(ValueError, match="line 2 of the text"):
        SequenceTagger(format="columns").fit(f"a\tA\n{SURROGATE}\tB\n")
    for format in (None, "columns"):
        assert SequenceTagger(C=10, format=format).fit([["a"], ["b"]], [["A"], [SURROGATE]]).predict([["b"]]) == [[SURROGATE]]


def test_large_values_are_told_shortly():
    for value, message in ((1e39, "is 1e39, too large for 32 bits"), (10**400, "is too large a number"), (10**5000, "too large")):
        with pytest.raises(ValueError, match=f'^sentence 0, token 1: the value of "k" .*{message}') as caught:
            SequenceTagger().fit([["a", {"k": value}]], [["A", "B"]])
        assert len(str(caught.value)) < 100


def test_columns_with_blanks():
    with pytest.raises(ValueError, match="sentence 0, token 0: the column 'a b'"):
        SequenceTagger(format="columns").fit([["a b"]], [["x"]])


def test_attributes_with_marks_of_the_format():
    """Colons, backslashes and tabs in attributes."""
    X = [["a:1", "b\\c", "d:e:0.5"], ["b\\c", "a:1", "d:e:0.5"]]
    y = [["1", "2", "3"], ["2", "1", "3"]]
    model = SequenceTagger(C=10).fit(X, y)
    assert model.predict(X) == y
    assert {feature for feature, _ in model.state_features_} == {"a:1", "b\\c", "d:e:0.5"}


def test_kernel(words):
    X = [[{"x": float(np.cos(k)), "y": float(np.sin(k))} for k in range(6)] for _ in range(3)]
    y = [["A" if np.cos(k) * np.sin(k) > 0 else "B" for k in range(6)]] * 3
    assert SequenceTagger(kernel="rbf", gamma=2.0, C=10).fit(X, y).score(X, y) == 1.0


def test_names_of_features_are_those_of_sklearn_crfsuite():
    token = {"word": "dog", "n": 2.5, "yes": True, "no": False, "sub": {"a": "b", "x": 1.0}, "list": ["p", "q"], "v": np.array([0.5, 0.0, 2.0])}
    model = SequenceTagger(C=10).fit([[token], [{"word": "a:b\\c"}]], [["A"], ["B"]])
    names = {feature for feature, _ in model.state_features_}
    assert names == {"word:dog", "n", "yes", "sub:a:b", "sub:x", "list:p", "list:q", "v:0", "v:2", "word:a:b\\c"}


def test_dicts_are_trained_on_as_their_text_is(words):
    from maxmargin import _native

    X, y = _dicts(words[0]), words[1]
    text = _native.crfsuite_text(X, y)
    of_dicts, of_text = SequenceTagger().fit(X, y), SequenceTagger(format="crfsuite").fit(text)
    assert of_dicts.primal_ == of_text.primal_ and of_dicts.classes_.tolist() == of_text.classes_.tolist()
    assert of_dicts.state_features_ == of_text.state_features_
    assert of_dicts.transition_features_ == of_text.transition_features_
    kept = SequenceTagger(min_count=3).fit(X, y)
    assert kept.state_features_ == SequenceTagger(format="crfsuite", min_count=3).fit(text).state_features_


def test_vectors_are_tokens():
    random = np.random.default_rng(0)
    X = [random.normal(size=(5, 3)) for _ in range(30)]
    y = [["+" if row[0] > 0 else "-" for row in sentence] for sentence in X]
    model = SequenceTagger(C=10).fit(X, y)
    assert model.score(X, y) > 0.95
    assert {feature for feature, _ in model.state_features_} == {"0", "1", "2"}
    strings = SequenceTagger(C=10).fit([np.array(["a", "b"]), np.array(["b"])], [["A", "B"], ["B"]])
    assert strings.predict([["a"], np.array(["b"])]) == [["A"], ["B"]]
    with pytest.raises(ValueError, match="sentence 0, token 0: .* not ndarray"):
        SequenceTagger().fit([np.zeros((2, 2, 2))], [["A", "B"]])


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": np.inf}, {"a\nb": 1.0}, {"": 1.0}, {"x": object()}, 3])
def test_bad_tokens_are_told_with_their_place(bad):
    with pytest.raises(ValueError, match="sentence 1, token 0"):
        SequenceTagger().fit([["a"], [bad]], [["A"], ["B"]])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_first_bad_token_is_told_whoever_finds_it(n_jobs):
    """Sums are taken on another thread, while the walk goes on."""
    large = {"deep": {"a": 3e38}, "deep:a": 3e38}
    for after in (["a"], [{"": 1.0}], [large]):
        X = [["a"], ["b", large, "c"], after]
        with pytest.raises(ValueError, match="sentence 1, token 1: .* sum to more"):
            SequenceTagger(n_jobs=n_jobs).fit(X, [["A"], ["B", "A", "B"], ["A"]])
    with pytest.raises(ValueError, match="sentence 0, token 0: an attribute has no name"):
        SequenceTagger(n_jobs=n_jobs).fit([[{"": 1.0}, large]], [["A", "B"]])


@pytest.mark.parametrize("format", [None, "columns"])
def test_weights_of_sentences(words, format):
    X, y = words[0][:40], words[1][:40]
    settings = {"format": format, "relative_gap": 1e-5}
    weights = np.ones(40)
    weights[:10], weights[30:] = 2, 0
    weighed = SequenceTagger(C=0.01, **settings).fit(X, y, sample_weight=weights)
    # Twice the weight is twice the sentence.
    twice = SequenceTagger(C=0.01, **settings).fit(X[:10] + X[:30], y[:10] + y[:30])
    assert weighed.primal_ == pytest.approx(twice.primal_, rel=1e-4)
    assert weighed.primal_ != pytest.approx(SequenceTagger(C=0.01, **settings).fit(X[:30], y[:30]).primal_, rel=1e-3)
    with pytest.raises(ValueError, match="sample_weight"):
        SequenceTagger(**settings).fit(X, y, sample_weight=weights[:5])
    with pytest.raises(ValueError, match="zero"):
        SequenceTagger(**settings).fit(X, y, sample_weight=np.zeros(40))


def test_weights_of_text(words):
    text = "A\tx\nB\ty\n\nA\tx\n\nB\tx\n"
    fit = SequenceTagger(format="crfsuite", relative_gap=1e-6).fit
    assert fit(text, sample_weight=[1.0, 1.0, 1.0]).primal_ == pytest.approx(fit(text).primal_, rel=1e-5)
    assert fit(text, sample_weight=[1.0, 5.0, 1.0]).primal_ > fit(text).primal_
    with pytest.raises(ValueError, match="2 weights for 3 examples"):
        fit(text, sample_weight=[1.0, 1.0])


def test_it_does_not_matter_which_objects_names_and_numbers_are():
    """A name that comes again is known by its object, in a table whose places strings share."""
    random = np.random.default_rng(3)
    words = [f"w{k}" for k in range(60_000)]
    shared = [[{words[k]: 1.0 for k in random.integers(0, len(words), 30)} for _ in range(25)] for _ in range(100)]
    shared[0][0] = {**shared[0][0], "ünï": 2.5, "none": 0.0, "same": 1.0, "count": 3, "yes": True, "word": "dog", "deep": {"a": 1.0, "b": ["c"]}}
    shared[0][1] = {"deep": {"a": 1.0}, "deep:a": 1.0, **shared[0][1]}
    tags = [[str(random.integers(3)) for _ in sentence] for sentence in shared]
    # Of so many among 2^17 places thousands share theirs.
    assert len({name for sentence in shared for token in sentence for name in token}) > 2**15

    def again(thing):
        """Equal, of other objects."""
        if isinstance(thing, dict):
            return {("".join(list(name))): again(value) for name, value in thing.items()}
        return float(repr(thing)) if type(thing) is float else thing

    class Word(str):
        pass

    copies = [[again(token) for token in sentence] for sentence in shared]
    odd = [[{Word(name): value for name, value in token.items()} for token in sentence] for sentence in shared]
    settings = {"C": 0.1, "max_passes": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [SequenceTagger(**settings, n_jobs=jobs).fit(X, tags).model_ for X in (shared, copies, odd) for jobs in (1, 2)]
    assert len(set(models)) == 1


def test_deep_lists_of_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="sentence 0, token 0: attribute 1.0 of a list is no string"):
        SequenceTagger().fit([[{"a": 1.0, "deep": [1.0]}]], [["A"]])


@pytest.mark.parametrize("word", ["a\n", "\na", " a", "a\r", ""])
def test_a_column_is_a_word_and_nothing_around_it(word):
    tagger = SequenceTagger(format="columns").fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(ValueError, match="sentence 1, token 0: the column .* is no word"):
        tagger.predict([["a"], [word]])


def test_very_deep_lists_are_refused():
    deep = ["a"]
    for _ in range(50_000):
        deep = [deep]
    for format, token in ((None, deep), (None, {"k": deep}), ("columns", deep)):
        with pytest.raises(ValueError, match="sentence 0, token 1"):
            SequenceTagger(format=format).fit([["a", token]], [["A", "B"]])


def test_a_dict_that_holds_itself_is_refused():
    token = {}
    token["a"] = token
    with pytest.raises(ValueError, match="sentence 0, token 1: dicts within dicts go more than 100 deep"):
        SequenceTagger().fit([["a", token]], [["X", "Y"]])
    deep = {"end": 1.0}
    for _ in range(90):
        deep = {"in": deep}
    SequenceTagger().fit([["a", deep]], [["X", "Y"]])
