//! What tag sequences are worth: tokens, sentences, and the chunks that tags mark.
//!
//! Chunks are those of the CoNLL script conlleval, from the names of the tags: `X-TYPE`, where X is B (begins a chunk), I
//! (inside one), E (ends one) or S (is one), and `O` outside. A token begins a chunk if it is B or S, comes after an O, E or
//! S, or has another type than the token before it: so IOB1, IOB2 and IOBES are read alike, and no sequence is malformed.
//! A predicted chunk is correct if the truth has one of the same type from the same token to the same token.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::tasks::tagging::{TagLoss, UNSEEN};

/// The figures of one tag.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TagFigures {
    /// The tag.
    pub tag: String,
    /// Tokens that have this tag.
    pub support: u64,
    /// Tokens that are predicted to have it, with those whose tag the model does not know.
    pub predicted: u64,
    /// Share of the predicted ones that are right; None where none is predicted.
    pub precision: Option<f64>,
    /// Share of the tag's tokens that are found; None where there is none.
    pub recall: Option<f64>,
    /// `2 right / (support + predicted)`; None where that divides by 0.
    pub f1: Option<f64>,
}

/// The figures of the chunks of one type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChunkFigures {
    /// The type.
    pub kind: String,
    /// Chunks in the truth.
    pub support: u64,
    /// Chunks in the predictions.
    pub predicted: u64,
    /// Chunks in both.
    pub correct: u64,
    /// Share of the predicted ones that are correct; None where none is predicted.
    pub precision: Option<f64>,
    /// Share of the true ones that are found; None where there is none.
    pub recall: Option<f64>,
    /// `2 correct / (support + predicted)`; None where that divides by 0.
    pub f1: Option<f64>,
}

/// A wrong prediction that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confused {
    /// The tag in the data.
    pub truth: String,
    /// The tag that was predicted.
    pub predicted: String,
    /// On so many tokens.
    pub count: u64,
}

/// What predictions are worth. Means and accuracies are NaN without examples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of sentences.
    pub examples: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Mean loss of a sentence, scaled as in training.
    pub mean_loss: f64,
    /// The token accuracy, under the name that all tasks have in common.
    pub accuracy: f64,
    /// Share of tokens with the right tag.
    pub token_accuracy: f64,
    /// Share of sentences in which all tags are right.
    pub sequence_accuracy: f64,
    /// Share of the predicted chunks that are correct; None where none is predicted, or the model's tags mark no chunks.
    pub chunk_precision: Option<f64>,
    /// Share of the true chunks that are found; None where there is none, or the model's tags mark no chunks.
    pub chunk_recall: Option<f64>,
    /// `2 correct / (true + predicted)` of chunks; None where that divides by 0, or the model's tags mark no chunks.
    pub chunk_f1: Option<f64>,
    /// Tokens whose tag the model does not know. They count as errors that cost as much as the dearest tag.
    pub unseen_tags: u64,
    /// The figures of each type of chunks, by name; those of types that the model does not know, too.
    pub chunks: Vec<ChunkFigures>,
    /// The figures of each of the model's tags.
    pub tags: Vec<TagFigures>,
    /// All wrong predictions, the most frequent first, then by name.
    pub confused: Vec<Confused>,
}

/// Counts of the chunks of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ChunkCounts {
    support: u64,
    predicted: u64,
    correct: u64,
}

impl ChunkCounts {
    fn add(&mut self, other: Self) {
        self.support += other.support;
        self.predicted += other.predicted;
        self.correct += other.correct;
    }
}

/// Counts predicted tags against true ones, a sentence at a time and in any order.
#[derive(Debug, Clone)]
pub struct Evaluator<'m> {
    tags: &'m [String],
    loss: &'m TagLoss,
    loss_scale: f64,
    /// What the tags say of chunks; None unless all of them belong to a scheme of chunks.
    places: Option<Vec<Place<'m>>>,
    sentences: u64,
    right_sentences: u64,
    /// Row = truth, column = prediction.
    confusion: Vec<u64>,
    /// By the data's word for a tag that the model does not know: how often each tag was predicted.
    unseen: BTreeMap<String, Vec<u64>>,
    /// By type.
    chunks: BTreeMap<String, ChunkCounts>,
}

