//! The public items of the Rust crates equal the committed lists `rust/<crate>/public-api.txt`.
//!
//! A change of the public interface therefore shows up in review. After an intended change, regenerate the lists:
//!
//! ```text
//! UPDATE_PUBLIC_API=1 cargo test -p wordpiece --test public_api
//! ```
//!
//! The lists are derived from the source with `syn`: everything reachable from `lib.rs` through public modules and
//! re-exports, with signatures, public fields, variants, public methods and implemented traits. Items with
//! `#[doc(hidden)]` or `#[cfg(test)]` are not part of the interface. Items that macros generate are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, TraitItem, UseTree, Visibility};

/// The crates with a list, by folder and by name.
const CRATES: [(&str, &str); 4] = [
    ("arrow", "wordpiece_arrow"),
    ("kernels", "wordpiece_kernels"),
    ("parallel", "wordpiece_parallel"),
    ("wordpiece", "wordpiece"),
];

/// The path of a module inside its crate; empty for the root.
type ModulePath = Vec<String>;

/// The source of a crate: the items of every module, except tests.
struct Source {
    modules: BTreeMap<ModulePath, Vec<Item>>,
}

impl Source {
    fn read(folder: &Path) -> Source {
        let mut source = Source { modules: BTreeMap::new() };
        source.read_file(&folder.join("lib.rs"), folder, Vec::new());
        source
    }

    /// Reads the module in `file`, whose children are in `folder`.
    fn read_file(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(parsed.items, folder, path);
    }

