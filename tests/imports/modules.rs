//! The modules of a crate, and the files that define what their paths lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Item, Meta, UseTree};

use super::circles::Imports;

/// A path of names, from the root of the crate or from another crate.
type Names = Vec<String>;

/// How many re-exports in a row are followed.
const FOLLOWED: usize = 16;

/// All modules of a crate, by their path from its root.
pub(crate) struct Modules {
    root: PathBuf,
    modules: BTreeMap<Names, Module>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// The names it defines, except modules.
    defined: BTreeSet<String>,
    /// Its imports: the local name and the path.
    imported: BTreeMap<String, Names>,
    /// The modules that it imports by glob.
    globs: Vec<Names>,
    /// Every path that it mentions, as written.
    mentioned: BTreeSet<Names>,
}

impl Modules {
    /// Reads the crate with this root file, and all modules that it declares.
    pub(crate) fn read(root: &Path) -> Self {
        let mut modules = Self {
            root: root.to_owned(),
            modules: BTreeMap::new(),
        };
        modules.read_file(root, Vec::new());
        modules
    }

    fn read_file(&mut self, file: &Path, path: Names) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.take_in(file, path, &parsed.items);
    }

    fn take_in(&mut self, file: &Path, path: Names, items: &[Item]) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let inner_path = [&path[..], std::slice::from_ref(&name)].concat();
                    match &inner.content {
                        Some((_, items)) => self.take_in(file, inner_path, items),
                        None => self.read_file(&file_of(file, &self.root, &name), inner_path),
                    }
                    continue;
                }
                Item::Use(item) => module.import(&mut Vec::new(), &item.tree),
                _ => {}
            }
            module.defined.extend(name_of(item));
            module.visit_item(item);
        }
        self.modules.insert(path, module);
    }

    /// Which files each file imports from, as paths relative to the crate's manifest.
    pub(crate) fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (path, module) in &self.modules {
            let file = self.name(&module.file);
            let imported = imports.entry(file.clone()).or_default();
            let paths = module.imported.values().chain(&module.globs);
            for used in paths.chain(&module.mentioned) {
                if let Some(home) = self.home(path, used, FOLLOWED) {
                    imported.insert(self.name(home));
                }
            }
            imported.remove(&file);
        }
        imports
    }

    /// Every path that each file mentions, with imported names resolved.
    pub(crate) fn mentions(&self) -> BTreeMap<String, BTreeSet<Names>> {
        let mut mentions: BTreeMap<String, BTreeSet<Names>> = BTreeMap::new();
        for module in self.modules.values() {
            let paths = module.imported.values().chain(&module.globs);
            let written_out = module.mentioned.iter().map(|path| {
                let imported = path.first().and_then(|first| module.imported.get(first));
                imported.map_or(path.clone(), |names| [names, &path[1..]].concat())
            });
            mentions
                .entry(self.name(&module.file))
                .or_default()
                .extend(paths.cloned().chain(written_out));
        }
        mentions
    }

    fn name(&self, file: &Path) -> String {
        let beside = self.root.parent().and_then(Path::parent);
        let name = beside.and_then(|beside| file.strip_prefix(beside).ok());
        name.unwrap_or(file).display().to_string()
    }

    /// The file that defines what a path in this module leads to; `None` if that is another crate.
    fn home(&self, module: &[String], path: &[String], follow: usize) -> Option<&Path> {
        let (mut at, mut rest) = (module.to_vec(), path);
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {}
            _ => return self.found(module, path, follow),
        }
        while rest.first().is_some_and(|name| name == "super") {
            at.pop();
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return self.modules.get(&at).map(|module| module.file.as_path());
        }
        let known = self.modules.get(&at)?;
        self.found(&at, rest, follow).or(Some(&known.file))
    }

    /// The file that defines what these names lead to, resolved in this module.
    fn found(&self, module: &[String], names: &[String], follow: usize) -> Option<&Path> {
        let known = self.modules.get(module)?;
        let (first, rest) = names.split_first()?;
        let child = [module, std::slice::from_ref(first)].concat();
        if let Some(inner) = self.modules.get(&child) {
            return match rest {
                [] => Some(&inner.file),
                _ => self.found(&child, rest, follow).or(Some(&inner.file)),
            };
        }
        if known.defined.contains(first) {
            return Some(&known.file);
        }
        let follow = follow.checked_sub(1)?;
        if let Some(imported) = known.imported.get(first) {
            // A name may stand for a crate, or for itself.
            if imported.as_slice() == std::slice::from_ref(first) {
                return None;
            }
            return self.home(module, &[imported, rest].concat(), follow);
        }
        let mut globs = known.globs.iter();
        globs.find_map(|glob| {
            let last = self.home_of_glob(module, glob)?;
            self.found(&last, names, follow)
        })
    }

    /// The path of the module that a glob import names.
    fn home_of_glob(&self, module: &[String], glob: &[String]) -> Option<Names> {
        let mut at = module.to_vec();
        for name in glob {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        self.modules.contains_key(&at).then_some(at)
    }
}

impl Module {
    fn import(&mut self, before: &mut Names, tree: &UseTree) {
        let mut import = |name: String, path: Names| {
            self.imported.insert(name, path);
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(before, tree);
                }
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Name(name) if name.ident == "self" => {
                import(before.last().cloned().unwrap_or_default(), before.clone());
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                import(name.clone(), [&before[..], &[name]].concat());
            }
            UseTree::Rename(renamed) => {
                let path = match renamed.ident.to_string() {
                    name if name == "self" => before.clone(),
                    name => [&before[..], &[name]].concat(),
                };
                // A trait imported only for its methods has no name.
                let name = match renamed.rename.to_string() {
                    name if name == "_" => path.join("::"),
                    name => name,
                };
                import(name, path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // An import within a function counts as mentioned; the module's own imports are already known.
        let mut inner = Self::default();
        inner.import(&mut Vec::new(), &item.tree);
        self.mentioned.extend(inner.imported.into_values());
        self.mentioned.extend(inner.globs);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.mentioned.insert(names.collect());
        visit::visit_path(self, path);
    }

    /// A visibility is not an import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        let text = invoked.tokens.to_string().replace(" :: ", "::");
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in text.split(|c| !is_name(c)) {
            let names: Names = path.split("::").map(str::to_owned).collect();
            // A single name is ambiguous.
            if names.len() > 1 && names.iter().all(|name| !name.is_empty()) {
                self.mentioned.insert(names);
            }
        }
        visit::visit_macro(self, invoked);
    }
}

/// The file of a module that is declared in another file.
fn file_of(declared_in: &Path, root: &Path, name: &str) -> PathBuf {
    let folder = declared_in.parent().unwrap_or(Path::new(""));
    let is_folders_own = declared_in == root || declared_in.ends_with("mod.rs");
    let folder = if is_folders_own {
        folder.to_owned()
    } else {
        folder.join(declared_in.file_stem().unwrap_or_default())
    };
    let file = folder.join(format!("{name}.rs"));
    if file.exists() {
        file
    } else {
        folder.join(name).join("mod.rs")
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => false,
    })
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
