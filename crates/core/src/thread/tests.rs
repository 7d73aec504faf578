use proptest::prelude::*;

use super::*;

/// All paths from the post down, by recursion: the posts below it, in the order of display.
fn naive(post: &str, replies: &[Reply<'_>], path: &mut Vec<String>, out: &mut Vec<String>) {
    let mut children: Vec<&Reply<'_>> = replies
        .iter()
        .filter(|reply| reply.reply_to == post && !path.contains(&reply.id.to_owned()))
        .collect();
    children.sort_by_key(|reply| (reply.created_at_ms, reply.id.len(), reply.id));
    for child in children {
        out.push(child.id.to_owned());
        path.push(child.id.to_owned());
        naive(child.id, replies, path, out);
        path.pop();
    }
}

/// Posts 0 to 19, each of which replies to any post, possibly itself.
fn edges() -> impl Strategy<Value = Vec<(String, String, i64)>> {
    let edge = (0..20_u8, 0..3_i64);
    proptest::collection::vec(edge, 20).prop_map(|edges| {
        let edges = edges.into_iter().enumerate();
        edges
            .map(|(id, (to, at))| (id.to_string(), to.to_string(), at))
            .collect()
    })
}

fn replies(edges: &[(String, String, i64)]) -> Vec<Reply<'_>> {
    let replies = edges.iter().map(|(id, reply_to, at)| Reply {
        id,
        reply_to,
        created_at_ms: *at,
    });
    replies.collect()
}

proptest! {
    #[test]
    fn replies_are_shown_as_a_walk_of_all_paths_finds_them(edges in edges()) {
        let replies = replies(&edges);
        let order: Vec<String> = depth_first("0", &replies)
            .into_iter()
            .map(|index| replies[index].id.to_owned())
            .collect();
        let mut expected = Vec::new();
        naive("0", &replies, &mut vec!["0".to_owned()], &mut expected);
        prop_assert_eq!(order, expected);
    }

    #[test]
    fn a_descent_takes_what_hangs_below_within_its_limits(
        edges in edges(),
        descendants in 0..25_usize,
        depth in 0..6_usize,
    ) {
        let limits = ThreadLimits { ancestors: 0, descendants, depth };
        let replies = replies(&edges);
        let mut descent = Descent::below("0", &["7"], limits);
        // Level by level, as a store finds them.
        let mut taken: Vec<&str> = Vec::new();
        let mut level = vec!["0"];
        for _ in 0..replies.len() {
            let mut next = Vec::new();
            for reply in &replies {
                if level.contains(&reply.reply_to) && descent.take(reply.id, reply.reply_to) {
                    next.push(reply.id);
                }
            }
            taken.extend(&next);
            level = next;
        }
        let depth_of = |id: &str| {
            let (mut at, mut steps, mut seen) = (id, 0_usize, Vec::new());
            while at != "0" {
                if at == "7" || seen.contains(&at) {
                    return None;
                }
                seen.push(at);
                at = replies[at.parse::<usize>().expect("a number")].reply_to;
                steps += 1;
            }
            Some(steps).filter(|steps| *steps > 0)
        };
        let may = |id: &&str| depth_of(id).is_some_and(|steps| steps <= depth);
        let below = replies.iter().map(|reply| reply.id).filter(may).count();
        prop_assert!(taken.iter().all(may), "{taken:?}");
        prop_assert_eq!(taken.len(), below.min(descendants));
        prop_assert_eq!(descent.is_full(), taken.len() >= descendants);
    }
}

#[test]
fn a_chain_of_thousands_is_walked() {
    let names: Vec<String> = (0..10_000).map(|id| id.to_string()).collect();
    let replies: Vec<Reply<'_>> = names
        .windows(2)
        .map(|pair| Reply {
            id: &pair[1],
            reply_to: &pair[0],
            created_at_ms: 0,
        })
        .collect();
    let order = depth_first("0", &replies);
    assert_eq!(order, (0..9_999).collect::<Vec<_>>());
}

#[test]
fn what_does_not_hang_on_the_post_is_not_taken() {
    let post = |id: &str, reply_to: Option<&str>| Post {
        reply_to: reply_to.map(UpstreamId::from),
        ..Post::bare(id, "1", "{}")
    };
    let above = vec![post("9", None), post("1", None), post("2", Some("1"))];
    let below = vec![
        post("5", Some("4")),
        post("4", Some("3")),
        post("3", Some("5")),
        post("6", Some("7")),
        post("7", Some("6")),
        post("8", None),
    ];
    let taken = connected(&"3".into(), above, below);
    let ids: Vec<&str> = taken.iter().map(|post| post.id.as_str()).collect();
    assert_eq!(ids, ["2", "1", "4", "5"]);
}
