//! Where code can be changed in a small way, and the switches that do so.
//!
//! A mutant is the code with one small change: `<=` for `<`, a condition negated, a function that returns at once. Its switch leaves
//! the code as it is until the mutant is chosen. Switches are put *around* code (`a < b` becomes `crate::mutants::of!(7, a, <, <=,
//! b)`), so they nest, and every line stays where it is. Constants, patterns, types and what other macros are given are not changed.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use proc_macro2::Span;
use serde::{Deserialize, Serialize};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprConst, ExprIf, ExprMacro, ExprRepeat,
    ExprUnary, ExprWhile, GenericArgument, ImplItemConst, ImplItemFn, ItemConst, ItemEnum, ItemFn,
    ItemMod, ItemStatic, Pat, PathArguments, ReturnType, Signature, TraitItemConst, TraitItemFn,
    Type, UnOp,
};

/// The operator in place of another one.
const INSTEAD: [(&str, &str); 12] = [
    ("&&", "||"),
    ("||", "&&"),
    ("==", "!="),
    ("!=", "=="),
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("+", "-"),
    ("-", "+"),
    ("+=", "-="),
    ("-=", "+="),
];

/// The code with one small change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mutant {
    /// The number of its switch.
    pub(crate) id: u32,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The first and the last line that its switch is around.
    #[serde(skip)]
    pub(crate) lines: (usize, usize),
    /// What is changed, and the line in which it is.
    pub(crate) change: String,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.change
        )
    }
}

/// The source of a file with a switch for each of its mutants, which are added to `mutants`. Those left out have none.
pub(crate) fn with_switches(
    file: &str,
    source: &str,
    left_out: &BTreeSet<u32>,
    mutants: &mut Vec<Mutant>,
) -> syn::Result<String> {
    let mut switches = Switches {
        file,
        source,
        left_out,
        mutants,
        edits: Vec::new(),
    };
    switches.visit_file(&syn::parse_file(source)?);
    let mut edits = switches.edits;
    // Stable: what is visited first comes first where several are at one place.
    edits.sort_by_key(|(place, _)| place.start);
    let (mut text, mut end) = (String::new(), 0);
    for (place, new) in edits {
        text.push_str(&source[end..place.start]);
        text.push_str(&new);
        end = place.end;
    }
    text.push_str(&source[end..]);
    Ok(text)
}

struct Switches<'a> {
    file: &'a str,
    source: &'a str,
    left_out: &'a BTreeSet<u32>,
    mutants: &'a mut Vec<Mutant>,
    /// What to replace, and by what.
    edits: Vec<(Range<usize>, String)>,
}

