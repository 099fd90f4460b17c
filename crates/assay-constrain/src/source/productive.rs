//! Rules of a Lark grammar that no finite text derives from. A reply that came to one would go on until its tokens are
//! spent, so grammars that lead to one are refused.
//!
//! Reads only how rules name each other; of syntax that it does not know it says nothing, and leaves it to the compiler.

use std::collections::{BTreeMap, BTreeSet};

use super::lark;

/// A rule that `start` leads to and that never ends.
pub(super) fn endless_rule(grammar: &str) -> Option<String> {
    let bare = lark::without_literals(grammar)?;
    let rules = Rules::read(&bare)?;
    let ending = rules.ending();
    let mut pending = vec!["start"];
    let mut seen = BTreeSet::new();
    while let Some(name) = pending.pop() {
        let Some(body) = rules.0.get(name) else {
            continue;
        };
        if !seen.insert(name) {
            continue;
        }
        if !ending.contains(name) {
            return Some(name.to_owned());
        }
        pending.extend(body.names());
    }
    None
}

/// Bodies by name.
struct Rules<'a>(BTreeMap<&'a str, Body<'a>>);

impl<'a> Rules<'a> {
    /// `None` if there is syntax that is not known here, or a rule twice.
    fn read(bare: &'a str) -> Option<Self> {
        let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in bare.lines() {
            let line = line.trim();
            if line.starts_with('%') {
                // Directives stand on a line of their own; what follows must be a rule.
                texts.push(("", Vec::new()));
            } else if let Some((name, rest)) = defined(line) {
                texts.push((name, vec![rest]));
            } else if !line.is_empty() {
                texts.last_mut()?.1.push(line);
            }
        }
        let mut rules = BTreeMap::new();
        for (name, lines) in texts {
            match name {
                "" if lines.is_empty() => {}
                "" => return None,
                name => {
                    let body = Body::read(&lines)?;
                    if rules.insert(name, body).is_some() {
                        return None;
                    }
                }
            }
        }
        Some(Self(rules))
    }

    /// Names of the rules that some finite text derives from. What is not defined here counts as one.
    fn ending(&self) -> BTreeSet<&'a str> {
        let mut ending = BTreeSet::new();
        loop {
            let before = ending.len();
            // Both ways, so that long chains settle in few rounds whichever way they run.
            for (name, body) in self.0.iter().chain(self.0.iter().rev()) {
                let ends = |inner: &str| !self.0.contains_key(inner) || ending.contains(inner);
                if !ending.contains(name) && body.ends(ends) {
                    ending.insert(*name);
                }
            }
            if ending.len() == before {
                return ending;
            }
        }
    }
}

/// The name that a line defines, and what follows the colon.
fn defined(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(':')?;
    let name = name.trim().trim_start_matches(['?', '!']);
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, rest))
}

/// The right side of a rule; each node's parts stand before it, the whole last.
struct Body<'a>(Vec<Node<'a>>);

enum Node<'a> {
    /// Ends whatever stands in it.
    Ends,
    Name(&'a str),
    All(Vec<usize>),
    Any(Vec<usize>),
}

impl<'a> Body<'a> {
    fn read(lines: &[&'a str]) -> Option<Self> {
        let mut reader = Reader {
            nodes: Vec::new(),
            open: vec![Group::new(None)],
        };
        for line in lines {
            reader.read(line)?;
        }
        let whole = reader.open.pop().filter(|_| reader.open.is_empty())?;
        reader.add_any(whole);
        Some(Self(reader.nodes))
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|node| match node {
            Node::Name(name) => Some(*name),
            _ => None,
        })
    }

    /// Whether a finite text derives from it, where `ends` says so of the rules that it names.
    fn ends(&self, ends: impl Fn(&str) -> bool) -> bool {
        let mut found: Vec<bool> = Vec::with_capacity(self.0.len());
        for node in &self.0 {
            let is_found = |index: &usize| found.get(*index).copied().unwrap_or(true);
            found.push(match node {
                Node::Ends => true,
                Node::Name(name) => ends(name),
                Node::All(parts) => parts.iter().all(is_found),
                Node::Any(options) => options.iter().any(is_found),
            });
        }
        found.last().copied().unwrap_or(true)
    }
}

/// A group that is open: its alternatives, each a list of nodes.
struct Group {
    closed_by: Option<char>,
    alternatives: Vec<Vec<usize>>,
}

impl Group {
    fn new(closed_by: Option<char>) -> Self {
        Self {
            closed_by,
            alternatives: vec![Vec::new()],
        }
    }
}

struct Reader<'a> {
    nodes: Vec<Node<'a>>,
    open: Vec<Group>,
}