impl<'m> Evaluator<'m> {
    /// Nothing counted yet: for a model with these tags, whose loss was multiplied by `loss_scale` in training.
    pub fn new(tags: &'m [String], loss: &'m TagLoss, loss_scale: f64) -> Self {
        let places: Option<Vec<Place<'m>>> = tags.iter().map(|tag| Place::of(tag)).collect();
        Self {
            tags,
            loss,
            loss_scale,
            places: places.filter(|places| places.iter().any(|place| *place != Place::Outside)),
            sentences: 0,
            right_sentences: 0,
            confusion: vec![0; tags.len() * tags.len()],
            unseen: BTreeMap::new(),
            chunks: BTreeMap::new(),
        }
    }

    /// Counts one sentence: numbers of tags, in the truth [`UNSEEN`] for one that the model does not know. The data's word
    /// for that is asked of `word`, by the number of the token; a word that marks no chunk is outside of chunks.
    ///
    /// # Panics
    /// If there are not as many predictions as tokens, or a number is not that of a tag.
    pub fn add<'w>(&mut self, truth: &[u32], prediction: &[u32], word: impl Fn(usize) -> &'w str) {
        assert_eq!(truth.len(), prediction.len(), "a prediction for each token");
        let k = self.tags.len();
        self.sentences += 1;
        self.right_sentences += u64::from(truth == prediction);
        for (t, (&truth, &prediction)) in truth.iter().zip(prediction).enumerate() {
            let prediction = prediction as usize;
            if truth == UNSEEN {
                entry(&mut self.unseen, word(t), || vec![0; k])[prediction] += 1;
            } else {
                self.confusion[truth as usize * k..][..k][prediction] += 1;
            }
        }
        let Some(places) = &self.places else { return };
        let place = |t: usize, tag: u32| match tag {
            UNSEEN => Place::of(word(t)).unwrap_or(Place::Outside),
            tag => places[tag as usize],
        };
        let of_truth = chunks(truth.len(), |t| place(t, truth[t]));
        let predicted = chunks(truth.len(), |t| place(t, prediction[t]));
        for chunk in &of_truth {
            // Both ascend.
            let correct = u64::from(predicted.binary_search(chunk).is_ok());
            let counts = ChunkCounts { support: 1, predicted: 0, correct };
            entry(&mut self.chunks, chunk.kind, ChunkCounts::default).add(counts);
        }
        for chunk in predicted {
            entry(&mut self.chunks, chunk.kind, ChunkCounts::default).predicted += 1;
        }
    }

    /// Adds what was counted elsewhere, of the same model.
    ///
    /// # Panics
    /// If the other one has another number of tags.
    pub fn merge(&mut self, other: Self) {
        let add = |to: &mut Vec<u64>, counts: Vec<u64>| {
            assert_eq!(to.len(), counts.len(), "counts of the same model");
            to.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        };
        self.sentences += other.sentences;
        self.right_sentences += other.right_sentences;
        add(&mut self.confusion, other.confusion);
        for (word, counts) in other.unseen {
            add(self.unseen.entry(word).or_insert_with(|| vec![0; counts.len()]), counts);
        }
        for (kind, counts) in other.chunks {
            self.chunks.entry(kind).or_default().add(counts);
        }
    }

    /// The figures.
    pub fn finish(self) -> Evaluation {
        let k = self.tags.len();
        let row = |tag: usize| &self.confusion[tag * k..][..k];
        let right: u64 = (0..k).map(|tag| row(tag)[tag]).sum();
        let unseen_tags: u64 = self.unseen.values().flatten().sum();
        let tokens = self.confusion.iter().sum::<u64>() + unseen_tags;
        let mut all = ChunkCounts::default();
        self.chunks.values().for_each(|counts| all.add(*counts));
        let figures = |tag: usize| {
            let of_unseen: u64 = self.unseen.values().map(|counts| counts[tag]).sum();
            let support = row(tag).iter().sum();
            let predicted = (0..k).map(|truth| row(truth)[tag]).sum::<u64>() + of_unseen;
            let (precision, recall, f1) = shares(row(tag)[tag], support, predicted);
            TagFigures { tag: self.tags[tag].clone(), support, predicted, precision, recall, f1 }
        };
        let tags: Vec<TagFigures> = (0..k).map(figures).collect();
        let loss = match self.loss {
            TagLoss::ZeroOne => (self.sentences - self.right_sentences) as f64,
            // The loss of one wrong token, as often as there are such.
            hamming @ TagLoss::Hamming(_) => {
                let of_tag =
                    |tag: usize| (tags[tag].support - row(tag)[tag]) as f64 * hamming.of(&[tag as u32], &[UNSEEN]);
                (0..k).map(of_tag).sum::<f64>() + unseen_tags as f64 * hamming.of(&[UNSEEN], &[0])
            }
        };
        let (chunk_precision, chunk_recall, chunk_f1) = shares(all.correct, all.support, all.predicted);
        let token_accuracy = right as f64 / tokens as f64;
        Evaluation {
            examples: self.sentences,
            tokens,
            mean_loss: self.loss_scale * loss / self.sentences as f64,
            accuracy: token_accuracy,
            token_accuracy,
            sequence_accuracy: self.right_sentences as f64 / self.sentences as f64,
            chunk_precision,
            chunk_recall,
            chunk_f1,
            unseen_tags,
            confused: self.confused(),
            chunks: self.chunks.into_iter().map(|(kind, counts)| ChunkFigures::of(kind, counts)).collect(),
            tags,
        }
    }

    fn confused(&self) -> Vec<Confused> {
        let k = self.tags.len();
        let known = (0..k * k).filter(|at| at / k != at % k).map(|at| (&self.tags[at / k], at % k, self.confusion[at]));
        let unseen = self.unseen.iter().flat_map(|(word, counts)| (0..k).map(move |tag| (word, tag, counts[tag])));
        let mut all: Vec<Confused> = known
            .chain(unseen)
            .filter(|pair| pair.2 > 0)
            .map(|(truth, tag, count)| Confused { truth: truth.clone(), predicted: self.tags[tag].clone(), count })
            .collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.truth, &a.predicted).cmp(&(&b.truth, &b.predicted))));
        all
    }
}

