//! What options may be: from the words of the command line to values, or what is wrong with them.

use maxmargin::kernel::Specification;
use maxmargin::tasks::taxonomy::ANCESTOR_WEIGHTS;

use maxmargin::data::alignments::Alphabet;

use super::alignments::{GapCosts, GapGrid};
use super::{ClassWeight, Ladder, PairsName};

pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        Ok(_) => Err("must be positive and finite".to_owned()),
        Err(_) => Err("must be a number".to_owned()),
    }
}

/// What ancestors of a class count for.
pub(super) fn ancestor_weight(text: &str) -> Result<f64, String> {
    let (least, most) = (ANCESTOR_WEIGHTS.start(), ANCESTOR_WEIGHTS.end());
    let weight = text.parse().ok().filter(|weight| ANCESTOR_WEIGHTS.contains(weight));
    weight.ok_or_else(|| format!("must be a number from {least} to {most}; --architecture flat leaves ancestors out"))
}

pub(super) fn kernel(text: &str) -> Result<Specification, String> {
    text.parse().map_err(|error| match error {
        maxmargin::Error::Setting { rule, .. } => rule,
        other => other.to_string(),
    })
}

pub(super) fn probability(text: &str) -> Result<f64, String> {
    positive(text).and_then(|p| if p < 1.0 { Ok(p) } else { Err("must be below 1".to_owned()) })
}

/// Squares of it must be numbers too.
pub(super) fn weight_of_slack(text: &str) -> Result<f64, String> {
    const MOST: f64 = 1e100;
    positive(text).and_then(|c| if c <= MOST { Ok(c) } else { Err("must be at most 1e100".to_owned()) })
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|s| (0.0..=1e9).contains(s)).ok_or_else(|| "must be a number from 0".to_owned())
}

pub(super) fn folds(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|k| *k >= 2).ok_or_else(|| "must be a whole number from 2".to_owned())
}

pub(super) fn ladder(text: &str) -> Result<Ladder, String> {
    if text == "auto" { Ok(Ladder::Auto) } else { given_ladder(text) }
}

pub(super) fn given_ladder(text: &str) -> Result<Ladder, String> {
    let mut values = text.split(',').map(|word| weight_of_slack(word.trim())).collect::<Result<Vec<f64>, String>>()?;
    values.sort_by(f64::total_cmp);
    match values.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("has {} twice", pair[0])),
        None => Ok(Ladder::Given(values)),
    }
}

/// A number that is at least one.
pub(crate) fn count_from_one(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be a whole number from 1".to_owned())
}

pub(super) fn markov(text: &str) -> Result<usize, String> {
    const MOST: usize = 100;
    text.parse().ok().filter(|n| *n <= MOST).ok_or_else(|| format!("must be a whole number from 0 to {MOST}"))
}

pub(super) fn tag_cost(text: &str) -> Result<(String, f64), String> {
    let (tag, cost) = text.rsplit_once('=').filter(|(tag, _)| !tag.is_empty()).ok_or("must be TAG=W")?;
    match cost.parse::<f64>() {
        Ok(cost) if (0.0..=1e9).contains(&cost) => Ok((tag.to_owned(), cost)),
        _ => Err(format!("the cost '{cost}' must be a number from 0 to 1e9")),
    }
}

pub(super) fn pairs(text: &str) -> Result<PairsName, String> {
    match (text, text.strip_prefix("top:")) {
        ("none", _) => Ok(PairsName::None),
        ("tree", _) => Ok(PairsName::Tree),
        ("all", _) => Ok(PairsName::All),
        (_, Some(n)) => at_least_one(n).map(PairsName::Top).map_err(|rule| format!("the N of top:N {rule}")),
        _ => Err("must be none, tree, top:N or all".to_owned()),
    }
}

pub(super) fn alphabet(text: &str) -> Result<Alphabet, String> {
    let letters = match text {
        "protein" => Alphabet::PROTEIN,
        "dna" => Alphabet::DNA,
        "" => return Err("has no letters".to_owned()),
        letters => letters,
    };
    Alphabet::new(letters.chars())
}

pub(super) fn gap_grid(text: &str) -> Result<GapGrid, String> {
    const MOST: f64 = 1e6;
    let cost = |word: &str| {
        positive(word.trim())
            .and_then(|cost| if cost <= MOST { Ok(cost) } else { Err(format!("at most {MOST}, not {cost:e}")) })
    };
    text.split(',').map(cost).collect::<Result<Vec<f64>, String>>().map(GapGrid)
}

pub(super) fn gap_costs(text: &str) -> Result<GapCosts, String> {
    const MOST: f64 = 1e6;
    let cost = |word: &str| match word.trim().parse::<f64>() {
        Ok(cost) if (0.0..=MOST).contains(&cost) => Ok(cost),
        _ => Err(format!("must be numbers from 0 to {MOST}, which is what gaps cost")),
    };
    let costs = text.split(',').map(cost).collect::<Result<Vec<f64>, String>>()?;
    if costs.len() > 2 { Err("must be one cost, or two".to_owned()) } else { Ok(GapCosts(costs)) }
}

/// By how much a node has to lead.
pub(crate) fn lead(text: &str) -> Result<f64, String> {
    threshold(text).ok().filter(|t| *t >= 0.0).ok_or_else(|| "must be a finite number from 0".to_owned())
}

/// What a label has to gain.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|t: &f64| t.is_finite()).ok_or_else(|| "must be a finite number".to_owned())
}

pub(super) fn bias(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() && x != 0.0 => Ok(x),
        Ok(_) => Err("must be finite in 32 bits and not 0 (leave the option out for no constant feature)".to_owned()),
        Err(_) => Err("must be a number".to_owned()),
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be a whole number from 1".to_owned())
}

/// Number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 4096;
    text.parse().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(|| format!("must be from 1 to {MOST}"))
}

pub(super) fn cache(text: &str) -> Result<u16, String> {
    match text {
        "off" => Ok(0),
        _ => text.parse().ok().filter(|f| *f > 0).ok_or_else(|| format!("must be `off` or from 1 to {}", u16::MAX)),
    }
}

pub(super) fn class_weight(text: &str) -> Result<ClassWeight, String> {
    if text == "balanced" {
        return Ok(ClassWeight::Balanced);
    }
    // Labels may contain '=', numbers do not.
    match text.rsplit_once('=') {
        Some((label, weight)) if !label.is_empty() => Ok(ClassWeight::Given(label.to_owned(), positive(weight)?)),
        _ => Err("must be LABEL=WEIGHT or `balanced`".to_owned()),
    }
}
