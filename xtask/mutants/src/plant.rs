//! Plants mutants in a source file, each as a branch that is taken only when the mutant is switched on.
//!
//! `a < b` becomes `(if crate::planted(7) { (a) <= (b) } else { a < b })`. A mutant within a constant cannot be
//! switched, and is left out.

use crate::list::{Genre, Mutant};
use std::collections::BTreeMap;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A source file with planted mutants.
pub struct Planted {
    pub text: String,
    /// Position in `text` of each branch, or of the whole expression, and the mutant. Later ranges lie within earlier
    /// ones or behind them.
    pub places: Vec<(Range<usize>, u32)>,
}

/// Part of the text that replaces an expression.
enum Piece {
    Text(String),
    /// Original text.
    Original(Range<usize>),
    /// Original text with the mutants planted in it.
    Planted(Range<usize>),
    Begin,
    /// The end of the text that belongs to a mutant.
    End(u32),
}

struct Edit {
    range: Range<usize>,
    pieces: Vec<Piece>,
}

/// Plants mutants in a source file; returns an error if it cannot be parsed.
pub fn plant(source: &str, mutants: &[&Mutant]) -> Result<Planted, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let lines = Lines::new(source);
    let mut by_start: BTreeMap<usize, Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        let start = lines.offset(mutant.line, mutant.column - 1);
        by_start.entry(start).or_default().push(mutant);
    }
    let mut finder = Finder {
        lines,
        by_start,
        edits: Vec::new(),
    };
    finder.visit_file(&file);
    let mut edits = finder.edits;
    edits.sort_by_key(|edit| {
        (
            edit.range.start,
            edit.range.end != edit.range.start,
            usize::MAX - edit.range.end,
        )
    });
    let mut out = Planted {
        text: String::new(),
        places: Vec::new(),
    };
    render(source, &edits, 0..source.len(), &mut out);
    Ok(out)
}

/// Appends a range of the source, with the edits in it.
fn render(source: &str, edits: &[Edit], range: Range<usize>, out: &mut Planted) {
    let mut at = range.start;
    let mut rest = edits;
    while let Some((edit, later)) = rest.split_first() {
        rest = later;
        if edit.range.start < at || edit.range.end > range.end {
            continue;
        }
        out.text.push_str(&source[at..edit.range.start]);
        at = edit.range.end;
        let inner = later
            .iter()
            .take_while(|other| other.range.start < edit.range.end)
            .count();
        let mut begun = Vec::new();
        for piece in &edit.pieces {
            match piece {
                Piece::Text(text) => out.text.push_str(text),
                Piece::Original(range) => out.text.push_str(&source[range.clone()]),
                Piece::Planted(range) => render(source, &later[..inner], range.clone(), out),
                Piece::Begin => begun.push(out.text.len()),
                Piece::End(id) => {
                    let start = begun.pop().unwrap_or(out.text.len());
                    out.places.push((start..out.text.len(), *id));
                }
            }
        }
        rest = &later[inner..];
    }
    out.text.push_str(&source[at..range.end]);
}

/// Offsets of the lines of a text.
struct Lines<'a> {
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a str) -> Self {
        let mut start = 0;
        let lines = source.split_inclusive('\n').map(|line| {
            start += line.len();
            (start - line.len(), line)
        });
        Lines {
            lines: lines.collect(),
        }
    }

    /// Returns the offset of a line, counted from 1, and of a character in it, counted from 0.
    fn offset(&self, line: usize, column: usize) -> usize {
        let (start, text) = self.lines[line - 1];
        let within = text
            .char_indices()
            .nth(column)
            .map_or(text.len(), |(at, _)| at);
        start + within
    }

    fn range(&self, node: &impl Spanned) -> Range<usize> {
        let span = node.span();
        let (start, end) = (span.start(), span.end());
        self.offset(start.line, start.column)..self.offset(end.line, end.column)
    }
}

