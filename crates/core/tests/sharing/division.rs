//! Scenes of a division.

use driftline_core::sharing::{Division, Member, Work};

fn member(name: &str, share: u32) -> Member {
    Member {
        name: name.to_owned(),
        share,
        is_draining: false,
    }
}

fn work(keys: std::ops::Range<u32>, holder: Option<&str>, refused_by: &[&str]) -> Vec<Work<u32>> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    keys.map(|key| Work {
        key,
        holder: holder.map(str::to_owned),
        refused_by: names(refused_by),
    })
    .collect()
}

fn numbers(members: &[Member], work: &[Work<u32>]) -> Vec<usize> {
    let division = Division::new(members.to_vec(), work.to_vec());
    let of = |member: &Member| division.of(&member.name).count();
    members.iter().map(of).collect()
}

#[test]
fn free_work_is_divided_in_runs_and_by_weight() {
    let three = [member("a", 1), member("b", 1), member("c", 2)];
    let all = work(0..41, None, &[]);
    assert_eq!(numbers(&three, &all), [10, 10, 21]);
    let division = Division::new(three.to_vec(), all);
    let own: Vec<u32> = division.of("b").copied().collect();
    assert_eq!(own, (10..20).collect::<Vec<_>>());
    assert_eq!(division.moves("b").claim, own);
    assert_eq!(division.moves("unknown"), Default::default());
}

#[test]
fn a_newcomer_gets_its_part_of_what_others_give_back_and_nothing_else_moves() {
    let members = [member("a", 1), member("b", 1), member("c", 1)];
    let mut all = work(0..20, Some("a"), &[]);
    all.extend(work(20..40, Some("b"), &[]));
    let division = Division::new(members.to_vec(), all);
    let [a, b, c] = ["a", "b", "c"].map(|name| division.moves(name));
    let given = [a.give_back.clone(), b.give_back.clone()].concat();
    assert_eq!(given.len(), 13);
    assert_eq!(c.awaited, given);
    assert!(a.claim.is_empty() && b.claim.is_empty() && c.claim.is_empty());
    assert!(a.awaited.is_empty() && b.awaited.is_empty() && c.give_back.is_empty());
}

/// A holder of one more keeps it: the first by name is not the one to get it.
#[test]
fn who_holds_one_more_than_others_keeps_it() {
    let members = [member("a", 1), member("b", 1), member("c", 1)];
    let all = [work(0..2, Some("b"), &[]), work(2..4, Some("c"), &[])].concat();
    let division = Division::new(members.to_vec(), all);
    let given = ["b", "c"].map(|name| division.moves(name).give_back);
    assert_eq!(given, [vec![], vec![3]]);
    assert_eq!(division.moves("a").awaited, [3]);
}

#[test]
fn who_drains_or_has_no_share_gives_all_back() {
    let mut members = [member("a", 1), member("b", 1), member("c", 0)];
    members[0].is_draining = true;
    let mut all = work(0..4, Some("a"), &[]);
    all.extend(work(4..6, Some("c"), &[]));
    assert_eq!(numbers(&members, &all), [0, 6, 0]);
    let division = Division::new(members.to_vec(), all.clone());
    assert_eq!(division.moves("a").give_back, [0, 1, 2, 3]);
    assert_eq!(division.moves("c").give_back, [4, 5]);
    members[1].share = 0;
    assert_eq!(Division::new(members.to_vec(), all).able(), 0);
}

#[test]
fn what_nobody_can_do_counts_in_no_share() {
    let members = [member("a", 1), member("b", 1)];
    // With these counted, "a" would seem to have its part.
    let mut all = work(0..10, None, &["a", "b"]);
    all.extend(work(10..16, Some("b"), &[]));
    all.extend(work(16..20, None, &["a", "b"]));
    let division = Division::new(members.to_vec(), all.clone());
    assert_eq!((division.able(), division.of("a").count()), (6, 3));
    assert_eq!(division.moves("b").give_back.len(), 3);
    assert!(division.moves("a").claim.is_empty());
}

#[test]
fn what_one_cannot_do_goes_to_others_and_the_rest_makes_up_for_it() {
    let members = [member("a", 1), member("b", 1), member("c", 1)];
    let mut all = work(0..10, None, &["a"]);
    all.extend(work(10..30, None, &[]));
    assert_eq!(numbers(&members, &all), [10, 10, 10]);
    let all = [work(0..20, None, &["a"]), work(20..30, None, &[])].concat();
    assert_eq!(numbers(&members, &all), [10, 10, 10]);
    let all = [work(0..28, None, &["a"]), work(28..30, None, &[])].concat();
    assert_eq!(numbers(&members, &all), [2, 14, 14]);
}

/// A member that can do nothing, whatever its weight, leaves the proportion of the others as it is.
#[test]
fn others_keep_their_proportion_where_one_can_do_nothing() {
    for idle in [1, 10, 90] {
        let members = [member("a", idle), member("b", 9), member("c", 1)];
        let all = work(0..100, None, &["a"]);
        assert_eq!(numbers(&members, &all), [0, 90, 10], "a weighs {idle}");
    }
}

#[test]
fn a_holder_that_is_no_member_is_waited_for() {
    let members = [member("a", 1)];
    let all = [work(0..2, Some("gone"), &[]), work(2..3, None, &[])].concat();
    let moves = Division::new(members.to_vec(), all).moves("a");
    assert_eq!((moves.claim, moves.awaited), (vec![2], vec![0, 1]));
}
