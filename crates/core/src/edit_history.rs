//! The edit history of a post, as its server lists it.

/// A version of a post in the list of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVersion {
    /// The time of the version according to the server, in Unix ms.
    pub created_at_ms: i64,
    /// Its JSON.
    pub raw: String,
}

/// A version of a post that an edit has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierVersion {
    /// The time of the version according to the server, in Unix ms.
    pub created_at_ms: i64,
    /// The time of the next version according to the server, in Unix ms.
    pub ended_at_ms: i64,
    /// Its JSON.
    pub raw: String,
}

/// The earlier versions in a server's list of all versions, the oldest first. The last version of
/// the list is the current one and is left out. At most the oldest [`MAX_EARLIER_VERSIONS`] are
/// returned.
pub fn earlier_versions(mut listed: Vec<ListedVersion>) -> Vec<EarlierVersion> {
    listed.sort_by_key(|version| version.created_at_ms);
    let next: Vec<i64> = listed.iter().map(|version| version.created_at_ms).collect();
    let ended = listed.into_iter().zip(next.into_iter().skip(1));
    let earlier = ended.map(|(version, ended_at_ms)| EarlierVersion {
        created_at_ms: version.created_at_ms,
        ended_at_ms,
        raw: version.raw,
    });
    earlier.take(MAX_EARLIER_VERSIONS).collect()
}

/// The largest number of a post's earlier versions that are taken from its server.
pub const MAX_EARLIER_VERSIONS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(times: impl IntoIterator<Item = i64>) -> Vec<ListedVersion> {
        let versions = times.into_iter().map(|created_at_ms| ListedVersion {
            created_at_ms,
            raw: format!("v{created_at_ms}"),
        });
        versions.collect()
    }

    fn earlier(times: impl IntoIterator<Item = i64>) -> Vec<(i64, i64)> {
        let versions = earlier_versions(listed(times)).into_iter();
        let version = |version: EarlierVersion| {
            assert_eq!(version.raw, format!("v{}", version.created_at_ms));
            (version.created_at_ms, version.ended_at_ms)
        };
        versions.map(version).collect()
    }

    #[test]
    fn each_version_ends_with_the_next_and_the_last_is_current() {
        assert_eq!(earlier([10, 20, 35]), [(10, 20), (20, 35)]);
        assert_eq!(earlier([35, 20, 10]), [(10, 20), (20, 35)], "newest first");
        assert_eq!(earlier([10]), []);
        assert_eq!(earlier([]), []);
    }

    #[test]
    fn of_a_long_history_the_oldest_versions_are_taken() {
        let taken = earlier((0..100_000).rev());
        assert_eq!(taken.len(), MAX_EARLIER_VERSIONS);
        assert_eq!(taken.first(), Some(&(0, 1)));
    }
}