impl ChunkFigures {
    fn of(kind: String, counts: ChunkCounts) -> Self {
        let ChunkCounts { support, predicted, correct } = counts;
        let (precision, recall, f1) = shares(correct, support, predicted);
        Self { kind, support, predicted, correct, precision, recall, f1 }
    }
}

/// Precision, recall and F1; None where one divides by 0.
fn shares(right: u64, support: u64, predicted: u64) -> (Option<f64>, Option<f64>, Option<f64>) {
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    (share(right, predicted), share(right, support), share(2 * right, support + predicted))
}

/// The value of a word; the word is copied only if it is new.
fn entry<'t, V>(map: &'t mut BTreeMap<String, V>, word: &str, new: impl FnOnce() -> V) -> &'t mut V {
    if !map.contains_key(word) {
        map.insert(word.to_string(), new());
    }
    map.get_mut(word).expect("a word that was put in")
}

/// What a tag says of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'t> {
    Outside,
    /// Mark and type.
    Inside(u8, &'t str),
}

impl<'t> Place<'t> {
    /// None for a tag that does not belong to a scheme of chunks.
    fn of(tag: &'t str) -> Option<Self> {
        match (tag, tag.split_once('-')) {
            ("O", _) => Some(Self::Outside),
            (_, Some((mark @ ("B" | "I" | "E" | "S"), kind))) if !kind.is_empty() => {
                Some(Self::Inside(mark.as_bytes()[0], kind))
            }
            _ => None,
        }
    }

    /// Is a token here, after one at `before`, the first of a chunk?
    fn begins(self, before: Self) -> bool {
        match (before, self) {
            (_, Self::Outside) => false,
            (_, Self::Inside(b'B' | b'S', _)) | (Self::Outside | Self::Inside(b'E' | b'S', _), _) => true,
            (Self::Inside(_, before), Self::Inside(_, kind)) => before != kind,
        }
    }
}

/// A chunk: its tokens and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Chunk<'t> {
    begin: usize,
    end: usize,
    kind: &'t str,
}