    fn add(&mut self, items: Vec<Item>, folder: &Path, path: ModulePath) {
        let items: Vec<Item> = items.into_iter().filter(|item| !is_test(attributes(item))).collect();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            let child = [path.clone(), vec![name.clone()]].concat();
            match &module.content {
                Some((_, items)) => self.add(items.clone(), &folder.join(&name), child),
                None => {
                    let file = folder.join(format!("{name}.rs"));
                    let file = if file.exists() { file } else { folder.join(&name).join("mod.rs") };
                    self.read_file(&file, &folder.join(&name), child);
                }
            }
        }
        self.modules.insert(path, items);
    }

    /// Lists the public items of a module under the public path `prefix`.
    fn list(&self, module: &ModulePath, prefix: &str, lines: &mut BTreeSet<String>) {
        for item in self.modules.get(module).map_or(&[][..], Vec::as_slice) {
            if is_hidden(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(child) if is_public(&child.vis) => {
                    let path = [module.clone(), vec![child.ident.to_string()]].concat();
                    lines.insert(format!("mod {prefix}::{}", child.ident));
                    self.list(&path, &format!("{prefix}::{}", child.ident), lines);
                }
                Item::Use(re_export) if is_public(&re_export.vis) => {
                    self.list_use(module, &re_export.tree, &mut Vec::new(), prefix, lines);
                }
                item => self.list_item(module, item, name_of(item), prefix, lines),
            }
        }
    }

    /// Lists what a `pub use` in `module` exports; `path` is the part of the tree before `tree`.
    fn list_use(
        &self,
        module: &ModulePath,
        tree: &UseTree,
        path: &mut Vec<String>,
        prefix: &str,
        lines: &mut BTreeSet<String>,
    ) {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.list_use(module, &step.tree, path, prefix, lines);
                path.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.list_use(module, tree, path, prefix, lines));
            }
            UseTree::Name(name) => self.list_export(module, path, &name.ident.to_string(), None, prefix, lines),
            UseTree::Rename(rename) => {
                let name = rename.rename.to_string();
                self.list_export(module, path, &rename.ident.to_string(), Some(name), prefix, lines);
            }
            UseTree::Glob(_) => match self.resolve(module, path) {
                Some(target) => self.list(&target, prefix, lines),
                None => drop(lines.insert(format!("use {prefix}::{{{}::*}}", path.join("::")))),
            },
        }
    }

    /// Lists one re-exported item, which is `name` in the module at `path`.
    fn list_export(
        &self,
        module: &ModulePath,
        path: &[String],
        name: &str,
        renamed: Option<String>,
        prefix: &str,
        lines: &mut BTreeSet<String>,
    ) {
        let public_name = renamed.unwrap_or_else(|| name.to_owned());
        let Some(target) = self.resolve(module, path) else {
            lines.insert(format!("use {prefix}::{public_name} = {}::{name}", path.join("::")));
            return;
        };
        let as_module = [target.clone(), vec![name.to_owned()]].concat();
        if self.modules.contains_key(&as_module) {
            lines.insert(format!("mod {prefix}::{public_name}"));
            self.list(&as_module, &format!("{prefix}::{public_name}"), lines);
            return;
        }
        for item in &self.modules[&target] {
            match item {
                Item::Use(re_export) => {
                    // The item may come from a third module; only the branch that ends in its name matters.
                    for (path, found) in leaves(&re_export.tree) {
                        if found == name && !is_private(&re_export.vis) {
                            self.list_export(&target, &path, name, Some(public_name.clone()), prefix, lines);
                        }
                    }
                }
                item if name_of(item).as_deref() == Some(name) => {
                    self.list_item(&target, item, Some(public_name.clone()), prefix, lines);
                }
                _ => {}
            }
        }
    }

    /// Returns the module of this crate at `path` as written in `module`, or `None` for another crate.
    fn resolve(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let mut at = module.clone();
        for (i, step) in path.iter().enumerate() {
            match step.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name => {
                    at.push(name.to_owned());
                    if !self.modules.contains_key(&at) {
                        assert!(i == 0 || path[0] != "crate", "no module {path:?}");
                        return None;
                    }
                }
            }
        }
        Some(at)
    }

    /// Returns the module that defines the type that `name` means in `module`, or `None` for a type of another crate.
    fn definition(&self, module: &ModulePath, name: &str) -> Option<ModulePath> {
        let items = self.modules.get(module)?;
        let defines =
            |item: &Item| matches!(item, Item::Struct(_) | Item::Enum(_)) && name_of(item).as_deref() == Some(name);
        if items.iter().any(defines) {
            return Some(module.clone());
        }
        let imports =
            items.iter().filter_map(|item| if let Item::Use(item) = item { Some(leaves(&item.tree)) } else { None });
        let (path, _) = imports.flatten().find(|(_, found)| found == name)?;
        let target = self.resolve(module, &path)?;
        if target == *module { None } else { self.definition(&target, name) }
    }

    /// Lists a public item, defined in `module`, with everything public in it.
    fn list_item(
        &self,
        module: &ModulePath,
        item: &Item,
        name: Option<String>,
        prefix: &str,
        lines: &mut BTreeSet<String>,
    ) {
        let Some(name) = name else { return };
        let path = format!("{prefix}::{name}");
        let public = match item {
            Item::Struct(item) => &item.vis,
            Item::Enum(item) => &item.vis,
            Item::Trait(item) => &item.vis,
            Item::Fn(item) => &item.vis,
            Item::Const(item) => &item.vis,
            Item::Static(item) => &item.vis,
            Item::Type(item) => &item.vis,
            _ => return,
        };
        if !is_public(public) {
            return;
        }
        match item {
            Item::Fn(item) => drop(lines.insert(format!("{} [{path}]", tokens(&item.sig)))),
            Item::Const(item) => drop(lines.insert(format!("const {path}: {}", tokens(&item.ty)))),
            Item::Static(item) => drop(lines.insert(format!("static {path}: {}", tokens(&item.ty)))),
            Item::Type(item) => drop(lines.insert(format!("type {path} = {}", tokens(&item.ty)))),
            Item::Trait(item) => {
                lines.insert(format!("trait {path}: {}", tokens(&item.supertraits)));
                for part in &item.items {
                    let part = match part {
                        TraitItem::Fn(part) => tokens(&part.sig),
                        TraitItem::Const(part) => format!("const {}: {}", part.ident, tokens(&part.ty)),
                        TraitItem::Type(part) => format!("type {}", part.ident),
                        _ => continue,
                    };
                    lines.insert(format!("trait {path}: {part}"));
                }
            }
            Item::Struct(item) => {
                lines.insert(format!("struct {path}{}", tokens(&item.generics)));
                for (i, field) in item.fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis)) {
                    let field_name = field.ident.as_ref().map_or_else(|| i.to_string(), ToString::to_string);
                    lines.insert(format!("struct {path}: field {field_name}: {}", tokens(&field.ty)));
                }
                self.list_impls(module, &item.ident.to_string(), &path, &item.attrs, lines);
            }
            Item::Enum(item) => {
                lines.insert(format!("enum {path}{}", tokens(&item.generics)));
                for variant in &item.variants {
                    let fields = variant.fields.iter().map(|field| {
                        let name = field.ident.as_ref().map_or_else(String::new, |name| format!("{name}: "));
                        name + &tokens(&field.ty)
                    });
                    let fields: Vec<String> = fields.collect();
                    lines.insert(format!("enum {path}: variant {}({})", variant.ident, fields.join(", ")));
                }
                self.list_impls(module, &item.ident.to_string(), &path, &item.attrs, lines);
            }
            _ => {}
        }
    }

    /// Lists the public methods and the traits of the type `name` that `module` defines.
    fn list_impls(
        &self,
        module: &ModulePath,
        name: &str,
        path: &str,
        attributes: &[Attribute],
        lines: &mut BTreeSet<String>,
    ) {
        for derive in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
            let _ = derive.parse_nested_meta(|derived| {
                lines.insert(format!("{path}: derives {}", tokens(&derived.path)));
                Ok(())
            });
        }
        for (at, item) in self.modules.iter().flat_map(|(at, items)| items.iter().map(move |item| (at, item))) {
            let Item::Impl(block) = item else { continue };
            let syn::Type::Path(of) = &*block.self_ty else { continue };
            if of.path.segments.last().is_none_or(|last| last.ident != name) {
                continue;
            }
            if of.path.segments.len() == 1 && self.definition(at, name).as_ref() != Some(module) {
                continue; // another type with the same name
            }
            if let Some((implemented, _)) = &block.trait_ {
                lines.insert(format!("{path}: implements {}", tokens(implemented)));
                continue;
            }
            for part in &block.items {
                match part {
                    ImplItem::Fn(part) if is_public(&part.vis) && !is_hidden(&part.attrs) => {
                        lines.insert(format!("{path}: {}", tokens(&part.sig)));
                    }
                    ImplItem::Const(part) if is_public(&part.vis) && !is_hidden(&part.attrs) => {
                        lines.insert(format!("{path}: const {}: {}", part.ident, tokens(&part.ty)));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns the path and the name of every item that a `use` imports under its own name.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(step) => {
            let mut found = leaves(&step.tree);
            found.iter_mut().for_each(|(path, _)| path.insert(0, step.ident.to_string()));
            found
        }
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(name) => vec![(Vec::new(), name.ident.to_string())],
        UseTree::Rename(_) | UseTree::Glob(_) => Vec::new(),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_private(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Inherited)
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && tokens(&attribute.meta).contains("(test)"))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc") && tokens(&attribute.meta).contains("(hidden)"))
}

/// Returns source code with the spaces that `quote` inserts removed where they only separate punctuation.
fn tokens(part: &impl ToTokens) -> String {
    let mut text = part.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (" < ", "<"),
        (" > ", ">"),
        (" >", ">"),
        ("< ", "<"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        (" :", ":"),
        ("& ", "&"),
        (" ;", ";"),
        ("' ", "'"),
        (" <", "<"),
        ("[ ", "["),
        (" ]", "]"),
    ] {
        text = text.replace(from, to);
    }
    text.replace("->", " -> ").replace("  ", " ")
}

fn list(folder: &Path, name: &str) -> String {
    let mut lines = BTreeSet::new();
    Source::read(&folder.join("src")).list(&Vec::new(), name, &mut lines);
    let mut text =
        format!("# Public items of the crate {name}; regenerate as rust/wordpiece/tests/public_api.rs says.\n");
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

#[test]
fn public_items_equal_the_committed_lists() {
    let rust = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let update = std::env::var("UPDATE_PUBLIC_API").is_ok_and(|value| !value.is_empty() && value != "0");
    let mut differences = Vec::new();
    for (folder, name) in CRATES {
        let file = rust.join(folder).join("public-api.txt");
        let current = list(&rust.join(folder), name);
        assert!(current.lines().count() > 10, "{name}: hardly any public items were found");
        if update {
            std::fs::write(&file, &current).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            continue;
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (committed.lines().collect(), current.lines().collect());
        differences.extend(old.difference(&new).map(|line| format!("- {line}")));
        differences.extend(new.difference(&old).map(|line| format!("+ {line}")));
    }
    assert!(
        differences.is_empty(),
        "public items changed; if that is intended, run UPDATE_PUBLIC_API=1 cargo test -p wordpiece --test public_api\n{}",
        differences.join("\n")
    );
}
