//! A taxonomy as text, `CHILD PARENT` a line, and features of classes, `CLASS ATTRIBUTE[:VALUE] ...` a line.
//!
//! Words are separated by blanks or tabs; `#` starts a comment. A child with several lines has several parents. There is one
//! node without a parent, the root: two of them are as a rule a name that is spelled in two ways, so no root above them is
//! made up.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use crate::data::blocks::shown;
use crate::data::input::Input;
use crate::data::labels::{Lookup, value};
use crate::data::svmlight::Labelled;
use crate::error::{Error, Result};
use crate::tasks::taxonomy::{ClassFeatures, Flaw, Hierarchy};

/// Names in a message, at most.
const SHOWN: usize = 8;

/// Calls `take` with the number and the words of each line that has some.
fn each_line(input: Input<'_>, mut take: impl FnMut(u64, &[&str]) -> std::result::Result<(), String>) -> Result<()> {
    let name = input.name().to_owned();
    let bad = |line: u64, what: String| Error::Parse { name: name.clone(), line, what };
    let (mut reader, mut bytes, mut number) = (BufReader::new(input), Vec::new(), 0);
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(|source| Error::io(&name, source))? == 0 {
            return Ok(());
        }
        number += 1;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(bad(number, format!("not UTF-8 text: {}", shown(&bytes))));
        };
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let text = text.split('#').next().unwrap_or_default();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if !words.is_empty() {
            take(number, &words).map_err(|what| bad(number, what))?;
        }
    }
}

/// Reads a tree or lattice.
pub fn read(input: Input<'_>) -> Result<Hierarchy> {
    let name = input.name().to_owned();
    let bad = |line: u64, what: String| Error::Parse { name: name.clone(), line, what };
    let (mut names, mut numbers) = (Vec::new(), HashMap::new());
    let (mut edges, mut lines) = (Vec::new(), Vec::new());
    each_line(input, |line, words| {
        let &[child, parent] = words else {
            let count = words.len();
            let noun = if count == 1 { "word" } else { "words" };
            return Err(format!("{count} {noun} (a line is CHILD PARENT; the root has no line of its own)"));
        };
        let [child, parent] = [child, parent].map(|word: &str| {
            *numbers.entry(word.to_owned()).or_insert_with(|| {
                names.push(word.to_owned());
                names.len() as u32 - 1
            })
        });
        edges.push((child, parent));
        lines.push(line);
        Ok(())
    })?;
    Hierarchy::new(&names, &edges).map_err(|flaw| {
        let line_of = |child: u32, parent: Option<u32>| {
            let is_it = |edge: &&(u32, u32)| edge.0 == child && parent.is_none_or(|parent| edge.1 == parent);
            edges.iter().zip(&lines).find(|(edge, _)| is_it(edge)).map_or(1, |edge| *edge.1)
        };
        match flaw {
            Flaw::Empty => bad(1, "has no lines CHILD PARENT".to_owned()),
            Flaw::Twice { edge, first } => {
                let (child, parent) = edges[edge];
                let words = format!("'{}' below '{}'", names[child as usize], names[parent as usize]);
                bad(lines[edge], format!("{words} stands on line {} already", lines[first]))
            }
            Flaw::Cycle(nodes) => {
                let line = line_of(nodes[0], Some(nodes[1 % nodes.len()]));
                let way = chain(
                    &nodes.iter().chain(&nodes[..1]).map(|&node| names[node as usize].as_str()).collect::<Vec<_>>(),
                );
                bad(line, format!("a cycle, each below the next: {way}"))
            }
            Flaw::Roots(roots) => {
                let shown: Vec<String> =
                    roots.iter().take(SHOWN).map(|&root| format!("'{}'", names[root as usize])).collect();
                let more = if roots.len() > SHOWN { ", ..." } else { "" };
                // The last: a misspelled parent comes after the true root as a rule.
                let of_root = |edge: &(u32, u32)| roots.last().is_some_and(|&root| edge.1 == root);
                let line = edges.iter().zip(&lines).find(|(edge, _)| of_root(edge)).map_or(1, |edge| *edge.1);
                let what = format!(
                    "{} roots, {}{more} (there must be one; put them below a common one, with lines such as {} ROOT)",
                    roots.len(),
                    shown.join(", "),
                    names[roots[0] as usize]
                );
                bad(line, what)
            }
            Flaw::TooDeep => bad(1, "all nodes' ancestors together are more than 2^26: is it a taxonomy?".to_owned()),
        }
    })
}