/// Finds the expressions of the mutants.
struct Finder<'a> {
    lines: Lines<'a>,
    by_start: BTreeMap<usize, Vec<&'a Mutant>>,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn at(&self, start: usize, genre: Genre) -> Vec<(u32, String)> {
        let mutants = self.by_start.get(&start).into_iter().flatten();
        let mutants = mutants.filter(|mutant| mutant.genre == genre);
        mutants
            .map(|mutant| (mutant.id, mutant.replacement.clone()))
            .collect()
    }

    /// Adds branches for mutants in front of the original expression. `pieces` returns a mutant's text.
    fn branches(
        &mut self,
        range: Range<usize>,
        mutants: &[(u32, String)],
        pieces: impl Fn(&str) -> Vec<Piece>,
        original: Vec<Piece>,
    ) {
        if mutants.is_empty() {
            return;
        }
        let mut all = vec![text("(")];
        for (id, replacement) in mutants {
            all.push(Piece::Begin);
            all.push(text(&format!("if crate::planted({id}) {{ ")));
            all.extend(pieces(replacement));
            all.push(text(" } else "));
            all.push(Piece::End(*id));
        }
        all.push(text("{ "));
        all.extend(original);
        all.push(text(" })"));
        self.edits.push(Edit { range, pieces: all });
    }

    fn deleted_arm(&mut self, arm: &syn::Arm) {
        let start = self.lines.range(arm).start;
        let end = self.lines.range(&arm.pat).end;
        for (id, _) in self.at(start, Genre::MatchArm) {
            self.edits.push(Edit {
                range: end..end,
                pieces: vec![
                    Piece::Begin,
                    text(&format!(" if !crate::planted({id})")),
                    Piece::End(id),
                ],
            });
        }
    }

    fn function(&mut self, block: &syn::Block) {
        let Some(first) = block.stmts.first() else {
            return;
        };
        let start = self.lines.range(first).start;
        let mut pieces = Vec::new();
        for (id, replacement) in self.at(start, Genre::FnValue) {
            pieces.push(Piece::Begin);
            pieces.push(text(&format!(
                "if crate::planted({id}) {{ return {replacement}; }} "
            )));
            pieces.push(Piece::End(id));
        }
        if !pieces.is_empty() {
            self.edits.push(Edit {
                range: start..start,
                pieces,
            });
        }
    }
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_string())
}