/// The chunks of a sentence, in their order.
fn chunks<'t>(len: usize, place: impl Fn(usize) -> Place<'t>) -> Vec<Chunk<'t>> {
    let mut chunks: Vec<Chunk<'t>> = Vec::new();
    let mut before = Place::Outside;
    for t in 0..len {
        let here = place(t);
        match (here, chunks.last_mut()) {
            (Place::Outside, _) => {}
            (Place::Inside(..), Some(chunk)) if !here.begins(before) => chunk.end = t + 1,
            (Place::Inside(_, kind), _) => chunks.push(Chunk { begin: t, end: t + 1, kind }),
        }
        before = here;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    /// The chunks of some tags: `1-2 PER` are the second and third token.
    fn chunks_of(text: &str) -> Vec<String> {
        let tags = words(text);
        let found = chunks(tags.len(), |t| Place::of(&tags[t]).unwrap());
        found.iter().map(|c| format!("{}-{} {}", c.begin, c.end - 1, c.kind)).collect()
    }

    /// Counts sentences that are written as words; tags that are not among `tags` are unseen.
    fn evaluate(tags: &str, loss: &TagLoss, loss_scale: f64, sentences: &[(&str, &str)]) -> Evaluation {
        let tags = words(tags);
        let id = |word: &String| tags.iter().position(|tag| tag == word).map_or(UNSEEN, |at| at as u32);
        let mut evaluator = Evaluator::new(&tags, loss, loss_scale);
        for (truth, prediction) in sentences {
            let (truth, prediction) = (words(truth), words(prediction));
            let ids = |words: &[String]| words.iter().map(id).collect::<Vec<_>>();
            evaluator.add(&ids(&truth), &ids(&prediction), |t| truth[t].as_str());
        }
        evaluator.finish()
    }

    #[test]
    fn chunks_are_those_of_conlleval() {
        let none: [&str; 0] = [];
        for (tags, expected) in [
            ("O O", &none[..]),
            // IOB1: I begins a chunk; B only where one follows another of its type.
            ("I-PER I-PER O I-LOC", &["0-1 PER", "3-3 LOC"]),
            ("I-PER B-PER I-PER", &["0-0 PER", "1-2 PER"]),
            ("I-LOC I-PER", &["0-0 LOC", "1-1 PER"]),
            // IOB2.
            ("B-PER I-PER O B-LOC", &["0-1 PER", "3-3 LOC"]),
            ("B-PER B-PER", &["0-0 PER", "1-1 PER"]),
            ("B-PER I-LOC I-LOC", &["0-0 PER", "1-2 LOC"]),
            ("O I-PER", &["1-1 PER"]),
            // IOBES, well formed and not.
            ("B-PER I-PER E-PER S-LOC O", &["0-2 PER", "3-3 LOC"]),
            ("S-PER S-PER I-PER", &["0-0 PER", "1-1 PER", "2-2 PER"]),
            ("O E-PER E-PER O", &["1-1 PER", "2-2 PER"]),
            ("I-PER E-PER I-PER", &["0-1 PER", "2-2 PER"]),
            ("B-PER E-LOC", &["0-0 PER", "1-1 LOC"]),
            ("E-PER B-PER", &["0-0 PER", "1-1 PER"]),
            ("B-PER S-PER E-PER", &["0-0 PER", "1-1 PER", "2-2 PER"]),
            // A type may have hyphens; the first one counts.
            ("B-a-b I-a-b I-a", &["0-1 a-b", "2-2 a"]),
        ] {
            assert_eq!(chunks_of(tags), expected, "{tags}");
        }
    }

    #[test]
    fn chunk_figures_by_hand() {
        let e = evaluate(
            "B-LOC B-PER I-LOC I-PER O",
            &TagLoss::hamming(5),
            1.0,
            &[
                // The same chunk; one too long, hence wrong; one at the end of the sentence.
                ("B-PER I-PER O B-LOC O B-PER", "B-PER I-PER O B-LOC I-LOC B-PER"),
                // Another type; a chunk that ended with the sentence does not go on in the next one.
                ("I-PER O", "I-LOC O"),
                // B after B: two chunks, where one is predicted.
                ("B-PER B-PER", "B-PER I-PER"),
            ],
        );
        // True: PER, LOC, PER | PER | PER, PER. Predicted: PER, LOC, PER | LOC | PER. Correct: two of the first sentence.
        assert_eq!((e.chunk_precision, e.chunk_recall), (Some(2.0 / 5.0), Some(2.0 / 6.0)));
        assert_eq!(e.chunk_f1, Some(4.0 / 11.0));
        let counts = |c: &ChunkFigures| (c.kind.clone(), c.support, c.predicted, c.correct);
        let expected = [("LOC".to_string(), 1, 2, 0), ("PER".to_string(), 5, 3, 2)];
        assert_eq!(e.chunks.iter().map(counts).collect::<Vec<_>>(), expected);
        assert_eq!((e.chunks[0].precision, e.chunks[0].recall, e.chunks[0].f1), (Some(0.0), Some(0.0), Some(0.0)));
        assert_eq!((e.chunks[1].precision, e.chunks[1].recall), (Some(2.0 / 3.0), Some(2.0 / 5.0)));
        assert_eq!(e.chunks[1].f1, Some(4.0 / 8.0));
    }

    #[test]
    fn figures_by_hand() {
        let loss = TagLoss::Hamming(vec![1.0, 2.0, 0.5]);
        let e = evaluate("D N V", &loss, 3.0, &[("D N V N", "D V V V"), ("D N", "D N"), ("X V", "N N"), ("X", "N")]);
        assert_eq!((e.examples, e.tokens, e.unseen_tags), (4, 9, 2));
        // Wrong: N twice, X twice at the dearest tag's cost, V once.
        assert_eq!(e.mean_loss, 3.0 * (2.0 * 2.0 + 2.0 * 2.0 + 0.5) / 4.0);
        assert_eq!((e.accuracy, e.token_accuracy, e.sequence_accuracy), (4.0 / 9.0, 4.0 / 9.0, 0.25));
        let counts = |f: &TagFigures| (f.support, f.predicted);
        assert_eq!(e.tags.iter().map(counts).collect::<Vec<_>>(), [(2, 2), (3, 4), (2, 3)]);
        let noun = &e.tags[1];
        assert_eq!((noun.precision, noun.recall, noun.f1), (Some(0.25), Some(1.0 / 3.0), Some(2.0 / 7.0)));
        let confused: Vec<_> = e.confused.iter().map(|c| (c.truth.as_str(), c.predicted.as_str(), c.count)).collect();
        assert_eq!(confused, [("N", "V", 2), ("X", "N", 2), ("V", "N", 1)]);
        // Tags that are no chunk tags.
        assert_eq!((e.chunk_precision, e.chunk_recall, e.chunk_f1), (None, None, None));
        assert!(e.chunks.is_empty());

        let e = evaluate("D N V", &TagLoss::ZeroOne, 3.0, &[("D N", "D V"), ("X", "D"), ("V", "V")]);
        assert_eq!(e.mean_loss, 2.0);
    }

    #[test]
    fn unseen_tags_make_chunks() {
        let sentences = [("B-ORG I-ORG ? B-PER", "B-PER O O B-PER")];
        let e = evaluate("B-PER O", &TagLoss::hamming(2), 1.0, &sentences);
        let counts: Vec<_> = e.chunks.iter().map(|c| (c.kind.as_str(), c.support, c.predicted, c.correct)).collect();
        assert_eq!(counts, [("ORG", 1, 0, 0), ("PER", 1, 2, 1)]);
        assert_eq!((e.chunk_precision, e.chunk_recall, e.unseen_tags), (Some(0.5), Some(0.5), 3));
        assert_eq!((e.chunks[0].precision, e.chunks[0].recall, e.chunks[0].f1), (None, Some(0.0), Some(0.0)));
    }

    /// Only if every tag of the model belongs to a scheme.
    #[test]
    fn not_all_tags_mark_chunks() {
        for (tags, sentence, has_chunks) in [
            ("B-PER O", "B-PER O", true),
            ("B-PER", "B-PER", true),
            ("B-PER O X", "B-PER O", false),
            ("B- O", "B- O", false),
            ("B O", "B O", false),
            ("O", "O", false),
        ] {
            let e = evaluate(tags, &TagLoss::ZeroOne, 1.0, &[(sentence, sentence)]);
            assert_eq!(e.chunk_f1.is_some(), has_chunks, "{tags}");
        }
    }

    #[test]
    fn without_examples() {
        let e = evaluate("B-PER O", &TagLoss::ZeroOne, 1.0, &[]);
        assert!(e.mean_loss.is_nan() && e.accuracy.is_nan() && e.sequence_accuracy.is_nan());
        assert_eq!((e.examples, e.tokens, e.chunk_f1, e.tags[0].f1), (0, 0, None, None));
        assert!(serde_json::to_value(&e).unwrap()["accuracy"].is_null());
    }

    /// Tags, and sentences of (truth, prediction), the truth being unseen at times.
    const TAGS: &str = "B-X B-Y E-X I-X I-Y O S-Y";

    fn sentences() -> impl Strategy<Value = Vec<Vec<(u32, u32)>>> {
        let truth = (0_u32..9).prop_map(|tag| if tag < 7 { tag } else { UNSEEN });
        prop::collection::vec(prop::collection::vec((truth, 0_u32..7), 1..8), 1..8)
    }

    fn count<'m>(tags: &'m [String], loss: &'m TagLoss, sentences: &[Vec<(u32, u32)>]) -> Evaluator<'m> {
        let mut evaluator = Evaluator::new(tags, loss, 1.0);
        for sentence in sentences {
            let (truth, prediction): (Vec<u32>, Vec<u32>) = sentence.iter().copied().unzip();
            evaluator.add(&truth, &prediction, |t| ["B-Z", "I-X", "odd"][t % 3]);
        }
        evaluator
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equal_sequences_are_perfect(sentences in sentences()) {
            let (tags, loss) = (words(TAGS), TagLoss::hamming(7));
            let same: Vec<Vec<_>> = sentences.iter().map(|s| s.iter().map(|&(_, y)| (y, y)).collect()).collect();
            let e = count(&tags, &loss, &same).finish();
            prop_assert_eq!((e.accuracy, e.sequence_accuracy, e.mean_loss), (1.0, 1.0, 0.0));
            prop_assert!(e.chunk_f1.is_none_or(|f1| f1 == 1.0));
            prop_assert!(e.chunks.iter().all(|c| c.f1 == Some(1.0)) && e.tags.iter().all(|t| t.f1.is_none_or(|f| f == 1.0)));
            prop_assert!(e.confused.is_empty());
        }

        #[test]
        fn the_parts_add_up(sentences in sentences()) {
            let (tags, loss) = (words(TAGS), TagLoss::Hamming(vec![0.5, 1.0, 0.0, 2.0, 0.25, 1.0, 3.0]));
            let e = count(&tags, &loss, &sentences).finish();
            prop_assert_eq!(e.tags.iter().map(|t| t.support).sum::<u64>() + e.unseen_tags, e.tokens);
            prop_assert_eq!(e.tags.iter().map(|t| t.predicted).sum::<u64>(), e.tokens);
            let wrong: u64 = e.confused.iter().map(|c| c.count).sum();
            prop_assert_eq!((e.tokens - wrong) as f64 / e.tokens as f64, e.accuracy);
            prop_assert!(e.chunks.iter().all(|c| c.correct <= c.support.min(c.predicted)));
            let by_sentence = |s: &Vec<(u32, u32)>| {
                let (truth, prediction): (Vec<u32>, Vec<u32>) = s.iter().copied().unzip();
                loss.of(&truth, &prediction)
            };
            let mean = sentences.iter().map(by_sentence).sum::<f64>() / sentences.len() as f64;
            prop_assert!((e.mean_loss - mean).abs() < 1e-12);
        }

        /// In parts, and in any order.
        #[test]
        fn parts_are_merged(sentences in sentences(), cut in 0_usize..8) {
            let (tags, loss) = (words(TAGS), TagLoss::hamming(7));
            let whole = count(&tags, &loss, &sentences).finish();
            let (head, tail) = sentences.split_at(cut.min(sentences.len()));
            let mut parts = count(&tags, &loss, tail);
            parts.merge(count(&tags, &loss, head));
            let parts = parts.finish();
            prop_assert_eq!(parts, whole);
        }
    }
}