/// `a -> b -> ... -> a`
fn chain(names: &[&str]) -> String {
    let count = names.len();
    let cut = |(at, name): (usize, &&str)| match at {
        _ if count <= 2 * SHOWN || at < SHOWN || at + SHOWN >= count => Some((*name).to_owned()),
        SHOWN => Some("...".to_owned()),
        _ => None,
    };
    names.iter().enumerate().filter_map(cut).collect::<Vec<_>>().join(" -> ")
}

/// The node of each example's label. `name`: the file, for errors.
pub fn nodes(examples: &Labelled, hierarchy: &Hierarchy, name: &str) -> Result<Vec<u32>> {
    let of_ids = known_nodes(examples, hierarchy);
    let node = |(example, &id): (usize, &u32)| {
        of_ids[id as usize].ok_or_else(|| {
            let label = &examples.labels.names[id as usize];
            let what = format!("label '{label}' is no node of the taxonomy (add a line '{label} PARENT' to it)");
            Error::Parse { name: name.to_owned(), line: examples.line(example), what }
        })
    };
    examples.labels.ids.iter().enumerate().map(node).collect()
}

/// The node of each distinct label; None where there is none. Beside words a hierarchy may have numbers for names: `+1` is the node
/// `1`, where no other name has that value.
pub fn known_nodes(examples: &Labelled, hierarchy: &Hierarchy) -> Vec<Option<u32>> {
    let (names, lookup) = (hierarchy.names(), Lookup::new(hierarchy.names()));
    let bits = |word: &str| value(word).map(|value| (value + 0.0).to_bits());
    let labels = &examples.labels.names;
    let mut by_value: HashMap<u64, Option<u32>> = HashMap::new();
    if labels.iter().any(|label| lookup.exact(label).is_none() && value(label).is_some()) {
        for (node, bits) in (0..).zip(names).filter_map(|(node, name)| Some((node, bits(name)?))) {
            by_value.entry(bits).and_modify(|only| *only = None).or_insert(Some(node));
        }
    }
    let of_number = |label: &str| by_value.get(&bits(label)?).copied().flatten();
    labels.iter().map(|label| lookup.exact(label).or_else(|| of_number(label))).collect()
}

