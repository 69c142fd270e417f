//! One line of JSON. Errors are the text of the message; the caller knows file and line.

use std::borrow::Cow;

use serde::Deserialize;

use super::{GAP, Record, Residues};
use crate::data::blocks::shown;
use crate::data::json_lines::{Sketch, explained};
use crate::data::svmlight::LabelRule;
use crate::inference::align::{Op, Path};

const SKETCH: Sketch = Sketch { noun: "record", fields: "{\"x\": \"...\", \"z\": \"...\", ...}" };

#[derive(Deserialize)]
#[serde(expecting = "an object in braces")]
struct Fields<'a> {
    #[serde(borrow)]
    x: Option<Cow<'a, str>>,
    #[serde(borrow)]
    z: Option<Cow<'a, str>>,
    #[serde(borrow)]
    ax: Option<Cow<'a, str>>,
    #[serde(borrow)]
    az: Option<Cow<'a, str>>,
    decoys: Option<Vec<String>>,
    sx: Option<String>,
    sz: Option<String>,
    sdecoys: Option<Vec<String>>,
}

/// Residues of one sequence at most: places are counted in 32 bits.
const MOST: usize = 1 << 29;

pub(super) fn parse(text: &[u8], rule: LabelRule) -> Result<Record, String> {
    // A list of all fields in their order would be read as one.
    if text.trim_ascii_start().first() == Some(&b'[') {
        return Err(format!("a list in brackets (a line is one {}, {})", SKETCH.noun, SKETCH.fields));
    }
    let fields: Fields<'_> = serde_json::from_slice(text).map_err(|error| explained(&error, text, &SKETCH))?;
    let Fields { x, z, ax, az, decoys, sx, sz, sdecoys } = fields;
    let Some(x) = x else { return Err("x missing (the native sequence, a letter for each residue)".to_owned()) };
    let decoys = decoys.unwrap_or_default();
    if let Some(marks) = &sdecoys
        && marks.len() != decoys.len()
    {
        return Err(format!("{} sdecoys for {} decoys (each needs its marks)", marks.len(), decoys.len()));
    }
    if rule == LabelRule::Required {
        let missing = [("z", z.is_none()), ("ax", ax.is_none()), ("az", az.is_none())];
        if let Some((name, _)) = missing.iter().find(|field| field.1) {
            return Err(format!(
                "{name} missing (training and evaluation need the homologue and its alignment: z, ax and az)"
            ));
        }
    }
    // First of all: a gap in x is no fault of ax.
    let (x, z) = (residues("x", x.into_owned(), sx)?, z.map(Cow::into_owned));
    let z = match (z, sz) {
        (Some(z), marks) => Some(residues("z", z, marks)?),
        (None, Some(_)) => return Err("sz without z".to_owned()),
        (None, None) => None,
    };
    let alignment = match (&ax, &az, &z) {
        (Some(ax), Some(az), Some(z)) => Some(path((ax, az), (&x.letters, &z.letters))?),
        (None, None, _) => None,
        (Some(_), Some(_), None) => return Err("ax and az without z (say what x is aligned with)".to_owned()),
        _ => return Err("one of ax and az without the other (an alignment needs both)".to_owned()),
    };
    let has_homologue = z.is_some();
    let mut candidates = Vec::with_capacity(decoys.len() + 1);
    candidates.extend(z);
    let mut marks = sdecoys.unwrap_or_default().into_iter();
    for decoy in decoys {
        candidates.push(residues("a decoy", decoy, marks.next())?);
    }
    if candidates.is_empty() {
        return Err("nothing to align x with (z, or decoys, or both)".to_owned());
    }
    if let Some(other) = candidates.iter().find(|other| other.marks.is_some() != x.marks.is_some()) {
        let (has, lacks) = if other.marks.is_some() { ("a candidate", "x") } else { ("x", "a candidate") };
        return Err(format!("{has} has marks and {lacks} has none (sx, sz and sdecoys: all, or none)"));
    }
    Ok(Record { x, candidates, has_homologue, alignment })
}

fn residues(name: &str, letters: String, marks: Option<String>) -> Result<Residues, String> {
    let count = check_letters(name, &letters)?;
    if let Some(marks) = &marks {
        let of_marks = check_letters(&format!("the marks of {name}"), marks)?;
        if of_marks != count {
            return Err(format!("{of_marks} marks for the {count} residues of {name} (one is needed for each)"));
        }
    }
    Ok(Residues { letters, marks })
}

/// Counts the letters, all of which must be such.
fn check_letters(name: &str, letters: &str) -> Result<usize, String> {
    let is_bad = |c: char| c == GAP || c.is_whitespace() || c.is_control();
    let mut count = 0;
    for (at, letter) in letters.chars().enumerate() {
        if is_bad(letter) {
            let what = shown(letter.to_string().as_bytes());
            return Err(format!(
                "{name} has {what} at place {} (letters are any but blanks and the gap, '{GAP}')",
                at + 1
            ));
        }
        count = at + 1;
    }
    if count > MOST {
        return Err(format!("{name} has {count} residues (the most is {MOST})"));
    }
    Ok(count)
}

/// The columns of an alignment.
fn path((ax, az): (&str, &str), (x, z): (&str, &str)) -> Result<Path, String> {
    let mut path = Path::default();
    let (mut x, mut z) = (x.chars(), z.chars());
    let (mut columns_x, mut columns_z) = (ax.chars(), az.chars());
    let mut at = 0_u64;
    loop {
        let (a, b) = match (columns_x.next(), columns_z.next()) {
            (None, None) => break,
            (Some(a), Some(b)) => (a, b),
            _ => return Err("ax and az have different lengths (a column has a residue or a gap of each)".to_owned()),
        };
        at += 1;
        for (name, column, sequence) in [("x", a, &mut x), ("z", b, &mut z)] {
            if column != GAP && sequence.next() != Some(column) {
                let what = shown(column.to_string().as_bytes());
                return Err(format!(
                    "a{name} has {what} in column {at}, where {name} has another residue (without its gaps, a{name} is {name})"
                ));
            }
        }
        let op = match (a == GAP, b == GAP) {
            (false, false) => Op::Match,
            (false, true) => Op::OnlyX,
            (true, false) => Op::OnlyZ,
            (true, true) => return Err(format!("column {at} of ax and az is a gap in both (leave it out)")),
        };
        path.push(op, 1);
    }
    for (name, left) in [("x", x.next()), ("z", z.next())] {
        if left.is_some() {
            return Err(format!("a{name} ends before {name} does (residues that are not aligned face gaps)"));
        }
    }
    Ok(path)
}