impl Switches<'_> {
    /// Adds the mutant of a switch around `whole` that changes something `at` a place in it; returns its number if it has a switch.
    fn mutant(&mut self, whole: Span, at: Span, change: &str) -> Option<u32> {
        let id = u32::try_from(self.mutants.len()).ok()? + 1;
        let start = at.start();
        let line = self.source.lines().nth(start.line - 1)?;
        self.mutants.push(Mutant {
            id,
            file: self.file.to_owned(),
            line: start.line,
            column: start.column + 1,
            lines: (whole.start().line, whole.end().line),
            change: format!("{change}: {}", line.trim()),
        });
        (!self.left_out.contains(&id)).then_some(id)
    }

    /// Puts a switch around code, if there is a mutant to choose.
    fn switch(&mut self, mutant: Option<u32>, whole: Span, inner: impl FnOnce(&mut Self)) {
        let Some(mutant) = mutant else {
            return inner(self);
        };
        let Range { start, end } = whole.byte_range();
        let switch = format!("crate::mutants::of!({mutant}, ");
        self.edits.push((start..start, switch));
        inner(self);
        self.edits.push((end..end, ")".to_owned()));
    }

    fn negated(&mut self, whole: Span, inner: impl FnOnce(&mut Self)) {
        let mutant = self.mutant(whole, whole, "negated");
        self.switch(mutant, whole, inner);
    }

    /// Visits what is certainly a condition. Comparisons and what is negated have switches of their own.
    fn condition(&mut self, it: &Expr) {
        match it {
            Expr::Paren(it) => self.condition(&it.expr),
            Expr::Call(_) | Expr::Field(_) | Expr::MethodCall(_) | Expr::Path(_) => {
                self.negated(it.span(), |this| this.visit_expr(it));
            }
            _ => self.visit_expr(it),
        }
    }

    /// Visits one side of an operator.
    fn side(&mut self, is_condition: bool, it: &Expr) {
        if is_condition {
            self.condition(it);
        } else {
            self.visit_expr(it);
        }
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if signature.constness.is_some() || is_of_tests(attributes) {
            return;
        }
        let start = block.brace_token.span.open();
        let name = signature.ident.span();
        let empty = block.stmts.is_empty();
        for value in returned(&signature.output).iter().filter(|_| !empty) {
            let whole = name.join(start).unwrap_or(name);
            let change = match value {
                &"" => "returns at once".to_owned(),
                value => format!("returns `{value}` at once"),
            };
            if let Some(mutant) = self.mutant(whole, name, &change) {
                let end = start.byte_range().end;
                let switch = format!(" if crate::mutants::is({mutant}) {{ return {value}; }}");
                self.edits.push((end..end, switch));
            }
        }
        self.visit_block(block);
    }
}

/// What a function may return at once.
fn returned(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, output) = output else {
        return &[""];
    };
    let Type::Path(path) = &**output else {
        return &[];
    };
    let Some(last) = path.path.segments.last() else {
        return &[];
    };
    match &*last.ident.to_string() {
        "bool" => &["true", "false"],
        "Option" => &["None"],
        "Result" if is_of_nothing(&last.arguments) => &["Ok(())"],
        "String" => &["String::new()"],
        "Vec" => &["Vec::new()"],
        _ => &[],
    }
}

/// Whether the first generic argument is `()`.
fn is_of_nothing(arguments: &PathArguments) -> bool {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return false;
    };
    matches!(arguments.args.first(), Some(GenericArgument::Type(Type::Tuple(it))) if it.elems.is_empty())
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    let mut lists = attributes
        .iter()
        .filter_map(|it| it.meta.require_list().ok());
    lists.any(|it| it.path.is_ident("cfg") && it.tokens.to_string() == "test")
}

