//! Parts of the tree that are made from code: `cargo xtask gen` writes them, `cargo xtask test` and
//! `tidy` see that they are up to date.
//!
//! A generated part is a row of [`PARTS`]. Today they are blocks inside pages, between
//! `<!-- name:begin -->` and `<!-- name:end -->`.

use anyhow::{Context, Result};

use crate::repo::Repo;
use crate::tidy::{Violation, arrows};

/// A block of a page, and what must stand in it.
struct Part {
    page: &'static str,
    block: &'static str,
    text: fn() -> String,
}

const PARTS: [Part; 1] = [Part { page: "ARCHITECTURE.md", block: "arrows", text: arrows::table }];

/// Writes every part anew.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    for part in &PARTS {
        let page = repo.read(part.page)?.with_context(|| format!("{} is missing", part.page))?;
        let wanted = filled(&page, part.block, &(part.text)()).with_context(|| no_block(part))?;
        if wanted != page {
            println!("{}: {} written", part.page, part.block);
            repo.write(part.page, &wanted)?;
        }
    }
    Ok(())
}

/// The parts that are not as they would be written, of the pages that exist.
pub(crate) fn stale(repo: &Repo) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for part in &PARTS {
        let Some(page) = repo.read(part.page)? else {
            continue;
        };
        match filled(&page, part.block, &(part.text)()) {
            None => found.push(Violation::at(part.page, 1, no_block(part), "add the two lines")),
            Some(wanted) if wanted != page => {
                let what = format!("the block `{}` is not up to date", part.block);
                found.push(Violation::at(part.page, 1, what, "run `cargo xtask gen`"));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

fn no_block(part: &Part) -> String {
    format!("{} has no lines `<!-- {1}:begin -->` and `<!-- {1}:end -->`", part.page, part.block)
}

/// The page with this text in this block; nothing when the block is not there.
fn filled(page: &str, block: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {block}:begin -->\n"), format!("<!-- {block}:end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{text}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::filled;

    const PAGE: &str = "# A\n<!-- b:begin -->\nold\n<!-- b:end -->\nrest\n";

    #[test]
    fn only_the_block_is_replaced() {
        let page = filled(PAGE, "b", "new\n").expect("a page with the block");
        assert_eq!(page, "# A\n<!-- b:begin -->\nnew\n<!-- b:end -->\nrest\n");
        assert_eq!(filled(&page, "b", "new\n"), Some(page));
    }

    #[test]
    fn a_page_without_the_block_is_not_filled() {
        assert_eq!(filled(PAGE, "c", "new\n"), None);
    }
}
