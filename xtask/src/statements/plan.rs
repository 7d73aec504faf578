//! What the lines of a plan say of a statement's way through a Citus cluster.

/// What the plans of a statement have in common, for all parameters that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plans {
    /// The fewest and the most shards that one of them touches; none if none has left the coordinator.
    shards: Option<(u32, u32)>,
    /// Whether its rows are made on the coordinator and sent from there to their shards.
    is_by_row: bool,
    /// Whether rows are sent from worker to worker.
    is_repartitioned: bool,
    /// Whether part of it is run before it, its rows being sent to where the rest is run.
    has_subplan: bool,
    /// Whether there is a plan at all.
    is_planned: bool,
}

impl Plans {
    /// Adds a plan, by its lines.
    pub(super) fn add<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        self.is_planned = true;
        let mut most = None;
        for line in lines {
            let line = line.trim_start();
            if let Some(count) = line.strip_prefix("Task Count: ") {
                most = most.max(count.trim().parse::<u32>().ok());
            }
            self.is_by_row |= line == "INSERT/SELECT method: pull to coordinator";
            self.is_repartitioned |=
                line.contains("Map Task Count:") || line == "INSERT/SELECT method: repartition";
            self.has_subplan |= line.contains("Distributed Subplan");
        }
        if let Some(most) = most {
            let (low, high) = self.shards.unwrap_or((most, most));
            self.shards = Some((low.min(most), high.max(most)));
        }
    }

    /// Where it goes, if it only reads or not; `shards` is how many each table has.
    pub(super) fn reach(&self, is_read: bool, shards: u32, tables: &[(String, String)]) -> Reach {
        let is_everywhere = !tables.is_empty() && tables.iter().all(|(_, by)| by == "everywhere");
        match self.shards {
            _ if !self.is_planned => Reach::Unknown,
            Some(_) if is_everywhere && is_read => Reach::OneCopy,
            Some(_) if is_everywhere => Reach::EveryNode,
            Some((_, 1)) => Reach::OneShard,
            Some((low, _)) if low >= shards => Reach::AllShards,
            Some(_) => Reach::NamedShards,
            None if self.is_by_row => Reach::ByRow,
            None => Reach::Coordinator,
        }
    }

    /// What else is to be known.
    pub(super) fn remarks(&self) -> Vec<&'static str> {
        [
            (self.is_by_row && self.shards.is_some(), "inserted by row"),
            (self.is_repartitioned, "repartitioned"),
            (self.has_subplan, "a part is run first"),
        ]
        .into_iter()
        .filter_map(|(is_so, remark)| is_so.then_some(remark))
        .collect()
    }
}

/// Where a statement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// One shard, or one group of those that lie together.
    OneShard,
    /// As many as its parameters name instances.
    NamedShards,
    /// From the coordinator to the shards of its rows.
    ByRow,
    /// Every shard.
    AllShards,
    /// One copy of a table that every node has.
    OneCopy,
    /// All copies of such a table.
    EveryNode,
    /// No other node.
    Coordinator,
    /// It is sent to one PostgreSQL only.
    Single,
    /// Nobody could say.
    Unknown,
}

impl Reach {
    /// All of them, in the order in which they are counted.
    pub(super) const ALL: [Reach; 9] = [
        Reach::OneShard,
        Reach::NamedShards,
        Reach::ByRow,
        Reach::AllShards,
        Reach::OneCopy,
        Reach::EveryNode,
        Reach::Coordinator,
        Reach::Single,
        Reach::Unknown,
    ];

    /// How the list says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Reach::OneShard => "1 shard",
            Reach::NamedShards => "named shards",
            Reach::ByRow => "insert by row",
            Reach::AllShards => "all shards",
            Reach::OneCopy => "one copy",
            Reach::EveryNode => "every node",
            Reach::Coordinator => "coordinator",
            Reach::Single => "one PostgreSQL only",
            Reach::Unknown => "no plan",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(plans: &[&str], table: &str) -> (Reach, Vec<&'static str>) {
        let mut all = Plans::default();
        for plan in plans {
            all.add(plan.lines());
        }
        let tables = [("t".to_owned(), table.to_owned())];
        (all.reach(false, 4, &tables), all.remarks())
    }

    const ONE: &str = "Custom Scan (Citus Adaptive)\n  Task Count: 1\n  Tasks Shown: All";
    const TWO: &str = "Limit\n  ->  Custom Scan (Citus Adaptive)\n        Task Count: 2";
    const FOUR: &str = "Limit\n  ->  Custom Scan (Citus Adaptive)\n        Task Count: 4";
    const PULLED: &str = "Custom Scan (Citus INSERT ... SELECT)\n  \
                          INSERT/SELECT method: pull to coordinator\n  ->  Function Scan on unnest";

    #[test]
    fn a_plan_says_how_many_shards_are_touched() {
        assert_eq!(reach(&[ONE], "instance").0, Reach::OneShard);
        assert_eq!(reach(&[ONE], "everywhere").0, Reach::EveryNode);
        assert_eq!(reach(&[FOUR, FOUR], "instance").0, Reach::AllShards);
        assert_eq!(reach(&[TWO], "instance").0, Reach::NamedShards);
        assert_eq!(reach(&["Result"], "coordinator").0, Reach::Coordinator);
        assert_eq!(reach(&[], "instance").0, Reach::Unknown);
    }

    #[test]
    fn a_copy_is_read_and_all_are_written() {
        let mut plans = Plans::default();
        plans.add(ONE.lines());
        let tables = [("t".to_owned(), "everywhere".to_owned())];
        assert_eq!(plans.reach(true, 4, &tables), Reach::OneCopy);
        assert_eq!(plans.reach(false, 4, &tables), Reach::EveryNode);
    }

    #[test]
    fn parameters_that_name_more_instances_touch_more_shards() {
        assert_eq!(reach(&[ONE, FOUR], "instance").0, Reach::NamedShards);
        assert_eq!(reach(&[FOUR, ONE], "instance").0, Reach::NamedShards);
    }

    #[test]
    fn what_is_done_besides_is_remarked() {
        assert_eq!(reach(&[PULLED], "instance"), (Reach::ByRow, vec![]));
        let with_part = format!("{ONE}\n  ->  Distributed Subplan 3_1\n        {FOUR}");
        let expected = (Reach::AllShards, vec!["a part is run first"]);
        assert_eq!(reach(&[&with_part], "instance"), expected);
        let pulled = format!("{PULLED}\n  ->  {ONE}");
        let expected = (Reach::OneShard, vec!["inserted by row"]);
        assert_eq!(reach(&[&pulled], "instance"), expected);
    }
}
