//! Streamed posts that wait until polls have read what came before the stream was opened.

use driftline_core::answer::Event;
use driftline_store::ReceivedEvent;

/// The posts of a stream that was opened a moment ago.
#[derive(Debug, Default)]
pub(crate) struct WaitingPosts {
    posts: Vec<ReceivedEvent>,
    bytes: usize,
    is_released: bool,
}

impl WaitingPosts {
    /// Whether posts wait no more.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released
    }

    /// Holds back the posts of these events, and returns what is to be committed: edits and deletions of other
    /// posts, and everything once posts wait no more or are too many to wait.
    pub(crate) fn hold(&mut self, events: Vec<ReceivedEvent>) -> Vec<ReceivedEvent> {
        if self.is_released {
            return events;
        }
        let mut others = Vec::new();
        for received in events {
            match &received.event {
                Event::Posted(post) => {
                    self.bytes += post.raw.len();
                    self.posts.push(received);
                }
                Event::Edited(post) => {
                    let is_it = |other: &&mut ReceivedEvent| id_of(&other.event) == &post.id;
                    match self.posts.iter_mut().find(is_it) {
                        Some(waiting) => waiting.event = Event::Posted(post.clone()),
                        None => others.push(received),
                    }
                }
                Event::Deleted(id) => {
                    self.posts.retain(|waiting| id_of(&waiting.event) != id);
                    others.push(received);
                }
            }
        }
        if self.posts.len() > MAX_POSTS || self.bytes > MAX_BYTES {
            others.splice(..0, self.release());
        }
        others
    }

    /// The posts that wait; later ones do not.
    pub(crate) fn release(&mut self) -> Vec<ReceivedEvent> {
        self.is_released = true;
        std::mem::take(&mut self.posts)
    }
}

fn id_of(event: &Event) -> &driftline_core::upstream_id::UpstreamId {
    match event {
        Event::Posted(post) | Event::Edited(post) => &post.id,
        Event::Deleted(id) => id,
    }
}

const MAX_POSTS: usize = 1_000;
const MAX_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use driftline_core::post::Post;

    use super::*;

    fn received(event: Event) -> ReceivedEvent {
        ReceivedEvent {
            event,
            received_at_ms: 0,
        }
    }

    fn post(id: &str, text: &str) -> Box<Post> {
        let mut post = driftline_store::testing::post(id, text);
        post.raw = text.to_owned();
        Box::new(post)
    }

    fn posted(id: &str) -> ReceivedEvent {
        received(Event::Posted(post(id, "text")))
    }

    fn edited(id: &str) -> ReceivedEvent {
        received(Event::Edited(post(id, "edited")))
    }

    fn deleted(id: &str) -> ReceivedEvent {
        received(Event::Deleted(id.into()))
    }

    #[test]
    fn posts_wait_and_changes_of_other_posts_do_not() {
        let mut waiting = WaitingPosts::default();
        assert_eq!(waiting.hold(vec![posted("1"), posted("2")]), []);
        let others = vec![edited("0"), deleted("9")];
        assert_eq!(waiting.hold(others.clone()), others);
        assert_eq!(waiting.hold(vec![edited("1")]), [], "it waits as edited");
        assert_eq!(waiting.hold(vec![deleted("2")]), [deleted("2")]);
        let edited = received(Event::Posted(post("1", "edited")));
        assert_eq!(waiting.release(), [edited]);
        assert_eq!(waiting.hold(vec![posted("3")]), [posted("3")]);
    }

    #[test]
    fn too_many_posts_do_not_wait() {
        let mut waiting = WaitingPosts::default();
        let posts = |numbers: std::ops::Range<usize>| {
            let numbers = numbers.map(|number| posted(&number.to_string()));
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(waiting.hold(posts(0..MAX_POSTS)), []);
        let released = waiting.hold(posts(MAX_POSTS..MAX_POSTS + 1));
        assert_eq!(released, posts(0..MAX_POSTS + 1));
        assert!(waiting.is_released());
    }
}
