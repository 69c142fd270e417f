//! The program's commands inside of another program.

use std::cell::RefCell;
use std::rc::Rc;

use maxmargin::data::svmlight::{Labelled, Labels};
use maxmargin::data::tagging::Assembly;
use maxmargin::model::Saved;
use maxmargin::sparse::SparseMatrix;
use maxmargin_cli::embed::{self, Data, Failure, Hooks, Trained};

const TEXT: &[u8] = b"right 1:2 2:0.1\nright 1:1.5\nup 1:-1 2:1.6\nup 2:1.8\ndown 1:-1.2 2:-1.4\ndown 2:-2\n";

fn silent() -> Hooks {
    Hooks { on_round: Box::new(|_| {}), is_over: Box::new(|| false) }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn trained(options: &[&str]) -> Trained {
    embed::train("multiclass", &words(options), Data::Text(TEXT.to_vec()), None, silent()).unwrap()
}

fn usage(result: Result<Trained, Failure>) -> String {
    match result {
        Err(Failure::Usage(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_becomes_a_model_that_can_be_asked() {
    let Trained { model, summary, notes } = trained(&["--c-per-example", "10"]);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["status"], "converged");
    assert_eq!(summary["examples"], 6);
    assert!(notes.is_empty());
    let model = Saved::from_bytes(&model).unwrap();
    let written = embed::ask(&model, "predict", &[], b"1:3\n2:1\n2:-1\n".to_vec()).unwrap();
    assert_eq!(written.output, b"right\nup\ndown\n");
    let written = embed::ask(&model, "evaluate", &words(&["--json"]), TEXT.to_vec()).unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&written.output).unwrap();
    assert_eq!(figures["accuracy"], 1.0);
    let written = embed::ask(&model, "inspect", &[], Vec::new()).unwrap();
    assert!(String::from_utf8(written.output).unwrap().contains("3 classes"));
}

#[test]
fn rows_and_text_give_the_same_weights() {
    let mut matrix = SparseMatrix::new();
    for row in [[2.0, 0.1], [1.5, 0.0], [-1.0, 1.6], [0.0, 1.8], [-1.2, -1.4], [0.0, -2.0]] {
        matrix.push_row((0..).zip(row).filter(|entry| entry.1 != 0.0));
    }
    // Classes in the order that text would have.
    let labels = Labels { names: words(&["down", "right", "up"]), ids: vec![1, 1, 2, 2, 0, 0] };
    let rows = Labelled::new(labels, matrix, None, 0);
    let of_rows = embed::train("multiclass", &[], Data::Rows(rows), None, silent()).unwrap();
    let [of_rows, of_text] = [of_rows.model, trained(&[]).model].map(|bytes| Saved::from_bytes(&bytes).unwrap());
    let (Saved::Classifier(of_rows), Saved::Classifier(of_text)) = (of_rows, of_text) else { panic!("classes") };
    assert_eq!(of_rows.labels, of_text.labels);
    assert_eq!(of_rows.weights, of_text.weights);
}

#[test]
fn rounds_are_told_and_training_stops_when_asked() {
    let told = Rc::new(RefCell::new(Vec::new()));
    let (tell, look) = (Rc::clone(&told), Rc::clone(&told));
    let hooks = Hooks {
        on_round: Box::new(move |line| tell.borrow_mut().push(line.to_owned())),
        is_over: Box::new(move || look.borrow().len() >= 2),
    };
    let options = words(&["--relative-gap", "1e-12", "--solver", "one-slack"]);
    let trained = embed::train("multiclass", &options, Data::Text(TEXT.to_vec()), None, hooks).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&trained.summary).unwrap();
    assert_eq!(summary["status"], "interrupted");
    let told = told.borrow();
    assert!((2..=3).contains(&told.len()), "{} rounds", told.len());
    let first: serde_json::Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(first["round"], 1);
}

#[test]
fn what_is_wrong_is_told_as_the_program_tells_it() {
    let text = || Data::Text(TEXT.to_vec());
    let what = usage(embed::train("multiclass", &words(&["--max-passe", "3"]), text(), None, silent()));
    assert!(what.contains("--max-passe") && !what.contains("Usage"), "{what}");
    let what = usage(embed::train("multiclass", &words(&["--rho", "1"]), text(), None, silent()));
    assert!(what.contains("--rho"), "{what}");
    let bad = Data::Text(b"a 1:1\nb 0:1\n".to_vec());
    match embed::train("multiclass", &[], bad, None, silent()) {
        Err(Failure::Data(what)) => assert!(what.starts_with("data:2: "), "{what}"),
        other => panic!("{other:?}"),
    }
    // Nothing of a run that failed is left for the next one.
    assert_eq!(trained(&[]).notes, Vec::<String>::new());
}

#[test]
fn data_are_generated_as_the_program_does_and_options_are_told() {
    let options = words(&["--examples", "5", "--seed", "3"]);
    let written = embed::generate("binary", &options).unwrap();
    assert_eq!(written.output, embed::generate("binary", &options).unwrap().output);
    assert_eq!(String::from_utf8(written.output).unwrap().lines().count(), 5);
    let declared = embed::options("train");
    let solver = declared.iter().find(|option| option.name == "solver").unwrap();
    assert!(solver.takes_value && solver.values.contains(&"gdmm".to_owned()));
    assert!(declared.iter().any(|option| option.name == "forbid" && option.is_repeated));
}

/// Sentences that are no text make the model of their text; weights belong to tasks that have them.
#[test]
fn sentences_and_weights() {
    let mut assembly = Assembly::default();
    for (tag, name) in [("A", "x"), ("B", "y")] {
        assembly.begin_token(tag).unwrap();
        assembly.feature(name.as_bytes(), 1.0).unwrap();
        assembly.end_token();
    }
    assert!(assembly.end_sentence());
    let sentences = Data::Sentences(Box::new(assembly.settle().unwrap()));
    let options = words(&["--format", "crfsuite"]);
    let text = || Data::Text(b"A\tx\nB\ty\n\n".to_vec());
    let primal = |trained: embed::Trained| {
        let summary: serde_json::Value = serde_json::from_str(&trained.summary).unwrap();
        summary["primal"].as_f64().unwrap()
    };
    let of_text = primal(embed::train("tag", &options, text(), None, silent()).unwrap());
    assert_eq!(primal(embed::train("tag", &options, sentences, None, silent()).unwrap()), of_text);
    let light = primal(embed::train("tag", &options, text(), Some(vec![0.01]), silent()).unwrap());
    assert!(light < of_text, "{light} is not less than {of_text}");
    assert!(embed::train("tag", &options, text(), Some(vec![1.0; 2]), silent()).is_err());
    assert!(embed::train("multiclass", &[], Data::Text(TEXT.to_vec()), Some(vec![1.0]), silent()).is_err());
}