/// Reads what a user says of these classes, nodes of the hierarchy. Returns it with the number of other nodes that have
/// features: these are left out.
pub fn read_class_features(input: Input<'_>, hierarchy: &Hierarchy, classes: &[u32]) -> Result<(ClassFeatures, usize)> {
    let (name, lookup) = (input.name().to_owned(), Lookup::new(hierarchy.names()));
    let (mut attributes, mut numbers) = (Vec::new(), HashMap::new());
    let mut rows: Vec<Option<Vec<(u32, f64)>>> = vec![None; classes.len()];
    let (mut others, mut last) = (Vec::new(), 1);
    each_line(input, |line, words| {
        last = line;
        let class = words[0];
        let node = lookup.exact(class).ok_or_else(|| format!("class '{class}' is no node of the taxonomy"))?;
        let mut row = Vec::with_capacity(words.len() - 1);
        let place = classes.binary_search(&node).ok();
        for word in &words[1..] {
            let (attribute, value) = attribute(word)?;
            if place.is_none() || value == 0.0 {
                continue;
            }
            let number = *numbers.entry(attribute.to_owned()).or_insert_with(|| {
                attributes.push(attribute.to_owned());
                attributes.len() as u32 - 1
            });
            row.push((number, value));
        }
        row.sort_by_key(|e| e.0);
        if let Some(pair) = row.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("attribute '{}' appears twice", attributes[pair[0].0 as usize]));
        }
        let is_again = match place {
            Some(place) => rows[place].replace(row).is_some(),
            None => {
                others.contains(&node) || {
                    others.push(node);
                    false
                }
            }
        };
        if is_again { Err(format!("class '{class}' has a line already")) } else { Ok(()) }
    })?;
    let bad = |what: String| Error::Parse { name: name.clone(), line: last, what };
    let word = |class: usize| &hierarchy.names()[classes[class] as usize];
    if let Some(missing) = rows.iter().position(Option::is_none) {
        let what = format!("class '{}' of the data has no line (CLASS ATTRIBUTE[:VALUE] ...)", word(missing));
        return Err(bad(what));
    }
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    if attributes.is_empty() {
        return Err(bad("no class has an attribute".to_owned()));
    }
    let mut seen = HashMap::new();
    for (class, row) in rows.iter().enumerate() {
        let key: Vec<(u32, u64)> = row.iter().map(|&(attribute, value)| (attribute, value.to_bits())).collect();
        if let Some(first) = seen.insert(key, class) {
            let what = "have the same features, and nothing could tell them apart (give one an attribute of its own)";
            return Err(bad(format!("classes '{}' and '{}' {what}", word(first), word(class))));
        }
    }
    Ok((ClassFeatures { attributes, rows }, others.len()))
}

