//! Documents, and how they are written.

use driftline_db::{Column, DbError, Dialect, Tx};

use crate::term::Term;

/// A place of a timeline at which a post may stand, with the terms by which it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The place: the local ID of an entry, or of a post in the world's public timeline.
    pub place: i64,
    /// The post that has the place.
    pub post_id: i64,
    /// The instance of that post.
    pub instance_id: i64,
    /// The row of the author of that post. Without one it may be each author that its terms name.
    pub author: Option<i64>,
    /// Its terms, each once.
    pub terms: Vec<Term>,
}

/// Writes documents of posts without documents. Each place must occur once.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn write(tx: &mut Tx<'_>, documents: &[Document]) -> Result<(), DbError> {
    let texts = |takes: fn(&Term) -> bool| -> Vec<String> {
        let texts = documents.iter().map(|document| {
            let terms = document.terms.iter().filter(|term| takes(term));
            terms_as_text(terms)
        });
        texts.collect()
    };
    let places = || Column::i64(documents.iter().map(|document| document.place));
    let instances = Column::i64(documents.iter().map(|document| document.instance_id));
    let posts = Column::i64(documents.iter().map(|document| document.post_id));
    if tx.dialect() == Dialect::Postgres {
        let (of_rows, others) = (
            texts(|term| term.names_row()),
            texts(|term| !term.names_row()),
        );
        return tx.execute_many_later(
            "insert into indexed_place (place, instance_id, post_id, row_terms, terms)
             select r.place, r.instance_id, r.post_id, string_to_array(r.row_terms, ' ')::int[],
                 string_to_array(r.terms, ' ')::int[]
             from {rows as r(place, instance_id, post_id, row_terms, terms)}",
            &[],
            &[
                places(),
                instances,
                posts,
                Column::text(of_rows.iter().map(String::as_str)),
                Column::text(others.iter().map(String::as_str)),
            ],
        );
    }
    let texts = texts(|_| true);
    let authors = Column::i64(documents.iter().map(|document| document.author));
    tx.execute_many_later(
        "insert into indexed_place (place, instance_id, post_id, author_row) {rows}",
        &[],
        &[places(), instances, posts, authors],
    )?;
    tx.execute_many_later(
        "insert into place_terms (rowid, terms) {rows}",
        &[],
        &[places(), Column::text(texts.iter().map(String::as_str))],
    )
}

/// Removes all documents of posts of an instance.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn remove(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<(), DbError> {
    let posts = Column::i64(posts.iter().copied());
    if tx.dialect() == Dialect::Sqlite {
        tx.execute_later(
            "delete from place_terms where rowid in
                 (select place from indexed_place where post_id {in $1} and instance_id = $2)",
            &[&posts, &instance_id],
        )?;
    }
    tx.execute_later(
        "delete from indexed_place where post_id {in $1} and instance_id = $2",
        &[&posts, &instance_id],
    )
}

fn terms_as_text<'t>(terms: impl Iterator<Item = &'t Term>) -> String {
    let mut text = String::new();
    for term in terms {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&term.number().to_string());
    }
    text
}