/// Whether names are bound in a chain of `&&`, which then can be nothing else.
fn binds(it: &Expr) -> bool {
    match it {
        Expr::Let(_) => true,
        Expr::Binary(it) => binds(&it.left) || binds(&it.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Switches<'_> {
    fn visit_expr_binary(&mut self, it: &'ast ExprBinary) {
        let (whole, at) = (it.span(), it.op.span());
        let operator = &self.source[at.byte_range()];
        let is_lazy = matches!(it.op, BinOp::And(_) | BinOp::Or(_));
        let is_fixed = is_lazy && (binds(&it.left) || binds(&it.right));
        let instead = INSTEAD
            .iter()
            .find(|(old, _)| *old == operator && !is_fixed);
        let mutant =
            instead.and_then(|(old, new)| self.mutant(whole, at, &format!("`{new}` for `{old}`")));
        let operators = match instead {
            Some((old, new)) if !is_lazy => format!(", {old}, {new},"),
            _ => format!(", {operator},"),
        };
        self.switch(mutant, whole, |this| {
            this.side(is_lazy, &it.left);
            if mutant.is_some() {
                this.edits.push((at.byte_range(), operators));
            }
            this.side(is_lazy, &it.right);
        });
    }

    fn visit_expr_unary(&mut self, it: &'ast ExprUnary) {
        if let UnOp::Not(_) = it.op {
            self.negated(it.span(), |this| this.visit_expr(&it.expr));
        } else {
            self.visit_expr(&it.expr);
        }
    }

    fn visit_expr_macro(&mut self, it: &'ast ExprMacro) {
        if it.mac.path.is_ident("matches") {
            self.negated(it.span(), |_| ());
        }
    }

    fn visit_expr_if(&mut self, it: &'ast ExprIf) {
        self.condition(&it.cond);
        self.visit_block(&it.then_branch);
        if let Some((_, otherwise)) = &it.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, it: &'ast ExprWhile) {
        self.condition(&it.cond);
        self.visit_block(&it.body);
    }

    fn visit_arm(&mut self, it: &'ast Arm) {
        if let Some((_, guard)) = &it.guard {
            self.condition(guard);
        }
        self.visit_expr(&it.body);
    }

    fn visit_expr_repeat(&mut self, it: &'ast ExprRepeat) {
        self.visit_expr(&it.expr);
    }

    fn visit_item_fn(&mut self, it: &'ast ItemFn) {
        self.function(&it.attrs, &it.sig, &it.block);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast ImplItemFn) {
        self.function(&it.attrs, &it.sig, &it.block);
    }

    fn visit_trait_item_fn(&mut self, it: &'ast TraitItemFn) {
        if let Some(block) = &it.default {
            self.function(&it.attrs, &it.sig, block);
        }
    }

    fn visit_item_mod(&mut self, it: &'ast ItemMod) {
        if !is_of_tests(&it.attrs) {
            visit::visit_item_mod(self, it);
        }
    }

    // What the compiler works out, and patterns: nothing can be chosen there while the program runs.

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast GenericArgument) {}
    fn visit_impl_item_const(&mut self, _: &'ast ImplItemConst) {}
    fn visit_item_const(&mut self, _: &'ast ItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast ItemEnum) {}
    fn visit_item_static(&mut self, _: &'ast ItemStatic) {}
    fn visit_trait_item_const(&mut self, _: &'ast TraitItemConst) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a function becomes, `of!` without its path.
    fn switched(source: &str) -> String {
        let text = with_switches("it.rs", source, &BTreeSet::new(), &mut Vec::new());
        text.unwrap().replace("crate::mutants::", "")
    }

    #[test]
    fn switches_are_around_what_they_change() {
        for (source, text) in [
            (
                "fn f() -> u8 { if a < b + 1 && !c { 1 } else { 2 } }",
                "fn f() -> u8 { if of!(1, of!(2, a , <, <=, of!(3, b , +, -, 1)) , &&, of!(4, !c)) { 1 } else { 2 } }",
            ),
            (
                "fn f() -> u8 { if let Some(x) = y && x.is() && z { 1 } else { 2 } }",
                "fn f() -> u8 { if let Some(x) = y && of!(1, x.is()) && of!(2, z) { 1 } else { 2 } }",
            ),
            (
                "fn f() -> Option<u8> { match x { 1 if (a) => None, _ => g(matches!(x, 2)) } }",
                "fn f() -> Option<u8> { if is(1) { return None; } match x { 1 if (of!(2, a)) => None, _ => g(of!(3, matches!(x, 2))) } }",
            ),
            ("fn f() { g(); }", "fn f() { if is(1) { return ; } g(); }"),
        ] {
            assert_eq!(switched(source), text);
        }
    }

    #[test]
    fn what_is_worked_out_before_the_program_runs_has_no_switch() {
        for source in [
            "const A: bool = B == C;",
            "const fn f() -> bool { a == b }",
            "fn f() -> u8 { const A: bool = B == C; let x: [u8; 1 + 1] = [0; 1 + 1]; 3 }",
            "#[cfg(test)] mod tests { fn f() -> bool { a == b } }",
            "#[cfg(test)] fn f() -> bool { a == b }",
        ] {
            assert_eq!(switched(source), source);
        }
    }
}