/// `ATTRIBUTE` or `ATTRIBUTE:VALUE`
fn attribute(word: &str) -> std::result::Result<(&str, f64), String> {
    let Some((attribute, value)) = word.rsplit_once(':') else { return Ok((word, 1.0)) };
    match value.parse::<f64>() {
        Ok(value) if value.is_finite() && !attribute.is_empty() => Ok((attribute, value)),
        _ => Err(format!("'{word}' (an attribute is NAME or NAME:VALUE, the value a finite number)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::svmlight::{self, LabelRule};
    use crate::parallel::Pool;

    fn taxonomy(text: &str) -> Result<Hierarchy> {
        read(Input::new("t", text.as_bytes()).unwrap())
    }

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.expect_err("an error").to_string()
    }

    const TREE: &str =
        "\u{feff}# animals\nmammal\tanimal # a comment\r\n\nbird animal\ncat mammal\ndog mammal\nsparrow bird\n";

    #[test]
    fn a_tree_is_read() {
        let tree = taxonomy(TREE).unwrap();
        assert_eq!(tree.names(), ["animal", "bird", "sparrow", "mammal", "cat", "dog"]);
        // A node with one child is one as any other.
        assert_eq!((tree.height(1), tree.height(0), tree.is_tree()), (1, 2, true));
        assert!(!taxonomy("a r\nb r\nc a\nc b\n").unwrap().is_tree());
    }

    #[test]
    fn labels_are_nodes_by_name_or_by_number() {
        let tree = taxonomy("1 r\n2 r\n03 2\n3.0 2\n").unwrap();
        let text = "1 1:1\n+1 1:1\n2.0 1:1\n3 1:1\n03 1:1\nx 1:1\n";
        let input = Input::new("t", text.as_bytes()).unwrap();
        let examples = svmlight::read(input, LabelRule::Required, &Pool::new(1).unwrap()).unwrap();
        let names: Vec<_> =
            known_nodes(&examples, &tree).into_iter().map(|node| Some(tree.names()[node? as usize].as_str())).collect();
        // Two nodes are the number 3.
        assert_eq!(names, [Some("1"), Some("1"), Some("2"), None, Some("03"), None]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("", "t:1: has no lines CHILD PARENT"),
            ("a r\nb\n", "t:2: 1 word (a line is CHILD PARENT; the root has no line of its own)"),
            ("a r\nb r x\n", "t:2: 3 words (a line is CHILD PARENT; the root has no line of its own)"),
            ("a r\nb r\n\na r\n", "t:4: 'a' below 'r' stands on line 1 already"),
            ("a r\nb c\nc d\nd b\n", "t:2: a cycle, each below the next: b -> c -> d -> b"),
            ("a r\nb b\n", "t:2: a cycle, each below the next: b -> b"),
            ("a b\nb a\n", "t:1: a cycle, each below the next: a -> b -> a"),
            (
                "a r\nb r\nc R\n",
                "t:3: 2 roots, 'r', 'R' (there must be one; put them below a common one, with lines such as r ROOT)",
            ),
        ] {
            assert_eq!(message(taxonomy(text)), expected);
        }
        let latin = Input::new("t", &b"a r\n\xe4 r\n"[..]).unwrap();
        assert!(message(read(latin)).starts_with("t:2: not UTF-8 text"));
    }

    fn labelled(text: &str) -> Labelled {
        svmlight::read(Input::new("d", text.as_bytes()).unwrap(), LabelRule::Required, &Pool::new(1).unwrap()).unwrap()
    }

    #[test]
    fn labels_are_nodes() {
        let tree = taxonomy(TREE).unwrap();
        // An inner node may be a class.
        let found = nodes(&labelled("cat 1:1\nbird 1:1\ncat 2:1\n"), &tree, "d").unwrap();
        assert_eq!(found, [4, 1, 4]);
        let said = message(nodes(&labelled("cat 1:1\n\nfish 1:1\n"), &tree, "d"));
        assert_eq!(said, "d:3: label 'fish' is no node of the taxonomy (add a line 'fish PARENT' to it)");
        let numbers = taxonomy("1 0\n2 0\n").unwrap();
        assert_eq!(nodes(&labelled("+1 1:1\n2.0 1:1\n"), &numbers, "d").unwrap(), [1, 2]);
    }

    fn features(text: &str) -> Result<(ClassFeatures, usize)> {
        let tree = taxonomy(TREE).unwrap();
        read_class_features(Input::new("f", text.as_bytes()).unwrap(), &tree, &[2, 4, 5])
    }

    #[test]
    fn features_of_classes() {
        let (found, others) =
            features("dog legs:4 barks\nsparrow legs:2 flies # small\nbird flies\ncat legs:4 sings:0\n").unwrap();
        assert_eq!(found.attributes, ["legs", "barks", "flies"]);
        assert_eq!(found.rows, [vec![(0, 2.0), (2, 1.0)], vec![(0, 4.0)], vec![(0, 4.0), (1, 1.0)]]);
        assert_eq!(others, 1);
        for (text, expected) in [
            ("cat legs:4\nfish swims\n", "f:2: class 'fish' is no node of the taxonomy"),
            ("cat legs:4 x legs:2\n", "f:1: attribute 'legs' appears twice"),
            ("cat legs:four\n", "f:1: 'legs:four' (an attribute is NAME or NAME:VALUE, the value a finite number)"),
            ("cat legs:inf\n", "f:1: 'legs:inf' (an attribute is NAME or NAME:VALUE, the value a finite number)"),
            ("cat a\ncat b\n", "f:2: class 'cat' has a line already"),
            ("cat a\ndog b\n", "f:2: class 'sparrow' of the data has no line (CLASS ATTRIBUTE[:VALUE] ...)"),
            (
                "cat a\ndog a\nsparrow b\n",
                "f:3: classes 'cat' and 'dog' have the same features, and nothing could tell them apart (give one an attribute of its own)",
            ),
            ("cat\ndog\nsparrow\n", "f:3: no class has an attribute"),
        ] {
            assert_eq!(message(features(text)), expected);
        }
    }
}
