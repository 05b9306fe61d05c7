//! Parts of the tree that are made from code: `cargo xtask gen` writes them, `cargo xtask test` and
//! `tidy` see that they are up to date.
//!
//! A generated part is a row of [`PARTS`]: a whole file, or a block inside a page, between
//! `<!-- name:begin -->` and `<!-- name:end -->`.

use anyhow::{Context, Result};

use crate::contract::Contract;
use crate::repo::Repo;
use crate::tidy::{Violation, arrows};

/// A file or a block of a page, and what must stand in it.
struct Part {
    page: &'static str,
    /// The whole file, if none.
    block: Option<&'static str>,
    text: fn(&Contract) -> Result<String>,
}

macro_rules! definition {
    ($file:literal) => {
        Part {
            page: concat!("deploy/crds/", $file),
            block: None,
            text: |contract| contract.definition($file),
        }
    };
}

const PARTS: [Part; 9] = [
    Part { page: "ARCHITECTURE.md", block: Some("arrows"), text: |_| Ok(arrows::table()) },
    Part { page: "docs/openapi.json", block: None, text: Contract::openapi },
    Part { page: "docs/errors/README.md", block: Some("codes"), text: Contract::errors },
    definition!("rear.fluidos.eu_advertisements.yaml"),
    definition!("rear.fluidos.eu_resourcerequests.yaml"),
    definition!("rear.fluidos.eu_reservationinstructions.yaml"),
    definition!("rear.fluidos.eu_providerinstructions.yaml"),
    definition!("broker.fluidos.eu_clusteradvertisements.yaml"),
    definition!("broker.fluidos.eu_reservations.yaml"),
];

impl Part {
    /// The page as it should be; nothing when the block is not in it.
    fn wanted(&self, contract: &Contract, page: &str) -> Result<Option<String>> {
        let text = (self.text)(contract)?;
        Ok(match self.block {
            Some(block) => filled(page, block, &text),
            None => Some(text),
        })
    }

    fn no_block(&self) -> String {
        let (page, block) = (self.page, self.block.unwrap_or_default());
        format!("{page} has no lines `<!-- {block}:begin -->` and `<!-- {block}:end -->`")
    }
}

/// Writes every part anew.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    let contract = Contract::build(repo)?;
    for part in &PARTS {
        let page = repo.read(part.page)?.with_context(|| format!("{} is missing", part.page))?;
        let wanted = part.wanted(&contract, &page)?.with_context(|| part.no_block())?;
        if wanted != page {
            println!("{}: {} written", part.page, part.block.unwrap_or("all of it"));
            repo.write(part.page, &wanted)?;
        }
    }
    Ok(())
}

/// The parts that are not as they would be written, of the pages that exist.
pub(crate) fn stale(repo: &Repo) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let contract = Contract::build(repo)?;
    for part in &PARTS {
        let Some(page) = repo.read(part.page)? else {
            continue;
        };
        match part.wanted(&contract, &page)? {
            None => found.push(Violation::at(part.page, 1, part.no_block(), "add the two lines")),
            Some(wanted) if wanted != page => {
                let which = part.block.map(|block| format!("the block `{block}`"));
                let what = format!("{} is not up to date", which.as_deref().unwrap_or("the file"));
                found.push(Violation::at(part.page, 1, what, "run `cargo xtask gen`"));
            }
            Some(_) => {}
        }
    }
    Ok(found)
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