/// Returns true for a chain of conditions with a `let`, whose operators cannot be in parentheses.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if node.sig.constness.is_none() {
            self.function(&node.block);
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if node.sig.constness.is_none() {
            self.function(&node.block);
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.function(block);
        }
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let mutants = self.at(self.lines.range(&node.op).start, Genre::BinaryOperator);
        if !has_let(&node.left) && !has_let(&node.right) {
            let range = self.lines.range(node);
            let (left, right) = (
                self.lines.range(&*node.left),
                self.lines.range(&*node.right),
            );
            let is_assignment = matches!(
                node.op,
                syn::BinOp::AddAssign(_)
                    | syn::BinOp::SubAssign(_)
                    | syn::BinOp::MulAssign(_)
                    | syn::BinOp::DivAssign(_)
                    | syn::BinOp::RemAssign(_)
                    | syn::BinOp::BitXorAssign(_)
                    | syn::BinOp::BitAndAssign(_)
                    | syn::BinOp::BitOrAssign(_)
                    | syn::BinOp::ShlAssign(_)
                    | syn::BinOp::ShrAssign(_)
            );
            let pieces = |op: &str| {
                let (open, middle) = match is_assignment {
                    true => ("", format!(" {op} (")),
                    false => ("(", format!(") {op} (")),
                };
                vec![
                    text(open),
                    Piece::Original(left.clone()),
                    text(&middle),
                    Piece::Original(right.clone()),
                    text(")"),
                ]
            };
            self.branches(range.clone(), &mutants, pieces, vec![Piece::Planted(range)]);
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let range = self.lines.range(node);
        let mutants = self.at(range.start, Genre::UnaryOperator);
        let operand = self.lines.range(&*node.expr);
        let pieces = |_: &str| vec![Piece::Original(operand.clone())];
        self.branches(range.clone(), &mutants, pieces, vec![Piece::Planted(range)]);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let is_wild = |arm: &syn::Arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none();
        // Without this arm, the others are needed.
        if node.arms.iter().any(is_wild) {
            for arm in &node.arms {
                self.deleted_arm(arm);
            }
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Some((_, guard)) = node.guard.as_ref().filter(|(_, guard)| !has_let(guard)) {
            let range = self.lines.range(&**guard);
            let mut pieces = Vec::new();
            for (id, value) in self.at(range.start, Genre::MatchArmGuard) {
                pieces.push(Piece::Begin);
                pieces.push(text(&match value.as_str() {
                    "true" => format!("crate::planted({id}) || "),
                    _ => format!("!crate::planted({id}) && "),
                }));
                pieces.push(Piece::End(id));
            }
            if !pieces.is_empty() {
                // `true || false && guard`, in the order in which they are listed.
                pieces.insert(0, text("("));
                pieces.push(text("("));
                pieces.push(Piece::Planted(range.clone()));
                pieces.push(text("))"));
                self.edits.push(Edit { range, pieces });
            }
        }
        visit::visit_arm(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        if let Some(rest) = &node.rest {
            let base = self.lines.range(&**rest);
            for field in &node.fields {
                let range = self.lines.range(field);
                let mutants = self.at(range.start, Genre::StructField);
                let syn::Member::Named(name) = &field.member else {
                    continue;
                };
                if field.colon_token.is_none() {
                    continue;
                }
                let pieces = |_: &str| {
                    vec![
                        text("("),
                        Piece::Original(base.clone()),
                        text(&format!(").{name}")),
                    ]
                };
                let value = self.lines.range(&field.expr);
                self.branches(value.clone(), &mutants, pieces, vec![Piece::Planted(value)]);
            }
        }
        visit::visit_expr_struct(self, node);
    }

    // Constants, in which no mutant can be switched.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(id: u32, at: (usize, usize), genre: Genre, replacement: &str) -> Mutant {
        Mutant {
            id,
            name: String::new(),
            file: String::new(),
            function: String::new(),
            lines: None,
            key: String::new(),
            line: at.0,
            column: at.1,
            genre,
            replacement: replacement.to_string(),
        }
    }

    #[test]
    fn an_operator_becomes_a_branch_with_the_original_operands() {
        let source = "fn f(a: u8, b: u8) -> bool {\n    a + b < !b\n}\n";
        let mutants = [
            mutant(1, (2, 5), Genre::FnValue, "true"),
            mutant(2, (2, 7), Genre::BinaryOperator, "-"),
            mutant(3, (2, 11), Genre::BinaryOperator, "<="),
            mutant(4, (2, 13), Genre::UnaryOperator, ""),
        ];
        let planted = plant(source, &mutants.iter().collect::<Vec<_>>()).expect("it is valid");
        let expected = "fn f(a: u8, b: u8) -> bool {\n    if crate::planted(1) { return true; } \
                        (if crate::planted(3) { (a + b) <= (!b) } else { \
                        (if crate::planted(2) { (a) - (b) } else { a + b }) < \
                        (if crate::planted(4) { b } else { !b }) })\n}\n";
        assert_eq!(planted.text, expected);
        let ids: Vec<u32> = planted.places.iter().map(|(_, id)| *id).collect();
        assert_eq!(ids, [1, 3, 2, 4]);
    }

    #[test]
    fn arms_and_guards_get_conditions_and_constants_stay() {
        let source = "const A: u8 = 1 + 2;\nfn f(a: u8) {\n    match a {\n        1 => (),\n        b if b > 3 => (),\n        _ => (),\n    }\n}\n";
        let mutants = [
            mutant(1, (1, 17), Genre::BinaryOperator, "-"),
            mutant(2, (4, 9), Genre::MatchArm, ""),
            mutant(3, (5, 14), Genre::MatchArmGuard, "true"),
            mutant(4, (5, 14), Genre::MatchArmGuard, "false"),
        ];
        let planted = plant(source, &mutants.iter().collect::<Vec<_>>()).expect("it is valid");
        assert!(planted.text.starts_with("const A: u8 = 1 + 2;\n"));
        assert!(planted.text.contains("1 if !crate::planted(2) => ()"));
        assert!(
            planted
                .text
                .contains("b if (crate::planted(3) || !crate::planted(4) && (b > 3)) => ()")
        );
    }
}