impl<'a> Reader<'a> {
    /// Takes a line; `None` at syntax that is not known here.
    fn read(&mut self, line: &'a str) -> Option<()> {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if is_name(c) {
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                rest = after;
                self.add(Node::Name(name))?;
                continue;
            }
            rest = &rest[c.len_utf8()..];
            match c {
                // Two dots between literals are a range.
                ' ' | '\t' | '\r' | '+' | '.' => {}
                lark::LITERAL => self.add(Node::Ends)?,
                '|' => self.open.last_mut()?.alternatives.push(Vec::new()),
                '(' => self.open.push(Group::new(Some(')'))),
                '[' => self.open.push(Group::new(Some(']'))),
                ')' | ']' => {
                    let group = self.open.pop()?;
                    if group.closed_by != Some(c) {
                        return None;
                    }
                    let index = self.add_any(group);
                    self.place(index)?;
                    if c == ']' {
                        self.make_optional()?;
                    }
                }
                '?' | '*' => self.make_optional()?,
                '{' | '~' => {
                    rest = rest.trim_start();
                    if rest.starts_with(['0', ',']) {
                        self.make_optional()?;
                    }
                    let is_count = |c: char| c.is_ascii_digit() || " ,.".contains(c);
                    rest = rest.trim_start_matches(is_count);
                    rest = if c == '{' {
                        rest.strip_prefix('}')?
                    } else {
                        rest
                    };
                }
                // A name for the reader of a tree.
                '-' => {
                    rest = rest
                        .strip_prefix('>')?
                        .trim_start()
                        .trim_start_matches(is_name)
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn add(&mut self, node: Node<'a>) -> Option<()> {
        self.nodes.push(node);
        self.place(self.nodes.len() - 1)
    }

    /// The nodes of a group that is read, and one for the whole; its index.
    fn add_any(&mut self, group: Group) -> usize {
        let mut options = Vec::with_capacity(group.alternatives.len());
        for parts in group.alternatives {
            self.nodes.push(Node::All(parts));
            options.push(self.nodes.len() - 1);
        }
        self.nodes.push(Node::Any(options));
        self.nodes.len() - 1
    }

    /// Puts a node at the end of what is being read.
    fn place(&mut self, index: usize) -> Option<()> {
        self.open.last_mut()?.alternatives.last_mut()?.push(index);
        Some(())
    }

    /// Lets the node that was read last be absent. What stands in it keeps its place among the names.
    fn make_optional(&mut self) -> Option<()> {
        let part = self.open.last_mut()?.alternatives.last_mut()?;
        part.pop()?;
        self.add(Node::Ends)
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::endless_rule;

    #[test]
    fn rules_that_never_end_are_found() {
        for (grammar, rule) in [
            ("start: \"a\" start", "start"),
            ("start: start", "start"),
            ("start: \"a\" | loop\nloop: \"x\" loop", "loop"),
            ("start: a\na: b+\nb: (\"x\" | c) a\nc: \"y\"", "start"),
            ("start: \"x\" loop?\nloop: \"y\" loop // it goes on", "loop"),
            ("start: \"a\"\n  | b\nb: /b/i b -> tree\n", "b"),
            (
                "?start: item{2,3}\n%ignore / /\nitem: \"x\" item | item \"y\"",
                "start",
            ),
            ("start: (((loop)))\n!loop.2: [loop] loop", "start"),
        ] {
            assert_eq!(endless_rule(grammar).as_deref(), Some(rule), "{grammar}");
        }
    }

    #[test]
    fn rules_that_end_are_not() {
        for grammar in [
            "start: \"a\" start | \"b\"",
            "start: \"a\" start?",
            "start: \"a\" start*",
            "start: \"a\" [start]",
            "start: item{0,3}\nitem: \"x\" | item",
            "start: \"a\" start ~ 0..3",
            "start: A b\nA: \"a\"..\"z\"\nb: \"(\" start \")\" | /x+/",
            "start: \"yes\" | \"no\"\nunused: \"x\" unused",
            "start: NUMBER\n%import common.NUMBER",
            "start: expr\nexpr: expr \"+\" term | term\nterm: \"(\" expr \")\" | /[0-9]+/",
            "start: \"start: start\" // start: start",
            "start: \"x\" &lookahead start",
            "",
            "start",
        ] {
            assert_eq!(endless_rule(grammar), None, "{grammar}");
        }
    }

    #[test]
    fn depth_and_length_are_no_matter() {
        let deep = format!("start: {}\"a\"{}", "(".repeat(30_000), ")".repeat(30_000));
        assert_eq!(endless_rule(&deep), None);
        let rules = (0..4_000).map(|index| format!("r{index}: r{}\n", index + 1));
        let chain = format!("start: r0\n{}", rules.collect::<String>());
        assert_eq!(endless_rule(&chain), None);
        let circle = format!("{chain}r4000: r0\n");
        assert_eq!(endless_rule(&circle).as_deref(), Some("start"));
    }
}
